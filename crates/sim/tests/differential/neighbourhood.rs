//! A reason for any difference: the path is a coincidence.
//!
//! A path is looked at because it showed a difference. Fresh seeds take that bias away where they
//! change what happens. Where a blackout at a certain millisecond decides, they bring the same run
//! sixteen times, and the run that selected the path is also its judge. Paths beside it are to the
//! choice of a path what fresh seeds are to the choice of a seed.

use crate::chance::is_as_often_bad;
use crate::figures::Figures;
use crate::judge::{Flag, part, shows};
use crate::measure::Comparison;
use crate::moments::{HANDSHAKE, all_blackouts};
use crate::paths::{LATEST_BEGINNING, Path, Work};
use crate::runs::{self, FRESH};

/// Delays differ from the path's by up to so much of it.
const STRETCH: f64 = 0.1;
/// What happens at a moment happens up to so many round trips sooner or later, or so many seconds
/// if that is more: what follows a blackout is decided by round trips and by timeouts, which take
/// 0.2 s at least.
const SHIFT: f64 = 2.0;
const LEAST_SHIFT: f64 = 0.2;
/// Orders of the sixteen shifts, one for each moment of a path.
const STEPS: [u64; 4] = [7, 11, 13, 5];
/// A run counts as bad if its figure is no better than TACK's on the flagged path, or better by
/// less than this share of it.
const NEAR: f64 = 0.1;
/// How the keys of a path begin that say when its MTU shrinks.
const NARROWING: &str = "mtu_black_hole_from";
/// How the tables of a path begin that say when a host sleeps.
const SUSPENSION: &str = "[wired.suspension";

/// Sixteen paths beside this one, with delays up to a tenth shorter and longer, with blackouts and
/// the shrinking of the MTU up to two round trips or 0.2 s sooner and later, with other moments at
/// which hosts sleep and, where the second flow begins later, with other beginnings. On these
/// together the difference must be gone. That is not enough, because TACK may fail rarely where the
/// plain policy never does, or less often: some plain run must fare no better than TACK does here,
/// and of TACK's own runs there no more than chance allows (Fisher's exact test at 10 %).
pub(crate) fn coincidence(
    path: &Path,
    comparison: Comparison,
    flag: Flag,
    tack: &Figures,
) -> Option<String> {
    let [tacks, plains] = comparison.variants().map(|variant| {
        (0..FRESH)
            .map(|nth| runs::with_keys(path, &variant, nth, neighbour(path, nth)))
            .collect::<Vec<_>>()
    });
    let [tack_beside, plain_beside] = [&tacks, &plains].map(|runs| Figures::on_average(runs));
    let is_there = |flag| shows(flag, path, &tack_beside, &plain_beside);
    // TACK may be slow on the paths beside this one. Then its hang here is not chance.
    if is_there(flag) || flag == Flag::Hang && is_there(Flag::Slow) {
        return None;
    }
    let [own, others] = as_bad(path, flag, tack, [&tacks, &plains]);
    let [tested, compared] = comparison.names();
    (others > 0 && is_as_often_bad(own, others, plains.len())).then(|| {
        format!(
            "chance: on {} paths beside this one {tested} has {} and {compared} {}. {own} runs of {tested} and {others} of {compared} are as bad as \
             the run of {tested} here, within a tenth",
            plains.len(),
            told(path, flag, &tack_beside),
            told(path, flag, &plain_beside),
        )
    })
}

/// A difference is chance only if it is less than this part of the difference that raises a flag.
const HALF: f64 = 0.5;

/// With [`runs::FURTHER`] other seeds together the difference must be gone: this flag is not
/// raised, by means, and with medians of speed and time, and means show less than half of it. As on
/// other paths TACK must not fail rarely where the plain policy never does, or less often.
pub(crate) fn other_seeds(
    path: &Path,
    comparison: Comparison,
    flag: Flag,
    tack: &Figures,
) -> Option<String> {
    let both = comparison.variants();
    let [tacks, plains] = both.map(|variant| runs::further(path, &variant));
    let [own, others] = excused(path, flag, tack, &tacks, &plains)?;
    let [tested, compared] = comparison.names();
    let told = |runs| told(path, flag, &Figures::on_average(runs));
    Some(format!(
        "chance: with {} further seeds {tested} has {} and {compared} {}. {own} runs of {tested} and {others} of {compared} are as bad as the runs \
         that were flagged, within a tenth",
        plains.len(),
        told(&tacks),
        told(&plains),
    ))
}

/// How many runs of either side are as bad as `tack`, if these runs excuse it.
fn excused(
    path: &Path,
    flag: Flag,
    tack: &Figures,
    tacks: &[Figures],
    plains: &[Figures],
) -> Option<[usize; 2]> {
    for join in [Figures::on_average, Figures::together] {
        let (tack, plain) = (join(tacks), join(plains));
        let is_there = |flag| shows(flag, path, &tack, &plain);
        if is_there(flag) || flag == Flag::Hang && is_there(Flag::Slow) {
            return None;
        }
    }
    let [mean_tack, mean_plain] = [tacks, plains].map(Figures::on_average);
    let is_far = part(flag, path, &mean_tack, &mean_plain) < HALF;
    let [own, others] = as_bad(path, flag, tack, [tacks, plains]);
    let is_chance = others > 0 && is_as_often_bad(own, others, plains.len());
    (is_chance && is_far).then_some([own, others])
}

/// How many runs of either side are as bad as `tack`, or nearly.
fn as_bad(path: &Path, flag: Flag, tack: &Figures, sides: [&[Figures]; 2]) -> [usize; 2] {
    let here = badness(path, flag, tack);
    let least = here - NEAR * here.abs();
    sides.map(|runs| {
        let bad = |run: &&Figures| badness(path, flag, run) >= least;
        runs.iter().filter(bad).count()
    })
}

/// The keys of neighbour `nth`.
fn neighbour(path: &Path, nth: u64) -> Vec<String> {
    // Multiples modulo a prime (17): each quantity runs through its sixteen values in its own
    // order, so that no two of them are correlated.
    let share = |step: u64| ((nth + 1) * step % (FRESH + 1) - 1) as f64 / (FRESH - 1) as f64;
    let stretch = 1.0 + STRETCH * (2.0 * share(1) - 1.0);
    // Each moment shifts by itself: how far two of them are apart decides as well.
    let mut steps = STEPS.iter().cycle();
    let mut shift = || {
        let step = steps.next().copied().unwrap_or_default();
        (SHIFT * path.rtt).max(LEAST_SHIFT) * (2.0 * share(step) - 1.0)
    };
    let micros = |seconds: f64| format!("{:.0}us", (1e6 * seconds).max(1.0));
    let mut keys = vec![format!(
        "wired.delay={}",
        micros(path.delay_us as f64 / 1e6 * stretch)
    )];
    for (key, start, _) in all_blackouts(path) {
        // That of the handshake stays where the handshake is.
        let start = if start > HANDSHAKE * path.rtt {
            (start + shift()).max(HANDSHAKE * path.rtt)
        } else {
            start * stretch
        };
        keys.push(format!("{key}={}", micros(start)));
    }
    for line in path.toml.lines().filter(|line| line.starts_with(NARROWING)) {
        let start = line.split_once(" = \"").and_then(|(key, value)| {
            let micros: f64 = value.strip_suffix("us\"")?.parse().ok()?;
            Some((key, micros / 1e6))
        });
        let (key, start) = start.expect("the MTU shrinks at a number of microseconds");
        keys.push(format!("wired.{key}={}", micros(start + shift())));
    }
    let mut steps_of_sleep = [9, 15].into_iter();
    let mut lines = path.toml.lines();
    while let Some(table) = lines.next() {
        let side = table.strip_prefix(SUSPENSION);
        let Some(side) = side.and_then(|end| end.strip_suffix(']')) else {
            continue;
        };
        // Anywhere in the period after the handshake.
        let period = lines.nth(1).and_then(|line| {
            let value = line.strip_prefix("period = \"")?;
            value.strip_suffix("us\"")?.parse::<f64>().ok()
        });
        let period = period.expect("a host sleeps every so many microseconds") / 1e6;
        let start = HANDSHAKE * path.rtt + period * share(steps_of_sleep.next().unwrap_or(9));
        keys.push(format!("wired.suspension{side}.start={}", micros(start)));
    }
    if path.begins_later {
        let start = LATEST_BEGINNING * share(3);
        keys.push(format!("flow.1.start={}", micros(start)));
    }
    keys
}

/// What `flag` is about: more is worse.
fn badness(path: &Path, flag: Flag, figures: &Figures) -> f64 {
    match (flag, path.work) {
        (Flag::Retx, _) => figures.repeated_share(),
        (Flag::Acks, _) => figures.acks_per_byte(),
        (Flag::Rto, _) => figures.timeouts,
        (_, Work::Transfer) => figures.completion,
        (_, Work::Bulk) => -figures.goodput,
        (_, Work::Requests) => -figures.answers,
        (_, Work::Video) => figures.still,
    }
}

fn told(path: &Path, flag: Flag, figures: &Figures) -> String {
    match (flag, path.work) {
        (Flag::Retx, _) => format!("{:.1} % again", 100.0 * figures.repeated_share()),
        (Flag::Acks, _) => format!("{:.0} ACKs per MB", 1e6 * figures.acks_per_byte()),
        (Flag::Rto, _) => format!("{:.1} timeouts", figures.timeouts),
        (_, Work::Transfer) => format!("{:.2} s", figures.completion),
        (_, Work::Bulk) => format!("{:.2} Mbit/s", figures.goodput / 1e6),
        (_, Work::Requests) => format!("{:.0} answers", figures.answers),
        (_, Work::Video) => format!("{:.2} of the time still", figures.still),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::paths::path;

    /// Runs of a bulk path: so many of `all` have this goodput, the others 100.
    fn runs_of(bad: usize, goodput: f64, all: usize) -> Vec<Figures> {
        let run = |goodput: f64| Figures {
            goodput,
            slower: goodput,
            faster: goodput,
            bytes: goodput,
            ..Figures::default()
        };
        let bad = std::iter::repeat_n(run(goodput), bad);
        bad.chain(std::iter::repeat(run(100.0))).take(all).collect()
    }

    #[test]
    fn other_seeds_excuse_what_happens_to_both_and_nothing_else() {
        let path = Path {
            work: Work::Bulk,
            has_alike_neighbour: false,
            ..path(50_266)
        };
        let all = 48;
        let excused = |flag, here: f64, own: (usize, f64), others: (usize, f64)| {
            let tack = &runs_of(1, here, 1)[0];
            let [tacks, plains] = [own, others].map(|(bad, goodput)| runs_of(bad, goodput, all));
            excused(&path, flag, tack, &tacks, &plains)
        };
        let slow = |own, others| excused(Flag::Slow, 50.0, own, others);
        assert_eq!(slow((6, 50.0), (6, 50.0)), Some([6, 6]));
        assert_eq!(slow((6, 50.0), (4, 50.0)), Some([6, 4]));
        // It fails in a few runs, and the plain policy in none, or in fewer.
        assert_eq!(slow((14, 0.0), (0, 0.0)), None);
        assert_eq!(slow((24, 50.0), (0, 0.0)), None);
        assert_eq!(slow((12, 50.0), (2, 50.0)), None);
        assert_eq!(excused(Flag::Hang, 1.0, (12, 1.0), (0, 0.0)), None);
        // More than half of the way to the flag, though as often.
        assert_eq!(slow((48, 75.0), (1, 50.0)), None);
    }

    #[test]
    fn a_host_sleeps_at_another_moment_in_each() {
        let path = path(176_313);
        let all = (0..FRESH).flat_map(|nth| neighbour(&path, nth));
        let moments: HashSet<_> = all
            .filter(|key| key.starts_with("wired.suspension_reverse.start="))
            .collect();
        assert_eq!(moments.len(), FRESH as usize);
    }

    #[test]
    fn neighbours_differ_in_each_moment_but_that_of_the_handshake() {
        // Two blackouts of the way back, of which the second one is that of the handshake, and one
        // of the other way.
        let path = path(153_921);
        let all: Vec<_> = (0..FRESH).map(|nth| neighbour(&path, nth)).collect();
        let of = |key: &str| -> Vec<u64> {
            let value = |keys: &Vec<String>| {
                let found = keys.iter().find_map(|one| one.strip_prefix(key));
                found.and_then(|value| value.strip_suffix("us")?.parse().ok())
            };
            all.iter().filter_map(value).collect()
        };
        let moments = ["wired.blackout.0.start=", "wired.blackout_reverse.0.start="].map(of);
        for (moments, at) in moments.iter().zip([4_451_314, 3_792_664_u64]) {
            let different: HashSet<_> = moments.iter().collect();
            assert_eq!(different.len(), FRESH as usize);
            let most = (2e6 * SHIFT * path.rtt / 2.0) as u64 + 1;
            assert!(moments.iter().all(|moment| moment.abs_diff(at) <= most));
        }
        let apart: HashSet<_> = moments[0]
            .iter()
            .zip(&moments[1])
            .map(|(one, other)| *one as i64 - *other as i64)
            .collect();
        assert_eq!(apart.len(), FRESH as usize, "each shifts by itself");
        assert_eq!(of("wired.blackout_reverse.1.start="), [1; FRESH as usize]);
        let delays = of("wired.delay=");
        assert!(delays.is_sorted());
        for (delay, tenths) in [(delays.first(), 9), (delays.last(), 11)] {
            let expected = path.delay_us * tenths / 10;
            assert!(delay.is_some_and(|delay| delay.abs_diff(expected) <= 1));
        }
    }
}
