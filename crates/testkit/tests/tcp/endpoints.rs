//! Many connections behind one carrier: demultiplexing, listeners, strays, reuse, release.

use std::net::SocketAddr;
use std::time::Duration;

use tack_base::Instant;
use tack_tcp::config::KeepAlive;
use tack_tcp::{Batch, Config, ConnectionId, Endpoint, EndpointConfig, ListenError, State};
use tack_testkit::{Model, Pair, Side};
use tack_wire::{Ecn, Flags, Header, Segment, SeqNum};

use crate::settings::{ms, plain, secs};

pub(crate) const NOW: Instant = Instant::from_millis(1_000_000);

pub(crate) fn endpoint() -> Endpoint {
    Endpoint::new(EndpointConfig::new([7; 16]))
}

pub(crate) fn peer(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 4242))
}

pub(crate) fn header(src_port: u16, flags: Flags, seq: u32, ack: u32) -> Header {
    Header {
        src_port,
        dst_port: 80,
        seq: SeqNum(seq),
        ack: SeqNum(ack),
        flags,
        window: 60_000,
        ..Header::default()
    }
}

/// A segment from `from`; returns what leaves because of it.
pub(crate) fn arrive(
    endpoint: &mut Endpoint,
    now: Instant,
    from: SocketAddr,
    header: Header,
    payload: &[u8],
) -> Vec<(SocketAddr, Header)> {
    endpoint.handle_segment(now, now, from, &Segment { header, payload }, Ecn::NotEct);
    drain(endpoint, now)
}

pub(crate) fn drain(endpoint: &mut Endpoint, now: Instant) -> Vec<(SocketAddr, Header)> {
    let mut out = Vec::new();
    let mut buf = Vec::new();
    while let Some((to, transmit)) = endpoint.poll_transmit(now, &mut Batch::new(&mut buf, 3, 1)) {
        assert_eq!((transmit.len, transmit.segments), (buf.len(), 1));
        assert!(
            buf[..3].iter().all(|byte| *byte == 0),
            "the prefix is the carrier's"
        );
        out.push((to, Segment::parse(&buf[3..]).expect("a segment").header));
        buf.clear();
    }
    out
}

/// Opens a connection from port `src_port` of `from`; returns its identifier and the number the
/// peer goes on with.
pub(crate) fn open(
    endpoint: &mut Endpoint,
    now: Instant,
    from: SocketAddr,
    src_port: u16,
) -> (ConnectionId, SeqNum) {
    let answers = arrive(
        endpoint,
        now,
        from,
        header(src_port, Flags::SYN, 100, 0),
        &[],
    );
    let iss = answers.last().expect("a SYN-ACK").1.seq;
    assert!(
        arrive(
            endpoint,
            now,
            from,
            header(src_port, Flags::ACK, 101, iss.0.wrapping_add(1)),
            &[]
        )
        .is_empty()
    );
    (endpoint.accept(80).expect("it is established"), iss + 1)
}

/// RFC 9293 §3.10.7.1: what belongs to no connection is reset, a reset is not.
#[test]
fn strays_are_reset() {
    let mut endpoint = endpoint();
    let answers = arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(9, Flags::SYN, 100, 0),
        &[],
    );
    assert_eq!(answers.len(), 1);
    let reset = &answers[0].1;
    assert_eq!(
        (reset.flags, reset.seq, reset.ack),
        (Flags::RST.with(Flags::ACK), SeqNum(0), SeqNum(101))
    );
    assert_eq!(
        (answers[0].0, reset.src_port, reset.dst_port),
        (peer(1), 80, 9)
    );
    let answers = arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(10, Flags::ACK, 100, 77),
        b"data",
    );
    assert_eq!(
        (answers[0].1.flags, answers[0].1.seq),
        (Flags::RST, SeqNum(77))
    );
    for flags in [
        Flags::RST,
        Flags::RST.with(Flags::ACK),
        Flags::RST.with(Flags::SYN),
    ] {
        assert!(arrive(&mut endpoint, NOW, peer(1), header(9, flags, 100, 77), &[]).is_empty());
    }
    assert_eq!(
        (
            endpoint.stats().strays,
            endpoint.stats().resets,
            endpoint.len()
        ),
        (5, 2, 0)
    );
}

/// A service that is not TCP answers every datagram, a reset too, and some answers look like
/// segments.
#[test]
fn a_service_that_answers_everything_draws_few_resets() {
    for flags in [
        Flags::ACK,
        Flags::SYN,
        Flags::SYN.with(Flags::ACK),
        Flags::PSH,
    ] {
        let mut endpoint = endpoint();
        let mut resets = 0;
        for ms in 0..5_000 {
            let now = NOW + Duration::from_millis(ms);
            let junk = header(9, flags, 100, 77);
            resets += arrive(&mut endpoint, now, peer(1), junk, b"hello").len();
        }
        // Two a second; none where no TCP sends such a segment.
        assert_eq!(
            resets,
            if flags == Flags::PSH { 0 } else { 10 },
            "{flags:?}"
        );
    }
}

/// RFC 9293 §3.10.7.2: a listener ignores what neither opens nor acknowledges.
#[test]
fn listeners_ignore_nonsense() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 10).expect("the port is free");
    assert_eq!(endpoint.listen(80, plain(), 10), Err(ListenError::InUse));
    for flags in [
        Flags::FIN,
        Flags::default(),
        Flags::PSH,
        Flags::SYN.with(Flags::FIN),
        Flags::RST,
        Flags::SYN.with(Flags::RST),
    ] {
        assert!(
            arrive(&mut endpoint, NOW, peer(1), header(9, flags, 100, 0), &[]).is_empty(),
            "{flags:?}"
        );
    }
    for (port, flags) in [
        (9, Flags::ACK),
        (10, Flags::SYN.with(Flags::ACK)),
        (11, Flags::FIN.with(Flags::ACK)),
    ] {
        let answers = arrive(
            &mut endpoint,
            NOW,
            peer(1),
            header(port, flags, 100, 55),
            &[],
        );
        assert_eq!(
            (answers[0].1.flags, answers[0].1.seq),
            (Flags::RST, SeqNum(55)),
            "{flags:?}"
        );
    }
    assert!(endpoint.is_empty());
}

/// The same ports from different peers, and different ports from the same peer, are different
/// connections.
#[test]
fn connections_are_told_apart() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 10).expect("the port is free");
    let (a, next_a) = open(&mut endpoint, NOW, peer(1), 9);
    let (b, next_b) = open(&mut endpoint, NOW, peer(2), 9);
    let (c, next_c) = open(&mut endpoint, NOW, peer(1), 10);
    assert!(a < b && b < c && endpoint.len() == 3);
    for (from, port, next, text) in [
        (peer(2), 9, next_b, b"for b"),
        (peer(1), 10, next_c, b"for c"),
        (peer(1), 9, next_a, b"for a"),
    ] {
        arrive(
            &mut endpoint,
            NOW,
            from,
            header(port, Flags::ACK, 101, next.0),
            text,
        );
    }
    for (id, text) in [(a, b"for a"), (b, b"for b"), (c, b"for c")] {
        assert_eq!(endpoint.get(id).expect("it lives").peek().0, text);
    }
    assert_eq!(
        endpoint
            .tuple(b)
            .map(|tuple| (tuple.peer, tuple.local_port, tuple.remote_port)),
        Some((peer(2), 80, 9))
    );
    // The peer's carrier port is part of its name: behind one address there may be many.
    let other = SocketAddr::from(([192, 0, 2, 1], 4243));
    assert!(
        !arrive(
            &mut endpoint,
            NOW,
            other,
            header(9, Flags::ACK, 101, next_a.0),
            b"x"
        )
        .is_empty()
    );
}

/// RFC 4987 §3.4: a flood of forged SYNs takes bounded memory, and an honest peer gets through
/// while it lasts.
#[test]
fn syn_floods_are_survived() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 128).expect("the port is free");
    let flood = |endpoint: &mut Endpoint, now, count: u32| {
        for index in 0..count {
            let from = SocketAddr::from(([198, 51, (index >> 8) as u8, index as u8], 1));
            let answers = arrive(endpoint, now, from, header(9, Flags::SYN, index, 0), &[]);
            assert_eq!(answers.len(), 1, "one answer for one SYN");
        }
    };
    flood(&mut endpoint, NOW, 20_000);
    assert!(endpoint.len() <= 128, "{}", endpoint.len());
    let honest = peer(1);
    let iss = arrive(
        &mut endpoint,
        NOW,
        honest,
        header(9, Flags::SYN, 100, 0),
        &[],
    )[0]
    .1
    .seq;
    // Less than a backlog of forgeries within the honest round trip.
    flood(&mut endpoint, NOW + ms(5), 100);
    arrive(
        &mut endpoint,
        NOW + ms(20),
        honest,
        header(9, Flags::ACK, 101, iss.0.wrapping_add(1)),
        &[],
    );
    assert!(endpoint.accept(80).is_some());
    // The forgeries time out.
    let mut now = NOW;
    while let Some(deadline) = endpoint.poll_timeout() {
        now = now.max(deadline);
        endpoint.handle_timeout(now);
        drain(&mut endpoint, now);
    }
    assert_eq!(endpoint.len(), 1);
    assert!(now < NOW + secs(200));
}

/// Established connections that nobody accepts fill the backlog; further SYNs are ignored, not the
/// waiting ones lost.
#[test]
fn a_slow_application_makes_peers_wait() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 2).expect("the port is free");
    for port in [1, 2] {
        let iss = arrive(
            &mut endpoint,
            NOW,
            peer(1),
            header(port, Flags::SYN, 100, 0),
            &[],
        )[0]
        .1
        .seq;
        arrive(
            &mut endpoint,
            NOW,
            peer(1),
            header(port, Flags::ACK, 101, iss.0.wrapping_add(1)),
            &[],
        );
    }
    assert!(
        arrive(
            &mut endpoint,
            NOW,
            peer(1),
            header(3, Flags::SYN, 100, 0),
            &[]
        )
        .is_empty()
    );
    assert_eq!(endpoint.stats().syns_dropped, 1);
    assert!(endpoint.accept(80).is_some());
    assert_eq!(
        arrive(
            &mut endpoint,
            NOW,
            peer(1),
            header(3, Flags::SYN, 100, 0),
            &[]
        )
        .len(),
        1
    );
    assert!(endpoint.accept(80).is_some());
    assert!(endpoint.accept(80).is_none(), "the third is half-open");
}

/// RFC 9293 §3.10.7.4: a reset before the application accepted it makes a connection vanish;
/// `unlisten` resets those that wait.
#[test]
fn connections_that_end_before_they_are_accepted() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 10).expect("the port is free");
    for port in [1, 2, 3] {
        let iss = arrive(
            &mut endpoint,
            NOW,
            peer(1),
            header(port, Flags::SYN, 100, 0),
            &[],
        )[0]
        .1
        .seq;
        if port != 3 {
            arrive(
                &mut endpoint,
                NOW,
                peer(1),
                header(port, Flags::ACK, 101, iss.0.wrapping_add(1)),
                &[],
            );
        }
    }
    arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(1, Flags::RST, 101, 0),
        &[],
    );
    assert_eq!(endpoint.len(), 2);
    endpoint.unlisten(NOW, 80);
    let resets = drain(&mut endpoint, NOW);
    assert_eq!(resets.len(), 2);
    assert!(resets.iter().all(|(_, header)| header.flags.rst()));
    assert!(endpoint.is_empty());
    assert_eq!(endpoint.accept(80), None);
    assert_eq!(endpoint.listen(80, plain(), 10), Ok(()));
}

/// Timers of thousands of connections fire exactly, each at its time, and asking for the next one
/// is cheap enough to do it after each.
#[test]
fn thousands_of_timers() {
    let mut endpoint = endpoint();
    let keep_alive = |idle| Config {
        keep_alive: Some(KeepAlive {
            idle,
            interval: secs(1),
            probes: 3,
        }),
        ..plain()
    };
    let mut expected = Vec::new();
    for index in 0..5000_u16 {
        let idle = ms(1000 + u64::from(index).wrapping_mul(7919) % 5000);
        endpoint
            .listen(index, keep_alive(idle), 1)
            .expect("the port is free");
        let to = |header: Header| Header {
            dst_port: index,
            ..header
        };
        let iss = arrive(
            &mut endpoint,
            NOW,
            peer(1),
            to(header(9, Flags::SYN, 100, 0)),
            &[],
        )[0]
        .1
        .seq;
        arrive(
            &mut endpoint,
            NOW,
            peer(1),
            to(header(9, Flags::ACK, 101, iss.0.wrapping_add(1))),
            &[],
        );
        expected.push((NOW + idle, index));
    }
    expected.sort_unstable();
    // The first probe of each, in the order they leave; later ones of the same connection fall in
    // between.
    let mut fired = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    while fired.len() < expected.len() {
        let deadline = endpoint.poll_timeout().expect("timers are armed");
        assert!(deadline < NOW + secs(7));
        endpoint.handle_timeout(deadline);
        let probes = drain(&mut endpoint, deadline);
        fired.extend(
            probes
                .iter()
                .map(|(_, header)| (deadline, header.src_port))
                .filter(|probe| seen.insert(probe.1)),
        );
    }
    fired.sort_unstable();
    assert_eq!(fired, expected);
}

/// Two connections with much to send take turns, batch by batch.
#[test]
fn connections_take_turns() {
    let mut endpoint = endpoint();
    endpoint
        .listen(80, crate::settings::plain(), 10)
        .expect("the port is free");
    let ids: Vec<_> = (1..=4)
        .map(|port| open(&mut endpoint, NOW, peer(1), port).0)
        .collect();
    for id in &ids {
        endpoint
            .get_mut(*id)
            .expect("it lives")
            .write(NOW, &[0; 5000])
            .expect("there is room");
    }
    let order: Vec<u16> = drain(&mut endpoint, NOW)
        .iter()
        .map(|(_, header)| header.dst_port)
        .collect();
    assert!(order.len() >= 16, "{order:?}");
    let mut first = order[..4].to_vec();
    for round in order[..16].chunks(4) {
        assert_eq!(round, first, "{order:?}");
    }
    first.sort_unstable();
    assert_eq!(first, [1, 2, 3, 4]);
}

/// Twenty connections at once, both ways, over a bad path: each its own bytes.
#[test]
fn many_connections_share_a_bad_path() {
    let bad = || Model {
        loss: 0.02,
        reorder: 0.1,
        duplicate: 0.02,
        ..Model::default()
    };
    let mut pair = Pair::new(3, bad(), bad());
    let config = Config {
        time_wait: secs(600),
        ..Config::default()
    };
    pair.listen(&config);
    let ids: Vec<_> = (0..12).map(|_| pair.connect(&config)).collect();
    for (index, id) in ids.iter().enumerate() {
        pair.send_on(Side::Client, *id, 50_000 + 1000 * index as u64);
        pair.finish_on(Side::Client, *id);
    }
    assert!(pair.run_until(
        secs(100),
        |pair| pair.apps(Side::Server).filter(|app| app.ended).count() == 12
    ));
    let mut read: Vec<_> = pair.apps(Side::Server).map(|app| app.read).collect();
    read.sort_unstable();
    let expected: Vec<_> = (0..12).map(|index| 50_000 + 1000 * index).collect();
    assert_eq!(read, expected);
}

/// Both sides connect at once with the same ports (RFC 9293 §3.5 figure 7): one connection on
/// either side.
#[test]
fn simultaneous_open_between_endpoints() {
    let (mut a, mut b) = (endpoint(), Endpoint::new(EndpointConfig::new([9; 16])));
    let config = plain();
    let id_a = a
        .connect(NOW, peer(2), 6000, 5000, &config)
        .expect("the ports are free");
    let id_b = b
        .connect(NOW, peer(1), 5000, 6000, &config)
        .expect("the ports are free");
    let mut now = NOW;
    let (mut to_a, mut to_b) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        now += ms(1);
        to_b.extend(drain(&mut a, now));
        to_a.extend(drain(&mut b, now));
        for (_, header) in to_b.drain(..) {
            b.handle_segment(
                now,
                now,
                peer(1),
                &Segment {
                    header,
                    payload: &[],
                },
                Ecn::NotEct,
            );
        }
        for (_, header) in to_a.drain(..) {
            a.handle_segment(
                now,
                now,
                peer(2),
                &Segment {
                    header,
                    payload: &[],
                },
                Ecn::NotEct,
            );
        }
    }
    for (endpoint, id) in [(&a, id_a), (&b, id_b)] {
        assert_eq!(
            endpoint.get(id).map(|connection| connection.state()),
            Some(State::Established)
        );
    }
    assert!(drain(&mut a, now).is_empty() && drain(&mut b, now).is_empty());
}
