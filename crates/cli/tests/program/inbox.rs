//! What a receiver lets strangers do to its directory, to its permissions and to its other
//! transfers.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::support::{self, Receiver, Running, noise, tack};

#[test]
fn the_umask_of_the_receiver_holds() {
    let source = tempfile::tempdir().unwrap();
    let root = source.path().join("open");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), "x").unwrap();
    fs::set_permissions(root.join("file"), fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
    let inbox = tempfile::tempdir().unwrap();
    let script =
        "umask 027; exec \"$0\" recv --insecure --listen 127.0.0.1:0 --json --once --dir \"$1\"";
    let mut running = Running::start(
        Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_tack")])
            .arg(inbox.path()),
    );
    let address = running.line()["address"].as_str().unwrap().to_owned();
    let sent = support::finish(tack().args(["send", "--insecure"]).arg(&root).arg(address));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let mode = |name: &str| {
        fs::metadata(inbox.path().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!((mode("open"), mode("open/file")), (0o750, 0o640));
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn folders_that_exist_and_hidden_names_need_overwrite() {
    let source = tempfile::tempdir().unwrap();
    let photos = source.path().join("photos");
    fs::create_dir(&photos).unwrap();
    fs::write(photos.join("new"), "theirs").unwrap();
    fs::write(photos.join(".thumbnails"), "theirs").unwrap();
    let photos = photos.to_str().unwrap();
    let receiver = Receiver::start(&[]);
    fs::create_dir(receiver.path("photos")).unwrap();
    let sent = receiver.send(&[photos]);
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(
        sent.stderr.contains("--name") && sent.stderr.contains("--overwrite"),
        "{}",
        sent.stderr
    );
    assert_eq!(fs::read_dir(receiver.path("photos")).unwrap().count(), 0);
    for hidden in [".ssh", ".bash_profile"] {
        let sent = receiver.send(&["--name", hidden, photos]);
        assert_eq!(sent.code, Some(1), "{sent:?}");
        assert!(sent.stderr.contains("begin with '.'"), "{}", sent.stderr);
        assert!(!receiver.path(hidden).exists());
    }
    let sent = receiver.send(&["--name", "more", photos]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(
        receiver.path("more/.thumbnails").exists(),
        "hidden names below the top are fine"
    );

    let receiver = Receiver::start_in(receiver.dir, &["--overwrite"]);
    assert_eq!(receiver.send(&[photos]).code, Some(0));
    assert!(receiver.path("photos/new").exists());
    assert_eq!(receiver.send(&["--name", ".hidden", photos]).code, Some(0));
}

#[test]
fn a_closed_output_does_not_cut_off_other_transfers() {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("small");
    fs::write(&path, "x").unwrap();
    let mut receiver = Receiver::start(&[]);
    let address = receiver.address.to_string();
    let mut other = Running::start(
        tack()
            .args(["send", "--insecure", "-", "--name", "long", &address])
            .stdin(Stdio::piped()),
    );
    let content = noise(3, 24 << 20);
    let mut input = other.child.stdin.take().unwrap();
    // More than all buffers on the way hold: the receiver has begun when this returns.
    input.write_all(&content).unwrap();
    receiver.running.close_stdout();
    let sent = receiver.send(&[path.to_str().unwrap()]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    // Nobody hears of transfers any more, so none begins, sooner or later; the one under way goes
    // on.
    while receiver
        .send(&["--name", "late", path.to_str().unwrap()])
        .code
        == Some(0)
    {
        fs::remove_file(receiver.path("late")).unwrap();
    }
    input.write_all(&content).unwrap();
    drop(input);
    let sent = other.wait();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(fs::metadata(receiver.path("long")).unwrap().len(), 48 << 20);
    let mut running = receiver.running;
    assert_eq!(running.status().code(), Some(0));
}
