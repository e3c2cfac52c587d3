//! Numbers, ports and connections that are used again: ISNs, TIME-WAIT, release, limits.

use tack_tcp::{Config, ConnectError, ConnectionId, Endpoint, EndpointConfig, State};
use tack_testkit::{Model, Pair, Side};
use tack_wire::options::TcpOptions;
use tack_wire::{Flags, Header, SeqNum, Timestamps};

use crate::endpoints::{NOW, arrive, drain, endpoint, header, open, peer};
use crate::settings::{ms, plain, secs};

/// RFC 6528: numbers of later connections with the same ports lie ahead by the clock; other ports
/// look unrelated.
#[test]
fn initial_sequence_numbers() {
    let mut isns = Vec::new();
    for later in [0, 4_000] {
        let mut endpoint = endpoint();
        endpoint.listen(80, plain(), 10).expect("the port is free");
        let now = NOW + ms(later);
        isns.push(
            arrive(
                &mut endpoint,
                now,
                peer(1),
                header(9, Flags::SYN, 100, 0),
                &[],
            )[0]
            .1
            .seq,
        );
        isns.push(
            arrive(
                &mut endpoint,
                now,
                peer(1),
                header(10, Flags::SYN, 100, 0),
                &[],
            )[0]
            .1
            .seq,
        );
    }
    assert_eq!(isns[2].distance(isns[0]), 1_000_000, "4 µs a tick");
    assert_eq!(isns[3].distance(isns[1]), 1_000_000);
    assert!(isns[1].distance(isns[0]).unsigned_abs() > 1000);
}

/// Ends a connection from the peer's side so that ours is in TIME-WAIT. Returns the number after
/// our FIN.
fn to_time_wait(
    endpoint: &mut Endpoint,
    id: ConnectionId,
    next: SeqNum,
    options: &TcpOptions,
) -> SeqNum {
    endpoint.get_mut(id).expect("it lives").finish(NOW);
    assert!(drain(endpoint, NOW)[0].1.flags.fin());
    let fin = Header {
        options: options.clone(),
        ..header(9, Flags::FIN.with(Flags::ACK), 101, next.0.wrapping_add(1))
    };
    arrive(endpoint, NOW, peer(1), fin, &[]);
    assert_eq!(
        endpoint.get(id).map(|connection| connection.state()),
        Some(State::TimeWait)
    );
    next + 1
}

/// RFC 9293 §3.10.7.4: a new SYN with a higher sequence number replaces a connection in TIME-WAIT,
/// with an ISN beyond the old numbers; an old duplicate does not.
#[test]
fn time_wait_gives_way_to_a_new_connection() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 10).expect("the port is free");
    let (old, next) = open(&mut endpoint, NOW, peer(1), 9);
    let last = to_time_wait(&mut endpoint, old, next, &TcpOptions::default());
    // An old duplicate of the first SYN: answered with the old connection's acknowledgement.
    let answers = arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(9, Flags::SYN, 100, 0),
        &[],
    );
    assert!(
        answers.iter().all(|(_, header)| !header.flags.syn()),
        "{answers:?}"
    );
    assert_eq!(endpoint.len(), 1);
    let answers = arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(9, Flags::SYN, 5000, 0),
        &[],
    );
    let (_, answer) = answers.first().expect("a SYN-ACK");
    assert!(
        answer.flags.syn() && answer.flags.ack() && answer.ack == SeqNum(5001),
        "{answer:?}"
    );
    assert!(
        answer.seq.after(last),
        "RFC 9293: larger than the largest number of the previous incarnation"
    );
    arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(9, Flags::ACK, 5001, answer.seq.0.wrapping_add(1)),
        &[],
    );
    let new = endpoint.accept(80).expect("it is established");
    assert_ne!(old, new);
    // The old one belongs to the application until it lets go.
    assert!(endpoint.get(old).is_some());
    endpoint.release(NOW, old);
    endpoint.handle_timeout(NOW + secs(61));
    drain(&mut endpoint, NOW + secs(61));
    assert!(endpoint.get(old).is_none() && endpoint.get(new).is_some());
}

/// RFC 6191 §2: with timestamps a later one suffices, even below the old sequence numbers.
#[test]
fn time_wait_gives_way_to_a_later_timestamp() {
    let mut endpoint = endpoint();
    endpoint
        .listen(
            80,
            Config {
                timestamps: true,
                ..plain()
            },
            10,
        )
        .expect("the port is free");
    let stamped = |value| TcpOptions {
        timestamps: Some(Timestamps { value, echo: 0 }),
        ..TcpOptions::default()
    };
    let syn = |seq, value| Header {
        options: stamped(value),
        ..header(9, Flags::SYN, seq, 0)
    };
    let iss = arrive(&mut endpoint, NOW, peer(1), syn(100, 500), &[])[0]
        .1
        .seq;
    let ack = Header {
        options: stamped(501),
        ..header(9, Flags::ACK, 101, iss.0.wrapping_add(1))
    };
    arrive(&mut endpoint, NOW, peer(1), ack, &[]);
    let id = endpoint.accept(80).expect("it is established");
    to_time_wait(&mut endpoint, id, iss + 1, &stamped(502));
    let old = arrive(&mut endpoint, NOW, peer(1), syn(50, 400), &[]);
    assert!(old.iter().all(|(_, header)| !header.flags.syn()), "{old:?}");
    let new = arrive(&mut endpoint, NOW, peer(1), syn(50, 503), &[]);
    assert!(
        new[0].1.flags.syn() && new[0].1.ack == SeqNum(51),
        "{new:?}"
    );
}

/// `release`: the stream ends gracefully without the application, and nothing is left.
#[test]
fn released_connections_close_and_vanish() {
    let config = Config {
        time_wait: secs(10),
        ..Config::default()
    };
    let mut pair = Pair::open(1, &config, Model::default(), Model::default());
    pair.establish(secs(1));
    pair.send(Side::Client, 100_000);
    let (client, server) = (pair.app(Side::Client).id, pair.app(Side::Server).id);
    let now = pair.now();
    pair.endpoint(Side::Client).release(now, client);
    pair.finish(Side::Server);
    pair.set_reading(Side::Client, true);
    assert!(
        pair.run_until(secs(20), |pair| pair.app(Side::Server).read == 100_000
            && pair.app(Side::Server).ended)
    );
    let now = pair.now();
    pair.endpoint(Side::Server).release(now, server);
    pair.run_for(secs(30));
    assert!(pair.endpoint(Side::Client).is_empty() && pair.endpoint(Side::Server).is_empty());
    assert_eq!(
        (
            pair.endpoint(Side::Client).poll_timeout(),
            pair.endpoint(Side::Server).poll_timeout()
        ),
        (None, None)
    );
}

/// A released connection whose peer never finishes is forgotten after `fin_wait`.
#[test]
fn released_connections_do_not_wait_for_ever() {
    let mut endpoint = endpoint();
    endpoint
        .listen(
            80,
            Config {
                fin_wait: secs(30),
                ..plain()
            },
            10,
        )
        .expect("the port is free");
    let (id, next) = open(&mut endpoint, NOW, peer(1), 9);
    endpoint.release(NOW, id);
    assert!(drain(&mut endpoint, NOW)[0].1.flags.fin());
    arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(9, Flags::ACK, 101, next.0.wrapping_add(1)),
        &[],
    );
    assert_eq!(endpoint.poll_timeout(), Some(NOW + secs(30)));
    endpoint.handle_timeout(NOW + secs(30));
    drain(&mut endpoint, NOW + secs(30));
    assert!(endpoint.is_empty());
}

/// Ports run out, connections are limited, four-tuples are used once.
#[test]
fn connecting_has_limits() {
    let mut endpoint = Endpoint::new(EndpointConfig {
        max_connections: 3,
        ..EndpointConfig::new([1; 16])
    });
    let config = plain();
    let first = endpoint
        .connect(NOW, peer(1), 80, 5000, &config)
        .expect("the ports are free");
    assert_eq!(
        endpoint.connect(NOW, peer(1), 80, 5000, &config),
        Err(ConnectError::InUse)
    );
    endpoint
        .connect(NOW, peer(1), 81, 5000, &config)
        .expect("another port");
    endpoint
        .connect(NOW, peer(1), 80, 0, &config)
        .expect("a port of its choice");
    assert_eq!(
        endpoint.connect(NOW, peer(2), 80, 0, &config),
        Err(ConnectError::Exhausted)
    );
    endpoint.listen(80, plain(), 10).expect("the port is free");
    drain(&mut endpoint, NOW);
    assert!(
        arrive(
            &mut endpoint,
            NOW,
            peer(1),
            header(9, Flags::SYN, 1, 0),
            &[]
        )
        .is_empty(),
        "full"
    );
    // Identifiers are never used again, slots are.
    endpoint.get_mut(first).expect("it lives").abort(NOW);
    drain(&mut endpoint, NOW);
    endpoint.release(NOW, first);
    drain(&mut endpoint, NOW);
    let next = endpoint
        .connect(NOW, peer(1), 80, 5000, &config)
        .expect("the ports are free again");
    assert!(next > first && endpoint.get(first).is_none());
}

/// A closed connection that the application still holds does not keep its ports.
#[test]
fn closed_connections_free_their_ports() {
    let mut endpoint = endpoint();
    let config = plain();
    let old = endpoint
        .connect(NOW, peer(1), 80, 5000, &config)
        .expect("the ports are free");
    drain(&mut endpoint, NOW);
    let refuse = |iss: SeqNum| Header {
        src_port: 80,
        dst_port: 5000,
        ack: iss + 1,
        flags: Flags::RST.with(Flags::ACK),
        ..Header::default()
    };
    let syn = endpoint.get(old).map(|connection| connection.state());
    assert_eq!(syn, Some(State::SynSent));
    // Its SYN carried the ISN of the formula: the same endpoint at the same time gives the same.
    let mut twin = self::endpoint();
    twin.connect(NOW, peer(1), 80, 5000, &config)
        .expect("the ports are free");
    let iss = drain(&mut twin, NOW)[0].1.seq;
    arrive(&mut endpoint, NOW, peer(1), refuse(iss), &[]);
    assert_eq!(
        endpoint.get(old).map(|connection| connection.state()),
        Some(State::Closed)
    );
    assert_eq!(endpoint.poll_ready(), Some(old));
    assert!(endpoint.connect(NOW, peer(1), 80, 5000, &config).is_ok());
}
