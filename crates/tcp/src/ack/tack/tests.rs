//! The receiver's decisions, and what the sender believes of reports.

use alloc::vec;
use alloc::vec::Vec;

use tack_base::range_set::RangeSet;
use tack_base::{Rate, StreamOffset};
use tack_wire::options::TcpOptions;
use tack_wire::tack::{DataStamp, Lists, Report, ReportKind};
use tack_wire::{Flags, Header, Segment, SeqNum};

use super::schedule::BASE_GAPS;
use super::*;
use crate::ack::feedback::{AckInfo, FeedbackReader, InvalidFeedback, ReadContext, SenderState};
use crate::ack::kind::AckKind;
use crate::cc::SendToken;
use crate::send::sent::{FlightStart, SentLog};

mod round_trips;
mod small_window;

const MSS: u64 = 1_000;
const RTT: Duration = Duration::from_millis(40);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A receiver of full segments, and its decisions.
struct Receiver {
    policy: TackPolicy,
    received: RangeSet<StreamOffset>,
    received_to: StreamOffset,
}

impl Receiver {
    fn new(settings: &str) -> Self {
        let AckKind::Tack(params) = settings.parse().expect("settings of TACK") else {
            panic!("TACK is meant");
        };
        let mut policy = TackPolicy::new(params);
        policy.on_handshake(RTT);
        // Established: the sender does not probe for capacity.
        policy.on_sync(
            at(0),
            &Sync {
                startup: false,
                ack_loss_rate: 0,
                number: 1,
                rtt_min: RTT.as_micros() as u32,
                rtt: RTT.as_micros() as u32,
            },
        );
        Self {
            policy,
            received: RangeSet::new(),
            received_to: StreamOffset::FIRST_BYTE,
        }
    }

    /// Transmission `number` brings segment `segment`.
    fn receive(&mut self, now: Instant, number: u32, segment: u64) -> AckDecision {
        let start = StreamOffset(1 + segment * MSS);
        let is_known = self.received.range_at(start).is_some();
        self.received.insert(start..start + MSS);
        let in_order = start == self.received_to;
        if let Some(run) = self.received.range_at(self.received_to) {
            self.received_to = run.end;
        }
        let arrival = DataArrival {
            now,
            arrived: now,
            start,
            len: MSS,
            order: if is_known {
                SegmentOrder::Duplicate
            } else if in_order {
                SegmentOrder::InOrder
            } else {
                SegmentOrder::OutOfOrder
            },
            push: false,
            fin: false,
            received_to: self.received_to,
            unacknowledged: 0,
            peer_mss: MSS,
            window_left: 1 << 24,
            window: 1 << 24,
            ce_changed: false,
            window_moves: false,
            stamp: Some(DataStamp {
                number,
                departure: now.as_micros() as u32,
            }),
        };
        self.policy.on_data(&arrival)
    }

    /// A report leaves. What it is, and the gaps that it lists, as distances and lengths.
    fn report(&mut self, now: Instant, reason: AckReason) -> (TackOption, Vec<(u64, u64)>) {
        let mut ahead = self.received.clone();
        ahead.remove_below(self.received_to);
        let context = ReportContext {
            now,
            reason,
            received_to: self.received_to,
            ahead: &ahead,
        };
        let mut buffer = vec![0; 1_400];
        let (option, len) = self
            .policy
            .report(&context, &mut buffer)
            .expect("nothing stripped the options");
        if len == 0 {
            return (option, Vec::new());
        }
        let lists = Lists::parse(&buffer[..len]).expect("own lists are sound");
        (option, lists.gaps().collect())
    }

    /// Lets time pass until nothing is planned any more; returns when reports left.
    fn reports_in_silence(&mut self, mut due: AckDecision) -> Vec<Instant> {
        let mut reports = Vec::new();
        while let AckDecision::Delayed(now) = due {
            due = self.policy.on_timer(now);
            if let AckDecision::Now(reason) = due {
                self.report(now, reason);
                reports.push(now);
                assert!(reports.len() < 100, "it never falls silent");
                due = self
                    .policy
                    .on_ack_sent(now, Carried::Alone)
                    .map_or(AckDecision::Nothing, AckDecision::Delayed);
            }
        }
        reports
    }
}

#[test]
fn reports_say_whether_the_largest_number_brought_nothing_new() {
    let mut receiver = Receiver::new("tack");
    // Number, segment, and what the report says. Copies that the network makes, of a repetition or
    // of an original, change nothing: they have the number of the other.
    let arrivals = [
        (0, 0, false),
        (1, 1, false),
        (2, 0, true),
        (2, 0, true),
        (3, 2, false),
        (3, 2, false),
        (5, 4, false),
        (6, 3, false),
    ];
    for (turn, (number, segment, repeated)) in arrivals.into_iter().enumerate() {
        let now = at(100 + 20 * turn as u64);
        receiver.receive(now, number, segment);
        let (option, _) = receiver.report(now, AckReason::Threshold);
        let TackOption::Report(report) = option else {
            panic!("{option:?}");
        };
        assert_eq!(report.repeated, repeated, "{number} with segment {segment}");
    }
}

/// When reports leave, microseconds, of segments that arrive at these microseconds. Of what happens
/// at one instant, arrivals are handled first.
fn reports_of(arrivals: &[u64]) -> Vec<u64> {
    let mut receiver = Receiver::new("tack");
    let mut reports = Vec::new();
    let mut timer: Option<Instant> = None;
    let ends = arrivals.iter().copied().map(Some).chain([None]);
    for (number, arrival) in ends.enumerate() {
        let next = arrival.map(Instant::from_micros);
        let mut pending = Vec::new();
        loop {
            let (now, decision) = match (timer, next) {
                (Some(at), next) if next.is_none_or(|next| at < next) => {
                    timer = None;
                    (at, receiver.policy.on_timer(at))
                }
                (_, Some(now)) if pending.is_empty() => {
                    pending.push(now);
                    (now, receiver.receive(now, number as u32, number as u64))
                }
                _ => break,
            };
            let planned = match decision {
                AckDecision::Now(reason) => {
                    receiver.report(now, reason);
                    reports.push(now.as_micros());
                    timer = None;
                    receiver.policy.on_ack_sent(now, Carried::Alone)
                }
                AckDecision::Delayed(at) => Some(at),
                AckDecision::Nothing => None,
            };
            timer = timer.into_iter().chain(planned).min();
        }
    }
    reports
}

#[test]
fn a_burst_after_silence_is_reported_once_when_it_ends() {
    // Forty segments every 30 ms: three intervals apart, 2 ms long.
    let bursts = |spacing: u64| -> Vec<u64> {
        (0..20)
            .flat_map(|burst| (0..40).map(move |segment| 30_000 * burst + spacing * segment))
            .collect()
    };
    // The very first report is not waited for.
    let since_second = |reports: Vec<u64>| -> Vec<u64> {
        let reports = reports.into_iter();
        reports.filter(|report| *report >= 30_000).collect()
    };
    let reports = since_second(reports_of(&bursts(50)));
    for (number, report) in (1..).zip(&reports) {
        let last = 30_000 * number + 50 * 39;
        assert!(
            (last..=last + 110).contains(report),
            "{report} after {last}"
        );
    }
    assert_eq!(reports.len(), 19, "{reports:?}");
    // A radio that hands over all at once: at that instant.
    let at_once: Vec<_> = (1..20).map(|burst| 30_000 * burst).collect();
    assert_eq!(since_second(reports_of(&bursts(0))), at_once);
}

#[test]
fn a_burst_that_does_not_end_is_reported_every_interval() {
    let stream: Vec<_> = (0..10).chain(1_000..4_000).map(|n| 50 * n).collect();
    let reports = reports_of(&stream);
    let first = reports.iter().position(|report| *report >= 50_000);
    let reports = &reports[first.expect("the stream is reported")..];
    // The first one waits for as long as a transmission of a radio may take.
    assert_eq!(reports[0], 55_484);
    assert!(
        reports
            .windows(2)
            .all(|pair| (10_000..=10_050).contains(&(pair[1] - pair[0]))),
        "{reports:?}"
    );
}

#[test]
fn even_arrivals_are_reported_as_soon_as_they_are_due() {
    // Two in 10 ms: every second one at once, as no other follows closely.
    let slow: Vec<_> = (0..40).map(|n| 6_000 * n).collect();
    let reports = reports_of(&slow);
    let expected: Vec<_> = (0..20).map(|pair| 12_000 * pair + 6_000).collect();
    assert_eq!(reports, expected);
}

#[test]
fn a_stream_is_reported_on_though_data_acknowledges_each_segment() {
    let mut receiver = Receiver::new("tack");
    let mut reports = 0;
    for number in 0..400 {
        let now = at(u64::from(number));
        if let AckDecision::Now(reason) = receiver.receive(now, number, number.into()) {
            receiver.report(now, reason);
            reports += 1;
        }
        receiver.policy.on_ack_sent(now, Carried::OnData);
    }
    // Every 10 ms of 400, with one for the start.
    assert!((35..=41).contains(&reports), "{reports}");
    // Requests that answers acknowledge need none.
    let mut receiver = Receiver::new("tack");
    for number in 0..7 {
        let now = at(50 * u64::from(number));
        assert!(!matches!(
            receiver.receive(now, number, number.into()),
            AckDecision::Now(_)
        ));
        assert_eq!(receiver.policy.on_ack_sent(now, Carried::OnData), None);
    }
}

#[test]
fn an_open_loss_is_told_in_silence_at_growing_intervals() {
    let mut receiver = Receiver::new("tack");
    receiver.receive(at(0), 0, 0);
    receiver.receive(at(1), 1, 1);
    receiver.report(at(1), AckReason::Threshold);
    assert_eq!(
        receiver.receive(at(2), 3, 3),
        AckDecision::Now(AckReason::Loss)
    );
    let (told, _) = receiver.report(at(2), AckReason::Loss);
    assert!(matches!(told, TackOption::Loss(_)));
    let due = receiver.policy.decide(at(2));
    let reports = receiver.reports_in_silence(due);
    // The remainder, and then twice as long after each.
    let intervals: Vec<_> = reports
        .windows(2)
        .map(|pair| pair[1].saturating_since(pair[0]))
        .collect();
    assert_eq!(intervals, [10, 20, 40, 80].map(Duration::from_millis));
    // With nothing lost, and no reports lost either, there is nothing to repeat.
    let mut receiver = Receiver::new("tack");
    receiver.receive(at(0), 0, 0);
    let due = receiver.policy.decide(at(0));
    assert_eq!(receiver.reports_in_silence(due).len(), 1);
}

#[test]
fn with_one_gap_a_report_each_gap_has_its_turn_before_one_is_repeated() {
    let mut receiver = Receiver::new("tack:rich=off");
    for number in 0..4 {
        receiver.receive(at(0), 2 * number, (2 * number).into());
    }
    // The largest is 6; 1, 3 and 5 are missing.
    let mut told = Vec::new();
    for turn in 0..5 {
        let (_, gaps) = receiver.report(at(1 + turn), AckReason::Timer);
        assert_eq!(gaps.len(), 1);
        told.push(6 - gaps[0].0);
    }
    assert_eq!(told, [1, 3, 5, 1, 3]);
    // A round trip later none has been told lately: the one told longest ago comes first.
    let (_, gaps) = receiver.report(at(100), AckReason::Timer);
    assert_eq!(6 - gaps[0].0, 5);
    // The repair of 3 is known to have come, although a hole below it is still open.
    receiver.receive(at(101), 7, 3);
    receiver.receive(at(101), 8, 1_000);
    let (_, gaps) = receiver.report(at(102), AckReason::Timer);
    assert_eq!(8 - gaps[0].0, 1);
    // Both that are left were reported a moment ago, and often before: there is nothing to say for
    // a round trip.
    for turn in 0..4 {
        let (_, gaps) = receiver.report(at(103 + turn), AckReason::Timer);
        assert!(gaps.is_empty(), "{gaps:?}");
    }
    let (_, gaps) = receiver.report(at(160), AckReason::Timer);
    assert_eq!(8 - gaps[0].0, 5);
}

/// A sender with ten segments in flight and its reader.
struct Sender {
    log: SentLog,
    reader: TackReader,
}

impl Sender {
    fn new() -> Self {
        let mut log = SentLog::new();
        for segment in 0..10 {
            log.push(
                StreamOffset::range(1 + segment * MSS..1 + (segment + 1) * MSS),
                at(segment),
                FlightStart::default(),
                SendToken::default(),
            );
        }
        let mut reader = TackReader::new(
            TackSyn {
                segments: 2,
                beta: 4,
            },
            true,
        );
        reader.poll_sync(&SenderState {
            now: at(0),
            min_rtt: RTT,
            smoothed_rtt: RTT,
            round_trip: RTT,
            newest: Some(RTT),
            startup: false,
        });
        Self { log, reader }
    }

    /// Reads a report of everything up to and including transmission `largest`.
    fn read(
        &mut self,
        number: u32,
        largest: u32,
        above: u32,
    ) -> Result<Option<u64>, InvalidFeedback> {
        let options = TcpOptions {
            tack: Some(TackOption::Report(Report {
                kind: ReportKind::Tack,
                lists: false,
                repeated: false,
                sync_echo: 1,
                loss_rate: 0,
                number,
                largest,
                largest_delay: 0,
                timing: None,
                rate: None,
                above,
                period: 10_000,
            })),
            ..TcpOptions::default()
        };
        let segment = Segment {
            header: Header {
                src_port: 1,
                dst_port: 2,
                seq: SeqNum(0),
                ack: SeqNum(0),
                flags: Flags::ACK,
                window: 1_000,
                urgent: 0,
                options,
            },
            payload: &[],
        };
        let context = ReadContext {
            arrived: at(50),
            ack: StreamOffset(1),
            snd_una: StreamOffset(1),
            snd_nxt: StreamOffset(1 + 10 * MSS),
            iss: SeqNum(0),
            largest_window: 1 << 20,
            mss: MSS,
            smoothed_rtt: Duration::from_millis(10),
            log: &self.log,
        };
        let mut news = AckInfo::default();
        self.reader.read(&context, &segment, &[], &mut news)?;
        Ok(news.above)
    }
}

#[test]
fn what_cannot_have_arrived_is_refused() {
    let mut sender = Sender::new();
    assert_eq!(sender.read(0, 9, 10 * MSS as u32), Ok(Some(10 * MSS)));
    assert_eq!(sender.read(1, 9, 10 * MSS as u32 + 1), Err(InvalidFeedback));
    assert_eq!(sender.read(1, 10, 0), Err(InvalidFeedback));
    // What was refused moved nothing, and what comes again moves nothing.
    assert_eq!(sender.read(0, 9, 0), Ok(None));
    assert_eq!(sender.read(1, 9, 0), Ok(Some(0)));
}

#[test]
fn lost_reports_make_the_gap_between_those_that_arrive() {
    let mut sender = Sender::new();
    for number in 0..100 {
        sender.read(number, 9, 0).expect("it is sound");
    }
    let interval = RTT / 4;
    assert_eq!(sender.reader.contract().interval, interval);
    assert_eq!(sender.reader.contract().gap, interval);
    for number in 50..150 {
        sender.read(2 * number, 9, 0).expect("it is sound");
    }
    // A third to a half lost: two to three and a half intervals until one arrives nine times of
    // ten.
    let gap = sender.reader.contract().gap;
    assert_eq!(sender.reader.contract().interval, interval);
    assert!(gap >= interval * 2 && gap <= interval * 7 / 2, "{gap:?}");
}

/// A lost retransmission whose report was lost too held a stream up for five seconds: reports had
/// turned to the oldest gaps again, all of them filled long ago, before they came to it.
#[test]
fn every_lost_gap_is_told_again_in_turn_however_many_there_are() {
    for count in [300, 2_000] {
        every_one_of(count);
    }
}

/// Every one of `count` lost gaps is reported again, below a hole that keeps them all.
fn every_one_of(count: u32) {
    let mut receiver = Receiver::new("tack");
    for index in 0..count {
        receiver.receive(at(1), 2 * index, 2 * u64::from(index));
    }
    // All have been told once; ten milliseconds are a period, and five of those a round trip until
    // word is outdated.
    let mut told_again = RangeSet::new();
    let reports = 4 * u64::from(count) / BASE_GAPS;
    for number in 0..reports {
        let now = at(1_000 + 10 * number);
        let newest = 2 * count + number as u32;
        receiver.receive(now, newest, u64::from(newest));
        let (_, gaps) = receiver.report(now, AckReason::Threshold);
        // The first round tells what was never told.
        if number >= 2 * reports / 4 {
            assert!(gaps.len() as u64 <= BASE_GAPS + 1, "{}", gaps.len());
            for (distance, len) in gaps {
                let start = u64::from(newest) - distance;
                told_again.insert(start..start + len);
            }
        }
    }
    let missing: Vec<_> = (0..u64::from(count) - 1)
        .map(|index| 2 * index + 1)
        .filter(|number| !told_again.contains(&(*number..number + 1)))
        .collect();
    assert!(missing.is_empty(), "never told again: {missing:?}");
}

/// The search for the path's packet size makes segments six times longer, and the window that is in
/// flight holds less than two of them: a transfer stood still for 40 ms.
#[test]
fn a_segment_longer_than_any_before_is_reported_at_once() {
    let mut policy = TackPolicy::new(TackParams::default());
    let mut arrive = |millis, len| {
        let now = Instant::from_millis(millis);
        let decision = policy.on_data(&DataArrival::in_order(now, len));
        if matches!(decision, AckDecision::Now(_)) {
            policy.on_ack_sent(now, Carried::Alone);
        }
        decision
    };
    arrive(1, 1440);
    arrive(2, 1440);
    assert_ne!(arrive(3, 1440), AckDecision::Now(AckReason::Event));
    assert_eq!(arrive(4, 8940), AckDecision::Now(AckReason::Event));
    assert_ne!(arrive(5, 8940), AckDecision::Now(AckReason::Event));
}

/// In a small window reports are denser than beta in RTTmin, where they let the sender go on. Above
/// a hole they do not, unless the application reads or the buffer grows.
#[test]
fn reports_of_a_small_window_are_dense_where_they_open_it() {
    let at = Instant::from_millis;
    // A sender in startup has four reports in RTTmin/beta.
    let due = [(Some(3_000), 2_000), (None, 4_500)];
    for (opens, due) in due {
        let params = TackParams::default();
        let gaps = Gaps::new(params.settle);
        let mut schedule = Schedule::new(params);
        schedule.peer_mss = 1_000;
        schedule.set_rtt_min(Duration::from_millis(40));
        let rate = Some(Rate::from_bytes_per_sec(1_000_000));
        schedule.on_rate(at(1), rate, rate);
        schedule.on_data(at(2), Some(2_000), 3_000);
        schedule.on_report(at(2), &gaps);
        schedule.on_data(at(2), Some(2_000), 3_000);
        schedule.on_window(opens, &gaps);
        let next = schedule.due(&gaps, false).expect("two segments arrived");
        assert_eq!(next.at, Instant::from_micros(due), "{opens:?}");
    }
}

#[test]
fn l_is_not_more_than_reports_can_tell_of() {
    let mut policy = TackPolicy::new(TackParams {
        segments: 255,
        ..TackParams::default()
    });
    policy.schedule.peer_mss = 1000;
    assert_eq!(
        policy.schedule.segments(&policy.gaps),
        255,
        "nothing gets lost"
    );
    let now = Instant::from_millis(1);
    for number in 0..200_u32 {
        let start = 1 + 2000 * u64::from(number);
        policy.gaps.on_number(
            now,
            2 * number,
            StreamOffset::range(start..start + 1000),
            1000,
            1 << 30,
        );
    }
    policy.gaps.settle(now, Duration::from_millis(40));
    assert_eq!(
        policy.schedule.segments(&policy.gaps),
        255,
        "no acknowledgement gets lost"
    );
    // Half of everything gets lost, both ways: Q = 4 is for 16 segments.
    policy.schedule.ack_loss_rate = 0.5;
    assert_eq!(policy.schedule.segments(&policy.gaps), 16);
    policy.schedule.params.rich = false;
    assert_eq!(policy.schedule.segments(&policy.gaps), 4);
    policy.schedule.params.segments = 2;
    assert_eq!(policy.schedule.threshold(&policy.gaps), 2000);
}

/// What a sender says whose round trip is `rtt` ms now.
fn sync_with(rtt: u32) -> Sync {
    Sync {
        startup: false,
        ack_loss_rate: 0,
        number: 1,
        rtt_min: RTT.as_micros() as u32,
        rtt: 1_000 * rtt,
    }
}

#[test]
fn what_the_sender_states_bounds_the_wait_for_stragglers() {
    let mut policy = TackPolicy::new(TackParams::default());
    for (millis, number) in [(0, 0), (1, 2), (501, 1)] {
        let start = 1 + 1000 * u64::from(number);
        let data = StreamOffset::range(start..start + 1000);
        policy
            .gaps
            .on_number(at(millis), number, data, 1000, 1 << 30);
    }
    let wait = |policy: &TackPolicy| {
        policy
            .gaps
            .settling_time(at(501), policy.schedule.rtt_min())
    };
    policy.on_sync(at(501), &sync_with(60));
    assert_eq!(wait(&policy), Duration::from_millis(60));
    // An old statement.
    policy.on_sync(at(501), &sync_with(90));
    assert_eq!(wait(&policy), Duration::from_millis(60));
}

#[test]
fn l_is_twice_as_large_where_acknowledgements_queue_and_the_window_asks_for_many() {
    // The round trip that the sender states, milliseconds spent in queues on the way here, the
    // window, kilobytes per second, and L.
    for (rtt, forward, window, rate, segments) in [
        (55, 0, 30_000, 1_000, 4),
        // The queue is on the way here, or there is none.
        (55, 10, 30_000, 1_000, 2),
        (45, 0, 30_000, 1_000, 2),
        // Time decides about reports.
        (55, 0, 1 << 20, 1_000, 2),
        // A handful of segments has to be acknowledged at once.
        (55, 0, 3_000, 100, 2),
    ] {
        let mut policy = TackPolicy::new(TackParams::default());
        let schedule = &mut policy.schedule;
        schedule.peer_mss = MSS;
        schedule.on_sync(at(1), &sync_with(rtt), Duration::from_millis(forward));
        let rate = Some(Rate::from_bytes_per_sec(1_000 * rate));
        schedule.on_rate(at(1), rate, rate);
        schedule.on_window(Some(window), &policy.gaps);
        let found = policy.schedule.segments(&policy.gaps);
        assert_eq!(found, segments, "{rtt}, {forward}, {window}");
    }
}

#[test]
fn a_burst_of_losses_is_told_at_once_and_more_of_them_in_turn() {
    // The round trip, the segments of 1,000 bytes that arrive in 16 ms, and the microseconds
    // between reports.
    for (rtt, segments, interval) in [
        (60, 0, 2_500),
        (60, 16, 2_500),
        (60, 256, 1_000),
        // Acknowledgements queue for a round trip: they leave in each RTTmin/4.
        (90, 256, 10_000),
    ] {
        let mut policy = TackPolicy::new(TackParams::default());
        let schedule = &mut policy.schedule;
        schedule.peer_mss = 1_000;
        schedule.on_sync(at(1), &sync_with(rtt), Duration::ZERO);
        let rate = Some(Rate::from_bytes_per_sec(segments * 1_000_000 / 16));
        schedule.on_rate(at(1), rate, rate);
        let mut told = 0;
        while told < 100 && schedule.loss_report_at(at(2)) == Some(at(2)) {
            schedule.on_loss_report(at(2));
            told += 1;
        }
        assert_eq!(told, 4, "{rtt}, {segments}");
        let next = at(2) + Duration::from_micros(interval);
        assert_eq!(schedule.loss_report_at(at(2)), Some(next));
        assert_eq!(schedule.loss_report_at(next), Some(next));
        // After a round trip without losses as many may be told at once again.
        let later = next + Duration::from_millis(40);
        for _ in 0..4 {
            assert_eq!(schedule.loss_report_at(later), Some(later));
            schedule.on_loss_report(later);
        }
    }
    // Reports that list one gap each do not wait for each other.
    let mut policy = TackPolicy::new(TackParams {
        rich: false,
        ..TackParams::default()
    });
    policy
        .schedule
        .on_sync(at(1), &sync_with(60), Duration::ZERO);
    for _ in 0..100 {
        assert_eq!(policy.schedule.loss_report_at(at(2)), Some(at(2)));
        policy.schedule.on_loss_report(at(2));
    }
}
