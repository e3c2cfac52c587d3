//! TACK against the plain policy on random paths with two to four faults at once: same path, same
//! seeds, same run.
//!
//! Nobody has to know what a path should give: what `delayed:2` does on it is the measure. A path
//! with chance in it is flagged only when the medians of five seeds differ as well, and then
//! sixteen other seeds together; an invariant that breaks and a transfer that never ends need one
//! seed, and so does a hang of another kind if the plain policy hangs with none of those sixteen.
//! A flag has a reason only if the reason is shown on the same path (`reasons.rs`), or is chance:
//! that is asked of paths beside this one, and of 48 further seeds (`neighbourhood.rs`).
//!
//! The quick form is a test. The long form takes numbers of paths, uses all processors and prints
//! each flagged path as a scenario that `tack sim` runs, with the figures of both sides, and a
//! table:
//!
//! ```text
//! TACK_SEARCH=1..2000 cargo test --release -p tack-sim --test differential -- --nocapture
//! TACK_ECN_SEARCH=1..400 cargo test --release -p tack-sim --test differential ecn -- --nocapture
//! TACK_MTU_SEARCH=1..400 cargo test --release -p tack-sim --test differential mtu -- --nocapture
//! TACK_CONTROL_SEARCH=1..400 cargo test --release -p tack-sim --test differential themselves
//! ```
//!
//! The second form searches paths of another family: one of their faults is one of ECN. On those of
//! the third form the MTU shrinks during the run, and packets have up to 9,000 bytes. The last one
//! compares `delayed:2` with itself: what it flags is what the judge takes for a difference.

mod bursts;
mod chance;
mod draft;
mod ecn_reasons;
mod faults;
mod figures;
mod handshake;
mod helpful_faults;
mod judge;
mod measure;
mod middlebox;
mod moments;
mod neighbour;
mod neighbourhood;
mod packets;
mod paths;
mod patience;
#[path = "../../../testkit/benches/processor/time.rs"]
mod processor;
mod reasons;
mod runs;
mod spared;
mod summary;
mod timeouts;
mod verdict;
mod way_back;

use rayon::prelude::*;
use tack_sim::parse_seeds;

use judge::Flag;
use measure::Comparison;
use paths::{Family, Path, draw};
use verdict::Verdict;

/// The paths of the quick form.
const QUICK: &str = "1..30";
/// Those on which something is wrong with ECN: 20, of which the last marks nearly everything. Path
/// 10 is left out, as its reasons take most of the time that all others together take.
const QUICK_ECN: &str = "1..9,11..20,9079";
/// Those whose MTU shrinks.
const QUICK_MTU: &str = "1..20";

#[test]
fn tack_is_no_worse_than_delayed_acknowledgements_on_random_paths() {
    search("TACK_SEARCH", QUICK, |number| {
        vec![(draw(number, Family::All), Comparison::Tack)]
    });
}

/// The same where something is wrong with ECN. Where the ends ask for accurate feedback, it is
/// compared with the classic one besides, both with delayed acknowledgements.
#[test]
fn no_feedback_is_worse_than_another_on_random_paths_that_spoil_ecn() {
    search("TACK_ECN_SEARCH", QUICK_ECN, |number| {
        let path = draw(number, Family::Ecn);
        let accurate = path.accurate_ecn;
        let accurate = accurate.then(|| (path.clone(), Comparison::AccurateEcn));
        accurate
            .into_iter()
            .chain([(path, Comparison::Tack)])
            .collect()
    });
}

/// The same with packets of up to 9,000 bytes, on paths whose MTU shrinks during the run.
#[test]
fn random_paths_whose_mtu_shrinks_are_no_worse_with_tack() {
    search("TACK_MTU_SEARCH", QUICK_MTU, |number| {
        vec![(draw(number, Family::Mtu), Comparison::Tack)]
    });
}

/// What the judge takes for a difference and is none: the plain policy with itself.
#[test]
fn delayed_acknowledgements_are_no_worse_than_themselves_on_random_paths() {
    search("TACK_CONTROL_SEARCH", QUICK, |number| {
        vec![(draw(number, Family::All), Comparison::Itself)]
    });
}

/// Makes the comparisons that `of` names for each path whose number the environment variable
/// `variable` has, or those of `quick`. Prints what is found, and fails where a flag stands.
fn search(variable: &str, quick: &str, of: impl Fn(u64) -> Vec<(Path, Comparison)> + Sync) {
    let asked = std::env::var(variable).ok();
    let numbers = parse_seeds(asked.as_deref().unwrap_or(quick))
        .unwrap_or_else(|error| panic!("{variable} names paths: {error}"));
    let is_long = asked.is_some();
    let verdicts: Vec<_> = numbers
        .par_iter()
        .flat_map(|number| of(*number))
        .map(|(path, comparison)| {
            let mut verdict = verdict::search(path, comparison);
            if !is_long {
                // Time that the machine took is not a property of the path.
                verdict.flags.retain(|flag| *flag != Flag::Cpu);
            }
            if !verdict.flags.is_empty() || !verdict.explained.is_empty() {
                summary::print(&verdict);
            }
            verdict
        })
        .collect();
    let of = |comparison| {
        let of_it = |verdict: &&Verdict| verdict.comparison == comparison;
        verdicts.iter().filter(of_it).collect::<Vec<_>>()
    };
    for comparison in [
        Comparison::Tack,
        Comparison::AccurateEcn,
        Comparison::Itself,
    ] {
        let compared = of(comparison);
        if !compared.is_empty() {
            println!("# {}:", comparison.names().join(" and "));
            summary::print_table(&compared);
        }
    }
    let flagged: Vec<_> = verdicts
        .iter()
        .filter(|verdict| !verdict.flags.is_empty())
        .map(|verdict| verdict.path.number)
        .collect();
    assert!(
        flagged.is_empty(),
        "{} of {} paths are flagged: {variable}={} prints them",
        flagged.len(),
        verdicts.len(),
        summary::list(&flagged),
    );
}
