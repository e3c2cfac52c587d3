//! Direct sequence and CCK: the 1, 2, 5.5 and 11 Mbit/s of 802.11b (§15, §16).

use tack_base::{Duration, Rate};

/// A rate of 802.11b.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DsssRate {
    /// 1 Mbit/s, DBPSK.
    R1,
    /// 2 Mbit/s, DQPSK.
    R2,
    /// 5.5 Mbit/s, CCK.
    R5_5,
    /// 11 Mbit/s, CCK.
    R11,
}

/// The two PLCP preambles of 802.11b (§16.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Preamble {
    /// 144 µs of preamble and 48 µs of header, both at 1 Mbit/s.
    #[default]
    Long,
    /// 72 µs of preamble at 1 Mbit/s and 24 µs of header at 2 Mbit/s; not for payload at 1 Mbit/s.
    Short,
}

impl DsssRate {
    /// All rates, slowest first.
    pub const ALL: [Self; 4] = [Self::R1, Self::R2, Self::R5_5, Self::R11];

    /// Data rate.
    pub const fn rate(self) -> Rate {
        Rate::from_bits_per_sec(100_000 * self.hundred_kbps())
    }

    const fn hundred_kbps(self) -> u64 {
        match self {
            Self::R1 => 10,
            Self::R2 => 20,
            Self::R5_5 => 55,
            Self::R11 => 110,
        }
    }

    /// The preamble in force: a payload at 1 Mbit/s always has the long one (§16.2.2.3).
    pub const fn preamble(self, wanted: Preamble) -> Preamble {
        match self {
            Self::R1 => Preamble::Long,
            _ => wanted,
        }
    }

    /// Airtime of a PPDU with `psdu` bytes; the payload takes whole microseconds (§16.3.4).
    pub const fn airtime(self, preamble: Preamble, psdu: usize) -> Duration {
        let bits = psdu as u64 * 8;
        let payload = (bits * 10).div_ceil(self.hundred_kbps());
        Duration::from_micros(self.preamble(preamble).micros() + payload)
    }
}

impl Preamble {
    /// Preamble and PLCP header, microseconds.
    pub const fn micros(self) -> u64 {
        match self {
            Self::Long => 192,
            Self::Short => 96,
        }
    }
}
