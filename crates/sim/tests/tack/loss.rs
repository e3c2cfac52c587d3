//! Losses on the path of the data, of the acknowledgements, and of both.

use tack_sim::{Blocked, Observer, PacketEvent, Passing};
use tack_tcp::trace::{TraceEvent, Traced};
use tack_wire::{Segment, TackOption};

use super::{
    cells, is_full, is_long, mean, observe, of_seeds, percentile, seeds, set, utilisation,
};
use tack_base::random::RandomStream;
use tack_sim::scenario::Party;

/// A report with rich lists repeats what lost ones said, so that losing ACKs costs no more than it
/// costs a TCP that acknowledges every second segment. How much is figure 5(b) of the lab.
#[test]
fn rich_lists_carry_over_losses_both_ways() {
    for ack_loss in cells(&[0.1], &[0.002, 0.01, 0.05, 0.1]) {
        let policies = ["tack", "tack:rich=off", "delayed:2"];
        let policies = &policies[..if is_long() { 3 } else { 2 }];
        let shares: Vec<f64> = policies
            .iter()
            .map(|ack| {
                mean(
                    "lossy-both-ways",
                    &set![
                        format_args!("wired.ack_loss_reverse={ack_loss}"),
                        format_args!("flow.0.ack={ack}"),
                        "duration=40s",
                    ],
                    |report| utilisation(report, 100.0),
                )
            })
            .collect();
        println!(
            "{} % of ACKs lost: {shares:.3?} of the link with {policies:?}",
            100.0 * ack_loss
        );
        assert!(
            shares.iter().all(|share| shares[0] >= *share),
            "{ack_loss}: {shares:?}"
        );
    }
}

#[test]
fn most_acknowledgements_may_get_lost() {
    let controllers = cells(
        &["bbr", "vegas"],
        &["bbr", "cubic", "new_reno", "vegas", "compound"],
    );
    let all = [(0.5, 0.75), (0.3, 0.85)];
    for (ack_loss, least) in &all[..if is_long() { 2 } else { 1 }] {
        for controller in &controllers {
            let shares = of_seeds(
                "ack-loss",
                &set![
                    format_args!("wired.ack_loss_reverse={ack_loss}"),
                    format_args!("flow.0.congestion={controller}"),
                    "duration=20s",
                ],
                |report| {
                    assert_eq!(report.flows[0].rto_count, 0, "{controller}, {ack_loss}");
                    utilisation(report, 100.0)
                },
            );
            let lowest = shares
                .iter()
                .fold(f64::INFINITY, |low, share| low.min(*share));
            println!(
                "{controller}, {} % of acknowledgements lost: {:.1} %, {:.1} % at least",
                100.0 * ack_loss,
                100.0 * shares.iter().sum::<f64>() / shares.len() as f64,
                100.0 * lowest
            );
            assert!(lowest >= *least, "{controller}, {ack_loss}: {shares:?}");
        }
    }
}

#[test]
fn a_transfer_ends_though_most_acknowledgements_get_lost() {
    for ack_loss in [0.3, 0.5, 0.7] {
        let seconds = mean(
            "ack-loss",
            &set![
                format_args!("wired.ack_loss_reverse={ack_loss}"),
                "flow.0.bytes=10MB",
                "warmup=0s",
            ],
            |report| {
                assert_eq!(report.flows[0].closed, [Some("graceful"); 2]);
                report.flows[0].completion_s.expect("the transfer ends")
            },
        );
        println!(
            "10 MB with {} % of acknowledgements lost: {seconds:.2} s",
            100.0 * ack_loss
        );
    }
}

#[test]
fn loss_iacks_keep_the_receive_buffer_empty() {
    // Loss from 0 to 3 %, RTT from 1 to 200 ms, drawn at random.
    let mut random = RandomStream::new(5, "figure 5(a)", 0);
    let mut draws: Vec<(f64, f64)> = Vec::new();
    for _ in 0..if is_full() { 40 } else { 5 } {
        draws.push((random.unit() * 0.03, 1.0 + random.unit() * 199.0));
    }
    let median = |ack: &str| {
        let mut blocked = Blocked::default();
        for (seed, (loss, rtt)) in draws.iter().enumerate() {
            observe(
                "loss-iack",
                &set![
                    format_args!("flow.0.ack={ack}"),
                    format_args!("wired.loss={loss:.4}"),
                    format_args!("wired.delay={}us", (rtt * 500.0) as u64),
                    format_args!("seed={seed}"),
                    "wired.rate=20Mbps",
                    format_args!("duration={}s", if is_full() { 30 } else { 8 }),
                ],
                &mut blocked,
            );
        }
        let shares = [0.25, 0.5, 0.75, 0.9, 0.99];
        let values = shares.map(|share| percentile(&mut blocked.bytes, share));
        println!("{ack}: bytes blocked at {shares:?} of the CDF: {values:?}");
        values[1]
    };
    let with = median("tack");
    let periodic = median("tack:iack=periodic");
    let without = median("tack:iack=off");
    println!(
        "median: {with} with, {periodic} with losses in TACKs alone, {without} without: {:.1} times lower",
        without as f64 / with as f64
    );
    // By how much is figure 5(a) of the lab.
    assert!(
        with <= periodic && periodic <= without && with < without,
        "{with} {periodic} {without}"
    );
}

/// Notes when a number is skipped on the wire, and when that is reported.
#[derive(Default)]
struct Skips {
    next: Option<u32>,
    open: Option<tack_base::Instant>,
    delays_us: Vec<u64>,
}

impl Observer for Skips {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        if event.host != Party::Client || event.passing != Passing::In {
            return;
        }
        if let Ok(segment) = Segment::parse(event.packet.transport())
            && let Some(TackOption::Data(stamp)) = segment.header.options.tack
        {
            if self.next.is_some_and(|next| stamp.number > next) {
                self.open.get_or_insert(event.at);
            }
            self.next = Some(stamp.number + 1);
        }
    }

    fn wants_traces(&self) -> bool {
        true
    }

    fn on_trace(&mut self, _flow: usize, host: Party, event: &TraceEvent) {
        if let (Party::Client, Traced::AckSent(sent)) = (host, &event.what)
            && sent.reason == "loss"
            && let Some(at) = self.open.take()
        {
            self.delays_us
                .push(event.at.saturating_since(at).as_micros() as u64);
        }
    }
}

/// The queue is so long that startup does not overflow it. After a burst of losses, reports of
/// losses wait for each other.
#[test]
fn where_nothing_is_reordered_a_loss_is_told_within_one_segment_time() {
    for settle in cells(&["adaptive"], &["adaptive", "0.25", "1"]) {
        let mut delays_us = Vec::new();
        let mut share = 0.0;
        for seed in seeds() {
            let mut skips = Skips::default();
            let result = observe(
                "loss-iack",
                &set![
                    "wired.loss=0.001",
                    "wired.queue=8.0bdp",
                    "duration=20s",
                    format_args!("flow.0.ack=tack:settle={settle}"),
                    format_args!("seed={seed}"),
                ],
                &mut skips,
            );
            delays_us.append(&mut skips.delays_us);
            share += utilisation(&result, 100.0) / seeds().count() as f64;
        }
        let worst = percentile(&mut delays_us, 1.0);
        println!(
            "settle={settle}: {} losses, told after {} us in the median, {worst} us at the most; {:.1} % of the link",
            delays_us.len(),
            percentile(&mut delays_us, 0.5),
            100.0 * share
        );
        assert!(delays_us.len() > 100);
        // 1,500 bytes at 100 Mbit/s.
        if settle == "adaptive" {
            assert!(worst <= 120, "{worst}");
        }
    }
}
