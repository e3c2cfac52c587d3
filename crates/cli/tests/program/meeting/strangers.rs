//! Peers without ticket, code or key: some say nothing, some speak clear text.

use tack::secure::{Identity, SecureStream};
use tack::{DEFAULT_PORT, Endpoint, Stream};

use super::{Side, Waiting, text};
use crate::support;

/// The TCP ports for tickets and known peers, and for codes.
const PORTS: [u16; 2] = [DEFAULT_PORT, DEFAULT_PORT + 16];

/// Connections that say nothing: TCP alone at both ports, and with a complete TLS handshake. More
/// than there is room for of each, all from one network, which is the worst case for an honest peer
/// there.
struct Silent {
    _plain: Vec<Stream>,
    _encrypted: Vec<SecureStream>,
}

impl Silent {
    async fn at(address: &str) -> Self {
        let identity = Identity::generate().unwrap();
        let endpoint = Endpoint::builder().identity(identity).build().unwrap();
        let mut plain = Vec::new();
        for port in PORTS {
            for _ in 0..400 {
                plain.push(endpoint.connect(address).port(port).await.unwrap());
            }
        }
        let mut connecting = tokio::task::JoinSet::new();
        for _ in 0..80 {
            let (endpoint, address) = (endpoint.clone(), address.to_owned());
            connecting
                .spawn(async move { endpoint.connect(address.as_str()).any_key(b"tack/1").await });
        }
        let encrypted = connecting.join_all().await.into_iter().map(Result::unwrap);
        Self {
            _plain: plain,
            _encrypted: encrypted.collect(),
        }
    }
}

#[tokio::test]
async fn peers_that_say_nothing_keep_no_sender_out() {
    let (alice, bob) = (Side::new(), Side::new());
    let receiver = alice.receive(&[]);
    let silent = Silent::at(&receiver.address).await;
    let sent = tokio::task::spawn_blocking(move || {
        let (first, second) = (bob.file("first", 10), bob.file("second", 10));
        let address = receiver.address.as_str();
        let by_code = bob.run(&["send", text(&first), address, "--code", &receiver.code]);
        let by_ticket = bob.run(&["send", text(&second), &receiver.ticket]);
        drop(receiver);
        [by_code, by_ticket]
    });
    for sent in sent.await.unwrap() {
        assert_eq!(sent.code, Some(0), "{sent:?}");
    }
    assert!(alice.received("first").is_some() && alice.received("second").is_some());
    drop(silent);
}

#[tokio::test]
async fn peers_that_say_nothing_keep_no_receiver_out() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = alice.file("file", 10);
    let sender =
        Waiting::start(&mut alice.command(&["send", text(&file), "--listen", "127.0.0.1:0"]));
    let silent = Silent::at(&sender.address).await;
    let received = tokio::task::spawn_blocking(move || {
        let received = bob.run(&["recv", &sender.ticket, "--dir", "inbox"]);
        (received, bob.received("file"), sender.end())
    });
    let (received, file, (code, said)) = received.await.unwrap();
    assert_eq!(received.code, Some(0), "{received:?}");
    assert!(file.is_some());
    assert_eq!(code, Some(0), "{said}");
    drop(silent);
}

#[test]
fn clear_text_and_encryption_recognise_each_other_and_never_mix() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = bob.file("file", 10);
    // Encrypted here, clear text there.
    let clear = support::Receiver::start(&[]);
    let address = clear.address.to_string();
    bob.run(&["peers", "add", "alice", &alice.key(), "--address", &address]);
    let refused = bob.run(&["send", text(&file), "alice:", "--connect-timeout", "30s"]);
    assert!(
        refused.code == Some(1) || refused.code == Some(3),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("clear text"), "{refused:?}");
    // And the other way round.
    let receiver = alice.receive(&[]);
    let refused = bob.run(&["send", "--insecure", text(&file), &receiver.address]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("the other side encrypts"),
        "{refused:?}"
    );
    assert!(!refused.stderr.contains("--insecure"), "{refused:?}");
    assert!(alice.received("file").is_none());
    let said = receiver.kill();
    assert!(
        said.contains("clear text") && !said.contains("insecure"),
        "{said}"
    );
}
