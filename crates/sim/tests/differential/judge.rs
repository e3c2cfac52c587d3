//! Which differences between two runs of a path are failures of TACK.

use std::fmt;

use crate::figures::Figures;
use crate::paths::{Path, Work};

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
    /// One run is enough: chance does not excuse it.
    pub(crate) fn is_certain(self) -> bool {
        matches!(self, Self::Broken | Self::Stall | Self::Hang)
    }
}

/// Least share of the plain policy's speed.
const SPEED: f64 = 0.7;
/// Share of segments, as a difference.
const REPEATED: f64 = 0.06;
const ACKS: f64 = 1.3;
const PROCESSOR: f64 = 3.0;

/// The flags of a path: `tack` against `plain`, single runs of one seed or the same seeds together. Each threshold has an
/// allowance in absolute terms besides, so that short transfers are not judged by a segment or two.
pub(crate) fn judge(path: &Path, tack: &Figures, plain: &Figures) -> Vec<Flag> {
    if tack.stalls + plain.stalls > 0 {
        return vec![Flag::Stall];
    }
    if tack.broken.is_some() || plain.broken.is_some() {
        return vec![Flag::Broken];
    }
    let mut flags = Vec::new();
    let hangs = match path.work {
        Work::Transfer => tack.unfinished && !plain.unfinished,
        Work::Bulk => tack.goodput < 0.05 * plain.goodput,
        Work::Requests => tack.answers < 0.05 * plain.answers,
        Work::Video => tack.bytes < 0.05 * plain.bytes,
    };
    let slow = match path.work {
        Work::Transfer => tack.completion > plain.completion / SPEED + 0.25 + 2.0 * path.rtt,
        Work::Bulk => tack.goodput < SPEED * plain.goodput,
        Work::Requests => tack.answers < SPEED * plain.answers - 3.0,
        Work::Video => tack.still > plain.still + 0.1,
    };
    let retx = tack.repeated_share() > plain.repeated_share() + REPEATED
        && tack.repeated > plain.repeated + 10.0;
    let acks = exceeds(tack, plain.acks_per_byte());
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

/// TACK sent more acknowledgements than so many for each byte, with an allowance: an answer acknowledges its request and a
/// request the last answer. The plain policy then sends next to none by themselves, and TACK, which has more to say than a
/// number, an occasional one.
pub(crate) fn exceeds(tack: &Figures, acks_per_byte: f64) -> bool {
    let allowed = 20.0 + 0.5 * tack.answers;
    tack.acks > ACKS * acks_per_byte * tack.bytes + allowed
}
