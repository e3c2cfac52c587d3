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

/// One segment leaves with `flags` and `codepoint`, and `answer` acknowledges all.
fn round(peer: &mut Peer, at: &mut u64, (flags, codepoint): (&str, &str), answer: &str) {
    let (start, end) = (*at, *at + 1000);
    peer.run(&format!(
        "write 1000
         +0    > {flags} {start}:{end}(1000) ack 1 ecn {codepoint}
         +10ms < {answer} 1:1(0) ack {end}"
    ));
    *at = end;
}

/// A connection whose first ten segments were marked: its window is five, and CWR is due.
fn marked() -> (Peer, u64) {
    let mut peer = peer(config(), "mss 1000");
    peer.run(
        "write 10000\n+0 > . 1:10001(10000) ack 1 ecn ect0 each 1000\n+10ms < .E 1:1(0) ack 10001",
    );
    (peer, 10_001)
}

/// An echo that goes on at the smallest window, however often it is confirmed: data is not marked
/// as capable any more. It still goes on, so CWR does not arrive: it is ignored, and the window
/// is the one after the first mark.
#[test]
fn an_echo_that_never_ends_is_ignored() {
    let (mut peer, mut at) = marked();
    for _ in 0..8 {
        round(&mut peer, &mut at, (".W", "ect0"), ".E");
    }
    round(&mut peer, &mut at, (".W", "not"), ".E");
    let held = peer.connection().stats(peer.now());
    assert!(held.cwnd <= 4000, "{}", held.cwnd);
    round(&mut peer, &mut at, (".W", "not"), ".E");
    let free = peer.connection().stats(peer.now());
    assert!(free.cwnd >= 5000 && free.ssthresh == 5000, "{free:?}");
    for _ in 0..3 {
        round(&mut peer, &mut at, (".", "not"), ".E");
    }
    let still = peer.connection().stats(peer.now());
    assert!(
        still.cwnd >= free.cwnd && still.ssthresh == 5000,
        "{still:?}"
    );
}

/// The same, where the echo ends with what may be marked: the path marks everything. The window
/// stays where the marks had it, and data stays not capable.
#[test]
fn a_path_that_marks_everything_gets_nothing_to_mark() {
    let (mut peer, mut at) = marked();
    for _ in 0..8 {
        round(&mut peer, &mut at, (".W", "ect0"), ".E");
    }
    round(&mut peer, &mut at, (".W", "not"), ".");
    for _ in 0..3 {
        round(&mut peer, &mut at, (".", "not"), ".");
    }
    let stats = peer.connection().stats(peer.now());
    assert!(stats.ssthresh == 2000, "{stats:?}");
}

/// One acknowledgement without the echo is enough for marks to mean congestion.
#[test]
fn marks_that_end_are_believed() {
    let (mut peer, mut at) = marked();
    for _ in 0..4 {
        for _ in 0..6 {
            round(&mut peer, &mut at, (".W", "ect0"), ".E");
        }
        round(&mut peer, &mut at, (".W", "ect0"), ".");
        round(&mut peer, &mut at, (".", "ect0"), ".E");
    }
}

/// A loss that reduced the window meanwhile stands.
#[test]
fn what_a_timeout_reduced_is_not_restored() {
    let (mut peer, mut at) = marked();
    for _ in 0..8 {
        round(&mut peer, &mut at, (".W", "ect0"), ".E");
    }
    let (start, end) = (at, at + 1000);
    peer.run(&format!(
        "write 1000
         +0    > .W {start}:{end}(1000) ack 1 ecn not
         *     > . {start}:{end}(1000) ack 1 ecn not
         +10ms < .E 1:1(0) ack {end}"
    ));
    at = end;
    for _ in 0..2 {
        round(&mut peer, &mut at, (".W", "not"), ".E");
    }
    round(&mut peer, &mut at, (".", "not"), ".E");
    let stats = peer.connection().stats(peer.now());
    assert_eq!(stats.ssthresh, 2000);
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
