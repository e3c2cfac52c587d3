//! Forwarded connections on the loopback interface.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::amount::{Amount, median};
use crate::relay;
use crate::sides::{Sides, peak_memory};

/// Serves each connection in a thread with `talk`.
pub(crate) fn target(talk: fn(TcpStream)) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = std::thread::Builder::new()
                .stack_size(64 << 10)
                .spawn(move || talk(stream));
        }
    });
    Ok(address)
}

pub(crate) fn swallow(mut stream: TcpStream) {
    let mut bytes = vec![0; 256 << 10];
    let mut all: u64 = 0;
    while let Ok(len @ 1..) = stream.read(&mut bytes) {
        all += len as u64;
    }
    let _ = stream.write_all(&all.to_be_bytes());
}

pub(crate) fn echo(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut bytes = [0; 2048];
    while let Ok(len @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..len]).is_err() {
            return;
        }
    }
}

/// Durations of exchanges of 64 bytes, µs: the median and the 99th percentile.
fn exchanges(to: SocketAddr, count: usize) -> Result<(f64, f64)> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    let mut bytes = [7; 64];
    let mut took = Vec::with_capacity(count);
    for n in 0..count + count / 10 {
        let began = Instant::now();
        stream.write_all(&bytes)?;
        stream.read_exact(&mut bytes)?;
        // The first ones find cold caches.
        if n >= count / 10 {
            took.push(began.elapsed().as_secs_f64() * 1e6);
        }
    }
    took.sort_by(f64::total_cmp);
    Ok((took[count / 2], took[count * 99 / 100]))
}

/// What a tunnel adds to the time of an exchange, beside two plain relays one behind the other.
pub(crate) fn latency(sides: &Sides, amount: Amount) -> Result<String> {
    let target = target(echo)?;
    let (_serving, _) = sides.serve(&[], None)?;
    let (_forwarding, near) = sides.forward(target, &[])?;
    let (_second, behind) = relay::start(target)?;
    let (_first, relayed) = relay::start(behind)?;
    let (mut direct, mut plain, mut tunnelled, mut tail) = (vec![], vec![], vec![], vec![]);
    for _ in 0..amount.rounds {
        direct.push(exchanges(target, amount.exchanges)?.0);
        plain.push(exchanges(relayed, amount.exchanges)?.0);
        let (half, most) = exchanges(near, amount.exchanges)?;
        tunnelled.push(half);
        tail.push(most);
    }
    let (direct, plain) = (median(&mut direct), median(&mut plain));
    let tunnelled = median(&mut tunnelled);
    Ok(format!(
        "an exchange of 64 bytes takes {tunnelled:.0} µs at p50 ({:.0} at p99), without tunnel {direct:.0}, through \
         two plain relays {plain:.0}: {:.0} µs more there and back, {:.0} each way (wanted 100; the relays {:.0})",
        median(&mut tail),
        tunnelled - direct,
        (tunnelled - direct) / 2.0,
        (plain - direct) / 2.0,
    ))
}

/// Many connections at a time, each of which carries 1 KiB and waits.
pub(crate) fn many(sides: &Sides, amount: Amount) -> Result<String> {
    let target = target(echo)?;
    let (serving, _) = sides.serve(&["--max-per-peer", "8192"], None)?;
    let (forwarding, near) = sides.forward(target, &[])?;
    let began = Instant::now();
    let mut open = Vec::with_capacity(amount.connections);
    let mut bytes = [7; 1024];
    // Some at a time: the backlog of a port is shorter than all.
    while open.len() < amount.connections {
        let some = open.len();
        for _ in 0..64.min(amount.connections - some) {
            open.push(TcpStream::connect(near)?);
        }
        for stream in &mut open[some..] {
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            stream.write_all(&bytes)?;
        }
        for stream in &mut open[some..] {
            stream.read_exact(&mut bytes)?;
        }
    }
    let opened = began.elapsed();
    // All of them are there: each carries again.
    for stream in &mut open {
        stream.write_all(&bytes)?;
    }
    for stream in &mut open {
        stream.read_exact(&mut bytes)?;
    }
    Ok(format!(
        "{} opened in {:.1} s and carried twice; tack serve has {:.0} MiB at its peak (wanted 500), tack \
         forward {:.0}",
        open.len(),
        opened.as_secs_f64(),
        peak_memory(serving.id())?,
        peak_memory(forwarding.id())?,
    ))
}

/// Whether a connection that nobody reads from delays others.
pub(crate) fn slow_reader(sides: &Sides, amount: Amount) -> Result<String> {
    let stuck = target(|stream| {
        // Held, and not read from.
        std::thread::sleep(Duration::from_secs(3600));
        drop(stream);
    })?;
    let target = target(echo)?;
    let (serving, _) = sides.serve(&[], None)?;
    let (_to_stuck, near_stuck) = sides.forward(stuck, &[])?;
    let (_forwarding, near) = sides.forward(target, &[])?;
    let (alone, _) = exchanges(near, amount.exchanges)?;
    let before = peak_memory(serving.id())?;
    // Full in each of ten connections, until none takes more.
    let mut waiting = Vec::new();
    let mut held = 0;
    for _ in 0..10 {
        let mut stream = TcpStream::connect(near_stuck)?;
        stream.set_nonblocking(true)?;
        let bytes = vec![7; 64 << 10];
        let mut quiet = Instant::now();
        while quiet.elapsed() < Duration::from_secs(1) {
            match stream.write(&bytes) {
                Ok(len) => {
                    held += len;
                    quiet = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(error.into()),
            }
        }
        waiting.push(stream);
    }
    let (beside, _) = exchanges(near, amount.exchanges)?;
    let more = peak_memory(serving.id())? - before;
    ensure!(!waiting.is_empty());
    Ok(format!(
        "an exchange takes {beside:.0} µs at p50 beside 10 connections whose reader does not read ({:.1} MiB \
         wait in each, buffers of the system included; tack serve has {more:.0} MiB more), {alone:.0} alone",
        held as f64 / 10.0 / f64::from(1 << 20),
    ))
}
