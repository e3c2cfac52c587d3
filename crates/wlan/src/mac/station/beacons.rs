//! What beacons of an access point take.

use tack_base::Duration;

use crate::phy::{DsssRate, Mode, OfdmRate, Preamble, Standard};

/// Beacons of an access point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Beacons {
    /// Time between target beacon transmission times.
    pub interval: Duration,
    /// Mode, usually the lowest rate of all.
    pub mode: Mode,
    /// Length of the frame, bytes.
    pub len: u32,
}

impl Beacons {
    /// At the lowest rate of `standard`, with the elements that its beacons have (§9.3.3.2).
    pub fn usual(standard: Standard, interval: Duration) -> Self {
        // Header and FCS, timestamp, interval, capabilities, a name of four letters, TIM.
        const COMMON: u32 = 28 + 8 + 2 + 2 + 6 + 6;
        // Supported rates; DSSS and ERP parameters; EDCA parameters; capabilities and operation of
        // HT, VHT and HE.
        let elements = match standard {
            Standard::B => 6 + 3,
            Standard::A => 10,
            Standard::G => 10 + 3 + 3,
            Standard::N => 10 + 20 + 28 + 24,
            Standard::Ac => 10 + 20 + 28 + 24 + 14 + 7,
            Standard::Ax => 10 + 20 + 28 + 24 + 14 + 7 + 28 + 9,
        };
        let mode = match standard {
            Standard::B | Standard::G => Mode::Dsss(DsssRate::R1, Preamble::Long),
            _ => Mode::Ofdm(OfdmRate::R6),
        };
        Self {
            interval,
            mode,
            len: COMMON + elements,
        }
    }
}
