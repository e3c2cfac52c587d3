//! What tokio's users expect of an encrypted stream besides reading and writing.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tack::secure::SecureError;
use tack::{Config, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::pair::within;
use crate::streams::inner;
use crate::two::Two;

#[tokio::test]
async fn readable_waits_for_bytes_and_for_the_end() {
    let two = Two::new();
    let (mut client, server) = two.connect().await;
    let mut buf = [0; 8];
    assert_eq!(
        server.try_read(&mut buf).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    assert_eq!(server.try_read(&mut []).unwrap(), 0);
    let (_, ()) = within(async { tokio::join!(client.write_all(b"one"), server.readable()) }).await;
    // It stays so until somebody reads.
    within(server.readable()).await;
    assert_eq!(server.try_read(&mut buf[..2]).unwrap(), 2);
    within(server.readable()).await;
    assert_eq!(server.try_read(&mut buf[2..]).unwrap(), 1);
    assert_eq!(&buf[..3], b"one");
    let early = tokio::time::timeout(Duration::from_millis(20), server.readable());
    assert!(early.await.is_err(), "all was read");
    let ending = async {
        client.shutdown().await.unwrap();
    };
    within(async { tokio::join!(ending, server.readable()) }).await;
    assert_eq!(server.try_read(&mut buf).unwrap(), 0);
}

/// One task decrypts what another one waits for: both learn of it, however often that happens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_number_of_tasks_wait_for_one_stream() {
    let two = Two::new();
    let (mut client, server) = two.connect().await;
    let server = Arc::new(server);
    for round in 0..100_u8 {
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let server = Arc::clone(&server);
                tokio::spawn(async move {
                    let mut seen = [0; 1];
                    let len = server.peek(&mut seen).await.unwrap();
                    server.readable().await;
                    (len, seen)
                })
            })
            .collect();
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        client.write_all(&[round]).await.unwrap();
        for task in waiting {
            assert_eq!(within(task).await.unwrap(), (1, [round]));
        }
        assert_eq!(server.try_read(&mut [0; 8]).unwrap(), 1);
    }
}

#[tokio::test]
async fn peeking_takes_nothing() {
    let two = Two::new();
    let (mut client, mut server) = two.connect().await;
    client.write_all(b"look at this").await.unwrap();
    let mut seen = [0; 4];
    for _ in 0..2 {
        assert_eq!(within(server.peek(&mut seen)).await.unwrap(), 4);
        assert_eq!(&seen, b"look");
    }
    assert_eq!(within(server.peek(&mut [])).await.unwrap(), 0);
    // What is left of a record, and then the next one.
    server.read_exact(&mut [0; 8]).await.unwrap();
    assert_eq!(within(server.peek(&mut [0; 99])).await.unwrap(), 4);
    client.write_all(b", and that").await.unwrap();
    client.shutdown().await.unwrap();
    let mut all = String::new();
    within(server.read_to_string(&mut all)).await.unwrap();
    assert_eq!(all, "this, and that");
    assert_eq!(within(server.peek(&mut seen)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_stream_that_was_cut_off_is_readable_and_says_so_each_time() {
    let two = Two::new();
    let (mut client, server) = two.connect().await;
    client.write_all(b"begun").await.unwrap();
    drop(client);
    let mut seen = [0; 8];
    assert_eq!(within(server.peek(&mut seen)).await.unwrap(), 5);
    assert_eq!(server.try_read(&mut seen).unwrap(), 5);
    within(server.readable()).await;
    for _ in 0..2 {
        let error = within(server.peek(&mut seen)).await.unwrap_err();
        assert!(matches!(inner(&error), SecureError::Truncated), "{error}");
        let error = server.try_read(&mut seen).unwrap_err();
        assert!(matches!(inner(&error), SecureError::Truncated), "{error}");
    }
}

#[tokio::test]
async fn writable_waits_for_room() {
    let config = Config {
        send_buffer: 128 << 10,
        receive_buffer: 128 << 10,
        ..Config::default()
    };
    let two = Two::with(Endpoint::builder().config(config), Default::default());
    let (client, server) = two.connect().await;
    let (reader, _writer) = server.into_split();
    within(client.writable()).await;
    assert_eq!(client.try_write(&[]).unwrap(), 0);
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
            reader.readable().await;
            // This is the only reader: it is never told in vain.
            let len = reader.try_read(&mut buf).unwrap();
            assert!(len > 0 && buf[..len].iter().all(|byte| *byte == 7));
            got += len;
        }
    };
    let more = async {
        client.writable().await;
        client.try_write(&block).unwrap()
    };
    let ((), wrote) = within(async { tokio::join!(reading, more) }).await;
    assert!(wrote > 0);
}

#[tokio::test]
async fn a_stream_that_was_ended_is_writable_and_refuses() {
    let two = Two::new();
    let (mut client, mut server) = two.connect().await;
    client.shutdown().await.unwrap();
    within(client.writable()).await;
    let error = client.try_write(b"more").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    // The other direction goes on, through halves too.
    server.write_all(b"answer").await.unwrap();
    let (reader, writer) = client.into_split();
    within(reader.readable()).await;
    let mut buf = [0; 6];
    assert_eq!(within(reader.peek(&mut buf)).await.unwrap(), 6);
    assert_eq!(reader.try_read(&mut buf).unwrap(), 6);
    assert_eq!(&buf, b"answer");
    within(writer.writable()).await;
    assert!(writer.try_write(b"more").is_err());
}
