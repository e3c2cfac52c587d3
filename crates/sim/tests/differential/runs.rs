//! Which seeds a path is run with.

use crate::figures::Figures;
use crate::judge::{Flag, judge};
use crate::measure::{self, Comparison, Variant};
use crate::paths::{LATEST_BEGINNING, Path, Work};
use crate::reasons::reason;

/// Seeds of a path that differs at its first one.
const FIRST: u64 = 5;
/// Seeds that decide about one that differs with those together. A path is looked at because its
/// first seeds differed, so those say little about what it does: among thousands of paths with
/// chance in them some differ five times.
pub(crate) const FRESH: u64 = 16;

/// A path that was run.
pub(crate) struct Verdict {
    pub(crate) path: Path,
    /// What was compared: `tack` below is what was tested.
    pub(crate) comparison: Comparison,
    /// The seed that shows it; the first of several where they do together.
    pub(crate) seed: u64,
    pub(crate) flags: Vec<Flag>,
    /// Flags that have a reason, and the reason.
    pub(crate) explained: Vec<(Flag, String)>,
    pub(crate) tack: Figures,
    pub(crate) plain: Figures,
}

/// Seed number `nth` of a path: the first is the one that the scenario names.
fn seed(path: &Path, nth: u64) -> u64 {
    path.number + 1_000_000 * nth
}

/// The fresh seeds together.
pub(crate) fn fresh(path: &Path, variant: &Variant) -> Figures {
    let runs: Vec<_> = (FIRST..FIRST + FRESH)
        .map(|nth| Figures::measure(path, variant, seed(path, nth)))
        .collect();
    Figures::together(&runs)
}

/// The fresh seeds, each with another delay, from nine to eleven tenths of the path's, and, where
/// the second flow begins later, with another beginning of it: all that the search may draw.
pub(crate) fn beside(path: &Path, variant: &Variant) -> Vec<Figures> {
    (0..FRESH)
        .map(|nth| {
            let delay = path.delay_us * (18 * (FRESH - 1) + 4 * nth) / (20 * (FRESH - 1));
            let mut variant = variant.clone();
            variant.path_keys.push(format!("wired.delay={delay}us"));
            if path.begins_later {
                // In another order, so that long delays and late beginnings do not go together.
                let share = (nth * 7 % FRESH) as f64 / FRESH as f64;
                let start = (1e6 * LATEST_BEGINNING * share) as u64;
                variant.path_keys.push(format!("flow.1.start={start}us"));
            }
            Figures::measure(path, &variant, seed(path, FIRST + nth))
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
            let mut variant = variant.clone();
            let share = nth as f64 / (FRESH - 1) as f64;
            variant.path_keys.extend(keys(share));
            Figures::measure(path, &variant, seed(path, FIRST + nth))
        })
        .collect()
}

/// Chance makes another variant hang as well: with one of the fresh seeds it delivers no more than
/// `hung` did. A transfer ends or does not.
fn happens_to(path: &Path, variant: &Variant, hung: &Figures) -> bool {
    path.work != Work::Transfer
        && (FIRST..FIRST + FRESH)
            .map(|nth| Figures::measure(path, variant, seed(path, nth)))
            .any(|run| run.bytes <= hung.bytes)
}

/// Compares two variants on a path: with one seed, with several where the first one raises a flag,
/// and with others where those do. What then stands is explained, if it can be.
pub(crate) fn search(path: Path, comparison: Comparison) -> Verdict {
    let both = comparison.variants();
    let mut runs: [Vec<Figures>; 2] = [Vec::new(), Vec::new()];
    for nth in 0..FIRST {
        let seed = seed(&path, nth);
        let [mut tack, mut plain] = both
            .each_ref()
            .map(|variant| Figures::measure(&path, variant, seed));
        let mut flags = judge(&path, &tack, &plain);
        if flags.contains(&Flag::Cpu) {
            [tack.processor, plain.processor] = both
                .each_ref()
                .map(|variant| measure::processor_without_checks(&path, variant, seed));
            flags = judge(&path, &tack, &plain);
        }
        let is_certain = flags.iter().any(|flag| flag.is_certain(&path, &plain))
            && !(flags == [Flag::Hang] && happens_to(&path, &both[1], &tack));
        if nth == 0 && flags.is_empty() || is_certain {
            return Verdict {
                path,
                comparison,
                seed,
                flags,
                explained: Vec::new(),
                tack,
                plain,
            };
        }
        runs[0].push(tack);
        runs[1].push(plain);
    }
    let mut nth = 0;
    let [mut tack, mut plain] = runs.map(|runs| Figures::median(&runs));
    let mut flags = judge(&path, &tack, &plain);
    // The processor's time is that of the runs without checks.
    if !flags.is_empty() && flags != [Flag::Cpu] {
        nth = FIRST;
        [tack, plain] = both.each_ref().map(|variant| fresh(&path, variant));
        flags = judge(&path, &tack, &plain);
        flags.retain(|flag| *flag != Flag::Cpu);
    }
    let mut explained = Vec::new();
    flags.retain(
        |flag| match reason(&path, comparison, *flag, &tack, &plain) {
            Some(reason) => {
                explained.push((*flag, reason));
                false
            }
            None => true,
        },
    );
    Verdict {
        seed: seed(&path, nth),
        path,
        comparison,
        flags,
        explained,
        tack,
        plain,
    }
}
