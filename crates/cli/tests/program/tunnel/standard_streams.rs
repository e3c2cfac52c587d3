//! `tack connect`: standard streams that lead to a target, and end one by one.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::process::Stdio;
use std::thread::JoinHandle;

use super::{Service, Two, echo, noise, target};
use crate::support::PATIENCE;

#[test]
fn standard_streams_reach_a_target_and_end_one_by_one() {
    let target = target(echo);
    let two = Two::new(&["--target", &target.to_string()]);
    let mut child = two
        .connect(&target.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes = noise(3_000_000);
    let mut input = child.stdin.take().unwrap();
    let sent = bytes.clone();
    // The target answers the last byte only after the end of our stream reached it.
    let writing = std::thread::spawn(move || input.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout == bytes, "{} bytes", output.stdout.len());
}

/// A program whose standard input stays open, and who reads its standard output.
fn held_open(
    mut command: std::process::Command,
) -> (Service, std::process::ChildStdin, JoinHandle<Vec<u8>>) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let reading = std::thread::spawn(move || {
        let mut heard = Vec::new();
        output.read_to_end(&mut heard).unwrap();
        heard
    });
    (Service::running(child), input, reading)
}

/// The exit code of a program, which ends by itself, while `meanwhile` is done again and again.
fn ends(service: &mut Service, mut meanwhile: impl FnMut()) -> Option<i32> {
    for _ in 0..PATIENCE.as_millis() / 20 {
        if let Some(status) = service.child.try_wait().unwrap() {
            return status.code();
        }
        meanwhile();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("it does not end");
}

#[test]
fn the_end_of_the_other_side_is_passed_on_while_standard_input_is_open() {
    let target = target(|mut stream| stream.write_all(b"bye").unwrap());
    let two = Two::new(&["--target", &target.to_string()]);
    let (mut service, mut input, reading) = held_open(two.connect(&target.to_string()));
    // As ssh waits for the end of its ProxyCommand.
    let mut waited = 0;
    while !reading.is_finished() {
        assert!(waited < PATIENCE.as_millis(), "standard output stays open");
        std::thread::sleep(std::time::Duration::from_millis(20));
        waited += 20;
    }
    assert_eq!(reading.join().unwrap(), b"bye");
    assert!(service.child.try_wait().unwrap().is_none(), "half-closed");
    // Nobody takes what is said now: the connection is over in both directions.
    let code = ends(&mut service, || _ = input.write_all(b"more"));
    assert_eq!(code, Some(1));
    service.line("broke off");
}

#[test]
fn a_side_that_ends_first_still_takes_what_the_other_says() {
    let (tell, told) = std::sync::mpsc::channel();
    let target = target(move |mut stream| {
        stream.shutdown(Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        tell.send(stream.read_to_end(&mut heard).map(|_| heard))
            .unwrap();
    });
    let two = Two::new(&["--target", &target.to_string()]);
    let (mut service, mut input, reading) = held_open(two.connect(&target.to_string()));
    assert_eq!(reading.join().unwrap(), b"");
    let bytes = noise(300_000);
    input.write_all(&bytes).unwrap();
    drop(input);
    assert_eq!(ends(&mut service, || ()), Some(0));
    assert!(told.recv_timeout(PATIENCE).unwrap().unwrap() == bytes);
}

#[test]
fn on_a_terminal_the_end_of_the_other_side_is_the_end() {
    // It makes a terminal.
    if let Some(why) = tack_skip::lacks(&["script"]) {
        return tack_skip::skipped(why);
    }
    let target = target(|mut stream| stream.write_all(b"bye").unwrap());
    let two = Two::new(&["--target", &target.to_string()]);
    let connect = two.connect(&target.to_string());
    let words = std::iter::once(connect.get_program()).chain(connect.get_args());
    let words: Vec<_> = words
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &words.join(" "), "/dev/null"]);
    let (mut service, _input, reading) = held_open(script);
    assert_eq!(ends(&mut service, || ()), Some(0));
    let heard = String::from_utf8(reading.join().unwrap()).unwrap();
    assert!(heard.contains("bye"), "{heard:?}");
}
