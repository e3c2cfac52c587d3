//! Settings of the MAC, the same for every radio of a network.

use tack_base::Duration;

use super::access::{Contention, CwAdaptation, Rules};
use crate::frame::{AccessCategory, len};
use crate::phy::{Mode, Standard, Timing, response};

/// Limits of an A-MPDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AmpduLimits {
    /// Longest A-MPDU, bytes; 0 turns aggregation off. The standard allows 65,535 for HT,
    /// 1,048,575 for VHT, 6,500,631 for HE.
    pub bytes: u32,
    /// Most MPDUs, 1 to 64; the Block ACK window is as large.
    pub frames: u16,
    /// Longest PPDU: 5.484 ms is what L-SIG can express (§9.3.4: aPPDUMaxTime).
    pub airtime: Duration,
}

/// The Block ACK window: what a compressed bitmap of 64 bits covers.
pub const WINDOW: u16 = 64;

/// Longest PPDU of HT, VHT and HE (Tables 19-25, 21-28).
pub const PPDU_MAX_TIME: Duration = Duration::from_micros(5_484);

/// What goes before data frames to keep radios quiet that could not read them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protection {
    /// Nothing.
    #[default]
    Off,
    /// CTS to oneself in this mode (§10.27.2), as 802.11g does in networks with 802.11b stations.
    CtsToSelf(Mode),
}

/// What follows an A-MPDU that no Block ACK answered. The standard leaves the choice to the
/// originator (§10.25.6.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MissedBlockAck {
    /// A Block ACK request, which asks what of it came through, as ns-3 and drivers that flag
    /// `AMPDU_NO_BACK` do (iwlwifi).
    #[default]
    Request,
    /// The frames again; requests go only when frames were given up, as with ath9k.
    Resend,
}

/// Whether Block ACK agreements have to be set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Agreements {
    /// They stand from the start.
    #[default]
    Established,
    /// An originator asks for one when it has more than one frame for a receiver in a category, and
    /// sends single frames until it stands (§10.25.2). With VHT and HE, whose single frames
    /// are A-MPDUs, it asks with the first frame, as ns-3 does.
    Negotiated,
}

/// How long an originator waits for the ADDBA response after the acknowledgement of its request,
/// and sends nothing to that receiver in that category: `AddBaResponseTimeout` of ns-3 3.37.
pub const ADDBA_RESPONSE_TIMEOUT: Duration = Duration::from_millis(1);

/// How long an originator sends single frames before it asks again: `FailedAddBaTimeout` of ns-3
/// 3.37.
pub const ADDBA_RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// How long a frame waits for one before it: `HT_RX_REORDER_BUF_TIMEOUT` of Linux,
/// net/mac80211/rx.c.
pub const REORDER_TIMEOUT: Duration = Duration::from_millis(100);

/// Settings of the MAC.
#[derive(Clone, Debug, PartialEq)]
pub struct MacConfig {
    /// Slot and gaps.
    pub timing: Timing,
    /// Mode of data frames.
    pub data_mode: Mode,
    /// Mode of ACK, Block ACK, Block ACK request, RTS and CTS.
    pub control_mode: Mode,
    /// Data frames carry QoS Control, EDCA rules access, Block ACK exists.
    pub is_qos: bool,
    /// Contention by category; without QoS only that of best effort counts.
    pub contention: [Contention; 4],
    /// How long a category may keep the medium after winning it; zero for one exchange
    /// (§10.23.2.9).
    pub txop_limit: [Duration; 4],
    /// PSDUs longer than this are announced by RTS; `None` for never.
    pub rts_threshold: Option<u32>,
    /// What goes before data.
    pub protection: Protection,
    /// Transmissions of a frame before it is given up: dot11ShortRetryLimit.
    pub retry_limit: u8,
    /// Limits of aggregation.
    pub ampdu: AmpduLimits,
    /// Whether Block ACK agreements have to be set up.
    pub agreements: Agreements,
    /// What follows an A-MPDU without answer.
    pub missed_block_ack: MissedBlockAck,
    /// How long the recipient of a Block ACK agreement holds a frame back for one before it;
    /// `None` forever, as the standard has it, where only the originator moves the window.
    pub reorder_timeout: Option<Duration>,
}

impl MacConfig {
    /// The values of the standard for `data_mode`: responses at the highest basic rate, no RTS, no
    /// protection, seven attempts, and A-MPDUs of up to 65,535 bytes.
    pub fn new(standard: Standard, timing: Timing, data_mode: Mode) -> Self {
        let is_qos = standard.is_qos();
        Self {
            timing,
            data_mode,
            control_mode: response::response_mode(data_mode),
            is_qos,
            contention: AccessCategory::ALL.map(|category| contention(category, is_qos, &timing)),
            txop_limit: AccessCategory::ALL.map(|category| txop_limit(category, is_qos)),
            rts_threshold: None,
            protection: Protection::Off,
            retry_limit: 7,
            ampdu: AmpduLimits {
                bytes: if is_qos { 65_535 } else { 0 },
                frames: WINDOW,
                airtime: PPDU_MAX_TIME,
            },
            agreements: Agreements::default(),
            missed_block_ack: MissedBlockAck::Request,
            reorder_timeout: Some(REORDER_TIMEOUT),
        }
    }

    /// True when data frames may be aggregated.
    pub fn aggregates(&self) -> bool {
        self.is_qos && self.ampdu.bytes > 0 && self.data_mode.is_high_throughput()
    }

    /// True when agreements have to be set up before frames may be aggregated.
    pub fn negotiates(&self) -> bool {
        self.agreements == Agreements::Negotiated && self.aggregates()
    }

    /// Airtime of a control frame of `psdu` bytes.
    pub fn control_airtime(&self, psdu: u32) -> Duration {
        self.timing.airtime(self.control_mode, psdu as usize)
    }

    /// How long a sender waits for a response to begin: SIFS, a slot, and the start of its
    /// reception (§10.3.2.11).
    ///
    /// It is timed on the start of reception, so a response may be of any length. A response at 1
    /// Mbit/s has the long preamble, in networks with the short one too.
    pub fn response_timeout(&self) -> Duration {
        let start = self.timing.rx_start_delay.max(self.control_mode.header());
        self.timing.sifs + self.timing.slot + start
    }

    /// What EIFS is longer than DIFS: SIFS and an ACK at the lowest basic rate (§10.3.7).
    pub fn eifs_extra(&self) -> Duration {
        let timing = &self.timing;
        timing.sifs + timing.airtime(timing.lowest, len::ACK as usize)
    }
}

/// The default EDCA parameter set (Table 9-155), or DCF.
fn contention(category: AccessCategory, is_qos: bool, timing: &Timing) -> Contention {
    let (cw_min, cw_max) = (timing.cw_min, timing.cw_max);
    if !is_qos {
        return Contention {
            aifsn: 2,
            cw_min,
            cw_max,
            rules: Rules::Dcf,
            adaptation: CwAdaptation::Standard,
        };
    }
    let (aifsn, cw_min, cw_max) = match category {
        AccessCategory::Background => (7, cw_min, cw_max),
        AccessCategory::BestEffort => (3, cw_min, cw_max),
        AccessCategory::Video => (2, cw_min.div_ceil(2) - 1, cw_min),
        AccessCategory::Voice => (2, cw_min.div_ceil(4) - 1, cw_min.div_ceil(2) - 1),
    };
    Contention {
        aifsn,
        cw_min,
        cw_max,
        rules: Rules::Edca,
        adaptation: CwAdaptation::Standard,
    }
}

/// TXOP limits of the default EDCA parameter set for OFDM PHYs (Table 9-155).
///
/// Deviation: best effort and background have no limit of 2.528 ms but one exchange at a time, as
/// in WMM and hostapd.
const fn txop_limit(category: AccessCategory, is_qos: bool) -> Duration {
    match category {
        AccessCategory::Video if is_qos => Duration::from_micros(4_096),
        AccessCategory::Voice if is_qos => Duration::from_micros(2_080),
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::{Band, DsssRate, Preamble};

    #[test]
    fn a_response_with_the_long_preamble_is_waited_for() {
        let timing = Timing::new(Standard::B, Band::Ghz2_4, Preamble::Short);
        let data = Mode::Dsss(DsssRate::R11, Preamble::Short);
        let mut mac = MacConfig::new(Standard::B, timing, data);
        assert_eq!(mac.response_timeout(), Duration::from_micros(10 + 20 + 96));
        mac.control_mode = Mode::Dsss(DsssRate::R1, Preamble::Long);
        assert_eq!(mac.response_timeout(), Duration::from_micros(10 + 20 + 192));
    }
}
