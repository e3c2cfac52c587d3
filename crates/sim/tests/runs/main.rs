//! Whole runs, subject by subject. One test binary: it is linked once, and a long test of one
//! subject runs beside those of others. `cargo test -p tack-sim --test runs SUBJECT` runs one.

mod ack_filter;
mod agreements;
mod black_holes;
mod congestion;
mod controllers;
mod ecn_paths;
mod found_paths;
mod found_reasons;
mod hack;
mod hard_paths;
mod mixes;
mod narrow_way_back;
mod outages;
mod recovery;
mod run;
mod scenarios;
mod small_windows;
mod startup;
mod stripped_options;
mod utilisation;
mod wlan;
mod wlan_validation;

use run::run;
// The ordinary form takes the members of each family that say most.
use tack_skip::is_long;

const CONTROLLERS: [&str; 5] = ["new_reno", "cubic", "bbr", "vegas", "compound"];

/// CUBIC and BBR, and all of them in the long form.
fn controllers() -> &'static [&'static str] {
    if is_long() {
        &CONTROLLERS
    } else {
        &CONTROLLERS[1..3]
    }
}
