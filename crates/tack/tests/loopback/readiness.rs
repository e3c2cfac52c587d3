//! What tokio's users expect of a stream besides reading and writing.

use std::io::ErrorKind;
use std::time::Duration;

use tack::{CloseReason, Config, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::pair::{PATIENCE, Pair, within};

#[tokio::test]
async fn readable_waits_for_bytes_and_for_the_end() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (mut client, server) = pair.connect().await;
    let mut buf = [0; 8];
    assert_eq!(
        server.try_read(&mut buf).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    let (_, ()) = within(async { tokio::join!(client.write_all(b"one"), server.readable()) }).await;
    assert_eq!(server.try_read(&mut buf).unwrap(), 3);
    assert_eq!(&buf[..3], b"one");
    let ending = async {
        client.shutdown().await.unwrap();
    };
    within(async { tokio::join!(ending, server.readable()) }).await;
    assert_eq!(server.try_read(&mut buf).unwrap(), 0);
}

#[tokio::test]
async fn any_number_of_tasks_wait_for_one_stream() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (mut client, server) = pair.connect().await;
    let server = std::sync::Arc::new(server);
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let server = std::sync::Arc::clone(&server);
            tokio::spawn(async move { server.readable().await })
        })
        .collect();
    tokio::task::yield_now().await;
    client.write_all(b"x").await.unwrap();
    for task in waiting {
        within(task).await.unwrap();
    }
}

#[tokio::test]
async fn peeking_takes_nothing() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (mut client, mut server) = pair.connect().await;
    client.write_all(b"look at this").await.unwrap();
    let mut seen = [0; 4];
    for _ in 0..2 {
        assert_eq!(within(server.peek(&mut seen)).await.unwrap(), 4);
        assert_eq!(&seen, b"look");
    }
    client.shutdown().await.unwrap();
    let mut all = String::new();
    within(server.read_to_string(&mut all)).await.unwrap();
    assert_eq!(all, "look at this");
    assert_eq!(within(server.peek(&mut seen)).await.unwrap(), 0);
}

#[tokio::test]
async fn writable_waits_for_room() {
    let config = Config {
        send_buffer: 128 << 10,
        receive_buffer: 128 << 10,
        ..Config::default()
    };
    let mut pair = Pair::new(Endpoint::builder().config(config)).await;
    let (client, mut server) = pair.connect().await;
    within(client.writable()).await;
    let block = [7; 8 << 10];
    let mut written = 0;
    // Acknowledgements still make room for a while: full is what stays full.
    loop {
        match client.try_write(&block) {
            Ok(len) => written += len,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                let room = tokio::time::timeout(Duration::from_millis(300), client.writable());
                if room.await.is_err() {
                    break;
                }
            }
        }
    }
    let reading = async {
        let mut got = 0;
        let mut buf = vec![0; 64 << 10];
        while got < written {
            got += server.read(&mut buf).await.unwrap();
        }
    };
    within(async { tokio::join!(reading, client.writable()) }).await;
    assert!(client.try_write(&block).unwrap() > 0);
}

#[tokio::test]
async fn closed_says_how_a_connection_ended() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (client, server) = pair.connect().await;
    client.reset();
    assert_eq!(within(server.closed()).await, CloseReason::Reset);
    // Nothing is left to read, and a broken connection is not an end of the stream.
    assert_eq!(
        server.try_read(&mut [0; 1]).unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );

    let (mut client, mut server) = pair.connect().await;
    let early = tokio::time::timeout(Duration::from_millis(20), client.closed());
    assert!(early.await.is_err(), "both streams are open");
    client.shutdown().await.unwrap();
    within(client.finished()).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(20), client.closed());
    assert!(early.await.is_err(), "the peer's stream is open");
    server.shutdown().await.unwrap();
    // The side that closed first does not wait for the end of its TIME-WAIT.
    let ends = within(async { tokio::join!(client.closed(), server.closed()) }).await;
    assert_eq!(ends, (CloseReason::Graceful, CloseReason::Graceful));
}

#[tokio::test]
async fn closed_is_told_through_a_half_that_only_writes() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (client, server) = pair.connect().await;
    let (_reader, writer) = server.into_split();
    let watching = tokio::spawn(async move { writer.closed().await });
    tokio::task::yield_now().await;
    client.reset();
    assert_eq!(within(watching).await.unwrap(), CloseReason::Reset);
}

/// A read that was given up took nothing, and a write that was given up wrote nothing.
#[tokio::test]
async fn reads_and_writes_can_be_given_up() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (mut client, mut server) = pair.connect().await;
    let mut buf = [0; 16];
    for _ in 0..3 {
        let read = tokio::time::timeout(Duration::from_millis(1), server.read(&mut buf));
        assert!(read.await.is_err(), "nothing was written");
    }
    client.write_all(b"whole").await.unwrap();
    client.shutdown().await.unwrap();
    let mut text = String::new();
    within(server.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "whole");

    // The other way: each byte that a write said it took arrives, and no other.
    let block = [9; 64 << 10];
    let mut taken = 0;
    while let Ok(len) = tokio::time::timeout(Duration::from_millis(100), server.write(&block)).await
    {
        taken += len.unwrap();
        assert!(taken < 64 << 20, "nothing stops the sender");
    }
    let reading = async {
        let mut all = Vec::new();
        client.read_to_end(&mut all).await.unwrap();
        all.len()
    };
    let ending = async { server.shutdown().await.unwrap() };
    let (got, ()) = within(async { tokio::join!(reading, ending) }).await;
    assert_eq!(got, taken);
    drop((client, server));
    pair.client.shutdown(PATIENCE).await.unwrap();
}
