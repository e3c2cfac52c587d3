//! Whole controllers on a simulated bottleneck of 100 Mbit/s and 40 ms.

use alloc::vec::Vec;

use super::simulation::{MSS, Path, Point, Simulation};
use super::*;

/// Segments of the bandwidth-delay product.
const BDP: u64 = 333;

/// An acknowledgement of `bytes` in order, with the window in use, outside recovery.
pub(super) fn plain_ack(now: Instant, bytes: u64, snd_una: u64, snd_nxt: u64) -> Ack {
    let rtt = Duration::from_millis(40);
    Ack {
        now,
        acked: bytes,
        delivered: bytes,
        lost: 0,
        prior_in_flight: snd_nxt - snd_una + bytes,
        bytes_in_flight: snd_nxt - snd_una,
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: rtt,
        rate: None,
        total_delivered: snd_una,
        total_lost: 0,
        snd_una,
        snd_nxt,
        in_recovery: false,
        cwnd_limited: true,
        token: SendToken::default(),
    }
}

/// An episode that begins with `flight` bytes in flight.
pub(super) fn congestion(cause: Cause, flight: u64, consecutive_timeouts: u32) -> Congestion {
    Congestion {
        now: Instant::ZERO,
        cause,
        prior_in_flight: flight,
        consecutive_timeouts,
        snd_nxt: flight,
    }
}

fn at(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1000)
}

fn run(path: Path, algorithm: Algorithm, seconds: u64) -> Simulation {
    Simulation::new(path, 1)
        .flow(algorithm, Instant::ZERO)
        .run(at(seconds))
}

/// The trace from one second to another.
fn trace(run: &Simulation, from: u64, to: u64) -> impl Iterator<Item = &Point> {
    run.flows[0]
        .trace
        .iter()
        .filter(move |point| point.at >= at(from) && point.at < at(to))
}

#[test]
fn a_clean_link_is_used() {
    for (algorithm, least) in [
        (Algorithm::NewReno, 0.9),
        (Algorithm::Cubic, 0.95),
        (Algorithm::Bbr, 0.95),
    ] {
        let run = run(Path::standard(), algorithm, 25);
        let utilisation = run.utilisation(at(5), at(25));
        assert!(utilisation >= least, "{algorithm}: {utilisation:.3}");
        assert_eq!(run.flows[0].timeouts, 0, "{algorithm}");
    }
}

#[test]
fn bbr_does_not_mind_random_loss() {
    let path = Path {
        loss: 0.01,
        ..Path::standard()
    };
    let run = run(path, Algorithm::Bbr, 25);
    let utilisation = run.utilisation(at(5), at(25));
    assert!(utilisation >= 0.85, "{utilisation:.3}");
}

/// The Mathis formula, √(3/2) · MSS / (RTT · √p), within a third.
#[test]
fn new_reno_obeys_the_square_root_of_loss() {
    let path = Path {
        loss: 0.001,
        buffer: 1 << 30,
        ..Path::standard()
    };
    let run = run(path, Algorithm::NewReno, 60);
    let rate = run.received(0, at(10), at(60)) as f64 / 50.0;
    let formula = libm::sqrt(1.5 / 0.001) * MSS as f64 / 0.04;
    assert!(
        (0.67..1.34).contains(&(rate / formula)),
        "{rate} bytes/s, formula {formula}"
    );
}

/// BBR flows may stay apart for a while, as their windows meet only in shared ProbeRTT phases and
/// their gain cycles can run in step: so the median of a few runs is judged, from the 30th second on.
#[test]
fn two_flows_share_the_link() {
    for algorithm in [Algorithm::Cubic, Algorithm::Bbr] {
        let mut fairness: Vec<f64> = (0..5)
            .map(|seed| {
                Simulation::new(Path::standard(), seed)
                    .flow(algorithm, Instant::ZERO)
                    .flow(algorithm, Instant::from_millis(300 * seed))
                    .run(at(60))
                    .jain(at(30), at(60))
            })
            .collect();
        fairness.sort_by(f64::total_cmp);
        assert!(fairness[2] >= 0.95, "{algorithm}: {fairness:.3?}");
    }
}

#[test]
fn a_blackout_ends_in_full_speed() {
    for algorithm in Algorithm::ALL {
        let path = Path {
            blackout: Some((at(6), Duration::from_secs(2))),
            ..Path::standard()
        };
        let run = run(path, algorithm, 20);
        assert!(run.flows[0].timeouts > 0, "{algorithm} did not time out");
        let utilisation = run.utilisation(at(12), at(20));
        assert!(
            utilisation >= 0.9,
            "{algorithm}: {utilisation:.3} after the blackout"
        );
    }
}

#[test]
fn hystart_leaves_slow_start_before_a_deep_queue_fills() {
    let path = Path {
        buffer: 16 * Path::standard().buffer,
        ..Path::standard()
    };
    assert!(
        run(path, Algorithm::NewReno, 3).flows[0].lost > 0,
        "plain slow start overflows it"
    );
    let run = run(path, Algorithm::Cubic, 3);
    assert_eq!(run.flows[0].lost, 0);
    let mut phases: Vec<_> = trace(&run, 0, 3).map(|point| point.phase).collect();
    phases.dedup();
    assert_eq!(
        phases,
        [
            "slow_start",
            "conservative_slow_start",
            "congestion_avoidance"
        ]
    );
}

/// After a reduction the window returns to W_max about K seconds later, having grown fast at first
/// and hardly at all at the end (RFC 9438 §4.2).
#[test]
fn cubic_grows_along_the_cubic_curve() {
    let run = run(Path::standard(), Algorithm::Cubic, 40);
    let points: Vec<_> = trace(&run, 0, 40).collect();
    // One that was not preceded by a higher one, so that fast convergence has no part in it.
    let reductions: Vec<usize> = (0..points.len() - 1)
        .filter(|&i| points[i + 1].cwnd < points[i].cwnd)
        .collect();
    let higher = reductions
        .windows(2)
        .find(|pair| points[pair[1]].cwnd >= points[pair[0]].cwnd);
    let reduction = higher.expect("a reduction above the one before it")[1];
    let w_max = points[reduction].cwnd;
    let start = &points[reduction + 1];
    let beta = start.cwnd as f64 / w_max as f64;
    assert!((0.68..=0.7).contains(&beta), "{beta}");
    let reached = |cwnd: u64| {
        let point = points[reduction + 1..]
            .iter()
            .find(|point| point.cwnd >= cwnd)
            .unwrap();
        (point.at.saturating_since(start.at)).as_secs_f64()
    };
    let k = libm::cbrt((w_max - start.cwnd) as f64 / MSS as f64 / 0.4);
    // Half of K wins back seven eighths of what was given up.
    let seven_eighths = start.cwnd + (w_max - start.cwnd) / 8 * 7;
    let half = reached(seven_eighths) / k;
    assert!((0.4..0.65).contains(&half), "{half}");
    // All but a thirtieth of it takes two thirds of K.
    let nearly_all = reached(w_max - w_max / 100) / k;
    assert!((0.55..0.9).contains(&nearly_all), "{nearly_all}");
}

#[test]
fn new_reno_adds_a_segment_each_round_trip() {
    let run = run(Path::standard(), Algorithm::NewReno, 20);
    let points: Vec<_> = trace(&run, 5, 20)
        .filter(|point| point.phase == "congestion_avoidance")
        .collect();
    let mut rounds = 0.0;
    let mut segments = 0.0;
    for pair in points.windows(2) {
        // The gap of a recovery does not count.
        let gap = pair[1].at.saturating_since(pair[0].at);
        if pair[1].cwnd >= pair[0].cwnd && gap < Duration::from_millis(20) {
            rounds += gap.as_secs_f64() / pair[1].rtt.as_secs_f64();
            segments += (pair[1].cwnd - pair[0].cwnd) as f64 / MSS as f64;
        }
    }
    let slope: f64 = segments / rounds;
    assert!(
        rounds > 50.0 && (0.9..1.1).contains(&slope),
        "{slope} segments per RTT"
    );
}

#[test]
fn bbr_goes_through_its_phases() {
    let run = run(Path::standard(), Algorithm::Bbr, 12);
    let mut phases: Vec<_> = trace(&run, 0, 12).map(|point| point.phase).collect();
    phases.dedup();
    assert_eq!(
        phases,
        ["startup", "drain", "probe_bw", "probe_rtt", "probe_bw"]
    );

    // Cruising: about a bandwidth-delay product in flight, a window of two, all gains in use.
    let mut gains: Vec<f64> = Vec::new();
    for point in trace(&run, 3, 9) {
        assert!(point.in_flight / MSS < BDP * 3 / 2, "{point:?}");
        assert!(
            (2 * BDP - 10..=2 * BDP + 80).contains(&(point.cwnd / MSS)),
            "{point:?}"
        );
        if !gains.contains(&point.pacing_gain) {
            gains.push(point.pacing_gain);
        }
    }
    gains.sort_by(f64::total_cmp);
    assert_eq!(gains, [0.75, 1.0, 1.25]);

    // ProbeRTT: four segments for at least 200 ms, the queue gone, then the window as before.
    let probe: Vec<_> = trace(&run, 9, 12)
        .filter(|point| point.phase == "probe_rtt")
        .collect();
    let length = probe[probe.len() - 1].at.saturating_since(probe[0].at);
    assert!((200..400).contains(&length.as_millis()), "{length:?}");
    assert!(probe.iter().all(|point| point.cwnd == 4 * MSS));
    assert!(probe[probe.len() - 1].rtt < Duration::from_millis(41));
    let after = trace(&run, 9, 12)
        .find(|point| point.at > probe[probe.len() - 1].at)
        .unwrap();
    assert!(after.cwnd / MSS >= 2 * BDP - 10, "{after:?}");
}
