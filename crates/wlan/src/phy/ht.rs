//! HT (802.11n, §19): modes and airtime.

use tack_base::{Duration, Rate};

use super::mcs::{
    GuardInterval, LTFS, ModeError, Width, data_bits, is_high_throughput_guard, rate, symbol,
    symbols_duration,
};
use super::ofdm::{LEGACY_PREAMBLE, SERVICE_BITS, TAIL_BITS};

/// An HT mode: MCS 0 to 31 with equal modulation on one to four streams, mixed-format preamble.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HtMode {
    mcs: u8,
    width: Width,
    guard: GuardInterval,
}

impl HtMode {
    /// MCS 0 to 31 (eight for each stream) in 20 or 40 MHz with a guard interval of 400 or 800 ns.
    ///
    /// # Errors
    /// [`ModeError`] for anything else.
    pub fn new(mcs: u8, width: Width, guard: GuardInterval) -> Result<Self, ModeError> {
        if mcs > 31 {
            return Err(ModeError::Mcs { mcs, most: 31 });
        }
        if width > Width::W40 {
            return Err(ModeError::Width {
                mhz: width.mhz(),
                most: 40,
            });
        }
        if !is_high_throughput_guard(guard) {
            return Err(ModeError::Guard {
                wanted: "400ns or 800ns",
            });
        }
        Ok(Self { mcs, width, guard })
    }

    /// MCS index, 0 to 31.
    pub fn mcs(self) -> u8 {
        self.mcs
    }

    /// Spatial streams, 1 to 4.
    pub fn streams(self) -> u8 {
        self.mcs / 8 + 1
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
        let subcarriers = if self.width == Width::W20 { 52 } else { 108 };
        data_bits(subcarriers, self.mcs % 8, self.streams())
    }

    /// Data rate.
    pub fn rate(self) -> Rate {
        rate(self.bits_per_symbol(), symbol(self.guard))
    }

    /// Preamble up to the end of HT-SIG: when a receiver knows what is coming.
    pub const HEADER: Duration = Duration::from_micros(LEGACY_PREAMBLE + 8);

    /// Airtime of a PPDU with `psdu` bytes (§19.4.3).
    pub fn airtime(self, psdu: usize) -> Duration {
        let preamble = LEGACY_PREAMBLE + 8 + 4 + 4 * LTFS[usize::from(self.streams() - 1)];
        let per_symbol = self.bits_per_symbol();
        // Two encoders above 300 Mbit/s at the short guard interval (§19.5: tables of N_ES).
        let encoders = if per_symbol > 1_080 { 2 } else { 1 };
        let bits = SERVICE_BITS + 8 * psdu as u64 + TAIL_BITS * encoders;
        let data = symbols_duration(bits.div_ceil(per_symbol), self.guard);
        Duration::from_micros(preamble) + data
    }
}
