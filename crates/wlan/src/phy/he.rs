//! HE single user (802.11ax, §27): modes and airtime.

use tack_base::time::nanos;
use tack_base::{Duration, Rate};

use super::mcs::{GuardInterval, LTFS, ModeError, Width, data_bits, rate};
use super::ofdm::{LEGACY_PREAMBLE, SERVICE_BITS};

/// An HE single user mode: MCS 0 to 11 on one to eight streams over the whole of 20 to 160 MHz.
///
/// LDPC coding, which every width above 20 MHz and MCS 10 and 11 require: no tail bits. The extra
/// LDPC symbol that some lengths need is not modelled, and receivers are taken to need no packet
/// extension (nominal padding of 0 µs).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HeMode {
    mcs: u8,
    streams: u8,
    width: Width,
    guard: GuardInterval,
}

impl HeMode {
    /// MCS 0 to 11, one to eight streams, any width, a guard interval of 800, 1600 or 3200 ns.
    ///
    /// # Errors
    /// [`ModeError`] for anything else.
    pub fn new(
        mcs: u8,
        streams: u8,
        width: Width,
        guard: GuardInterval,
    ) -> Result<Self, ModeError> {
        if mcs > 11 {
            return Err(ModeError::Mcs { mcs, most: 11 });
        }
        if !(1..=8).contains(&streams) {
            return Err(ModeError::Streams { streams, most: 8 });
        }
        if guard == GuardInterval::Ns400 {
            return Err(ModeError::Guard {
                wanted: "800ns, 1600ns or 3200ns",
            });
        }
        Ok(Self {
            mcs,
            streams,
            width,
            guard,
        })
    }

    /// MCS index, 0 to 11.
    pub fn mcs(self) -> u8 {
        self.mcs
    }

    /// Spatial streams, 1 to 8.
    pub fn streams(self) -> u8 {
        self.streams
    }

    /// Channel width.
    pub fn width(self) -> Width {
        self.width
    }

    /// Guard interval.
    pub fn guard(self) -> GuardInterval {
        self.guard
    }

    fn bits_per_symbol(self) -> u64 {
        let subcarriers = match self.width {
            Width::W20 => 234,
            Width::W40 => 468,
            Width::W80 => 980,
            Width::W160 => 1_960,
        };
        data_bits(subcarriers, self.mcs, self.streams)
    }

    /// A symbol with its guard interval.
    fn symbol(self) -> Duration {
        Duration::from_nanos(12_800) + self.guard.duration()
    }

    /// Data rate.
    pub fn rate(self) -> Rate {
        rate(self.bits_per_symbol(), self.symbol())
    }

    /// Preamble up to the end of HE-SIG-A: legacy preamble, RL-SIG, HE-SIG-A.
    pub const HEADER: Duration = Duration::from_micros(LEGACY_PREAMBLE + 4 + 8);

    /// Airtime of a PPDU with `psdu` bytes (§27.4.3).
    pub fn airtime(self, psdu: usize) -> Duration {
        // Training symbols: 6.4 µs (2x HE-LTF) with the shorter guard intervals, 12.8 µs (4x) with
        // the longest (§27.3.11.10).
        let ltf = match self.guard {
            GuardInterval::Ns400 | GuardInterval::Ns800 => 7_200,
            GuardInterval::Ns1600 => 8_000,
            GuardInterval::Ns3200 => 16_000,
        };
        let preamble =
            (LEGACY_PREAMBLE + 4 + 8 + 4) * 1_000 + ltf * LTFS[usize::from(self.streams - 1)];
        let bits = SERVICE_BITS + 8 * psdu as u64;
        let symbols = bits.div_ceil(self.bits_per_symbol());
        Duration::from_nanos(preamble + symbols * nanos(self.symbol()))
    }
}
