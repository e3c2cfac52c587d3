//! TACK against the plain policy on random paths with two to four faults at once: same path, same seeds, same run.
//!
//! Nobody has to know what a path should give: what `delayed:2` does on it is the measure. A path with chance in it is flagged
//! only when the medians of five seeds differ as well; an invariant that breaks and a transfer that never ends need one seed.
//!
//! The quick form is a test. The long form takes numbers of paths, uses all processors and prints each flagged path as a
//! scenario that `tack sim` runs, with the figures of both sides, and a table:
//!
//! ```text
//! TACK_SEARCH=1..2000 cargo test --release -p tack-sim --test differential -- --nocapture
//! ```

mod draft;
mod faults;
mod figures;
mod judge;
mod paths;
mod summary;

use rayon::prelude::*;
use tack_sim::parse_seeds;

use figures::Figures;
use judge::{Flag, judge, known};
use paths::{Path, path};

/// Seeds of a path that differs at its first one.
const SEEDS: u64 = 5;
/// The paths of the quick form.
const QUICK: &str = "1..30";

/// A path that was run.
struct Verdict {
    path: Path,
    /// The seed that shows it; the first of several where medians do.
    seed: u64,
    flags: Vec<Flag>,
    tack: Figures,
    plain: Figures,
}

#[test]
fn tack_is_no_worse_than_delayed_acknowledgements_on_random_paths() {
    let asked = std::env::var("TACK_SEARCH").ok();
    let numbers = parse_seeds(asked.as_deref().unwrap_or(QUICK)).expect("TACK_SEARCH names paths");
    let is_long = asked.is_some();
    let verdicts: Vec<_> = numbers
        .par_iter()
        .map(|number| {
            let mut verdict = search(path(*number));
            if !is_long {
                // Time that the machine took is no property of the path.
                verdict.flags.retain(|flag| *flag != Flag::Cpu);
            }
            if !verdict.flags.is_empty() {
                summary::print(&verdict);
            }
            verdict
        })
        .collect();
    summary::print_table(&verdicts);
    let flagged: Vec<_> = verdicts
        .iter()
        .filter(|verdict| {
            let mut flags = verdict.flags.iter();
            flags.any(|flag| known(verdict.path.number, *flag).is_none())
        })
        .map(|verdict| verdict.path.number)
        .collect();
    assert!(
        flagged.is_empty(),
        "{} of {} paths are flagged: TACK_SEARCH={} prints them",
        flagged.len(),
        verdicts.len(),
        summary::list(&flagged),
    );
}

/// Runs a path with both policies: with one seed, or with several where the first one raises a flag.
fn search(path: Path) -> Verdict {
    let mut runs: [Vec<Figures>; 2] = [Vec::new(), Vec::new()];
    for nth in 0..SEEDS {
        // The first seed is the one that the scenario names.
        let seed = path.number + 1_000_000 * nth;
        let [mut tack, mut plain] =
            [true, false].map(|is_tack| Figures::measure(&path, is_tack, seed));
        let mut flags = judge(&path, &tack, &plain);
        if flags.contains(&Flag::Cpu) {
            tack.processor = figures::processor_without_checks(&path, true, seed);
            plain.processor = figures::processor_without_checks(&path, false, seed);
            flags = judge(&path, &tack, &plain);
        }
        if nth == 0 && flags.is_empty() || flags.iter().any(|flag| flag.is_certain()) {
            return Verdict {
                path,
                seed,
                flags,
                tack,
                plain,
            };
        }
        runs[0].push(tack);
        runs[1].push(plain);
    }
    let [tack, plain] = runs.map(|runs| Figures::median(&runs));
    Verdict {
        flags: judge(&path, &tack, &plain),
        seed: path.number,
        path,
        tack,
        plain,
    }
}
