//! When reports leave: after bursts, for losses, in silence; and how long stragglers are awaited.

use tack_base::Rate;

use super::*;

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
fn a_burst_of_losses_is_told_at_once_and_more_of_them_in_turn() {
    // The round trip and how often it was stated, the segments of 1,000 bytes that arrive in 16 ms,
    // and the microseconds between reports.
    for (rtt, stated, segments, interval) in [
        (60, 1, 0, 2_500),
        (60, 1, 16, 2_500),
        (60, 1, 256, 1_000),
        // Acknowledgements queue for a round trip, 50 ms: they leave in each RTTmin/4, and once
        // that is sure two of them wait.
        (90, 1, 256, 10_000),
        (90, 2, 256, 25_000),
    ] {
        let mut policy = TackPolicy::new(TackParams::default());
        let schedule = &mut policy.schedule;
        schedule.peer_mss = 1_000;
        for _ in 0..stated {
            schedule.on_ack_sent(at(1), Carried::Alone, &policy.gaps);
            schedule.on_sync(at(1), &sync_with(rtt), Duration::ZERO);
        }
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
        let later = next + Duration::from_millis(40).max(Duration::from_micros(3 * interval));
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
