//! A flood of SYNs with forged sources: the listener keeps little, and others still get in.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};

use tack::ListenOptions;
use tack_io::tun::PREFIX;
use tack_io::{TunNetwork, TunOptions};
use tack_wire::{Flags, Header, SeqNum, TcpOptions, checksum, ip};
use tokio::net::TcpStream;

use crate::pattern::exchange;
use crate::world::{host, ip as address, isolated, options, sysctl};

const FORGED: u32 = 5_000;

#[test]
fn a_flood_of_syns_keeps_nobody_out() {
    isolated(|| async {
        sysctl("ipv4/ip_forward", "1");
        let endpoint = host(options(0));
        let listener = endpoint
            .listen_with(80, ListenOptions::new().backlog(16))
            .unwrap();
        let mut device = TunOptions::new(TunNetwork {
            kernel: address("10.79.0.1"),
            prefix: 16,
            stack: address("10.79.0.2"),
        });
        device.offload = false;
        let (mut attacker, _answers) = device.open().unwrap();
        let before = endpoint.memory();
        let target = address("10.77.0.2");
        let mut honest = Vec::new();
        for number in 0..FORGED {
            let [_, _, high, low] = number.to_be_bytes();
            let source = IpAddr::from([10, 79, 1 + high, low]);
            let header = Header {
                src_port: 1024 + number as u16,
                dst_port: 80,
                seq: SeqNum(number),
                flags: Flags::SYN,
                window: 1000,
                options: TcpOptions {
                    mss: Some(1460),
                    sack_permitted: true,
                    ..TcpOptions::default()
                },
                ..Header::default()
            };
            let mut segment = vec![0; header.encoded_len()];
            header.emit(&mut segment);
            checksum::fill_tcp(source, target, &mut segment);
            let mut packet = vec![0; ip::IPV4_HEADER_LEN];
            let head = ip::Emit::new(source, target, checksum::PROTOCOL_TCP, segment.len());
            ip::emit_header(&mut packet, &head);
            packet.extend(segment);
            assert!(packet.len() < PREFIX + 100);
            poll_fn(|cx| attacker.poll_writable(cx)).await.unwrap();
            attacker.send_packet(&packet).unwrap();
            if number % 100 == 0 {
                // The endpoint gets its turn; and somebody honest comes.
                tokio::task::yield_now().await;
            }
            if number == FORGED / 2 || number == FORGED - 1 {
                let connect = TcpStream::connect(SocketAddr::new(target, 80));
                let (ours, theirs) = tokio::join!(listener.accept(), connect);
                honest.push((ours.unwrap().0, theirs.unwrap()));
            }
        }
        assert!(
            endpoint.memory() - before < 256 << 10,
            "{}",
            endpoint.memory()
        );
        for (ours, theirs) in &mut honest {
            exchange(ours, theirs, 50_000).await;
        }
    });
}
