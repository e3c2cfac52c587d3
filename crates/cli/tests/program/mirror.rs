//! `--delete`: folders at the receiver become what they are here, and nothing else is touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::{self, Ended, Receiver, tree};

struct Folder {
    _scratch: tempfile::TempDir,
    root: PathBuf,
}

fn write(root: &Path, names: &[&str]) {
    for name in names {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
}

fn folder() -> Folder {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("folder");
    write(&root, &["a", "inner/b", "inner/deep/c"]);
    Folder {
        _scratch: scratch,
        root,
    }
}

impl Folder {
    fn send(&self, receiver: &Receiver, options: &[&str]) -> Ended {
        let root = self.root.to_str().unwrap();
        receiver.send(&[options, &[root]].concat())
    }
}

/// Puts what the sender does not have beside what it sent, and around it.
fn clutter(receiver: &Receiver, outside: &Path) {
    write(receiver.dir.path(), &["beside", "other/x"]);
    write(outside, &["precious"]);
    let folder = receiver.path("folder");
    write(&folder, &["old", "inner/old", "gone/deep/y", "gone/z"]);
    symlink(outside, folder.join("out")).unwrap();
    symlink("../other", folder.join("gone/link")).unwrap();
}

#[test]
fn what_the_sender_does_not_have_is_removed_below_its_folders_only() {
    let (folder, outside) = (folder(), tempfile::tempdir().unwrap());
    let mut receiver = Receiver::start(&["--overwrite", "--delete"]);
    assert_eq!(folder.send(&receiver, &[]).code, Some(0));
    let _ = receiver.running.line();
    clutter(&receiver, outside.path());
    let names = || tree(receiver.dir.path()).into_keys().collect::<Vec<_>>();
    let before = names();

    // Without --delete, and in a dry run, nothing goes. The former sets the folder's time again.
    assert_eq!(folder.send(&receiver, &[]).code, Some(0));
    assert!(names() == before);
    let before = tree(receiver.dir.path());
    let dry = folder.send(&receiver, &["--delete", "-n"]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert!(tree(receiver.dir.path()) == before);
    let mut listed: Vec<&str> = dry.stdout.lines().collect();
    listed.sort_unstable();
    let expected = [
        "gone",
        "gone/deep",
        "gone/deep/y",
        "gone/link",
        "gone/z",
        "inner/old",
        "old",
        "out",
    ];
    assert_eq!(listed.len(), expected.len(), "{listed:?}");
    for (line, name) in listed.iter().zip(expected) {
        let path = folder.root.join(name);
        assert_eq!(*line, format!("{} (to be removed)", path.display()));
    }
    assert!(dry.stderr.contains("8 to be removed"), "{}", dry.stderr);

    let _ = [receiver.running.line(), receiver.running.line()];
    let sent = folder.send(&receiver, &["--delete", "--json"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(sent.json()["removed"], 8);
    assert_eq!(receiver.running.line()["removed"], 8);
    assert!(tree(&folder.root) == tree(&receiver.path("folder")));
    assert!(receiver.path("beside").exists() && receiver.path("other/x").exists());
    assert!(outside.path().join("precious").exists());
}

#[test]
fn what_is_left_out_of_the_transfer_stays() {
    let folder = folder();
    let receiver = Receiver::start(&["--overwrite", "--delete"]);
    assert_eq!(folder.send(&receiver, &[]).code, Some(0));
    // Excluded here and there, only there, and skipped.
    write(&folder.root, &["build/x", "here.o"]);
    symlink("a", folder.root.join("link")).unwrap();
    let there = receiver.path("folder");
    write(
        &there,
        &["build/x", "there.o", "inner/there.o", "gone/y.o", "gone/z"],
    );
    symlink("a", there.join("link")).unwrap();
    let options = ["--exclude", "*.o", "--exclude", "/build/", "--skip-links"];
    let sent = folder.send(&receiver, &[&options[..], &["--delete", "--json"]].concat());
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(sent.json()["removed"], 1, "gone/z");
    for name in ["build/x", "there.o", "inner/there.o", "gone/y.o", "link"] {
        assert!(there.join(name).symlink_metadata().is_ok(), "{name}");
    }
}

#[test]
fn nothing_is_removed_when_the_source_could_not_be_read() {
    let folder = folder();
    let receiver = Receiver::start(&["--overwrite", "--delete"]);
    assert_eq!(folder.send(&receiver, &[]).code, Some(0));
    write(&receiver.path("folder"), &["old"]);
    // A name that no receiver takes, whoever runs this: root reads every file.
    symlink("/etc/passwd", folder.root.join("outwards")).unwrap();
    let sent = folder.send(&receiver, &["--delete"]);
    assert_eq!(sent.code, Some(4), "{sent:?}");
    assert!(
        sent.stderr.contains("nothing is removed"),
        "{}",
        sent.stderr
    );
    assert!(receiver.path("folder/old").exists());
}

#[test]
fn a_receiver_has_to_permit_it() {
    let folder = folder();
    let receiver = Receiver::start(&["--overwrite"]);
    assert_eq!(folder.send(&receiver, &[]).code, Some(0));
    write(&receiver.path("folder"), &["old"]);
    let refused = folder.send(&receiver, &["--delete"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("--delete"), "{}", refused.stderr);
    assert!(receiver.path("folder/old").exists());
    let args = ["recv", "--delete", "--dir", "."];
    assert_eq!(support::finish(support::tack().args(args)).code, Some(2));
}
