//! The device against the kernel, each test in a network namespace that it makes.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use tack_wire::{Ecn, Flags, Header, Segment, SeqNum, checksum, ip};

use super::*;
use crate::clock::Clock;
use crate::namespace::Namespace;

fn network(kernel: &str, prefix: u8, stack: &str) -> TunNetwork {
    TunNetwork {
        kernel: kernel.parse().unwrap(),
        prefix,
        stack: stack.parse().unwrap(),
    }
}

fn both() -> TunOptions {
    let mut options = TunOptions::new(network("10.77.0.1", 24, "10.77.0.2"));
    options.networks.push(network("fd77::1", 64, "fd77::2"));
    options
}

/// Runs `test` in a network namespace and a runtime of its own; says so where it cannot.
fn isolated<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let run = move || -> Result<(), String> {
        Namespace::enter_new().map_err(|error| format!("no network namespace: {error}"))?;
        if let Err(error) = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/net/tun")
        {
            return Err(format!("cannot open /dev/net/tun: {error}"));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(60), test())
                .await
                .expect("the test ends");
        });
        Ok(())
    };
    match std::thread::spawn(run).join() {
        Ok(Ok(())) => {}
        Ok(Err(why)) => tack_skip::skipped(why),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Packets from the kernel until one passes `wanted`.
async fn receive<T>(
    receiver: &mut TunReceiver,
    mut wanted: impl FnMut(&TunPacket<'_>, &ip::Packet<'_>) -> Option<T>,
) -> T {
    let clock = Clock::new();
    loop {
        poll_fn(|cx| receiver.poll_readable(cx)).await.unwrap();
        match receiver.receive(&clock) {
            Ok(packets) => {
                for packet in packets {
                    if let Ok(outer) = ip::parse(packet.bytes)
                        && let Some(found) = wanted(&packet, &outer)
                    {
                        return found;
                    }
                }
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        }
    }
}

fn devices() -> String {
    std::fs::read_to_string("/proc/thread-self/net/dev").unwrap()
}

/// Waits until the kernel has removed the device of this name. Another test of this process may
/// start a program at the same time, which has all our descriptors until it is executed.
async fn gone(name: &str) {
    while devices().contains(name) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_device_has_its_addresses_and_routes_and_is_gone_when_dropped() {
    isolated(|| async {
        let mut options = both();
        options.name = Some("tacktest".into());
        options.routes = vec![("192.0.2.7".parse().unwrap(), 24)];
        options.mtu = 1400;
        let (sender, mut receiver) = options.open().unwrap();
        assert_eq!((sender.name(), sender.mtu()), ("tacktest", 1400));
        assert!(devices().contains("tacktest"));
        // The kernel routes all three to us, from its own addresses.
        for (to, from) in [
            ("10.77.0.2:9", "10.77.0.1"),
            ("192.0.2.200:9", "10.77.0.1"),
            ("[fd77::2]:9", "fd77::1"),
        ] {
            let to: SocketAddr = to.parse().unwrap();
            let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any).unwrap();
            socket.send_to(b"datagram", to).unwrap();
            let src = receive(&mut receiver, |_, outer| {
                (outer.dst == to.ip()).then_some(outer.src)
            })
            .await;
            assert_eq!(src, from.parse::<IpAddr>().unwrap());
        }
        // A second one in these networks, with these routes or of this name cannot be had, and the
        // error says why.
        let refused = |options: &TunOptions| options.open().unwrap_err().to_string();
        let mut second = TunOptions::new(network("10.77.0.8", 29, "10.77.0.9"));
        second.routes.clone_from(&options.routes);
        let error = refused(&second);
        assert!(
            error.contains("10.77.0.8/29") && error.contains("interface tacktest"),
            "{error}"
        );
        second.networks = vec![network("fd77:0:0:0:1::1", 80, "fd77:0:0:0:1::2")];
        assert!(refused(&second).contains("fd77::/64 of the interface tacktest"));
        second.networks = vec![network("10.78.0.1", 24, "10.78.0.2")];
        let error = refused(&second);
        assert!(
            error.contains("192.0.2.0/24 of the interface tacktest"),
            "{error}"
        );
        gone("tun0:").await;
        second.routes.clear();
        second.name = Some("tacktest".into());
        let error = refused(&second);
        assert!(error.contains("another program has"), "{error}");
        drop(receiver);
        drop(sender);
        gone("tacktest").await;
    });
}

/// A segment that the kernel answers with a reset: nobody listens there.
async fn stray(options: TunOptions) {
    let (mut sender, mut receiver) = options.open().unwrap();
    for peer in ["10.77.0.1", "fd77::1"] {
        let peer: IpAddr = peer.parse().unwrap();
        let header = Header {
            src_port: 4000,
            dst_port: 5000,
            seq: SeqNum(77),
            flags: Flags::SYN,
            ..Header::default()
        };
        let mut contents = vec![0; PREFIX + header.encoded_len()];
        header.emit(&mut contents[PREFIX..]);
        let packet_size = contents.len();
        // A new address takes the kernel a moment, in which it drops what arrives. A SYN is
        // repeated, as TCP does.
        loop {
            poll_fn(|cx| sender.poll_writable(cx)).await.unwrap();
            sender
                .send(&mut Packets {
                    peer,
                    ecn: Ecn::NotEct,
                    contents: &mut contents.clone(),
                    packet_size,
                })
                .unwrap();
            let answer = receive(&mut receiver, |packet, outer| {
                if outer.src != peer || outer.protocol != checksum::PROTOCOL_TCP {
                    return None;
                }
                let is_right = checksum::verify_tcp(outer.src, outer.dst, outer.payload);
                assert!(packet.verified || is_right);
                let segment = Segment::parse(outer.payload).unwrap();
                assert_eq!(segment.header.flags, Flags::RST.with(Flags::ACK));
                assert_eq!(segment.header.ack, SeqNum(78));
                Some(())
            });
            if tokio::time::timeout(Duration::from_millis(200), answer)
                .await
                .is_ok()
            {
                break;
            }
        }
    }
}

#[test]
fn the_kernel_takes_our_segments_and_answers() {
    isolated(|| stray(both()));
}

#[test]
fn the_kernel_takes_our_segments_without_offload() {
    isolated(|| {
        let mut options = both();
        options.offload = false;
        stray(options)
    });
}

#[test]
fn a_packet_beyond_the_mtu_is_named() {
    isolated(|| async {
        let (mut sender, _receiver) = both().open().unwrap();
        let mut contents = vec![0; PREFIX + 1481];
        let packet_size = contents.len();
        let mut packets = Packets {
            peer: "10.77.0.1".parse().unwrap(),
            ecn: Ecn::NotEct,
            contents: &mut contents,
            packet_size,
        };
        let error = sender.send(&mut packets).unwrap_err();
        assert!(
            matches!(error.cause, crate::SendCause::TooLong),
            "{error:?}"
        );
    });
}
