//! Peers without ticket, code or key: some say nothing, some speak clear text.

use tack::secure::{Identity, SecureStream};
use tack::{DEFAULT_PORT, Endpoint, Stream};
use tack_pairing::Ticket;
use tack_pairing::meeting::{Channel, Connecting, Credential, EXPORTER_LABEL, Intent, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Side, Waiting, text};
use crate::support;

/// The TCP ports for tickets and known peers, and for codes.
const PORTS: [u16; 2] = [DEFAULT_PORT, DEFAULT_PORT + 16];

/// Connections that say nothing: TCP alone at both ports, and with a complete TLS handshake. More
/// than there is room for of each, for one network and for all together.
struct Silent {
    _plain: Vec<Stream>,
    _encrypted: Vec<SecureStream>,
}

/// The last byte but one of the addresses where they come from, with how many connections each
/// network makes at a port. From the first one the honest peer comes, too: the worst case for it.
const NETWORKS: [(u8, u32); 7] = [
    (0, 200),
    (1, 80),
    (2, 80),
    (3, 80),
    (4, 80),
    (5, 80),
    (6, 80),
];

impl Silent {
    async fn at(address: &str) -> Self {
        let (mut plain, mut connecting) = (Vec::new(), tokio::task::JoinSet::new());
        for (network, count) in NETWORKS {
            let identity = Identity::generate().unwrap();
            let builder = Endpoint::builder().identity(identity);
            let local = ([127, 0, network, 1], 0).into();
            let endpoint = builder.bind(local).build().unwrap();
            for port in PORTS {
                for _ in 0..count {
                    plain.push(endpoint.connect(address).port(port).await.unwrap());
                }
            }
            for _ in 0..20 {
                let (endpoint, address) = (endpoint.clone(), address.to_owned());
                connecting.spawn(async move {
                    endpoint.connect(address.as_str()).any_key(b"tack/1").await
                });
            }
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

/// A connection of a peer that is let in by a ticket, and says no more.
async fn let_in(
    endpoint: &Endpoint,
    own: &Identity,
    ticket: &Ticket,
    address: &str,
) -> std::io::Result<SecureStream> {
    let connecting = endpoint.connect(address).any_key(b"tack/1");
    let mut stream = connecting.await.map_err(std::io::Error::other)?;
    let mut exporter = [0; 32];
    let export = stream.export_keying_material(EXPORTER_LABEL, b"", &mut exporter);
    export.map_err(std::io::Error::other)?;
    let channel = Channel {
        exporter,
        own_key: stream.own_key(),
        peer_key: stream.peer_key(),
    };
    let credential = Credential::Ticket(ticket.clone());
    let begun = Connecting::begin(channel, Intent::Send, &credential, own.clone(), Vec::new());
    let (mut machine, message) = begun.expect("the ticket names this key");
    stream.write_u16(message.len() as u16).await?;
    stream.write_all(&message).await?;
    stream.flush().await?;
    let mut answer = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut answer).await?;
    let met = machine.handle(&answer);
    assert!(matches!(met, Ok(Step::Authenticated { .. })), "{met:?}");
    Ok(stream)
}

/// It takes all places for transfers and for waiting, and keeps refused connections open. The next
/// peer is told that the receiver is busy.
#[tokio::test]
async fn a_known_peer_with_many_connections_keeps_no_other_out() {
    let (alice, bob) = (Side::new(), Side::new());
    let options = ["--keep", "--max-transfers", "1", "--max-waiting", "1"];
    let receiver = alice.receive(&options);
    let ticket: Ticket = receiver.ticket.parse().unwrap();
    let own = Identity::generate().unwrap();
    let builder = Endpoint::builder().identity(own.clone());
    let endpoint = builder.max_connections(4_096).build().unwrap();
    let mut held = Vec::new();
    // More than the receiver has room for, strangers included.
    for _ in 0..1_700 {
        held.extend(let_in(&endpoint, &own, &ticket, &receiver.address).await);
    }
    let sent = tokio::task::spawn_blocking(move || {
        let file = bob.file("file", 10);
        let sent = bob.run(&["send", text(&file), &receiver.ticket]);
        (sent, receiver.kill())
    });
    let (sent, said) = sent.await.unwrap();
    assert_eq!(sent.code, Some(5), "{sent:?}");
    assert!(sent.stderr.contains("busy"), "{sent:?}");
    assert!(
        said.contains("it has too many connections already"),
        "{said}"
    );
    drop(held);
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
        refused.stderr.contains(": the other side encrypts"),
        "{refused:?}"
    );
    assert!(!refused.stderr.contains("malformed"), "{refused:?}");
    assert!(!refused.stderr.contains("--insecure"), "{refused:?}");
    assert!(alice.received("file").is_none());
    let said = receiver.kill();
    assert!(
        said.contains("clear text") && !said.contains("insecure"),
        "{said}"
    );
}
