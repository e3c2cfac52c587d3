//! What the figures of a path mean.
//!
//! Each finding names the quantities that it rests on. The first one is what limits the path; what
//! comes first is what would still limit it if the others were gone.

use serde::Serialize;

use super::measure::{Measured, Policy};
use crate::observe::airtime_of_one_ack;

/// A processor that works so much of the time is the limit.
const BUSY: f64 = 0.9;
/// Share of the sender's time that something else than the path took.
const MUCH: f64 = 0.5;
/// Share of segments lost from which on losses are worth a word: CUBIC's window stays below 25
/// segments from there on (RFC 9438 §5.1, with its function for short round trips).
const LOSSY: f64 = 0.005;
/// CUBIC reaches less than this of what another controller does: losses keep its window small.
const HINDERED: f64 = 0.7;
/// A queue adds so much to the round trip that people notice (ITU-T G.114: interactive use suffers
/// from 100 ms on, one way from 150 ms).
const BLOAT_MS: f64 = 100.0;
/// Or it is so many times the round trip at rest, and not short.
const BLOAT_TIMES: f64 = 4.0;
const BLOAT_AT_LEAST_MS: f64 = 30.0;
/// Rounds of one policy that differ by so much say that the path, or a machine, is not steady.
const UNSTEADY: f64 = 0.33;
/// Rounds from which on policies can be compared: one may differ from the next by chance.
const ROUNDS: usize = 2;
/// A gain of goodput from which on acknowledgements are taken to have cost the data's capacity.
const GAIN: f64 = 0.04;

/// What limits the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// A processor of either side.
    Processor,
    /// The receiver's window: buffers smaller than the path.
    ReceiveWindow,
    /// Losses without a full queue.
    RandomLoss,
    /// A link with a long queue before it, which makes everybody wait.
    Bufferbloat,
    /// A medium that acknowledgements share with the data, as Wi-Fi is.
    SharedMedium,
    /// The rate of the slowest link.
    LinkRate,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) what: Limit,
    /// In a sentence, with the figures it rests on.
    pub(crate) words: String,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Diagnosis {
    /// The first of the findings.
    pub(crate) limited_by: Limit,
    pub(crate) findings: Vec<Finding>,
    /// How much longer a round trip takes while queues are full, milliseconds.
    pub(crate) bufferbloat_ms: f64,
    /// The rounds of each policy differ by less than a third.
    pub(crate) is_steady: bool,
    pub(crate) tack: Savings,
}

/// What TACK saves on this path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Savings {
    /// ACKs of `delayed:2` that TACK does not send, 0 to 1, per byte.
    pub(crate) acks_saved_share: f64,
    /// Goodput of TACK over that of `delayed:2`, less 1.
    pub(crate) goodput_gain: f64,
    /// There were two rounds or more: goodputs can be compared.
    pub(crate) is_comparable: bool,
    /// TACK is the fastest policy in each of the rounds, if these are comparable: by chance once in
    /// 27 times with three rounds.
    pub(crate) is_clear: bool,
    /// TACK is slower than `delayed:2` in each of the rounds, if these are comparable.
    pub(crate) is_slower: bool,
    /// Airtime that the saved ACKs of a second would take on Wi-Fi, 0 to 1: an estimate.
    pub(crate) airtime_share: f64,
}

/// Judges the figures.
pub(crate) fn diagnose(measured: &Measured) -> Diagnosis {
    let mut findings = Vec::new();
    let mut find = |what, words| findings.push(Finding { what, words });
    let tack = measured.policy("tack");
    let savings = savings(measured);
    let (idle, filled) = (&measured.idle, &measured.filled);
    let bloat = (filled.round_trips.p50_ms - idle.p50_ms).max(0.0);
    let is_steady = measured.policies.iter().all(|it| variation(it) < UNSTEADY);
    let Some(best) = tack.map(|tack| &tack.mean) else {
        return Diagnosis {
            limited_by: Limit::LinkRate,
            findings,
            bufferbloat_ms: bloat,
            is_steady,
            tack: savings,
        };
    };
    let is_bloated =
        bloat >= BLOAT_MS || bloat >= BLOAT_AT_LEAST_MS && bloat >= BLOAT_TIMES * idle.p50_ms;
    if best.processors >= BUSY {
        find(
            Limit::Processor,
            format!(
                "a processor is busy {:.0} % of the time: the machine, not the path, sets the rate",
                best.processors.min(1.0) * 100.0
            ),
        );
    }
    if best.limited.rwnd >= MUCH {
        find(
            Limit::ReceiveWindow,
            format!(
                "the sender waits for the receiver's window {:.0} % of the time: larger buffers (--window) let more be under way",
                best.limited.rwnd * 100.0
            ),
        );
    }
    if is_bloated {
        find(
            Limit::Bufferbloat,
            format!(
                "a round trip takes {:.0} ms at rest and {:.0} ms while a queue is filled by CUBIC: the slowest link ({}) has a queue that holds {:.0} ms of data. Active queue management (CoDel, CAKE) or a shorter queue there helps; BBR keeps it at {:.0} ms",
                idle.p50_ms,
                filled.round_trips.p50_ms,
                rate(filled.goodput_bps),
                bloat,
                best.round_trips.p50_ms,
            ),
        );
    }
    // Queues that overflow lose segments, too. They do not keep CUBIC slow, which fills them;
    // losses at random do.
    let is_lossy = best.loss_share >= LOSSY && filled.loss_share >= LOSSY;
    if is_lossy && !is_bloated && filled.goodput_bps < best.goodput_bps * HINDERED {
        find(
            Limit::RandomLoss,
            format!(
                "{:.1} % of the segments are lost, and not because a queue is full: round trips take {:.0} ms at rest and {:.0} ms under load, and CUBIC, which takes losses for congestion, reaches {} where the path carries {}",
                best.loss_share * 100.0,
                idle.p50_ms,
                filled.round_trips.p50_ms,
                rate(filled.goodput_bps),
                rate(best.goodput_bps)
            ),
        );
    }
    if savings.is_clear && savings.goodput_gain >= GAIN {
        find(
            Limit::SharedMedium,
            format!(
                "fewer acknowledgements make the data faster, by {:.1} %: they take capacity from the data, as on Wi-Fi, where each one competes with it for the channel",
                savings.goodput_gain * 100.0
            ),
        );
    }
    find(
        Limit::LinkRate,
        format!(
            "the data moves at {}: the slowest link of the path has this rate, or it is shared with others",
            rate(largest_goodput(measured))
        ),
    );
    Diagnosis {
        limited_by: findings[0].what,
        findings,
        bufferbloat_ms: bloat,
        is_steady,
        tack: savings,
    }
}

fn savings(measured: &Measured) -> Savings {
    let (Some(tack), Some(delayed)) = (measured.policy("tack"), measured.policy("delayed:2"))
    else {
        return Savings {
            acks_saved_share: 0.0,
            goodput_gain: 0.0,
            is_comparable: false,
            is_clear: false,
            is_slower: false,
            airtime_share: 0.0,
        };
    };
    let is_comparable = tack.rounds_bps.len().min(delayed.rounds_bps.len()) >= ROUNDS;
    let (per_mib, others) = (tack.mean.acks_per_mib, delayed.mean.acks_per_mib);
    let saved_per_second =
        (others - per_mib).max(0.0) * tack.mean.goodput_bps / 8.0 / f64::from(1 << 20);
    Savings {
        acks_saved_share: match others > 0.0 {
            true => 1.0 - per_mib / others,
            false => 0.0,
        },
        goodput_gain: match delayed.mean.goodput_bps > 0.0 {
            true => tack.mean.goodput_bps / delayed.mean.goodput_bps - 1.0,
            false => 0.0,
        },
        is_comparable,
        is_clear: is_comparable
            && measured
                .policies
                .iter()
                .filter(|it| it.policy != "tack")
                .all(|others| is_always_faster(tack, others)),
        is_slower: is_comparable && is_always_faster(delayed, tack),
        airtime_share: saved_per_second * airtime_of_one_ack().as_secs_f64(),
    }
}

/// What the path has carried at best, bits per second.
fn largest_goodput(measured: &Measured) -> f64 {
    let rounds = measured.policies.iter().flat_map(|it| &it.rounds_bps);
    let means = measured.policies.iter().map(|it| it.mean.goodput_bps);
    let all = rounds.copied().chain(means);
    all.fold(measured.filled.goodput_bps, f64::max)
}

/// Round by round, which lie close together in time: a path that changes meanwhile changes both.
fn is_always_faster(policy: &Policy, other: &Policy) -> bool {
    let mut pairs = policy.rounds_bps.iter().zip(&other.rounds_bps);
    pairs.all(|(one, other)| one > other)
}

/// The largest goodput of a round over the smallest one of the same policy, less 1.
fn variation(policy: &Policy) -> f64 {
    let rounds = policy.rounds_bps.iter().copied();
    let (least, most) = (
        rounds.clone().fold(f64::INFINITY, f64::min),
        rounds.fold(0.0, f64::max),
    );
    match least > 0.0 {
        true => most / least - 1.0,
        false => f64::INFINITY,
    }
}

/// A rate for people.
pub(super) fn rate(bps: f64) -> String {
    match bps {
        bps if bps >= 1e9 => format!("{:.2} Gbit/s", bps / 1e9),
        bps if bps >= 1e7 => format!("{:.0} Mbit/s", bps / 1e6),
        bps => format!("{:.2} Mbit/s", bps / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::measure::{Loaded, RoundTrips};

    fn round_trips(p50_ms: f64) -> RoundTrips {
        RoundTrips {
            transactions: 100,
            min_ms: p50_ms * 0.9,
            p50_ms,
            p99_ms: p50_ms * 2.0,
        }
    }

    fn loaded(mbps: f64, p50_ms: f64, acks_per_mib: f64) -> Loaded {
        Loaded {
            goodput_bps: mbps * 1e6,
            acks_per_mib,
            round_trips: round_trips(p50_ms),
            ..Loaded::default()
        }
    }

    /// A wire without faults, 100 Mbit/s and 20 ms.
    fn wire() -> Measured {
        let policy = |policy, acks| Policy {
            policy,
            mean: loaded(95.0, 22.0, acks),
            rounds_bps: vec![94e6, 96e6],
        };
        Measured {
            peer: "peer".into(),
            reverse: false,
            idle: round_trips(20.0),
            filled: loaded(95.0, 35.0, 360.0),
            policies: vec![
                policy("every", 720.0),
                policy("delayed:2", 360.0),
                policy("tack", 9.0),
            ],
        }
    }

    #[test]
    fn a_wire_without_faults_is_limited_by_its_rate() {
        let diagnosis = diagnose(&wire());
        assert_eq!(diagnosis.limited_by, Limit::LinkRate);
        assert!((diagnosis.tack.acks_saved_share - 0.975).abs() < 1e-9);
        assert!(!diagnosis.tack.is_clear);
    }

    #[test]
    fn a_long_queue_is_found_by_the_round_trips() {
        let mut measured = wire();
        measured.filled.round_trips = round_trips(180.0);
        let diagnosis = diagnose(&measured);
        assert_eq!(diagnosis.limited_by, Limit::Bufferbloat);
        assert_eq!(diagnosis.bufferbloat_ms, 160.0);
        // Losses there are those of the queue.
        measured.policies[2].mean.loss_share = 0.02;
        let findings = diagnose(&measured).findings;
        assert!(findings.iter().all(|it| it.what != Limit::RandomLoss));
    }

    #[test]
    fn losses_without_a_queue_are_random() {
        let mut measured = wire();
        measured.policies[2].mean.loss_share = 0.02;
        measured.filled.loss_share = 0.02;
        assert_eq!(diagnose(&measured).limited_by, Limit::LinkRate);
        measured.filled.goodput_bps = 12e6;
        let diagnosis = diagnose(&measured);
        assert_eq!(diagnosis.limited_by, Limit::RandomLoss);
        let words = &diagnosis.findings[0].words;
        assert!(
            words.contains("2.0 %") && words.contains("CUBIC"),
            "{words}"
        );
    }

    #[test]
    fn a_gain_in_every_round_is_that_of_a_shared_medium() {
        let mut measured = wire();
        measured.policies[2].mean.goodput_bps = 110e6;
        measured.policies[2].rounds_bps = vec![109e6, 111e6];
        assert_eq!(diagnose(&measured).limited_by, Limit::SharedMedium);
        // A round in which another policy is faster shows that chance decides.
        measured.policies[2].rounds_bps = vec![93e6, 140e6];
        let diagnosis = diagnose(&measured);
        assert_eq!(diagnosis.limited_by, Limit::LinkRate);
        assert!(!diagnosis.is_steady);
    }

    #[test]
    fn one_round_compares_nothing_and_tack_may_be_slower() {
        use crate::doctor::words::text;
        let mut measured = wire();
        measured.policies[2].mean.goodput_bps = 48.735e6;
        for policy in &mut measured.policies {
            policy.rounds_bps = vec![policy.mean.goodput_bps];
        }
        let diagnosis = diagnose(&measured);
        assert!(!diagnosis.tack.is_clear && !diagnosis.tack.is_slower);
        let words = text(&measured, &diagnosis);
        assert!(words.contains("by -48.7 % in one round"), "{words}");
        assert!(words.contains("cannot be judged"), "{words}");
        assert!(!words.contains("within the variation"), "{words}");
        // The path carried more than TACK did.
        assert!(words.contains("the data moves at 95 Mbit/s"), "{words}");
        for policy in &mut measured.policies {
            policy.rounds_bps = vec![policy.mean.goodput_bps; 2];
        }
        measured.filled.goodput_bps = 97e6;
        let diagnosis = diagnose(&measured);
        let words = text(&measured, &diagnosis);
        assert!(diagnosis.tack.is_slower, "{words}");
        assert!(words.contains("48.7 % slower, in every round"), "{words}");
        assert!(words.contains("the data moves at 97 Mbit/s"), "{words}");
        // One faster round in two does not decide which is faster.
        measured.policies[2].rounds_bps[0] = 96e6;
        let words = text(&measured, &diagnose(&measured));
        assert!(words.contains("within the variation"), "{words}");
    }

    #[test]
    fn a_busy_machine_and_a_small_window_come_first() {
        let mut measured = wire();
        measured.policies[2].mean.limited.rwnd = 0.8;
        measured.filled.round_trips = round_trips(400.0);
        assert_eq!(diagnose(&measured).limited_by, Limit::ReceiveWindow);
        measured.policies[2].mean.processors = 1.2;
        assert_eq!(diagnose(&measured).limited_by, Limit::Processor);
    }
}
