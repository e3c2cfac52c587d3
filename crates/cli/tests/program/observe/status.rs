//! `tack status` of a running `tack serve`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use super::Watched;
use crate::meeting::Side;

/// The folder of the control sockets, whose only socket is that of process `pid`.
fn sockets(side: &Side) -> PathBuf {
    side.path("state/run")
}

#[test]
fn a_running_serve_shows_what_it_carries() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = target.local_addr().unwrap().to_string();
    let (server, client) = (Side::new(), Side::new());
    let nothing = server.run(&["status"]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(nothing.stderr.contains("tack serve"), "{nothing:?}");
    server.run(&["peers", "add", "laptop", &client.key()]);
    let mut serving = server.command(&["serve", "--listen", "127.0.0.1:0", "--target", &to]);
    let mut serve = Watched::start(&mut serving);
    let address = serve.address("serving tunnels at").to_string();
    client.run(&[
        "peers",
        "add",
        "server",
        &server.key(),
        "--address",
        &address,
    ]);
    let mut carrying = client.command(&["connect", "server:", &to]);
    let mut carried = carrying
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stream, _) = target.accept().unwrap();
    let mut input = carried.stdin.take().unwrap();
    input.write_all(&[7; 5000]).unwrap();
    stream.read_exact(&mut [0; 5000]).unwrap();
    let socket = sockets(&server).join(format!("status-{}.sock", serve.child.id()));
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(&sockets(&server))), (0o600, 0o700));
    // One that a killed program left is no program.
    drop(UnixListener::bind(sockets(&server).join("status-1.sock")).unwrap());
    let asked = server.run(&["status", "--json"]);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    let status: Value = asked.json();
    assert_eq!(asked.stdout.lines().count(), 1);
    assert_eq!(status["program"], "serve");
    assert_eq!(status["pid"], serve.child.id());
    assert_eq!(status["serving"]["peers"]["laptop"], 1);
    let connections = status["connections"].as_array().unwrap();
    let carrying = connections
        .iter()
        .find(|it| it["bytes_read"].as_u64() > Some(5000));
    let carrying = carrying.unwrap_or_else(|| panic!("{status}"));
    assert_eq!(carrying["state"], "open");
    assert!(carrying["transport"]["srtt_us"].as_f64().unwrap() > 0.0);
    assert!(!sockets(&server).join("status-1.sock").exists());
    let text = server.run(&["status", "--once"]);
    assert!(text.stdout.contains("peer laptop: 1 carried"), "{text:?}");
    assert!(text.stdout.contains("tack serve (process"), "{text:?}");
    drop((input, stream));
    let _ = carried.wait();
}
