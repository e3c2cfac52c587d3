//! PKT.SEQ and departure time on each transmission, where the peer agreed to them (TACK §4.1, §4.4).

use tack_base::Instant;
use tack_wire::TackOption;
use tack_wire::tack::DataStamp;

/// Stamps transmissions, or does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Numbering {
    on: bool,
}

impl Numbering {
    /// Stamps from now on.
    pub(crate) fn on() -> Self {
        Self { on: true }
    }

    /// The option for transmission `number` that leaves now.
    #[inline]
    pub(crate) fn option(self, now: Instant, number: u64) -> Option<TackOption> {
        self.on.then(|| {
            TackOption::Data(DataStamp {
                number: number as u32,
                departure: now.as_micros() as u32,
            })
        })
    }

    /// Bytes that the option takes.
    #[inline]
    pub(crate) fn len(self) -> u64 {
        if self.on { 12 } else { 0 }
    }
}
