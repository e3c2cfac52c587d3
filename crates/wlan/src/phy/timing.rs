//! Slot and gap lengths of the generations.

use tack_base::Duration;

use super::dsss::{DsssRate, Preamble};
use super::mode::{Mode, Standard};
use super::ofdm::OfdmRate;

/// Frequency band.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Band {
    /// 2.4 GHz: SIFS of 10 µs, and 6 µs of silence after every OFDM frame to make up for it (signal
    /// extension).
    Ghz2_4,
    /// 5 GHz: SIFS of 16 µs.
    Ghz5,
}

impl Standard {
    /// The band in which a generation is used unless something else is said.
    pub const fn band(self) -> Band {
        match self {
            Self::B | Self::G => Band::Ghz2_4,
            Self::A | Self::N | Self::Ac | Self::Ax => Band::Ghz5,
        }
    }
}

/// PHY characteristics that channel access needs (Tables 15-5, 16-4, 17-21, 18-5, 19-25, 21-28).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// aSlotTime.
    pub slot: Duration,
    /// aSIFSTime.
    pub sifs: Duration,
    /// aRxPHYStartDelay of responses: from the start of a PPDU until its header was read.
    pub rx_start_delay: Duration,
    /// Silence that belongs to every OFDM frame in the 2.4 GHz band (§18.3.2.4).
    pub signal_extension: Duration,
    /// aCWmin.
    pub cw_min: u32,
    /// aCWmax.
    pub cw_max: u32,
    /// The mode of a response at the lowest basic rate: what EIFS allows time for (§10.3.2.3.7).
    pub lowest: Mode,
}

impl Timing {
    /// The values of `standard` in `band`; 802.11g has the short slot of a network without 802.11b
    /// stations.
    pub fn new(standard: Standard, band: Band, preamble: Preamble) -> Self {
        let micros = Duration::from_micros;
        let at_2_4 = band == Band::Ghz2_4;
        if standard == Standard::B {
            return Self {
                slot: micros(20),
                sifs: micros(10),
                rx_start_delay: micros(preamble.micros()),
                signal_extension: Duration::ZERO,
                cw_min: 31,
                cw_max: 1_023,
                lowest: Mode::Dsss(DsssRate::R1, Preamble::Long),
            };
        }
        Self {
            slot: micros(9),
            sifs: micros(if at_2_4 { 10 } else { 16 }),
            rx_start_delay: micros(20),
            signal_extension: micros(if at_2_4 { 6 } else { 0 }),
            cw_min: 15,
            cw_max: 1_023,
            lowest: Mode::Ofdm(OfdmRate::R6),
        }
    }

    /// DCF interframe space: SIFS and two slots.
    pub fn difs(&self) -> Duration {
        self.sifs + 2 * self.slot
    }

    /// Airtime of a PPDU with `psdu` bytes, signal extension included.
    pub fn airtime(&self, mode: Mode, psdu: usize) -> Duration {
        let airtime = mode.airtime(psdu);
        if mode.is_ofdm() {
            airtime + self.signal_extension
        } else {
            airtime
        }
    }
}
