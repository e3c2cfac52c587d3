//! Runs of a path in virtual time.

use tack_sim::{Checks, FlowReport, Observers, Report, Scenario, run};

use crate::figures::Figures;
use crate::paths::{Path, Work};
use crate::processor::processor_time;

/// The policy that every path is also run with.
pub(crate) const PLAIN: &str = "delayed:2";

impl Figures {
    /// Runs `path` with `seed` as `variant` says.
    pub(crate) fn measure(path: &Path, variant: &Variant, seed: u64) -> Self {
        let scenario = scenario(path, variant);
        let seed = seed + variant.other_chance;
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
        let wires = [report.wired.forward, report.wired.reverse];
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
            path_losses: wires
                .iter()
                .map(|way| (way.queue_drops + way.lost + way.blacked_out + way.too_large) as f64)
                .sum(),
            too_large: wires.iter().map(|way| way.too_large as f64).sum(),
            blacked_out: wires.iter().map(|way| way.blacked_out as f64).sum(),
            path_marks: wires.iter().map(|way| way.marked as f64).sum(),
            stalls: flows.iter().map(|flow| flow.stalls).sum(),
            no_progress: flows
                .iter()
                .map(|flow| flow.no_progress_max_s)
                .fold(0.0, f64::max),
            unfinished: path.work == Work::Transfer && flows.iter().any(is_unfinished),
            broken: None,
        }
    }
}

/// What is compared on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// TACK with [`PLAIN`].
    Tack,
    /// Accurate ECN feedback (RFC 9768) with that of RFC 3168, both with [`PLAIN`].
    AccurateEcn,
    /// [`PLAIN`] with itself, where chance is another. What is flagged is what the judge takes for
    /// a difference and is none. Paths without chance show nothing.
    Itself,
}

impl Comparison {
    /// What is tested, and what it is compared with.
    pub(crate) fn variants(self) -> [Variant; 2] {
        match self {
            Self::Tack => Variant::both(),
            Self::AccurateEcn => ["accurate_ecn=offer", "accurate_ecn=accept"].map(|feedback| {
                let mut variant = Variant::new(PLAIN);
                variant.flow_keys.push(feedback);
                variant
            }),
            Self::Itself => {
                let mut other = Variant::new(PLAIN);
                other.other_chance = OTHER_CHANCE;
                [other, Variant::new(PLAIN)]
            }
        }
    }

    /// Their names.
    pub(crate) fn names(self) -> [&'static str; 2] {
        match self {
            Self::Tack => ["tack", PLAIN],
            Self::AccurateEcn => ["accurate", "classic"],
            Self::Itself => ["again", PLAIN],
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
    /// Is added to each seed.
    pub(crate) other_chance: u64,
}

/// Distance to the seeds of another chance, beyond all that paths have.
const OTHER_CHANCE: u64 = 500_000_000_000;

impl Variant {
    /// With this policy.
    pub(crate) fn new(ack: impl Into<String>) -> Self {
        Self {
            ack: ack.into(),
            flow_keys: Vec::new(),
            path_keys: Vec::new(),
            other_chance: 0,
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
    let seed = seed + variant.other_chance;
    let begin = processor_seconds();
    // What it brings is known.
    let _ = run(&scenario, seed, &mut Observers::default());
    processor_seconds() - begin
}

/// Judged in the long form only.
fn processor_seconds() -> f64 {
    processor_time().as_secs_f64()
}
