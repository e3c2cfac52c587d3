//! Which peers are admitted, and what each side learns.

use std::io;

use tack::secure::{Admission, Identity, SecureError, SecureListenOptions};
use tack::{ConnectError, Endpoint, ListenError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::pair::within;
use crate::streams::inner;
use crate::two::{ALPN, Two};

#[tokio::test]
async fn a_peer_with_another_key_is_not_the_peer() {
    let two = Two::new();
    let wanted = Identity::generate().unwrap().public_key();
    let refused = two
        .client
        .connect(two.server.local_addr())
        .expecting(wanted, ALPN);
    match within(refused).await.unwrap_err() {
        SecureError::WrongKey {
            expected,
            presented,
        } => assert_eq!((expected, presented), (wanted, two.server_id.public_key())),
        other => panic!("{other:?}"),
    }
    assert!(two.failure().await.contains("does not admit"));
}

#[tokio::test]
async fn any_key_leaves_the_judgement_to_the_program() {
    let two = Two::new();
    let connecting = two.client.connect(two.server.local_addr()).any_key(ALPN);
    let met = within(connecting).await.unwrap();
    assert_eq!(met.peer_key(), two.server_id.public_key());
}

#[tokio::test]
async fn a_key_that_is_not_admitted_is_told_so() {
    let two = Two::new();
    // An identity for one connection alone.
    let stranger = Identity::generate().unwrap();
    let connecting = two
        .client
        .connect(two.server.local_addr())
        .expecting(two.server_id.public_key(), ALPN)
        .identity(stranger.clone());
    let mut stream = within(connecting).await.unwrap();
    assert_eq!(stream.own_key(), stranger.public_key());
    let error = within(stream.read(&mut [0; 1])).await.unwrap_err();
    assert!(
        matches!(inner(&error), SecureError::RefusedByPeer),
        "{error:?}"
    );
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    // Writing explains it as well, once the connection is gone.
    let error = within(async {
        loop {
            if let Err(error) = stream.write_all(&[7; 1000]).await {
                break error;
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
    assert!(
        matches!(inner(&error), SecureError::RefusedByPeer),
        "{error:?}"
    );
    let told = two.failure().await;
    assert!(told.contains(&stranger.public_key().to_string()), "{told}");
    assert_eq!(two.listener.handshakes().failed, 1);
}

#[tokio::test]
async fn a_writer_that_never_reads_learns_why_it_is_refused() {
    let two = Two::new();
    let connecting = two
        .client
        .connect(two.server.local_addr())
        .any_key(ALPN)
        .identity(Identity::generate().unwrap());
    let stream = within(connecting).await.unwrap();
    let (_reader, mut writer) = stream.into_split();
    let error = within(async {
        loop {
            if let Err(error) = writer.write_all(&[7; 1000]).await {
                break error;
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
    assert!(
        matches!(inner(&error), SecureError::RefusedByPeer),
        "{error:?}"
    );
}

#[tokio::test]
async fn another_protocol_is_refused_on_both_sides() {
    let two = Two::new();
    let key = two.server_id.public_key();
    let connecting = two
        .client
        .connect(two.server.local_addr())
        .expecting(key, b"other/1");
    let error = within(connecting).await.unwrap_err();
    assert!(matches!(error, SecureError::WrongProtocol), "{error:?}");
    assert!(two.failure().await.contains("another protocol"));
}

#[tokio::test]
async fn without_an_identity_there_is_no_encryption() {
    let two = Two::new();
    let bare = Endpoint::builder().build().unwrap();
    let error = bare
        .connect(two.server.local_addr())
        .any_key(ALPN)
        .await
        .unwrap_err();
    assert!(matches!(error, SecureError::NoIdentity), "{error:?}");
    let options = SecureListenOptions::new(ALPN, |_, _| Admission::Admit);
    let error = bare.listen_secure(1, options).unwrap_err();
    assert_eq!(error, ListenError::NoIdentity);
}

#[tokio::test]
async fn an_identity_opens_the_world_for_encrypted_connections_only() {
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let error = Endpoint::builder().bind(everywhere).build().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(!error.to_string().contains("insecure"), "{error}");
    let identity = Identity::generate().unwrap();
    let endpoint = Endpoint::builder()
        .bind(everywhere)
        .identity(identity)
        .build()
        .unwrap();
    let options = SecureListenOptions::new(ALPN, |_, _| Admission::Admit);
    let listener = endpoint.listen_secure(1, options).unwrap();
    assert_eq!(listener.port(), 1);
    let error = endpoint.listen(2).unwrap_err();
    assert!(matches!(error, ListenError::Insecure(_)), "{error:?}");
    // TEST-NET-1 (RFC 5737): nothing is sent there.
    let error = endpoint.connect("192.0.2.1:9").await.unwrap_err();
    assert!(matches!(error, ConnectError::Insecure(_)), "{error:?}");
}
