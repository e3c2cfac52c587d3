//! A server that sends everything back to the one peer it knows, and that peer: encrypted, each
//! sure of the other's key.
//!
//! `cargo run -p tack --example secure_echo`

use std::error::Error;
use std::io;

use tack::Endpoint;
use tack::secure::{Admission, Identity, SecureListenOptions, SecureStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What both sides speak inside TLS.
const PROTOCOL: &[u8] = b"echo/1";

async fn echo(stream: SecureStream) -> io::Result<()> {
    let (mut reader, mut writer) = stream.into_split();
    tokio::io::copy(&mut reader, &mut writer).await?;
    // Without this the client's reads would fail: a stream that just ends may have been cut off.
    writer.shutdown().await
}

/// Runs both sides.
#[tokio::main(flavor = "current_thread")]
pub async fn main() -> Result<(), Box<dyn Error>> {
    // A program keeps its identity in a file (`Identity::to_pkcs8`), and learns the keys of its
    // peers once.
    let (client_identity, server_identity) = (Identity::generate()?, Identity::generate()?);
    let (client_key, server_key) = (client_identity.public_key(), server_identity.public_key());

    let server = Endpoint::builder().identity(server_identity).build()?;
    let admit = move |key: &_, _| match *key == client_key {
        true => Admission::Admit,
        false => Admission::Refuse,
    };
    let options = SecureListenOptions::new(PROTOCOL, admit)
        .on_failure(|peer, error| println!("{peer} was not let in: {error}"));
    let listener = server.listen_secure(tack::DEFAULT_PORT, options)?;
    let serving = tokio::spawn(async move {
        let (stream, peer) = listener.accept().await?;
        println!("{peer} has the key {}", stream.peer_key());
        echo(stream).await
    });

    let client = Endpoint::builder().identity(client_identity).build()?;
    let mut stream = client
        .connect(server.local_addr())
        .expecting(server_key, PROTOCOL)
        .await?;
    println!("{}, {}", stream.cipher(), stream.key_exchange());
    stream.write_all(b"hello").await?;
    stream.shutdown().await?; // no more from us; reading goes on
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    serving.await??;
    if answer != "hello" {
        return Err(format!("sent hello, got {answer:?}").into());
    }
    println!("the answer is {answer}");
    Ok(())
}
