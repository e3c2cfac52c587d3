//! Airtime that fewer acknowledgements save on a Wi-Fi link, as estimated.
//!
//! What is compared: the acknowledgements that were sent, with one for every second data segment
//! that arrived (RFC 9293 §3.8.6.3), which a receiver without TACK would have sent. Each of those
//! that were not sent is taken to have had a separate channel access: on 802.11n, 5 GHz, one
//! spatial stream of 20 MHz at 65 Mbit/s, DIFS and the mean backoff of best effort, the frame, SIFS
//! and the Block ACK. Where a radio aggregates acknowledgements, they would have shared accesses:
//! the estimate is then too high. The program does not know what links the path has.

use std::time::Duration;

use tack_wlan::MacConfig;
use tack_wlan::phy::{Band, GuardInterval, HtMode, Mode, Preamble, Standard, Timing, Width};

/// Bytes of the frame that carries an acknowledgement: TCP with timestamps and SACK (52), UDP (8),
/// IPv4 (20), LLC and SNAP (8), the MAC's header with QoS Control (26), FCS (4).
const FRAME: usize = 52 + 8 + 20 + 8 + 26 + 4;
/// A compressed Block ACK, bytes (§9.3.1.8).
const BLOCK_ACK: u32 = 32;

/// Airtime of one acknowledgement that has the channel to itself.
pub(crate) fn of_one_ack() -> Duration {
    let timing = Timing::new(Standard::N, Band::Ghz5, Preamble::Long);
    let mode = HtMode::new(7, Width::W20, GuardInterval::Ns800).map(Mode::Ht);
    let Ok(mode) = mode else {
        return Duration::ZERO;
    };
    let mac = MacConfig::new(Standard::N, timing, mode);
    let backoff = timing.slot * timing.cw_min / 2;
    timing.difs()
        + backoff
        + timing.airtime(mode, FRAME)
        + timing.sifs
        + mac.control_airtime(BLOCK_ACK)
}

/// Acknowledgements that were not sent, of those that every second segment would have caused.
pub(crate) fn acks_avoided(segments_received: u64, acks_sent: u64) -> u64 {
    (segments_received / 2).saturating_sub(acks_sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_costs_about_a_fifth_of_a_millisecond() {
        // 34 + 67.5 + 36 + 4 symbols of 4 + 16 + a Block ACK at 24 Mbit/s of 32 µs.
        let one = of_one_ack();
        assert!(
            (Duration::from_micros(190)..Duration::from_micros(215)).contains(&one),
            "{one:?}"
        );
        assert_eq!(acks_avoided(1000, 20), 480);
        assert_eq!(acks_avoided(10, 20), 0);
    }
}
