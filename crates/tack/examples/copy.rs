//! Copies a file from one endpoint to another, and compares.
//!
//! `cargo run -p tack --example copy -- [FILE]` (without a file it makes one of 8 MiB)

use std::io;
use std::path::{Path, PathBuf};

use tack::{Endpoint, Listener};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// Takes one file and writes it to `to`.
async fn receive(listener: Listener, to: PathBuf) -> io::Result<u64> {
    let (mut stream, _) = listener.accept().await?;
    let mut file = File::create(to).await?;
    // The end of the stream is the end of the file; a connection that breaks off is an error
    // instead.
    let len = tokio::io::copy(&mut stream, &mut file).await?;
    file.sync_all().await?;
    // The sender learns that all of it is on disk.
    stream.write_u64(len).await?;
    stream.shutdown().await?;
    stream.finished().await?;
    Ok(len)
}

async fn send(endpoint: &Endpoint, peer: std::net::SocketAddr, from: &Path) -> io::Result<u64> {
    use tokio::io::AsyncReadExt;

    let mut stream = endpoint.connect(peer).await?;
    let mut file = File::open(from).await?;
    tokio::io::copy(&mut file, &mut stream).await?;
    stream.shutdown().await?;
    stream.read_u64().await
}

async fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let listener = Listener::bind("127.0.0.1:0").await?;
    let peer = listener.local_addr();
    let receiving = tokio::spawn(receive(listener, to.to_owned()));
    let endpoint = Endpoint::builder().build()?;
    let sent = send(&endpoint, peer, from).await?;
    let received = receiving.await??;
    if sent != received || std::fs::read(from)? != std::fs::read(to)? {
        return Err(io::Error::other("the copy differs"));
    }
    println!("{received} bytes copied");
    Ok(())
}

/// Copies the file.
#[tokio::main]
pub async fn main() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let from = match std::env::args_os().nth(1).map(PathBuf::from) {
        Some(path) if path.is_file() => path,
        _ => {
            let path = folder.path().join("original");
            let bytes: Vec<u8> = (0..8_u32 << 20).map(|at| (at % 251) as u8).collect();
            std::fs::write(&path, bytes)?;
            path
        }
    };
    copy(&from, &folder.path().join("copy")).await
}
