//! Whole controllers on a bottleneck of 100 Mbit/s and 40 ms with a queue of one bandwidth-delay
//! product: growth, phases, and what loss, a blackout and rare acknowledgements do to them.

use std::time::Duration;

use rayon::prelude::*;
use tack_base::Instant;
use tack_sim::observe::Sample;
use tack_sim::scenario::Party;
use tack_sim::{Observer, Observers, Report, Scenario};

use crate::run;
use tack_tcp::trace::{AckReceived, TraceEvent, Traced};

use crate::{CONTROLLERS, controllers, is_long};

/// Payload of every segment, bytes.
const MSS: u64 = 1448;
/// Segments of the bandwidth-delay product.
const BDP: u64 = 333;
/// What a flow's sender did, acknowledgement by acknowledgement, and what its receiver got.
#[derive(Default)]
struct Course {
    acks: Vec<(Instant, AckReceived)>,
    timeouts: usize,
    /// Mbit/s of every ten milliseconds.
    goodput: Vec<(Instant, f64)>,
}

impl Observer for Course {
    fn wants_traces(&self) -> bool {
        true
    }

    fn on_trace(&mut self, _flow: usize, host: Party, event: &TraceEvent) {
        match (host, event.what) {
            (Party::Server, Traced::AckReceived(ack)) => self.acks.push((event.at, ack)),
            (Party::Server, Traced::Timeout("rto")) => self.timeouts += 1,
            _ => {}
        }
    }

    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(10))
    }

    fn on_sample(&mut self, sample: &Sample) {
        self.goodput.push((sample.at, sample.goodput_bps / 1e6));
    }
}

impl Course {
    /// The acknowledgements from one second to another.
    fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &(Instant, AckReceived)> {
        self.acks
            .iter()
            .filter(move |(at, _)| (second(from)..second(to)).contains(at))
    }

    fn phases(&self) -> Vec<&'static str> {
        let mut phases: Vec<_> = self.acks.iter().map(|(_, ack)| ack.phase).collect();
        phases.dedup();
        phases
    }

    /// The longest round trip measured from one second to another.
    fn longest(&self, from: u64, to: u64) -> Duration {
        let measured = self.between(from, to).filter_map(|(_, ack)| ack.rtt);
        measured.max().expect("round trips are measured")
    }
}

fn second(number: u64) -> Instant {
    Instant::from_millis(number * 1_000)
}

/// A run of the scenario with one flow from the server to the client.
fn observe(text: &str, overrides: &str) -> (Report, Course) {
    let overrides: Vec<_> = overrides.split_whitespace().map(str::to_owned).collect();
    let scenario =
        Scenario::from_toml("controllers.toml", text, &overrides).expect("the scenario is sound");
    let mut course = Course::default();
    let report = run(
        &scenario,
        scenario.seed,
        &mut Observers::default().with(&mut course),
    );
    (report.expect("no invariant breaks"), course)
}

/// One flow that the buffers do not limit.
fn one(seconds: u64, overrides: &str, congestion: &str, ack: &str) -> (Report, Course) {
    let text = format!(
        "duration = '{seconds}s'\nwarmup = '5s'\n\
         [wired]\nrate = '100Mbps'\ndelay = '20ms'\nqueue = '1.0bdp'\n\
         [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n\
         send_buffer = '64MiB'\nreceive_buffer = '64MiB'\n"
    );
    observe(&text, overrides)
}

/// Part of the link's payload rate that the flow used after the warm-up.
fn utilisation(report: &Report) -> f64 {
    report.flows[0].goodput_bps / (100e6 * MSS as f64 / 1_500.0)
}

/// The Mathis formula, √(3/2) · MSS / (RTT · √p), within a third.
#[test]
fn new_reno_obeys_the_square_root_of_loss() {
    let (report, _) = one(
        60,
        "wired.loss=0.001 wired.queue=100000p",
        "new_reno",
        "delayed:2",
    );
    let rate = report.flows[0].goodput_bps / 8.0;
    let formula = (1.5_f64 / 0.001).sqrt() * MSS as f64 / 0.04;
    assert!(
        (0.67..1.34).contains(&(rate / formula)),
        "{rate} bytes/s, formula {formula}"
    );
}

/// Several timeouts in a row also make segments short for five seconds, in case a router drops long
/// ones; windows that grow by a segment in a round trip grow slowly until then.
#[test]
fn a_blackout_ends_in_full_speed() {
    controllers().par_iter().for_each(|congestion| {
        let text = format!(
            "duration = '26s'\nwarmup = '18s'\n\
             [wired]\nrate = '100Mbps'\ndelay = '20ms'\nqueue = '1.0bdp'\n\
             [[wired.blackout]]\nstart = '6s'\nduration = '2s'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = 'delayed:2'\n"
        );
        let (report, course) = observe(&text, "");
        assert!(course.timeouts > 0, "{congestion} did not time out");
        let share = utilisation(&report);
        assert!(share >= 0.9, "{congestion}: {share:.3} after the blackout");
    });
}

#[test]
fn hystart_leaves_slow_start_before_a_deep_queue_fills() {
    let lost = |course: &Course| course.acks.iter().map(|(_, ack)| ack.lost).sum::<u64>();
    let (_, plain) = one(6, "wired.queue=16bdp", "new_reno", "delayed:2");
    assert!(lost(&plain) > 0, "plain slow start overflows it");
    let (_, course) = one(6, "wired.queue=16bdp", "cubic", "delayed:2");
    assert_eq!(lost(&course), 0);
    assert_eq!(
        course.phases(),
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
    let (_, course) = one(40, "", "cubic", "delayed:2");
    let cwnd: Vec<_> = course
        .acks
        .iter()
        .map(|(at, ack)| (*at, ack.cwnd))
        .collect();
    // One that was not preceded by a higher one, so that fast convergence has no part in it.
    let reductions: Vec<usize> = (0..cwnd.len() - 1)
        .filter(|&i| cwnd[i + 1].1 < cwnd[i].1)
        .collect();
    let higher = reductions
        .windows(2)
        .find(|pair| cwnd[pair[1]].1 >= cwnd[pair[0]].1);
    let reduction = higher.expect("a reduction above the one before it")[1];
    let w_max = cwnd[reduction].1;
    let (start, least) = cwnd[reduction + 1];
    let beta = least as f64 / w_max as f64;
    assert!((0.69..0.701).contains(&beta), "{beta}");
    let reached = |wanted: u64| {
        let (at, _) = cwnd[reduction + 1..]
            .iter()
            .find(|(_, cwnd)| *cwnd >= wanted)
            .unwrap();
        at.saturating_since(start).as_secs_f64()
    };
    let k = ((w_max - least) as f64 / MSS as f64 / 0.4).cbrt();
    // Half of K wins back seven eighths of what was given up.
    let half = reached(least + (w_max - least) / 8 * 7) / k;
    assert!((0.4..0.65).contains(&half), "{half}");
    // All but a thirtieth of it takes two thirds of K.
    let nearly_all = reached(w_max - w_max / 100) / k;
    assert!((0.55..0.9).contains(&nearly_all), "{nearly_all}");
}

#[test]
fn new_reno_adds_a_segment_each_round_trip() {
    let (_, course) = one(20, "", "new_reno", "delayed:2");
    let points: Vec<_> = course
        .between(5, 20)
        .filter(|(_, ack)| ack.phase == "congestion_avoidance")
        .collect();
    let (mut rounds, mut segments) = (0.0, 0.0);
    for pair in points.windows(2) {
        let [(before, old), (after, new)] = pair else {
            continue;
        };
        // The gap of a recovery does not count.
        let gap = after.saturating_since(*before);
        if let Some(rtt) = new.rtt
            && new.cwnd >= old.cwnd
            && gap < Duration::from_millis(20)
        {
            rounds += gap.as_secs_f64() / rtt.as_secs_f64();
            segments += (new.cwnd - old.cwnd) as f64 / MSS as f64;
        }
    }
    let slope: f64 = segments / rounds;
    assert!(
        rounds > 50.0 && (0.9..1.1).contains(&slope),
        "{slope} segments per RTT over {rounds}"
    );
}

#[test]
fn bbr_goes_through_its_phases() {
    let (_, course) = one(12, "", "bbr", "delayed:2");
    assert_eq!(
        course.phases(),
        ["startup", "drain", "probe_bw", "probe_rtt", "probe_bw"]
    );

    // Cruising: about a bandwidth-delay product in flight, a window of two, all gains in use.
    let mut gains: Vec<f64> = Vec::new();
    for (at, ack) in course.between(3, 9) {
        assert!(ack.bytes_in_flight / MSS < BDP * 3 / 2, "{at} {ack:?}");
        assert!(
            (2 * BDP - 10..=2 * BDP + 80).contains(&(ack.cwnd / MSS)),
            "{at} {ack:?}"
        );
        let rates = ack.pacing.zip(ack.bandwidth);
        let (pacing, bandwidth) = rates.expect("BBR paces by its estimate");
        let gain = pacing.bits_per_sec() as f64 / bandwidth.bits_per_sec() as f64;
        // In hundredths, as the rates are rounded. BBR paces by 99 % of its gain.
        let gain = (100.0 * gain).round() / 100.0;
        if !gains.contains(&gain) {
            gains.push(gain);
        }
    }
    gains.sort_by(f64::total_cmp);
    assert_eq!(gains, [0.74, 0.99, 1.24]);

    // ProbeRTT: four segments for at least 200 ms, the queue gone, then the window as before.
    let probe: Vec<_> = course
        .between(9, 12)
        .filter(|(_, ack)| ack.phase == "probe_rtt")
        .collect();
    let (first, last) = (probe[0], probe[probe.len() - 1]);
    let length = last.0.saturating_since(first.0);
    assert!((200..400).contains(&length.as_millis()), "{length:?}");
    assert!(probe.iter().all(|(_, ack)| ack.cwnd == 4 * MSS));
    let shortest = probe.iter().filter_map(|(_, ack)| ack.rtt).next_back();
    assert!(shortest.unwrap() < Duration::from_millis(41));
    let (_, after) = course.between(9, 12).find(|(at, _)| *at > last.0).unwrap();
    assert!(after.cwnd / MSS >= 2 * BDP - 10, "{after:?}");
}

/// Four acknowledgements a round trip serve as well as one for every second segment: window
/// controllers lose nothing to what is not reported yet.
#[test]
fn sparse_feedback_costs_nothing() {
    let cells: Vec<_> = if is_long() {
        let losses = [(0.0, 0.01), (0.0001, 0.08), (0.01, 0.08)];
        CONTROLLERS
            .into_iter()
            .flat_map(|congestion| losses.map(|loss| (congestion, loss)))
            .collect()
    } else {
        vec![("cubic", (0.0, 0.01))]
    };
    cells
        .into_par_iter()
        .for_each(|(congestion, (loss, slack))| {
            let wired = format!("wired.loss={loss}");
            let [dense, sparse] =
                ["delayed:2", "tack"].map(|ack| one(30, &wired, congestion, ack).0);
            let used = [&dense, &sparse].map(utilisation);
            assert!(
                used[1] >= used[0] * (1.0 - slack),
                "{congestion}, loss {loss}: {:.3} instead of {:.3}",
                used[1],
                used[0]
            );
            assert_eq!(sparse.flows[0].rto_count, 0, "{congestion}");
            if loss == 0.0 {
                let acks = [&dense, &sparse].map(|report| report.flows[0].acks);
                assert!(
                    acks[1] < 8_000 && acks[0] > 80_000,
                    "{congestion}: {acks:?}"
                );
            }
        });
}

/// Vegas keeps the queue short, whatever the acknowledgements; Compound fills the path again far
/// sooner than NewReno does.
#[test]
fn delay_is_heeded_with_every_kind_of_feedback() {
    if !crate::is_long() {
        return;
    }
    let acks = ["tack:beta=4", "delayed:2", "tack:beta=2", "tack:beta=8"];
    acks.par_iter().for_each(|ack| {
        let (report, course) = one(30, "", "vegas", ack);
        assert_eq!(report.flows[0].retransmitted_segments, 0, "{ack}");
        let share = utilisation(&report);
        assert!(share >= 0.98, "{ack}: {share:.3}");
        // Pacing runs a fifth faster than the window fills: besides the four segments, a short
        // burst waits.
        let longest = course.longest(5, 30);
        assert!(longest < Duration::from_millis(42), "{ack}: {longest:?}");

        let used = |congestion| utilisation(&one(30, "wired.loss=0.0001", congestion, ack).0);
        let (compound, reno) = (used("compound"), used("new_reno"));
        assert!(compound > 1.5 * reno, "{ack}: {compound:.3} and {reno:.3}");
    });
}

/// A queue that a falling rate leaves behind goes with the next mild probe, and the flow never
/// pauses for it. The rate is 20 Mbit/s from the 10th to the 20th second, and 10 before and after.
#[test]
fn mild_probes_empty_the_queue_without_a_pause() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/tack/rate-step.toml"
    );
    let set = [
        "flow.0.congestion=bbr:profile=realtime,probe_rtt=mild",
        "wired.queue=400000B",
    ];
    let scenario = Scenario::from_file(path.as_ref(), &set.map(str::to_owned)).unwrap();
    let mut course = Course::default();
    run(&scenario, 1, &mut Observers::default().with(&mut course)).unwrap();
    assert!(course.longest(20, 21) > Duration::from_millis(100));
    assert!(course.longest(23, 30) < Duration::from_millis(70));
    // Windows of three round trips, at less than three quarters only by what rounding does.
    let steady = (course.goodput.iter()).filter(|(at, _)| (second(2)..second(9)).contains(at));
    let steady: Vec<f64> = steady.map(|(_, mbps)| *mbps).collect();
    for window in steady.windows(12) {
        let share = window.iter().sum::<f64>() / 12.0 / (10.0 * MSS as f64 / 1_500.0);
        assert!(share > 0.65, "{share:.2} of the link");
    }
}
