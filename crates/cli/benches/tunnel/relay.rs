//! A plain relay of the kernel's TCP, for comparison: what a program costs that carries bytes from
//! one connection to another without protecting them.
//!
//! The benchmark runs itself for it, so that the relay's processor time is counted by itself. It
//! copies, as a tunnel has to: bytes that are encrypted pass through the program.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::Background;

/// Bytes that are moved at a time, as in the tunnel.
const BUFFER: usize = 240 << 10;
/// What comes before the address that it listens on.
const MARK: &str = "a plain relay listens on ";

/// Relays to `to` until it is killed: what the process does that [`start`] starts.
pub(crate) fn run(to: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{MARK}{}", listener.local_addr()?);
    for near in listener.incoming() {
        let near = near?;
        let far = TcpStream::connect(to)?;
        for stream in [&near, &far] {
            stream.set_nodelay(true)?;
        }
        for (from, to) in [(near.try_clone()?, far.try_clone()?), (far, near)] {
            std::thread::spawn(move || copy(from, to));
        }
    }
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = vec![0; BUFFER];
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..len]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Starts a relay to `to`, and says where it listens.
pub(crate) fn start(to: SocketAddr) -> Result<(Background, SocketAddr)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--relay", &to.to_string()]);
    let (relay, line) = Background::start_and_wait(&mut command, MARK)?;
    let address = line.split_whitespace().next_back().context("an address")?;
    Ok((relay, address.parse()?))
}
