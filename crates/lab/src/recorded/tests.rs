use std::fs;
use std::path::Path;

use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Ten opportunities a second, a second long.
fn mahimahi() -> String {
    (1..=10).map(|tenth| format!("{}\n", tenth * 100)).collect()
}

fn refusal(files: &[(&str, &str)]) -> String {
    let folder = folder(files);
    let error = Recorded::read(folder.path()).unwrap_err().to_string();
    error.replace(&folder.path().display().to_string(), "FOLDER")
}

#[test]
fn recordings_become_paths_by_name() {
    let down = mahimahi();
    let folder = folder(&[
        ("cell.down", &down),
        ("cell.up", "50\n100\n"),
        ("air.pitree-trace", "0.2 12\n0.4 24\n"),
        ("README", "not a recording"),
    ]);
    let recorded = Recorded::read(folder.path()).unwrap();
    let [cell, air] = recorded.paths() else {
        panic!("{recorded:?}");
    };
    assert_eq!((cell.name.as_str(), cell.period_ms), ("cell", 1_000));
    assert_eq!(cell.mean, Rate::from_bits_per_sec(120_000));
    assert_eq!(cell.files[0].text, down);
    assert!(cell.settings[0].contains(&cell.files[0].name));
    assert!(cell.settings[1].contains(&cell.files[1].name));
    assert_eq!((air.name.as_str(), air.period_ms), ("air", 400));
    assert_eq!(air.mean, Rate::from_bits_per_sec(18_000_000));
}

#[test]
fn other_content_under_the_same_name_is_another_file() {
    let name = |text: &str| {
        let folder = folder(&[("air.pitree-trace", text)]);
        let recorded = Recorded::read(folder.path()).unwrap();
        recorded.paths()[0].files[0].name.clone()
    };
    assert_eq!(name("0.2 12\n"), name("0.20 12.0\n"), "the same link");
    assert_ne!(name("0.2 12\n"), name("0.2 13\n"));
}

#[test]
fn a_rate_adds_up_to_opportunities() {
    // 12 Mbit/s are an opportunity a millisecond.
    let text = rates::opportunities("0.003 12\n").unwrap();
    assert_eq!(text, "1\n2\n3\n");
    // 6 for 3 ms leave half an opportunity, which 24 for 1 ms complete.
    let text = rates::opportunities("0.003 6\n\n0.004 24\n").unwrap();
    assert_eq!(text, "2\n4\n4\n");
    // Nothing for a while, then as fast as before; the rest of the last one is lost.
    let text = rates::opportunities("0.001 12\n0.5 0\n0.5019 12\n").unwrap();
    assert_eq!(text, "1\n501\n");
    // Instants are never earlier than the bytes.
    let text = rates::opportunities("0.1 11.999999\n").unwrap();
    assert_eq!(text.lines().next(), Some("2"));
    assert_eq!(text.lines().count(), 99);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (files, words) in [
        (
            &[("a.txt", "")][..],
            "FOLDER: no recorded trace is there; expected files called NAME.down",
        ),
        (
            &[("a.down", "1\n")],
            "FOLDER/a.down: a.up is missing beside it",
        ),
        (
            &[("a.up", "1\n")],
            "FOLDER/a.up: a.down is missing beside it",
        ),
        (&[("a b.up", "1\n")], "FOLDER/a b.up: recordings need names"),
        (
            &[("a.down", "1\n2 Mbps\n"), ("a.up", "1\n")],
            "FOLDER/a.down: line 2 of the trace: \"2 Mbps\" is not a whole number",
        ),
        (
            &[("a.down", "1\n"), ("a.up", "2\n1\n")],
            "FOLDER/a.up: line 2 of the trace is earlier",
        ),
        (
            &[("a.down", "100000\n"), ("a.up", "1\n")],
            "FOLDER/a.down: its mean rate is",
        ),
        (
            &[("a.down", "99999999\n"), ("a.up", "1\n")],
            "FOLDER/a.down: it lasts 99999 s",
        ),
        (
            &[("a.pitree-trace", "0.2 30\n0.4 fast\n")],
            "FOLDER/a.pitree-trace: line 2: \"0.4 fast\" should be a time in seconds",
        ),
        (
            &[("a.pitree-trace", "0.2 30\n0.4 3 1\n")],
            "line 2: \"0.4 3 1\" should be",
        ),
        (
            &[("a.pitree-trace", "0.2 -1\n")],
            "line 1: \"0.2 -1\" should be",
        ),
        (
            &[("a.pitree-trace", "0.2 NaN\n")],
            "line 1: \"0.2 NaN\" should be",
        ),
        (&[("a.pitree-trace", "0.2 inf\n")], "line 1: "),
        (&[("a.pitree-trace", "1e99 1\n")], "line 1: "),
        (
            &[("a.pitree-trace", "0.2 1\n0.2 1\n")],
            "line 2: its time is not later",
        ),
        (
            &[("a.pitree-trace", "1 1\n3600 10000\n")],
            "line 2: by then 2000000 packets",
        ),
        (
            &[("a.pitree-trace", "0.2 0\n")],
            "FOLDER/a.pitree-trace: the trace has no line",
        ),
    ] {
        let refusal = refusal(files);
        assert!(refusal.contains(words), "{words:?}: {refusal}");
    }
}

#[test]
fn hostile_files_are_refused_without_being_read_to_the_end() {
    let folder = folder(&[("a.up", "1\n")]);
    let path = folder.path().join("a.down");
    let file = File::create(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = Recorded::read(folder.path()).unwrap_err();
    assert!(error.to_string().contains("longer than 16 MiB"), "{error}");

    fs::write(&path, b"1\n2\n\xff\n").unwrap();
    let error = Recorded::read(folder.path()).unwrap_err();
    assert!(error.to_string().contains("line 3 is not text"), "{error}");

    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = Recorded::read(folder.path()).unwrap_err();
    assert!(error.to_string().contains("is not a file"), "{error}");

    let error = Recorded::read(Path::new("/nowhere/at/all")).unwrap_err();
    assert!(
        error.to_string().starts_with("/nowhere/at/all: "),
        "{error}"
    );

    let many: Vec<_> = (0..17).map(|number| format!("{number}.up")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "1\n")).collect();
    assert!(refusal(&many).contains("17 recordings are too many"));
}
