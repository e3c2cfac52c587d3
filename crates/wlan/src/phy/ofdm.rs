//! Non-HT OFDM: the 6 to 54 Mbit/s of 802.11a, and of 802.11g as ERP-OFDM (§17, §18).

use tack_base::{Duration, Rate};

/// A non-HT OFDM rate in a 20 MHz channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfdmRate {
    /// BPSK 1/2.
    R6,
    /// BPSK 3/4.
    R9,
    /// QPSK 1/2.
    R12,
    /// QPSK 3/4.
    R18,
    /// 16-QAM 1/2.
    R24,
    /// 16-QAM 3/4.
    R36,
    /// 64-QAM 2/3.
    R48,
    /// 64-QAM 3/4.
    R54,
}

/// Service field and tail around the PSDU of one encoder, bits (§17.3.2).
pub(super) const SERVICE_BITS: u64 = 16;
pub(super) const TAIL_BITS: u64 = 6;

/// Short and long training and SIGNAL, microseconds (§17.3.2.4).
pub(super) const LEGACY_PREAMBLE: u64 = 20;

const SYMBOL: u64 = 4;

impl OfdmRate {
    /// All rates, slowest first.
    pub const ALL: [Self; 8] = [
        Self::R6,
        Self::R9,
        Self::R12,
        Self::R18,
        Self::R24,
        Self::R36,
        Self::R48,
        Self::R54,
    ];

    /// Megabits per second.
    pub const fn mbps(self) -> u64 {
        match self {
            Self::R6 => 6,
            Self::R9 => 9,
            Self::R12 => 12,
            Self::R18 => 18,
            Self::R24 => 24,
            Self::R36 => 36,
            Self::R48 => 48,
            Self::R54 => 54,
        }
    }

    /// Data rate.
    pub const fn rate(self) -> Rate {
        Rate::from_bits_per_sec(1_000_000 * self.mbps())
    }

    /// Data bits per symbol (Table 17-4): four microseconds' worth.
    pub const fn bits_per_symbol(self) -> u64 {
        self.mbps() * SYMBOL
    }

    /// Airtime of a PPDU with `psdu` bytes, without signal extension (§17.4.3).
    pub const fn airtime(self, psdu: usize) -> Duration {
        let bits = SERVICE_BITS + 8 * psdu as u64 + TAIL_BITS;
        Duration::from_micros(LEGACY_PREAMBLE + SYMBOL * bits.div_ceil(self.bits_per_symbol()))
    }
}
