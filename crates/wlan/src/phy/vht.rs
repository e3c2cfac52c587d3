//! VHT (802.11ac, §21): modes and airtime.

use tack_base::{Duration, Rate};

use super::mcs::{
    GuardInterval, LTFS, ModeError, Width, data_bits, is_high_throughput_guard, modulation, rate,
    symbol, symbols_duration,
};
use super::ofdm::{LEGACY_PREAMBLE, SERVICE_BITS, TAIL_BITS};

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
    /// [`ModeError`] for anything else, and for the combinations that the standard leaves out
    /// because their bits do not divide among the encoders (§21.5).
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

    /// BCC encoders: as few as carry the rate at 600 Mbit/s each, such that the bits of a symbol
    /// divide among them and their puncturing patterns (§21.3.10.5.4).
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
        rate(self.bits_per_symbol(), symbol(self.guard))
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
        Duration::from_micros(preamble) + data
    }
}
