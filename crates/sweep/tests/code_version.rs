//! What the version of the code covers: rows and figures count until a source of it changes.

use std::path::PathBuf;

#[path = "../sources.rs"]
mod sources;

#[test]
fn it_covers_the_simulator_and_every_crate_below_it() {
    let names = ["base", "rohc", "sim", "tcp", "wire", "wlan"];
    let expected = names.map(|name| PathBuf::from(format!("../{name}/src")));
    // Not testkit, which only the tests of these crates need.
    assert_eq!(sources::simulator(), expected);
}

#[test]
fn it_changes_with_a_source_and_not_with_a_test() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let version = || sources::version(&[folder.path().to_owned()]);
    write("lib.rs", "mod tests;");
    let first = version();
    write("tests.rs", "#[test]");
    write("notes.md", "no source");
    std::fs::create_dir(folder.path().join("tests")).unwrap();
    write("tests/more.rs", "#[test]");
    assert_eq!(version(), first);
    write("lib.rs", "mod test;");
    assert_ne!(version(), first);
}
