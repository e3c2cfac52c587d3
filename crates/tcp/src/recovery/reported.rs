//! Loss detected by the receiver (TACK §4.1): it names packet numbers, and what left under them
//! last is lost.
//!
//! A retransmission has a new number, so a report can never be taken for an older transmission, and
//! one that comes again finds nothing left to do.
//!
//! Behind the receiver stands time, as in RACK (RFC 8985 §6.2): what left before the largest number
//! received, is not acknowledged and was not named long after the receiver had to name it, is lost
//! all the same. A receiver that forgets a hole, or whose reports get lost, costs a round trip then
//! and not a timeout.

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use tack_base::{Instant, StreamOffset};

use super::{Detection, DetectionContext, LossDetector, LossView};
use crate::send::packet_number::PacketNumber;
use crate::send::sent::{Delivered, SentLog};

/// Periods of acknowledgement that the receiver has to name a loss: its report may get lost once.
const PERIODS: u32 = 2;

/// The detector.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    named: Vec<Range<PacketNumber>>,
    /// Largest number received, and how long it took from its departure until that was heard.
    newest: Option<(PacketNumber, Duration)>,
    /// The newest report accounts for all that was received: what it does not name has not arrived.
    complete: bool,
    /// Highest position delivered.
    highest_delivered: StreamOffset,
    /// Something was delivered below what was delivered earlier: the receiver waits for stragglers.
    reordering_seen: bool,
}

impl Reported {
    /// How long after its departure a transmission that the newest one has overtaken must be known
    /// or named.
    fn patience(&self, context: &DetectionContext, round_trip: Duration) -> Duration {
        let min_rtt = context.min_rtt.unwrap_or(round_trip);
        // The receiver waits for stragglers up to RTTmin, once it saw any.
        let settling = if self.reordering_seen {
            min_rtt
        } else {
            min_rtt / 4
        };
        round_trip.max(context.smoothed_rtt.unwrap_or_default())
            + settling
            + context.ack_delay * PERIODS
    }

    /// The oldest transmission that can be judged by what was received, and when it left. Where a
    /// report had no room for all that was received, only of the segment at the cumulative
    /// acknowledgement it is sure that it is missing.
    fn oldest_missing(&self, log: &SentLog) -> Option<(PacketNumber, Instant)> {
        if self.complete {
            log.oldest_outstanding()
        } else {
            log.front_outstanding()
        }
    }
}

impl LossDetector for Reported {
    fn on_delivered(&mut self, _context: &DetectionContext, delivered: &Delivered) {
        let end = delivered.transmission.end;
        if end > self.highest_delivered {
            self.highest_delivered = end;
        } else if end < self.highest_delivered && !delivered.retransmitted {
            self.reordering_seen = true;
        }
    }

    fn on_duplicate_report(&mut self, _snd_una: StreamOffset, _snd_nxt: StreamOffset) {
        self.reordering_seen = true;
    }

    fn on_report(&mut self, view: &LossView<'_>, log: &SentLog) {
        self.named.clear();
        self.named.extend_from_slice(view.lost);
        self.complete = view.complete;
        if let Some(number) = view.largest
            && self.newest.is_none_or(|(newest, _)| number > newest)
            && let Some(left) = log.sent_at(number)
        {
            self.newest = Some((number, view.arrived.saturating_since(left)));
        }
    }

    fn detect(&mut self, context: &DetectionContext, log: &mut SentLog) -> Detection {
        // Nobody can know a loss sooner than half the shortest round trip: a false report could
        // make a segment leave again and again.
        let youngest = context.now - context.min_rtt.unwrap_or_default() / 2;
        let mut detection = Detection {
            lost: self
                .named
                .drain(..)
                .map(|numbers| log.mark_numbers_lost(numbers, youngest))
                .sum(),
            look_again: None,
        };
        let Some((newest, round_trip)) = self.newest else {
            return detection;
        };
        let patience = self.patience(context, round_trip);
        while let Some((number, left)) = self.oldest_missing(log).filter(|(n, _)| *n < newest) {
            if left + patience > context.now {
                detection.look_again = Some(left + patience);
                break;
            }
            match log.mark_lost(number) {
                0 => break,
                len => detection.lost += len,
            }
        }
        detection
    }

    fn on_timeout(&mut self, context: &DetectionContext, log: &mut SentLog) -> u64 {
        // Without reports nothing is known: all that left more than a round trip ago is presumed
        // lost.
        let mut lost = log.mark_front_lost();
        let rtt = context.smoothed_rtt.unwrap_or_default();
        while let Some((number, sent_at)) = log.oldest_outstanding() {
            if sent_at + rtt > context.now {
                break;
            }
            match log.mark_lost(number) {
                0 => break,
                len => lost += len,
            }
        }
        lost
    }

    fn on_recovered(&mut self) {}

    fn on_undone(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::SendToken;
    use crate::send::sent::FlightStart;

    const RTT: Duration = Duration::from_millis(100);
    const PERIOD: Duration = Duration::from_millis(40);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// A log in which segments of 1,000 bytes left one millisecond apart, numbers 0 to `segments` -
    /// 1.
    fn log(segments: u64) -> SentLog {
        let mut log = SentLog::new();
        for number in 0..segments {
            let start = 1 + number * 1000;
            log.push(
                StreamOffset::range(start..start + 1000),
                at(number),
                FlightStart::default(),
                SendToken::default(),
            );
        }
        log
    }

    fn context(now: Instant) -> DetectionContext {
        DetectionContext {
            now,
            min_rtt: Some(RTT),
            smoothed_rtt: Some(RTT),
            ack_delay: PERIOD,
            in_recovery: false,
            echoed_departure: None,
        }
    }

    fn report(detector: &mut Reported, log: &SentLog, complete: bool) {
        let view = LossView {
            arrived: at(105),
            lost: &[],
            largest: Some(PacketNumber(4)),
            complete,
        };
        detector.on_report(&view, log);
    }

    #[test]
    fn what_the_receiver_forgot_is_lost_after_its_time_to_name_it() {
        let (mut log, mut detector) = (log(6), Reported::default());
        log.acknowledge_selectively(StreamOffset::range(3001..5001), |_| {});
        report(&mut detector, &log, true);
        let due = at(0) + Duration::from_millis(101) + RTT / 4 + PERIOD * 2;
        let early = detector.detect(&context(at(105)), &mut log);
        assert_eq!((early.lost, early.look_again), (0, Some(due)));
        // Each in its turn; what left after the newest one received is not judged.
        assert_eq!(detector.detect(&context(due), &mut log).lost, 1000);
        let all = detector.detect(&context(due + Duration::from_secs(1)), &mut log);
        assert_eq!((all.lost, all.look_again), (2000, None));
    }

    #[test]
    fn where_a_report_had_no_room_only_the_first_hole_is_certain() {
        let (mut log, mut detector) = (log(6), Reported::default());
        report(&mut detector, &log, false);
        let late = context(at(10_000));
        assert_eq!(detector.detect(&late, &mut log).lost, 1000);
        assert_eq!(detector.detect(&late, &mut log).lost, 0);
    }

    #[test]
    fn nothing_is_judged_before_anything_arrived() {
        let (mut log, mut detector) = (log(6), Reported::default());
        let detection = detector.detect(&context(at(10_000)), &mut log);
        assert_eq!((detection.lost, detection.look_again), (0, None));
    }
}
