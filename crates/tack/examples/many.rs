//! Many connections over real sockets in one process: so many that stay open, and so many a second
//! that come and go.
//!
//! `cargo run --release -p tack --example many -- [open=10000] [churn=1000] [seconds=5]`
//!
//! Both ends are in this process. Each connection asks with a few bytes and is answered with
//! 10,000; those that come and go are ended by the server, so that TIME-WAIT is its own. Memory is
//! what the kernel says this process has resident.

use std::io;
use std::time::{Duration, Instant};

use tack::{Endpoint, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

const ANSWER: usize = 10_000;
/// Handshakes under way at a time while connections are opened that stay.
const TOGETHER: usize = 100;

#[derive(Clone, Copy)]
struct Options {
    open: usize,
    churn: usize,
    seconds: usize,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        open: 10_000,
        churn: 1_000,
        seconds: 5,
    };
    for arg in std::env::args().skip(1) {
        let (name, value) = arg
            .split_once('=')
            .ok_or(format!("expected open=N, churn=N or seconds=N, got {arg}"))?;
        let value: usize = value.parse().map_err(|error| format!("{arg}: {error}"))?;
        match name {
            "open" => options.open = value,
            "churn" => options.churn = value,
            "seconds" => options.seconds = value,
            _ => return Err(format!("expected open, churn or seconds, got {name}")),
        }
    }
    Ok(options)
}

/// Bytes resident, where `/proc` tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

fn report(what: &str, ends: [&Endpoint; 2]) {
    let accounted: usize = ends.iter().map(|end| end.memory()).sum();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let resident = resident().map_or("unknown".to_owned(), |bytes| {
        format!("{:.1} MiB", mib(bytes))
    });
    println!(
        "{what}: {resident} resident, {:.1} MiB accounted by both endpoints",
        mib(accounted as u64)
    );
}

/// Answers one connection; ends it if it was asked to.
async fn serve(mut stream: Stream) -> io::Result<()> {
    let mut ask = [0; 1];
    stream.read_exact(&mut ask).await?;
    stream.write_all(&[7; ANSWER]).await?;
    if ask == *b"e" {
        stream.shutdown().await?;
    }
    // Until the client has gone.
    while stream.read(&mut ask).await? > 0 {}
    Ok(())
}

async fn ask(client: &Endpoint, server: &Endpoint, kind: &[u8; 1]) -> io::Result<Stream> {
    let mut stream = client
        .connect(server.local_addr())
        .await
        .map_err(io::Error::other)?;
    stream.write_all(kind).await?;
    let mut answer = [0; ANSWER];
    stream.read_exact(&mut answer).await?;
    if kind == b"e" {
        assert_eq!(stream.read(&mut answer).await?, 0, "the end");
    }
    Ok(stream)
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let options = options().unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2);
    });
    let server = Endpoint::builder().build()?;
    let client = Endpoint::builder().build()?;
    let listener = server.listen(tack::DEFAULT_PORT)?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    report("before", [&client, &server]);
    #[expect(clippy::disallowed_methods, reason = "an example owns a clock")]
    let start = Instant::now();
    let mut held = Vec::new();
    while held.len() < options.open {
        let mut group = JoinSet::new();
        for _ in 0..TOGETHER.min(options.open - held.len()) {
            let (client, server) = (client.clone(), server.clone());
            group.spawn(async move { ask(&client, &server, b"k").await });
        }
        while let Some(stream) = group.join_next().await {
            held.push(stream.map_err(io::Error::other)??);
        }
    }
    let open = format!("{} open after {:.1?}", held.len(), start.elapsed());
    report(&open, [&client, &server]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    report("idle for 2 s", [&client, &server]);

    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    #[expect(clippy::disallowed_methods, reason = "an example owns a clock")]
    let start = Instant::now();
    let mut coming = JoinSet::new();
    let (mut done, mut failed) = (0, 0);
    for _ in 0..options.seconds * 100 {
        ticks.tick().await;
        for _ in 0..options.churn / 100 {
            let (client, server) = (client.clone(), server.clone());
            coming.spawn(async move { ask(&client, &server, b"e").await.map(drop) });
        }
        while let Some(ended) = coming.try_join_next() {
            match ended.map_err(io::Error::other)? {
                Ok(()) => done += 1,
                Err(error) => {
                    failed += 1;
                    eprintln!("{error}");
                }
            }
        }
    }
    while let Some(ended) = coming.join_next().await {
        match ended.map_err(io::Error::other)? {
            Ok(()) => done += 1,
            Err(_) => failed += 1,
        }
    }
    let churned = format!(
        "{done} came and went in {:.1?}, {failed} failed",
        start.elapsed()
    );
    report(&churned, [&client, &server]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    report("2 s later", [&client, &server]);
    Ok(())
}
