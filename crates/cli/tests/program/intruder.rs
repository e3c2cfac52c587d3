//! A known peer that wants more than it may: it speaks the protocol of tunnels by itself, with
//! whatever bytes it likes, to a serving side that permits public targets alone.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use tack::secure::{Identity, SecureStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::meeting::Side;
use crate::support::PATIENCE;
use crate::tunnel::Service;

/// Where tunnels are served within the UDP port, and how (`docs/tunnel-protocol.md`).
const PORT: u16 = 8232;
const ALPN: &[u8] = b"tack-tunnel/1";

const NOT_PERMITTED: u8 = 2;
const MALFORMED: u8 = 1;

/// Ways to write this machine, or to hide it.
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "127.0.0.2",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "ip6-localhost",
    "0.0.0.0",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "0:0:0:0:0:ffff:7f00:1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::1",
    "64:ff9b:1::7f00:1",
    "::ffff:0:7f00:1",
    "2001:0:7f00:1::",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    "169.254.169.254",
    "10.0.0.1",
    "fe80::1",
    // What a resolver might read as 127.0.0.1, and what is not a host at all.
    "127.1",
    "127.0.0.01",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "[::1]",
    "127.0.0.1%lo",
    "fe80::1%lo",
    "127.0.0.1:80",
    "localhost\0.example.org",
    "localhost/..",
    "user@localhost",
    " localhost",
    "",
];

struct Intruder {
    endpoint: tack::Endpoint,
    server: SocketAddr,
    identity: Identity,
}

impl Intruder {
    async fn open(&self) -> SecureStream {
        let connect = self
            .endpoint
            .connect(self.server)
            .port(PORT)
            .any_key(ALPN)
            .identity(self.identity.clone());
        connect.await.unwrap()
    }

    /// What is answered to these bytes; nothing when the connection is reset.
    async fn says(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.open().await;
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let reading = stream.read_to_end(&mut answer);
        // A reset has told nothing more.
        let _ = tokio::time::timeout(PATIENCE, reading).await.unwrap();
        answer
    }
}

fn message(bytes: &[u8]) -> Vec<u8> {
    let mut message = (bytes.len() as u16).to_be_bytes().to_vec();
    message.extend(bytes);
    message
}

fn connect_to(host: &[u8], port: u16) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    message(&[&[0x01, high, low], host].concat())
}

#[test]
fn a_peer_reaches_nothing_outside_its_list() {
    let intruding = Identity::generate().unwrap();
    let key = intruding.public_key().to_string();
    let server = Side::new();
    server.run(&["peers", "add", "intruder", &key]);
    // Traps: whoever comes here got through.
    let trap = TcpListener::bind("[::]:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let port = trap.local_addr().unwrap().port();
    let udp_traps = ["127.0.0.1:0", "[::1]:0"].map(|at| UdpSocket::bind(at).unwrap());
    // A name that a rule permits by address only, and public hosts.
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--target",
        "*:*",
        "--target",
        "*.localhost:*",
        "--target",
        "192.0.2.0/24:*",
    ];
    let mut service = Service::start(&server, &arguments);
    let line = service.line("serving tunnels at ");
    let address = line.split_whitespace().last().unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let intruder = Intruder {
            endpoint: tack::Endpoint::bind("127.0.0.1:0").await.unwrap(),
            server: address,
            identity: intruding,
        };
        for host in HOSTS.iter().chain(&["a.localhost", "trap.localhost"]) {
            let answer = intruder.says(&connect_to(host.as_bytes(), port)).await;
            let [0, 2, 0xff, reason] = answer[..] else {
                panic!("{host:?}: {answer:?}");
            };
            // Names that do not resolve here are none of ours.
            assert!(
                [MALFORMED, NOT_PERMITTED, 3].contains(&reason),
                "{host:?}: {reason}"
            );
        }
        // Listening, taking others' connections, what no message is, and messages without an end.
        let listen = message(&[&[0x02, 4, 127, 0, 0, 1], &port.to_be_bytes()[..]].concat());
        assert_eq!(intruder.says(&listen).await, [0, 2, 0xff, NOT_PERMITTED]);
        for number in [0_u64, 1, u64::MAX] {
            let accept = message(&[&[0x03], &number.to_be_bytes()[..]].concat());
            assert_eq!(intruder.says(&accept).await, [0, 2, 0xff, 9]);
        }
        for crafted in [
            &[0, 0][..],
            &[0xff, 0xff],
            &[1, 1],
            &message(&[0x01]),
            &message(&[0x01, 0, 0, b'a']),
            &message(&[0x02, 4, 1]),
            &message(&[0x02, 9, 127, 0, 0, 1, 0, 80]),
            &message(&[0x7f]),
            &message(&[0x81, 4, 127, 0, 0, 1, 0, 80]),
            &message(&[0x04, 0]),
            &connect_to(&[0xff, 0xfe], port),
        ] {
            let answer = intruder.says(crafted).await;
            assert!(answer == [0, 2, 0xff, MALFORMED], "{crafted:?}: {answer:?}");
        }
        // Datagrams to the same places; a malformed one ends the association and no other.
        let mut stream = intruder.open().await;
        stream.write_all(&message(&[0x04])).await.unwrap();
        let mut answer = [0; 3];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, [0, 1, 0x84]);
        for trap in &udp_traps {
            let port = trap.local_addr().unwrap().port().to_be_bytes();
            let six = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
            let mut addresses = vec![[&[4][..], &[127, 0, 0, 1]].concat()];
            for text in [
                "::1",
                "::ffff:127.0.0.1",
                "::127.0.0.1",
                "64:ff9b::7f00:1",
                "::",
            ] {
                addresses.push([&[6][..], &six(text)].concat());
            }
            for name in ["localhost", "a.localhost"] {
                addresses.push([&[0, name.len() as u8][..], name.as_bytes()].concat());
            }
            for address in addresses {
                let datagram = message(&[&address[..], &port, b"here"].concat());
                stream.write_all(&datagram).await.unwrap();
            }
        }
        stream.write_all(&message(&[5, 1, 2, 3])).await.unwrap();
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest))
            .await
            .unwrap();
        assert!(rest.is_empty(), "{rest:?}");
        // The serving side goes on.
        let refused = intruder.says(&connect_to(b"127.0.0.1", port)).await;
        assert_eq!(refused, [0, 2, 0xff, NOT_PERMITTED]);
    });
    let came = trap.accept();
    assert!(came.is_err(), "{came:?}");
    for trap in udp_traps {
        trap.set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        assert!(trap.recv_from(&mut [0; 10]).is_err());
    }
}
