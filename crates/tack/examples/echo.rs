//! A server that sends everything back, and a client that checks it.
//!
//! `cargo run -p tack --example echo`

use std::io;

use tack::{Listener, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn echo(stream: Stream) -> io::Result<()> {
    let (mut reader, mut writer) = stream.into_split();
    tokio::io::copy(&mut reader, &mut writer).await?;
    writer.shutdown().await
}

/// Runs both sides.
#[tokio::main(flavor = "current_thread")]
pub async fn main() -> io::Result<()> {
    let listener = Listener::bind("localhost:0").await?;
    let address = listener.local_addr();
    let server = tokio::spawn(async move {
        let (stream, peer) = listener.accept().await?;
        println!("{peer} connected");
        echo(stream).await
    });

    let mut stream = tack::connect(address).await?;
    stream.write_all(b"hello").await?;
    stream.shutdown().await?; // no more from us; reading goes on
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    server.await??;
    if answer != "hello" {
        return Err(io::Error::other(format!("sent hello, got {answer:?}")));
    }
    println!("the answer is {answer}");
    Ok(())
}
