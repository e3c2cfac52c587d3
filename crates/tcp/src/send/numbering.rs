//! PKT.SEQ and departure time on each transmission, where the peer agreed to them
//! (TACK §4.1, §4.4).

use tack_base::Instant;
use tack_wire::TackOption;
use tack_wire::tack::DataStamp;

use crate::send::packet_number::PacketNumber;

/// Length of the option, bytes.
const LEN: u64 = 12;

/// Stamps transmissions, or does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Numbering {
    agreed: bool,
    on: bool,
}

impl Numbering {
    /// Stamps from now on.
    pub(crate) fn on() -> Self {
        Self {
            agreed: true,
            on: true,
        }
    }

    /// Stamps or does not, from now on, where the peer agreed to it.
    pub(crate) fn set(&mut self, on: bool) {
        self.on = self.agreed && on;
    }

    /// Bytes of each segment that stay free for the option, in use or not: what left without it may
    /// have to leave again with it.
    #[inline]
    pub(crate) fn room(self) -> u64 {
        if self.agreed { LEN } else { 0 }
    }

    /// The option for transmission `number` that leaves now.
    #[inline]
    pub(crate) fn option(self, now: Instant, number: PacketNumber) -> Option<TackOption> {
        self.on.then(|| {
            TackOption::Data(DataStamp {
                number: number.low(),
                departure: now.as_micros() as u32,
            })
        })
    }

    /// Bytes that the option takes.
    #[inline]
    pub(crate) fn len(self) -> u64 {
        if self.on { LEN } else { 0 }
    }
}
