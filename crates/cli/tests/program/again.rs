//! The same folder a second time: what is unchanged is not sent, and nothing is lost that nobody
//! gave up.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::support::{self, Ended, Receiver, noise, tree};

struct Folder {
    _scratch: tempfile::TempDir,
    root: PathBuf,
}

fn folder() -> Folder {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("folder");
    fs::create_dir_all(root.join("inner")).unwrap();
    fs::write(root.join("same"), "same").unwrap();
    fs::write(root.join("inner/small"), "old").unwrap();
    fs::write(root.join("inner/large"), noise(1, 5 << 20)).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for name in ["same", "inner/small", "inner/large"] {
        let file = fs::File::options()
            .append(true)
            .open(root.join(name))
            .unwrap();
        file.set_modified(old).unwrap();
    }
    Folder {
        _scratch: scratch,
        root,
    }
}

impl Folder {
    fn send(&self, receiver: &Receiver, options: &[&str]) -> Ended {
        let root = self.root.to_str().unwrap();
        receiver.send(&[&["--json"], options, &[root]].concat())
    }

    /// Changes a small file, one group of a large one, and adds a file.
    fn change(&self) {
        fs::write(self.root.join("inner/small"), "new").unwrap();
        let mut large = noise(1, 5 << 20);
        large[(3 << 20) + 5] ^= 1;
        fs::write(self.root.join("inner/large"), large).unwrap();
        fs::write(self.root.join("added"), "added").unwrap();
    }
}

fn counts(ended: &Ended) -> [u64; 4] {
    let summary = ended.json();
    ["files", "unchanged", "left_alone", "failed"].map(|key| summary[key].as_u64().unwrap())
}

#[test]
fn by_default_nothing_that_is_there_is_changed() {
    let folder = folder();
    let receiver = Receiver::start(&[]);
    assert_eq!(folder.send(&receiver, &[]).code, Some(0));
    let again = folder.send(&receiver, &[]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(counts(&again), [0, 3, 0, 0]);
    assert_eq!(again.json()["carried_bytes"], 0);

    folder.change();
    let before = tree(&receiver.path("folder"));
    // Not even on request, without the receiver's permission.
    for options in [&[][..], &["--overwrite"], &["--update"]] {
        let _ = fs::remove_file(receiver.path("folder/added"));
        let changed = folder.send(&receiver, options);
        assert_eq!(changed.code, Some(4), "{changed:?}");
        assert_eq!(counts(&changed), [1, 1, 0, 2]);
        assert!(changed.stderr.contains("--overwrite"), "{}", changed.stderr);
        let after = tree(&receiver.path("folder"));
        for (path, (_, modified, content)) in &before {
            let (_, modified_after, content_after) = &after[path];
            assert!(content_after == content, "{}", path.display());
            assert!(path == &PathBuf::from("inner") || modified_after == modified);
        }
    }
    let skipped = folder.send(&receiver, &["--skip"]);
    assert_eq!(skipped.code, Some(0), "{skipped:?}");
    assert_eq!(counts(&skipped), [0, 2, 2, 0]);
    let both = folder.send(&receiver, &["--rename"]);
    assert_eq!(both.code, Some(0), "{both:?}");
    assert_eq!(
        fs::read(receiver.path("folder/inner/small")).unwrap(),
        b"old"
    );
    assert_eq!(
        fs::read(receiver.path("folder/inner/small.1")).unwrap(),
        b"new"
    );
}

#[test]
fn a_receiver_that_permits_it_is_updated_by_groups() {
    let folder = folder();
    let receiver = Receiver::start(&["--overwrite"]);
    assert_eq!(folder.send(&receiver, &[]).code, Some(0));
    folder.change();
    let changed = folder.send(&receiver, &[]);
    assert_eq!(changed.code, Some(0), "{changed:?}");
    assert_eq!(counts(&changed), [3, 1, 0, 0]);
    // One group of the large file, and the small ones.
    assert_eq!(changed.json()["carried_bytes"], (256 << 10) + 8);
    assert!(tree(&folder.root) == tree(&receiver.path("folder")));

    // Newer at the receiver.
    fs::write(receiver.path("folder/same"), "newer there").unwrap();
    let updated = folder.send(&receiver, &["--update"]);
    assert_eq!(counts(&updated), [0, 3, 1, 0]);
    assert_eq!(
        fs::read(receiver.path("folder/same")).unwrap(),
        b"newer there"
    );

    // Same size and time, other content: only --checksum sees it.
    let small = receiver.path("folder/inner/small");
    let modified = fs::metadata(&small).unwrap().modified().unwrap();
    fs::write(&small, "bad").unwrap();
    let file = fs::File::options().append(true).open(&small).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(counts(&folder.send(&receiver, &["--skip"])), [0, 3, 1, 0]);
    let compared = folder.send(&receiver, &["--checksum"]);
    assert_eq!(counts(&compared), [2, 2, 0, 0]);
    assert!(tree(&folder.root) == tree(&receiver.path("folder")));
}

#[test]
fn an_old_version_or_a_part_that_goes_meanwhile_is_sent_as_a_whole() {
    const LEN: usize = 5 << 18;
    let receiver = Receiver::start(&["--overwrite"]);
    let scratch = tempfile::tempdir().unwrap();
    let [first, others @ ..] = ["first", "emptied", "removed", "part"];
    for name in others {
        fs::write(receiver.path(name), noise(1, LEN)).unwrap();
        let newer = scratch.path().join(name);
        fs::write(&newer, noise(2, LEN)).unwrap();
        // Two files that are as long and were written within a tick pass for the same one.
        let file = fs::File::options().append(true).open(newer).unwrap();
        let written = file.metadata().unwrap().modified().unwrap();
        file.set_modified(written + Duration::from_secs(1)).unwrap();
    }
    // As an interrupted transfer leaves it.
    let part = receiver.path(part_of("part"));
    fs::rename(receiver.path("part"), &part).unwrap();
    fs::write(scratch.path().join(first), noise(3, 4 << 20)).unwrap();
    // Slowly, so that the others are offered long before their turn.
    let sending = support::Running::start(
        support::tack()
            .args(["send", "--insecure", "--json", "--bwlimit", "32Mbps"])
            .args(["first", "emptied", "removed", "part"])
            .arg(receiver.address.to_string())
            .current_dir(scratch.path()),
    );
    let part_of_first = receiver.path(part_of(first));
    let has_begun = || fs::metadata(&part_of_first).is_ok_and(|found| found.len() >= 256 << 10);
    while !has_begun() && !receiver.path(first).exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    fs::write(receiver.path("emptied"), "").unwrap();
    fs::remove_file(receiver.path("removed")).unwrap();
    fs::remove_file(&part).unwrap();
    let ended = sending.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let all = (4 << 20) + others.len() * LEN;
    assert_eq!(ended.json()["carried_bytes"], all, "{ended:?}");
    assert!(tree(scratch.path()) == tree(receiver.dir.path()));
}

/// The name of the part of a file that comes over a plain connection.
fn part_of(path: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("tack 2026 part of a received file");
    hasher.update(&[0; 32]);
    hasher.update(path.as_bytes());
    format!(".tack-{}.part", &hasher.finalize().to_hex()[..32])
}

#[test]
fn a_dry_run_changes_nothing_and_lists_what_would_come() {
    let folder = folder();
    let mut receiver = Receiver::start(&["--overwrite"]);
    let dry = receiver.send(&["--dry-run", folder.root.to_str().unwrap()]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert_eq!(dry.stdout.lines().count(), 3, "{}", dry.stdout);
    assert!(dry.stderr.contains("would send 3 files"), "{}", dry.stderr);
    assert_eq!(fs::read_dir(receiver.dir.path()).unwrap().count(), 0);
    assert_eq!(folder.send(&receiver, &[]).code, Some(0));
    folder.change();
    let before = tree(&receiver.path("folder"));
    let dry = receiver.send(&["-n", folder.root.to_str().unwrap()]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    let mut listed: Vec<&str> = dry.stdout.lines().collect();
    listed.sort_unstable();
    assert_eq!(listed.len(), 3, "{listed:?}");
    assert!(listed[0].ends_with("folder/added"), "{listed:?}");
    assert!(dry.stderr.contains("1 unchanged"), "{}", dry.stderr);
    assert!(tree(&receiver.path("folder")) == before);
    receiver.running.signal(rustix::process::Signal::INT);
    let said = receiver.running.ended().stderr;
    for what in [
        "would store 3 files, 5.00 MiB\n",
        "would store 3 files, 5.00 MiB, 1 unchanged\n",
    ] {
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn patterns_leave_files_out_and_a_limit_is_kept() {
    let folder = folder();
    fs::write(folder.root.join("inner/x.o"), "object").unwrap();
    fs::create_dir(folder.root.join("build")).unwrap();
    fs::write(folder.root.join("build/y"), "built").unwrap();
    let list = folder.root.with_file_name("patterns");
    fs::write(&list, "# comment\n/build/\n").unwrap();
    let receiver = Receiver::start(&["--max-bytes", "6MiB"]);
    let options = ["--exclude", "*.o", "--exclude-from", list.to_str().unwrap()];
    let sent = folder.send(&receiver, &options);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!((counts(&sent)[0], &sent.json()["excluded"]), (3, &2.into()));
    assert!(!receiver.path("folder/build").exists());
    let wrong = folder.send(&receiver, &["--exclude", "a{b"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");

    fs::write(folder.root.join("more"), noise(3, 2 << 20)).unwrap();
    let refused = folder.send(&receiver, &["--name", "much"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("--max-bytes"), "{}", refused.stderr);
    assert!(!receiver.path("much").exists());
}

#[test]
fn ignore_files_leave_files_out_where_that_is_asked_for() {
    let folder = folder();
    let write = |name: &str, content: &str| {
        let path = folder.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    write(".gitignore", "*.o\n/build/\na{b\n");
    write("inner/.gitignore", "!wanted.o\n");
    for name in ["a.o", "build/y", "inner/b.o", "inner/wanted.o"] {
        write(name, name);
    }
    let receiver = Receiver::start(&["--overwrite", "--delete"]);
    let all = folder.send(&receiver, &[]);
    assert_eq!((all.code, counts(&all)[0]), (Some(0), 9), "{all:?}");
    // What is left out stays where it is, and what is gone goes.
    fs::remove_file(folder.root.join("same")).unwrap();
    fs::remove_dir_all(folder.root.join("build")).unwrap();
    let some = folder.send(&receiver, &["--ignore-files", "--delete"]);
    assert_eq!(some.code, Some(0), "{some:?}");
    let summary = some.json();
    assert_eq!((counts(&some)[1], &summary["excluded"]), (5, &2.into()));
    assert_eq!(summary["removed"], 1);
    assert!(receiver.path("folder/build/y").exists() && !receiver.path("folder/same").exists());
    assert!(
        some.stderr.contains(".gitignore: line 3"),
        "{}",
        some.stderr
    );
}

#[test]
fn a_receiver_names_what_it_stores_or_says_nothing() {
    let folder = folder();
    let said = |options: &[&str]| {
        let mut receiver = Receiver::start(options);
        for _ in 0..2 {
            assert_eq!(folder.send(&receiver, &[]).code, Some(0));
            while receiver.running.line()["event"] != "transfer" {}
        }
        receiver.running.signal(rustix::process::Signal::INT);
        let ended = receiver.running.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stderr
    };
    assert_eq!(said(&["-q"]), "");
    let named = said(&["-v"]);
    for line in [
        "tack: folder/inner/small\n",
        "tack: folder/same: unchanged\n",
    ] {
        assert!(named.contains(line), "{named}");
    }
    assert!(!said(&[]).contains("folder/same"));
}

#[test]
fn a_success_is_one_line_unless_nobody_wants_it() {
    let folder = folder();
    let receiver = Receiver::start(&[]);
    let root = folder.root.to_str().unwrap();
    let sent = receiver.send(&[root]);
    assert_eq!(sent.stderr.lines().count(), 1, "{}", sent.stderr);
    assert!(sent.stderr.starts_with("3 files, "), "{}", sent.stderr);
    let again = receiver.send(&["-q", root]);
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
    let named = receiver.send(&["-v", "--name", "other", root]);
    assert!(named.stderr.contains("inner/small"), "{}", named.stderr);
}
