//! Peers that speak no TLS, another TLS, or stop in the middle: each gets a clear error, and gives
//! its place back.

use std::time::Duration;

use tack::Endpoint;
use tack::secure::{HandshakeLimits, Identity, SecureConnect, SecureError, is_tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::pair::within;
use crate::relay::{Deed, Relay, bare};
use crate::streams::inner;
use crate::two::{ALPN, Two};

/// Waits until no handshake is under way.
async fn all_places_free(two: &Two) {
    within(async {
        while two.listener.handshakes().under_way > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Short, so that what never ends ends soon.
fn brief() -> HandshakeLimits {
    HandshakeLimits::default().deadline(Duration::from_millis(300))
}

/// Bytes that repeat for the same `seed`.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[tokio::test]
async fn a_peer_in_clear_text_is_recognised_and_told() {
    let two = Two::new();
    let endpoint = Endpoint::builder().build().unwrap();
    let mut stream = bare(&endpoint, two.server.local_addr()).await;
    stream.write_all(b"tackperf and a request").await.unwrap();
    let mut answer = Vec::new();
    within(stream.read_to_end(&mut answer)).await.unwrap();
    // A fatal alert: who speaks clear text knows by its first byte that the other side encrypts.
    assert_eq!(answer, [21, 3, 3, 0, 2, 2, 10]);
    assert!(is_tls(answer[0]) && is_tls(22) && !is_tls(b't') && !is_tls(0));
    let told = two.failure().await;
    assert!(told.contains("does not encrypt"), "{told}");
    drop(stream);
    all_places_free(&two).await;
}

#[tokio::test]
async fn a_server_in_clear_text_is_recognised() {
    let endpoint = Endpoint::builder().build().unwrap();
    let listener = endpoint.listen(tack::DEFAULT_PORT).unwrap();
    let identity = Identity::generate().unwrap();
    for answer in [&b"hello"[..], b"\0\0\0\x02{}", b""] {
        let connecting = tack::connect(endpoint.local_addr())
            .any_key(ALPN)
            .identity(identity.clone());
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut first = [0];
            stream.read_exact(&mut first).await.unwrap();
            assert!(is_tls(first[0]));
            stream.write_all(answer).await.unwrap();
            stream.shutdown().await.unwrap();
            // The client's hello is not read: the reset must not overtake the answer.
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
        };
        let (connected, ()) =
            within(async { tokio::join!(connecting.into_future(), serving) }).await;
        match connected.unwrap_err() {
            SecureError::PeerIsNotEncrypted if !answer.is_empty() => {}
            SecureError::EndedEarly if answer.is_empty() => {}
            other => panic!("{answer:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn noise_is_survived() {
    let two = Two::with(Endpoint::builder(), brief());
    let endpoint = Endpoint::builder().build().unwrap();
    for seed in 0..120 {
        let mut bytes = noise(seed, 1 + (seed as usize * 37) % 5000);
        match seed % 4 {
            // A record header that promises too much, one that keeps its promise, an alert.
            0 => bytes.splice(0..0, [22, 3, 1, 255, 255]).for_each(drop),
            1 => {
                let len = (bytes.len().min(4000) as u16).to_be_bytes();
                bytes
                    .splice(0..0, [22, 3, 1, len[0], len[1]])
                    .for_each(drop);
            }
            2 => bytes.splice(0..0, [21, 3, 3, 0, 2]).for_each(drop),
            _ => {}
        }
        let mut stream = bare(&endpoint, two.server.local_addr()).await;
        // It may be cut off in the middle.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let _ = within(stream.read_to_end(&mut Vec::new())).await;
    }
    all_places_free(&two).await;
    let stats = two.listener.handshakes();
    assert_eq!((stats.failed, stats.completed), (120, 0));
    // Nothing of it matters to the next.
    two.connect().await;
}

/// A hello of a client that knows TLS 1.2 only (RFC 5246 §7.4.1.2).
fn tls12_client_hello() -> Vec<u8> {
    let extensions = [
        // supported_groups: x25519. signature_algorithms: ed25519.
        &[0, 10, 0, 4, 0, 2, 0, 29][..],
        &[0, 13, 0, 4, 0, 2, 8, 7],
    ]
    .concat();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    // No session, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, no compression.
    body.extend([0, 0, 2, 0xc0, 0x2b, 1, 0]);
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    record(1, &body)
}

/// The answer of a server that knows TLS 1.2 only.
fn tls12_server_hello() -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([9; 32]);
    body.extend([0, 0xc0, 0x2b, 0]);
    record(2, &body)
}

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u16).to_be_bytes();
    let whole = (body.len() as u16 + 4).to_be_bytes();
    let head = [22, 3, 3, whole[0], whole[1], kind, 0, len[0], len[1]];
    [&head, body].concat()
}

#[tokio::test]
async fn a_client_of_tls_1_2_is_told_so() {
    let two = Two::new();
    let endpoint = Endpoint::builder().build().unwrap();
    let mut stream = bare(&endpoint, two.server.local_addr()).await;
    stream.write_all(&tls12_client_hello()).await.unwrap();
    let mut answer = Vec::new();
    within(stream.read_to_end(&mut answer)).await.unwrap();
    // protocol_version (RFC 8446 §6.2).
    assert_eq!(answer, [21, 3, 3, 0, 2, 2, 70]);
    let told = two.failure().await;
    assert!(told.contains("TLS 1.3"), "{told}");
}

#[tokio::test]
async fn a_server_of_tls_1_2_is_recognised() {
    let endpoint = Endpoint::builder().build().unwrap();
    let listener = endpoint.listen(tack::DEFAULT_PORT).unwrap();
    let connecting = tack::connect(endpoint.local_addr())
        .any_key(ALPN)
        .identity(Identity::generate().unwrap());
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&tls12_server_hello()).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    };
    let (connected, ()) = within(async { tokio::join!(connecting.into_future(), serving) }).await;
    let error = connected.unwrap_err();
    assert!(matches!(error, SecureError::NoTls13), "{error:?}");
}

fn towards<'a>(two: &'a Two, relay: &Relay) -> SecureConnect<'a, std::net::SocketAddr> {
    two.client
        .connect(relay.address)
        .expecting(two.server_id.public_key(), ALPN)
        .deadline(Duration::from_millis(300))
}

/// Bytes of a whole handshake: from the client, from the server.
async fn handshake_bytes(two: &Two) -> [u64; 2] {
    let relay = Relay::new(two.server.local_addr(), Deed::Pass, Deed::Pass);
    let (client, server) =
        within(async { tokio::join!(towards(two, &relay).into_future(), two.listener.accept()) })
            .await;
    let passed = relay.passed();
    drop((client.unwrap(), server.unwrap()));
    passed
}

/// Places in a stream of `len` bytes: its first ones, its last ones, and some between.
fn places(len: u64) -> impl Iterator<Item = u64> {
    (0..7)
        .chain((7..len.saturating_sub(3)).step_by((len / 9) as usize))
        .chain(len.saturating_sub(3)..len)
}

#[tokio::test]
async fn a_client_that_stops_anywhere_runs_out_of_time() {
    let two = Two::with(Endpoint::builder(), brief());
    let [len, _] = handshake_bytes(&two).await;
    // All at once: the deadlines run beside each other.
    let relays: Vec<Relay> = places(len)
        .map(|at| Relay::new(two.server.local_addr(), Deed::Stall(at), Deed::Pass))
        .collect();
    let mut connections = tokio::task::JoinSet::new();
    for relay in &relays {
        let (client, address) = (two.client.clone(), relay.address);
        let key = two.server_id.public_key();
        connections.spawn(async move { client.connect(address).expecting(key, ALPN).await });
    }
    for _ in &relays {
        let told = two.failure().await;
        assert!(
            told.contains("did not complete the TLS handshake"),
            "{told}"
        );
    }
    all_places_free(&two).await;
    assert_eq!(two.listener.handshakes().completed, 1);
    two.connect().await;
}

#[tokio::test]
async fn a_server_that_stops_anywhere_runs_out_of_time() {
    let two = Two::with(Endpoint::builder(), brief());
    let [_, len] = handshake_bytes(&two).await;
    let relays: Vec<Relay> = places(len)
        .map(|at| Relay::new(two.server.local_addr(), Deed::Pass, Deed::Stall(at)))
        .collect();
    let mut attempts = tokio::task::JoinSet::new();
    for relay in &relays {
        let (client, address) = (two.client.clone(), relay.address);
        let key = two.server_id.public_key();
        attempts.spawn(async move {
            client
                .connect(address)
                .expecting(key, ALPN)
                .deadline(Duration::from_millis(300))
                .await
        });
    }
    while let Some(attempt) = within(attempts.join_next()).await {
        let error = attempt.unwrap().unwrap_err();
        assert!(matches!(error, SecureError::TimedOut(_)), "{error:?}");
    }
    all_places_free(&two).await;
}

#[tokio::test]
async fn a_handshake_that_is_cut_off_ends_at_once_on_both_sides() {
    // With the usual deadline: nothing here waits for it.
    let two = Two::new();
    let [from_client, from_server] = handshake_bytes(&two).await;
    for at in places(from_client) {
        let relay = Relay::new(two.server.local_addr(), Deed::Cut(at), Deed::Pass);
        let attempt = two
            .client
            .connect(relay.address)
            .expecting(two.server_id.public_key(), ALPN);
        let attempt = within(attempt).await;
        let told = two.failure().await;
        assert!(told.contains("during the TLS handshake"), "{at}: {told}");
        // Only the server waits for the client's last message.
        if let Ok(mut stream) = attempt {
            assert!(within(stream.read(&mut [0])).await.is_err());
        }
    }
    for at in places(from_server) {
        let relay = Relay::new(two.server.local_addr(), Deed::Pass, Deed::Cut(at));
        let attempt = two
            .client
            .connect(relay.address)
            .expecting(two.server_id.public_key(), ALPN);
        let error = within(attempt).await.unwrap_err();
        assert!(matches!(error, SecureError::EndedEarly), "{at}: {error:?}");
        two.failure().await;
    }
    all_places_free(&two).await;
}

#[tokio::test]
async fn a_changed_handshake_never_yields_another_connection() {
    let two = Two::with(Endpoint::builder(), brief());
    let lens = handshake_bytes(&two).await;
    let key = two.server_id.public_key();
    for seed in 0..60_u64 {
        let side = (seed % 2) as usize;
        let place = noise(seed, 4)
            .iter()
            .fold(0, |sum, byte| sum * 251 + u64::from(*byte));
        let flip = Deed::Flip(place % lens[side], 1 << (seed / 2 % 8));
        let deeds = match side {
            0 => (flip, Deed::Pass),
            _ => (Deed::Pass, flip),
        };
        let relay = Relay::new(two.server.local_addr(), deeds.0, deeds.1);
        // What does not matter (the version in a record's header) may be changed: both sides then
        // agree all the same.
        if let Ok(mut client) = within(towards(&two, &relay)).await {
            assert_eq!(client.peer_key(), key, "{flip:?}");
            // Nobody said anything, so that nothing may be read. The server drops what it has.
            let deaf = tokio::time::timeout(Duration::from_millis(10), two.listener.accept());
            drop(deaf.await);
            let read = within(client.read(&mut [0])).await;
            assert!(read.is_err(), "{flip:?}: {read:?}");
        }
    }
    all_places_free(&two).await;
}

#[tokio::test]
async fn a_changed_record_is_noticed() {
    let two = Two::new();
    let [from_client, _] = handshake_bytes(&two).await;
    for (past, bits) in [(5, 1), (100, 0x80), (3000 + 22 + 16, 4)] {
        let flip = Deed::Flip(from_client + past, bits);
        let relay = Relay::new(two.server.local_addr(), flip, Deed::Pass);
        let (client, server) = within(async {
            tokio::join!(towards(&two, &relay).into_future(), two.listener.accept())
        })
        .await;
        let (mut client, (mut server, _)) = (client.unwrap(), server.unwrap());
        client.write_all(&[7; 3000]).await.unwrap();
        client.write_all(&[8; 3000]).await.unwrap();
        // What came before is read, whole records of it.
        let mut got = Vec::new();
        let error = within(server.read_to_end(&mut got)).await.unwrap_err();
        assert!(matches!(inner(&error), SecureError::Corrupt), "{error:?}");
        let whole = if past > 3000 { 3000 } else { 0 };
        assert_eq!(got, vec![7; whole]);
        // Nothing more is read, and the other side learns that it is over.
        assert!(within(server.read(&mut [0; 4000])).await.is_err());
        assert!(within(client.read(&mut [0])).await.is_err());
    }
}

#[tokio::test]
async fn clear_text_after_the_handshake_is_refused() {
    let two = Two::new();
    let [from_client, _] = handshake_bytes(&two).await;
    let records: [&[u8]; 4] = [
        // A `close_notify`, data, a KeyUpdate, data that says it is a handshake message.
        &[21, 3, 3, 0, 2, 1, 0],
        &[23, 3, 3, 0, 5, 104, 101, 108, 108, 111],
        &[22, 3, 3, 0, 5, 24, 0, 0, 1, 0],
        &[22, 3, 3, 0, 5, 104, 101, 108, 108, 111],
    ];
    for record in records {
        let insert = Deed::Insert(from_client, record);
        let relay = Relay::new(two.server.local_addr(), insert, Deed::Pass);
        let (client, server) = within(async {
            tokio::join!(towards(&two, &relay).into_future(), two.listener.accept())
        })
        .await;
        let (mut client, (mut server, _)) = (client.unwrap(), server.unwrap());
        client.write_all(b"words").await.unwrap();
        let error = within(server.read(&mut [0; 10])).await.unwrap_err();
        assert!(
            matches!(
                inner(&error),
                SecureError::Corrupt | SecureError::Misbehaved(_)
            ),
            "{record:?}: {error:?}"
        );
    }
}
