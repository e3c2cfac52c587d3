//! What the modes of HT, VHT and HE are made of: widths, guard intervals, modulation and coding of
//! an MCS.

use tack_base::time::nanos;
use tack_base::{Duration, Rate};
use thiserror::Error;

use super::ofdm::OfdmRate;

/// Channel width.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Width {
    /// 20 MHz.
    W20,
    /// 40 MHz.
    W40,
    /// 80 MHz.
    W80,
    /// 160 MHz.
    W160,
}

impl Width {
    /// All widths, narrowest first.
    pub const ALL: [Self; 4] = [Self::W20, Self::W40, Self::W80, Self::W160];

    /// Megahertz.
    pub const fn mhz(self) -> u16 {
        match self {
            Self::W20 => 20,
            Self::W40 => 40,
            Self::W80 => 80,
            Self::W160 => 160,
        }
    }
}

/// Guard interval between OFDM symbols.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum GuardInterval {
    /// 0.4 µs: the short one of HT and VHT.
    Ns400,
    /// 0.8 µs: the long one of HT and VHT, the shortest of HE.
    Ns800,
    /// 1.6 µs, HE only.
    Ns1600,
    /// 3.2 µs, HE only.
    Ns3200,
}

impl GuardInterval {
    /// All intervals, shortest first.
    pub const ALL: [Self; 4] = [Self::Ns400, Self::Ns800, Self::Ns1600, Self::Ns3200];

    /// How long it lasts.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(match self {
            Self::Ns400 => 400,
            Self::Ns800 => 800,
            Self::Ns1600 => 1_600,
            Self::Ns3200 => 3_200,
        })
    }
}

/// Coded bits per subcarrier and the code rate (numerator, denominator) of an MCS within one stream
/// (Tables 19-27, 21-30, 27-55).
pub(super) const fn modulation(mcs: u8) -> (u64, (u64, u64)) {
    match mcs {
        0 => (1, (1, 2)),
        1 => (2, (1, 2)),
        2 => (2, (3, 4)),
        3 => (4, (1, 2)),
        4 => (4, (3, 4)),
        5 => (6, (2, 3)),
        6 => (6, (3, 4)),
        7 => (6, (5, 6)),
        8 => (8, (3, 4)),
        9 => (8, (5, 6)),
        10 => (10, (3, 4)),
        _ => (10, (5, 6)),
    }
}

/// Long training fields for so many streams, by number of streams less one (Tables 19-13 and
/// 21-13).
pub(super) const LTFS: [u64; 8] = [1, 2, 4, 4, 6, 6, 8, 8];

/// Bits per symbol that no rounding has touched: subcarriers, bits, streams, code rate.
pub(super) const fn data_bits(subcarriers: u64, mcs: u8, streams: u8) -> u64 {
    let (bits, (numerator, denominator)) = modulation(mcs);
    subcarriers * bits * streams as u64 * numerator / denominator
}

pub(super) const fn rate(bits_per_symbol: u64, symbol: Duration) -> Rate {
    Rate::from_bits_per_sec(bits_per_symbol * 1_000_000_000 / nanos(symbol))
}

/// An HT or VHT symbol: 3.2 µs and its guard interval.
pub(super) fn symbol(guard: GuardInterval) -> Duration {
    Duration::from_nanos(3_200) + guard.duration()
}

/// Duration of HT or VHT data: with the short guard interval, symbols of 3.6 µs padded to the 4 µs
/// grid (§19.4.3, §21.4.3).
pub(super) const fn symbols_duration(symbols: u64, guard: GuardInterval) -> Duration {
    Duration::from_nanos(match guard {
        GuardInterval::Ns400 => (symbols * 3_600).div_ceil(4_000) * 4_000,
        _ => symbols * 4_000,
    })
}

pub(super) const fn is_high_throughput_guard(guard: GuardInterval) -> bool {
    matches!(guard, GuardInterval::Ns400 | GuardInterval::Ns800)
}

/// The non-HT rate that stands for an MCS when the rate of a response is chosen: same modulation,
/// same or next lower code rate, 54 Mbit/s for all that is denser (§10.6.11, Table 10-10).
pub(super) const fn reference_rate(mcs: u8) -> OfdmRate {
    match mcs {
        0 => OfdmRate::R6,
        1 => OfdmRate::R12,
        2 => OfdmRate::R18,
        3 => OfdmRate::R24,
        4 => OfdmRate::R36,
        5 => OfdmRate::R48,
        _ => OfdmRate::R54,
    }
}

/// Why a mode does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ModeError {
    /// The MCS index is too large.
    #[error("MCS {mcs} does not exist; 0 to {most} do")]
    Mcs {
        /// What was asked for.
        mcs: u8,
        /// The largest there is.
        most: u8,
    },
    /// Too few or too many spatial streams.
    #[error("{streams} spatial streams are not possible; 1 to {most} are")]
    Streams {
        /// What was asked for.
        streams: u8,
        /// The most there are.
        most: u8,
    },
    /// The channel is too wide for the generation.
    #[error("a channel of {mhz} MHz is not possible; at most {most} MHz are")]
    Width {
        /// What was asked for, MHz.
        mhz: u16,
        /// The widest there is, MHz.
        most: u16,
    },
    /// The guard interval belongs to another generation.
    #[error("this guard interval is not possible; {wanted} are")]
    Guard {
        /// Those that are possible.
        wanted: &'static str,
    },
    /// The standard leaves this combination out.
    #[error(
        "the standard has no MCS {mcs} with {streams} streams in {mhz} MHz: its bits do not divide among the encoders"
    )]
    LeftOut {
        /// MCS index.
        mcs: u8,
        /// Spatial streams.
        streams: u8,
        /// Channel width, MHz.
        mhz: u16,
    },
}
