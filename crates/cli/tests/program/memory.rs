//! What transfers take of memory, however large they are and whoever stops reading.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Receiver, Running, is_long, noise, tack};

const MEMORY_PROMISE: u64 = 64 << 20;

/// Writes `size` bytes of noise, seeded by position, so that a block at a wrong place shows.
fn write_noise(path: &Path, size: u64) {
    let mut file = fs::File::create(path).unwrap();
    for block in 0..size >> 20 {
        file.write_all(&noise(block + 1, 1 << 20)).unwrap();
    }
}

fn assert_noise(path: &Path, size: u64) {
    let mut file = fs::File::open(path).unwrap();
    assert_eq!(file.metadata().unwrap().len(), size);
    let mut read = vec![0; 1 << 20];
    for block in 0..size >> 20 {
        file.read_exact(&mut read).unwrap();
        assert!(read == noise(block + 1, 1 << 20), "MiB {block} differs");
    }
}

/// Noise of `size` bytes in a file, and the folder that it is in; `None` without room for it and a
/// copy.
fn noise_in_a_file(size: u64) -> Option<(tempfile::TempDir, PathBuf)> {
    let source = tempfile::tempdir().unwrap();
    let disk = rustix::fs::statvfs(source.path()).unwrap();
    if disk.f_bavail * disk.f_frsize < 2 * size + (256 << 20) {
        tack_skip::skipped(format_args!(
            "twice {size} bytes do not fit on the disk of the temporary folder"
        ));
        return None;
    }
    let path = source.path().join("file");
    write_noise(&path, size);
    Some((source, path))
}

fn sender(path: &Path, receiver: &Receiver) -> Running {
    let mut command = tack();
    command.args(["send", "--insecure", "--json"]).arg(path);
    Running::start(command.arg(receiver.address.to_string()))
}

/// Waits for the end of a sender, checks both sides' memory against the promise of 64 MiB, and
/// returns what the sender carried, bytes.
fn sent_in_little_memory(mut sender: Running, receiver: &Receiver) -> u64 {
    let mut peaks = (0, 0);
    while sender.child.try_wait().unwrap().is_none() {
        // A process that has ended, or is about to, shows no peak any more.
        peaks.0 = sender.peak_memory().unwrap_or(peaks.0);
        peaks.1 = receiver.running.peak_memory().unwrap_or(peaks.1);
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = sender.wait();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    println!(
        "peak memory: sender {} KiB, receiver {} KiB",
        peaks.0 >> 10,
        peaks.1 >> 10
    );
    for (side, peak) in [("sender", peaks.0), ("receiver", peaks.1)] {
        assert!(peak > 0 && peak < MEMORY_PROMISE, "{side}: {peak} bytes");
    }
    sent.json()["carried_bytes"].as_u64().unwrap()
}

/// Moves `size` bytes, compares them, and checks both sides' memory.
fn arrives_intact_in_little_memory(size: u64) {
    let Some((_source, path)) = noise_in_a_file(size) else {
        return;
    };
    let receiver = Receiver::start(&["--once"]);
    sent_in_little_memory(sender(&path, &receiver), &receiver);
    assert_noise(&receiver.path("file"), size);
    assert_eq!(receiver.running.wait().code, Some(0));
}

#[test]
fn a_resumption_takes_less_than_64_mib_of_memory() {
    let size = if is_long() { 1 << 30 } else { 160 << 20 };
    let Some((_source, path)) = noise_in_a_file(size) else {
        return;
    };
    let receiver = Receiver::start(&[]);
    let mut first = sender(&path, &receiver);
    let part = || {
        let entries = fs::read_dir(receiver.dir.path()).unwrap().flatten();
        entries.map(|entry| entry.metadata().unwrap().len()).max()
    };
    while part() < Some(size / 4) {
        assert!(first.child.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(Duration::from_millis(1));
    }
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let carried = sent_in_little_memory(sender(&path, &receiver), &receiver);
    assert!(carried < size, "nothing was there: {carried} bytes");
    assert_noise(&receiver.path("file"), size);
}

#[test]
fn a_large_file_arrives_intact_in_less_than_64_mib_of_memory() {
    // More than both sides may have together; a gibibyte in CI.
    arrives_intact_in_little_memory(if is_long() { 1 << 30 } else { 160 << 20 });
}

/// `cargo test --release -p tack-cli --test program -- memory --ignored --nocapture`
#[test]
#[ignore = "moves 8 GiB"]
fn eight_gibibytes_arrive_intact_in_less_than_64_mib_of_memory() {
    arrives_intact_in_little_memory(8 << 30);
}

#[test]
fn a_receiver_that_stops_stalls_the_sender_without_memory() {
    let receiver = Receiver::start(&["--once"]);
    let address = receiver.address.to_string();
    let mut sender = Running::start(
        tack()
            .args(["send", "--insecure", "-", "--name", "stalled", &address])
            .stdin(Stdio::piped()),
    );
    receiver.running.signal(Signal::STOP);
    let mut input = sender.child.stdin.take().unwrap();
    let chunk = noise(5, 1 << 20);
    let writer = std::thread::spawn(move || {
        for _ in 0..200 {
            input.write_all(&chunk).unwrap();
        }
    });
    // Time for a sender without bounds to take all 200 MiB; one with bounds is long stalled.
    std::thread::sleep(Duration::from_secs(2));
    assert!(
        !writer.is_finished(),
        "all 200 MiB were taken though nobody reads"
    );
    let peaks = [&sender, &receiver.running].map(|side| side.peak_memory().unwrap());
    println!("peak memory, sender and stopped receiver: {peaks:?} bytes");
    assert!(peaks.iter().all(|peak| *peak < MEMORY_PROMISE), "{peaks:?}");
    receiver.running.signal(Signal::CONT);
    writer.join().unwrap();
    let sent = sender.wait();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(
        fs::metadata(receiver.path("stalled")).unwrap().len(),
        200 << 20
    );
}
