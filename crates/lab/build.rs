//! Derives the version of the code that results depend on: a hash over the sources of the simulator
//! and all below it, and of what this crate measures.
//!
//! The compiler and other people's crates are not among it; nor are plans, reductions, plots and
//! claims: a plan's parameters are in a result's key, and the rest only reads results.

use std::path::PathBuf;

#[path = "../sweep/sources.rs"]
mod sources;

fn main() {
    println!("cargo:rerun-if-changed=../sweep/sources.rs");
    let mut places = sources::simulator();
    places.push(PathBuf::from("src/measure"));
    println!(
        "cargo:rustc-env=TACK_LAB_CODE={}",
        sources::version(&places)
    );
}
