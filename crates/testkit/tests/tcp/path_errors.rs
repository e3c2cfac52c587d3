//! What ICMP says of segments (RFC 1122 §4.2.3.9, RFC 5927), and paths that drop SYNs with an
//! option that they do not know.

use std::net::SocketAddr;
use std::time::Duration;

use tack_base::Instant;
use tack_tcp::{CloseReason, Config, ConnectionId, Endpoint, PathError, State};
use tack_wire::{Flags, Header, SackBlocks, SeqNum, TcpOptions};

use crate::endpoints::{NOW, arrive, drain, endpoint, peer};

/// A connection in SYN-SENT from a port of `endpoint`, and its SYN.
fn dial(endpoint: &mut Endpoint, now: Instant, to: SocketAddr) -> (ConnectionId, Header) {
    let id = endpoint
        .connect(now, to, 80, 0, &Config::default())
        .expect("there are free ports");
    let mut sent = drain(endpoint, now);
    assert_eq!(sent.len(), 1, "a SYN");
    (id, sent.remove(0).1)
}

/// An established connection, and its SYN.
fn opened(endpoint: &mut Endpoint, hard_errors: bool) -> (ConnectionId, Header) {
    let config = Config {
        hard_errors,
        ..Config::default()
    };
    let dialed = endpoint.connect(NOW, peer(1), 80, 0, &config);
    let id = dialed.expect("there are free ports");
    let syn = drain(endpoint, NOW).remove(0).1;
    arrive(endpoint, NOW, peer(1), syn_ack(&syn), &[]);
    (id, syn)
}

/// 4,000 bytes leave.
fn send(endpoint: &mut Endpoint, id: ConnectionId) {
    let connection = endpoint.get_mut(id).expect("it exists");
    connection.write(NOW, &[7; 4000]).unwrap();
    drain(endpoint, NOW);
}

/// The SYN-ACK of a peer that knows SACK and no more.
fn syn_ack(syn: &Header) -> Header {
    Header {
        src_port: syn.dst_port,
        dst_port: syn.src_port,
        seq: SeqNum(500),
        ack: syn.seq + 1,
        flags: Flags::SYN.with(Flags::ACK),
        window: 60_000,
        options: TcpOptions {
            mss: Some(1460),
            sack_permitted: true,
            sack: SackBlocks::default(),
            ..TcpOptions::default()
        },
        ..Header::default()
    }
}

fn told(endpoint: &mut Endpoint, id: ConnectionId, seq: SeqNum, error: PathError) -> bool {
    let tuple = endpoint.tuple(id).expect("it exists");
    endpoint.handle_path_error(NOW, &tuple, seq, error)
}

#[test]
fn an_unreachable_peer_ends_an_attempt_to_connect() {
    for error in [PathError::Unreachable, PathError::TimeExceeded] {
        let mut endpoint = endpoint();
        let (id, syn) = dial(&mut endpoint, NOW, peer(1));
        for forged in [
            syn.seq + 1,
            SeqNum(syn.seq.0.wrapping_sub(1)),
            syn.seq + (1 << 31),
        ] {
            assert!(!told(&mut endpoint, id, forged, error));
            assert_eq!(endpoint.get(id).unwrap().state(), State::SynSent);
        }
        assert!(told(&mut endpoint, id, syn.seq, error));
        let reason = endpoint.get(id).unwrap().close_reason();
        assert_eq!(reason, Some(CloseReason::Unreachable));
        let stats = endpoint.stats();
        assert_eq!((stats.path_errors, stats.path_errors_ignored), (1, 3));
    }
}

/// RFC 5927 §5.2: once there was an answer, timers decide.
#[test]
fn an_established_connection_outlives_unreachability_and_believes_sizes_in_flight() {
    let mut endpoint = endpoint();
    let (id, syn) = dial(&mut endpoint, NOW, peer(1));
    arrive(&mut endpoint, NOW, peer(1), syn_ack(&syn), &[]);
    let first = syn.seq + 1;
    // Nothing is under way.
    let narrow = PathError::TooBig { mtu: 1000 };
    assert!(!told(&mut endpoint, id, first, narrow));
    let data = [7; 4000];
    assert_eq!(endpoint.get_mut(id).unwrap().write(NOW, &data), Ok(4000));
    drain(&mut endpoint, NOW);
    assert!(told(&mut endpoint, id, first, PathError::Unreachable));
    assert_eq!(endpoint.get(id).unwrap().state(), State::Established);
    // Behind what left, and before it.
    assert!(!told(&mut endpoint, id, first + 4000, narrow));
    assert!(!told(&mut endpoint, id, syn.seq, narrow));
    assert_eq!(endpoint.get(id).unwrap().stats(NOW).mss, 1460);
    assert!(told(&mut endpoint, id, first, narrow));
    assert_eq!(endpoint.get(id).unwrap().stats(NOW).mss, 960);
    // A connection that there is not.
    let mut tuple = endpoint.tuple(id).unwrap();
    tuple.remote_port += 1;
    assert!(!endpoint.handle_path_error(NOW, &tuple, first, narrow));
}

/// RFC 9293 §3.9.2.2, where the application wants it: a closed port ends the connection whose
/// segment is quoted, and no other error does.
#[test]
fn a_closed_port_ends_an_established_connection_that_asked_for_it() {
    for hard_errors in [false, true] {
        let mut endpoint = endpoint();
        let (id, syn) = opened(&mut endpoint, hard_errors);
        let first = syn.seq + 1;
        let closed = PathError::PortUnreachable;
        assert!(!told(&mut endpoint, id, first, closed), "nothing is sent");
        send(&mut endpoint, id);
        for forged in [syn.seq, first + 4000, first + (1 << 31)] {
            assert!(!told(&mut endpoint, id, forged, closed));
        }
        for soft in [PathError::Unreachable, PathError::TimeExceeded] {
            assert!(told(&mut endpoint, id, first, soft));
        }
        assert_eq!(endpoint.get(id).unwrap().state(), State::Established);
        assert!(told(&mut endpoint, id, first, closed));
        let reason = endpoint.get(id).unwrap().close_reason();
        assert_eq!(reason, hard_errors.then_some(CloseReason::Unreachable));
    }
}

/// A route that is missing ends an attempt at once, and an established connection that asked for it
/// once it has been missing for a second.
#[test]
fn no_route_for_a_second_ends_an_established_connection_that_asked_for_it() {
    for hard_errors in [false, true] {
        let mut endpoint = endpoint();
        let (id, syn) = opened(&mut endpoint, hard_errors);
        send(&mut endpoint, id);
        let tuple = endpoint.tuple(id).unwrap();
        let mut fails_at = |millis: u64, seq| {
            let now = NOW + Duration::from_millis(millis);
            assert!(endpoint.handle_path_error(now, &tuple, seq, PathError::NoRoute));
            endpoint.get(id).unwrap().close_reason()
        };
        // The first failure comes long after the peer was heard.
        for millis in [5_000, 5_999] {
            assert_eq!(fails_at(millis, syn.seq + 1), None);
        }
        let reason = fails_at(6_000, syn.seq + 1);
        assert_eq!(reason, hard_errors.then_some(CloseReason::NoRoute));
    }
    let mut endpoint = endpoint();
    let (id, syn) = dial(&mut endpoint, NOW, peer(1));
    assert!(told(&mut endpoint, id, syn.seq, PathError::NoRoute));
    let reason = endpoint.get(id).unwrap().close_reason();
    assert_eq!(reason, Some(CloseReason::NoRoute));
}

/// Where the error was forged, or the route is back, the peer must not take it for the end of the
/// application, which may connect again.
#[test]
fn a_peer_that_is_alive_hears_of_the_end_when_the_application_lets_go() {
    let mut endpoint = endpoint();
    let (id, syn) = opened(&mut endpoint, true);
    send(&mut endpoint, id);
    let closed = PathError::PortUnreachable;
    assert!(told(&mut endpoint, id, syn.seq + 1, closed));
    drain(&mut endpoint, NOW);
    let data = Header {
        ack: syn.seq + 1,
        seq: SeqNum(501),
        flags: Flags::ACK,
        ..syn_ack(&syn)
    };
    let answers = arrive(&mut endpoint, NOW, peer(1), data.clone(), b"more");
    assert_eq!(answers.len(), 0);
    endpoint.release(NOW, id);
    drain(&mut endpoint, NOW);
    let answers = arrive(&mut endpoint, NOW, peer(1), data, b"more");
    assert!(
        answers.len() == 1 && answers[0].1.flags.rst(),
        "{answers:?}"
    );
}

/// What is heard of the peer meanwhile came over a route.
#[test]
fn a_route_that_comes_and_goes_ends_nothing() {
    let mut endpoint = endpoint();
    let (id, syn) = opened(&mut endpoint, true);
    send(&mut endpoint, id);
    let tuple = endpoint.tuple(id).unwrap();
    for tenths in 0..50 {
        let now = NOW + Duration::from_millis(100 * tenths);
        if tenths % 9 == 8 {
            let ack = Header {
                ack: syn.seq + 1,
                seq: SeqNum(501),
                flags: Flags::ACK,
                ..syn_ack(&syn)
            };
            arrive(&mut endpoint, now, peer(1), ack, &[]);
        }
        endpoint.handle_path_error(now, &tuple, syn.seq + 1, PathError::NoRoute);
        assert_eq!(endpoint.get(id).unwrap().close_reason(), None, "{tenths}");
    }
}

/// Lets the retransmission timer of a SYN run out, and returns the next one.
fn next_syn(endpoint: &mut Endpoint) -> (Instant, Header) {
    let at = endpoint.poll_timeout().expect("a timer is armed");
    endpoint.handle_timeout(at);
    let mut sent = drain(endpoint, at);
    assert_eq!(sent.len(), 1, "a SYN");
    (at, sent.remove(0).1)
}

/// The third SYN comes without the option, and the next connections to this peer begin that way.
#[test]
fn a_path_that_drops_the_option_is_remembered() {
    let mut endpoint = endpoint();
    let (id, first) = dial(&mut endpoint, NOW, peer(1));
    assert!(first.options.tack.is_some());
    let (_, second) = next_syn(&mut endpoint);
    assert!(second.options.tack.is_some());
    let (at, third) = next_syn(&mut endpoint);
    assert!(third.options.tack.is_none());
    arrive(&mut endpoint, at, peer(1), syn_ack(&third), &[]);
    assert_eq!(endpoint.get(id).unwrap().state(), State::Established);

    let offers = |endpoint: &mut Endpoint, now, to| {
        let (_, syn) = dial(endpoint, now, to);
        syn.options.tack.is_some()
    };
    assert!(!offers(&mut endpoint, at, peer(1)));
    assert!(offers(&mut endpoint, at, peer(2)), "another peer");
    let later = at + Duration::from_secs(601);
    assert!(offers(&mut endpoint, later, peer(1)), "it is forgotten");
}

/// A peer that answers the first SYN and does not know the option is not such a path.
#[test]
fn a_peer_that_ignores_the_option_gets_it_again() {
    let mut endpoint = endpoint();
    let (id, syn) = dial(&mut endpoint, NOW, peer(1));
    arrive(&mut endpoint, NOW, peer(1), syn_ack(&syn), &[]);
    assert_eq!(endpoint.get(id).unwrap().state(), State::Established);
    let (_, syn) = dial(&mut endpoint, NOW, peer(1));
    assert!(syn.options.tack.is_some());
}
