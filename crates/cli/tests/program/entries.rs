//! What is more than plain files with plain names: links, holes, names that are not text.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use crate::support::{Receiver, noise};

#[test]
fn links_are_kept_unless_nobody_wants_them() {
    let source = tempfile::tempdir().unwrap();
    let root = source.path().join("tree");
    fs::create_dir_all(root.join("inner")).unwrap();
    fs::write(root.join("file"), "file").unwrap();
    symlink("file", root.join("here")).unwrap();
    symlink("../file", root.join("inner/up")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let mut receiver = Receiver::start(&[]);
    let sent = receiver.send(&["--json", root.to_str().unwrap()]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let (here, there) = (sent.json(), receiver.running.line());
    for told in [&here, &there] {
        assert_eq!(
            (&told["links"], &told["files"]),
            (&3.into(), &1.into()),
            "{told}"
        );
    }
    for (name, target) in [
        ("here", "file"),
        ("inner/up", "../file"),
        ("dangling", "nowhere"),
    ] {
        let found = fs::read_link(receiver.path("tree").join(name)).unwrap();
        assert_eq!(found, Path::new(target));
    }

    // One that leads out is refused and named, the rest is stored.
    symlink("/etc/passwd", root.join("out")).unwrap();
    let sent = receiver.send(&["--name", "again", root.to_str().unwrap()]);
    assert_eq!(sent.code, Some(4), "{sent:?}");
    assert!(sent.stderr.contains("leads out"), "{}", sent.stderr);
    assert!(
        receiver
            .path("again")
            .join("out")
            .symlink_metadata()
            .is_err()
    );

    let _ = receiver.running.line();
    let sent = receiver.send(&["--skip-links", "--name", "without", root.to_str().unwrap()]);
    assert_eq!(receiver.running.line()["skipped"], 4);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(
        sent.stderr.contains("4 left out: symbolic links"),
        "{}",
        sent.stderr
    );
}

#[test]
fn holes_stay_holes() {
    const SIZE: u64 = 256 << 20;
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("sparse");
    let mut file = File::create(&path).unwrap();
    for at in [5 << 20, 100 << 20] {
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&noise(at, 300_000)).unwrap();
    }
    file.set_len(SIZE).unwrap();
    file.sync_all().unwrap();
    let receiver = Receiver::start(&[]);
    let sent = receiver.send(&["--json", path.to_str().unwrap()]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let sent = sent.json();
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(&path).unwrap()).unwrap();
    assert_eq!(
        sent["entries"][0]["blake3"],
        hasher.finalize().to_hex().as_str()
    );
    assert_eq!(sent["bytes"], SIZE);
    let (before, after) = (
        fs::metadata(&path).unwrap(),
        fs::metadata(receiver.path("sparse")).unwrap(),
    );
    assert_eq!(after.len(), SIZE);
    // Where the file system has holes, there are some, and what travels is the rest.
    if before.blocks() * 512 < 1 << 20 {
        assert!(after.blocks() * 512 < 2 << 20, "{}", after.blocks());
        let segments = sent["transport"]["data_segments"].as_u64().unwrap();
        assert!(segments < 10_000, "{segments}");
    }
    let mut received = blake3::Hasher::new();
    received
        .update_reader(File::open(receiver.path("sparse")).unwrap())
        .unwrap();
    assert_eq!(received.finalize(), hasher.finalize());
}

#[test]
fn names_that_are_legal_here_and_there_pass_and_have_a_raw_form() {
    let source = tempfile::tempdir().unwrap();
    let root = source.path().join("names");
    fs::create_dir(&root).unwrap();
    let names: [&[u8]; 5] = [b"a:b", b"back\\slash", b"C:", b"what?", b"caf\xe9"];
    for name in names {
        fs::write(root.join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let mut receiver = Receiver::start(&[]);
    let sent = receiver.send(&["--json", root.to_str().unwrap()]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    for name in names {
        assert!(
            receiver
                .path("names")
                .join(OsStr::from_bytes(name))
                .exists(),
            "{name:?}"
        );
    }
    for told in [sent.json(), receiver.running.line()] {
        let entries = told["entries"].as_array().unwrap();
        let raw: Vec<_> = entries
            .iter()
            .filter_map(|entry| entry["path_hex"].as_str())
            .collect();
        assert_eq!(raw.len(), 1, "only where the text is not all of it");
        assert!(raw[0].ends_with("636166e9"), "{raw:?}");
    }
}

#[test]
fn further_names_of_a_file_stay_names_of_it() {
    let source = tempfile::tempdir().unwrap();
    let root = source.path().join("tree");
    fs::create_dir_all(root.join("inner")).unwrap();
    fs::write(root.join("inner/first"), noise(1, 3 << 20)).unwrap();
    for name in ["inner/second", "third"] {
        fs::hard_link(root.join("inner/first"), root.join(name)).unwrap();
    }
    fs::write(root.join("inner/other"), "other").unwrap();
    fs::hard_link(root.join("inner/other"), source.path().join("outside")).unwrap();
    let mut receiver = Receiver::start(&["--overwrite"]);
    let there = receiver.path("tree");
    let names = |name: &str| {
        let found = fs::metadata(there.join(name)).unwrap();
        (found.ino(), found.nlink())
    };
    let all_one = || {
        let [a, b, c] = ["inner/first", "inner/second", "third"].map(names);
        a == b && b == c && a.1 == 3
    };
    let sent = receiver.send(&["--json", root.to_str().unwrap()]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    for told in [sent.json(), receiver.running.line()] {
        assert_eq!(
            (&told["files"], &told["hard_links"]),
            (&2.into(), &2.into()),
            "{told}"
        );
        assert_eq!(told["carried_bytes"], (3 << 20) + 5);
    }
    assert!(all_one() && names("inner/other").1 == 1);

    // Unchanged, changed, and one name broken off.
    let again = receiver.send(&["--json", root.to_str().unwrap()]);
    assert_eq!(again.json()["carried_bytes"], 0, "{again:?}");
    let _ = receiver.running.line();
    fs::write(root.join("third"), noise(2, 3 << 20)).unwrap();
    fs::remove_file(there.join("inner/second")).unwrap();
    fs::write(there.join("inner/second"), "broken off").unwrap();
    let changed = receiver.send(&["--json", root.to_str().unwrap()]);
    assert_eq!(changed.code, Some(0), "{changed:?}");
    assert_eq!(changed.json()["carried_bytes"], 3 << 20);
    assert!(all_one());
    assert!(fs::read(there.join("inner/second")).unwrap() == noise(2, 3 << 20));

    // Where nothing may be replaced, a name that is taken is not.
    let strict = Receiver::start(&[]);
    fs::create_dir_all(strict.path("tree")).unwrap();
    fs::write(strict.path("third"), "mine").unwrap();
    let sent = strict.send(&[
        root.join("inner/first").to_str().unwrap(),
        root.join("third").to_str().unwrap(),
    ]);
    assert_eq!(sent.code, Some(4), "{sent:?}");
    assert_eq!(fs::read(strict.path("third")).unwrap(), b"mine");
}
