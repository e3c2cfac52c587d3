//! Tunnels: a reset reaches the other side when it happens, also where nothing is read from the
//! side that resets.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::PATIENCE;
use crate::tunnel::{Two, connect, socket_reset, target};

/// Waits until the system says that a connection was reset; nothing is read or written.
fn expect_reset(stream: &TcpStream) {
    // Errors are told without being asked for.
    let mut polled = [PollFd::new(stream, PollFlags::empty())];
    let within = Timespec {
        tv_sec: PATIENCE.as_secs() as i64,
        tv_nsec: 0,
    };
    assert_eq!(poll(&mut polled, Some(&within)).unwrap(), 1, "no reset");
    let error = stream.take_error().unwrap().expect("a reset is an error");
    // The latter where the other side had ended its stream before.
    let kinds = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(kinds.contains(&error.kind()), "{error}");
}

/// Writes until nobody takes anything.
fn fill(stream: &mut TcpStream) {
    let pause = Duration::from_millis(150);
    stream.set_write_timeout(Some(pause)).unwrap();
    let bytes = vec![7; 1 << 20];
    loop {
        match stream.write(&bytes) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("{error}"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Resets {
    Client,
    Target,
}

/// Why nothing is read from the side that resets.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Before {
    /// Its stream has ended.
    Ended,
    /// The other side takes nothing, and all buffers on the way are full.
    Stuck,
}

#[test]
fn a_reset_reaches_a_side_that_neither_reads_nor_writes() {
    let (tell, told) = channel();
    let target = target(move |stream| tell.send(stream).unwrap());
    let two = Two::new(&["--target", &target.to_string()]);
    let (_forward, address) = two.forward("-L", &format!("0:{target}"));
    for resets in [Resets::Client, Resets::Target] {
        for before in [Before::Ended, Before::Stuck] {
            println!("{resets:?} {before:?}");
            let client = connect(address);
            let served = told.recv_timeout(PATIENCE).unwrap();
            served.set_read_timeout(Some(PATIENCE)).unwrap();
            let (mut resets, mut hears) = match resets {
                Resets::Client => (client, served),
                Resets::Target => (served, client),
            };
            match before {
                Before::Ended => {
                    resets.shutdown(Shutdown::Write).unwrap();
                    assert_eq!(hears.read(&mut [0]).unwrap(), 0);
                }
                Before::Stuck => fill(&mut resets),
            }
            socket_reset(resets);
            expect_reset(&hears);
        }
    }
}
