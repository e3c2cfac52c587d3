//! What peers can make a listener keep: each in the middle of a handshake, and each with an idle
//! connection.

use tack::secure::{Admission, HandshakeLimits, Identity, SecureListenOptions, SecureListener};
use tack::{Endpoint, Stream};
use tokio::io::AsyncWriteExt;

const PEERS: usize = 200;

/// Bytes that `work` leaves allocated when it is done, for each of the peers; what it returns is
/// kept so long.
fn kept<T>(runtime: &tokio::runtime::Runtime, work: impl Future<Output = T>) -> (u64, T) {
    let mut result = None;
    let counted = allocation_counter::measure(|| result = Some(runtime.block_on(work)));
    let bytes = counted.bytes_current.max(0) as u64 / PEERS as u64;
    (bytes, result.unwrap())
}

/// All connect to the bare port, and say `words`.
async fn connect(client: &Endpoint, server: &Endpoint, port: u16, words: &[u8]) -> Vec<Stream> {
    let mut streams = Vec::new();
    for _ in 0..PEERS {
        let mut stream = client
            .connect(server.local_addr())
            .port(port)
            .await
            .unwrap();
        stream.write_all(words).await.unwrap();
        streams.push(stream);
    }
    streams
}

async fn until(listener: &SecureListener, under_way: usize) {
    while listener.handshakes().under_way != under_way {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
}

fn endpoint() -> Endpoint {
    let identity = Identity::generate().unwrap();
    Endpoint::builder().identity(identity).build().unwrap()
}

#[test]
fn a_handshake_and_an_idle_connection_take_little() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (client, server, bare, listener) = runtime.block_on(async {
        let (client, server) = (endpoint(), endpoint());
        let bare = server.listen(1).unwrap();
        let limits = HandshakeLimits::default().at_most(1000, 1000);
        let limits = limits.deadline(std::time::Duration::from_secs(600));
        let options = SecureListenOptions::new(b"x", |_, _| Admission::Admit).limits(limits);
        let listener = server.listen_secure(2, options).unwrap();
        (client, server, bare, listener)
    });
    // The longest record that a handshake may have, all but its last byte.
    let mut hello = vec![22, 3, 1, 0x10, 0];
    hello.resize(5 + 4095, 1);
    let (clear, mut held) = kept(&runtime, async {
        let streams = connect(&client, &server, 1, &hello).await;
        let mut accepted = Vec::new();
        for _ in 0..PEERS {
            accepted.push(bare.accept().await.unwrap().0);
        }
        (streams, accepted)
    });
    let (half_open, more) = kept(&runtime, async {
        let streams = connect(&client, &server, 2, &hello).await;
        until(&listener, PEERS).await;
        (streams, Vec::new())
    });
    held.0.extend(more.0);
    held.1.extend(more.1);
    runtime.block_on(async {
        held.0.clear();
        held.1.clear();
        until(&listener, 0).await;
    });
    let (idle, secure) = kept(&runtime, async {
        let mut pairs = Vec::new();
        for _ in 0..PEERS {
            let connecting = client.connect(server.local_addr()).port(2).any_key(b"x");
            let (client, server) = tokio::join!(connecting.into_future(), listener.accept());
            pairs.push((client.unwrap(), server.unwrap().0));
        }
        pairs
    });
    drop(secure);
    println!(
        "bytes for a peer, both ends: connected {clear}, in a handshake {half_open}, encrypted and idle {idle}"
    );
    // What the transport keeps of the unread hello is in both of the first two.
    assert!(half_open < clear + (20 << 10), "{half_open} and {clear}");
    assert!(idle < 48 << 10, "{idle}");
}

/// Peers that stop in their handshakes, one after the other; the last few are kept.
async fn flood(client: &Endpoint, server: &Endpoint, count: usize) {
    let mut hello = vec![22, 3, 1, 0x10, 0];
    hello.resize(5 + 4095, 1);
    let mut open = std::collections::VecDeque::new();
    for _ in 0..count {
        let connecting = client.connect(server.local_addr()).port(2);
        let mut stream = connecting.await.unwrap();
        // It may have been displaced by now.
        let _ = stream.write_all(&hello).await;
        open.push_back(stream);
        if open.len() > 300 {
            open.pop_front();
        }
    }
}

#[test]
fn a_flood_takes_no_more_memory_than_the_limits_allow_however_long_it_is() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (client, server, listener) = runtime.block_on(async {
        let (client, server) = (endpoint(), endpoint());
        let limits = HandshakeLimits::default().at_most(512, 128);
        let options = SecureListenOptions::new(b"x", |_, _| Admission::Admit).limits(limits);
        let listener = server.listen_secure(2, options).unwrap();
        (client, server, listener)
    });
    let most = |count| {
        let flood = || runtime.block_on(flood(&client, &server, count));
        allocation_counter::measure(flood).bytes_max
    };
    let first = most(500);
    // What the first flood left is there before each of these.
    let short = most(500);
    let count = if tack_skip::is_long() { 10_000 } else { 3_000 };
    let long = most(count);
    println!("most bytes at once, both ends: {first} and {short} of 500 peers, {long} of {count}");
    let stats = listener.handshakes();
    assert!(
        stats.crowded_out > 2_000 && stats.under_way <= 128,
        "{stats:?}"
    );
    // A hundred bytes a peer would be a leak.
    assert!(long < short + (256 << 10), "{short}, {long}");
    // Both ends of 300 connections at most, 128 of them in a handshake.
    assert!(first < 300 * (48 << 10), "{first}");
}
