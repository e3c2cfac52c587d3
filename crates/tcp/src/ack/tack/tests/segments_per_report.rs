//! How many segments one report acknowledges: L, and less where the window is small.

use tack_base::Rate;

use super::*;

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
