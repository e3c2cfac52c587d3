//! Which seeds a path is run with.

use crate::figures::Figures;
use crate::measure::Variant;
use crate::paths::{LATEST_BEGINNING, Path, Work};

/// Seeds of a path that differs at its first one.
pub(crate) const FIRST: u64 = 5;
/// Seeds that decide about one that differs with those together. A path is looked at because its
/// first seeds differed, so those say little about what it does: among thousands of paths with
/// chance in them some differ five times.
pub(crate) const FRESH: u64 = 16;

/// Seeds beyond all of these, for a difference that has no other reason. Of thousands of paths with
/// chance in them some differ with all seeds before.
pub(crate) const FURTHER: u64 = 48;

/// Seed number `nth` of a path: the first is the one that the scenario names.
pub(crate) fn seed(path: &Path, nth: u64) -> u64 {
    path.number + 1_000_000 * nth
}

/// The fresh seeds together.
pub(crate) fn fresh(path: &Path, variant: &Variant) -> Figures {
    let runs: Vec<_> = (FIRST..FIRST + FRESH)
        .map(|nth| Figures::measure(path, variant, seed(path, nth)))
        .collect();
    Figures::together(&runs)
}

/// The further seeds, one by one.
pub(crate) fn further(path: &Path, variant: &Variant) -> Vec<Figures> {
    let first = FIRST + FRESH;
    (first..first + FURTHER)
        .map(|nth| Figures::measure(path, variant, seed(path, nth)))
        .collect()
}

/// The fresh seeds, each with another delay, from nine to eleven tenths of the path's, and, where
/// the second flow begins later, with another beginning of it: all that the search may draw.
pub(crate) fn beside(path: &Path, variant: &Variant) -> Vec<Figures> {
    (0..FRESH)
        .map(|nth| {
            let delay = path.delay_us * (18 * (FRESH - 1) + 4 * nth) / (20 * (FRESH - 1));
            let mut keys = vec![format!("wired.delay={delay}us")];
            if path.begins_later {
                // In another order, so that long delays and late beginnings do not go together.
                let share = (nth * 7 % FRESH) as f64 / FRESH as f64;
                let start = (1e6 * LATEST_BEGINNING * share) as u64;
                keys.push(format!("flow.1.start={start}us"));
            }
            with_keys(path, variant, nth, keys)
        })
        .collect()
}

/// The path with these keys and its fresh seed number `nth`.
pub(crate) fn with_keys(path: &Path, variant: &Variant, nth: u64, keys: Vec<String>) -> Figures {
    let mut variant = variant.clone();
    variant.path_keys.extend(keys);
    Figures::measure(path, &variant, seed(path, FIRST + nth))
}

/// Runs with the path's fresh seeds, each with other keys: `keys` has them for a share from 0 to 1.
pub(crate) fn at_moments(
    path: &Path,
    variant: &Variant,
    keys: impl Fn(f64) -> Vec<String>,
) -> Vec<Figures> {
    (0..FRESH)
        .map(|nth| {
            let share = nth as f64 / (FRESH - 1) as f64;
            with_keys(path, variant, nth, keys(share))
        })
        .collect()
}

/// Chance makes the plain policy hang as well: with one of the fresh seeds it delivers no more than
/// `hung` did. A transfer ends or does not: of the fresh seeds the plain policy must leave some
/// without an end, and TACK one more at most.
pub(crate) fn happens_to(path: &Path, both: &[Variant; 2], hung: &Figures) -> bool {
    let all = |variant: &Variant| -> Vec<_> {
        (FIRST..FIRST + FRESH)
            .map(|nth| Figures::measure(path, variant, seed(path, nth)))
            .collect()
    };
    let [tack, plain] = both;
    if path.work != Work::Transfer {
        return all(plain).iter().any(|run| run.bytes <= hung.bytes);
    }
    let without_end = |variant| all(variant).iter().filter(|run| run.unfinished).count();
    let others = without_end(plain);
    others > 0 && without_end(tack) <= others + 1
}

/// The fresh seeds in a run of twice the time; a transfer, which ends when it is through, has twice
/// the bytes.
pub(crate) fn longer(path: &Path, mut variant: Variant) -> Figures {
    let micros = (2e6 * path.duration) as u64;
    variant.path_keys.push(format!("duration={micros}us"));
    for (flow, keys) in path.toml.split("[[flow]]").skip(1).enumerate() {
        let mut lines = keys.lines();
        let bytes = lines.find_map(|line| line.strip_prefix("bytes = \"")?.strip_suffix("B\""));
        if let Some(bytes) = bytes.and_then(|bytes| bytes.parse::<u64>().ok()) {
            let twice = 2 * bytes;
            variant
                .path_keys
                .push(format!("flow.{flow}.bytes={twice}B"));
        }
    }
    fresh(path, &variant)
}
