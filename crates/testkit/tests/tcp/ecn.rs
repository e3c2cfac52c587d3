//! Explicit congestion notification (RFC 3168).

use tack_tcp::Config;
use tack_tcp::config::AccurateEcn;
use tack_testkit::{Model, Pair, Peer, Side};

use crate::settings::{ms, plain, secs, with_sack};

fn config() -> Config {
    Config {
        ecn: true,
        ..plain()
    }
}

/// A connection that agreed on ECN, opened by the peer.
fn peer(config: Config, options: &str) -> Peer {
    let mut peer = Peer::listening(config);
    peer.run(&format!(
        "+0 < SEW 0:0(0) win 65535 <{options}>
         +0 > S.E 0:0(0) ack 1 ecn not
         +10ms < . 1:1(0) ack 1
         event Connected"
    ));
    peer
}

/// §6.1.1: ECE and CWR on the SYN ask, ECE alone on the SYN-ACK agrees; anything else does not.
#[test]
fn negotiation() {
    for (answer, codepoint) in [
        ("S.E", "ect0"),
        ("S.", "not"),
        ("S.EW", "not"),
        ("S.W", "not"),
    ] {
        let mut peer = Peer::connecting(config());
        peer.run(&format!(
            "+0 > SEW 0:0(0) ecn not
             +10ms < {answer} 0:0(0) ack 1 <mss 1000>
             +0 > . 1:1(0) ack 1 ecn not
             write 10
             +0 > P. 1:11(10) ack 1 ecn {codepoint}"
        ));
    }
    let only_classic = Config {
        accurate_ecn: AccurateEcn::Off,
        ..config()
    };
    for (request, answer) in [("SEW", "S.E"), ("S", "S."), ("SE", "S."), ("SW", "S.")] {
        let mut peer = Peer::listening(only_classic.clone());
        peer.run(&format!(
            "+0 < {request} 0:0(0) <mss 1000>\n+0 > {answer} 0:0(0) ack 1 ecn not"
        ));
    }
    let mut peer = Peer::listening(plain());
    peer.run("+0 < SEW 0:0(0) <mss 1000>\n+0 > S. 0:0(0) ack 1");
}

/// §6.1.3: after a mark every acknowledgement carries ECE, until CWR comes.
#[test]
fn marks_are_echoed_until_confirmed() {
    let mut peer = peer(config(), "mss 1000");
    peer.run(
        "
        +0    < . 1:1001(1000) ack 1 ecn ect0
        +0    > . 1:1(0) ack 1001 ecn not
        +1ms  < . 1001:2001(1000) ack 1 ecn ce
        +0    > .E 1:1(0) ack 2001 ecn not
        +1ms  < . 2001:3001(1000) ack 1 ecn ect0
        +0    > .E 1:1(0) ack 3001
        +1ms  < .W 3001:4001(1000) ack 1 ecn ect0
        +0    > . 1:1(0) ack 4001
        +1ms  < .W 4001:5001(1000) ack 1 ecn ce
        +0    > .E 1:1(0) ack 5001
        ",
    );
    assert_eq!(peer.connection().stats(peer.now()).ce_received, 2);
}

/// §6.1.3: a mark is not held back by the delayed acknowledgement.
#[test]
fn marks_are_reported_at_once() {
    let mut peer = peer(
        Config {
            ack: tack_tcp::AckKind::delayed(16),
            ..config()
        },
        "mss 1000",
    );
    peer.run("+0 < . 1:1001(1000) ack 1 ecn ce\n+0 > .E 1:1(0) ack 1001");
}

/// §6.1.2: an echo halves the window, once per window of data, and the next new segment says so
/// (CWR).
#[test]
fn echoes_reduce_once_a_window() {
    let mut peer = peer(config(), "mss 1000");
    peer.run(
        "write 10000\n+0 > . 1:10001(10000) ack 1 ecn ect0 each 1000\n+10ms < .E 1:1(0) ack 1001",
    );
    let once = peer.connection().stats(peer.now());
    assert_eq!((once.ssthresh, once.cwnd), (5000, 5000));
    peer.run("+0 < .E 1:1(0) ack 5001\n+0 < .E 1:1(0) ack 10001");
    let still = peer.connection().stats(peer.now());
    assert_eq!(still.ssthresh, 5000);
    assert_eq!(still.retransmitted_segments, 0);
    peer.run(
        "
        write 2000
        +0    > .W 10001:11001(1000) ack 1 ecn ect0
        +0    > . 11001:12001(1000) ack 1 ecn ect0
        +10ms < .E 1:1(0) ack 12001
        ",
    );
    assert!(
        peer.connection().stats(peer.now()).ssthresh < 5000,
        "another window, another mark"
    );
}

/// §6.1.5: retransmissions are not ECN-capable; §6.1.4, §6.1.6: neither are bare acknowledgements
/// and window probes.
#[test]
fn retransmissions_are_not_marked_capable() {
    let mut peer = peer(
        Config {
            ecn: true,
            ..with_sack()
        },
        "mss 1000,sackOK",
    );
    peer.run("write 1000\n+0 > . 1:1001(1000) ack 1 ecn ect0\n* > . 1:1001(1000) ack 1 ecn not");
    peer.run("+10ms < . 1:1(0) ack 1001 win 0\nwrite 1000");
    let probe = peer.next_output();
    assert_eq!(probe.ecn, tack_wire::Ecn::NotEct);
}

/// Marks without agreement mean nothing.
#[test]
fn marks_without_agreement_are_ignored() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run("+0 < . 1:101(100) ack 1 ecn ce\n+0 > . 1:1(0) ack 101\nwrite 5000\n+0 > . 1:5001(5000) ack 101 each 1000\n+10ms < .E 101:101(0) ack 5001");
    assert_eq!(peer.connection().stats(peer.now()).ssthresh, u64::MAX);
}

/// A marking path instead of a dropping one: the transfer keeps its pace without a single
/// retransmission.
#[test]
fn a_marking_path_needs_no_loss() {
    for congestion in tack_tcp::Algorithm::ALL {
        let forward = Model {
            mark: 0.01,
            ..Model::wire(ms(10), tack_base::Rate::from_bits_per_sec(50_000_000))
        };
        let mut pair = Pair::open(
            1,
            &Config {
                congestion,
                ..Config::default()
            },
            forward,
            Model::default(),
        );
        pair.establish(secs(1));
        pair.send(Side::Client, 2_000_000);
        assert!(
            pair.run_until(secs(60), |pair| pair.app(Side::Server).read == 2_000_000),
            "{congestion}"
        );
        let (sender, receiver) = (
            pair.connection(Side::Client).stats(pair.now()),
            pair.connection(Side::Server).stats(pair.now()),
        );
        assert!(
            receiver.ce_received > 0 && sender.retransmitted_segments == 0,
            "{congestion}: {sender:?}"
        );
    }
}
