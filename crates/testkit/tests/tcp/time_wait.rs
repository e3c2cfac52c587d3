//! TIME-WAIT after the application has let go: a record, what it answers, and what it lets in.

use tack_tcp::{Config, Endpoint, EndpointConfig};
use tack_wire::options::TcpOptions;
use tack_wire::{Flags, Header, SeqNum, Timestamps};

use crate::endpoints::{NOW, arrive, drain, endpoint, header, open, peer};
use crate::settings::{ms, plain, secs};

/// A connection that this side ended first, released, in TIME-WAIT. Returns the number after our
/// FIN; the peer's is 102.
fn released(endpoint: &mut Endpoint, port: u16) -> SeqNum {
    let (id, next) = open(endpoint, NOW, peer(1), port);
    endpoint.release(NOW, id);
    assert!(drain(endpoint, NOW)[0].1.flags.fin());
    let fin = header(
        port,
        Flags::FIN.with(Flags::ACK),
        101,
        next.0.wrapping_add(1),
    );
    assert_eq!(arrive(endpoint, NOW, peer(1), fin, &[]).len(), 1);
    assert!(endpoint.get(id).is_none(), "a record took its place");
    next + 1
}

fn listening() -> Endpoint {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 10).expect("the port is free");
    endpoint
}

/// RFC 9293 §3.10.7.4: the peer did not get our last acknowledgement; its FIN is acknowledged
/// again, and 2 MSL start over.
#[test]
fn a_repeated_fin_is_acknowledged() {
    let mut endpoint = listening();
    let next = released(&mut endpoint, 9);
    let fin = header(9, Flags::FIN.with(Flags::ACK), 101, next.0);
    let later = NOW + secs(30);
    let answers = arrive(&mut endpoint, later, peer(1), fin, &[]);
    let answer = &answers[0].1;
    assert_eq!(
        (answer.flags, answer.seq, answer.ack),
        (Flags::ACK, next, SeqNum(102))
    );
    assert_eq!(endpoint.poll_timeout(), Some(later + secs(60)));
    endpoint.handle_timeout(later + secs(60));
    assert!(endpoint.is_empty());
}

/// RFC 1337 §3, F1: resets that fit do not end TIME-WAIT; old data is answered, at a limited rate.
#[test]
fn a_record_is_not_assassinated() {
    let mut endpoint = listening();
    let next = released(&mut endpoint, 9);
    let old = header(9, Flags::ACK, 95, next.0);
    let answers = arrive(&mut endpoint, NOW, peer(1), old.clone(), b"old");
    assert_eq!(answers[0].1.ack, SeqNum(102));
    for seq in [101, 102, 103] {
        assert!(
            arrive(
                &mut endpoint,
                NOW,
                peer(1),
                header(9, Flags::RST, seq, 0),
                &[]
            )
            .is_empty()
        );
    }
    assert_eq!(endpoint.len(), 1);
    let answers: usize = (0..100)
        .map(|_| arrive(&mut endpoint, NOW, peer(1), old.clone(), b"old").len())
        .sum();
    assert!(answers < 10, "{answers}");
    // Two records do not answer each other's acknowledgements.
    let bare = header(9, Flags::ACK, 102, next.0);
    assert!(arrive(&mut endpoint, NOW + secs(10), peer(1), bare, &[]).is_empty());
}

/// A replayed SYN of a former connection opens no new one, however long ago that ended. A later SYN
/// does, with a number beyond all of the old ones (RFC 9293 §3.10.7.4).
#[test]
fn a_replayed_syn_opens_nothing_and_a_new_one_does() {
    let mut endpoint = listening();
    let next = released(&mut endpoint, 9);
    let answers = arrive(
        &mut endpoint,
        NOW + secs(1),
        peer(1),
        header(9, Flags::SYN, 100, 0),
        &[],
    );
    assert!(answers.iter().all(|(_, header)| !header.flags.syn()));
    assert_eq!(endpoint.len(), 1);
    let answers = arrive(
        &mut endpoint,
        NOW + secs(1),
        peer(1),
        header(9, Flags::SYN, 103, 0),
        &[],
    );
    let answer = &answers[0].1;
    assert!(answer.flags.syn() && answer.ack == SeqNum(104) && answer.seq.after(next));
    let ack = header(9, Flags::ACK, 104, answer.seq.0.wrapping_add(1));
    arrive(&mut endpoint, NOW + secs(1), peer(1), ack, &[]);
    assert!(endpoint.accept(80).is_some());
}

/// The order of sequence numbers holds under a flood too: who comes back from TIME-WAIT gets a
/// record, not a cookie.
#[test]
fn a_flood_does_not_break_the_order_of_sequence_numbers() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 1).expect("the port is free");
    let next = released(&mut endpoint, 9);
    arrive(
        &mut endpoint,
        NOW,
        peer(2),
        header(9, Flags::SYN, 1, 0),
        &[],
    );
    let answers = arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(9, Flags::SYN, 103, 0),
        &[],
    );
    assert!(answers[0].1.flags.syn() && answers[0].1.seq.after(next));
    assert_eq!(endpoint.stats().cookies_sent, 0);
}

/// RFC 6191 §2: with timestamps, later ones are let in whatever their sequence number, earlier ones
/// are not.
#[test]
fn timestamps_tell_new_from_old() {
    let stamped = |header: Header, value| Header {
        options: TcpOptions {
            timestamps: Some(Timestamps { value, echo: 0 }),
            ..TcpOptions::default()
        },
        ..header
    };
    let config = Config {
        timestamps: true,
        ..plain()
    };
    let mut endpoint = endpoint();
    endpoint.listen(80, config, 10).expect("the port is free");
    let send = |endpoint: &mut Endpoint, header, value| {
        let header = stamped(header, value);
        arrive(endpoint, NOW, peer(1), header, &[])
    };
    let syn = header(9, Flags::SYN, 100, 0);
    let iss = send(&mut endpoint, syn, 500)[0].1.seq;
    let ack = header(9, Flags::ACK, 101, iss.0.wrapping_add(1));
    send(&mut endpoint, ack, 501);
    let id = endpoint.accept(80).expect("it is established");
    endpoint.release(NOW, id);
    drain(&mut endpoint, NOW);
    let fin = header(9, Flags::FIN.with(Flags::ACK), 101, iss.0.wrapping_add(2));
    send(&mut endpoint, fin, 502);
    for (seq, value, opens) in [(5000, 400, false), (50, 502, false), (50, 503, true)] {
        let answers = send(&mut endpoint, header(9, Flags::SYN, seq, 0), value);
        let opened = answers.iter().any(|(_, header)| header.flags.syn());
        assert_eq!(opened, opens, "SEQ {seq}, TSval {value}");
    }
}

/// The timestamps of connections with the same name go on where they were: a peer that has the last
/// one in TIME-WAIT lets the next one in, however fast that was (RFC 6191 §2).
#[test]
fn timestamps_of_one_name_are_in_order() {
    let config = Config {
        timestamps: true,
        ..plain()
    };
    let mut endpoint = endpoint();
    let mut stamps = Vec::new();
    for round in 0..2 {
        let now = NOW + ms(round * 10);
        let id = endpoint
            .connect(now, peer(1), 80, 5000, &config)
            .expect("the ports are free");
        let syn = &drain(&mut endpoint, now)[0].1;
        stamps.push(syn.options.timestamps.expect("they are offered").value);
        endpoint.get_mut(id).expect("it lives").abort(now);
        endpoint.release(now, id);
        drain(&mut endpoint, now);
    }
    assert_eq!(stamps[1].wrapping_sub(stamps[0]), 10);
}

/// Records are bounded: the oldest gives way.
#[test]
fn the_oldest_record_gives_way() {
    let mut endpoint = Endpoint::new(EndpointConfig {
        max_time_wait: 2,
        ..EndpointConfig::new([7; 16])
    });
    endpoint.listen(80, plain(), 10).expect("the port is free");
    for port in 1..=3 {
        released(&mut endpoint, port);
    }
    assert_eq!((endpoint.len(), endpoint.stats().time_wait_evicted), (2, 1));
    let fin = |port| header(port, Flags::FIN.with(Flags::ACK), 101, 7);
    assert!(
        arrive(&mut endpoint, NOW, peer(1), fin(1), &[])[0]
            .1
            .flags
            .rst()
    );
    assert!(
        !arrive(&mut endpoint, NOW, peer(1), fin(3), &[])[0]
            .1
            .flags
            .rst()
    );
}

/// A port in TIME-WAIT is not picked for a new connection.
#[test]
fn a_name_in_time_wait_is_in_use() {
    let mut endpoint = listening();
    released(&mut endpoint, 9);
    assert!(endpoint.connect(NOW, peer(1), 9, 80, &plain()).is_err());
    assert!(endpoint.connect(NOW, peer(1), 9, 81, &plain()).is_ok());
}
