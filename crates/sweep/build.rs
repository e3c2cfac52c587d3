//! Derives the version of the code that rows depend on: a hash over the sources of the simulator
//! and all below it, and of what makes a row of a run.

use std::fs;
use std::path::{Path, PathBuf};

/// Everything of ours that a row depends on. The compiler and other people's crates are not among
/// it.
const SOURCES: [&str; 8] = [
    "../base/src",
    "../wire/src",
    "../tcp/src",
    "../rohc/src",
    "../wlan/src",
    "../sim/src",
    "src/measures.rs",
    "src/expression.rs",
];

/// FNV-1a with 64 bits: the standard library's hash differs between its versions, and so between
/// programs and packages of the same sources.
struct Hash(u64);

impl Hash {
    fn write(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

fn main() {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
        collect(Path::new(source), &mut files);
    }
    files.sort();
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    for file in files {
        hash.write(file.to_string_lossy().as_bytes());
        hash.write(&fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    }
    println!("cargo:rustc-env=TACK_SWEEP_CODE={:016x}", hash.0);
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries =
            fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for entry in entries {
            collect(&entry.expect("a folder entry can be read").path(), files);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs")
        // No result depends on a test.
        && path.file_name().is_some_and(|name| name != "tests.rs")
    {
        files.push(path.to_owned());
    }
}
