//! `tack proxy` as programs of this machine use it: SOCKS5, HTTP CONNECT, datagrams.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::support::{PATIENCE, finish};
use crate::tunnel::{Service, Two, connect, echo, noise, socket_reset, target};

/// A `tack proxy`, and where it listens.
pub(crate) fn proxy(two: &Two) -> (Service, SocketAddr) {
    let arguments = ["proxy", "server:", "--listen", "127.0.0.1:0"];
    let mut service = Service::start(&two.client, &arguments);
    let line = service.line(" lead to ");
    let address = line.split_whitespace().find_map(|word| word.parse().ok());
    (service, address.unwrap_or_else(|| panic!("{line}")))
}

/// The request of SOCKS5 with this command.
pub(crate) fn socks_request(command: u8, target: SocketAddr) -> Vec<u8> {
    let SocketAddr::V4(target) = target else {
        panic!("an IPv4 address");
    };
    let mut bytes = vec![5, command, 0, 1];
    bytes.extend(target.ip().octets());
    bytes.extend(target.port().to_be_bytes());
    bytes
}

/// A connection that has made a request of SOCKS5, the code of the reply, and the address in it.
pub(crate) fn socks(proxy: SocketAddr, request: &[u8]) -> (TcpStream, u8, SocketAddr) {
    let mut stream = connect(proxy);
    stream.write_all(&[5, 1, 0]).unwrap();
    let mut method = [0; 2];
    stream.read_exact(&mut method).unwrap();
    assert_eq!(method, [5, 0]);
    stream.write_all(request).unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!((reply[0], reply[3]), (5, 1), "{reply:?}");
    let ip: [u8; 4] = reply[4..8].try_into().unwrap();
    let port = u16::from_be_bytes([reply[8], reply[9]]);
    (stream, reply[1], (ip, port).into())
}

/// The whole response to a request of HTTP.
fn response(proxy: SocketAddr, request: &str) -> String {
    let mut stream = connect(proxy);
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Says `bytes`, ends, and hears them again.
pub(crate) fn exchange(mut stream: TcpStream, bytes: &[u8]) {
    let mut reading = stream.try_clone().unwrap();
    let heard = std::thread::spawn(move || {
        let mut heard = Vec::new();
        reading.read_to_end(&mut heard).unwrap();
        heard
    });
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(heard.join().unwrap() == bytes);
}

#[test]
fn one_port_speaks_socks5_and_http_connect() {
    let target = target(echo);
    let two = Two::new(&["--target", "localhost:*", "--target", "127.0.0.1:*"]);
    let (_proxy, proxy) = proxy(&two);
    let bytes = noise(300_000);
    let (stream, code, at) = socks(proxy, &socks_request(1, target));
    assert_eq!(code, 0);
    assert!(at.ip().is_loopback() && at.port() != 0, "{at}");
    exchange(stream, &bytes);
    // By name, and with bytes that follow the request at once.
    let mut stream = connect(proxy);
    let request = format!(
        "CONNECT localhost:{} HTTP/1.1\r\nHost: localhost\r\n\r\nearly",
        target.port()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = [0; 39];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 Connection established\r\n\r\n");
    let mut early = [0; 5];
    stream.read_exact(&mut early).unwrap();
    assert_eq!(&early, b"early");
    exchange(stream, &bytes);
}

#[test]
fn refusals_have_the_codes_of_both_protocols() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let rules = format!("127.0.0.1:{}", closed.port());
    let two = Two::new(&["--target", &rules, "--target", "nowhere.invalid:80"]);
    let (_proxy, proxy) = proxy(&two);
    let forbidden = SocketAddr::from(([127, 0, 0, 1], if closed.port() == 9 { 10 } else { 9 }));
    let nowhere = [&b"\x05\x01\x00\x03\x0fnowhere.invalid"[..], &[0, 80]].concat();
    let listen = socks_request(2, closed);
    for (request, expected) in [
        (socks_request(1, closed), 5),
        (socks_request(1, forbidden), 2),
        (nowhere, 4),
        (listen, 7),
    ] {
        let (mut stream, code, _) = socks(proxy, &request);
        assert_eq!(code, expected, "{request:?}");
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the end of the stream");
    }
    for (to, status, error) in [
        (closed.to_string(), "502", "connection_refused"),
        (forbidden.to_string(), "403", "http_request_denied"),
    ] {
        let text = response(proxy, &format!("CONNECT {to} HTTP/1.1\r\n\r\n"));
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
        assert!(text.contains(&format!("error={error}\r\n")), "{text}");
    }
    // Where there is no name server, it is dns_timeout.
    let text = response(proxy, "CONNECT nowhere.invalid:80 HTTP/1.1\r\n\r\n");
    assert!(text.starts_with("HTTP/1.1 50"), "{text}");
    assert!(text.contains("error=dns_"), "{text}");
    assert!(response(proxy, "GET http://nas/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(response(proxy, "CONNECT nas HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // SOCKS4, and what is neither.
    let mut four = connect(proxy);
    four.write_all(&[4, 1, 0, 80, 127, 0, 0, 1, 0]).unwrap();
    let mut refused = [0; 8];
    four.read_exact(&mut refused).unwrap();
    assert_eq!(refused[1], 0x5b);
    let mut neither = connect(proxy);
    neither.write_all(&[0x16, 3, 1]).unwrap();
    assert!(matches!(neither.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn a_reset_of_the_target_is_a_reset_here() {
    let resetting = target(|mut stream| {
        let _ = stream.read(&mut [0]);
        socket_reset(stream);
    });
    let two = Two::new(&["--target", "127.0.0.1:*"]);
    let (_proxy, proxy) = proxy(&two);
    let (mut stream, code, _) = socks(proxy, &socks_request(1, resetting));
    assert_eq!(code, 0);
    stream.write_all(&[1]).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

fn udp(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A datagram for `target` as SOCKS5 has it; the answer begins in the same way.
pub(crate) fn wrapped(target: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let mut bytes = socks_request(0, target);
    bytes[..4].copy_from_slice(&[0, 0, 0, 1]);
    bytes.extend(payload);
    bytes
}

#[test]
fn datagrams_reach_permitted_targets_and_only_they_answer() {
    let server = udp("127.0.0.1:0");
    let target = server.local_addr().unwrap();
    let forbidden = udp("127.0.0.1:0");
    let other = udp("127.0.0.1:0");
    let rule = format!("localhost:{}", target.port());
    let two = Two::new(&["--target", &target.to_string(), "--target", &rule]);
    let (_proxy, proxy) = proxy(&two);
    let (control, code, relay) = socks(proxy, &socks_request(3, ([0, 0, 0, 0], 0).into()));
    assert_eq!(code, 0);
    let client = udp("127.0.0.1:0");
    // Not for others, no fragments, and malformed ones do no harm.
    let mut fragment = wrapped(target, b"a fragment");
    fragment[2] = 1;
    client.send_to(&fragment, relay).unwrap();
    client.send_to(b"short", relay).unwrap();
    let to_forbidden = wrapped(forbidden.local_addr().unwrap(), b"forbidden");
    client.send_to(&to_forbidden, relay).unwrap();
    // A stranger's datagram after the first of the program.
    let mut heard = [0; 2000];
    client.send_to(&wrapped(target, b"first"), relay).unwrap();
    let (len, exit) = server.recv_from(&mut heard).unwrap();
    assert_eq!(&heard[..len], b"first");
    other.send_to(&wrapped(target, b"stranger"), relay).unwrap();
    // Who was not sent to may not answer.
    other.send_to(b"unasked", exit).unwrap();
    server.send_to(b"answer", exit).unwrap();
    let (len, from) = client.recv_from(&mut heard).unwrap();
    assert_eq!(from, relay);
    assert_eq!(heard[..len], wrapped(target, b"answer"));
    // By name; and nothing came in between.
    let mut named = vec![0, 0, 0, 3, 9];
    named.extend(b"localhost");
    named.extend(target.port().to_be_bytes());
    named.extend(b"by name");
    client.send_to(&named, relay).unwrap();
    let (len, _) = server.recv_from(&mut heard).unwrap();
    assert_eq!(&heard[..len], b"by name");
    forbidden
        .set_read_timeout(Some(Duration::from_millis(1)))
        .unwrap();
    assert!(forbidden.recv_from(&mut heard).is_err());
    // As long as UDP can carry, in both directions.
    let long = noise(60_000);
    client.send_to(&wrapped(target, &long), relay).unwrap();
    let mut big = vec![0; 66_000];
    let (len, _) = server.recv_from(&mut big).unwrap();
    assert!(big[..len] == long);
    server.send_to(&long, exit).unwrap();
    let (len, _) = client.recv_from(&mut big).unwrap();
    assert!(big[..len] == wrapped(target, &long));
    // The end of the connection ends the association: its port is closed.
    drop(control);
    client.connect(relay).unwrap();
    while client.send(&wrapped(target, b"late")).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_log_has_failures_that_standard_error_does_not_repeat() {
    let two = Two::new(&["--target", "127.0.0.1:*"]);
    let arguments = [
        "--log",
        "info",
        "proxy",
        "server:",
        "--listen",
        "127.0.0.1:0",
    ];
    let mut service = Service::start(&two.client, &arguments);
    let line = service.line(" lead to ");
    let address = line.split_whitespace().find_map(|word| word.parse().ok());
    let address: SocketAddr = address.unwrap_or_else(|| panic!("{line}"));
    for _ in 0..101 {
        let mut wrong = connect(address);
        wrong.write_all(&[0x16]).unwrap();
        let _ = wrong.read(&mut [0]);
    }
    service.line("further failures are not reported");
    let mut wrong = connect(address);
    wrong.write_all(&[0x17]).unwrap();
    service.line("0x17");
}

#[test]
fn a_proxy_is_for_this_machine_unless_told_otherwise() {
    let two = Two::new(&["--target", "127.0.0.1:*"]);
    let arguments = ["proxy", "server:", "--listen", "0.0.0.0:0"];
    let ended = finish(&mut two.client.command(&arguments));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--allow-remote"), "{ended:?}");
}

/// As for a program on another machine: the address in the reply is one that it can send to.
#[test]
fn datagrams_are_taken_where_the_connection_was() {
    let server = udp("127.0.0.1:0");
    let target = server.local_addr().unwrap();
    let two = Two::new(&["--target", &target.to_string()]);
    let arguments = ["proxy", "server:", "--listen", "[::]:0", "--allow-remote"];
    let mut service = Service::start(&two.client, &arguments);
    let line = service.line(" lead to ");
    let address = line.split_whitespace().find_map(|word| word.parse().ok());
    let address: SocketAddr = address.unwrap_or_else(|| panic!("{line}"));
    let proxy = SocketAddr::from(([127, 0, 0, 2], address.port()));
    let (control, code, relay) = socks(proxy, &socks_request(3, ([0, 0, 0, 0], 0).into()));
    assert_eq!((code, relay.ip()), (0, proxy.ip()));
    let client = UdpSocket::bind((control.local_addr().unwrap().ip(), 0)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.send_to(&wrapped(target, b"there"), relay).unwrap();
    let mut heard = [0; 100];
    let (len, exit) = server.recv_from(&mut heard).unwrap();
    assert_eq!(&heard[..len], b"there");
    server.send_to(b"back", exit).unwrap();
    let (len, from) = client.recv_from(&mut heard).unwrap();
    assert_eq!(
        (&heard[..len], from),
        (&wrapped(target, b"back")[..], relay)
    );
}
