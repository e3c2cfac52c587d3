use alloc::vec::Vec;
use core::mem;

use tack_base::StreamOffset;
use tack_wire::SeqNum;

use super::*;
use crate::cc::SendToken;
use crate::send::sent::{FlightStart, SentLog};

const MSS: u64 = 1000;
const RTT_MIN: Duration = Duration::from_millis(10);
const DUE: u64 = 8 * MSS;

fn at(millis: u64) -> Instant {
    Instant::from_millis(10_000 + millis)
}

/// A sender of one segment each 5 ms, whose round trip is `rtt`.
struct Sender {
    hearing: Hearing,
    log: SentLog,
    sent: u64,
    /// Segments that the next acknowledgement is the first to acknowledge.
    acked: u64,
    rtt: Duration,
}

impl Sender {
    /// Reports do not come: it fell back at 0, and what it sent then is acknowledged.
    fn after_fallback(rtt: Duration) -> Self {
        let mut sender = Self::without_an_answer(rtt);
        sender.acked = 1;
        sender.send(at(0));
        let far = u64::try_from(rtt.as_millis()).unwrap_or(u64::MAX);
        sender.bare(at(far), true);
        sender
    }

    /// Reports do not come: it fell back at 0.
    fn without_an_answer(rtt: Duration) -> Self {
        let mut sender = Self {
            hearing: Hearing::new(),
            log: SentLog::new(),
            sent: 0,
            acked: 0,
            rtt,
        };
        sender.send(at(0));
        let far = u64::try_from(rtt.as_millis()).unwrap_or(u64::MAX);
        for millis in (0..7).chain([far.max(7)]) {
            sender.bare(at(millis), true);
        }
        assert!(!sender.hearing.stamps());
        sender
    }

    fn send(&mut self, now: Instant) {
        let start = 1 + self.sent * MSS;
        self.log.push(
            StreamOffset::range(start..start + MSS),
            now,
            FlightStart::default(),
            SendToken::default(),
        );
        self.sent += 1;
    }

    fn with<R>(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut Hearing, &ReadContext<'_>) -> R,
    ) -> R {
        let context = ReadContext {
            arrived: now,
            ack: StreamOffset(1 + mem::take(&mut self.acked) * MSS),
            snd_una: StreamOffset(1),
            snd_nxt: StreamOffset(1 + self.sent * MSS),
            iss: SeqNum(0),
            largest_window: 1 << 20,
            mss: MSS,
            smoothed_rtt: self.rtt,
            log: &self.log,
        };
        self.hearing.look_at_clock(&context, RTT_MIN);
        act(&mut self.hearing, &context)
    }

    fn bare(&mut self, now: Instant, lists: bool) {
        self.with(now, |hearing, context| {
            let carrier = Carrier::Alone { lists };
            hearing.on_no_report(context, carrier, DUE, (RTT_MIN, Duration::ZERO));
        });
    }

    fn report(&mut self, now: Instant, largest: u64) {
        self.with(now, |hearing, context| {
            hearing.on_report(context, Some(PacketNumber(largest)));
        });
    }

    /// Sends and hears for a time. Returns how many segments left with a stamp.
    fn run(&mut self, millis: core::ops::Range<u64>) -> u64 {
        let mut stamped = 0;
        for millis in millis.step_by(5) {
            self.send(at(millis));
            stamped += u64::from(self.hearing.stamps());
            self.bare(at(millis), true);
        }
        stamped
    }
}

/// Hears of data without reports: when each segment arrived, milliseconds, up to which report
/// it acknowledges, and when it left on the peer's clock, microseconds. True while stamps still
/// leave.
fn still_hears(segments: &[(u64, u64, Option<u32>)]) -> bool {
    let mut log = SentLog::new();
    let range = StreamOffset::range(1..1 + 100 * DUE);
    log.push(range, at(0), FlightStart::default(), SendToken::default());
    let mut hearing = Hearing::new();
    let mut snd_una = StreamOffset(1);
    for (arrived, ack, left) in segments {
        let context = ReadContext {
            arrived: at(*arrived),
            ack: StreamOffset(1 + ack * DUE),
            snd_una,
            snd_nxt: StreamOffset(1 + 100 * DUE),
            iss: SeqNum(0),
            largest_window: 1 << 20,
            mss: MSS,
            smoothed_rtt: RTT_MIN,
            log: &log,
        };
        let carrier = Carrier::Data { left: *left };
        hearing.on_no_report(&context, carrier, DUE, (RTT_MIN, RTT_MIN));
        snd_una = context.ack;
    }
    hearing.stamps()
}

/// A host stands still for longer than a round trip in the middle of a burst: the report
/// behind it is not read yet, but it is not missing. Without stamps nothing tells.
#[test]
fn a_burst_read_in_two_parts_is_over_when_its_sender_says_so() {
    let burst = |last: Option<u32>| {
        let first = last.map(|_| u32::MAX - 5);
        let left = move |number| if number == 7 { last } else { first };
        let segments = (0..8).map(|number| (3 * number, 10 + 5 * number, left(number)));
        segments.collect::<Vec<_>>()
    };
    let after = |micros| Some((u32::MAX - 5).wrapping_add(micros));
    assert!(still_hears(&burst(after(0))));
    assert!(still_hears(&burst(after(9_999))));
    assert!(
        still_hears(&burst(Some(u32::MAX - 500))),
        "overtaken on the way"
    );
    assert!(!still_hears(&burst(after(10_000))));
    assert!(!still_hears(&burst(None)));
}

/// What a peer says about its clock delays a fallback and does not prevent it.
#[test]
fn a_clock_that_stands_still_does_not_prevent_a_fallback() {
    let until = |last| (0..last).map(|arrived| (arrived, 10 + arrived / 20, Some(7)));
    let too_long: Vec<_> = until(1_200).collect();
    assert!(!still_hears(&too_long));
    let not_yet: Vec<_> = until(1_000).collect();
    assert!(still_hears(&not_yet));
}

/// Many segments that acknowledge the same left together, as far as anybody can tell.
#[test]
fn segments_that_acknowledge_no_more_than_the_first_are_as_one() {
    let segments = |further| {
        let segments = (0..10).map(|number| (20 * number, 10 + further * number, None));
        segments.collect::<Vec<_>>()
    };
    assert!(still_hears(&segments(0)));
    assert!(!still_hears(&segments(5)));
}

/// The receiver spaces its reports by the round trip that it was told. That has shrunk since
/// then, and more arrives between two of them than is usually due.
#[test]
fn reports_as_far_apart_as_the_told_round_trip_permits_are_not_missed() {
    let told = Duration::from_millis(400);
    let mut log = SentLog::new();
    let range = StreamOffset::range(1..1 + 10 * DUE);
    log.push(range, at(0), FlightStart::default(), SendToken::default());
    let mut hearing = Hearing::new();
    // Whether stamps still leave after an acknowledgement on data, or a report.
    let mut hears = |millis: u64, is_report: bool| {
        let context = ReadContext {
            arrived: at(millis),
            ack: StreamOffset(1 + 5 * DUE),
            snd_una: StreamOffset(1),
            snd_nxt: StreamOffset(1 + 10 * DUE),
            iss: SeqNum(0),
            largest_window: 1 << 20,
            mss: MSS,
            smoothed_rtt: RTT_MIN,
            log: &log,
        };
        if is_report {
            hearing.on_report(&context, Some(PacketNumber(0)));
        } else {
            let carrier = Carrier::Data { left: None };
            hearing.on_no_report(&context, carrier, DUE, (RTT_MIN, told));
        }
        hearing.stamps()
    };
    for millis in 0..1_000 {
        assert!(hears(millis, millis % 50 == 0), "{millis} ms");
    }
    let lost = (1_000..).find(|millis| !hears(*millis, false));
    assert_eq!(lost, Some(950 + 6 * 100), "six are missing");
}

/// Timeouts back off until a plain acknowledgement is understood; stamps would prevent it.
#[test]
fn nothing_is_probed_before_data_was_acknowledged() {
    let mut sender = Sender::without_an_answer(Duration::from_millis(10));
    assert_eq!(sender.run(15..5_000), 0);
    sender.acked = 1;
    sender.bare(at(5_000), true);
    assert!(sender.run(5_005..5_100) > 10);
}

#[test]
fn a_refused_report_ends_a_probe() {
    let mut sender = Sender::after_fallback(Duration::from_millis(100));
    sender.run(105..1_110);
    assert!(sender.hearing.stamps());
    sender.with(at(1_111), |hearing, context| {
        hearing.on_refused(context, DUE, (RTT_MIN, Duration::ZERO));
    });
    assert!(!sender.hearing.stamps());
}

#[test]
fn a_probe_is_short_however_long_the_queue_is() {
    for millis in [10, 2_000] {
        let mut sender = Sender::after_fallback(Duration::from_millis(millis));
        let far = millis + 1_000;
        assert_eq!(sender.run(millis + 5..far), 0);
        // 60 ms are twelve segments.
        let stamped = sender.run(far..far + 900);
        assert!((11..=14).contains(&stamped), "{millis}: {stamped}");
    }
}

#[test]
fn a_late_answer_to_a_probe_begins_a_trial_and_an_older_report_does_not() {
    let mut sender = Sender::after_fallback(Duration::from_millis(1_000));
    sender.run(1_005..2_000);
    let first = sender.sent;
    assert!(sender.run(2_000..2_500) > 10);
    sender.report(at(2_900), first - 1);
    assert!(!sender.hearing.stamps(), "it left before the probe");
    sender.report(at(2_900), first + 5);
    assert!(sender.hearing.stamps());
    let trial = sender.sent;
    // The receiver fell back meanwhile, and says so until stamps reach it.
    assert_eq!(sender.run(2_905..3_800), 179);
    for millis in [3_900, 4_300, 4_900] {
        sender.report(at(millis), trial + 10);
    }
    assert!(sender.hearing.is_on());
}

#[test]
fn a_trial_ends_when_reports_stop_and_at_last_when_none_come() {
    let begun = || {
        let mut sender = Sender::after_fallback(Duration::from_millis(100));
        sender.run(105..1_100);
        let first = sender.sent;
        sender.run(1_100..1_300);
        sender.report(at(1_300), first + 5);
        assert!(sender.hearing.stamps());
        sender
    };
    let mut sender = begun();
    let trial = sender.sent;
    sender.run(1_305..1_400);
    sender.report(at(1_400), trial + 2);
    let stamped = sender.run(1_405..1_700);
    assert_eq!(stamped, 6, "acknowledgements before the trial do not count");
    // Queues that grow do not lengthen it.
    let mut sender = begun();
    sender.rtt = Duration::from_secs(5);
    let stamped = sender.run(1_305..4_000);
    assert_eq!(stamped, 600 / 5, "six round trips of 100 ms");
}

#[test]
fn a_blind_sender_does_not_wait_for_segments_that_cannot_leave() {
    let mut sender = Sender::after_fallback(Duration::from_millis(10));
    sender.run(15..1_010);
    sender.bare(at(1_010), true);
    for millis in [1_011, 1_012, 1_025] {
        sender.send(at(millis));
        assert!(sender.hearing.stamps());
    }
    for millis in 1_026..1_200 {
        sender.bare(at(millis), true);
    }
    assert!(sender.hearing.stamps(), "it hears what is missing");
    sender.bare(at(1_200), false);
    assert!(!sender.hearing.stamps());
}
