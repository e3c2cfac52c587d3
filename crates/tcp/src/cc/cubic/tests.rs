//! CUBIC driven by hand.

use super::super::test_events::{congestion, plain_ack};
use super::*;

const MSS: u64 = 1000;

/// In its first slow start, with a window of `segments`.
fn beginning_with(segments: u64) -> Cubic {
    with_profile(segments, CubicProfile::Default)
}

fn with_profile(segments: u64, profile: CubicProfile) -> Cubic {
    let init = Init {
        now: Instant::ZERO,
        mss: MSS,
        initial_window: segments * MSS,
        restart_window: segments * MSS,
        rtt: None,
        seed: 0,
        counting: crate::cc::Counting::Bytes,
    };
    Cubic::new(&init, profile)
}

/// In congestion avoidance after a reduction from `segments`.
fn reduced_from(segments: u64) -> Cubic {
    let mut cubic = beginning_with(segments);
    cubic.on_congestion(&congestion(Cause::Loss, segments * MSS, 0));
    cubic.on_recovered(Instant::ZERO);
    cubic
}

/// Windows of data acknowledged, a segment at a time, one RTT each, up to `until`.
fn grow(cubic: &mut Cubic, from: Duration, until: Duration, rtt: Duration) {
    let mut now = from;
    while now < until {
        let segments = cubic.cwnd() / MSS;
        for _ in 0..segments {
            now += rtt / segments as u32;
            let ack = plain_ack(Instant::ZERO + now, MSS, 1_000 * MSS, 1_100 * MSS);
            cubic.on_ack(&Ack { srtt: rtt, ..ack });
        }
    }
}

#[test]
fn slow_start_keeps_to_its_room() {
    let mut cubic = beginning_with(10);
    cubic.on_ack(&Ack {
        slow_start_room: 3 * MSS,
        ..plain_ack(Instant::ZERO, 10 * MSS, 10 * MSS, 20 * MSS)
    });
    assert_eq!(cubic.cwnd(), 13 * MSS);
}

#[test]
fn reductions_are_by_three_tenths_and_converge_fast() {
    let mut cubic = reduced_from(1000);
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (700 * MSS, 700 * MSS));
    assert_eq!(cubic.state.w_max, 1e6);
    // Below the last maximum: more than was lost is given up, for newer flows (RFC 9438 §4.7).
    cubic.on_congestion(&congestion(Cause::Loss, 700 * MSS, 0));
    assert_eq!(cubic.cwnd(), 490 * MSS);
    assert_eq!(cubic.state.w_max, 700e3 * 0.85);
}

#[test]
fn the_plateau_is_reached_after_k_seconds() {
    let mut cubic = reduced_from(1000);
    let rtt = Duration::from_millis(100);
    // K = cbrt(300 / 0.4) = 9.09 s; the curve runs an RTT ahead.
    grow(&mut cubic, Duration::ZERO, Duration::from_secs(9), rtt);
    let plateau = cubic.cwnd() / MSS;
    assert!((995..=1001).contains(&plateau), "{plateau}");
    // As long again, and it has risen by what it had been reduced by: convex now.
    grow(
        &mut cubic,
        Duration::from_secs(9),
        Duration::from_secs(18),
        rtt,
    );
    let convex = cubic.cwnd() / MSS;
    assert!((1260..=1320).contains(&convex), "{convex}");
}

#[test]
fn short_paths_grow_as_reno_does() {
    let mut cubic = reduced_from(20);
    let rtt = Duration::from_millis(1);
    // W_est gains alpha = 0.53 a round trip up to the old window, and one after it (RFC 9438 §4.3):
    // six segments in 11.3 ms, then 8.7.
    grow(&mut cubic, Duration::ZERO, Duration::from_millis(20), rtt);
    let segments = cubic.cwnd() / MSS;
    assert!((26..=30).contains(&segments), "{segments}");
}

#[test]
fn time_without_use_of_the_window_does_not_count() {
    let rtt = Duration::from_millis(100);
    let mut cubic = reduced_from(1000);
    grow(&mut cubic, Duration::ZERO, Duration::from_secs(2), rtt);
    let before = cubic.cwnd();
    for second in 3..60 {
        let now = Instant::from_millis(second * 1000);
        let ack = plain_ack(now, MSS, 1_000 * MSS, 1_001 * MSS);
        cubic.on_ack(&Ack {
            cwnd_limited: false,
            ..ack
        });
    }
    // Then silence, and a full window at once.
    let resumed = Duration::from_secs(100);
    cubic.on_send(&super::super::Sent {
        now: Instant::ZERO + resumed,
        bytes: MSS,
        prior_in_flight: 0,
        retransmission: false,
        app_limited: false,
    });
    grow(&mut cubic, resumed, resumed + rtt, rtt);
    let gained = (cubic.cwnd() - before) / MSS;
    assert!(gained < 12, "{gained} segments in a round trip");
}

#[test]
fn after_a_timeout_the_first_stage_begins_at_its_plateau() {
    let mut cubic = reduced_from(1000);
    cubic.on_congestion(&congestion(Cause::Timeout, 100 * MSS, 1));
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (MSS, 70 * MSS));
    let ack = plain_ack(Instant::ZERO, 69 * MSS, 1_000 * MSS, 1_100 * MSS);
    cubic.on_ack(&Ack {
        in_recovery: true,
        ..ack
    });
    cubic.on_ack(&Ack {
        in_recovery: true,
        ..ack
    });
    let stage = cubic.state.stage.expect("congestion avoidance");
    assert_eq!((stage.k, stage.origin), (0.0, 70e3));
}

/// A rising round trip ends slow start after a loss that was none, too.
#[test]
fn hystart_comes_back_with_an_undone_episode() {
    for is_undone in [false, true] {
        let mut cubic = beginning_with(10);
        if is_undone {
            cubic.on_congestion(&congestion(Cause::Loss, 10 * MSS, 0));
            cubic.on_spurious(Instant::ZERO, Cause::Loss);
            assert_eq!(cubic.ssthresh(), u64::MAX);
        }
        for number in 0..8_u64 {
            for i in 1..=10 {
                let una = (number * 10 + i) * MSS;
                let ack = plain_ack(Instant::ZERO, MSS, una, (number + 1) * 10 * MSS);
                let rtt = Some(Duration::from_millis(40 + 20 * number));
                cubic.on_ack(&Ack { rtt, ..ack });
            }
        }
        assert_eq!(cubic.metrics().phase, "congestion_avoidance", "{is_undone}");
    }
}

#[test]
fn an_undone_episode_leaves_no_trace() {
    let mut cubic = reduced_from(1000);
    grow(
        &mut cubic,
        Duration::ZERO,
        Duration::from_secs(5),
        Duration::from_millis(100),
    );
    let before = cubic.state;
    cubic.on_congestion(&congestion(Cause::Loss, 900 * MSS, 0));
    assert!(cubic.cwnd() < before.cwnd);
    cubic.on_spurious(Instant::from_millis(5_100), Cause::Loss);
    let after = cubic.state;
    assert_eq!(
        (after.cwnd, after.ssthresh, after.w_max),
        (before.cwnd, before.ssthresh, before.w_max)
    );
    let (before, after) = (before.stage.unwrap(), after.stage.unwrap());
    assert_eq!(
        (before.t, before.k, before.w_est),
        (after.t, after.k, after.w_est)
    );
}

#[test]
fn a_mark_may_bring_the_window_to_one_segment() {
    let mut cubic = reduced_from(10);
    cubic.on_congestion(&congestion(Cause::Ecn, MSS, 0));
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (MSS, 2 * MSS));
}

/// With the rules of Linux, after a reduction from `max` segments and one from `segments`.
fn linux_reduced_from(max: u64, segments: u64) -> Cubic {
    let mut cubic = with_profile(max, CubicProfile::Linux);
    cubic.state.hystart = None;
    cubic.on_congestion(&congestion(Cause::Loss, max * MSS, 0));
    cubic.on_recovered(Instant::ZERO);
    cubic.state.cwnd = segments * MSS;
    cubic.on_congestion(&congestion(Cause::Loss, segments * MSS, 0));
    cubic.on_recovered(Instant::ZERO);
    cubic
}

#[test]
fn linux_rounds_reductions_down_to_whole_segments() {
    for (segments, reduced, converged) in [(9, 6, 7), (7, 4, 5), (6, 4, 5), (5, 3, 4), (4, 2, 3)] {
        let cubic = linux_reduced_from(10, segments);
        let found = (cubic.cwnd() / MSS, cubic.state.w_max as u64 / MSS);
        assert_eq!(found, (reduced, converged), "{segments}");
        assert_eq!(cubic.cwnd() % MSS, 0);
    }
    // Two are the fewest.
    assert_eq!(linux_reduced_from(10, 2).cwnd(), 2 * MSS);
    // In bytes the same makes parts of a segment.
    let mut cubic = beginning_with(9);
    cubic.on_congestion(&congestion(Cause::Loss, 9 * MSS, 0));
    assert_eq!(cubic.cwnd(), 6_300);
}

#[test]
fn linux_grows_by_whole_segments_and_later() {
    let rtt = Duration::from_millis(40);
    let segments = |profile| {
        let mut cubic = with_profile(10, profile);
        cubic.on_congestion(&congestion(Cause::Loss, 10 * MSS, 0));
        cubic.on_recovered(Instant::ZERO);
        assert_eq!(cubic.cwnd(), 7 * MSS);
        [0, 1, 2, 3, 4].map(|step| {
            let from = Duration::from_millis(200 * step);
            grow(&mut cubic, from, from + Duration::from_millis(200), rtt);
            cubic.cwnd()
        })
    };
    let linux = segments(CubicProfile::Linux);
    let bytes = segments(CubicProfile::Default);
    assert!(linux.iter().all(|cwnd| cwnd % MSS == 0), "{linux:?}");
    // Linux rounds the distance to the plateau down: below it the window may be a part larger.
    for (linux, bytes) in linux.iter().zip(&bytes) {
        assert!(*linux < *bytes + MSS / 2, "{linux} {bytes}");
    }
    // Linux' estimate of Reno does not grow faster once it is past the window that lost.
    assert!((20..=23).contains(&(linux[4] / MSS)), "{linux:?}");
    assert!((28..=34).contains(&(bytes[4] / MSS)), "{bytes:?}");
    assert!(linux.is_sorted());
}

#[test]
fn with_many_segments_linux_is_as_fast() {
    let rtt = Duration::from_millis(100);
    let [bytes, linux] = [CubicProfile::Default, CubicProfile::Linux].map(|profile| {
        let mut cubic = with_profile(1_000, profile);
        cubic.on_congestion(&congestion(Cause::Loss, 1_000 * MSS, 0));
        cubic.on_recovered(Instant::ZERO);
        grow(&mut cubic, Duration::ZERO, Duration::from_secs(18), rtt);
        cubic.cwnd() as f64
    });
    assert!((0.97..=1.03).contains(&(linux / bytes)), "{linux} {bytes}");
}
