//! Derives the version of the code that results depend on: a hash over the sources of the simulator
//! and all below it, and of what this crate measures.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

/// Everything of ours that a result depends on. The compiler and other people's crates are not
/// among it; nor are plans, reductions, plots and claims: a plan's parameters are in a result's
/// key, and the rest only reads results.
const SOURCES: [&str; 6] = [
    "../base/src",
    "../wire/src",
    "../tcp/src",
    "../wlan/src",
    "../sim/src",
    "src/measure",
];

fn main() {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
        collect(Path::new(source), &mut files);
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.to_string_lossy().as_bytes());
        hasher
            .write(&fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    }
    println!("cargo:rustc-env=TACK_LAB_CODE={:016x}", hasher.finish());
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for entry in entries {
        let path = entry.expect("a folder entry can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            // No result depends on a test.
            && path.file_name().is_some_and(|name| name != "tests.rs")
        {
            files.push(path);
        }
    }
}
