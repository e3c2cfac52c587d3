//! Whole controllers on a simulated bottleneck of 100 Mbit/s and 40 ms.

use alloc::vec::Vec;

use super::simulation::{MSS, Path, Point, Simulation};
use super::*;
use tack_base::StreamOffset;

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
        snd_una: StreamOffset(snd_una),
        snd_nxt: StreamOffset(snd_nxt),
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
        cwnd_limited: false,
        consecutive_timeouts,
        snd_nxt: StreamOffset(flight),
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
        (Algorithm::default(), 0.95),
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
    let run = run(path, Algorithm::default(), 25);
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
/// their gain cycles can run in step: so the median of a few runs is judged, from the 30th second
/// on.
#[test]
fn two_flows_share_the_link() {
    for algorithm in [Algorithm::Cubic, Algorithm::default()] {
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
    assert!((0.69..0.701).contains(&beta), "{beta}");
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
    let run = run(Path::standard(), Algorithm::default(), 12);
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

/// Four acknowledgements a round trip serve as well as one for every second segment: window
/// controllers lose nothing to what is not reported yet.
#[test]
fn sparse_feedback_costs_nothing() {
    for algorithm in Algorithm::ALL {
        for (loss, slack) in [(0.0, 0.01), (0.0001, 0.08), (0.01, 0.08)] {
            let path = Path {
                loss,
                ..Path::standard()
            };
            let dense = run(path, algorithm, 30);
            let sparse = Simulation::new(path, 1)
                .sparse(4)
                .flow(algorithm, Instant::ZERO)
                .run(at(30));
            let used = |run: &Simulation| run.utilisation(at(5), at(30));
            assert!(
                used(&sparse) >= used(&dense) * (1.0 - slack),
                "{algorithm}, loss {loss}: {:.3} instead of {:.3}",
                used(&sparse),
                used(&dense)
            );
            assert_eq!(sparse.flows[0].timeouts, 0, "{algorithm}");
            if loss == 0.0 {
                // Slow start is acknowledged densely, and a loss at once.
                let acknowledgements = sparse.acknowledgements(0);
                assert!(acknowledgements < 8_000, "{acknowledgements}");
                assert!(dense.acknowledgements(0) > 100_000);
            }
        }
    }
}

/// Vegas keeps the queue short, whatever the acknowledgements; Compound fills the path again far
/// sooner than NewReno does.
#[test]
fn delay_is_heeded_with_every_kind_of_feedback() {
    for beta in [0, 2, 4, 8] {
        let start = |algorithm, loss| {
            let path = Path {
                loss,
                ..Path::standard()
            };
            let new = Simulation::new(path, 1);
            let new = if beta == 0 { new } else { new.sparse(beta) };
            new.flow(algorithm, Instant::ZERO).run(at(30))
        };
        let vegas = start(Algorithm::Vegas, 0.0);
        assert_eq!(vegas.flows[0].lost, 0);
        assert!(vegas.utilisation(at(5), at(30)) >= 0.98);
        let longest = trace(&vegas, 5, 30).map(|point| point.rtt).max().unwrap();
        // Pacing runs a fifth faster than the window fills: besides the four segments, a short
        // burst waits.
        assert!(longest < Duration::from_millis(42), "{beta}: {longest:?}");

        let used = |algorithm| start(algorithm, 0.0001).utilisation(at(5), at(30));
        let (compound, reno) = (used(Algorithm::Compound), used(Algorithm::NewReno));
        assert!(compound > 1.5 * reno, "{beta}: {compound:.3} and {reno:.3}");
    }
}

/// From 10 to 20 Mbit/s and back, at 40 ms.
static STEPS: [(Instant, Rate); 2] = [
    (
        Instant::from_millis(13_000),
        Rate::from_bits_per_sec(20_000_000),
    ),
    (
        Instant::from_millis(18_000),
        Rate::from_bits_per_sec(10_000_000),
    ),
];

/// Round trips from the beginning of a second until the bandwidth estimate is within a tenth of the
/// link's rate, for good.
fn convergence(run: &Simulation, from: u64, to: u64, rate: Rate) -> f64 {
    let capacity = rate.bytes_per_sec() as f64 * MSS as f64 / 1500.0;
    trace(run, from, to)
        .filter(|point| (point.bandwidth.bytes_per_sec() as f64 / capacity - 1.0).abs() > 0.1)
        .last()
        .map_or(0.0, |point| {
            point.at.saturating_since(at(from)).as_secs_f64() / 0.04
        })
}

#[test]
fn bbr_follows_a_step_within_its_profiles_time() {
    for (algorithm, within) in [
        ("bbr", 24.0),
        ("bbr:probe_rtt=mild", 24.0),
        ("bbr:profile=realtime", 12.0),
        ("bbr:profile=realtime,probe_rtt=mild", 12.0),
    ] {
        for seed in 0..5 {
            let path = Path {
                rate: Rate::from_bits_per_sec(10_000_000),
                steps: &STEPS,
                buffer: 400_000,
                ..Path::standard()
            };
            // The step meets another phase of the cycle each time.
            let start = Instant::from_millis(83 * seed);
            let run = Simulation::new(path, seed)
                .sparse(4)
                .flow(algorithm.parse().unwrap(), start)
                .run(at(23));
            let up = convergence(&run, 13, 18, STEPS[0].1);
            let down = convergence(&run, 18, 23, STEPS[1].1);
            assert!(
                up <= within && down <= within,
                "{algorithm}: {up:.1} and {down:.1} round trips"
            );
        }
    }
}

/// A queue that a falling rate leaves behind goes with the next mild probe, and the flow never
/// pauses for it.
#[test]
fn mild_probes_empty_the_queue_without_a_pause() {
    let path = Path {
        rate: Rate::from_bits_per_sec(10_000_000),
        steps: &STEPS,
        buffer: 400_000,
        ..Path::standard()
    };
    let run = Simulation::new(path, 1)
        .sparse(4)
        .flow(
            "bbr:profile=realtime,probe_rtt=mild".parse().unwrap(),
            Instant::ZERO,
        )
        .run(at(23));
    let longest = |from, to| trace(&run, from, to).map(|point| point.rtt).max().unwrap();
    assert!(longest(18, 19) > Duration::from_millis(100));
    assert!(longest(21, 23) < Duration::from_millis(70));
    // Windows of three round trips, at less than three quarters only by what rounding does.
    for step in 0..150 {
        let from = at(5) + Duration::from_millis(50 * step);
        let received = run.received(0, from, from + Duration::from_millis(120));
        let rate = received as f64 / 0.12 / (1.25e6 * MSS as f64 / 1500.0);
        assert!(rate > 0.65, "{rate:.2} of the link at {from:?}");
    }
}
