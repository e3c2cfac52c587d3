//! A hash over sources, for the build scripts of the crates that keep results: a result counts
//! until the code that made it changes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The simulator, as seen from a crate's folder.
const SIMULATOR: &str = "../sim";

/// The source folders of the simulator and of all crates of ours below it, as its manifest and
/// theirs name them: no list that a new crate could be missing from.
pub(crate) fn simulator() -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    let mut left = vec![PathBuf::from(SIMULATOR)];
    while let Some(folder) = left.pop() {
        let manifest = read(&folder.join("Cargo.toml"));
        let manifest = String::from_utf8_lossy(&manifest);
        if found.insert(folder) {
            let names = dependencies(&manifest);
            left.extend(names.map(|name| Path::new("..").join(name)));
        }
    }
    found.into_iter().map(|folder| folder.join("src")).collect()
}

/// Our crates among the dependencies of a manifest, without those of tests.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.strip_prefix("tack-"))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
}

/// The hash of all sources in `places`, files or folders, without tests: no result depends on one.
/// Cargo is told to look at them.
pub(crate) fn version(places: &[PathBuf]) -> String {
    let mut files = Vec::new();
    for place in places {
        println!("cargo:rerun-if-changed={}", place.display());
        collect(place, &mut files);
    }
    files.sort();
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    for file in files {
        hash.write(file.to_string_lossy().as_bytes());
        hash.write(&read(&file));
    }
    format!("{:016x}", hash.0)
}

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

fn read(file: &Path) -> Vec<u8> {
    fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path
        .file_name()
        .is_some_and(|name| name == "tests" || name == "tests.rs")
    {
        return;
    }
    if path.is_dir() {
        let entries =
            fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for entry in entries {
            collect(&entry.expect("a folder entry can be read").path(), files);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        files.push(path.to_owned());
    }
}
