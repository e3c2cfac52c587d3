//! HT (802.11n, §19), VHT (802.11ac, §21) and HE single user (802.11ax, §27): modes and airtime.

use tack_base::{Duration, Rate};

use super::mode::ModeError;
use super::ofdm::{LEGACY_PREAMBLE, OfdmRate, SERVICE_BITS, TAIL_BITS};

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

    /// Nanoseconds.
    pub const fn nanos(self) -> u64 {
        match self {
            Self::Ns400 => 400,
            Self::Ns800 => 800,
            Self::Ns1600 => 1_600,
            Self::Ns3200 => 3_200,
        }
    }
}

/// Coded bits per subcarrier and the code rate (numerator, denominator) of an MCS within one stream (Tables 19-27, 21-30, 27-55).
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

/// Long training fields for so many streams, by number of streams less one (Tables 19-13 and 21-13).
const LTFS: [u64; 8] = [1, 2, 4, 4, 6, 6, 8, 8];

/// Bits per symbol that no rounding has touched: subcarriers, bits, streams, code rate.
const fn data_bits(subcarriers: u64, mcs: u8, streams: u8) -> u64 {
    let (bits, (numerator, denominator)) = modulation(mcs);
    subcarriers * bits * streams as u64 * numerator / denominator
}

fn rate(bits_per_symbol: u64, symbol_ns: u64) -> Rate {
    Rate::from_bits_per_sec(bits_per_symbol * 1_000_000_000 / symbol_ns)
}

/// Duration of HT or VHT data: with the short guard interval, symbols of 3.6 µs padded to the 4 µs grid (§19.4.3, §21.4.3).
const fn symbols_duration(symbols: u64, guard: GuardInterval) -> u64 {
    match guard {
        GuardInterval::Ns400 => (symbols * 3_600).div_ceil(4_000) * 4_000,
        _ => symbols * 4_000,
    }
}

const fn is_high_throughput_guard(guard: GuardInterval) -> bool {
    matches!(guard, GuardInterval::Ns400 | GuardInterval::Ns800)
}

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
        rate(self.bits_per_symbol(), 3_200 + self.guard.nanos())
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
        Duration::from_nanos(preamble * 1_000 + data)
    }
}

/// Whether VHT-SIG-B is on the air.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SigB {
    /// As the standard has it: one symbol of 4 µs after the training fields (§21.3.8.3.6).
    #[default]
    Sent,
    /// Left out, as ns-3 does for single user PPDUs: for comparison with its figures.
    Omitted,
}

/// A VHT mode: MCS 0 to 9 on one to eight streams in 20 to 160 MHz.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VhtMode {
    mcs: u8,
    streams: u8,
    width: Width,
    guard: GuardInterval,
    sig_b: SigB,
}

impl VhtMode {
    /// MCS 0 to 9, one to eight streams, any width, a guard interval of 400 or 800 ns.
    ///
    /// # Errors
    /// [`ModeError`] for anything else, and for the combinations that the standard leaves out because their bits do not
    /// divide among the encoders (§21.5).
    pub fn new(
        mcs: u8,
        streams: u8,
        width: Width,
        guard: GuardInterval,
        sig_b: SigB,
    ) -> Result<Self, ModeError> {
        if mcs > 9 {
            return Err(ModeError::Mcs { mcs, most: 9 });
        }
        if !(1..=8).contains(&streams) {
            return Err(ModeError::Streams { streams, most: 8 });
        }
        if !is_high_throughput_guard(guard) {
            return Err(ModeError::Guard {
                wanted: "400ns or 800ns",
            });
        }
        let left_out = match (width, mcs) {
            (Width::W20, 9) => !matches!(streams, 3 | 6),
            (Width::W80, 6) => matches!(streams, 3 | 7),
            (Width::W80, 9) => streams == 6,
            (Width::W160, 9) => streams == 3,
            _ => false,
        };
        if left_out {
            return Err(ModeError::LeftOut {
                mcs,
                streams,
                mhz: width.mhz(),
            });
        }
        Ok(Self {
            mcs,
            streams,
            width,
            guard,
            sig_b,
        })
    }

    /// MCS index, 0 to 9.
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

    fn subcarriers(self) -> u64 {
        match self.width {
            Width::W20 => 52,
            Width::W40 => 108,
            Width::W80 => 234,
            Width::W160 => 468,
        }
    }

    fn bits_per_symbol(self) -> u64 {
        data_bits(self.subcarriers(), self.mcs, self.streams)
    }

    /// BCC encoders: as few as carry the rate at 600 Mbit/s each, such that the bits of a symbol divide among them and
    /// their puncturing patterns (§21.3.10.5.4).
    fn encoders(self) -> u64 {
        let (bits, (_, denominator)) = modulation(self.mcs);
        let coded = self.subcarriers() * bits * u64::from(self.streams);
        let per_symbol = self.bits_per_symbol();
        // 600 Mbit/s for 3.6 µs is 2160 bits.
        let fewest = per_symbol.div_ceil(2_160);
        (fewest..=12)
            .find(|encoders| {
                coded.is_multiple_of(encoders * denominator) && per_symbol.is_multiple_of(*encoders)
            })
            .unwrap_or(fewest)
    }

    /// Data rate.
    pub fn rate(self) -> Rate {
        rate(self.bits_per_symbol(), 3_200 + self.guard.nanos())
    }

    /// Preamble up to the end of VHT-SIG-A.
    pub const HEADER: Duration = Duration::from_micros(LEGACY_PREAMBLE + 8);

    /// Airtime of a PPDU with `psdu` bytes (§21.4.3).
    pub fn airtime(self, psdu: usize) -> Duration {
        let sig_b = match self.sig_b {
            SigB::Sent => 4,
            SigB::Omitted => 0,
        };
        let preamble = LEGACY_PREAMBLE + 8 + 4 + 4 * LTFS[usize::from(self.streams - 1)] + sig_b;
        let bits = SERVICE_BITS + 8 * psdu as u64 + TAIL_BITS * self.encoders();
        let data = symbols_duration(bits.div_ceil(self.bits_per_symbol()), self.guard);
        Duration::from_nanos(preamble * 1_000 + data)
    }
}

/// An HE single user mode: MCS 0 to 11 on one to eight streams over the whole of 20 to 160 MHz.
///
/// LDPC coding, which every width above 20 MHz and MCS 10 and 11 require: no tail bits. The extra LDPC symbol that some
/// lengths need is not modelled, and receivers are taken to need no packet extension (nominal padding of 0 µs).
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

    /// Data rate.
    pub fn rate(self) -> Rate {
        rate(self.bits_per_symbol(), 12_800 + self.guard.nanos())
    }

    /// Preamble up to the end of HE-SIG-A: legacy preamble, RL-SIG, HE-SIG-A.
    pub const HEADER: Duration = Duration::from_micros(LEGACY_PREAMBLE + 4 + 8);

    /// Airtime of a PPDU with `psdu` bytes (§27.4.3).
    pub fn airtime(self, psdu: usize) -> Duration {
        // Training symbols: 6.4 µs (2x HE-LTF) with the shorter guard intervals, 12.8 µs (4x) with the longest (§27.3.11.10).
        let ltf = match self.guard {
            GuardInterval::Ns400 | GuardInterval::Ns800 => 7_200,
            GuardInterval::Ns1600 => 8_000,
            GuardInterval::Ns3200 => 16_000,
        };
        let preamble =
            (LEGACY_PREAMBLE + 4 + 8 + 4) * 1_000 + ltf * LTFS[usize::from(self.streams - 1)];
        let bits = SERVICE_BITS + 8 * psdu as u64;
        let symbols = bits.div_ceil(self.bits_per_symbol());
        Duration::from_nanos(preamble + symbols * (12_800 + self.guard.nanos()))
    }
}

/// The non-HT rate that stands for an MCS when the rate of a response is chosen: same modulation, same or next lower code
/// rate, 54 Mbit/s for all that is denser (§10.6.11, Table 10-10).
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
