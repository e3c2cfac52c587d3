//! `tack recv -`: one file goes to standard output.

use std::fs;
use std::io::Read;
use std::net::UdpSocket;
use std::process::Stdio;

use crate::support::{self, Running, finish, noise, tack};

/// An address of loopback where nobody listens.
fn free_address() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().to_string()
}

fn receive(address: &str) -> Running {
    Running::start(tack().args(["recv", "-", "--insecure", "--listen", address]))
}

fn send(address: &str, paths: &[&std::path::Path]) -> support::Ended {
    finish(
        tack()
            .args(["send", "--insecure", "--retry", "60s", "--json"])
            .args(paths)
            .arg(address),
    )
}

#[test]
fn a_file_goes_to_standard_output_and_nothing_else_does() {
    let (address, scratch) = (free_address(), tempfile::tempdir().unwrap());
    let (path, content) = (scratch.path().join("file"), noise(3, 5_000_000));
    fs::write(&path, &content).unwrap();
    let mut receiver = receive(&address);
    let mut output = receiver.take_stdout();
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let sent = send(&address, &[&path]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(reading.join().unwrap() == content);
    let received = receiver.wait();
    assert_eq!(received.code, Some(0), "{received:?}");
}

#[test]
fn folders_and_second_files_are_refused() {
    let (address, scratch) = (free_address(), tempfile::tempdir().unwrap());
    let folder = scratch.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("inner"), "inner").unwrap();
    for name in ["one", "two"] {
        fs::write(scratch.path().join(name), name).unwrap();
    }
    let receiver = receive(&address);
    let [one, two] = ["one", "two"].map(|name| scratch.path().join(name));
    let sent = send(&address, &[&folder, &one, &two]);
    assert_eq!(sent.code, Some(4), "{sent:?}");
    assert_eq!(sent.json()["files"], 1);
    let received = receiver.wait();
    assert_eq!((received.code, &received.stdout[..]), (Some(4), "one"));
}

#[test]
fn an_output_that_is_closed_is_told_to_the_sender() {
    let (address, scratch) = (free_address(), tempfile::tempdir().unwrap());
    let path = scratch.path().join("file");
    fs::write(&path, noise(3, 5_000_000)).unwrap();
    let mut receiver = receive(&address);
    receiver.close_stdout();
    let sent = send(&address, &[&path]);
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(
        sent.stderr.contains("refused by the receiver"),
        "{}",
        sent.stderr
    );
    assert_eq!(receiver.wait().code, Some(1));
    let mut both = tack();
    let both = both.args(["recv", "-", "--json"]).stdin(Stdio::null());
    assert_eq!(finish(both).code, Some(2));
}
