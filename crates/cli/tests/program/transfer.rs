//! `tack send` and `tack recv` as two processes on loopback.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Receiver, Running, is_long, noise, tack, tree};
use rustix::process::Signal;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn set_modified(path: &Path, seconds: u64) {
    let time = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_folder_arrives_with_content_modes_and_times() {
    let source = tempfile::tempdir().unwrap();
    let root = source.path().join("album");
    fs::create_dir_all(root.join("deep/er")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::write(root.join("nothing"), "").unwrap();
    fs::write(root.join("large"), noise(1, 3_000_000)).unwrap();
    fs::write(root.join("deep/er/naïve name"), "text").unwrap();
    fs::write(root.join("deep/run"), "#!/bin/sh\n").unwrap();
    set_mode(&root.join("deep/run"), 0o755);
    set_mode(&root.join("large"), 0o640);
    set_modified(&root.join("large"), 1_234_567_890);
    set_mode(&root.join("empty"), 0o711);
    set_modified(&root.join("deep"), 1_111_111_111);
    let receiver = Receiver::start(&["--once"]);
    let sent = receiver.send(&["--json", root.to_str().unwrap()]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(tree(&root), tree(&receiver.path("album")));

    let summary = sent.json();
    assert_eq!(
        (&summary["ok"], &summary["files"], &summary["directories"]),
        (&true.into(), &4.into(), &4.into())
    );
    assert_eq!(summary["bytes"], 3_000_014);
    let large = summary["entries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["path"].as_str().unwrap().ends_with("large"));
    assert_eq!(
        large.unwrap()["blake3"],
        blake3::hash(&noise(1, 3_000_000)).to_hex().as_str()
    );
    assert!(summary["goodput_bps"].as_f64().unwrap() > 0.0);
    let segments = summary["transport"]["data_segments"].as_u64().unwrap();
    assert!(segments > 3_000_000 / 9_000, "{segments}");

    let received = receiver.running.wait();
    assert_eq!(received.code, Some(0), "{received:?}");
    assert_eq!(received.json()["entries"].as_array().unwrap().len(), 4);
}

#[test]
fn ten_thousand_small_files() {
    // In the ordinary form a quarter of them.
    let count = if is_long() { 10_000_u64 } else { 2_500 };
    let source = tempfile::tempdir().unwrap();
    let root = source.path().join("many");
    for number in 0..count {
        let dir = root.join(format!("{}", number % 50));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(number.to_string()), noise(number, 1024)).unwrap();
    }
    // In memory where there is such a place: a disk takes them in two seconds, but some take a
    // minute to delete them.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let receiver = Receiver::start_in(dir.unwrap(), &["--once"]);
    let sent = receiver.send(&["--json", root.to_str().unwrap()]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert_eq!(
        (&sent.json()["files"], &sent.json()["failed"]),
        (&count.into(), &0.into())
    );
    assert!(
        tree(&root) == tree(&receiver.path("many")),
        "the trees differ"
    );
    assert_eq!(receiver.running.wait().code, Some(0));
}

#[test]
fn standard_input_becomes_a_file() {
    let receiver = Receiver::start(&["--once"]);
    let content = noise(7, 5_000_000);
    let address = receiver.address.to_string();
    let mut sender = Running::start(
        tack()
            .args([
                "send",
                "--insecure",
                "-",
                "--name",
                "stream",
                "--json",
                &address,
            ])
            .stdin(Stdio::piped()),
    );
    let mut input = sender.child.stdin.take().unwrap();
    input.write_all(&content).unwrap();
    drop(input);
    let sent = sender.wait();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(
        sent.json()["entries"][0]["blake3"],
        blake3::hash(&content).to_hex().as_str()
    );
    assert!(fs::read(receiver.path("stream")).unwrap() == content);
    assert_eq!(receiver.running.wait().code, Some(0));
}

#[test]
fn existing_files_are_refused_unless_overwrite() {
    let source = tempfile::tempdir().unwrap();
    let (old, new) = (source.path().join("old"), source.path().join("new"));
    fs::write(&old, "theirs").unwrap();
    fs::write(&new, "theirs").unwrap();
    let receiver = Receiver::start(&[]);
    fs::write(receiver.path("old"), "ours").unwrap();
    let paths = [old.to_str().unwrap(), new.to_str().unwrap(), "--json"];

    let sent = receiver.send(&paths);
    assert_eq!(sent.code, Some(4), "one arrived, one did not: {sent:?}");
    assert!(
        sent.stderr.contains("old") && sent.stderr.contains("--overwrite"),
        "{}",
        sent.stderr
    );
    assert_eq!(sent.json()["failures"].as_array().unwrap().len(), 1);
    assert_eq!(fs::read(receiver.path("old")).unwrap(), b"ours");
    assert_eq!(fs::read(receiver.path("new")).unwrap(), b"theirs");
    let sent = receiver.send(&paths);
    assert_eq!(sent.code, Some(4), "one is there, one is not: {sent:?}");
    assert_eq!(
        (&sent.json()["files"], &sent.json()["unchanged"]),
        (&0.into(), &1.into())
    );

    receiver.running.signal(Signal::INT);
    let Receiver { running, dir, .. } = receiver;
    assert_eq!(running.wait().code, Some(0), "an idle receiver ends well");
    let receiver = Receiver::start_in(dir, &["--overwrite", "--once"]);
    assert_eq!(receiver.send(&paths).code, Some(0));
    assert_eq!(fs::read(receiver.path("old")).unwrap(), b"theirs");
}

#[test]
fn a_refused_folder_is_named_once_and_nothing_of_it_counts_as_stored() {
    let source = tempfile::tempdir().unwrap();
    let root = source.path().join("tree");
    for number in 0..30 {
        let dir = root.join(format!("d{number}"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("f"), noise(number, 20_000)).unwrap();
    }
    let receiver = Receiver::start(&["--once"]);
    fs::create_dir(receiver.path("tree")).unwrap();
    let sent = receiver.send(&["--json", root.to_str().unwrap()]);
    assert_eq!(sent.code, Some(1), "{sent:?}");
    let summary = sent.json();
    for (key, value) in [
        ("files", 0),
        ("directories", 0),
        ("failed", 61),
        ("within_refused", 60),
    ] {
        assert_eq!(summary[key], value, "{key} of {summary}");
    }
    let failures = summary["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0]["path"], root.to_str().unwrap());
    assert_eq!(sent.stderr.lines().count(), 2, "{}", sent.stderr);
    assert!(
        sent.stderr.contains("60 of them in refused directories"),
        "{}",
        sent.stderr
    );
    let received = receiver.running.wait().json();
    assert_eq!(
        (&received["directories"], &received["files"]),
        (&0.into(), &0.into())
    );
    assert_eq!(received["failures"].as_array().unwrap().len(), 1);
}

#[test]
fn a_refused_folder_within_is_named_though_it_was_left_before_the_answer() {
    let source = tempfile::tempdir().unwrap();
    let root = source.path().join("tree");
    for name in ["a", "b", "c"] {
        fs::create_dir_all(root.join(name)).unwrap();
        fs::write(root.join(name).join("f"), name).unwrap();
    }
    let receiver = Receiver::start(&["--overwrite", "--once"]);
    fs::create_dir(receiver.path("tree")).unwrap();
    fs::write(receiver.path("tree/b"), "a file").unwrap();
    let sent = receiver.send(&["--json", root.to_str().unwrap()]);
    assert_eq!(sent.code, Some(4), "{sent:?}");
    let summary = sent.json();
    for (key, value) in [
        ("files", 2),
        ("directories", 3),
        ("failed", 2),
        ("within_refused", 1),
    ] {
        assert_eq!(summary[key], value, "{key} of {summary}");
    }
    assert_eq!(
        summary["failures"][0]["path"],
        root.join("b").to_str().unwrap()
    );
    assert_eq!(receiver.running.wait().json()["directories"], 3);
}

#[test]
fn large_refused_files_are_not_sent_to_their_end() {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("large");
    fs::File::create(&path).unwrap().set_len(4 << 30).unwrap();
    let receiver = Receiver::start(&[]);
    fs::write(receiver.path("large"), "ours").unwrap();
    let sent = receiver.send(&["--json", path.to_str().unwrap()]);
    assert_eq!(sent.code, Some(1), "{sent:?}");
    let segments = sent.json()["transport"]["data_segments"].as_u64().unwrap();
    assert!(
        segments < 1_000_000,
        "{segments} segments for a file refused at its beginning"
    );
}

#[test]
fn links_are_skipped_or_followed() {
    let source = tempfile::tempdir().unwrap();
    let root = source.path().join("links");
    fs::create_dir(&root).unwrap();
    fs::write(source.path().join("outside"), "outside").unwrap();
    symlink(source.path().join("outside"), root.join("link")).unwrap();
    symlink(&root, root.join("loop")).unwrap();
    fs::write(root.join("file"), "file").unwrap();
    let receiver = Receiver::start(&[]);
    let sent = receiver.send(&["--json", "--skip-links", root.to_str().unwrap()]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(
        sent.stderr.contains("symbolic link") && sent.stderr.contains("skipped"),
        "{}",
        sent.stderr
    );
    assert_eq!(sent.json()["skipped"], 2);
    assert_eq!(tree(&receiver.path("links")).len(), 1);

    let sent = receiver.send(&["--follow", "--name", "followed", root.to_str().unwrap()]);
    assert_eq!(
        sent.code,
        Some(4),
        "the loop is an error, the rest arrives: {sent:?}"
    );
    assert!(sent.stderr.contains("leads back"), "{}", sent.stderr);
    assert_eq!(
        fs::read(receiver.path("followed/link")).unwrap(),
        b"outside"
    );
    assert!(
        receiver
            .path("followed/link")
            .symlink_metadata()
            .unwrap()
            .is_file()
    );

    // A link named on the command line is meant.
    let sent = receiver.send(&[root.join("link").to_str().unwrap()]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(fs::read(receiver.path("link")).unwrap(), b"outside");
}

#[test]
fn several_senders_at_once() {
    let source = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[]);
    let senders: Vec<Running> = (0..4u64)
        .map(|number| {
            let path = source.path().join(format!("file{number}"));
            fs::write(&path, noise(number, 2_000_000)).unwrap();
            Running::start(
                tack()
                    .args(["send", "--insecure"])
                    .arg(path)
                    .arg(receiver.address.to_string()),
            )
        })
        .collect();
    for sender in senders {
        let ended = sender.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    for number in 0..4u64 {
        assert!(
            fs::read(receiver.path(format!("file{number}"))).unwrap() == noise(number, 2_000_000)
        );
    }
}

#[test]
fn unreadable_and_vanished_sources_are_named() {
    let source = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[]);
    let sent = receiver.send(&["--json", source.path().join("missing").to_str().unwrap()]);
    assert_eq!(sent.code, Some(2), "{sent:?}");
    assert!(sent.stderr.contains("missing"), "{}", sent.stderr);

    let root = source.path().join("dir");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("fine"), "fine").unwrap();
    // Unreadable for everyone, the administrator included: memory that is not there.
    symlink("/proc/self/mem", root.join("unreadable")).unwrap();
    symlink(source.path().join("gone"), root.join("vanished")).unwrap();
    let sent = receiver.send(&["--json", "--follow", root.to_str().unwrap()]);
    assert_eq!(sent.code, Some(4), "{sent:?}");
    assert!(sent.stderr.contains("vanished"), "{}", sent.stderr);
    assert_eq!(fs::read(receiver.path("dir/fine")).unwrap(), b"fine");
    assert!(!receiver.path("dir/vanished").exists());

    // What was promised and did not come is not a success at the other end either.
    fs::remove_file(root.join("unreadable")).unwrap();
    let mut receiver = Receiver::start(&["--once"]);
    let sent = receiver.send(&["--follow", root.to_str().unwrap()]);
    assert!(sent.stderr.contains("1 file was"), "{}", sent.stderr);
    let told = receiver.running.line();
    assert_eq!((&told["ok"], &told["failed"]), (&false.into(), &1.into()));
    assert_eq!(told["failures"][0]["path"], "dir/vanished");
    let received = receiver.running.wait();
    assert_eq!(received.code, Some(4), "{received:?}");
    assert!(
        received.stderr.contains("1 not stored, 1 file stored"),
        "{}",
        received.stderr
    );
    // The text output names them; JSON has them as a list.
    assert!(
        received.stderr.contains("not stored: dir/vanished: "),
        "{}",
        received.stderr
    );
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_not_stored() {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("log");
    // A sparse gigabyte takes long enough to be caught in the middle.
    let file = fs::File::create(&path).unwrap();
    file.set_len(1 << 30).unwrap();
    let receiver = Receiver::start(&[]);
    for grow in [true, false] {
        let sender = Running::start(
            tack()
                .args(["send", "--insecure"])
                .arg(&path)
                .arg(receiver.address.to_string()),
        );
        while sender.peak_memory().is_some_and(|peak| peak < 3 << 20) {
            std::thread::yield_now();
        }
        // Whenever it happens: before the file is opened it is the size that is sent; so change it
        // until the end.
        let mut sender = sender;
        let mut size = 1u64 << 30;
        while sender.child.try_wait().unwrap().is_none() {
            size = if grow { size + 1 } else { size - 1 };
            file.set_len(size).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        let sent = sender.wait();
        assert_eq!(sent.code, Some(1), "{sent:?}");
        assert!(sent.stderr.contains("while it was sent"), "{}", sent.stderr);
        assert!(!receiver.path("log").exists());
    }
}

#[test]
fn holes_beyond_all_measure_are_refused() {
    // It costs nothing here and there, but for the zeros to hash.
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("huge");
    fs::File::create(&path).unwrap().set_len(15 << 40).unwrap();
    let receiver = Receiver::start(&[]);
    let sent = receiver.send(&[path.to_str().unwrap()]);
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(
        sent.stderr.contains("exceed the limit of 4 TiB"),
        "{}",
        sent.stderr
    );
    assert_eq!(fs::read_dir(receiver.dir.path()).unwrap().count(), 0);
}
