//! Two real sockets on loopback.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use tack_base::Instant;
use tack_wire::{Ecn, Flags, Header, Segment, SeqNum};

use super::*;
use crate::Clock;

/// A segment numbered `seq` with `len` bytes of payload.
fn segment(seq: u32, len: usize) -> Vec<u8> {
    let header = Header {
        src_port: 1,
        dst_port: 2,
        seq: SeqNum(seq),
        flags: Flags::ACK,
        ..Header::default()
    };
    let mut bytes = vec![seq as u8; header.encoded_len() + len];
    header.emit(&mut bytes);
    bytes
}

/// What arrived: number, length of payload, ECN, arrival.
type Arrival = (u32, usize, Ecn, Instant);

async fn receive(receiver: &mut UdpReceiver, clock: &Clock, count: usize) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let all = async {
        while arrivals.len() < count {
            poll_fn(|cx| receiver.poll_readable(cx)).await.unwrap();
            let Ok(received) = receiver.receive(clock) else {
                continue;
            };
            for datagrams in received {
                for segment in datagrams.segments() {
                    let segment = segment.unwrap();
                    arrivals.push((
                        segment.header.seq.0,
                        segment.payload.len(),
                        datagrams.ecn,
                        datagrams.arrived,
                    ));
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), all)
        .await
        .expect("all datagrams arrive on loopback");
    arrivals
}

fn loopback(bind: &str) -> UdpOptions {
    UdpOptions::new(bind.parse().unwrap())
}

/// Sends `count` segments of `len` payload bytes, the last one short, and checks that all arrive as
/// they went.
async fn transfer(
    from: &UdpOptions,
    to: &UdpOptions,
    ecn: Ecn,
    count: u32,
    len: usize,
) -> UdpSender {
    let clock = Clock::new();
    let (mut sender, _keep) = from.open().unwrap();
    let (target, mut receiver) = to.open().unwrap();
    let mut contents: Vec<u8> = (0..count - 1).flat_map(|seq| segment(seq, len)).collect();
    contents.extend(segment(count - 1, 7));
    send(&mut sender, target.local_addr(), ecn, &contents, len + 20).await;
    let arrivals = receive(&mut receiver, &clock, count as usize).await;
    let now = clock.now();
    for (index, (seq, payload, marks, arrived)) in arrivals.into_iter().enumerate() {
        assert_eq!(seq as usize, index);
        assert_eq!(payload, if seq == count - 1 { 7 } else { len });
        assert_eq!(marks, ecn);
        assert!(arrived <= now);
    }
    sender
}

async fn send(sender: &mut UdpSender, peer: SocketAddr, ecn: Ecn, contents: &[u8], size: usize) {
    let mut rest = contents;
    loop {
        let datagrams = Datagrams {
            peer,
            ecn,
            contents: rest,
            segment_size: size,
        };
        match sender.send(&datagrams) {
            Ok(()) => return,
            Err(SendError { sent, cause }) => {
                assert!(matches!(cause, SendCause::Blocked), "{cause:?}");
                assert!(
                    sent == rest.len() || sent % size == 0,
                    "cut inside a datagram"
                );
                rest = &rest[sent..];
                poll_fn(|cx| sender.poll_writable(cx)).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn batches_arrive_whole_and_in_order() {
    let options = loopback("127.0.0.1:0");
    // More than one batch of 64 kB, so that it is cut at a datagram's edge.
    let sender = transfer(&options, &options, Ecn::Ect0, 60, 1452).await;
    assert_eq!(sender.refusals(), 0);
}

#[tokio::test]
async fn every_ecn_codepoint_arrives() {
    for bind in ["127.0.0.1:0", "[::1]:0"] {
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            transfer(&loopback(bind), &loopback(bind), ecn, 3, 100).await;
        }
    }
}

#[tokio::test]
async fn without_offload_each_datagram_goes_alone() {
    let single = UdpOptions {
        segmentation: Segmentation::Single,
        ..loopback("[::1]:0")
    };
    let sender = transfer(&single, &loopback("[::1]:0"), Ecn::Ect0, 20, 1432).await;
    assert_eq!(sender.max_batch(), 1);
}

#[tokio::test]
async fn an_ipv6_socket_reaches_ipv4_peers_under_their_ipv4_names() {
    let clock = Clock::new();
    let (mut dual, _keep) = loopback("[::]:0").open().unwrap();
    let (four, mut receiver) = loopback("127.0.0.1:0").open().unwrap();
    send(&mut dual, four.local_addr(), Ecn::Ect0, &segment(5, 9), 29).await;
    assert_eq!(receive(&mut receiver, &clock, 1).await[0].2, Ecn::Ect0);

    let (mut four, _keep) = loopback("127.0.0.1:0").open().unwrap();
    let (dual, mut receiver) = loopback("[::]:0").open().unwrap();
    let port = dual.local_addr().port();
    send(
        &mut four,
        SocketAddr::from(([127, 0, 0, 1], port)),
        Ecn::NotEct,
        &segment(5, 9),
        29,
    )
    .await;
    poll_fn(|cx| receiver.poll_readable(cx)).await.unwrap();
    let peer = receiver.receive(&clock).unwrap().next().unwrap().peer;
    assert_eq!(peer, four.local_addr());
}

#[tokio::test]
async fn a_datagram_beyond_the_mtu_is_named_and_offload_survives() {
    let (mut sender, _keep) = loopback("127.0.0.1:0").open().unwrap();
    // Longer than any IPv4 packet can be, in a batch of two.
    let contents = vec![0; 70_000];
    let datagrams = Datagrams {
        peer: sender.local_addr(),
        ecn: Ecn::NotEct,
        contents: &contents,
        segment_size: 65_510,
    };
    poll_fn(|cx| sender.poll_writable(cx)).await.unwrap();
    let error = sender.send(&datagrams).unwrap_err();
    assert!(matches!(error.cause, SendCause::TooLong), "{error:?}");
    assert_eq!((error.sent, sender.refusals()), (0, 0));
}

/// A socket that asks for no checksums gets no segmentation offload from Linux: a refusal as
/// devices make it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_refused_batch_goes_datagram_by_datagram() {
    let clock = Clock::new();
    let (mut sender, _keep) = loopback("127.0.0.1:0").open().unwrap();
    assert!(sender.max_batch() > 1, "the kernel offers offload at first");
    sender.refuse_offload();
    let (target, mut receiver) = loopback("127.0.0.1:0").open().unwrap();
    let contents: Vec<u8> = (0..100).flat_map(|seq| segment(seq, 1000)).collect();
    send(&mut sender, target.local_addr(), Ecn::Ect0, &contents, 1020).await;
    assert_eq!((sender.refusals(), sender.max_batch()), (1, 1));
    let arrivals = receive(&mut receiver, &clock, 100).await;
    assert!(arrivals.iter().map(|arrival| arrival.0).eq(0..100));
    assert!(
        arrivals.iter().all(|arrival| arrival.2 == Ecn::Ect0),
        "marks survive the fallback"
    );
}

#[tokio::test]
async fn arrival_is_when_the_kernel_had_it_not_when_we_looked() {
    let clock = Clock::new();
    let (mut sender, _keep) = loopback("127.0.0.1:0").open().unwrap();
    let (target, mut receiver) = loopback("127.0.0.1:0").open().unwrap();
    // Linux turns stamping on a moment after the first socket asks for it; a datagram that came
    // before is stamped when it is read.
    for attempt in 0.. {
        send(
            &mut sender,
            target.local_addr(),
            Ecn::NotEct,
            &segment(1, 1),
            21,
        )
        .await;
        std::thread::sleep(Duration::from_millis(100));
        let looked = clock.now();
        let arrived = receive(&mut receiver, &clock, 1).await[0].3;
        if arrived < looked || !cfg!(target_os = "linux") {
            break;
        }
        assert!(attempt < 50, "{arrived} {looked}");
    }
}

/// A closed port is known by its address, though the socket serves many peers, and what goes to
/// others still goes.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_closed_port_is_named_and_disturbs_nobody_else() {
    for bind in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
        let mut options = loopback(bind);
        options.refusals = true;
        let (mut sender, mut receiver) = options.open().unwrap();
        let (other, mut there) = loopback(bind).open().unwrap();
        // An unspecified address is reached at loopback; there IPv4 peers are refused, too.
        let at = |port| match bind {
            "[::]:0" => SocketAddr::from(([127, 0, 0, 1], port)),
            _ => SocketAddr::new(sender_ip(bind), port),
        };
        let closed = at(std::net::UdpSocket::bind(at(0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port());
        let alive = at(other.local_addr().port());
        let contents = segment(1, 10);
        let to = |peer| Datagrams {
            peer,
            ecn: Ecn::NotEct,
            contents: &contents,
            segment_size: contents.len(),
        };
        for peer in [closed, alive].repeat(3) {
            poll_fn(|cx| sender.poll_writable(cx)).await.unwrap();
            sender.send(&to(peer)).unwrap();
        }
        let clock = Clock::new();
        assert_eq!(receive(&mut there, &clock, 3).await.len(), 3, "{bind}");
        for _ in 0..3 {
            let refused = poll_fn(|cx| receiver.poll_refused(cx));
            let refused = tokio::time::timeout(Duration::from_secs(20), refused).await;
            let refused = refused.expect("the system tells").unwrap();
            assert_eq!(refused.peer, closed, "{bind}");
            // Loopback quotes more than the eight bytes of RFC 792, which end with the UDP header.
            let sent = Segment::parse(&contents).unwrap().header;
            let quoted = QuotedSegment {
                src_port: sent.src_port,
                dst_port: sent.dst_port,
                seq: sent.seq,
            };
            assert_eq!(refused.segment, Some(quoted), "{bind}");
        }
    }
}

#[cfg(target_os = "linux")]
fn sender_ip(bind: &str) -> std::net::IpAddr {
    bind.parse::<SocketAddr>().unwrap().ip()
}

/// What takes all datagrams of a socket need not ask again to learn that it is empty, and is woken
/// by the next one.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_call_that_takes_all_leaves_an_empty_socket() {
    use std::task::{Context, Waker};

    let clock = Clock::new();
    let (mut sender, _keep) = loopback("127.0.0.1:0").open().unwrap();
    let (target, mut receiver) = loopback("127.0.0.1:0").open().unwrap();
    for number in 0..3 {
        let contents = segment(number, 10);
        send(
            &mut sender,
            target.local_addr(),
            Ecn::NotEct,
            &contents,
            contents.len(),
        )
        .await;
        assert_eq!(receive(&mut receiver, &clock, 1).await.len(), 1);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(receiver.poll_readable(&mut cx).is_pending(), "{number}");
    }
}
