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
//!
//! An acknowledgement without a report does as well, as where a middlebox takes TACK's option off:
//! it says that its newest transmission arrived.
//!
//! Nothing follows the last retransmission of a flight, so no number above its own shows that it
//! got lost. But a receiver with an open loss repeats its reports. One that left long after the
//! retransmission should have arrived, and does not know it, suggests the same. As with a tail loss
//! probe one segment asks then, under a number above all others: the path may be dark, and all that
//! is sent again into it is sent in vain.

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use tack_base::{Instant, StreamOffset};

use super::{Detection, DetectionContext, LossDetector, LossView};
use crate::send::loss_sign::LossSign;
use crate::send::packet_number::PacketNumber;
use crate::send::sent::{Delivered, SentLog};

/// Periods of acknowledgement that the receiver has to name a loss: its report may get lost once.
const PERIODS: u32 = 2;
/// Round trips after which a transmission must be known to a report, as a tail loss probe has it
/// (RFC 8985 §7.2).
const PROBE_ROUND_TRIPS: u32 = 2;

/// The newest transmission known to have arrived.
#[derive(Clone, Copy, Debug)]
struct Newest {
    number: PacketNumber,
    left: Instant,
    /// How long it took from there until its arrival was heard.
    heard_after: Duration,
    /// The same without the time for which the report was held back after the arrival, as far as
    /// that is known.
    on_the_way: Duration,
}

/// The detector.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    named: Vec<Range<PacketNumber>>,
    /// Largest number received.
    newest: Option<Newest>,
    /// The newest report left when what had left by then would have arrived, if there was no way
    /// to go. The time on the way is not in it, nor what held the report up.
    told: Option<Instant>,
    /// When a segment last left because a report that came late did not know it: not before that is
    /// late as well does another one.
    asked: Option<Instant>,
    /// The newest report accounts for all that was received: what it does not name has not
    /// arrived.
    complete: bool,
    /// Highest position delivered.
    highest_delivered: StreamOffset,
    /// Something was delivered below what was delivered earlier: the receiver waits for
    /// stragglers.
    reordering_seen: bool,
}

impl Reported {
    /// The transmission `number`, which left at `left`, is known to have arrived. What says so left
    /// `age` later, if that is known.
    fn on_arrival(&mut self, number: PacketNumber, left: Instant, heard: Instant, age: Duration) {
        if self.newest.is_none_or(|newest| number > newest.number) {
            let heard_after = heard.saturating_since(left);
            self.newest = Some(Newest {
                number,
                left,
                heard_after,
                on_the_way: heard_after.saturating_sub(age),
            });
        }
    }

    /// How long after its departure a transmission that the newest one has overtaken must be known
    /// or named.
    fn patience(&self, context: &DetectionContext, round_trip: Duration) -> Duration {
        let min_rtt = context.min_rtt.unwrap_or(round_trip);
        let round_trip = round_trip.max(context.smoothed_rtt.unwrap_or_default());
        // The receiver waits for stragglers up to a round trip, once it saw any.
        let settling = if self.reordering_seen {
            round_trip
        } else {
            min_rtt / 4
        };
        round_trip + settling + context.ack_delay * PERIODS
    }

    /// What left by then, and is not known, is lost, whatever its number: within an episode, when
    /// reports are repeated.
    fn overdue(&self, context: &DetectionContext, round_trip: Duration) -> Option<Instant> {
        let round_trip = round_trip.max(context.smoothed_rtt.unwrap_or_default());
        let told = self.told.filter(|_| context.in_recovery)?;
        Some(told - round_trip * PROBE_ROUND_TRIPS)
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

    fn on_report(&mut self, view: &LossView<'_>) {
        self.named.clear();
        self.named.extend_from_slice(view.lost);
        self.complete = view.complete;
        if let Some((number, left)) = view.unreported {
            self.on_arrival(number, left, view.arrived, Duration::ZERO);
        }
        let Some(number) = view.largest else { return };
        if let Some(left) = view.largest_left {
            self.on_arrival(number, left, view.arrived, view.largest_age);
        }
        if let Some(newest) = self.newest.filter(|newest| newest.number == number) {
            self.told = Some((newest.left + view.largest_age).min(view.arrived));
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
            ..Detection::default()
        };
        let Some(newest) = self.newest else {
            return detection;
        };
        let patience = self.patience(context, newest.heard_after);
        let overdue = self.overdue(context, newest.on_the_way);
        while let Some((number, left)) = self.oldest_missing(log) {
            if number > newest.number {
                let asked = self.asked.unwrap_or_default();
                if overdue.is_some_and(|overdue| left.max(asked) <= overdue) {
                    self.asked = Some(context.now);
                    detection.asks = true;
                    detection.lost += log.mark_lost(number, LossSign::Overdue);
                }
                break;
            } else if left + patience > context.now {
                detection.look_again = Some(left + patience);
                break;
            }
            match log.mark_lost(number, LossSign::Overdue) {
                0 => break,
                len => detection.lost += len,
            }
        }
        detection
    }

    fn on_timeout(&mut self, context: &DetectionContext, log: &mut SentLog) -> u64 {
        // Without reports nothing is known: all that left more than a round trip ago is presumed
        // lost.
        let mut lost = log.mark_front_lost(LossSign::Timeout);
        let rtt = context.smoothed_rtt.unwrap_or_default();
        while let Some((number, sent_at)) = log.oldest_outstanding() {
            if sent_at + rtt > context.now {
                break;
            }
            match log.mark_lost(number, LossSign::Timeout) {
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

    fn report(detector: &mut Reported, complete: bool) {
        let view = LossView {
            arrived: at(105),
            lost: &[],
            largest: Some(PacketNumber(4)),
            largest_left: Some(at(4)),
            largest_age: Duration::ZERO,
            unreported: None,
            complete,
        };
        detector.on_report(&view);
    }

    #[test]
    fn what_the_receiver_forgot_is_lost_after_its_time_to_name_it() {
        let (mut log, mut detector) = (log(6), Reported::default());
        log.acknowledge_selectively(StreamOffset::range(3001..5001), |_| {});
        report(&mut detector, true);
        let due = at(0) + Duration::from_millis(101) + RTT / 4 + PERIOD * 2;
        let early = detector.detect(&context(at(105)), &mut log);
        assert_eq!((early.lost, early.look_again), (0, Some(due)));
        // Each in its turn; what left after the newest one received is not judged.
        assert_eq!(detector.detect(&context(due), &mut log).lost, 1000);
        let all = detector.detect(&context(due + Duration::from_secs(1)), &mut log);
        assert_eq!((all.lost, all.look_again), (2000, None));
    }

    /// A queue stands: the smoothed round trip is three times the shortest.
    #[test]
    fn a_receiver_that_waits_for_stragglers_has_a_round_trip_more_to_name_a_loss() {
        let (mut log, mut detector) = (log(6), Reported::default());
        log.acknowledge_selectively(StreamOffset::range(3001..5001), |_| {});
        report(&mut detector, true);
        detector.on_duplicate_report(StreamOffset(1), StreamOffset(6001));
        let context = |now| DetectionContext {
            smoothed_rtt: Some(RTT * 3),
            ..context(now)
        };
        let due = at(0) + RTT * 6 + PERIOD * 2;
        let early = detector.detect(&context(at(105)), &mut log);
        assert_eq!((early.lost, early.look_again), (0, Some(due)));
        assert_eq!(detector.detect(&context(due), &mut log).lost, 1000);
    }

    #[test]
    fn where_a_report_had_no_room_only_the_first_hole_is_certain() {
        let (mut log, mut detector) = (log(6), Reported::default());
        report(&mut detector, false);
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

    #[test]
    fn an_acknowledgement_without_a_report_shows_what_arrived() {
        let (mut log, mut detector) = (log(6), Reported::default());
        log.acknowledge_selectively(StreamOffset::range(4001..5001), |_| {});
        detector.on_report(&LossView {
            arrived: at(105),
            lost: &[],
            largest: None,
            largest_left: None,
            largest_age: Duration::ZERO,
            unreported: Some((PacketNumber(4), at(4))),
            complete: false,
        });
        let due = at(0) + Duration::from_millis(101) + RTT / 4 + PERIOD * 2;
        let early = detector.detect(&context(at(105)), &mut log);
        assert_eq!((early.lost, early.look_again), (0, Some(due)));
        // Blocks may have had no room: only the first hole is certain.
        let late = context(at(10_000));
        assert_eq!(detector.detect(&late, &mut log).lost, 1000);
        assert_eq!(detector.detect(&late, &mut log).lost, 0);
    }

    /// A report that left `age` after the arrival of number 4 and arrives at `arrived`.
    fn later_report(detector: &mut Reported, age: Duration, arrived: Instant) {
        let view = LossView {
            arrived,
            lost: &[],
            largest: Some(PacketNumber(4)),
            largest_left: Some(at(4)),
            largest_age: age,
            unreported: None,
            complete: true,
        };
        detector.on_report(&view);
    }

    #[test]
    fn one_segment_asks_when_a_later_report_does_not_know_what_left_last() {
        let (mut log, mut detector) = (log(8), Reported::default());
        log.acknowledge_selectively(StreamOffset::range(1..5001), |_| {});
        let in_recovery = |now| DetectionContext {
            in_recovery: true,
            ..context(now)
        };
        report(&mut detector, true);
        // Number 5 left one millisecond after number 4, and round trips take 101.
        later_report(&mut detector, RTT * 2, at(310));
        assert_eq!(detector.detect(&in_recovery(at(310)), &mut log).lost, 0);
        let age = (RTT + Duration::from_millis(1)) * 2 + Duration::from_millis(1);
        later_report(&mut detector, age, at(320));
        // Outside of an episode that is a tail loss probe's business.
        assert_eq!(detector.detect(&context(at(320)), &mut log).lost, 0);
        let asks = detector.detect(&in_recovery(at(320)), &mut log);
        assert_eq!((asks.lost, asks.asks), (1000, true));
        // A report shows nothing more before it must know that one.
        later_report(&mut detector, RTT * 4, at(520));
        assert_eq!(detector.detect(&in_recovery(at(520)), &mut log).lost, 0);
        later_report(&mut detector, RTT * 6, at(725));
        assert_eq!(detector.detect(&in_recovery(at(725)), &mut log).lost, 1000);
    }

    /// The first report that knows number 4 left two round trips after its arrival.
    #[test]
    fn the_time_for_which_a_report_was_held_back_is_no_part_of_the_round_trip() {
        let (mut log, mut detector) = (log(6), Reported::default());
        log.acknowledge_selectively(StreamOffset::range(1..5001), |_| {});
        let context = DetectionContext {
            in_recovery: true,
            ..context(at(315))
        };
        later_report(&mut detector, RTT * 2 + Duration::from_millis(1), at(305));
        let asks = detector.detect(&context, &mut log);
        assert_eq!((asks.lost, asks.asks), (1000, true));
    }

    #[test]
    fn what_held_a_report_up_proves_nothing() {
        let (mut log, mut detector) = (log(6), Reported::default());
        log.acknowledge_selectively(StreamOffset::range(1..5001), |_| {});
        later_report(&mut detector, Duration::ZERO, at(5_000));
        let context = DetectionContext {
            in_recovery: true,
            ..context(at(5_000))
        };
        assert_eq!(detector.detect(&context, &mut log).lost, 0);
    }
}
