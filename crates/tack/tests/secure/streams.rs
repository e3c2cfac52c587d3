//! What goes in comes out, in both directions, to a proper end or an error.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;

use tack::secure::{SecureError, SecureStream};
use tack::{Config, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::pair::{check_stream, within, write_stream};
use crate::two::{ALPN, Two};

/// The error of the secure stream inside that of a read or write.
pub(crate) fn inner(error: &io::Error) -> &SecureError {
    let inner = error.get_ref().unwrap_or_else(|| panic!("{error:?}"));
    inner
        .downcast_ref()
        .unwrap_or_else(|| panic!("not of the secure stream: {error:?}"))
}

#[tokio::test]
async fn both_sides_know_each_other() {
    let two = Two::new();
    let (client, server) = two.connect().await;
    let (client_key, server_key) = (two.client_id.public_key(), two.server_id.public_key());
    assert_eq!(
        (client.own_key(), client.peer_key()),
        (client_key, server_key)
    );
    assert_eq!(
        (server.own_key(), server.peer_key()),
        (server_key, client_key)
    );
    assert_eq!((client.alpn(), server.alpn()), (ALPN, ALPN));
    assert_eq!(client.key_exchange(), "X25519MLKEM768");
    assert!(client.cipher().starts_with("TLS13_"), "{}", client.cipher());
    assert_eq!(two.listener.handshakes().completed, 1);
    assert_eq!(two.listener.public_key(), server_key);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn megabytes_pass_both_ways_at_once() {
    const LEN: u64 = 12 << 20;
    let two = Two::new();
    let (client, server) = two.connect().await;
    let (mut client_in, mut client_out) = client.into_split();
    let (mut server_in, mut server_out) = server.into_split();
    let tasks = [
        tokio::spawn(async move { write_stream(&mut client_out, 1, LEN).await }),
        tokio::spawn(async move { write_stream(&mut server_out, 2, LEN).await }),
        tokio::spawn(async move { check_stream(&mut server_in, 1, LEN).await }),
        tokio::spawn(async move { check_stream(&mut client_in, 2, LEN).await }),
    ];
    for task in tasks {
        within(task).await.unwrap();
    }
}

#[tokio::test]
async fn an_echo_comes_back_through_small_buffers() {
    let config = Config {
        send_buffer: 4 << 10,
        receive_buffer: 4 << 10,
        ..Config::default()
    };
    let two = Two::with(Endpoint::builder().config(config), Default::default());
    let (client, mut server) = two.connect().await;
    let echo = async {
        let mut block = [0; 1000];
        loop {
            match server.read(&mut block).await.unwrap() {
                0 => break server.shutdown().await.unwrap(),
                len => server.write_all(&block[..len]).await.unwrap(),
            }
        }
    };
    let through = through_echo(client, 3, 300_000);
    within(async { tokio::join!(echo, through) }).await;
}

async fn through_echo(stream: tack::secure::SecureStream, seed: u64, len: u64) {
    let (mut reader, mut writer) = stream.into_split();
    let writing = write_stream(&mut writer, seed, len);
    let reading = check_stream(&mut reader, seed, len);
    tokio::join!(writing, reading);
}

#[tokio::test]
async fn vectored_writes_arrive_in_order() {
    let two = Two::new();
    let (mut client, mut server) = two.connect().await;
    let parts: Vec<Vec<u8>> = (0..40_u8).map(|n| vec![n; usize::from(n) * 777]).collect();
    let whole = parts.concat();
    let writing = async {
        let mut slices: Vec<io::IoSlice<'_>> =
            parts.iter().map(|part| io::IoSlice::new(part)).collect();
        let mut left = &mut slices[..];
        while left.iter().any(|slice| !slice.is_empty()) {
            let written = client.write_vectored(left).await.unwrap();
            assert!(written > 0);
            io::IoSlice::advance_slices(&mut left, written);
        }
        client.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let reading = server.read_to_end(&mut got);
    let (_, read) = within(async { tokio::join!(writing, reading) }).await;
    read.unwrap();
    assert!(got == whole);
}

#[tokio::test]
async fn the_end_of_one_direction_leaves_the_other() {
    let two = Two::new();
    let (mut client, mut server) = two.connect().await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut heard = String::new();
    within(server.read_to_string(&mut heard)).await.unwrap();
    assert_eq!(heard, "question");
    // Again: the end stays the end.
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    server.write_all(b"answer").await.unwrap();
    server.shutdown().await.unwrap();
    let mut answer = String::new();
    within(client.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(answer, "answer");
    let error = client.write(b"more").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    within(client.finished()).await.unwrap();
    within(client.closed()).await;
}

/// Writes until the send buffer is full; how many bytes that took.
async fn fill(stream: &mut SecureStream) -> u64 {
    let block = [7; 64 << 10];
    let mut written = 0;
    loop {
        let full = poll_fn(|cx| {
            Poll::Ready(match Pin::new(&mut *stream).poll_write(cx, &block) {
                Poll::Ready(len) => Some(len.unwrap() as u64),
                Poll::Pending => None,
            })
        });
        match full.await {
            Some(len) => written += len,
            None => return written,
        }
    }
}

#[tokio::test]
async fn both_sides_may_end_with_full_buffers_and_read_afterwards() {
    let two = Two::new();
    let (mut client, mut server) = two.connect().await;
    for _ in 0..3 {
        // The windows fill, too.
        fill(&mut client).await;
        fill(&mut server).await;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let up = fill(&mut client).await;
    let down = fill(&mut server).await;
    assert_eq!((up, down), (0, 0), "both are full");
    within(async {
        client.shutdown().await.unwrap();
        server.shutdown().await.unwrap();
        let (mut heard, mut answer) = (Vec::new(), Vec::new());
        let (heard_all, answered) = tokio::join!(
            server.read_to_end(&mut heard),
            client.read_to_end(&mut answer)
        );
        assert!(heard_all.unwrap() > 0 && answered.unwrap() > 0);
        client.finished().await.unwrap();
        server.finished().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_stream_without_a_farewell_is_an_error() {
    let two = Two::new();
    let (mut client, mut server) = two.connect().await;
    client.write_all(b"half").await.unwrap();
    drop(client);
    let mut heard = Vec::new();
    let error = within(server.read_to_end(&mut heard)).await.unwrap_err();
    assert_eq!(heard, b"half");
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert!(matches!(inner(&error), SecureError::Truncated), "{error:?}");

    // The same for a half that is dropped.
    let (client, mut server) = two.connect().await;
    let (_reader, mut writer) = client.into_split();
    writer.write_all(b"half").await.unwrap();
    drop(writer);
    let error = within(server.read_to_end(&mut heard)).await.unwrap_err();
    assert!(matches!(inner(&error), SecureError::Truncated), "{error:?}");
}

#[tokio::test]
async fn exported_material_is_the_same_on_both_sides_and_nowhere_else() {
    let two = Two::new();
    let (client, server) = two.connect().await;
    let (other, _other_server) = two.connect().await;
    let export = |stream: &tack::secure::SecureStream, label: &[u8], context: &[u8]| {
        let mut out = [0; 32];
        stream
            .export_keying_material(label, context, &mut out)
            .unwrap();
        out
    };
    let binding = export(&client, b"EXPORTER-Channel-Binding", b"");
    assert_eq!(binding, export(&server, b"EXPORTER-Channel-Binding", b""));
    assert_ne!(binding, export(&other, b"EXPORTER-Channel-Binding", b""));
    assert_ne!(binding, export(&client, b"EXPORTER-other", b""));
    assert_ne!(binding, export(&client, b"EXPORTER-Channel-Binding", b"x"));
    let mut out = vec![0; 8160];
    client.export_keying_material(b"x", b"", &mut out).unwrap();
    for (label, len) in [(249, 0), (249, 8161), (250, 32)] {
        let label = vec![b'l'; label];
        let refused = client.export_keying_material(&label, b"", &mut vec![0; len]);
        assert!(refused.is_err(), "{} {len}", label.len());
    }
}

#[tokio::test]
async fn halves_find_each_other_again() {
    let two = Two::new();
    let (client, mut server) = two.connect().await;
    let (other, _server) = two.connect().await;
    let (reader, writer) = client.into_split();
    let (other_reader, other_writer) = other.into_split();
    let error = reader.reunite(other_writer).unwrap_err();
    let mut client = error.0.reunite(writer).unwrap();
    drop((other_reader, error.1));
    client.write_all(b"whole").await.unwrap();
    client.shutdown().await.unwrap();
    let mut heard = String::new();
    within(server.read_to_string(&mut heard)).await.unwrap();
    assert_eq!(heard, "whole");
}

#[tokio::test]
async fn what_is_written_and_not_read_keeps_its_order_across_many_records() {
    let two = Two::new();
    let (mut client, mut server) = two.connect().await;
    for n in 0..2_000_u32 {
        client.write_all(&n.to_be_bytes()).await.unwrap();
    }
    client.shutdown().await.unwrap();
    for n in 0..2_000_u32 {
        assert_eq!(within(server.read_u32()).await.unwrap(), n);
    }
    assert_eq!(server.read(&mut [0; 1]).await.unwrap(), 0);
}
