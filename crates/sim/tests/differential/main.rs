//! TACK against the plain policy on random paths with two to four faults at once: same path, same
//! seeds, same run.
//!
//! Nobody has to know what a path should give: what `delayed:2` does on it is the measure. A path
//! with chance in it is flagged only when the medians of five seeds differ as well, and then
//! sixteen other seeds together; an invariant that breaks and a transfer that never ends need one
//! seed. A flag has a reason only if the reason is shown on the same path (`reasons.rs`).
//!
//! The quick form is a test. The long form takes numbers of paths, uses all processors and prints
//! each flagged path as a scenario that `tack sim` runs, with the figures of both sides, and a
//! table:
//!
//! ```text
//! TACK_SEARCH=1..2000 cargo test --release -p tack-sim --test differential -- --nocapture
//! ```

mod draft;
mod faults;
mod figures;
mod judge;
mod measure;
mod paths;
mod reasons;
mod runs;
mod summary;

use rayon::prelude::*;
use tack_sim::parse_seeds;

use judge::Flag;
use paths::path;

/// The paths of the quick form.
const QUICK: &str = "1..30";

#[test]
fn tack_is_no_worse_than_delayed_acknowledgements_on_random_paths() {
    let asked = std::env::var("TACK_SEARCH").ok();
    let numbers = parse_seeds(asked.as_deref().unwrap_or(QUICK)).expect("TACK_SEARCH names paths");
    let is_long = asked.is_some();
    let verdicts: Vec<_> = numbers
        .par_iter()
        .map(|number| {
            let mut verdict = runs::search(path(*number));
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
    summary::print_table(&verdicts);
    let flagged: Vec<_> = verdicts
        .iter()
        .filter(|verdict| !verdict.flags.is_empty())
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
