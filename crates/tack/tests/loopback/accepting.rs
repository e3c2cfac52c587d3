//! Accepting connections, and refusing them before they cost anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use tack::{ConnectError, Endpoint, ListenOptions, Verdict};
use tokio::io::AsyncReadExt;

use crate::pair::{Pair, within};

#[tokio::test]
async fn accept_says_who_connects() {
    let pair = Pair::new(Endpoint::builder()).await;
    let connecting = pair.client.connect(pair.server.local_addr());
    let (client, accepted) =
        within(async { tokio::join!(connecting, pair.listener.accept()) }).await;
    let (stream, peer) = accepted.unwrap();
    assert_eq!(peer, pair.client.local_addr());
    assert_eq!(peer, stream.peer_addr());
    assert_eq!(client.unwrap().peer_addr(), stream.local_addr());
}

#[tokio::test]
async fn several_tasks_accept_at_a_time() {
    const TASKS: usize = 8;
    let pair = Pair::new(Endpoint::builder()).await;
    let address = pair.server.local_addr();
    let listener = Arc::new(pair.listener);
    let accepting: Vec<_> = (0..TASKS)
        .map(|_| {
            let listener = Arc::clone(&listener);
            tokio::spawn(async move { listener.accept().await.unwrap().0 })
        })
        .collect();
    tokio::task::yield_now().await;
    let mut clients = Vec::new();
    for _ in 0..TASKS {
        clients.push(within(pair.client.connect(address)).await.unwrap());
    }
    for task in accepting {
        within(task).await.unwrap();
    }
}

/// Whoever polled last and whoever awaits are both woken.
#[tokio::test]
async fn polling_does_not_take_the_place_of_waiting() {
    let pair = Pair::new(Endpoint::builder()).await;
    let address = pair.server.local_addr();
    let listener = Arc::new(pair.listener);
    let waiting = Arc::clone(&listener);
    let waiting = tokio::spawn(async move { waiting.accept().await.unwrap().0 });
    tokio::task::yield_now().await;
    let polled = listener.poll_accept(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    let _client = within(pair.client.connect(address)).await.unwrap();
    within(waiting).await.unwrap();
}

#[tokio::test]
async fn an_accept_that_was_given_up_loses_nothing() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    for _ in 0..3 {
        tokio::select! {
            biased;
            _ = pair.listener.accept() => panic!("nobody connected"),
            () = tokio::task::yield_now() => {}
        }
    }
    let (client, mut server) = pair.connect().await;
    drop(client);
    assert_eq!(within(server.read(&mut [0; 1])).await.unwrap(), 0);
}

#[tokio::test]
async fn a_filter_refuses_before_a_connection_costs_memory() {
    let server = Endpoint::builder().build().unwrap();
    let friend = Endpoint::builder().build().unwrap();
    let stranger = Endpoint::builder().build().unwrap();
    let known = friend.local_addr();
    let refused = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&refused);
    let options = ListenOptions::new().filter(move |incoming| {
        if incoming.peer == known {
            return Verdict::Accept;
        }
        counter.fetch_add(1, Ordering::Relaxed);
        Verdict::Refuse
    });
    let listener = server.listen_with(9, options).unwrap();
    let before = server.memory();
    let error = within(stranger.connect(server.local_addr()).port(9))
        .await
        .unwrap_err();
    assert!(
        matches!(error, ConnectError::Refused { port: 9, .. }),
        "{error}"
    );
    assert_eq!(refused.load(Ordering::Relaxed), 1);
    assert_eq!(server.memory(), before);
    let connecting = friend.connect(server.local_addr()).port(9);
    let (client, accepted) = within(async { tokio::join!(connecting, listener.accept()) }).await;
    client.unwrap();
    assert_eq!(accepted.unwrap().1, known);
}
