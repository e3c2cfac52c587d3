//! The tests, one after the other, and what of their results a diagnosis needs.

use serde::Serialize;

use super::args::Plan;
use crate::exit::Failure;
use crate::perf::{
    Cpu, DirectionSummary, LimitedBy, RrSummary, Summary, TestRequest, measure as test,
};

/// What all tests measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) peer: String,
    /// The peer sent the bulk data.
    pub(crate) reverse: bool,
    /// Requests and responses alone.
    pub(crate) idle: RoundTrips,
    /// Beside bulk data that fills queues: CUBIC.
    pub(crate) filled: Loaded,
    /// Beside bulk data of each policy; means of the rounds.
    pub(crate) policies: Vec<Policy>,
}

/// Times of requests with their responses, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct RoundTrips {
    pub(crate) transactions: u64,
    pub(crate) min_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// A test with bulk data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Loaded {
    pub(crate) goodput_bps: f64,
    /// Of the segments sent, those sent again that the peer had not, 0 to 1.
    pub(crate) loss_share: f64,
    pub(crate) acks: f64,
    pub(crate) acks_per_mib: f64,
    pub(crate) round_trips: RoundTrips,
    /// What the sender waited for, shares of the time.
    pub(crate) limited: LimitedBy,
    /// Processors used, 1 for one of them all the time: of the side that used more.
    pub(crate) processors: f64,
}

/// The tests of an acknowledgement policy.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Policy {
    pub(crate) policy: &'static str,
    pub(crate) mean: Loaded,
    /// Goodput of each round, bits per second.
    pub(crate) rounds_bps: Vec<f64>,
}

impl Measured {
    /// The tests of this policy.
    pub(crate) fn policy(&self, name: &str) -> Option<&Policy> {
        self.policies.iter().find(|it| it.policy == name)
    }
}

/// Runs all tests; `tells` says which on standard error.
pub(crate) async fn measure(plan: Plan, tells: bool) -> Result<Measured, Failure> {
    let one = async |what: &str, request: &TestRequest| {
        if tells {
            eprintln!("tack: measuring {what}");
        }
        test(&plan.args, &plan.target, request).await
    };
    let idle = one("the path at rest", &plan.idle).await?;
    let filled = one("the path with full queues", &plan.filled).await?;
    let mut rounds: Vec<(&'static str, Vec<Loaded>)> =
        plan.policies.iter().map(|it| (it.0, Vec::new())).collect();
    for round in 0..plan.rounds {
        // Each second round in the opposite order: a path that becomes slower favours nobody.
        let mut order: Vec<usize> = (0..plan.policies.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let (policy, request) = &plan.policies[index];
            let what = format!("{policy}, round {} of {}", round + 1, plan.rounds);
            let summary = one(&what, request).await?;
            rounds[index].1.push(Loaded::of(&summary)?);
        }
    }
    Ok(Measured {
        peer: plan.target.shown(),
        reverse: plan.reverse,
        idle: RoundTrips::of(idle.rr.as_ref()),
        filled: Loaded::of(&filled)?,
        policies: rounds
            .into_iter()
            .map(|(policy, rounds)| Policy {
                policy,
                mean: Loaded::mean(&rounds),
                rounds_bps: rounds.iter().map(|it| it.goodput_bps).collect(),
            })
            .collect(),
    })
}

impl RoundTrips {
    fn of(rr: Option<&RrSummary>) -> Self {
        rr.map_or_else(Self::default, |rr| Self {
            transactions: rr.latency.transactions,
            min_ms: rr.latency.min_us / 1e3,
            p50_ms: rr.latency.p50_us / 1e3,
            p99_ms: rr.latency.p99_us / 1e3,
        })
    }
}

impl Loaded {
    fn of(summary: &Summary) -> Result<Self, Failure> {
        let direction = summary.up.as_ref().or(summary.down.as_ref());
        let direction = direction.ok_or_else(|| Failure::plain("a test had no bulk data"))?;
        Ok(Self {
            goodput_bps: direction.goodput_bps,
            loss_share: loss_share(direction),
            acks: direction.acks_sent as f64,
            acks_per_mib: direction.acks_per_mib,
            round_trips: RoundTrips::of(summary.rr.as_ref()),
            limited: direction.limited,
            processors: most(summary.cpu),
        })
    }

    fn mean(rounds: &[Self]) -> Self {
        let mean = |value: fn(&Self) -> f64| {
            rounds.iter().map(value).sum::<f64>() / rounds.len().max(1) as f64
        };
        Self {
            goodput_bps: mean(|it| it.goodput_bps),
            loss_share: mean(|it| it.loss_share),
            acks: mean(|it| it.acks),
            acks_per_mib: mean(|it| it.acks_per_mib),
            round_trips: RoundTrips {
                transactions: rounds.iter().map(|it| it.round_trips.transactions).sum(),
                min_ms: mean(|it| it.round_trips.min_ms),
                p50_ms: mean(|it| it.round_trips.p50_ms),
                p99_ms: mean(|it| it.round_trips.p99_ms),
            },
            limited: LimitedBy {
                cwnd: mean(|it| it.limited.cwnd),
                rwnd: mean(|it| it.limited.rwnd),
                pacing: mean(|it| it.limited.pacing),
                app: mean(|it| it.limited.app),
                machine: mean(|it| it.limited.machine),
            },
            processors: mean(|it| it.processors),
        }
    }
}

fn loss_share(direction: &DirectionSummary) -> f64 {
    let again = direction
        .retransmitted_segments
        .saturating_sub(direction.spurious_retransmissions);
    again as f64 / direction.data_segments.max(1) as f64
}

fn most(cpu: Cpu) -> f64 {
    cpu.client.max(cpu.server)
}
