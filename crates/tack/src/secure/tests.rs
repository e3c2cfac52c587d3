//! What only a look inside shows: keys are renewed, and the exporter says what rustls says.

use std::sync::Arc;

use rustls::{ClientConnection, ServerConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::config::Setup;
use super::exporter::export;
use super::identity::Identity;
use super::listener::{Admission, SecureListenOptions};
use super::provider::tls13;
use super::stream::SecureStream;
use super::verify::RawKeys;
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
async fn worn_keys_are_renewed() {
    let (mut client, mut server) = pair().await;
    client.session.wear_after(4);
    server.session.wear_after(7);
    let fresh = [client.session.sealed(), server.session.sealed()];
    for n in 0..50 {
        say(&mut client, &mut server, n).await;
        say(&mut server, &mut client, n).await;
    }
    // 50 records would have that number.
    assert!(client.session.sealed() <= 4, "{}", client.session.sealed());
    assert!(server.session.sealed() <= 7, "{}", server.session.sealed());
    assert_eq!(fresh, [0, 0]);
    // A write of many records wears the key in its middle.
    let block = vec![7; 300_000];
    let writing = async {
        client.write_all(&block).await.unwrap();
        client.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let (_, read) = tokio::join!(writing, server.read_to_end(&mut got));
    read.unwrap();
    assert!(got == block);
    assert!(client.session.sealed() <= 4, "{}", client.session.sealed());
}

#[tokio::test]
async fn a_peer_that_wants_new_keys_gets_them() {
    let (mut client, mut server) = pair().await;
    for n in 0..20 {
        client.session.ask_for_update();
        say(&mut client, &mut server, n).await;
        say(&mut server, &mut client, n).await;
        // The answer to the request, and what was said, under the new key.
        assert_eq!(server.session.sealed(), 1);
    }
}

#[test]
fn the_exporter_says_what_rustls_says() {
    let setup = || {
        let identity = Identity::generate().unwrap();
        Setup::new(identity, ALPN.to_vec(), RawKeys::new(None))
    };
    let (client_setup, server_setup) = (setup(), setup());
    let name = "tack.invalid".try_into().unwrap();
    let mut client = ClientConnection::new(client_setup.client().unwrap(), name).unwrap();
    let mut server = ServerConnection::new(server_setup.server().unwrap()).unwrap();
    let mut wire = Vec::new();
    while client.is_handshaking() || server.is_handshaking() {
        wire.clear();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut &wire[..]).unwrap();
        server.process_new_packets().unwrap();
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut &wire[..]).unwrap();
        client.process_new_packets().unwrap();
    }
    let suite = tls13(client.negotiated_cipher_suite().unwrap());
    let secrets = [client_setup.exporter.take(), server_setup.exporter.take()];
    assert_eq!(secrets[0], secrets[1]);
    for (label, context, len) in [
        (&b"EXPORTER-Channel-Binding"[..], &b""[..], 32),
        (b"EXPORTER-tack", b"context", 16),
        (b"", b"", 1000),
    ] {
        let mut ours = vec![0; len];
        export(suite, &secrets[0], label, context, &mut ours).unwrap();
        let theirs = client
            .export_keying_material(vec![0; len], label, Some(context))
            .unwrap();
        assert_eq!(ours, theirs);
    }
    // Nothing else is told by way of the key log.
    assert!(client_setup.exporter.take().is_empty());
    let _: Arc<_> = server_setup.keys;
}
