//! Whole transfers over pipes in memory: every byte between the two sides can be looked at and spoiled.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use indicatif::ProgressBar;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;

use super::channel::Channel;
use super::protocol::{Kind, NameRules, Reply, Request};
use super::receiver::committer::Committer;
use super::receiver::existing::Existing;
use super::receiver::serve::{Served, Service, serve};
use super::receiver::store::Store;
use super::report::{Listing, Report};
use super::sender::confirmations::Confirmations;
use super::sender::send::{Outbound, SendError, send};
use super::sender::source::{Links, Source};

const SILENCE: Duration = Duration::from_secs(60);

fn service(dir: &Path, silence: Duration) -> Arc<Service> {
    Arc::new(Service {
        store: Store::open(dir, Existing::Refuse).unwrap(),
        committer: Committer::start().unwrap(),
        listing: Listing::Files,
        silence,
    })
}

fn outbound(path: &Path, silence: Duration) -> Outbound {
    let name = path.file_name().unwrap().to_owned();
    Outbound {
        sources: vec![Source::Path {
            path: path.to_owned(),
            name,
        }],
        links: Links::Skip,
        silence,
        written: Arc::new(AtomicU64::new(0)),
    }
}

fn confirmations() -> Arc<Confirmations> {
    Arc::new(Confirmations::new(
        Report::new(Listing::Files),
        ProgressBar::hidden(),
    ))
}

/// A folder of a few files, 700 kB in all.
fn folder(at: &Path) -> PathBuf {
    let root = at.join("folder");
    fs::create_dir_all(root.join("inner")).unwrap();
    for (name, len) in [
        ("empty", 0),
        ("inner/small", 10),
        ("inner/middle", 100_000),
        ("large", 600_000),
    ] {
        let content: Vec<u8> = (0..len as u32)
            .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
            .collect();
        fs::write(root.join(name), content).unwrap();
    }
    root
}

/// Both sides of one transfer over a pair of pipes.
async fn transfer(
    root: &Path,
    dir: &Path,
    near: DuplexStream,
    far: DuplexStream,
) -> (Result<(), SendError>, Report, Served) {
    let (_stop, stopped) = watch::channel(false);
    let (service, confirmations) = (service(dir, SILENCE), confirmations());
    let receiving = async {
        let (reader, mut writer) = far.into_split();
        serve(reader, &mut writer, &service, stopped).await
    };
    let sending = async {
        let (reader, mut writer) = near.into_split();
        send(reader, &mut writer, outbound(root, SILENCE), &confirmations).await
    };
    let (sent, served) = tokio::join!(sending, receiving);
    (sent, confirmations.take_report(), served)
}

#[tokio::test]
async fn a_folder_crosses_the_narrowest_pipe() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, dir) = (folder(scratch.path()), scratch.path().join("received"));
    for capacity in [7, 1 << 20] {
        let (near, far) = tokio::io::duplex(capacity);
        let (sent, report, served) = transfer(&root, &dir, near, far).await;
        sent.unwrap();
        served.result.unwrap();
        assert_eq!((report.files, report.directories, report.failed), (4, 2, 0));
        assert_eq!((served.report.files, served.report.bytes), (4, 700_010));
        for name in ["empty", "inner/small", "inner/middle", "large"] {
            assert!(
                fs::read(root.join(name)).unwrap()
                    == fs::read(dir.join("folder").join(name)).unwrap()
            );
        }
        fs::remove_dir_all(dir.join("folder")).unwrap();
    }
}

/// Carries bytes from one pipe to the other and turns one bit of the byte at `position` on the way there.
async fn spoil(mut from: DuplexStream, mut to: DuplexStream, position: usize) {
    let (mut from_read, mut from_write) = tokio::io::split(&mut from);
    let (mut to_read, mut to_write) = tokio::io::split(&mut to);
    let there = async {
        let mut buffer = vec![0; 4096];
        let mut passed = 0;
        loop {
            match from_read.read(&mut buffer).await {
                Ok(count) if count > 0 => {
                    if (passed..passed + count).contains(&position) {
                        buffer[position - passed] ^= 0x10;
                    }
                    passed += count;
                    if to_write.write_all(&buffer[..count]).await.is_err() {
                        break;
                    }
                }
                _ => break,
            }
        }
        let _ = to_write.shutdown().await;
    };
    let back = async {
        let _ = tokio::io::copy(&mut to_read, &mut from_write).await;
        let _ = from_write.shutdown().await;
    };
    tokio::join!(there, back);
}

#[tokio::test]
async fn a_spoiled_byte_never_becomes_a_file() {
    let scratch = tempfile::tempdir().unwrap();
    let root = folder(scratch.path());
    // Greeting, entry frames, file contents: whatever is hit, nothing wrong may be stored.
    for position in [
        3, 14, 16, 20, 40, 60, 75, 90, 110, 1_000, 50_000, 110_000, 500_000, 699_000,
    ] {
        let dir = scratch.path().join(format!("received{position}"));
        let (near, middle_near) = tokio::io::duplex(1 << 16);
        let (middle_far, far) = tokio::io::duplex(1 << 16);
        let spoiling = spoil(middle_near, middle_far, position);
        let ((sent, report, served), ()) = tokio::join!(transfer(&root, &dir, near, far), spoiling);
        for entry in walkdir::WalkDir::new(&dir) {
            let entry = entry.unwrap();
            if entry.file_type().is_file() {
                // A spoiled name, mode or time goes unseen; spoiled content must not.
                let content = fs::read(entry.path()).unwrap();
                let whole = ["empty", "inner/small", "inner/middle", "large"]
                    .iter()
                    .any(|name| fs::read(root.join(name)).unwrap() == content);
                assert!(
                    whole,
                    "position {position}: {} is wrong",
                    entry.path().display()
                );
            }
        }
        if position > 1_000 {
            assert!(
                sent.is_err() || report.failed == 1,
                "position {position}: {sent:?} {served:?}"
            );
            assert!(report.files < 4);
        }
    }
}

#[tokio::test]
async fn a_stop_ends_a_transfer_and_is_explained() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("received");
    let path = scratch.path().join("long");
    // No hole: that would be sent at once.
    fs::write(&path, vec![1; 64 << 20]).unwrap();
    let (near, far) = tokio::io::duplex(1 << 16);
    let (stop, stopped) = watch::channel(false);
    let (service, confirmations) = (service(&dir, SILENCE), confirmations());
    let outbound = outbound(&path, SILENCE);
    let written = Arc::clone(&outbound.written);
    let stopping = async {
        while written.load(std::sync::atomic::Ordering::Relaxed) < 1 << 20 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stop.send(true).unwrap();
    };
    let receiving = async {
        let (reader, mut writer) = far.into_split();
        serve(reader, &mut writer, &service, stopped).await
    };
    let (reader, mut writer) = near.into_split();
    let (sent, served, ()) = tokio::join!(
        send(reader, &mut writer, outbound, &confirmations),
        receiving,
        stopping
    );
    assert!(
        matches!(&sent, Err(SendError::Fatal { message, .. }) if message.contains("shutting down")),
        "{sent:?}"
    );
    assert!(served.result.is_err());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[tokio::test]
async fn a_silent_peer_is_given_up() {
    let scratch = tempfile::tempdir().unwrap();
    let (_stop, stopped) = watch::channel(false);
    let little = Duration::from_millis(50);
    let service = service(scratch.path(), little);
    // A stranger that says nothing.
    let (_near, far) = tokio::io::duplex(64);
    let (reader, mut writer) = far.into_split();
    let served = serve(reader, &mut writer, &service, stopped).await;
    assert!(served.result.is_err() && !served.greeted);
    // One that goes away in the middle.
    let (mut near, far) = tokio::io::duplex(64);
    let mut hello = Vec::new();
    Request::Hello(super::names::RULES).encode(&mut hello);
    near.write_all(&hello).await.unwrap();
    near.shutdown().await.unwrap();
    let (_stop, stopped) = watch::channel(false);
    let (reader, mut writer) = far.into_split();
    let service = self::service(scratch.path(), little);
    let served = serve(reader, &mut writer, &service, stopped).await;
    assert_eq!(
        served.result.unwrap_err().to_string(),
        "the connection to the sender was lost: it was closed before the end of the transfer"
    );
    // A receiver that says nothing.
    let (near, _far) = tokio::io::duplex(1 << 10);
    let (reader, mut writer) = near.into_split();
    let sent = send(
        reader,
        &mut writer,
        outbound(&folder(scratch.path()), little),
        &confirmations(),
    )
    .await;
    assert!(
        matches!(&sent, Err(SendError::Stream(error)) if error.kind() == std::io::ErrorKind::TimedOut),
        "{sent:?}"
    );
}

/// The next frame of a stream: its kind and payload.
async fn frame(stream: &mut DuplexStream) -> (u8, Vec<u8>) {
    let kind = stream.read_u8().await.unwrap();
    let mut payload = vec![0; stream.read_u32().await.unwrap() as usize];
    stream.read_exact(&mut payload).await.unwrap();
    (kind, payload)
}

#[tokio::test]
async fn names_that_the_other_system_does_not_have_are_not_sent() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("names");
    fs::create_dir(&root).unwrap();
    for name in ["a:b", "back\\slash", "fine"] {
        fs::write(root.join(name), "x").unwrap();
    }
    let (near, mut far) = tokio::io::duplex(1 << 16);
    let confirmations = confirmations();
    let receiving = async {
        let mut replies = Vec::new();
        Reply::Queued { ahead: 1 }.encode(&mut replies);
        Reply::Welcome(NameRules::Windows).encode(&mut replies);
        far.write_all(&replies).await.unwrap();
        let mut kinds = Vec::new();
        while kinds.last() != Some(&(Kind::Done as u8)) {
            kinds.push(frame(&mut far).await.0);
        }
        replies.clear();
        Reply::Confirm {
            index: 1,
            size: 1,
            hash: *blake3::hash(b"x").as_bytes(),
        }
        .encode(&mut replies);
        Reply::Finished { files: 1, bytes: 1 }.encode(&mut replies);
        far.write_all(&replies).await.unwrap();
        kinds
    };
    let (reader, mut writer) = near.into_split();
    let outbound = outbound(&root, SILENCE);
    let (sent, kinds) = tokio::join!(
        send(reader, &mut writer, outbound, &confirmations),
        receiving
    );
    sent.unwrap();
    let count = |kind: Kind| kinds.iter().filter(|found| **found == kind as u8).count();
    assert_eq!(
        (count(Kind::Missing), count(Kind::File)),
        (2, 1),
        "{kinds:?}"
    );
    let report = confirmations.take_report();
    assert_eq!((report.files, report.failed), (1, 2));
}
