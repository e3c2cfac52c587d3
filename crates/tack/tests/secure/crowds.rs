//! Ten thousand peers that never finish (three thousand in the ordinary form), and one that does.

use std::collections::VecDeque;

use tack::Endpoint;
use tack::secure::HandshakeLimits;
use tokio::io::AsyncWriteExt;

use crate::pair::within;
use crate::relay::bare;
use crate::two::Two;

/// Opens `count` connections and lets each rest somewhere in the handshake; keeps the last few
/// hundred.
async fn flood(server: std::net::SocketAddr, count: u32) {
    let endpoint = Endpoint::builder().build().unwrap();
    let mut open = VecDeque::new();
    for n in 0..count {
        let mut stream = bare(&endpoint, server).await;
        let words: &[u8] = match n % 4 {
            0 => &[],
            // A header, and a record that does not come; the beginning of a hello; clear text.
            1 => &[22, 3, 1, 15, 255],
            2 => &[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3],
            _ => b"GET / HTTP/1.1\r\n\r\n",
        };
        // It may have been displaced by now.
        let _ = stream.write_all(words).await;
        open.push_back(stream);
        if open.len() > 300 {
            open.pop_front();
        }
    }
}

/// The flood comes from the network of the honest peer, which is the worst case for it.
async fn honest_peers_come_through(count: u32, limits: HandshakeLimits) {
    let two = Two::with(Endpoint::builder(), limits);
    let server = two.server.local_addr();
    let mut flooding = tokio::spawn(flood(server, count));
    let mut met = 0_u32;
    loop {
        tokio::select! {
            ended = &mut flooding => break ended.unwrap(),
            pair = two.connect() => drop(pair),
        }
        met += 1;
    }
    // All that came got through while the flood ran: `connect` fails the test otherwise.
    let stats = two.listener.handshakes();
    println!("{met} honest peers among {count}: {stats:?}");
    assert!(met > 0);
    assert!(stats.under_way <= limits.total);
    assert!(stats.crowded_out > 0, "{stats:?}");
    within(two.connect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_half_open_handshakes_keeps_nobody_out() {
    let count = if tack_skip::is_long() { 10_000 } else { 3_000 };
    honest_peers_come_through(count, HandshakeLimits::default()).await;
}

#[tokio::test]
async fn a_flood_displaces_itself_at_small_limits_too() {
    honest_peers_come_through(1_000, HandshakeLimits::default().at_most(32, 32)).await;
}

#[tokio::test]
async fn a_listener_that_nobody_asks_keeps_its_bounds() {
    let mut limits = HandshakeLimits::default();
    limits.waiting = 2;
    let two = Two::with(Endpoint::builder(), limits);
    let (address, key) = (two.server.local_addr(), two.server_id.public_key());
    let connect = || {
        let client = two.client.clone();
        async move {
            client
                .connect(address)
                .expecting(key, crate::two::ALPN)
                .await
        }
    };
    let mut clients = Vec::new();
    for _ in 0..2 {
        clients.push(within(connect()).await.unwrap());
    }
    // Those that come later wait until somebody accepts.
    let later: Vec<_> = (0..4).map(|_| tokio::spawn(connect())).collect();
    for _ in 0..6 {
        let (stream, _) = within(two.listener.accept()).await.unwrap();
        assert_eq!(stream.peer_key(), two.client_id.public_key());
    }
    for client in later {
        within(client).await.unwrap().unwrap();
    }
}
