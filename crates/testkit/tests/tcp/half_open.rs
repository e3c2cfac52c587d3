//! Half-open connections: floods of forged SYNs, cookies, and what a repeated SYN is not.

use std::net::SocketAddr;

use tack_base::Instant;
use tack_tcp::{Config, Endpoint, Incoming, SynFilter, Verdict};
use tack_testkit::{Model, Pair, Side};
use tack_wire::options::TcpOptions;
use tack_wire::tack::{TackOption, TackSyn};
use tack_wire::{Flags, Header, SeqNum, Timestamps};

use crate::endpoints::{NOW, arrive, drain, endpoint, header, peer};
use crate::settings::{ms, plain, secs};

/// One forged SYN each from `count` addresses; each draws one answer.
fn flood(endpoint: &mut Endpoint, now: Instant, count: u32) {
    for index in 0..count {
        let from = SocketAddr::from(([198, 51, (index >> 8) as u8, index as u8], 1));
        let answers = arrive(endpoint, now, from, header(9, Flags::SYN, index, 0), &[]);
        assert_eq!(answers.len(), 1, "one answer for one SYN");
    }
}

fn offering_everything(seq: u32) -> Header {
    Header {
        options: TcpOptions {
            mss: Some(1452),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 77, echo: 0 }),
            tack: Some(TackOption::Syn(TackSyn {
                segments: 2,
                beta: 4,
            })),
            ..TcpOptions::default()
        },
        ..header(9, Flags::SYN.with(Flags::ECE).with(Flags::CWR), seq, 0)
    }
}

/// RFC 4987 §3.5: a half-open connection is a record of a few hundred bytes, and no more of them
/// than the backlog.
#[test]
fn forged_syns_cost_records_not_connections() {
    let mut endpoint = endpoint();
    endpoint
        .listen(80, Config::default(), 128)
        .expect("the port is free");
    flood(&mut endpoint, NOW, 50_000);
    assert!(endpoint.memory() < 128 * 512, "{}", endpoint.memory());
    assert_eq!(endpoint.len(), 128);
    assert_eq!(endpoint.stats().cookies_sent, 50_000 - 128);
}

/// RFC 4987 §3.6: however many forgeries come within its round trip, an honest peer gets through,
/// with all that was agreed.
#[test]
fn an_honest_peer_gets_through_any_flood() {
    let mut endpoint = endpoint();
    endpoint
        .listen(80, Config::default(), 16)
        .expect("the port is free");
    flood(&mut endpoint, NOW, 1_000);
    let answers = arrive(&mut endpoint, NOW, peer(1), offering_everything(100), &[]);
    let answer = answers[0].1.clone();
    assert_eq!(
        (answer.options.window_scale, answer.options.sack_permitted),
        (Some(7), true)
    );
    assert!(answer.options.tack.is_some() && answer.flags.contains(Flags::ECE));
    flood(&mut endpoint, NOW + ms(100), 60_000);
    let ack = header(9, Flags::ACK, 101, answer.seq.0.wrapping_add(1));
    arrive(&mut endpoint, NOW + ms(200), peer(1), ack, &[]);
    let id = endpoint.accept(80).expect("it is established");
    assert_eq!(endpoint.stats().cookies_accepted, 1);
    let connection = endpoint.get(id).expect("it lives");
    let stats = connection.stats(NOW + ms(200));
    // Scaled, and without the twelve bytes of the option that stamps segments.
    assert_eq!((stats.snd_wnd, stats.mss), (60_000 << 7, 1452 - 12));
    assert_eq!(stats.cwnd, 10 * 1440, "nothing was lost");
    // Nobody guesses: the same from elsewhere is a stray.
    let guess = header(9, Flags::ACK, 101, answer.seq.0.wrapping_add(1));
    let answers = arrive(&mut endpoint, NOW + ms(200), peer(2), guess, &[]);
    assert!(answers[0].1.flags.rst());
}

/// Timestamps were agreed if the acknowledgement of the cookie carries them; the echo then measures
/// the round trip.
#[test]
fn timestamps_survive_a_cookie() {
    let mut endpoint = endpoint();
    let config = Config {
        ack: "delayed:2".parse().expect("a policy"),
        ..Config::default()
    };
    endpoint.listen(80, config, 1).expect("the port is free");
    flood(&mut endpoint, NOW, 10);
    let answers = arrive(&mut endpoint, NOW, peer(1), offering_everything(100), &[]);
    let answer = answers[0].1.clone();
    let stamp = answer.options.timestamps.expect("timestamps are agreed");
    assert_eq!(stamp.echo, 77);
    let ack = Header {
        options: TcpOptions {
            timestamps: Some(Timestamps {
                value: 117,
                echo: stamp.value,
            }),
            ..TcpOptions::default()
        },
        ..header(9, Flags::ACK, 101, answer.seq.0.wrapping_add(1))
    };
    arrive(&mut endpoint, NOW + ms(40), peer(1), ack, b"request");
    let id = endpoint.accept(80).expect("it is established");
    let connection = endpoint.get(id).expect("it lives");
    assert_eq!(connection.peek().0, b"request");
    assert_eq!(connection.stats(NOW + ms(40)).srtt, Some(ms(40)));
}

/// An acknowledgement out of nowhere opens nothing where no cookies were given out.
#[test]
fn cookies_are_good_only_while_they_are_needed() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 1).expect("the port is free");
    flood(&mut endpoint, NOW, 2);
    let answers = arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(9, Flags::SYN, 100, 0),
        &[],
    );
    let ack = header(9, Flags::ACK, 101, answers[0].1.seq.0.wrapping_add(1));
    let late = NOW + secs(129);
    let answers = arrive(&mut endpoint, late, peer(1), ack, &[]);
    assert!(answers[0].1.flags.rst(), "{answers:?}");
    assert_eq!(endpoint.accept(80), None);
}

/// The first SYN found the backlog full and drew a cookie, the repeated one found room and made a
/// record: the acknowledgement of either completes the handshake.
#[test]
fn a_cookie_counts_beside_a_record() {
    for first in [true, false] {
        let mut endpoint = endpoint();
        endpoint.listen(80, plain(), 1).expect("the port is free");
        let syn = || header(9, Flags::SYN, 100, 0);
        arrive(&mut endpoint, NOW, peer(2), syn(), &[]);
        let cookie = arrive(&mut endpoint, NOW, peer(1), syn(), &[])[0].1.seq;
        let taken_back = header(9, Flags::RST, 101, 0);
        arrive(&mut endpoint, NOW, peer(2), taken_back, &[]);
        let again = arrive(&mut endpoint, NOW + secs(1), peer(1), syn(), &[]);
        let record = again[0].1.seq;
        assert_ne!(cookie, record);
        let iss = if first { cookie } else { record };
        let ack = header(9, Flags::ACK, 101, iss.0.wrapping_add(1));
        let answers = arrive(&mut endpoint, NOW + secs(1), peer(1), ack, &[]);
        assert!(answers.is_empty(), "{answers:?}");
        assert!(endpoint.accept(80).is_some());
        assert_eq!(endpoint.len(), 1, "the record is gone");
    }
}

/// RFC 6298 §2.1, §5.5 and RFC 9293 §3.8.3: a record repeats its SYN-ACK with back-off, and so
/// often at most.
#[test]
fn the_answer_to_an_unproven_address_is_repeated_with_back_off() {
    let mut endpoint = endpoint();
    let config = Config {
        syn_retries: 3,
        ..plain()
    };
    endpoint.listen(80, config, 10).expect("the port is free");
    arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(9, Flags::SYN, 100, 0),
        &[],
    );
    let mut left = Vec::new();
    while let Some(deadline) = endpoint.poll_timeout() {
        endpoint.handle_timeout(deadline);
        for (_, header) in drain(&mut endpoint, deadline) {
            assert!(header.flags.syn() && header.ack == SeqNum(101));
            left.push(deadline.saturating_since(NOW).as_secs());
        }
    }
    assert_eq!(left, [1, 3, 7]);
    assert!(endpoint.is_empty());
}

/// RFC 5961, RFC 9293 §3.10.7.4 in SYN-RECEIVED: what does not belong there is answered sparingly,
/// and changes nothing.
#[test]
fn half_open_connections_withstand_blind_segments() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 10).expect("the port is free");
    let mut send = |header| arrive(&mut endpoint, NOW, peer(1), header, &[]);
    let iss = send(header(9, Flags::SYN, 100, 0))[0].1.seq;
    // A reset that does not fit.
    assert_eq!(send(header(9, Flags::RST, 150, 0))[0].1.flags, Flags::ACK);
    assert!(send(header(9, Flags::RST, 90, 0)).is_empty());
    // Another SYN; its sender, if there is one, resets what it learns of.
    let challenge = &send(header(9, Flags::SYN, 7_000_000, 0))[0].1;
    assert_eq!(
        (challenge.flags, challenge.seq, challenge.ack),
        (Flags::ACK, iss + 1, SeqNum(101))
    );
    // An acknowledgement of something else (RFC 9293: <SEQ=SEG.ACK><CTL=RST>).
    let reset = &send(header(9, Flags::ACK, 101, 5))[0].1;
    assert_eq!((reset.flags, reset.seq), (Flags::RST, SeqNum(5)));
    assert!(send(header(9, Flags::FIN, 101, 0)).is_empty());
    let answers: usize = (0..100)
        .map(|_| send(header(9, Flags::ACK, 101, 5)).len())
        .sum();
    assert!(answers <= 10, "{answers}");
    // It is still there.
    send(header(9, Flags::ACK, 101, iss.0.wrapping_add(1)));
    assert!(endpoint.accept(80).is_some());
}

/// A reset at exactly the expected number takes the SYN back.
#[test]
fn a_peer_that_gives_up_leaves_no_record() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 1).expect("the port is free");
    arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(9, Flags::SYN, 100, 0),
        &[],
    );
    arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(9, Flags::RST, 101, 0),
        &[],
    );
    assert_eq!((endpoint.len(), endpoint.poll_timeout()), (0, None));
    // Its place in the backlog is free again: no cookie is needed.
    arrive(
        &mut endpoint,
        NOW,
        peer(2),
        header(9, Flags::SYN, 100, 0),
        &[],
    );
    assert_eq!((endpoint.len(), endpoint.stats().cookies_sent), (1, 0));
}

/// The handshake is complete, and the application does not accept: the peer's data comes again, and
/// finds it complete once there is room.
#[test]
fn a_full_backlog_delays_the_end_of_a_handshake() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 2).expect("the port is free");
    let acks: Vec<Header> = (1..=3)
        .map(|port| {
            let syn = header(port, Flags::SYN, 100, 0);
            let iss = arrive(&mut endpoint, NOW, peer(1), syn, &[])[0].1.seq;
            header(port, Flags::ACK, 101, iss.0.wrapping_add(1))
        })
        .collect();
    for ack in &acks {
        arrive(&mut endpoint, NOW, peer(1), ack.clone(), &[]);
    }
    assert!(endpoint.accept(80).is_some());
    let answers = arrive(
        &mut endpoint,
        NOW + secs(1),
        peer(1),
        acks[2].clone(),
        b"again",
    );
    assert_eq!(answers.len(), 1, "its acknowledgement");
    assert!(endpoint.accept(80).is_some() && endpoint.accept(80).is_some());
}

/// RFC 5681 §3.1, RFC 6298 §5.7: a SYN that the network repeated says nothing of loss: the first
/// window and the timeout are those of any other connection, on both sides.
#[test]
fn a_duplicated_syn_is_not_a_loss() {
    for (forward, backward) in [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
        let model = |duplicate| Model {
            duplicate,
            delay: ms(20),
            ..Model::default()
        };
        let mut pair = Pair::open(1, &Config::default(), model(forward), model(backward));
        pair.establish(secs(1));
        for side in [Side::Client, Side::Server] {
            let stats = pair.connection(side).stats(pair.now());
            assert_eq!(stats.cwnd, 10 * u64::from(stats.mss), "{side:?}");
            assert!(stats.rto <= secs(1), "{side:?}: {:?}", stats.rto);
            assert_eq!(stats.retransmitted_segments, 0, "{side:?}");
        }
    }
}

/// RFC 6298 §5.7 for the side that listens: its SYN-ACK timed out.
#[test]
fn a_lost_syn_ack_makes_the_start_cautious() {
    let mut endpoint = endpoint();
    endpoint.listen(80, plain(), 10).expect("the port is free");
    let iss = arrive(
        &mut endpoint,
        NOW,
        peer(1),
        header(9, Flags::SYN, 100, 0),
        &[],
    )[0]
    .1
    .seq;
    endpoint.handle_timeout(NOW + secs(1));
    assert_eq!(drain(&mut endpoint, NOW + secs(1)).len(), 1);
    let ack = header(9, Flags::ACK, 101, iss.0.wrapping_add(1));
    arrive(&mut endpoint, NOW + ms(1010), peer(1), ack, &[]);
    let id = endpoint.accept(80).expect("it is established");
    let stats = endpoint
        .get(id)
        .map(|connection| connection.stats(NOW))
        .expect("it lives");
    assert_eq!((stats.cwnd, stats.rto), (536, secs(3)));
}

/// A listener on port 80 whose filter treats peers by the last number of their address: 1 is
/// accepted, 2 refused, 3 ignored.
fn choosy(backlog: usize) -> Endpoint {
    let mut endpoint = endpoint();
    let filter = SynFilter::new(|incoming: &Incoming| {
        assert_eq!((incoming.remote_port, incoming.local_port), (9, 80));
        match incoming.peer {
            from if from == peer(1) => Verdict::Accept,
            from if from == peer(2) => Verdict::Refuse,
            _ => Verdict::Ignore,
        }
    });
    endpoint
        .listen_filtered(80, Config::default(), backlog, Some(filter))
        .expect("the port is free");
    endpoint
}

#[test]
fn a_filter_refuses_a_syn_before_anything_is_kept_of_it() {
    let mut endpoint = choosy(16);
    let empty = endpoint.memory();
    let syn = || header(9, Flags::SYN, 100, 0);
    let refused = arrive(&mut endpoint, NOW, peer(2), syn(), &[]);
    assert!(refused[0].1.flags.rst());
    assert!(arrive(&mut endpoint, NOW, peer(3), syn(), &[]).is_empty());
    assert_eq!((endpoint.len(), endpoint.memory()), (0, empty));
    assert_eq!(endpoint.stats().syns_refused, 2);

    let answer = arrive(&mut endpoint, NOW, peer(1), syn(), &[])[0].1.clone();
    assert!(answer.flags.syn() && answer.flags.ack());
    let ack = header(9, Flags::ACK, 101, answer.seq.0.wrapping_add(1));
    arrive(&mut endpoint, NOW, peer(1), ack, &[]);
    assert!(endpoint.accept(80).is_some());
}

/// The filter sees SYNs that cookies answer too; an acknowledgement cannot get past it, for its
/// cookie is bound to an accepted address.
#[test]
fn a_filter_decides_before_a_cookie_is_made() {
    let mut endpoint = choosy(1);
    let syn = |port| header(port, Flags::SYN, 100, 0);
    arrive(&mut endpoint, NOW, peer(1), syn(9), &[]);
    assert_eq!(endpoint.len(), 1, "the backlog is full");
    let refused = arrive(&mut endpoint, NOW, peer(2), syn(9), &[]);
    assert!(refused[0].1.flags.rst());
    assert_eq!(endpoint.stats().cookies_sent, 0);
    let guess = header(10, Flags::ACK, 101, 4711);
    assert!(
        arrive(&mut endpoint, NOW, peer(2), guess, &[])[0]
            .1
            .flags
            .rst()
    );
    assert_eq!(endpoint.accept(80), None);
}
