//! Addresses given by name.

use std::io::ErrorKind;

use tack::{ConnectError, Endpoint, Listener};

use crate::pair::within;

#[tokio::test]
async fn names_stand_for_addresses_as_with_tokio() {
    // `localhost` may be ::1, 127.0.0.1, or both: each side finds one that serves.
    let listener = Listener::bind("localhost:0").await.unwrap();
    let port = listener.local_addr().port();
    let address = listener.local_addr();
    let (client, accepted) =
        within(async { tokio::join!(tack::connect(address), listener.accept()) }).await;
    assert_eq!(client.unwrap().peer_addr(), address);
    accepted.unwrap();
    let (client, _) =
        within(async { tokio::join!(tack::connect(("localhost", port)), listener.accept()) }).await;
    client.unwrap();
    let endpoint = Endpoint::bind((listener.local_addr().ip(), 0))
        .await
        .unwrap();
    let name = format!("localhost:{port}");
    let (client, _) =
        within(async { tokio::join!(endpoint.connect(name), listener.accept()) }).await;
    client.unwrap();
}

#[tokio::test]
async fn every_address_of_a_list_is_tried() {
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::builder().build().unwrap();
    let good = listener.local_addr();
    // The first is of another family, the second beyond loopback.
    let list = [
        "[::1]:9".parse().unwrap(),
        "192.0.2.1:9".parse().unwrap(),
        good,
    ];
    let (client, _) =
        within(async { tokio::join!(endpoint.connect(&list[..]), listener.accept()) }).await;
    assert_eq!(client.unwrap().peer_addr(), good);
    // The last error says most, unless it is only about the family.
    let list = [list[1], list[0]];
    let error = within(endpoint.connect(&list[..])).await.unwrap_err();
    assert!(matches!(error, ConnectError::Insecure(_)), "{error}");
}

#[tokio::test]
async fn a_name_that_does_not_exist_says_so() {
    let error = within(tack::connect("no port")).await.unwrap_err();
    assert!(matches!(error, ConnectError::Resolve(_)), "{error}");
    let none: &[std::net::SocketAddr] = &[];
    let error = within(tack::connect(none)).await.unwrap_err();
    assert_eq!(std::io::Error::from(error).kind(), ErrorKind::NotFound);
    let error = within(Listener::bind(none)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
