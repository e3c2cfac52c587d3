//! What only a look inside shows: keys may be renewed at any time.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::identity::Identity;
use super::listener::{Admission, SecureListenOptions};
use super::stream::SecureStream;
use crate::Endpoint;

const ALPN: &[u8] = b"test";

async fn pair() -> (SecureStream, SecureStream) {
    let endpoint = || {
        let identity = Identity::generate().unwrap();
        Endpoint::builder().identity(identity).build().unwrap()
    };
    let (server, client) = (endpoint(), endpoint());
    let options = SecureListenOptions::new(ALPN, |_, _| Admission::Admit);
    let listener = server.listen_secure(1, options).unwrap();
    let connecting = client.connect(server.local_addr()).port(1).any_key(ALPN);
    let (client, server) = tokio::join!(connecting.into_future(), listener.accept());
    (client.unwrap(), server.unwrap().0)
}

/// Says `n` and waits for the other side to have heard it.
async fn say(from: &mut SecureStream, to: &mut SecureStream, n: u32) {
    from.write_all(&n.to_be_bytes()).await.unwrap();
    assert_eq!(to.read_u32().await.unwrap(), n);
}

#[tokio::test]
async fn keys_are_renewed_while_both_sides_speak() {
    let (mut client, mut server) = pair().await;
    for n in 0..40 {
        if n % 3 == 0 {
            client.session.renew_keys();
        }
        if n % 5 == 0 {
            server.session.renew_keys();
        }
        say(&mut client, &mut server, n).await;
        say(&mut server, &mut client, n).await;
    }
    // In the middle of a long write.
    let block = vec![7; 300_000];
    let writing = async {
        client.write_all(&block).await.unwrap();
        client.session.renew_keys();
        client.write_all(&block).await.unwrap();
        client.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let (_, read) = tokio::join!(writing, server.read_to_end(&mut got));
    read.unwrap();
    assert!(got == [&block[..], &block[..]].concat());
}

#[tokio::test]
async fn renewals_in_silence_are_followed() {
    let (mut client, mut server) = pair().await;
    client.session.renew_keys();
    // `close_notify` takes the renewal along.
    client.shutdown().await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    server.write_all(b"answer").await.unwrap();
    server.shutdown().await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "answer");
}
