//! Beginnings and ends.

use std::io::ErrorKind;
use std::time::Duration;

use tack::{
    AcceptError, CloseReason, ConnectError, ConnectionEnded, Endpoint, InsecureAddress,
    ListenError, Listener,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::pair::{PATIENCE, Pair, check_stream, within, write_stream};

#[tokio::test]
async fn addresses_beyond_loopback_need_the_word() {
    let wild = "0.0.0.0:0".parse().unwrap();
    let error = Endpoint::builder().bind(wild).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("not be encrypted"), "{error}");
    assert!(error.get_ref().unwrap().is::<InsecureAddress>());
    assert!(
        Endpoint::builder()
            .bind(wild)
            .insecure(true)
            .build()
            .is_ok()
    );

    let endpoint = Endpoint::builder().build().unwrap();
    let error = endpoint.connect("192.0.2.1:9").await.unwrap_err();
    assert!(matches!(error, ConnectError::Insecure(_)), "{error}");
    // IPv4 loopback in IPv6 clothes is loopback all the same.
    assert!(
        Endpoint::builder()
            .bind("[::ffff:127.0.0.1]:0".parse().unwrap())
            .build()
            .is_ok()
    );
}

#[tokio::test]
async fn an_ipv4_socket_says_that_it_cannot_reach_ipv6() {
    let endpoint = Endpoint::builder().build().unwrap();
    let error = endpoint.connect("[::1]:9").await.unwrap_err();
    assert!(matches!(error, ConnectError::AddressFamily(_)), "{error}");
}

#[tokio::test]
async fn a_port_nobody_listens_on_refuses() {
    let pair = Pair::new(Endpoint::builder()).await;
    let connecting = pair.client.connect(pair.server.local_addr()).port(9);
    let error = within(connecting).await.unwrap_err();
    assert!(
        matches!(error, ConnectError::Refused { port: 9, .. }),
        "{error}"
    );
    assert_eq!(
        std::io::Error::from(error).kind(),
        ErrorKind::ConnectionRefused
    );
}

#[tokio::test]
async fn a_port_is_listened_on_once_at_a_time() {
    let pair = Pair::new(Endpoint::builder()).await;
    assert_eq!(
        pair.server.listen(tack::DEFAULT_PORT).unwrap_err(),
        ListenError::InUse(tack::DEFAULT_PORT)
    );
    drop(pair.listener);
    assert!(pair.server.listen(tack::DEFAULT_PORT).is_ok());
}

#[tokio::test]
async fn a_reset_ends_both_sides() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (client, mut server) = pair.connect().await;
    client.reset();
    let error = within(server.read(&mut [0; 10])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let ended = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<ConnectionEnded>());
    assert_eq!(ended, Some(&ConnectionEnded(CloseReason::Reset)));
    assert!(server.write(b"x").await.is_err());
}

#[tokio::test]
async fn a_dropped_stream_still_delivers() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (mut client, mut server) = pair.connect().await;
    let writing = async {
        write_stream(&mut client, 5, 5 << 20).await;
        // Megabytes are still in its buffer.
        drop(client);
        drop(pair.client);
    };
    within(async { tokio::join!(writing, check_stream(&mut server, 5, 5 << 20)) }).await;
}

#[tokio::test]
async fn dropping_the_write_half_ends_the_stream() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (client, mut server) = pair.connect().await;
    let (mut reader, mut writer) = client.into_split();
    writer.write_all(b"all").await.unwrap();
    drop(writer);
    let mut text = String::new();
    within(server.read_to_string(&mut text)).await.unwrap();
    server.write_all(b"answer").await.unwrap();
    drop(server);
    text.clear();
    within(reader.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "answer");
}

#[tokio::test]
async fn halves_of_one_stream_can_be_put_together() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (first, _first_peer) = pair.connect().await;
    let (second, _second_peer) = pair.connect().await;
    let (reader, writer) = first.into_split();
    let (_, other) = second.into_split();
    let error = reader.reunite(other).unwrap_err();
    let mut stream = error.0.reunite(writer).unwrap();
    stream.write_all(b"still open").await.unwrap();
}

#[tokio::test]
async fn shutdown_waits_for_what_was_written() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (mut client, mut server) = pair.connect().await;
    let reading = tokio::spawn(async move {
        check_stream(&mut server, 6, 3 << 20).await;
        drop(server);
    });
    write_stream(&mut client, 6, 3 << 20).await;
    drop(client);
    pair.client.shutdown(PATIENCE).await.unwrap();
    // Acknowledged is received: the other side has it all now.
    within(reading).await.unwrap();
    let error = pair
        .client
        .connect(pair.server.local_addr())
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::Endpoint(_)), "{error}");
}

#[tokio::test]
async fn shutdown_is_bounded_and_resets_what_is_left() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let (client, mut server) = pair.connect().await;
    let error = pair
        .client
        .shutdown(Duration::from_millis(50))
        .await
        .unwrap_err();
    assert_eq!(error.connections, 1);
    assert_eq!(
        within(server.read(&mut [0; 1])).await.unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );
    drop(client);
}

#[tokio::test]
async fn shutdown_ends_accepting() {
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.endpoint();
    let accepting = tokio::spawn(async move { listener.accept().await.map(drop) });
    tokio::task::yield_now().await;
    endpoint.shutdown(PATIENCE).await.unwrap();
    assert!(matches!(
        within(accepting).await.unwrap(),
        Err(AcceptError::Endpoint(_))
    ));
}

#[tokio::test]
async fn the_socket_is_free_again_after_the_last_handle() {
    let mut pair = Pair::new(Endpoint::builder()).await;
    let address = pair.server.local_addr();
    let (client, server) = pair.connect().await;
    drop((client, server));
    drop(pair);
    within(async {
        while Listener::bind(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[test]
fn a_stream_outlives_its_runtime_with_an_error() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let (mut client, _server, _pair) = first.block_on(async {
        let mut pair = Pair::new(Endpoint::builder()).await;
        let (client, server) = pair.connect().await;
        (client, server, pair)
    });
    drop(first);
    let error = runtime().block_on(async { within(client.read(&mut [0; 1])).await.unwrap_err() });
    assert_eq!(error.kind(), ErrorKind::NotConnected);
}

/// On Linux the system tells; elsewhere the timers do, much later.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_peer_that_is_gone_from_this_machine_is_noticed_without_a_timer() {
    let endpoint = Endpoint::builder().build().unwrap();
    let config = tack::Config {
        initial_rto: Duration::from_secs(600),
        user_timeout: None,
        ..tack::Config::default()
    };
    // Nobody was ever there: the first SYN is answered.
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let connecting = endpoint.connect(address).config(config.clone());
    let error = within(connecting).await.unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable(_)), "{error}");

    // The peer's process dies: what is written next is answered. Its runtime dies with it, and its
    // socket.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (tell, told) = tokio::sync::oneshot::channel();
    runtime.spawn(async move {
        let listener = Listener::bind("127.0.0.1:0").await.unwrap();
        tell.send(listener.local_addr()).unwrap();
        let _accepted = listener.accept().await.unwrap();
        std::future::pending::<()>().await;
    });
    let peer = within(told).await.unwrap();
    let mut stream = within(endpoint.connect(peer).config(config)).await.unwrap();
    runtime.shutdown_background();
    let ended = within(async {
        loop {
            if let Err(error) = stream.write_all(&[1; 1000]).await {
                return error;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let reason = ended.get_ref().unwrap().downcast_ref::<ConnectionEnded>();
    // A runtime that goes down in good order may have said goodbye itself.
    assert!(
        matches!(
            reason,
            Some(ConnectionEnded(
                CloseReason::Unreachable | CloseReason::Reset
            ))
        ),
        "{ended}"
    );
}
