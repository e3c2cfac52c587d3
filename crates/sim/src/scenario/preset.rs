//! Radios calibrated to the devices of the TACK paper: `preset = "tack-n"`.
//!
//! The paper gives the goodput of saturating UDP without acknowledgements over its four devices: 7,
//! 26, 210 and 590 Mbit/s, and no parameters. Each preset states what would explain the figure; any
//! key given beside it goes before it. Only the baselines are calibrated: what TCP makes of them is
//! the experiment.

use tack_base::Rate;
use tack_wlan::MacConfig;
use tack_wlan::mac::Protection;
use tack_wlan::phy::{DsssRate, Mode, OfdmRate, Preamble, Standard};

/// One of the paper's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// 802.11b, 7 Mbit/s. The long preamble ends at 6.1 Mbit/s, so the preamble is short; with ACKs
    /// at 11 Mbit/s, as radios send them to partners they know, 6.97. (Equally good: ACKs at 2
    /// Mbit/s, and frames of 1518 bytes counted whole.)
    TackB,
    /// 802.11g, 26 Mbit/s. With the short slot 29.7, so something more is on the air. A CTS to
    /// oneself at 6 Mbit/s before each frame, as access points that protect the 2.4 GHz band
    /// send it, gives 25.9. (CWmin of 31 would give 25.1, the long slot 23.6.)
    TackG,
    /// 802.11n, 300 Mbit/s, 210 Mbit/s. A-MPDUs of 65,535 bytes give 256; those of 21,700 bytes (14
    /// frames of 1500 bytes, 0.6 ms) 211: drivers bound aggregates by time and by the number of
    /// buffers.
    TackN,
    /// 802.11ac, 866.7 Mbit/s, 590 Mbit/s. A-MPDUs of 65,535 bytes give 612; of 55,600 bytes, 36
    /// frames, 589.
    TackAc,
}

/// The names of the presets.
pub(super) const NAMES: [(&str, Preset); 4] = [
    ("tack-b", Preset::TackB),
    ("tack-g", Preset::TackG),
    ("tack-n", Preset::TackN),
    ("tack-ac", Preset::TackAc),
];

impl Preset {
    /// Generation.
    pub const fn standard(self) -> Standard {
        match self {
            Self::TackB => Standard::B,
            Self::TackG => Standard::G,
            Self::TackN => Standard::N,
            Self::TackAc => Standard::Ac,
        }
    }

    /// PHY rate.
    pub fn rate(self) -> Rate {
        Rate::from_bits_per_sec(match self {
            Self::TackB => 11_000_000,
            Self::TackG => 54_000_000,
            Self::TackN => 300_000_000,
            Self::TackAc => 866_700_000,
        })
    }

    /// Preamble of 802.11b.
    pub const fn preamble(self) -> Preamble {
        match self {
            Self::TackB => Preamble::Short,
            _ => Preamble::Long,
        }
    }

    /// Applies what is peculiar to the device.
    pub(super) fn apply(self, mac: &mut MacConfig) {
        match self {
            Self::TackB => mac.control_mode = Mode::Dsss(DsssRate::R11, Preamble::Short),
            Self::TackG => mac.protection = Protection::CtsToSelf(Mode::Ofdm(OfdmRate::R6)),
            Self::TackN => mac.ampdu.bytes = 21_700,
            Self::TackAc => mac.ampdu.bytes = 55_600,
        }
    }
}
