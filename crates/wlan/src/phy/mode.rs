//! One transmission mode of any generation, behind one interface.

use tack_base::{Duration, Rate};

use super::dsss::{DsssRate, Preamble};
use super::he::HeMode;
use super::ht::HtMode;
use super::mcs;
use super::ofdm::{LEGACY_PREAMBLE, OfdmRate};
use super::vht::VhtMode;

/// A generation of 802.11.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Standard {
    /// 802.11b: DSSS and CCK, 2.4 GHz.
    B,
    /// 802.11a: OFDM, 5 GHz.
    A,
    /// 802.11g: ERP-OFDM, 2.4 GHz.
    G,
    /// 802.11n: HT.
    N,
    /// 802.11ac: VHT, 5 GHz.
    Ac,
    /// 802.11ax: HE, single user PPDUs.
    Ax,
}

impl Standard {
    /// All generations, oldest first.
    pub const ALL: [Self; 6] = [Self::B, Self::A, Self::G, Self::N, Self::Ac, Self::Ax];

    /// The usual name, such as `802.11n`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::B => "802.11b",
            Self::A => "802.11a",
            Self::G => "802.11g",
            Self::N => "802.11n",
            Self::Ac => "802.11ac",
            Self::Ax => "802.11ax",
        }
    }

    /// True where data frames carry QoS Control, EDCA rules access and Block ACK exists.
    pub const fn is_qos(self) -> bool {
        matches!(self, Self::N | Self::Ac | Self::Ax)
    }
}

/// How one PPDU is sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// 802.11b.
    Dsss(DsssRate, Preamble),
    /// Non-HT OFDM, also as ERP-OFDM of 802.11g.
    Ofdm(OfdmRate),
    /// HT.
    Ht(HtMode),
    /// VHT.
    Vht(VhtMode),
    /// HE single user.
    He(HeMode),
}

impl Mode {
    /// Data rate.
    pub fn rate(self) -> Rate {
        match self {
            Self::Dsss(rate, _) => rate.rate(),
            Self::Ofdm(rate) => rate.rate(),
            Self::Ht(mode) => mode.rate(),
            Self::Vht(mode) => mode.rate(),
            Self::He(mode) => mode.rate(),
        }
    }

    /// Airtime of a PPDU with `psdu` bytes, without the signal extension of 2.4 GHz.
    pub fn airtime(self, psdu: usize) -> Duration {
        match self {
            Self::Dsss(rate, preamble) => rate.airtime(preamble, psdu),
            Self::Ofdm(rate) => rate.airtime(psdu),
            Self::Ht(mode) => mode.airtime(psdu),
            Self::Vht(mode) => mode.airtime(psdu),
            Self::He(mode) => mode.airtime(psdu),
        }
    }

    /// From the start of the PPDU until a receiver has read the PHY header: PHY-RXSTART.indication.
    pub fn header(self) -> Duration {
        match self {
            Self::Dsss(rate, preamble) => Duration::from_micros(rate.preamble(preamble).micros()),
            Self::Ofdm(_) => Duration::from_micros(LEGACY_PREAMBLE),
            Self::Ht(_) => HtMode::HEADER,
            Self::Vht(_) => VhtMode::HEADER,
            Self::He(_) => HeMode::HEADER,
        }
    }

    /// True for every mode but those of 802.11b.
    pub fn is_ofdm(self) -> bool {
        !matches!(self, Self::Dsss(..))
    }

    /// True for HT, VHT and HE: frames that may be aggregated.
    pub fn is_high_throughput(self) -> bool {
        matches!(self, Self::Ht(_) | Self::Vht(_) | Self::He(_))
    }

    /// True for VHT and HE, where every PSDU is an A-MPDU, if only of one MPDU (S-MPDU, §10.12.6).
    pub fn is_always_aggregate(self) -> bool {
        matches!(self, Self::Vht(_) | Self::He(_))
    }

    /// True for the modes of 802.11b with the short preamble.
    pub fn has_short_preamble(self) -> bool {
        matches!(self, Self::Dsss(_, Preamble::Short))
    }

    /// Spatial streams.
    pub fn streams(self) -> u8 {
        match self {
            Self::Dsss(..) | Self::Ofdm(_) => 1,
            Self::Ht(mode) => mode.streams(),
            Self::Vht(mode) => mode.streams(),
            Self::He(mode) => mode.streams(),
        }
    }

    /// The non-HT OFDM rate that stands for this mode when a response rate is chosen; `None` for
    /// DSSS.
    pub fn reference_rate(self) -> Option<OfdmRate> {
        match self {
            Self::Dsss(..) => None,
            Self::Ofdm(rate) => Some(rate),
            Self::Ht(mode) => Some(mcs::reference_rate(mode.mcs() % 8)),
            Self::Vht(mode) => Some(mcs::reference_rate(mode.mcs())),
            Self::He(mode) => Some(mcs::reference_rate(mode.mcs())),
        }
    }
}
