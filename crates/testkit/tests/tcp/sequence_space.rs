//! Sequence numbers that wrap (RFC 9293 §3.4), and streams longer than they count.

use tack_base::Instant;
use tack_tcp::config::Carrier;
use tack_tcp::{Algorithm, Batch, Config, Connection, Event};
use tack_testkit::Peer;
use tack_wire::{Ecn, Segment, SeqNum};

use crate::settings::{plain, with_sack};

const EDGES: [u32; 6] = [
    u32::MAX,
    u32::MAX - 1,
    u32::MAX - 5,
    u32::MAX - 1500,
    0x7fff_ffff,
    0x7fff_fff0,
];

/// Handshake, data, holes, close: everything across the wrap, on either side.
#[test]
fn everything_works_across_the_wrap() {
    for iss in EDGES {
        for peer_iss in EDGES {
            let mut peer = Peer::listening_with(with_sack(), SeqNum(iss), SeqNum(peer_iss));
            peer.run(
                "
                +0    < S 0:0(0) win 65535 <mss 1000,sackOK>
                +0    > S. 0:0(0) ack 1
                +10ms < . 1:1(0) ack 1
                write 4000
                +0    > . 1:4001(4000) ack 1 each 1000
                +5ms  < . 1:1001(1000) ack 1001
                +0    > . 4001:4001(0) ack 1001
                +0    < . 2001:3001(1000) ack 2001
                +0    > . 4001:4001(0) ack 1001 <sack 2001:3001>
                +0    < . 1001:2001(1000) ack 4001
                +0    > . 4001:4001(0) ack 3001
                read 3000
                finish
                +0    > F. 4001:4001(0) ack 3001
                +5ms  < F. 3001:3001(0) ack 4002
                +0    > . 4002:4002(0) ack 3002
                eof
                state TimeWait
                ",
            );
        }
    }
}

/// Recovery across the wrap: SACK blocks, repairs.
#[test]
fn recovery_across_the_wrap() {
    for iss in EDGES {
        let mut peer = Peer::listening_with(with_sack(), SeqNum(iss), SeqNum(1));
        peer.run(
            "
            +0    < S 0:0(0) win 65535 <mss 1000,sackOK>
            +0    > S. 0:0(0) ack 1
            +10ms < . 1:1(0) ack 1
            write 6000
            +0    > . 1:6001(6000) ack 1 each 1000
            +10ms < . 1:1(0) ack 1001 <sack 2001:3001>
            +0    < . 1:1(0) ack 1001 <sack 2001:4001>
            +0    < . 1:1(0) ack 1001 <sack 2001:5001>
            +0    > . 1001:2001(1000) ack 1
            +10ms < . 1:1(0) ack 6001
            ",
        );
        assert_eq!(
            peer.connection().stats(peer.now()).retransmitted_segments,
            1
        );
    }
}

/// Blind resets around the wrap are judged by distance (RFC 5961 §3.2).
#[test]
fn resets_around_the_wrap() {
    let mut peer = Peer::listening_with(plain(), SeqNum(5), SeqNum(u32::MAX - 3));
    peer.run(
        "
        +0    < S 0:0(0) win 65535 <mss 1000>
        +0    > S. 0:0(0) ack 1
        +10ms < . 1:1(0) ack 1
        +0    < R 10:10(0)
        +0    > . 1:1(0) ack 1
        +0    < R 4294967290:4294967290(0)
        +0    < R 1:1(0)
        state Closed
        ",
    );
}

/// 4.5 GiB on one connection: positions outgrow the 32 bits of the wire, with PAWS awake. Two
/// connections face to face, large segments, no network between.
#[test]
fn streams_longer_than_the_sequence_space() {
    const LENGTH: u64 = 9 << 29;
    let config = Config {
        congestion: Algorithm::NewReno,
        mss: 65_000,
        receive_buffer: 4 << 20,
        send_buffer: 4 << 20,
        initial_window_segments: 20,
        carrier: Carrier {
            timer_granularity: std::time::Duration::from_secs(1),
            max_batch: 64,
            overhead: 20,
        },
        ..Config::default()
    };
    let mut now = Instant::from_millis(1000);
    let mut client = Connection::connect(&config, 1, 2, SeqNum(u32::MAX - 10), 1, now);
    let mut server: Option<Connection> = None;
    // Content with a period that no power of two divides, so that an offset error of 2^32 shows.
    const PERIOD: usize = 65_521;
    let content: Vec<u8> = (0..2 * PERIOD as u64)
        .map(|at| tack_testkit::pattern::byte(at % PERIOD as u64))
        .collect();
    let (mut written, mut read) = (0_u64, 0_u64);
    let mut buf = Vec::new();
    while read < LENGTH {
        now += std::time::Duration::from_micros(50);
        while written < LENGTH {
            let offset = (written % PERIOD as u64) as usize;
            let len = (LENGTH - written).min(PERIOD as u64) as usize;
            match client.write(now, &content[offset..offset + len]) {
                Ok(taken) => written += taken as u64,
                Err(_) => break,
            }
        }
        client.handle_timeout(now);
        buf.clear();
        while let Some(transmit) = client.poll_transmit(now, &mut Batch::new(&mut buf, 0, 64)) {
            for bytes in buf.chunks(transmit.segment_size) {
                let segment = Segment::parse(bytes).expect("a segment");
                match &mut server {
                    Some(server) => server.handle_segment(now, now, &segment, Ecn::NotEct),
                    None => {
                        server = Some(Connection::accept(
                            &config,
                            &segment,
                            tack_wire::Ecn::NotEct,
                            SeqNum(7),
                            2,
                            now,
                        ))
                    }
                }
            }
            buf.clear();
        }
        let Some(server) = &mut server else { continue };
        let (a, b) = server.peek();
        for part in [a, b] {
            let mut rest = part;
            while !rest.is_empty() {
                let offset = (read % PERIOD as u64) as usize;
                let len = rest.len().min(PERIOD);
                assert!(
                    rest[..len] == content[offset..offset + len],
                    "wrong content near {read}"
                );
                read += len as u64;
                rest = &rest[len..];
            }
        }
        let len = a.len() + b.len();
        server.consume(now, len);
        server.handle_timeout(now);
        while let Some(transmit) = server.poll_transmit(now, &mut Batch::new(&mut buf, 0, 64)) {
            for bytes in buf.chunks(transmit.segment_size) {
                client.handle_segment(
                    now,
                    now,
                    &Segment::parse(bytes).expect("a segment"),
                    Ecn::NotEct,
                );
            }
            buf.clear();
        }
        while let Some(event) = client.poll_event() {
            assert!(!matches!(event, Event::Closed(_)), "{event:?} at {read}");
        }
    }
    assert_eq!(client.stats(now).retransmitted_segments, 0);
}
