//! `tack forward`: ports here that lead to targets there, and the other way round.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::{Service, Two, connect, echo, noise, socket_reset, target};
use crate::meeting::Side;
use crate::support::PATIENCE;

#[test]
fn a_port_here_leads_to_a_target_there_for_many_at_once() {
    let target = target(echo);
    let two = Two::new(&["--target", "127.0.0.1:*"]);
    let (_forward, address) = two.forward("-L", &format!("0:{target}"));
    let talks: Vec<_> = (0..30)
        .map(|n| {
            std::thread::spawn(move || {
                let mut stream = connect(address);
                let bytes = noise(20_000 + n);
                let mut reading = stream.try_clone().unwrap();
                let heard = std::thread::spawn(move || {
                    let mut heard = Vec::new();
                    reading.read_to_end(&mut heard).unwrap();
                    heard
                });
                stream.write_all(&bytes).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                assert!(heard.join().unwrap() == bytes);
            })
        })
        .collect();
    for talk in talks {
        talk.join().unwrap();
    }
}

#[test]
fn a_port_there_leads_to_a_target_here() {
    let target = target(echo);
    let two = Two::new(&["--remote-listen", "127.0.0.1:*"]);
    let (mut forward, address) = two.forward("-R", &format!("0:{target}"));
    let talk = |address| {
        let mut stream = connect(address);
        stream.write_all(b"from there").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        heard
    };
    assert_eq!(talk(address), "from there");
    assert_eq!(talk(address), "from there");
    // Once nobody carries them, connections are refused.
    forward.child.kill().unwrap();
    let mut service = two.service;
    drop(forward);
    while TcpStream::connect(address).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let _ = service.child.kill();
}

#[test]
fn resets_are_carried_over_in_both_directions() {
    // The target resets after the first byte it hears.
    let resetting = target(|mut stream| {
        let _ = stream.read(&mut [0]);
        socket_reset(stream);
    });
    let (tell, told) = std::sync::mpsc::channel();
    let listening = target(move |mut stream| {
        let mut heard = Vec::new();
        tell.send(stream.read_to_end(&mut heard)).unwrap();
    });
    let two = Two::new(&["--target", "127.0.0.1:*"]);
    let (_first, to_resetting) = two.forward("-L", &format!("0:{resetting}"));
    let (_second, to_listening) = two.forward("-L", &format!("0:{listening}"));
    let mut stream = connect(to_resetting);
    stream.write_all(&[1]).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let mut stream = connect(to_listening);
    stream.write_all(b"words").unwrap();
    socket_reset(stream);
    let error = told.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let target = target(echo);
    let (rule, spec) = (target.to_string(), format!("0:{target}"));
    let rules = ["--target", &rule, "--remote-listen", "127.0.0.1:*"];
    let mut two = Two::new(&rules);
    let (_forward, here) = two.forward("-L", &spec);
    let (mut remote, there) = two.forward("-R", &spec);
    let talk = |address: SocketAddr| {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"word")?;
        let mut heard = [0; 4];
        stream.read_exact(&mut heard)?;
        assert_eq!(&heard, b"word");
        std::io::Result::Ok(())
    };
    talk(here).unwrap();
    talk(there).unwrap();
    two.service.child.kill().unwrap();
    two.service.child.wait().unwrap();
    talk(here).unwrap_err();
    talk(there).unwrap_err();
    remote.line("is lost; trying again");
    let arguments = ["serve", "--listen", &two.address];
    two.service = Service::start(&two.server, &[&arguments[..], &rules].concat());
    two.service.line("serving tunnels at ");
    talk(here).unwrap();
    // It asks the server again to listen.
    let line = remote.line(" leads to ");
    let again = line.split_whitespace().find_map(|word| word.parse().ok());
    talk(again.unwrap()).unwrap();
}

#[test]
fn nothing_to_serve_and_nothing_to_forward_are_mistakes() {
    let side = Side::new();
    for arguments in [
        &["serve"][..],
        &["forward", "server:"],
        &["serve", "--target", "nas"],
        &["serve", "--target", "nas:1", "--rate", "0"],
        &["serve", "--target", "nas:1", "--max-connections", "0"],
        &["serve", "--target", "nas:1", "--max-per-peer", "0"],
    ] {
        let ended = side.run(arguments);
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
}
