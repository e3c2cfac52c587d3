//! Which differences between two runs of a path are failures of TACK.

use std::fmt;

use super::figures::Figures;
use super::paths::{Path, Work};

/// What is wrong with TACK on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flag {
    /// An invariant does not hold, with either policy.
    Broken,
    /// A sender did not get on though the path delivered, with either policy.
    Stall,
    /// The transfer never ended though the plain policy's did, or next to nothing came through.
    Hang,
    /// Under 70 % of the plain policy's speed.
    Slow,
    /// Many more segments repeated bytes.
    Retx,
    /// More acknowledgements for each byte than the policy that is to be saved.
    Acks,
    /// More retransmission timeouts.
    Rto,
    /// More than three times the processor time.
    Cpu,
}

pub(crate) const FLAGS: [Flag; 8] = [
    Flag::Broken,
    Flag::Stall,
    Flag::Hang,
    Flag::Slow,
    Flag::Retx,
    Flag::Acks,
    Flag::Rto,
    Flag::Cpu,
];

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Broken => "BROKEN",
            Self::Stall => "STALL",
            Self::Hang => "HANG",
            Self::Slow => "SLOW",
            Self::Retx => "RETX",
            Self::Acks => "ACKS",
            Self::Rto => "RTO",
            Self::Cpu => "CPU",
        };
        f.pad(name)
    }
}

impl Flag {
    /// One run is enough: chance does not excuse it, where it is not chance that `plain` fared
    /// better, and no neighbour that is alike takes nearly all of what it should have.
    pub(crate) fn is_certain(self, path: &Path, tack: &Figures, plain: &Figures) -> bool {
        match self {
            Self::Broken | Self::Stall => true,
            Self::Hang => {
                let is_still = tack.bytes < NOTHING * plain.bytes;
                !is_starved(plain)
                    && !is_backed_off(path, plain)
                    && (is_still || !path.has_alike_neighbour)
            }
            _ => false,
        }
    }
}

/// With the plain policy at both, one of two alike flows is next to still: the path starves one of
/// any two. Which one differs from seed to seed, so that the slower one is the measure, whichever
/// of the two it is. It is about queues that are so full of one flow's acknowledgements that the
/// other's hardly get in: on path 50266 `delayed:2` starves beside `every` as TACK does beside
/// `delayed:2`, and the slower of two flows of `delayed:2` has 0.1 to 11 Mbit/s of 64.
fn is_starved(plain: &Figures) -> bool {
    plain.slower < STARVED * plain.faster
}

/// The plain policy got there, but waited so long for its timer that with two more losses in a row,
/// after twice and four times as long, it would not have: that it ended and TACK did not is chance.
/// Most of several seeds must show it.
fn is_backed_off(path: &Path, plain: &Figures) -> bool {
    path.work == Work::Transfer && 3.0 * plain.no_progress > path.duration
}

/// Least share of the plain policy's speed.
const SPEED: f64 = 0.7;
/// Share of segments, as a difference.
const REPEATED: f64 = 0.06;
const ACKS: f64 = 1.3;
const PROCESSOR: f64 = 3.0;
/// Share of the plain policy's bytes below which next to nothing came through.
const NOTHING: f64 = 0.01;
/// Share of the faster flow's speed below which the slower one of two alike flows is starved.
const STARVED: f64 = 0.1;

/// The flags of a path: `tack` against `plain`, single runs of one seed or the same seeds together.
/// Each threshold has an allowance in absolute terms besides, so that short transfers are not
/// judged by a segment or two.
pub(crate) fn judge(path: &Path, tack: &Figures, plain: &Figures) -> Vec<Flag> {
    if tack.stalls + plain.stalls > 0 {
        return vec![Flag::Stall];
    }
    if tack.broken.is_some() || plain.broken.is_some() {
        return vec![Flag::Broken];
    }
    let mut flags = Vec::new();
    let speed = if is_starved(plain) {
        plain.slower
    } else {
        plain.goodput
    };
    let hangs = match path.work {
        Work::Transfer => tack.unfinished && !plain.unfinished,
        Work::Bulk => tack.goodput < 0.05 * speed,
        Work::Requests => tack.answers < 0.05 * plain.answers,
        Work::Video => tack.bytes < 0.05 * plain.bytes,
    };
    let slow = match path.work {
        Work::Transfer => tack.completion > plain.completion / SPEED + 0.25 + 2.0 * path.rtt,
        Work::Bulk => tack.goodput < SPEED * speed,
        Work::Requests => tack.answers < SPEED * plain.answers - 3.0,
        Work::Video => tack.still > plain.still + 0.1,
    };
    let retx = tack.repeated_share() > plain.repeated_share() + REPEATED
        && tack.repeated > plain.repeated + 10.0;
    let acks = if plain.bytes > 0.0 {
        exceeds(tack, plain.acks_per_byte())
    } else {
        tack.acks > ACKS * 0.5 * tack.data + 20.0
    };
    let rto = tack.timeouts > 2.0 * plain.timeouts + 3.0;
    let cpu = {
        // For the same bytes: what is faster may work more.
        let (tack, plain) = (tack.processor * plain.bytes, plain.processor * tack.bytes);
        tack > PROCESSOR * plain
    } && tack.processor > plain.processor + 0.1;
    for (is_so, flag) in [
        (hangs, Flag::Hang),
        (slow && !hangs, Flag::Slow),
        (retx, Flag::Retx),
        (acks, Flag::Acks),
        (rto, Flag::Rto),
        (cpu, Flag::Cpu),
    ] {
        if is_so {
            flags.push(flag);
        }
    }
    flags
}

/// How far figures are on the way to what `flag` stands for: nothing where TACK fares no worse than
/// the plain policy, one where the flag is raised, allowances in absolute terms apart.
pub(crate) fn part(flag: Flag, path: &Path, tack: &Figures, plain: &Figures) -> f64 {
    match flag {
        Flag::Retx => (tack.repeated_share() - plain.repeated_share()) / REPEATED,
        Flag::Acks => {
            let more = tack.acks_per_byte() / plain.acks_per_byte();
            (more - 1.0) / (ACKS - 1.0)
        }
        Flag::Rto => (tack.timeouts - plain.timeouts) / (plain.timeouts + 3.0),
        _ if path.work == Work::Video => (tack.still - plain.still) / 0.1,
        _ => (1.0 - gain(path, tack, plain)) / (1.0 - SPEED),
    }
}

/// True where the difference that `flag` stands for is there. A run that hangs, stalls or breaks an
/// invariant shows no less: nothing is gone where it does.
pub(crate) fn shows(flag: Flag, path: &Path, tack: &Figures, plain: &Figures) -> bool {
    let is_worse = |raised: &Flag| matches!(raised, Flag::Hang | Flag::Stall | Flag::Broken);
    judge(path, tack, plain)
        .iter()
        .any(|raised| *raised == flag || is_worse(raised))
}

/// TACK sent more acknowledgements than so many for each byte, with an allowance: an answer
/// acknowledges its request and a request the last answer. The plain policy then sends next to none
/// by themselves, and TACK, which has more to say than a number, an occasional one.
///
/// Where the plain policy delivers nothing, it has no such number, and the allowance is one for two
/// segments, which is what it sends by its rule.
pub(crate) fn exceeds(tack: &Figures, acks_per_byte: f64) -> bool {
    let allowed = 20.0 + 0.5 * tack.answers;
    tack.acks > ACKS * acks_per_byte * tack.bytes + allowed
}

/// TACK sent more acknowledgements for each segment than another run, with the same allowance.
pub(crate) fn exceeds_by_segment(tack: &Figures, other: &Figures) -> bool {
    let acks_per_segment = other.acks / other.data.max(1.0);
    tack.acks > ACKS * acks_per_segment * tack.data + 20.0 + 0.5 * tack.answers
}

/// How many times as fast as `plain`. A video has a rate of its own, which a path may not give.
pub(crate) fn gain(path: &Path, tack: &Figures, plain: &Figures) -> f64 {
    let (tack, plain) = match path.work {
        Work::Transfer => (plain.completion, tack.completion),
        Work::Bulk => (tack.goodput, plain.goodput),
        Work::Requests => (tack.answers, plain.answers),
        Work::Video => (tack.bytes, plain.bytes),
    };
    if plain > 0.0 { tack / plain } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::super::paths::path;
    use super::*;

    /// A path like `number`'s with this work, and a neighbour that is alike.
    fn bulk() -> Path {
        Path {
            work: Work::Bulk,
            has_alike_neighbour: true,
            ..path(50_266)
        }
    }

    fn shares(own: f64, slower: f64, faster: f64) -> Figures {
        Figures {
            goodput: own,
            slower,
            faster,
            ..Figures::default()
        }
    }

    #[test]
    fn where_the_plain_policy_starves_as_well_the_slower_one_is_the_measure() {
        let path = bulk();
        let starved = shares(60.0, 2.0, 60.0);
        // As fast as the flow that starves: nothing. Slower than that, it is slow; next to still,
        // it hangs all the same.
        for (own, flags) in [
            (1.9, vec![]),
            (0.5, vec![Flag::Slow]),
            (0.05, vec![Flag::Hang]),
        ] {
            assert_eq!(
                judge(&path, &shares(own, own, 60.0), &starved),
                flags,
                "{own}"
            );
        }
        assert!(!Flag::Hang.is_certain(&path, &starved, &starved));
        // Where two plain flows share, it needs a reason; alone there is none.
        let fair = shares(30.0, 25.0, 30.0);
        assert_eq!(judge(&path, &shares(1.0, 1.0, 60.0), &fair), [Flag::Hang]);
        let moved = |bytes| Figures {
            bytes,
            ..shares(30.0, 25.0, 30.0)
        };
        assert!(!Flag::Hang.is_certain(&path, &moved(2.0), &moved(100.0)));
        assert!(Flag::Hang.is_certain(&path, &moved(0.5), &moved(100.0)));
        let alone = Path {
            has_alike_neighbour: false,
            ..path
        };
        assert!(Flag::Hang.is_certain(&alone, &fair, &fair));
    }

    #[test]
    fn a_plain_transfer_that_nearly_did_not_end_makes_a_hang_uncertain() {
        let path = Path {
            work: Work::Transfer,
            duration: 300.0,
            ..path(50_364)
        };
        for (no_progress, is_certain) in [(1.0, true), (90.0, true), (122.0, false)] {
            let plain = Figures {
                no_progress,
                ..Figures::default()
            };
            assert_eq!(Flag::Hang.is_certain(&path, &plain, &plain), is_certain);
        }
    }
}
