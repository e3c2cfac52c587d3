//! A side that waits without knowing the code: what it learns from those who type it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tack::secure::{Admission, Identity, SecureListenOptions, SecureStream};
use tack::{DEFAULT_PORT, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Side, text};

/// Takes the other side's proof of the code, and goes away.
async fn guess(stream: &mut SecureStream) -> std::io::Result<u8> {
    let mut code = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut code).await?;
    // An element of the group that is surely one: the other side's, as that of a waiting side.
    let mut pake = code[code.len() - 33..].to_vec();
    pake[0] = b'B';
    stream.write_u16(1 + 33).await?;
    stream.write_u8(0x81).await?;
    stream.write_all(&pake).await?;
    stream.flush().await?;
    let mut proof = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut proof).await?;
    Ok(proof[0])
}

/// Waits on loopback; counts the proofs that it gets.
fn guesser() -> (Endpoint, Arc<AtomicUsize>) {
    let proofs = Arc::new(AtomicUsize::new(0));
    let identity = Identity::generate().unwrap();
    let builder = Endpoint::builder().identity(identity.clone());
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let endpoint = builder.bind(local).build().unwrap();
    let options = SecureListenOptions::new(b"tack/1", |_, _| Admission::Admit);
    let listener = endpoint.listen_secure(DEFAULT_PORT + 16, options.identity(identity));
    let (listener, counted) = (listener.unwrap(), Arc::clone(&proofs));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            if let Ok(0x05) = guess(&mut stream).await {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            stream.reset();
        }
    });
    (endpoint, proofs)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_proved_to_one_waiting_side_only() {
    for patience in [&["--wait", "3s"][..], &["--retry", "3s"]] {
        let (endpoint, proofs) = guesser();
        let bob = Side::new();
        let address = endpoint.local_addr().to_string();
        let sent = tokio::task::spawn_blocking(move || {
            let file = bob.file("file", 10);
            let code = ["send", text(&file), &address, "--code", "7-guitarist-orca"];
            bob.run(&[&code[..], patience].concat())
        });
        let sent = sent.await.unwrap();
        assert_eq!(sent.code, Some(1), "{sent:?}");
        assert!(sent.stderr.contains("somebody guessed"), "{sent:?}");
        assert_eq!(proofs.load(Ordering::Relaxed), 1);
    }
}
