//! Senders that want the same receiver, or the same name.

use std::fs;
use std::io::Write;
use std::process::{ChildStdin, Stdio};

use crate::support::{Receiver, Running, noise, tack};

/// A sender of standard input that has begun, under this name.
fn begun(receiver: &Receiver, name: &str) -> (Running, ChildStdin) {
    let address = receiver.address.to_string();
    let mut sender = Running::start(
        tack()
            .args(["send", "--insecure", "-", "--name", name, &address])
            .stdin(Stdio::piped()),
    );
    let mut input = sender.child.stdin.take().unwrap();
    // More than all buffers on the way hold together, so that the receiver has begun when this
    // returns.
    input.write_all(&noise(3, 24 << 20)).unwrap();
    (sender, input)
}

fn small_file() -> (tempfile::TempDir, String) {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("file");
    fs::write(&path, "x").unwrap();
    let path = path.to_str().unwrap().to_owned();
    (source, path)
}

#[test]
fn twenty_senders_at_once_wait_for_their_turns() {
    let (_source, path) = small_file();
    let receiver = Receiver::start(&["--max-transfers", "1"]);
    let (first, input) = begun(&receiver, "first");
    let address = receiver.address.to_string();
    let others: Vec<_> = (0..20)
        .map(|number| {
            let name = format!("other-{number}");
            Running::start(tack().args(["send", "--insecure", &path, "--name", &name, &address]))
        })
        .collect();
    drop(input);
    assert_eq!(first.wait().code, Some(0));
    for other in others {
        let ended = other.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    assert_eq!(fs::read_dir(receiver.dir.path()).unwrap().count(), 21);
}

#[test]
fn a_busy_receiver_is_tried_again_for_a_time() {
    let (_source, path) = small_file();
    let receiver = Receiver::start(&["--max-transfers", "1", "--max-waiting", "0"]);
    let (first, input) = begun(&receiver, "first");
    let ended = receiver.send(&[&path, "--retry", "300ms"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let address = receiver.address.to_string();
    let patient =
        Running::start(tack().args(["send", "--insecure", &path, &address, "--retry", "100s"]));
    drop(input);
    assert_eq!(first.wait().code, Some(0));
    let ended = patient.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(receiver.path("file").exists());
}

#[test]
fn who_begins_first_has_the_name() {
    let (_source, path) = small_file();
    let first_has_the_name = |options: &[&str]| {
        let receiver = Receiver::start(options);
        let (first, input) = begun(&receiver, "wanted");
        let second = receiver.send(&[&path, "--name", "wanted"]);
        assert_eq!(second.code, Some(1), "{second:?}");
        assert!(second.stderr.contains("began before"), "{}", second.stderr);
        drop(input);
        let first = first.wait();
        assert_eq!(first.code, Some(0), "{first:?}");
        assert_eq!(
            fs::metadata(receiver.path("wanted")).unwrap().len(),
            24 << 20
        );
    };
    // At the same time: they mostly wait.
    std::thread::scope(|scope| {
        scope.spawn(|| first_has_the_name(&[]));
        scope.spawn(|| first_has_the_name(&["--overwrite"]));
    });
}
