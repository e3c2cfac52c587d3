//! RACK (RFC 8985): a segment is lost when one sent sufficiently later was delivered.
//!
//! Time decides, not sequence: `sent_at + RTT + reordering window < now` for everything that left
//! before the newest delivered transmission. The window starts at zero, so that the first loss is
//! repaired at once, opens to min_rtt/4 when reordering is seen, and widens with each DSACK.

use core::time::Duration;

use tack_base::{Instant, StreamOffset};

use super::{Detection, DetectionContext, LossDetector};
use crate::send::loss_sign::LossSign;
use crate::send::packet_number::PacketNumber;
use crate::send::sent::{Delivered, SentLog};

/// Delivered segments above a hole that make it lost without waiting, until reordering is seen
/// (DupThresh).
const DUP_THRESH: usize = 3;
/// Recoveries for which a widened window persists without another DSACK (RFC 8985 §6.2 step 4).
const PERSIST: u8 = 16;

/// RACK's state (RFC 8985 §5.2).
#[derive(Debug)]
pub(crate) struct Rack {
    /// Number and departure of the newest delivered transmission.
    newest: Option<(PacketNumber, Instant)>,
    /// Its round-trip time.
    rtt: Duration,
    /// Highest position delivered.
    highest_delivered: StreamOffset,
    reordering_seen: bool,
    window_multiplier: u32,
    window_persist: u8,
    /// SND.NXT at the DSACK that last widened the window: at most once a round trip.
    duplicate_round: Option<StreamOffset>,
}

impl Rack {
    /// Nothing delivered yet.
    pub(crate) fn new() -> Self {
        Self {
            newest: None,
            rtt: Duration::ZERO,
            highest_delivered: StreamOffset::SYN,
            reordering_seen: false,
            window_multiplier: 1,
            window_persist: 0,
            duplicate_round: None,
        }
    }

    /// RACK.reo_wnd (RFC 8985 §6.2 step 4).
    fn reordering_window(&self, context: &DetectionContext, log: &SentLog) -> Duration {
        if !self.reordering_seen && (context.in_recovery || log.sacked_segments() >= DUP_THRESH) {
            return Duration::ZERO;
        }
        let quarter = context.min_rtt.unwrap_or_default() / 4;
        (quarter * self.window_multiplier).min(context.smoothed_rtt.unwrap_or_default())
    }
}

impl LossDetector for Rack {
    fn on_delivered(&mut self, context: &DetectionContext, delivered: &Delivered) {
        let sent = &delivered.transmission;
        let rtt = context.now.saturating_since(sent.sent_at);
        let ambiguous = sent.retransmission && context.is_of_an_earlier(sent.sent_at);
        if !ambiguous
            && self
                .newest
                .is_none_or(|(number, _)| delivered.number > number)
        {
            self.newest = Some((delivered.number, sent.sent_at));
            self.rtt = rtt;
        }
        // Step 3: an original below something delivered earlier was reordered.
        if sent.end > self.highest_delivered {
            self.highest_delivered = sent.end;
        } else if sent.end < self.highest_delivered && !delivered.retransmitted {
            self.reordering_seen = true;
        }
    }

    fn on_duplicate_report(&mut self, snd_una: StreamOffset, snd_nxt: StreamOffset) {
        if self.duplicate_round.is_none_or(|round| snd_una >= round) {
            self.duplicate_round = Some(snd_nxt);
            self.window_multiplier = (self.window_multiplier + 1).min(64);
            self.window_persist = PERSIST;
            self.reordering_seen = true;
        }
    }

    fn detect(&mut self, context: &DetectionContext, log: &mut SentLog) -> Detection {
        let mut detection = Detection::default();
        let Some((newest, newest_sent_at)) = self.newest else {
            return detection;
        };
        let window = self.reordering_window(context, log);
        let deadline = self.rtt + window;
        loop {
            let Some((number, sent_at)) = log.oldest_outstanding() else {
                return detection;
            };
            // Only what left before the newest delivered transmission can be judged by it.
            if number >= newest || sent_at > newest_sent_at {
                return detection;
            }
            let due = sent_at + deadline;
            if due > context.now {
                detection.look_again = Some(due);
                return detection;
            }
            let lost = log.mark_lost(number, LossSign::Rack);
            debug_assert!(lost > 0, "outstanding transmissions can be lost");
            if lost == 0 {
                return detection;
            }
            detection.lost += lost;
        }
    }

    fn on_timeout(&mut self, context: &DetectionContext, log: &mut SentLog) -> u64 {
        // RFC 8985 §6.3: the first segment, and all that would be overdue, are lost; what left
        // recently may still be on its way.
        let mut lost = log.mark_front_lost(LossSign::Timeout);
        let window = self.reordering_window(context, log);
        let rtt = if self.rtt.is_zero() {
            context.smoothed_rtt.unwrap_or_default()
        } else {
            self.rtt
        };
        while let Some((number, sent_at)) = log.oldest_outstanding() {
            if sent_at + rtt + window > context.now {
                break;
            }
            let len = log.mark_lost(number, LossSign::Timeout);
            if len == 0 {
                break;
            }
            lost += len;
        }
        lost
    }

    fn on_undone(&mut self) {
        // Measured against a retransmission that did not deliver anything, every original would be
        // overdue.
        self.newest = None;
    }

    fn on_recovered(&mut self) {
        if self.window_persist > 0 {
            self.window_persist -= 1;
            if self.window_persist == 0 {
                self.window_multiplier = 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::sent::Transmission;

    /// RFC 8985 §6.2 step 2: a retransmission that the acknowledgement cannot have been sent for
    /// tells nothing about what left before it.
    #[test]
    fn acknowledgements_of_an_earlier_transmission_are_not_measured_by() {
        let delivered = Delivered {
            number: PacketNumber(7),
            transmission: Transmission::new(
                StreamOffset::range(1..1001),
                Instant::from_millis(100),
                true,
            ),
            retransmitted: true,
            was_lost: false,
        };
        let context = |echoed_departure| DetectionContext {
            now: Instant::from_millis(130),
            min_rtt: Some(Duration::from_millis(20)),
            smoothed_rtt: Some(Duration::from_millis(20)),
            ack_delay: Duration::ZERO,
            in_recovery: true,
            echoed_departure,
        };
        for (echoed, adopted) in [
            (None, true),
            (Some(Instant::from_millis(100)), true),
            (Some(Instant::from_millis(99)), false),
        ] {
            let mut rack = Rack::new();
            rack.on_delivered(&context(echoed), &delivered);
            assert_eq!(rack.newest.is_some(), adopted, "{echoed:?}");
        }
    }
}
