//! What congestion control answers, and what it does not, over whole transfers: windows that loss
//! must hold down, marks, paths of a few segments, and many flows on one link. Each with legacy
//! acknowledgements and with TACK.

use std::time::Duration;

use rayon::prelude::*;
use tack_sim::{Observer, Observers, Report, Sample, Scenario};

use crate::run;

use crate::is_long;

fn simulate(text: &str, seed: u64) -> Report {
    let scenario =
        Scenario::from_toml("congestion.toml", text, &[]).expect("the scenario is sound");
    run(&scenario, seed, &mut Observers::default()).expect("no invariant breaks")
}

fn mbps(report: &Report, flow: usize) -> f64 {
    report.flows[flow].goodput_bps / 1e6
}

/// Share of its segments that a flow sent again, per cent.
fn retransmitted(report: &Report, flow: usize) -> f64 {
    let flow = &report.flows[flow];
    100.0 * flow.retransmitted_segments as f64 / flow.data_segments as f64
}

fn one_flow(path: &str, congestion: &str, ack: &str) -> String {
    format!(
        "duration = '15s'\nwarmup = '5s'\n[wired]\n{path}\n\
         [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n"
    )
}

/// In a long recovery FlightSize spans many windows; a window reduced from it is not reduced. At 3
/// % loss Reno's window is about seven segments (RFC 3649 section 2), 16 Mbit/s on this path.
#[test]
fn a_window_that_loss_holds_down_stays_down_when_the_network_duplicates_and_reorders() {
    let path = "rate = '200Mbps'\ndelay = '2500us'\nqueue = '1.0bdp'\nloss = 0.03";
    let congestions = ["cubic", "vegas", "new_reno", "compound"];
    for congestion in &congestions[..if is_long() { 4 } else { 2 }] {
        for ack in ["delayed:2", "tack"] {
            for fault in [
                "",
                "duplicate = 0.02",
                "reorder = 0.05\nreorder_delay = '2ms'",
            ] {
                let text = one_flow(&format!("{path}\n{fault}"), congestion, ack);
                let goodput = mbps(&simulate(&text, 1), 0);
                println!("{congestion} {ack} {fault:?}: {goodput:.1} Mbit/s");
                assert!(
                    (9.0..20.0).contains(&goodput),
                    "{congestion} {ack} {fault:?}: {goodput:.1} Mbit/s"
                );
            }
        }
    }
}

const CONTROLLERS: [&str; 5] = ["bbr", "cubic", "new_reno", "vegas", "compound"];

/// Paths of one to seven segments with a queue of at least two. Where the peer counts segments, a
/// pacing floor of a segment an interval is several times what the path carries, a window widened
/// for an interval is wider than the path, and a push for each window of two draws twice the
/// acknowledgements.
#[test]
fn a_path_of_a_few_segments_is_not_flooded_with_tack() {
    const PATHS: [(&str, &str, &str); 14] = [
        ("1500kbps", "6ms", "1.0bdp"),
        ("1500kbps", "6ms", "4.0bdp"),
        ("1Mbps", "10ms", "2.0bdp"),
        ("3Mbps", "6ms", "2.0bdp"),
        ("5Mbps", "6ms", "1.0bdp"),
        ("500kbps", "20ms", "2.0bdp"),
        ("500kbps", "10ms", "4.0bdp"),
        ("1Mbps", "20ms", "1.0bdp"),
        ("1500kbps", "20ms", "1.0bdp"),
        ("2Mbps", "10ms", "1.0bdp"),
        ("2Mbps", "3ms", "4.0bdp"),
        ("3Mbps", "10ms", "1.0bdp"),
        ("5Mbps", "3ms", "2.0bdp"),
        ("2Mbps", "20ms", "1.0bdp"),
    ];
    CONTROLLERS.par_iter().for_each(|congestion| {
        let mut sums = [[0.0; 2]; 3];
        for (rate, delay, queue) in PATHS {
            let path = format!("rate = '{rate}'\ndelay = '{delay}'\nqueue = '{queue}'");
            let again = ["delayed:2", "tack"].map(|ack| {
                let report = simulate(&one_flow(&path, congestion, ack), 1);
                let flow = &report.flows[0];
                let acks = flow.acks as f64 / flow.bytes_delivered as f64;
                let column = usize::from(ack == "tack");
                let figures = [retransmitted(&report, 0), acks, mbps(&report, 0).ln()];
                for (sum, figure) in sums.iter_mut().zip(figures) {
                    sum[column] += figure;
                }
                (figures[0], acks * 1448.0)
            });
            println!("{congestion} {rate} {delay} {queue}: % again and ACKs a segment {again:.2?}");
            let [(before, _), (after, _)] = again;
            assert!(
                after <= before + 2.0,
                "{congestion} {rate} {delay} {queue}: {after:.1} % again, {before:.1} with delayed:2"
            );
        }
        let [again, acks, speed] = sums;
        let paths = PATHS.len() as f64;
        println!(
            "{congestion}: {:+.2} points again, {:.3} of the ACKs, {:.3} of the goodput",
            (again[1] - again[0]) / paths,
            acks[1] / acks[0],
            ((speed[1] - speed[0]) / paths).exp()
        );
        assert!(again[1] <= again[0] + 0.5 * paths, "{congestion}: {again:?}");
        assert!(acks[1] <= 0.96 * acks[0], "{congestion}: {acks:?}");
        assert!(speed[1] >= speed[0] - 0.03 * paths, "{congestion}: {speed:?}");
    });
}

/// The same over a grid of paths that hold 0.7 to 8 segments. Of what few segments lose to a queue
/// of few, most is a matter of their order in time, in which `delayed:2` and `every` differ as
/// much, so TACK is held to the worse of them. What is left of a difference, and where, is in
/// `docs/validation/hard-paths.md`.
#[test]
fn paths_of_a_few_segments_cost_tack_no_more_than_plain_acknowledgements() {
    let mut paths = Vec::new();
    for kbps in [300_u32, 500, 800, 1200, 1500, 2000, 3000, 4500, 6000] {
        for ms in [2, 4, 6, 9, 14, 20, 30] {
            let segments = f64::from(kbps * 2 * ms) / 12_000.0;
            if (0.7..=8.0).contains(&segments) {
                paths.extend(["1.0bdp", "2.0bdp"].map(|queue| (kbps, ms, segments, queue)));
            }
        }
    }
    let step = if is_long() { 1 } else { 5 };
    CONTROLLERS.par_iter().for_each(|congestion| {
        let chosen: Vec<_> = paths.iter().step_by(step).collect();
        let mut sums = [[0.0; 2]; 3];
        for &&(kbps, ms, segments, queue) in &chosen {
            let path = format!("rate = '{kbps}kbps'\ndelay = '{ms}ms'\nqueue = '{queue}'");
            let all = ["delayed:2", "tack", "every"].map(|ack| {
                let report = simulate(&one_flow(&path, congestion, ack), 1);
                let acks = report.flows[0].acks as f64;
                [retransmitted(&report, 0), acks, mbps(&report, 0).ln()]
            });
            let [plain, tack, every] = all;
            for (sum, (plain, tack)) in sums.iter_mut().zip(plain.into_iter().zip(tack)) {
                *sum = [sum[0] + plain, sum[1] + tack];
            }
            let name = format!("{congestion} {kbps}kbps {ms}ms {queue}");
            println!("{name}: {all:.2?}");
            // A queue of less than a packet has room for none.
            let more = if segments < 1.0 { 12.0 } else { 4.5 };
            assert!(
                tack[0] <= plain[0].max(every[0]) + more,
                "{name}: {all:.1?}"
            );
            // An acknowledgement a byte. Two segments of the slowest paths take longer than either
            // policy's timer waits.
            let [plain_acks, tack_acks, every_acks] =
                all.map(|[_, acks, speed]| acks / speed.exp());
            let most = if kbps <= 500 { 1.6 } else { 1.25 };
            let least = if segments < 1.0 { every_acks } else { 0.0 };
            assert!(
                tack_acks <= most * plain_acks.max(least),
                "{name}: {all:.1?}"
            );
        }
        let [again, acks, speed] = sums;
        let count = chosen.len() as f64;
        println!(
            "{congestion}: {:+.2} points again, {:.3} of the ACKs, {:.3} of the goodput",
            (again[1] - again[0]) / count,
            acks[1] / acks[0],
            ((speed[1] - speed[0]) / count).exp()
        );
        assert!(again[1] <= again[0] + count, "{congestion}: {again:?}");
        assert!(acks[1] <= 0.98 * acks[0], "{congestion}: {acks:?}");
        assert!(
            speed[1] >= speed[0] - 0.06 * count,
            "{congestion}: {speed:?}"
        );
    });
}

/// Each loss halves a window, or nearly; what a sparse peer has not reported must not make that
/// more, nor growth slower. The same losses for both, as far as the same segments meet them: means
/// of the logarithms of paired runs.
#[test]
fn random_loss_costs_tack_no_more_than_delayed_acknowledgements() {
    const SEEDS: u64 = 8;
    let losses: &[f64] = if is_long() {
        &[0.001, 0.005, 0.01, 0.03]
    } else {
        &[0.03]
    };
    let delays: &[&str] = if is_long() {
        &["5ms", "20ms", "50ms"]
    } else {
        &["20ms"]
    };
    ["cubic", "new_reno", "vegas", "compound"]
        .par_iter()
        .for_each(|congestion| {
            let mut cells = Vec::new();
            for &loss in losses {
                for delay in delays {
                    let path = format!(
                        "rate = '50Mbps'\ndelay = '{delay}'\nqueue = '1.0bdp'\nloss = {loss}"
                    );
                    let ratio = |seed| {
                        let [tack, plain] = ["tack", "delayed:2"]
                            .map(|ack| mbps(&simulate(&one_flow(&path, congestion, ack), seed), 0));
                        (tack / plain).ln()
                    };
                    let mean = (1..=SEEDS).map(ratio).sum::<f64>() / SEEDS as f64;
                    println!(
                        "{congestion}, {loss} lost, {delay}: {:.3} of delayed:2",
                        mean.exp()
                    );
                    cells.push(mean);
                    // Runs of a tenth of a per cent see a dozen losses, and differ by a tenth.
                    let least: f64 = if loss < 0.002 { 0.93 } else { 0.96 };
                    assert!(
                        mean > least.ln(),
                        "{congestion}, {loss} lost, {delay}: {:.3}",
                        mean.exp()
                    );
                }
            }
            let mean = cells.iter().sum::<f64>() / cells.len() as f64;
            println!("{congestion}: {:.3} of delayed:2", mean.exp());
            // Of one cell the mean is as uncertain as the cell.
            assert!(
                !is_long() || mean > 0.99_f64.ln(),
                "{congestion}: {:.3}",
                mean.exp()
            );
        });
}

/// BBR probes with a quarter more than its estimate; of many random losses a tenth is left of that,
/// so that a sample which is a little too low lets nothing grow. Losses are told at once, without
/// a rate, and samples lost what left since the last report that had one: 12 Mbit/s over 802.11g
/// that does not repeat (`delayed:2`: 16), and 10 over the wire with 15 % loss (17).
#[test]
fn many_random_losses_cost_bbr_no_more_with_tack() {
    if !crate::is_long() {
        return;
    }
    let wire = |loss: f64| {
        format!("[wired]\nrate = '50Mbps'\ndelay = '20ms'\nqueue = '1.0bdp'\nloss = {loss}\n")
    };
    let radio = "[wired]\nrate = '1Gbps'\ndelay = '40ms'\nqueue = '40000p'\n\
         [wlan]\npreset = 'tack-g'\nap_queue = '40000p'\nprotection = 'off'\nretry_limit = 1\n\
         frame_error_rate = 0.114\n";
    let paths = [
        ("wire, 8 %", wire(0.08)),
        ("wire, 15 %", wire(0.15)),
        ("radio", radio.into()),
    ];
    let seeds: Vec<u64> = (1..=8).collect();
    paths.par_iter().for_each(|(name, path)| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| {
            let text = format!(
                "duration = '12s'\nwarmup = '4s'\n{path}\
                 [[flow]]\ncongestion = 'bbr'\nack = '{ack}'\nreceive_buffer = '64MiB'\n"
            );
            let runs: Vec<_> = seeds
                .par_iter()
                .map(|seed| mbps(&simulate(&text, *seed), 0))
                .collect();
            runs.iter().sum::<f64>() / runs.len() as f64
        });
        println!("{name}: {tack:.1} Mbit/s, {plain:.1} with delayed:2");
        assert!(tack >= plain, "{name}: {tack}, {plain} with delayed:2");
    });
}

const MARKING: &str = "rate = '50Mbps'\ndelay = '10ms'\nqueue = '4.0bdp'\necn_threshold = '20p'";

/// BBR had nine tenths and more of the link, as it did not answer marks that others answer (RFC
/// 3168 section 6.1.2). With TACK that came back where a queue marks for less than arrives in an
/// acknowledgement interval: a window with room for that interval kept the queue above the
/// threshold, without being slower for it, and a probe that the window did not let fill the path
/// never ended.
#[test]
fn who_answers_marks_gets_a_fair_share_beside_bbr() {
    const PATHS: [&str; 4] = [
        "rate = '20Mbps'\ndelay = '20ms'\nqueue = '3.0bdp'\necn_threshold = '5p'",
        MARKING,
        "rate = '20Mbps'\ndelay = '10ms'\nqueue = '3.0bdp'\necn_threshold = '5p'",
        "rate = '100Mbps'\ndelay = '20ms'\nqueue = '2.0bdp'\necn_threshold = '10p'",
    ];
    let (paths, seeds) = if is_long() { (4, 3) } else { (1, 1) };
    let cells: Vec<_> = PATHS[..paths]
        .iter()
        .flat_map(|path| CONTROLLERS[1..].iter().map(move |other| (*path, *other)))
        .collect();
    cells.par_iter().for_each(|(path, other)| {
        // Mean share of the flow beside BBR.
        let share = |ack| {
            let flow = |controller: &str| {
                format!("[[flow]]\ncongestion = '{controller}'\nack = '{ack}'\n")
            };
            let text = format!(
                "duration = '30s'\nwarmup = '10s'\n[wired]\n{path}\n\
                 late_processing = '0.1ms'\nlate_processing_reverse = '0.1ms'\n{}{}",
                flow("bbr"),
                flow(other)
            );
            let shares = (1..=seeds).map(|seed| {
                let report = simulate(&text, seed);
                let (bbr, other) = (mbps(&report, 0), mbps(&report, 1));
                other / (bbr + other)
            });
            shares.sum::<f64>() / seeds as f64
        };
        let [tack, plain] = ["tack", "delayed:2"].map(share);
        println!("{other}, {path:?}: share {tack:.2}, {plain:.2} with delayed:2");
        assert!(
            tack >= 0.7 * plain && 1.0 - tack >= 0.7 * (1.0 - plain),
            "{other}, {path:?}: {tack:.2}, {plain:.2} with delayed:2"
        );
    });
}

/// The answer is to the queue: a flow that is alone gives up the queue, not the path.
#[test]
fn marks_cost_a_lone_bbr_flow_little() {
    let paths = [
        MARKING,
        "rate = '100Mbps'\ndelay = '20ms'\nqueue = '2.0bdp'\necn_threshold = '20p'",
    ];
    for path in &paths[..if is_long() { 2 } else { 1 }] {
        for ack in ["tack", "delayed:2"] {
            let text = one_flow(path, "bbr", ack);
            let plain = text.replace("ecn_threshold = '20p'", "");
            let [marked, plain] = [&text, &plain].map(|text| mbps(&simulate(text, 1), 0));
            println!("{ack}, {path:?}: {marked:.1} of {plain:.1} Mbit/s");
            assert!(marked > 0.9 * plain, "{ack}: {marked:.1} of {plain:.1}");
        }
    }
}

/// How much each flow delivered in each span of a run.
struct Shares {
    span: Duration,
    /// By flow, bits in each span.
    bits: Vec<Vec<f64>>,
}

impl Observer for Shares {
    fn on_start(&mut self, scenario: &Scenario) {
        self.bits = vec![Vec::new(); scenario.flows.len()];
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.span)
    }

    fn on_sample(&mut self, sample: &Sample) {
        self.bits[sample.flow].push(sample.goodput_bps * self.span.as_secs_f64());
    }
}

impl Shares {
    /// The least that any flow has in `spans` successive ones, after the first `skipped`, bits per
    /// second.
    fn least(&self, skipped: usize, spans: usize) -> f64 {
        let time = self.span.as_secs_f64() * spans as f64;
        self.bits
            .iter()
            .flat_map(|flow| flow[skipped..].windows(spans))
            .map(|window| window.iter().sum::<f64>() / time)
            .fold(f64::INFINITY, f64::min)
    }
}

/// Fifty flows share 167 segments of path. What each may count on is less than an acknowledgement
/// interval carries. No flow has less than a fortieth of an even share in any 40 s, beginning
/// with each fifth second, and none stands still for 20 s. (Long form alone.)
#[test]
fn none_of_fifty_bbr_flows_starves_and_tack_costs_no_retransmissions() {
    if !is_long() {
        return;
    }
    let cases: Vec<_> = (1..=3)
        .flat_map(|seed| ["delayed:2", "tack"].map(|ack| (seed, ack)))
        .collect();
    let again: Vec<f64> = cases
        .par_iter()
        .map(|(seed, ack)| {
            let mut text = String::from(
                "duration = '85s'\nwarmup = '5s'\n[wired]\nrate = '100Mbps'\ndelay = '10ms'\nqueue = '1.0bdp'\n",
            );
            for flow in 0..50 {
                text += &format!(
                    "[[flow]]\ncongestion = 'bbr'\nack = '{ack}'\nstart = '{}ms'\n",
                    20 * flow
                );
            }
            let scenario =
                Scenario::from_toml("fifty.toml", &text, &[]).expect("the scenario is sound");
            let mut shares = Shares {
                span: Duration::from_secs(5),
                bits: Vec::new(),
            };
            let report = run(&scenario, *seed, &mut Observers::default().with(&mut shares))
                .expect("no invariant breaks");
            let flows = &report.flows;
            let again: u64 = flows.iter().map(|flow| flow.retransmitted_segments).sum();
            let sent: u64 = flows.iter().map(|flow| flow.data_segments).sum();
            let [least, in_twenty] = [8, 4].map(|spans| shares.least(1, spans));
            println!(
                "{ack}, seed {seed}: least {:.2} Mbit/s in 40 s, {:.3} in 20 s, {again} of {sent} again",
                least / 1e6,
                in_twenty / 1e6
            );
            assert!(least > 50e3, "{ack}, seed {seed}: {least:.0} bit/s in 40 s");
            assert!(in_twenty > 0.0, "{ack}, seed {seed}: nothing in 20 s");
            again as f64 / sent as f64
        })
        .collect();
    for pair in again.chunks_exact(2) {
        let (legacy, tack) = (pair[0], pair[1]);
        assert!(tack <= legacy, "{tack:.3} after {legacy:.3}");
    }
}
