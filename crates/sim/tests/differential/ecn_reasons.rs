//! Why a difference may come from what a middlebox does to ECN.

use crate::figures::Figures;
use crate::judge::{Flag, gain, shows};
use crate::measure::{Comparison, PLAIN, Variant};
use crate::paths::Path;
use crate::runs;

/// How the keys of a path begin that say which flags a middlebox clears.
const CLEARED_FLAGS: &str = "clear_ecn_flags";

/// The reason of a difference between accurate and classic feedback.
pub(crate) fn of_feedback(
    path: &Path,
    flag: Flag,
    accurate: &Figures,
    classic: &Figures,
) -> Option<String> {
    match flag {
        Flag::Acks => marks(accurate, classic),
        Flag::Slow => no_feedback(path, accurate, classic).or_else(|| false_marks(path, accurate)),
        _ => None,
    }
}

/// With accurate feedback a mark after a packet without one is acknowledged at once (RFC 9768
/// §3.2.2.5.1): there must be no more acknowledgements beyond those of classic feedback than marks.
fn marks(accurate: &Figures, classic: &Figures) -> Option<String> {
    let beyond = accurate.acks - classic.acks_per_byte() * accurate.bytes;
    (beyond <= accurate.path_marks).then(|| {
        format!(
            "{beyond:.0} more acknowledgements for {:.0} marks",
            accurate.path_marks
        )
    })
}

/// A middlebox clears the flags by which classic feedback is agreed on, so there is none, and no
/// node marks what the sender sends. Where the flags pass, it must be marked, and as slow as with
/// accurate feedback.
fn no_feedback(path: &Path, accurate: &Figures, classic: &Figures) -> Option<String> {
    let is_without = classic.path_marks == 0.0 && accurate.path_marks > 0.0;
    if !path.toml.contains(CLEARED_FLAGS) || !is_without {
        return None;
    }
    let [there, classic_there] = where_flags_pass(path);
    let is_alike =
        classic_there.path_marks > 0.0 && !shows(Flag::Slow, path, &there, &classic_there);
    is_alike.then(|| {
        format!(
            "without its flags classic feedback is not agreed on, and nothing is marked; where they pass, accurate feedback is \
             {:.2} times as fast",
            gain(path, &there, &classic_there),
        )
    })
}

/// A middlebox clears a part of the counter, which then reports marks that no node made. Where the
/// flags pass, the difference must be gone.
fn false_marks(path: &Path, accurate: &Figures) -> Option<String> {
    if !path.toml.contains(CLEARED_FLAGS) || accurate.path_marks > 0.0 {
        return None;
    }
    let [there, classic_there] = where_flags_pass(path);
    let is_gone = !shows(Flag::Slow, path, &there, &classic_there);
    is_gone.then(|| {
        format!(
            "a cleared counter reports marks, and nothing is marked; where the flags pass, accurate feedback is {:.2} times as fast",
            gain(path, &there, &classic_there),
        )
    })
}

/// Accurate and classic feedback on the path without the middlebox that clears flags.
fn where_flags_pass(path: &Path) -> [Figures; 2] {
    let is_other_key = |line: &&str| !line.starts_with(CLEARED_FLAGS);
    let keys: Vec<_> = path.toml.lines().filter(is_other_key).collect();
    let without = Path {
        toml: keys.join("\n"),
        ..path.clone()
    };
    Comparison::AccurateEcn
        .variants()
        .map(|variant| runs::fresh(&without, &variant))
}

/// A middlebox clears a part of the counter of accurate feedback, which then reports marks that no
/// node made, and the sender of the plain policy leaves slow start before the queue overflows. With
/// classic feedback, which TACK has here, the difference must be gone.
pub(crate) fn cleared_counter(path: &Path, flag: Flag) -> Option<String> {
    if !path.accurate_ecn || !path.toml.contains(CLEARED_FLAGS) {
        return None;
    }
    let [tack, plain] = Variant::both().map(|mut variant| {
        variant.flow_keys.push("accurate_ecn=off");
        runs::fresh(path, &variant)
    });
    let is_gone = !shows(flag, path, &tack, &plain);
    is_gone.then(|| {
        format!(
            "a cleared counter reports marks to the sender of {PLAIN}: {:.1} % again and {:.1} % with classic feedback",
            100.0 * tack.repeated_share(),
            100.0 * plain.repeated_share(),
        )
    })
}
