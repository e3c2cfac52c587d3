//! Whole runs, subject by subject. One test binary: it is linked once, and a long test of one
//! subject runs beside those of others. `cargo test -p tack-sim --test runs SUBJECT` runs one.

mod ack_filter;
mod congestion;
mod controllers;
mod found_paths;
mod hard_paths;
mod mixes;
mod recovery;
mod scenarios;
mod startup;
mod utilisation;
mod wlan;
