//! Whole transfers over pipes in memory: every byte between the two sides can be looked at and
//! spoiled.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;

use super::channel::Channel;
use super::groups::GROUP;
use super::protocol::{Hello, Kind, NameRules, Reply, Request, Taken};
use super::receiver::admission::Admission;
use super::receiver::committer::Committer;
use super::receiver::existing::Existing;
use super::receiver::holder::Sessions;
use super::receiver::part;
use super::receiver::progress::LiveProgress;
use super::receiver::serve::{Served, Service, serve};
use super::receiver::store::Store;
use super::report::{Listing, Report};
use super::sender::confirmations::Confirmations;
use super::sender::exclude::Exclude;
use super::sender::options::{Links, Options, Source};
use super::sender::progress::Progress;
use super::sender::send::{Outbound, SendError, send};
use crate::volume::Volume;

const SILENCE: Duration = Duration::from_secs(60);

fn service(dir: &Path, silence: Duration) -> Arc<Service> {
    service_with(dir, silence, Admission::default())
}

fn service_with(dir: &Path, silence: Duration, admission: Admission) -> Arc<Service> {
    Arc::new(Service {
        store: Store::open(dir, Existing::Refuse).unwrap(),
        committer: Committer::new(),
        listing: Listing::Files,
        admission,
        sessions: Sessions::default(),
        live: LiveProgress::new(Volume::Quiet, false),
        silence,
        greeting: Duration::from_secs(2),
    })
}

fn hello() -> Hello {
    Hello {
        names: super::names::RULES,
        session: [1; 16],
        returns: 0,
        taken: Taken::AsReceiver,
        dry_run: false,
        delete: false,
        files: u64::MAX,
        bytes: u64::MAX,
    }
}

fn outbound(path: &Path, silence: Duration) -> Outbound {
    let name = path.file_name().unwrap().to_owned();
    Outbound {
        sources: vec![Source::Path {
            path: path.to_owned(),
            name,
        }],
        options: Options {
            links: Links::Skip,
            checksum: false,
            dry_run: false,
            delete: false,
            exclude: Exclude::default(),
        },
        hello: hello(),
        silence,
        limit: None,
    }
}

fn confirmations() -> Arc<Confirmations> {
    Arc::new(Confirmations::new(
        Report::new(Listing::Files),
        Progress::hidden(),
    ))
}

/// What a receiver makes of one connection.
async fn serve_hidden(
    reader: <DuplexStream as Channel>::Reader,
    writer: &mut <DuplexStream as Channel>::Writer,
    service: &Arc<Service>,
    stopped: watch::Receiver<bool>,
) -> Served {
    serve(reader, writer, service, stopped, &mut service.live.begin()).await
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
        serve_hidden(reader, &mut writer, &service, stopped).await
    };
    let sending = async {
        let (reader, mut writer) = near.into_split();
        let (outbound, progress) = (outbound(root, SILENCE), Progress::hidden());
        send(reader, &mut writer, outbound, &confirmations, &progress).await
    };
    let (sent, served) = tokio::join!(sending, receiving);
    (sent, confirmations.take_report(), served)
}

#[tokio::test]
async fn a_folder_crosses_the_narrowest_pipe() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, dir) = (folder(scratch.path()), scratch.path().join("received"));
    // Seven bytes at a time take seconds of a processor: `TACK_LONG=1`, as CI sets it.
    for capacity in [if tack_skip::is_long() { 7 } else { 61 }, 1 << 20] {
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

/// Carries bytes from one pipe to the other and turns one bit of the byte at `position` on the way
/// there.
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
    // Greeting, entry frames, file contents: whatever is hit, nothing wrong may be stored. At the
    // same time: a side that waits in vain does so for as long as it is patient.
    let mut cases = tokio::task::JoinSet::new();
    for position in [
        3, 14, 16, 20, 40, 60, 75, 90, 110, 1_000, 50_000, 110_000, 500_000, 699_000,
    ] {
        let dir = scratch.path().join(format!("received{position}"));
        cases.spawn(stores_nothing_wrong(root.clone(), dir, position));
    }
    cases.join_all().await;
}

/// Sends a folder of which the byte at `position` of the stream is spoiled on the way.
async fn stores_nothing_wrong(root: PathBuf, dir: PathBuf, position: usize) {
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
    let progress = Progress::hidden();
    let stopping = async {
        while progress.bytes() < 1 << 20 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stop.send(true).unwrap();
    };
    let receiving = async {
        let (reader, mut writer) = far.into_split();
        serve_hidden(reader, &mut writer, &service, stopped).await
    };
    let (reader, mut writer) = near.into_split();
    let (sent, served, ()) = tokio::join!(
        send(reader, &mut writer, outbound, &confirmations, &progress),
        receiving,
        stopping
    );
    assert!(
        matches!(&sent, Err(SendError::Fatal { message, .. }) if message.contains("shutting down")),
        "{sent:?}"
    );
    assert!(served.result.is_err());
    // What came is kept for the next attempt, and nobody takes it for the file.
    let names: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        names
            .iter()
            .all(|name| name.to_string_lossy().ends_with(".part")),
        "{names:?}"
    );
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
    let served = serve_hidden(reader, &mut writer, &service, stopped).await;
    assert!(served.result.is_err() && served.hello.is_none());
    // One that goes away in the middle.
    let (mut near, far) = tokio::io::duplex(64);
    let mut hello = Vec::new();
    Request::Hello(self::hello()).encode(&mut hello);
    near.write_all(&hello).await.unwrap();
    near.shutdown().await.unwrap();
    let (_stop, stopped) = watch::channel(false);
    let (reader, mut writer) = far.into_split();
    let service = self::service(scratch.path(), little);
    let served = serve_hidden(reader, &mut writer, &service, stopped).await;
    assert_eq!(
        served.result.unwrap_err().to_string(),
        "the connection to the sender was lost: the sender closed it before the end of the transfer"
    );
    // A receiver that says nothing.
    let (near, _far) = tokio::io::duplex(1 << 10);
    let (reader, mut writer) = near.into_split();
    let sent = send(
        reader,
        &mut writer,
        outbound(&folder(scratch.path()), little),
        &confirmations(),
        &Progress::hidden(),
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
            if kinds.last() == Some(&(Kind::File as u8)) {
                let (index, listed) = (1, 0);
                replies.clear();
                Reply::Want { index, listed }.encode(&mut replies);
                far.write_all(&replies).await.unwrap();
            }
        }
        replies.clear();
        Reply::Confirm {
            index: 1,
            size: 1,
            hash: *blake3::hash(b"x").as_bytes(),
            name: Vec::new(),
        }
        .encode(&mut replies);
        Reply::Finished { files: 1, bytes: 1 }.encode(&mut replies);
        far.write_all(&replies).await.unwrap();
        kinds
    };
    let (reader, mut writer) = near.into_split();
    let outbound = outbound(&root, SILENCE);
    let progress = Progress::hidden();
    let (sent, kinds) = tokio::join!(
        send(reader, &mut writer, outbound, &confirmations, &progress),
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

/// Noise that a file system cannot make holes of.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

/// Carries bytes between two pipes and breaks both off after `limit` of them went there.
async fn cut_after(from: DuplexStream, to: DuplexStream, limit: u64) {
    let (mut from_read, mut from_write) = tokio::io::split(from);
    let (mut to_read, mut to_write) = tokio::io::split(to);
    let there = async {
        let mut limited = (&mut from_read).take(limit);
        let _ = tokio::io::copy(&mut limited, &mut to_write).await;
        if limited.limit() > 0 {
            // It ended by itself.
            let _ = to_write.shutdown().await;
            std::future::pending::<()>().await;
        }
    };
    let back = async {
        let _ = tokio::io::copy(&mut to_read, &mut from_write).await;
        let _ = from_write.shutdown().await;
    };
    tokio::select! {
        () = there => {}
        () = back => {}
    }
}

#[tokio::test]
async fn a_transfer_that_is_cut_off_goes_on_where_it_was() {
    const SIZE: usize = (10 << 20) + 12_345;
    let scratch = tempfile::tempdir().unwrap();
    let (path, dir) = (
        scratch.path().join("large"),
        scratch.path().join("received"),
    );
    let content = noise(SIZE);
    fs::write(&path, &content).unwrap();
    let mut here = 0;
    // Where it breaks: within a group, at once, near the end, never.
    for limit in [2_500_000, 10, 4_300_000, 3_000_000, u64::MAX] {
        let (near, middle_near) = tokio::io::duplex(1 << 16);
        let (middle_far, far) = tokio::io::duplex(1 << 16);
        let path_ = cut_after(middle_near, middle_far, limit);
        let ((sent, report, served), ()) = tokio::join!(transfer(&path, &dir, near, far), path_);
        // Groups that were here are not sent again.
        let most = (SIZE as u64 - here) + GROUP;
        assert!(report.carried <= most, "{} of {most}", report.carried);
        if limit == u64::MAX {
            sent.unwrap();
            served.result.unwrap();
            assert_eq!((report.files, report.bytes), (1, SIZE as u64));
            break;
        }
        assert!(sent.is_err() && served.result.is_err());
        assert!(!dir.join("large").exists(), "half a file has its name");
        let now = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len());
        let now = now.max().unwrap_or(0);
        assert!(now >= here, "something was lost");
        here = now;
    }
    assert!(here > 8 << 20);
    assert!(fs::read(dir.join("large")).unwrap() == content);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "the part is gone");
}

#[tokio::test]
async fn what_is_on_the_disk_is_not_trusted() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, dir) = (
        scratch.path().join("large"),
        scratch.path().join("received"),
    );
    let content = noise(6 << 20);
    fs::write(&path, &content).unwrap();
    let (near, middle_near) = tokio::io::duplex(1 << 16);
    let (middle_far, far) = tokio::io::duplex(1 << 16);
    let cut = cut_after(middle_near, middle_far, 5_000_000);
    let ((sent, ..), ()) = tokio::join!(transfer(&path, &dir, near, far), cut);
    assert!(sent.is_err());
    // Bytes of the part change, of the second group; and the source, of the first.
    let part = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&part).unwrap();
    let here = bytes.len() as u64;
    bytes[GROUP as usize + 77] ^= 1;
    fs::write(&part, bytes).unwrap();
    let mut content = content;
    content[5] ^= 1;
    fs::write(&path, &content).unwrap();
    let (near, far) = tokio::io::duplex(1 << 16);
    let (sent, report, served) = transfer(&path, &dir, near, far).await;
    sent.unwrap();
    served.result.unwrap();
    assert!(fs::read(dir.join("large")).unwrap() == content);
    // Their groups, and those from the break on.
    let from = here / GROUP * GROUP;
    assert_eq!(report.carried, 2 * GROUP + (6 << 20) - from);
}

#[tokio::test]
async fn a_part_is_told_only_to_the_peer_that_began_it() {
    use super::channel::pipe::Pipe;
    let scratch = tempfile::tempdir().unwrap();
    let (path, dir) = (
        scratch.path().join("large"),
        scratch.path().join("received"),
    );
    fs::write(&path, noise(4 << 20)).unwrap();
    let attempt = async |peer, limit| {
        let (near, middle_near) = tokio::io::duplex(1 << 16);
        let (middle_far, stream) = tokio::io::duplex(1 << 16);
        let far = Pipe {
            stream,
            peer: Some(peer),
        };
        let (_stop, stopped) = watch::channel(false);
        let (service, confirmations) = (service(&dir, SILENCE), confirmations());
        let receiving = async {
            let (reader, mut writer) = far.into_split();
            serve_hidden(reader, &mut writer, &service, stopped).await
        };
        let sending = async {
            let (reader, mut writer) = near.into_split();
            let progress = Progress::hidden();
            let outbound = outbound(&path, SILENCE);
            send(reader, &mut writer, outbound, &confirmations, &progress).await
        };
        let cut = cut_after(middle_near, middle_far, limit);
        let _ = tokio::join!(receiving, sending, cut);
        confirmations.take_report().carried
    };
    attempt([1; 32], 2_500_000).await;
    let part = dir.join(part::name(&[1; 32], Path::new("large")));
    let here = fs::metadata(part).unwrap().len();
    let what_it_lacked = (4 << 20) - here / GROUP * GROUP;
    assert_eq!(attempt([2; 32], u64::MAX).await, 4 << 20, "all of it");
    fs::remove_file(dir.join("large")).unwrap();
    assert_eq!(
        attempt([1; 32], u64::MAX).await,
        what_it_lacked,
        "what it lacked"
    );
}

/// Sends a file to a receiver that permits `most` bytes, and announces few. The connection breaks
/// after each of `limits` bytes of its stream. How the last one ended, and the bytes that each
/// connection carried.
async fn limited(len: usize, most: u64, limits: &[u64]) -> (Result<(), SendError>, Vec<u64>) {
    let scratch = tempfile::tempdir().unwrap();
    let (path, dir) = (
        scratch.path().join("large"),
        scratch.path().join("received"),
    );
    fs::write(&path, noise(len)).unwrap();
    let admission = Admission {
        max_bytes: Some(most),
        ..Admission::default()
    };
    let service = service_with(&dir, SILENCE, admission);
    let mut carried = Vec::new();
    let mut last = Ok(());
    for limit in limits {
        let (near, middle_near) = tokio::io::duplex(1 << 16);
        let (middle_far, far) = tokio::io::duplex(1 << 16);
        let (_stop, stopped) = watch::channel(false);
        let confirmations = confirmations();
        let receiving = async {
            let (reader, mut writer) = far.into_split();
            serve_hidden(reader, &mut writer, &service, stopped).await
        };
        let sending = async {
            let (reader, mut writer) = near.into_split();
            let mut outbound = outbound(&path, SILENCE);
            (outbound.hello.files, outbound.hello.bytes) = (1, 10);
            outbound.hello.returns = 600;
            let progress = Progress::hidden();
            send(reader, &mut writer, outbound, &confirmations, &progress).await
        };
        let cut = cut_after(middle_near, middle_far, *limit);
        let (served, sent, ()) = tokio::join!(receiving, sending, cut);
        carried.push(served.report.carried);
        last = sent;
    }
    assert_eq!(dir.join("large").exists(), last.is_ok());
    (last, carried)
}

#[tokio::test]
async fn bytes_that_arrive_are_limited_whatever_was_announced() {
    let too_much = |sent: Result<(), SendError>| match sent {
        Err(SendError::Fatal { message, .. }) => assert!(message.contains("--max-bytes")),
        other => panic!("{other:?}"),
    };
    let (sent, carried) = limited(3 << 20, 1 << 20, &[u64::MAX]).await;
    too_much(sent);
    // The frame that exceeds it is the last one.
    assert!(carried[0] <= (1 << 20) + GROUP, "{carried:?}");
    // The limit is one of the whole transfer.
    let (sent, carried) = limited(3 << 20, 1 << 20, &[700_000, u64::MAX]).await;
    too_much(sent);
    assert!(carried[1] <= (1 << 20) + 2 * GROUP - 500_000, "{carried:?}");
}

#[tokio::test]
async fn bytes_that_come_twice_after_a_break_do_not_exceed_the_limit() {
    const LEN: usize = (10 << 20) + 12_345;
    let limits = [2_500_000, 10, 4_300_000, 1_000_000, 300_000, u64::MAX];
    let (sent, carried) = limited(LEN, LEN as u64, &limits).await;
    sent.unwrap();
    assert!(carried.iter().sum::<u64>() > LEN as u64, "{carried:?}");
}
