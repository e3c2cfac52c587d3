//! Runs of a path, and the figures that are compared.

use tack_sim::{Checks, FlowReport, Observers, Report, Scenario, run};

use crate::paths::{Path, Work};

/// The policy that every path is also run with.
pub(crate) const PLAIN: &str = "delayed:2";

/// What came of a path with one policy: one run, or several in one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// Bits per second of all judged flows.
    pub(crate) goodput: f64,
    /// The same of the slower and the faster one of two alike flows; of the judged ones where
    /// there are none.
    pub(crate) slower: f64,
    pub(crate) faster: f64,
    /// The same of all flows of the path, judged or not.
    pub(crate) all: f64,
    /// Bytes of the judged flows.
    pub(crate) bytes: f64,
    /// Until the last byte of the last flow, seconds; the whole run where it never came.
    pub(crate) completion: f64,
    /// Segments with payload, and those that repeated bytes.
    pub(crate) data: f64,
    pub(crate) repeated: f64,
    pub(crate) acks: f64,
    /// Bytes of the acknowledgements, IP headers included.
    pub(crate) ack_bytes: f64,
    pub(crate) timeouts: f64,
    /// Requests answered.
    pub(crate) answers: f64,
    /// Share of the time that the player of a video stood still.
    pub(crate) still: f64,
    /// Processor seconds, where the system tells; zero elsewhere.
    pub(crate) processor: f64,
    /// Shortest round trip that a sender saw, seconds; zero if none.
    pub(crate) min_rtt: f64,
    /// Packets that the wired path lost, of both directions and all flows.
    pub(crate) path_losses: f64,
    /// Something that had an end did not reach it.
    pub(crate) unfinished: bool,
    /// Times that a sender did not get on, and the longest time without progress, seconds.
    pub(crate) stalls: u64,
    pub(crate) no_progress: f64,
    /// An invariant does not hold: a stall is one.
    pub(crate) broken: Option<String>,
}

impl Figures {
    /// Share of the segments that repeated bytes, 0 to 1.
    pub(crate) fn repeated_share(&self) -> f64 {
        if self.data > 0.0 {
            self.repeated / self.data
        } else {
            0.0
        }
    }

    /// Acknowledgements for each byte; zero if none arrived.
    pub(crate) fn acks_per_byte(&self) -> f64 {
        if self.bytes > 0.0 {
            self.acks / self.bytes
        } else {
            0.0
        }
    }

    /// Runs `path` with `seed` as `variant` says.
    pub(crate) fn measure(path: &Path, variant: &Variant, seed: u64) -> Self {
        let scenario = scenario(path, variant);
        let begin = processor_seconds();
        let mut observers = Observers::default().checking(Checks::EveryEvent);
        let outcome = run(&scenario, seed, &mut observers);
        let processor = processor_seconds() - begin;
        match outcome {
            Ok(report) => Self {
                processor,
                ..Self::new(&report, path)
            },
            Err(broken) => {
                // The figures of the whole run all the same, as far as it comes without the check
                // that failed.
                let report = run(&scenario, seed, &mut Observers::default());
                Self {
                    broken: Some(broken.to_string()),
                    processor,
                    ..report.map_or_else(|_| Self::default(), |report| Self::new(&report, path))
                }
            }
        }
    }

    fn new(report: &Report, path: &Path) -> Self {
        let flows = &report.flows[..path.judged];
        let sum = |figure: fn(&FlowReport) -> f64| flows.iter().map(figure).sum();
        let goodput = sum(|flow| flow.goodput_bps);
        let alike = || report.flows.iter().map(|flow| flow.goodput_bps);
        let (slower, faster) = if path.has_alike_neighbour {
            (
                alike().fold(f64::INFINITY, f64::min),
                alike().fold(0.0, f64::max),
            )
        } else {
            (goodput, goodput)
        };
        let is_unfinished = |flow: &FlowReport| flow.closed != [Some("graceful"); 2];
        Self {
            goodput,
            slower,
            faster,
            all: alike().sum(),
            bytes: sum(|flow| flow.bytes_delivered as f64),
            completion: flows
                .iter()
                .map(|flow| flow.completion_s.unwrap_or(report.virtual_seconds))
                .fold(0.0, f64::max),
            data: sum(|flow| flow.data_segments as f64),
            repeated: sum(|flow| flow.retransmitted_segments as f64),
            acks: sum(|flow| flow.acks as f64),
            ack_bytes: sum(|flow| (flow.ack_bytes + 20 * flow.acks) as f64),
            timeouts: sum(|flow| flow.rto_count as f64),
            answers: sum(|flow| flow.requests.map_or(0.0, |done| done.completed as f64)),
            still: sum(|flow| {
                let video = flow.video.as_ref();
                video
                    .and_then(|video| video.rebuffering_share)
                    .unwrap_or(0.0)
            }),
            processor: 0.0,
            min_rtt: flows
                .iter()
                .filter_map(|flow| flow.min_rtt_us)
                .min()
                .map_or(0.0, |micros| micros as f64 / 1e6),
            path_losses: [report.wired.forward, report.wired.reverse]
                .iter()
                .map(|way| (way.queue_drops + way.lost + way.blacked_out + way.too_large) as f64)
                .sum(),
            stalls: flows.iter().map(|flow| flow.stalls).sum(),
            no_progress: flows
                .iter()
                .map(|flow| flow.no_progress_max_s)
                .fold(0.0, f64::max),
            unfinished: path.work == Work::Transfer && flows.iter().any(is_unfinished),
            broken: None,
        }
    }

    /// Several runs in one: of what is counted the mean, which a few runs in which everything goes
    /// wrong belong to, and of speed and time the median.
    pub(crate) fn together(runs: &[Self]) -> Self {
        let mean =
            |figure: fn(&Self) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
        Self {
            bytes: mean(|run| run.bytes),
            data: mean(|run| run.data),
            repeated: mean(|run| run.repeated),
            acks: mean(|run| run.acks),
            ack_bytes: mean(|run| run.ack_bytes),
            timeouts: mean(|run| run.timeouts),
            path_losses: mean(|run| run.path_losses),
            ..Self::median(runs)
        }
    }

    /// Each figure's median; unfinished when most runs were, broken when any was.
    pub(crate) fn median(runs: &[Self]) -> Self {
        let median = |figure: fn(&Self) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(figure).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self {
            goodput: median(|run| run.goodput),
            slower: median(|run| run.slower),
            faster: median(|run| run.faster),
            all: median(|run| run.all),
            bytes: median(|run| run.bytes),
            completion: median(|run| run.completion),
            data: median(|run| run.data),
            repeated: median(|run| run.repeated),
            acks: median(|run| run.acks),
            ack_bytes: median(|run| run.ack_bytes),
            timeouts: median(|run| run.timeouts),
            answers: median(|run| run.answers),
            still: median(|run| run.still),
            processor: median(|run| run.processor),
            stalls: runs.iter().map(|run| run.stalls).max().unwrap_or(0),
            no_progress: median(|run| run.no_progress),
            min_rtt: median(|run| run.min_rtt),
            path_losses: median(|run| run.path_losses),
            unfinished: runs.iter().filter(|run| run.unfinished).count() * 2 > runs.len(),
            broken: runs.iter().find_map(|run| run.broken.clone()),
        }
    }
}

/// How the judged flows of a path are run.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// Their policy.
    pub(crate) ack: String,
    /// What else differs from the path's scenario: keys of the judged flows, and keys of the path.
    pub(crate) flow_keys: Vec<&'static str>,
    pub(crate) path_keys: Vec<String>,
}

impl Variant {
    /// With this policy.
    pub(crate) fn new(ack: impl Into<String>) -> Self {
        Self {
            ack: ack.into(),
            flow_keys: Vec::new(),
            path_keys: Vec::new(),
        }
    }

    /// TACK, and [`PLAIN`].
    pub(crate) fn both() -> [Self; 2] {
        ["tack", PLAIN].map(Self::new)
    }
}

fn scenario(path: &Path, variant: &Variant) -> Scenario {
    let mut overrides = variant.path_keys.clone();
    for flow in 0..path.judged {
        overrides.push(format!("flow.{flow}.ack={}", variant.ack));
        let keys = variant.flow_keys.iter();
        overrides.extend(keys.map(|key| format!("flow.{flow}.{key}")));
    }
    let name = format!("path-{}.toml", path.number);
    match Scenario::from_toml(&name, &path.toml, &overrides) {
        Ok(scenario) => scenario,
        Err(error) => panic!("{error}\n{}", path.toml),
    }
}

/// Processor seconds of a run without the checks, whose work grows with what is in flight and is
/// not the stack's.
pub(crate) fn processor_without_checks(path: &Path, variant: &Variant, seed: u64) -> f64 {
    let scenario = scenario(path, variant);
    let begin = processor_seconds();
    // What it brings is known.
    let _ = run(&scenario, seed, &mut Observers::default());
    processor_seconds() - begin
}

/// Processor time of this thread, where Linux tells: it is printed and judged in the long form
/// only.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text
        .split_whitespace()
        .next()
        .and_then(|field| field.parse::<f64>().ok());
    nanos.unwrap_or(0.0) / 1e9
}
