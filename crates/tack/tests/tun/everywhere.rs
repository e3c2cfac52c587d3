//! An endpoint that stands for every host: the kernel's programs connect to any address, and wait
//! until the application has decided.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tack::{Datagram, Endpoint, InterceptOptions, Interceptor, NoConnection, TunOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

use crate::pattern::exchange;
use crate::world::{host, ip as address, isolated, options};

const PATIENCE: Duration = Duration::from_secs(10);

async fn everywhere() -> (Endpoint, Interceptor) {
    let mut options: TunOptions = options(0);
    options.everywhere = true;
    options.mtu = u16::MAX;
    options.routes = vec![(address("0.0.0.0"), 0), (address("::"), 0)];
    let endpoint = host(options);
    let hosts = endpoint
        .intercept(InterceptOptions::new().attempts(16))
        .unwrap();
    // A new address of IPv6 takes the kernel a moment, in which it drops what arrives.
    let target = at("[2001:db8::ffff]:1");
    let accepting = async { hosts.attempt().await.unwrap().accept(PATIENCE).await };
    let (ours, theirs) = tokio::join!(accepting, TcpStream::connect(target));
    let _talked = (ours.unwrap(), theirs.unwrap());
    (endpoint, hosts)
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn connections_to_any_address_and_port_are_accepted_when_the_application_says_so() {
    isolated(|| async {
        let (_endpoint, hosts) = everywhere().await;
        // The same port of the client's to several hosts at a time, and several ports of one.
        let targets = [
            "192.0.2.1:80",
            "192.0.2.2:80",
            "192.0.2.1:81",
            "[2001:db8::1]:80",
        ];
        let mut pairs = Vec::new();
        for target in targets.map(at) {
            let socket = match target {
                SocketAddr::V4(_) => TcpSocket::new_v4(),
                SocketAddr::V6(_) => TcpSocket::new_v6(),
            };
            let socket = socket.unwrap();
            socket.set_reuseaddr(true).unwrap();
            let own = if target.is_ipv4() {
                "10.77.0.1"
            } else {
                "fd77:0::1"
            };
            socket.bind(SocketAddr::new(address(own), 5000)).unwrap();
            let accepting = async {
                let attempt = hosts.attempt().await.unwrap();
                assert_eq!(attempt.target(), target);
                assert_eq!(attempt.client(), SocketAddr::new(address(own), 5000));
                let stream = attempt.accept(PATIENCE).await.unwrap();
                assert_eq!(stream.local_addr(), target);
                assert_eq!(stream.peer_addr(), SocketAddr::new(address(own), 5000));
                stream
            };
            let (ours, theirs) = tokio::join!(accepting, socket.connect(target));
            pairs.push((ours, theirs.unwrap()));
        }
        for (ours, theirs) in &mut pairs {
            exchange(ours, theirs, 200_000).await;
        }
    });
}

#[test]
fn a_client_learns_why_there_is_no_connection() {
    isolated(|| async {
        let (_endpoint, hosts) = everywhere().await;
        for (target, why, expected) in [
            (
                "192.0.2.1:80",
                NoConnection::Refused,
                io::ErrorKind::ConnectionRefused,
            ),
            (
                "[2001:db8::1]:80",
                NoConnection::Refused,
                io::ErrorKind::ConnectionRefused,
            ),
            (
                "192.0.2.1:80",
                NoConnection::HostUnreachable,
                io::ErrorKind::HostUnreachable,
            ),
            (
                "[2001:db8::1]:80",
                NoConnection::HostUnreachable,
                io::ErrorKind::HostUnreachable,
            ),
            (
                "192.0.2.1:80",
                NoConnection::NetworkUnreachable,
                io::ErrorKind::NetworkUnreachable,
            ),
            (
                "[2001:db8::1]:80",
                NoConnection::NetworkUnreachable,
                io::ErrorKind::NetworkUnreachable,
            ),
            (
                "192.0.2.1:80",
                NoConnection::Prohibited,
                io::ErrorKind::HostUnreachable,
            ),
            (
                "[2001:db8::1]:80",
                NoConnection::Prohibited,
                io::ErrorKind::PermissionDenied,
            ),
        ] {
            let refusing = async { hosts.attempt().await.unwrap().refuse(why) };
            let ((), outcome) = tokio::join!(refusing, TcpStream::connect(at(target)));
            assert_eq!(outcome.unwrap_err().kind(), expected, "{target} {why:?}");
        }
        // One without an answer comes again, and is told again.
        let target = at("192.0.2.9:80");
        let deciding = async {
            drop(hosts.attempt().await.unwrap());
            hosts
                .attempt()
                .await
                .unwrap()
                .accept(PATIENCE)
                .await
                .unwrap()
        };
        let (ours, theirs) = tokio::join!(deciding, TcpStream::connect(target));
        // A reset of ours is one of the host's.
        ours.reset();
        let outcome = theirs.unwrap().read(&mut [0]).await;
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_client_that_gives_up_leaves_nothing_behind() {
    isolated(|| async {
        let (endpoint, hosts) = everywhere().await;
        let before = endpoint.memory();
        for _ in 0..3 {
            let connecting = tokio::spawn(TcpStream::connect(at("192.0.2.1:80")));
            let attempt = hosts.attempt().await.unwrap();
            connecting.abort();
            assert!(connecting.await.unwrap_err().is_cancelled());
            let outcome = attempt.accept(Duration::from_millis(100)).await;
            assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
        assert!(endpoint.memory() <= before);
    });
}

#[test]
fn a_flood_of_attempts_is_bounded_and_passes() {
    isolated(|| async {
        let (endpoint, hosts) = everywhere().await;
        let before = endpoint.memory();
        let mut flood = Vec::new();
        for number in 0..600_u32 {
            let [_, _, high, low] = number.to_be_bytes();
            let target = SocketAddr::from(([198, 51, high, low], 1 + number as u16));
            flood.push(tokio::spawn(TcpStream::connect(target)));
            if number % 50 == 0 {
                tokio::task::yield_now().await;
            }
        }
        // The kernel has said all it has to say; nobody has answered.
        let first = hosts.attempt().await.unwrap();
        assert!(
            endpoint.memory() <= before,
            "attempts that wait are no connections"
        );
        drop(first);
        for attempt in &flood {
            attempt.abort();
        }
        // What was kept is answered, whoever asked; and then somebody honest comes.
        let honest = at("203.0.113.1:443");
        let deciding = async {
            loop {
                let attempt = hosts.attempt().await.unwrap();
                if attempt.target() == honest {
                    return attempt.accept(PATIENCE).await.unwrap();
                }
                attempt.refuse(NoConnection::Refused);
            }
        };
        let (mut ours, theirs) = tokio::join!(deciding, TcpStream::connect(honest));
        exchange(&mut ours, &mut theirs.unwrap(), 50_000).await;
    });
}

#[test]
fn datagrams_go_to_any_address_and_come_from_it() {
    isolated(|| async {
        let (endpoint, hosts) = everywhere().await;
        for (own, target) in [
            ("10.77.0.1:0", "192.0.2.1:53"),
            ("[fd77:0::1]:0", "[2001:db8::1]:53"),
        ] {
            let socket = UdpSocket::bind(own).await.unwrap();
            socket.connect(target).await.unwrap();
            // The longest that fits one packet, and none at all.
            let longest = if target.starts_with('[') {
                65_487
            } else {
                65_507
            };
            for len in [0, 1, 1500, longest] {
                let payload: Vec<u8> = (0..len).map(|n| n as u8).collect();
                socket.send(&payload).await.unwrap();
                let datagram = hosts.datagram().await.unwrap();
                assert_eq!(datagram.to, at(target));
                assert_eq!(datagram.from, socket.local_addr().unwrap());
                assert!(datagram.payload == payload, "{len}");
                hosts.send_datagram(&Datagram {
                    from: datagram.to,
                    to: datagram.from,
                    payload: datagram.payload,
                });
                let mut heard = vec![1; 65_535];
                let got = socket.recv(&mut heard).await.unwrap();
                assert!(heard[..got] == payload, "{len}");
            }
        }
        // What no packet can hold is lost, and hurts nobody.
        hosts.send_datagram(&Datagram {
            from: at("192.0.2.1:53"),
            to: at("10.77.0.1:1"),
            payload: vec![0; 65_508],
        });
        assert_eq!(endpoint.carrier_stats().malformed, 0);
    });
}

#[test]
fn only_an_endpoint_that_stands_for_every_host_intercepts() {
    isolated(|| async {
        let one = host(options(0));
        assert!(one.intercept(InterceptOptions::default()).is_err());
        let (endpoint, hosts) = everywhere_at(1);
        assert!(
            endpoint.intercept(InterceptOptions::default()).is_err(),
            "one at a time"
        );
        drop(hosts);
        let hosts = endpoint.intercept(InterceptOptions::default()).unwrap();
        let shutdown = endpoint.shutdown(PATIENCE);
        let (attempt, done) = tokio::join!(hosts.attempt(), shutdown);
        done.unwrap();
        assert!(attempt.is_err());
    });
}

fn everywhere_at(number: u8) -> (Endpoint, Interceptor) {
    let mut options = options(number);
    options.everywhere = true;
    let endpoint = host(options);
    let hosts = endpoint.intercept(InterceptOptions::default()).unwrap();
    (endpoint, hosts)
}

/// Bytes that no host would send: they are counted, and nothing else happens.
#[test]
fn damaged_packets_of_the_client_are_dropped() {
    use rustix::net::{AddressFamily, SendFlags, SocketType, sendto, socket};
    isolated(|| async {
        let (_endpoint, hosts) = everywhere().await;
        let raw = rustix::net::ipproto::RAW;
        let socket = socket(AddressFamily::INET, SocketType::RAW, Some(raw)).unwrap();
        let mut state = 1_u64;
        for number in 0..2_000_usize {
            // A header that the kernel routes, and noise behind it.
            let len = 20 + number % 80;
            let mut packet = vec![0_u8; len];
            for byte in &mut packet {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                *byte = (state >> 56) as u8;
            }
            packet[0] = 0x45;
            packet[6..8].fill(0);
            packet[9] = [6, 17, 1, 58, 0][number % 5];
            packet[12..16].copy_from_slice(&[10, 77, 0, 1 + (number % 2) as u8 * 7]);
            packet[16..20].copy_from_slice(&[192, 0, 2, number as u8]);
            let to = SocketAddr::from(([192, 0, 2, number as u8], 0));
            let _ = sendto(&socket, &packet, SendFlags::empty(), &to);
            if number % 100 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let target = at("192.0.2.200:80");
        let deciding = async {
            loop {
                let attempt = hosts.attempt().await.unwrap();
                if attempt.target() == target {
                    return attempt.accept(PATIENCE).await.unwrap();
                }
            }
        };
        let (mut ours, theirs) = tokio::join!(deciding, TcpStream::connect(target));
        let mut theirs = theirs.unwrap();
        theirs.write_all(b"still there").await.unwrap();
        let mut heard = [0; 11];
        ours.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"still there");
    });
}
