//! Transfers with `--rename`: what an earlier connection or transfer renamed is not sent again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use crate::resume::{Inbox, MIB, Protection, Relay};
use crate::support::{Ended, Receiver, Running, noise};

/// Writes a file that was last changed `seconds` after a fixed time.
fn write(path: &Path, content: &[u8], seconds: u64) {
    fs::write(path, content).unwrap();
    let file = fs::File::options().append(true).open(path).unwrap();
    let time = Duration::from_secs(1_700_000_000 + seconds);
    file.set_modified(SystemTime::UNIX_EPOCH + time).unwrap();
}

fn count(ended: &Ended, key: &str) -> u64 {
    ended.json()[key].as_u64().unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

/// A folder with a file `a.txt`, which `receiver` has with other content.
fn folder(receiver: &Receiver) -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("folder");
    fs::create_dir(&root).unwrap();
    write(&root.join("a.txt"), b"first", 1);
    fs::create_dir(receiver.path("folder")).unwrap();
    write(&receiver.path("folder/a.txt"), b"other", 0);
    (scratch, root)
}

fn send(receiver: &Receiver, root: &Path, options: &[&str]) -> Ended {
    let ended = receiver.send(&[&["--json"], options, &[root.to_str().unwrap()]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

#[test]
fn a_file_that_was_renamed_is_sent_again_only_if_it_changed() {
    let receiver = Receiver::start(&["--rename"]);
    let (_scratch, root) = folder(&receiver);
    let there = || names(&receiver.path("folder"));
    let sent = send(&receiver, &root, &[]);
    assert!(sent.stderr.contains("stored as a.1.txt"), "{sent:?}");
    for options in [&[][..], &["--checksum"], &["--rename"]] {
        let again = send(&receiver, &root, options);
        let counts = ["files", "unchanged", "carried_bytes"].map(|key| count(&again, key));
        assert_eq!(counts, [0, 1, 0], "{options:?}: {again:?}");
    }
    let dry = receiver.send(&["--dry-run", root.to_str().unwrap()]);
    assert_eq!((dry.code, &*dry.stdout), (Some(0), ""), "{dry:?}");
    assert!(dry.stderr.contains("1 unchanged"), "{dry:?}");
    assert_eq!(there(), ["a.1.txt", "a.txt"]);

    write(&root.join("a.txt"), b"later", 2);
    assert_eq!(count(&send(&receiver, &root, &[]), "files"), 1);
    assert_eq!(there(), ["a.1.txt", "a.2.txt", "a.txt"]);
    for options in [&[][..], &["--checksum"]] {
        assert_eq!(count(&send(&receiver, &root, options), "unchanged"), 1);
    }
    for (name, content) in [("a", "other"), ("a.1", "first"), ("a.2", "later")] {
        let stored = fs::read(receiver.path(format!("folder/{name}.txt"))).unwrap();
        assert_eq!(stored, content.as_bytes(), "{name}");
    }
    // Also where the mode forbids its owner to change it.
    write(&root.join("a.txt"), b"least", 3);
    let mut permissions = fs::metadata(root.join("a.txt")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(root.join("a.txt"), permissions).unwrap();
    for files in [1, 0] {
        assert_eq!(count(&send(&receiver, &root, &[]), "files"), files);
    }
}

#[test]
fn a_file_of_the_receiver_does_not_pass_for_a_renamed_one() {
    let receiver = Receiver::start(&["--rename"]);
    let (_scratch, root) = folder(&receiver);
    // Of the same size and time as the one that comes.
    write(&receiver.path("folder/a.1.txt"), b"FIRST", 1);
    for files in [1, 0] {
        assert_eq!(count(&send(&receiver, &root, &[]), "files"), files);
    }
    let stored = fs::read(receiver.path("folder/a.2.txt")).unwrap();
    assert_eq!(stored, b"first");
}

#[test]
fn a_further_name_of_a_renamed_file_is_linked_to_it() {
    let receiver = Receiver::start(&["--rename"]);
    let scratch = tempfile::tempdir().unwrap();
    let [first, further] = ["a.txt", "b.txt"].map(|name| scratch.path().join(name));
    write(&first, b"first", 1);
    write(&receiver.path("a.txt"), b"other", 0);
    send(&receiver, &first, &[]);
    fs::hard_link(&first, &further).unwrap();
    let again = send(&receiver, &further, &[first.to_str().unwrap()]);
    assert_eq!(count(&again, "carried_bytes"), 0, "{again:?}");
    let inode = |name: &str| fs::metadata(receiver.path(name)).unwrap().ino();
    assert_eq!(inode("b.txt"), inode("a.1.txt"));
}

/// Two files for a receiver that has others of their names.
struct Pair {
    _scratch: tempfile::TempDir,
    paths: [PathBuf; 2],
    large: Vec<u8>,
    inbox: Inbox,
}

const LARGE: u64 = 8 * MIB;

impl Pair {
    fn new() -> Self {
        let inbox = Inbox::start_with(Protection::Clear, &["--rename"]);
        let scratch = tempfile::tempdir().unwrap();
        let paths = ["a.txt", "large.bin"].map(|name| scratch.path().join(name));
        let large = noise(5, LARGE as usize);
        write(&paths[0], b"small", 1);
        write(&paths[1], &large, 1);
        for name in ["a.txt", "large.bin"] {
            write(&inbox.dir.path().join(name), b"other", 0);
        }
        Self {
            _scratch: scratch,
            paths,
            large,
            inbox,
        }
    }

    fn start(&self, to: &str) -> Running {
        let mut command = self.inbox.protection.command("send");
        command.args(["--bwlimit", "40M", "--timeout", "4s"]);
        Running::start(command.args(&self.paths).arg(to))
    }

    /// Waits until the small file is there, and half of the large one.
    fn wait_for_half(&self) {
        let small = self.inbox.dir.path().join("a.1.txt");
        while !small.exists() || self.inbox.part() < LARGE / 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn check(&self) {
        let there = names(self.inbox.dir.path());
        assert_eq!(there, ["a.1.txt", "a.txt", "large.1.bin", "large.bin"]);
        let read = |name: &str| fs::read(self.inbox.dir.path().join(name)).unwrap();
        assert_eq!(read("a.1.txt"), b"small");
        assert!(read("large.1.bin") == self.large, "wrong bytes");
        assert_eq!(
            (read("a.txt"), read("large.bin")),
            (b"other".into(), b"other".into())
        );
    }
}

#[test]
fn a_connection_that_is_made_again_renames_nothing_twice() {
    let pair = Pair::new();
    let relay = Relay::to(pair.inbox.address);
    let sending = pair.start(&relay.address.to_string());
    pair.wait_for_half();
    relay.epoch.fetch_add(1, Ordering::Relaxed);
    let ended = sending.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(count(&ended, "reconnects") > 0, "{ended:?}");
    pair.check();
    // Each counts once.
    assert_eq!(["files", "unchanged"].map(|key| count(&ended, key)), [2, 0]);
    let carried = count(&ended, "carried_bytes");
    assert!(
        carried <= LARGE + 5 + MIB * count(&ended, "reconnects"),
        "{ended:?}"
    );
}

#[test]
fn a_sender_that_is_killed_goes_on_with_the_renamed_file() {
    let pair = Pair::new();
    let address = pair.inbox.address.to_string();
    let mut sending = pair.start(&address);
    pair.wait_for_half();
    sending.child.kill().unwrap();
    sending.child.wait().unwrap();
    let there = pair.inbox.part();
    let ended = pair.start(&address).wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    pair.check();
    assert_eq!(["files", "unchanged"].map(|key| count(&ended, key)), [1, 1]);
    let carried = count(&ended, "carried_bytes");
    assert!(
        carried <= LARGE - there + MIB,
        "{carried} with {there} there"
    );
}
