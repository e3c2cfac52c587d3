//! Bytes arrive as they were written.

use std::io::{ErrorKind, IoSlice};

use tack::{Algorithm, Coalesce, Config, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::pair::{Pair, check_stream, echo, through_echo, within, write_stream};

#[tokio::test]
async fn a_mebibyte_comes_back_the_same() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (client, server) = pair.connect().await;
    within(async { tokio::join!(echo(server), through_echo(client, 1, 1 << 20)) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_mebibytes_come_back_the_same() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (client, server) = pair.connect().await;
    let echoing = tokio::spawn(echo(server));
    within(through_echo(client, 2, 100 << 20)).await;
    within(echoing).await.unwrap();
}

#[tokio::test]
async fn every_controller_and_policy_carries_a_stream() {
    for congestion in Algorithm::ALL {
        for policy in ["every", "delayed:2", "delayed:16", "tack"] {
            let ack = policy.parse().unwrap();
            let config = Config {
                congestion,
                ack,
                ..Config::default()
            };
            let mut pair =
                Pair::new(Endpoint::builder().config(config).coalesce(Coalesce::Off)).await;
            let (mut client, mut server) = pair.connect().await;
            let writing = write_stream(&mut client, 3, 1 << 20);
            let reading = check_stream(&mut server, 3, 1 << 20);
            within(async { tokio::join!(writing, reading) }).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_connections_share_two_sockets() {
    let pair = Pair::new(Endpoint::builder()).await;
    let address = pair.server.local_addr();
    let accepting = tokio::spawn(async move {
        let mut echoes = Vec::new();
        for _ in 0..200 {
            let (stream, _) = pair.listener.accept().await.unwrap();
            echoes.push(tokio::spawn(echo(stream)));
        }
        for echoing in echoes {
            echoing.await.unwrap();
        }
    });
    let mut clients = Vec::new();
    for seed in 0..200 {
        let endpoint = pair.client.clone();
        clients.push(tokio::spawn(async move {
            let stream = endpoint.connect(address).await.unwrap();
            through_echo(stream, seed, 100_000 + seed).await;
        }));
    }
    for client in clients {
        within(client).await.unwrap();
    }
    within(accepting).await.unwrap();
}

#[tokio::test]
async fn thousands_of_connections_stay_open_side_by_side() {
    const COUNT: usize = 2_000;
    let pair = Pair::new(Endpoint::builder()).await;
    let address = pair.server.local_addr();
    let mut ends = Vec::new();
    for _ in 0..COUNT {
        let (client, server) = tokio::join!(pair.client.connect(address), pair.listener.accept());
        ends.push((client.unwrap(), server.unwrap().0));
    }
    for (index, (client, server)) in ends.iter_mut().enumerate() {
        client
            .write_all(&(index as u32).to_be_bytes())
            .await
            .unwrap();
        assert_eq!(within(server.read_u32()).await.unwrap(), index as u32);
    }
    assert_eq!(pair.server.carrier_stats().malformed, 0);
}

#[tokio::test]
async fn a_half_closed_connection_still_carries_the_other_direction() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (mut client, mut server) = pair.connect().await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut question = String::new();
    within(server.read_to_string(&mut question)).await.unwrap();
    assert_eq!(question, "question");
    within(client.finished()).await.unwrap();

    let error = client.write_all(b"more").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);

    let writing = write_stream(&mut server, 4, 300_000);
    within(async { tokio::join!(writing, check_stream(&mut client, 4, 300_000)) }).await;
    within(server.finished()).await.unwrap();
}

#[tokio::test]
async fn vectored_writes_are_one_stream() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (mut client, mut server) = pair.connect().await;
    let slices = [
        IoSlice::new(b"one "),
        IoSlice::new(b""),
        IoSlice::new(b"stream"),
    ];
    assert_eq!(client.write_vectored(&slices).await.unwrap(), 10);
    drop(client);
    let mut text = String::new();
    within(server.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "one stream");
}

#[tokio::test]
async fn a_receiver_that_does_not_read_stalls_the_sender() {
    let config = Config {
        send_buffer: 256 << 10,
        receive_buffer: 512 << 10,
        ..Config::default()
    };
    let mut pair = Pair::new(Endpoint::builder().config(config)).await;
    let (mut client, mut server) = pair.connect().await;
    let block = [7; 16 << 10];
    let mut written = 0_u64;
    // The sender is stalled when no write was taken for a while; what was taken by then is what
    // memory holds.
    while let Ok(taken) =
        tokio::time::timeout(std::time::Duration::from_millis(500), client.write(&block)).await
    {
        written += taken.unwrap() as u64;
        assert!(written < 16 << 20, "nothing stops the sender");
    }
    // The caps count the bytes of the stream; bookkeeping comes on top, outside this count.
    assert!(written <= (256 + 512) << 10, "{written} bytes were taken");

    // Reading lets everything through, and the sender goes on.
    let reading = async {
        let mut block = vec![0; 64 << 10];
        let mut total = 0;
        loop {
            match server.read(&mut block).await.unwrap() {
                0 => break total,
                len => total += len as u64,
            }
        }
    };
    let writing = async {
        client.write_all(&[7; 1 << 20]).await.unwrap();
        client.shutdown().await.unwrap();
    };
    let (total, ()) = within(async { tokio::join!(reading, writing) }).await;
    assert_eq!(total, written + (1 << 20));
}
