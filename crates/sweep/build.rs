//! Derives the version of the code that rows depend on: a hash over the sources of the simulator
//! and all below it, and of what makes a row of a run. The compiler and other people's crates are
//! not among it.

use std::path::PathBuf;

#[path = "sources.rs"]
mod sources;

fn main() {
    println!("cargo:rerun-if-changed=sources.rs");
    let mut places = sources::simulator();
    places.extend(["src/run_columns.rs", "src/expression.rs"].map(PathBuf::from));
    println!(
        "cargo:rustc-env=TACK_SWEEP_CODE={}",
        sources::version(&places)
    );
}
