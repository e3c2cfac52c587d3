//! A sender written by hand that lies: nothing it says may place a byte outside the receiving
//! directory, leave half a file, or end the receiver.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Receiver, finish, tack};
use tack::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const HELLO: u8 = 0x01;
const ENTER: u8 = 0x02;
const LEAVE: u8 = 0x03;
const FILE: u8 = 0x04;
const DATA: u8 = 0x05;
const END: u8 = 0x06;
const DONE: u8 = 0x08;
const LINK: u8 = 0x0a;
const HOLE: u8 = 0x0b;
const CONTENT: u8 = 0x0c;
const QUERY: u8 = 0x0d;
const SEEK: u8 = 0x0e;
const WELCOME: u8 = 0x81;
const CONFIRM: u8 = 0x82;
const REJECT: u8 = 0x83;
const FINISHED: u8 = 0x84;
const FATAL: u8 = 0x85;
const WANT: u8 = 0x87;
const HAVE: u8 = 0x88;
const GROUPS: u8 = 0x89;

/// What a sender greets with: no wishes, and sizes that it does not know.
fn hello() -> Vec<u8> {
    let mut hello = b"tackfile\x00\x04\x00".to_vec();
    hello.extend_from_slice(&[7; 16]);
    hello.extend_from_slice(&[0; 6]);
    hello.extend_from_slice(&[0xff; 16]);
    hello
}

struct Liar {
    stream: Stream,
}

impl Liar {
    async fn connect(receiver: &Receiver) -> Self {
        Self {
            stream: tack::connect(receiver.address).await.unwrap(),
        }
    }

    async fn greeted(receiver: &Receiver) -> Self {
        let mut liar = Self::connect(receiver).await;
        liar.frame(HELLO, &hello()).await;
        assert_eq!(liar.answer().await.0, WELCOME);
        liar
    }

    async fn raw(&mut self, bytes: &[u8]) {
        // The receiver may have hung up already; its answer is what counts.
        let _ = self.stream.write_all(bytes).await;
    }

    async fn frame(&mut self, kind: u8, payload: &[u8]) {
        let mut frame = vec![kind];
        frame.extend_from_slice(&(payload.len() as u32).to_be_bytes());
        frame.extend_from_slice(payload);
        self.raw(&frame).await;
    }

    async fn entry(&mut self, kind: u8, name: &[u8], size: u64) {
        let mut payload = Vec::new();
        if kind == FILE {
            payload.push(0);
        }
        payload.extend_from_slice(&0o644u32.to_be_bytes());
        payload.extend_from_slice(&[0; 12]);
        payload.extend_from_slice(&size.to_be_bytes());
        payload.extend_from_slice(&[0; 8]);
        payload.extend_from_slice(name);
        self.frame(kind, &payload).await;
    }

    /// Offers a file, and begins its content if it is wanted; otherwise the answer.
    async fn begin(&mut self, name: &[u8], size: u64) -> Result<(), (u8, Vec<u8>)> {
        self.entry(FILE, name, size).await;
        let (kind, payload) = self.answer().await;
        if kind != WANT {
            return Err((kind, payload));
        }
        self.frame(CONTENT, &payload[..8]).await;
        Ok(())
    }

    /// A whole file; answers with what the receiver says of it.
    async fn file(&mut self, name: &[u8], content: &[u8]) -> (u8, Vec<u8>) {
        if let Err(answer) = self.begin(name, content.len() as u64).await {
            return answer;
        }
        self.frame(DATA, content).await;
        self.frame(END, blake3::hash(content).as_bytes()).await;
        self.answer().await
    }

    /// The next answer that is not a keep-alive.
    async fn answer(&mut self) -> (u8, Vec<u8>) {
        loop {
            let kind = self.stream.read_u8().await.unwrap();
            let len = self.stream.read_u32().await.unwrap();
            let mut payload = vec![0; len as usize];
            self.stream.read_exact(&mut payload).await.unwrap();
            if kind != 0 {
                return (kind, payload);
            }
        }
    }

    /// A symbolic link.
    async fn link(&mut self, name: &[u8], target: &[u8]) -> u8 {
        let mut payload = (target.len() as u16).to_be_bytes().to_vec();
        payload.extend_from_slice(target);
        payload.extend_from_slice(&0o777u32.to_be_bytes());
        payload.extend_from_slice(&[0; 12]);
        payload.extend_from_slice(&[0xff; 8]);
        payload.extend_from_slice(&[0; 8]);
        payload.extend_from_slice(name);
        self.frame(LINK, &payload).await;
        self.answer().await.0
    }
}

/// The receiver still does its job.
fn still_serves(receiver: &Receiver) {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("still");
    fs::write(&path, "serving").unwrap();
    let sent = receiver.send(&[path.to_str().unwrap()]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    fs::remove_file(receiver.path("still")).unwrap();
}

#[tokio::test]
async fn names_that_lead_out_are_refused() {
    let receiver = Receiver::start(&[]);
    let outside = receiver
        .dir
        .path()
        .parent()
        .unwrap()
        .join("tack-hostile-outside");
    let outside = outside.to_str().unwrap();
    let mut liar = Liar::greeted(&receiver).await;
    let names: [&[u8]; 9] = [
        b"",
        b".",
        b"..",
        b"../tack-hostile-outside",
        outside.as_bytes(),
        b"a/../../b",
        b"nul\0byte",
        &[b'x'; 300],
        &[b'y'; 4096],
    ];
    for name in names {
        let (kind, payload) = liar.file(name, b"evil").await;
        assert_eq!((kind, payload[8]), (REJECT, 2), "{name:?}");
        liar.entry(ENTER, name, u64::MAX).await;
        let (kind, payload) = liar.answer().await;
        assert_eq!((kind, payload[8]), (REJECT, 2), "{name:?}");
        // Whatever is in a refused directory is refused, too.
        let (kind, payload) = liar.file(b"inside", b"evil").await;
        assert_eq!((kind, payload[8]), (REJECT, 5), "{name:?}");
        liar.frame(LEAVE, b"").await;
    }
    let (kind, _) = liar.file(b"good", b"good").await;
    assert_eq!(kind, CONFIRM);
    liar.frame(DONE, b"").await;
    assert_eq!(liar.answer().await.0, FINISHED);
    assert!(!fs::exists(outside).unwrap());
    assert_eq!(fs::read_dir(receiver.dir.path()).unwrap().count(), 1);
    still_serves(&receiver);
}

#[tokio::test]
async fn links_that_lead_out_are_not_followed() {
    let receiver = Receiver::start(&["--overwrite"]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("precious"), "precious").unwrap();
    symlink(outside.path(), receiver.path("absolute")).unwrap();
    symlink("../..", receiver.path("relative")).unwrap();
    symlink(outside.path().join("precious"), receiver.path("file")).unwrap();
    let mut liar = Liar::greeted(&receiver).await;
    for name in [&b"absolute"[..], b"relative"] {
        liar.entry(ENTER, name, u64::MAX).await;
        assert_eq!(liar.answer().await.0, REJECT);
        assert_eq!(liar.file(b"precious", b"evil").await.0, REJECT);
        liar.frame(LEAVE, b"").await;
    }
    // Overwriting replaces the link, never what it points to.
    assert_eq!(liar.file(b"file", b"new").await.0, CONFIRM);
    assert_eq!(
        fs::read(outside.path().join("precious")).unwrap(),
        b"precious"
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert!(receiver.path("file").symlink_metadata().unwrap().is_file());
}

#[tokio::test]
async fn content_that_does_not_match_its_hash_is_not_stored() {
    let receiver = Receiver::start(&[]);
    let mut liar = Liar::greeted(&receiver).await;
    liar.begin(b"corrupt", 5).await.unwrap();
    liar.frame(DATA, b"hello").await;
    liar.frame(END, blake3::hash(b"hellO").as_bytes()).await;
    let (kind, payload) = liar.answer().await;
    assert_eq!((kind, payload[8]), (REJECT, 4));
    // Fewer and more bytes than announced.
    liar.begin(b"short", 6).await.unwrap();
    liar.frame(DATA, b"hello").await;
    liar.frame(END, blake3::hash(b"hello").as_bytes()).await;
    assert_eq!(liar.answer().await.1[8], 4);
    liar.begin(b"long", 4).await.unwrap();
    liar.frame(DATA, b"hello").await;
    assert_eq!(liar.answer().await.1[8], 4);
    liar.frame(END, blake3::hash(b"hello").as_bytes()).await;
    liar.frame(DONE, b"").await;
    assert_eq!(liar.answer().await.0, FINISHED);
    assert_eq!(fs::read_dir(receiver.dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn broken_frames_end_the_transfer_and_nothing_else() {
    let receiver = Receiver::start(&[]);
    let file = |rest: &[u8]| {
        let mut bytes = vec![FILE, 0, 0, 0, 36, 0];
        bytes.extend_from_slice(&[0; 16]);
        bytes.extend_from_slice(&100u64.to_be_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(b"abc");
        bytes.extend_from_slice(&[CONTENT, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(rest);
        bytes
    };
    let number = |kind: u8, number: u64| {
        let mut bytes = vec![kind, 0, 0, 0, 8];
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes
    };
    let cases: [Vec<u8>; 14] = [
        // Contents that were not offered, and groups that nobody told of or that are not in the
        // file.
        number(CONTENT, 0),
        number(SEEK, 0),
        file(&number(CONTENT, 0)),
        file(&number(SEEK, 1)),
        file(&[QUERY, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        vec![0x42, 0, 0, 0, 0],
        vec![FILE, 0xff, 0xff, 0xff, 0xff],
        vec![DATA, 0xff, 0xff, 0xff, 0xff],
        vec![DATA, 0, 0, 0, 1, b'x'],
        vec![LEAVE, 0, 0, 0, 0],
        vec![END, 0, 0, 0, 1, 0],
        vec![FILE, 0, 0, 0, 3, 1, 2, 3],
        file(&[DONE, 0, 0, 0, 0]),
        file(&[DATA, 0, 0, 0, 0]),
    ];
    for bytes in cases {
        let mut liar = Liar::greeted(&receiver).await;
        liar.raw(&bytes).await;
        let (mut kind, mut payload) = liar.answer().await;
        if kind == WANT {
            (kind, payload) = liar.answer().await;
        }
        assert_eq!((kind, payload[0]), (FATAL, 8), "{bytes:?}");
    }
    // Directories without end.
    let mut liar = Liar::greeted(&receiver).await;
    for _ in 0..1025 {
        liar.entry(ENTER, b"d", u64::MAX).await;
    }
    let (kind, payload) = liar.answer().await;
    assert_eq!(
        (kind, payload[0]),
        (FATAL, 8),
        "{:?}",
        String::from_utf8_lossy(&payload)
    );
    // Strangers: other protocols, other versions.
    for greeting in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\x01\x00\x00\x00\x0atackfile\x00\x01",
        b"\x01\x00\x00\x00\x0atackfile\x00\x02",
        b"\x01\x00\x00\x00\x0atackfile\x00\x03",
        b"\x01\x00\x00\x00\x02ta",
    ] {
        let mut liar = Liar::connect(&receiver).await;
        liar.raw(greeting).await;
        assert_eq!(liar.answer().await.0, FATAL);
    }
    still_serves(&receiver);
}

#[tokio::test]
async fn links_that_would_lead_out_are_not_made() {
    let receiver = Receiver::start(&[]);
    let mut liar = Liar::greeted(&receiver).await;
    for target in [&b"/etc/passwd"[..], b"..", b"a/../..", b""] {
        assert_eq!(liar.link(b"link", target).await, REJECT, "{target:?}");
    }
    assert_eq!(liar.link(b"../link", b"here").await, REJECT);
    assert_eq!(liar.link(b"link", b"here").await, CONFIRM);
    assert_eq!(liar.link(b"link", b"here").await, HAVE, "the same");
    assert_eq!(fs::read_dir(receiver.dir.path()).unwrap().count(), 1);
    still_serves(&receiver);
}

#[tokio::test]
async fn a_file_that_no_disk_has_room_for_is_refused_at_once() {
    let receiver = Receiver::start(&[]);
    let mut liar = Liar::greeted(&receiver).await;
    let mut payload = vec![0];
    payload.extend_from_slice(&0o644u32.to_be_bytes());
    payload.extend_from_slice(&[0; 12]);
    // Its size, and as much of it outside holes.
    payload.extend_from_slice(&(1u64 << 60).to_be_bytes());
    payload.extend_from_slice(&(1u64 << 60).to_be_bytes());
    payload.extend_from_slice(b"huge");
    liar.frame(FILE, &payload).await;
    let (kind, payload) = liar.answer().await;
    assert_eq!((kind, payload[8]), (REJECT, 3), "no room");
}

#[tokio::test]
async fn a_transfer_that_no_disk_has_room_for_is_refused_before_its_first_byte() {
    let receiver = Receiver::start(&[]);
    let mut liar = Liar::connect(&receiver).await;
    let mut greeting = hello();
    let bytes = greeting.len() - 8;
    greeting[bytes..].copy_from_slice(&(1u64 << 60).to_be_bytes());
    liar.frame(HELLO, &greeting).await;
    let (mut kind, mut payload) = liar.answer().await;
    if kind == WELCOME {
        (kind, payload) = liar.answer().await;
    }
    let message = String::from_utf8_lossy(&payload[1..]);
    assert_eq!(kind, FATAL, "{message}");
    assert!(message.contains("has room for"), "{message}");
    still_serves(&receiver);
}

#[tokio::test]
async fn holes_beyond_what_was_announced_end_the_file_at_once() {
    let receiver = Receiver::start(&[]);
    let mut liar = Liar::greeted(&receiver).await;
    liar.begin(b"sparse", 100).await.unwrap();
    liar.frame(HOLE, &101u64.to_be_bytes()).await;
    assert_eq!(liar.answer().await.0, REJECT);
    // Further ones pass unseen.
    liar.frame(HOLE, &(1u64 << 26).to_be_bytes()).await;
    liar.frame(END, &[0; 32]).await;
    assert_eq!(liar.file(b"good", b"good").await.0, CONFIRM);
    // A hole is at most as long as the protocol says, and within a file.
    liar.frame(HOLE, &1u64.to_be_bytes()).await;
    assert_eq!(liar.answer().await.0, FATAL);
    still_serves(&receiver);
}

#[tokio::test]
async fn a_sender_that_vanishes_mid_file_leaves_nothing() {
    let receiver = Receiver::start(&["--once"]);
    let mut liar = Liar::greeted(&receiver).await;
    assert_eq!(liar.file(b"whole", b"whole").await.0, CONFIRM);
    liar.begin(b"half", 1 << 20).await.unwrap();
    liar.frame(DATA, &[7; 100_000]).await;
    liar.stream.shutdown().await.unwrap();
    liar.stream.finished().await.unwrap();
    let Receiver { running, dir, .. } = receiver;
    let received = tokio::task::spawn_blocking(move || running.wait())
        .await
        .unwrap();
    assert_eq!(received.code, Some(1), "{received:?}");
    let names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["whole"], "complete files stay, halves do not");
}

#[tokio::test]
async fn a_receiver_that_lies_is_noticed() {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("file");
    fs::write(&path, "content").unwrap();
    let welcome = b"\x81\x00\x00\x00\x0btackfile\x00\x04\x00";
    let want = [&[WANT, 0, 0, 0, 16][..], &[0; 16]].concat();
    let mut other_hash = vec![CONFIRM, 0, 0, 0, 48];
    other_hash.extend_from_slice(&[0; 8]);
    other_hash.extend_from_slice(&7u64.to_be_bytes());
    other_hash.extend_from_slice(&[0x11; 32]);
    let finished =
        b"\x84\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07";
    let mut values = vec![GROUPS, 0, 0, 0, 40];
    values.extend_from_slice(&[0; 40]);
    let cases: [(&str, Vec<u8>); 6] = [
        ("that were not asked for", [&welcome[..], &values].concat()),
        (
            "different bytes",
            [&welcome[..], &other_hash, finished].concat(),
        ),
        ("not confirmed", [&welcome[..], finished].concat()),
        ("closed the connection before", welcome.to_vec()),
        (
            "that was not sent",
            [&welcome[..], &{
                let mut unknown = other_hash.clone();
                unknown[12] = 9;
                unknown
            }]
            .concat(),
        ),
        (
            "malformed answer",
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        ),
    ];
    for (complaint, answer) in cases {
        let listener = tack::Listener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().to_string();
        let path = path.clone();
        let sender = tokio::task::spawn_blocking(move || {
            finish(
                tack()
                    .args(["send", "--insecure", "--reconnect", "0s"])
                    .arg(path)
                    .arg(address),
            )
        });
        let (mut stream, _) = listener.accept().await.unwrap();
        if answer.starts_with(welcome) {
            // Answers come after what they answer.
            stream.write_all(welcome).await.unwrap();
            loop {
                let kind = stream.read_u8().await.unwrap();
                let len = stream.read_u32().await.unwrap();
                let mut payload = vec![0; len as usize];
                stream.read_exact(&mut payload).await.unwrap();
                if kind == FILE {
                    break;
                }
            }
            stream.write_all(&want).await.unwrap();
            let mut everything = Vec::new();
            stream.read_to_end(&mut everything).await.unwrap();
            stream.write_all(&answer[welcome.len()..]).await.unwrap();
        } else {
            stream.write_all(&answer).await.unwrap();
        }
        stream.shutdown().await.unwrap();
        let sent = sender.await.unwrap();
        assert_eq!(sent.code, Some(1), "{complaint}: {sent:?}");
        assert!(
            sent.stderr.contains(complaint),
            "{complaint}: {}",
            sent.stderr
        );
    }
}

/// More transfers under way than a runtime has blocking threads unless told otherwise (512).
#[tokio::test]
async fn every_permitted_transfer_is_heard() {
    const HELD: usize = 520;
    let receiver = Receiver::start(&["--max-transfers", "1024", "--timeout", "600s"]);
    let mut liars = Vec::with_capacity(HELD);
    for _ in 0..HELD {
        // A transfer without a thread would never answer the greeting.
        liars.push(Liar::greeted(&receiver).await);
    }
    assert_eq!(liars[HELD - 1].file(b"last", b"last").await.0, CONFIRM);
}
