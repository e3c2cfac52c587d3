//! Accurate feedback of congestion marks (RFC 9768).
//!
//! The counter travels in AE (4), CWR (2) and ECE (1), and begins with 5: `eE`.

use tack_tcp::config::AccurateEcn;
use tack_tcp::{AckKind, Config};
use tack_testkit::{Model, Pair, Peer, Side};

use crate::settings::{ms, plain, secs};

fn config() -> Config {
    Config {
        ecn: true,
        accurate_ecn: AccurateEcn::Offer,
        ..plain()
    }
}

/// A connection with accurate feedback, opened by the peer.
fn accepted() -> Peer {
    let mut peer = Peer::listening(config());
    peer.run(
        "
        +0 < SEWe 0:0(0) win 65535 <mss 1000>
        +0 > S.W 0:0(0) ack 1 ecn not
        +10ms < .W 1:1(0) ack 1
        event Connected
        ",
    );
    peer
}

/// §3.1.1: what each answer to our SYN means for what leaves, and as what the third segment tells
/// that the SYN-ACK arrived.
#[test]
fn answers_to_our_syn() {
    for (answer, third, data, codepoint) in [
        ("S.W", ".W", ".eE", "ect0"),
        ("S.E", ".", ".", "ect0"),
        ("S.eE", ".", ".", "ect0"),
        ("S.", ".", ".", "not"),
        ("S.EWe", ".", ".", "not"),
        // Our SYN left as not capable, and arrived as something else: feedback, but no marks.
        ("S.EW", ".W", ".eE", "not"),
        ("S.e", ".W", ".eE", "not"),
        ("S.We", ".W", ".eE", "not"),
    ] {
        let mut peer = Peer::connecting(config());
        peer.run(&format!(
            "+0 > SEWe 0:0(0) ecn not
             +10ms < {answer} 0:0(0) ack 1 <mss 1000>
             +0 > {third} 1:1(0) ack 1 ecn not
             write 10
             +0 > P{data} 1:11(10) ack 1 ecn {codepoint}"
        ));
    }
    let mut peer = Peer::connecting(config());
    peer.run(
        "
        +0 > SEWe 0:0(0)
        +10ms < S.W 0:0(0) ack 1 ecn ce <mss 1000>
        +0 > .We 1:1(0) ack 1
        write 10
        +0 > P.We 1:11(10) ack 1
        ",
    );
}

/// §3.1.4: two SYNs ask; then the path may be what drops them. Whoever answers the third with
/// accurate feedback gets it, but no marks are provoked (§3.1.5).
#[test]
fn a_path_that_drops_the_request_gets_a_plain_syn() {
    let mut peer = Peer::connecting(config());
    peer.run(
        "
        +0 > SEWe 0:0(0)
        +1s > SEWe 0:0(0)
        +2s > S 0:0(0)
        +10ms < S.W 0:0(0) ack 1 <mss 1000>
        +0 > .W 1:1(0) ack 1
        write 10
        +0 > P.eE 1:11(10) ack 1 ecn not
        ",
    );
}

/// §3.2.2.1, table 4: what the third segment says, and whether we mark data afterwards.
#[test]
fn the_third_segment_tells_of_the_path() {
    for (third, codepoint) in [
        (".W", "ect0"),
        (".E", "ect0"),
        (".eE", "ect0"),
        (".EWe", "ect0"),
        (".", "not"),
        (".EW", "not"),
        (".e", "not"),
        (".We", "not"),
    ] {
        let mut peer = Peer::listening(config());
        peer.run(&format!(
            "+0 < SEWe 0:0(0) <mss 1000>
             +0 > S.W 0:0(0) ack 1
             +10ms < {third} 1:1(0) ack 1
             write 10
             +0 > P.eE 1:11(10) ack 1 ecn {codepoint}"
        ));
    }
    // As what the SYN arrived is said, too.
    for (codepoint, answer) in [("ect1", "S.EW"), ("ect0", "S.e"), ("ce", "S.We")] {
        let mut peer = Peer::listening(config());
        peer.run(&format!(
            "+0 < SEWe 0:0(0) ecn {codepoint} <mss 1000>\n+0 > {answer} 0:0(0) ack 1"
        ));
    }
}

/// §3.2.2.5.1: the first mark of a row, and each second one, is acknowledged at once; the count
/// goes on, and goes around.
#[test]
fn marks_are_counted() {
    let mut peer = accepted();
    peer.run(
        "
        +0    < .eE 1:1001(1000) ack 1 ecn ect0
        +0    > .eE 1:1(0) ack 1001
        +1ms  < .eE 1001:2001(1000) ack 1 ecn ce
        +0    > .We 1:1(0) ack 2001
        +1ms  < .eE 2001:3001(1000) ack 1 ecn ce
        +0    > .EWe 1:1(0) ack 3001
        +1ms  < .eE 3001:4001(1000) ack 1 ecn ce
        +0    > . 1:1(0) ack 4001
        +1ms  < .eE 4001:5001(1000) ack 1 ecn ect0
        +0    > . 1:1(0) ack 5001
        ",
    );
    assert_eq!(peer.connection().stats(peer.now()).ce_received, 3);
    let mut peer = Peer::listening(Config {
        ack: AckKind::delayed(16),
        ..config()
    });
    peer.run(
        "
        +0    < SEWe 0:0(0) <mss 1000>
        +0    > S.W 0:0(0) ack 1
        +10ms < .W 1:1(0) ack 1
        +0    < .eE 1:1001(1000) ack 1 ecn ce
        +0    > .We 1:1(0) ack 1001
        +0    < .eE 1001:2001(1000) ack 1 ecn ce
        +0    < .eE 2001:3001(1000) ack 1 ecn ce
        +0    > . 1:1(0) ack 3001
        ",
    );
}

/// Acknowledgements that arrive marked are counted, and acknowledged once for what left since: two
/// ends that do so would go on for ever. Where the SYN arrived marked the path marks everything,
/// and they are not.
#[test]
fn marked_acknowledgements_are_acknowledged_once() {
    let mut peer = accepted();
    peer.run(
        "
        write 6000
        +0    > .eE 1:6001(6000) ack 1 ecn ect0 each 1000
        +10ms < .eE 1:1(0) ack 1001 ecn ce
        +0    < .eE 1:1(0) ack 2001 ecn ce
        +0    < .eE 1:1(0) ack 3001 ecn ce
        +0    > . 6001:6001(0) ack 1 ecn not
        +0    < .eE 1:1(0) ack 4001 ecn ce
        +0    < .eE 1:1(0) ack 5001 ecn ce
        +0    < .eE 1:1(0) ack 6001 ecn ce
        +0    < .eE 1:1(0) ack 6001 ecn ce
        +10ms < .eE 1:1(0) ack 6001 ecn ce
        write 1000
        +0    > P.eE 6001:7001(1000) ack 1 ecn ect0
        ",
    );
    let mut peer = Peer::listening(config());
    peer.run(
        "
        +0    < SEWe 0:0(0) win 65535 ecn ce <mss 1000>
        +0    > S.We 0:0(0) ack 1
        +10ms < .W 1:1(0) ack 1
        write 4000
        +0    > .eE 1:4001(4000) ack 1 each 1000
        +10ms < .eE 1:1(0) ack 1001 ecn ce
        +0    < .eE 1:1(0) ack 2001 ecn ce
        +0    < .eE 1:1(0) ack 3001 ecn ce
        +10ms < .eE 1:1(0) ack 4001 ecn ce
        write 1000
        +0    > P.E 4001:5001(1000) ack 1
        ",
    );
}

/// Each acknowledgement tells of its marks, and the window is reduced once a round trip.
#[test]
fn the_sender_counts_and_reduces_once_a_window() {
    let mut peer = accepted();
    peer.run("write 10000\n+0 > .eE 1:10001(10000) ack 1 ecn ect0 each 1000");
    peer.run("+10ms < .EWe 1:1(0) ack 2001");
    let once = peer.connection().stats(peer.now());
    assert_eq!((once.ce_reported, once.ssthresh), (2, 5000));
    peer.run("+0 < . 1:1(0) ack 5001\n+0 < .W 1:1(0) ack 10001");
    let still = peer.connection().stats(peer.now());
    assert_eq!((still.ce_reported, still.ssthresh), (5, 5000));
    assert_eq!(still.retransmitted_segments, 0);
    // No CWR flag answers: the three bits are the counter.
    peer.run("write 1000\n+0 > P.eE 10001:11001(1000) ack 1 ecn ect0");
    // An old acknowledgement means nothing.
    peer.run("+1ms < .E 1:1(0) ack 9001\n+1ms < .EW 1:1(0) ack 11001");
    let stats = peer.connection().stats(peer.now());
    assert_eq!(stats.ce_reported, 6);
    assert!(stats.ssthresh < 5000, "another window, another mark");
}

/// §3.2.2.4: zeros where the first counter should be: a middlebox clears the flags. Data is not
/// marked any more, and what the field says means nothing.
#[test]
fn a_middlebox_that_clears_the_counter_is_noticed() {
    let mut peer = accepted();
    peer.run(
        "
        write 1000
        +0    > P.eE 1:1001(1000) ack 1 ecn ect0
        +10ms < . 1:1(0) ack 1001
        write 1000
        +0    > P.eE 1001:2001(1000) ack 1 ecn not
        +10ms < .EW 1:1(0) ack 2001
        ",
    );
    let stats = peer.connection().stats(peer.now());
    assert_eq!((stats.ce_reported, stats.ssthresh), (0, u64::MAX));
}

/// The same where the first acknowledgement answers more data than three marks need, and in the
/// acknowledgement of the handshake (§3.2.2.1, table 4).
#[test]
fn a_middlebox_that_clears_the_counter_is_noticed_in_bulk() {
    let mut peer = accepted();
    peer.run(
        "
        write 10000
        +0    > .eE 1:10001(10000) ack 1 ecn ect0 each 1000
        +10ms < . 1:1(0) ack 10001
        write 1000
        +0    > P.eE 10001:11001(1000) ack 1 ecn not
        +10ms < .EW 1:1(0) ack 11001
        ",
    );
    let stats = peer.connection().stats(peer.now());
    assert_eq!((stats.ce_reported, stats.ssthresh), (0, u64::MAX));
    let mut peer = Peer::listening(config());
    peer.run(
        "
        +0    < SEWe 0:0(0) win 65535 <mss 1000>
        +0    > S.W 0:0(0) ack 1
        +10ms < . 1:1(0) ack 1
        write 1000
        +0    > P.eE 1:1001(1000) ack 1 ecn not
        +10ms < .E 1:1(0) ack 1001
        ",
    );
    let stats = peer.connection().stats(peer.now());
    assert_eq!((stats.ce_reported, stats.ssthresh), (0, u64::MAX));
}

/// §3.2.2.3: a path that marks each packet is not congested all the time. After four rounds the
/// sender does without ECN; after eight at the smallest window, with classic feedback or where the
/// path marks nearly each packet.
#[test]
fn a_path_that_marks_everything_does_not_hold_the_sender_back() {
    let ends = |accurate_ecn, mark| {
        let rate = tack_base::Rate::from_bits_per_sec(50_000_000);
        let forward = Model {
            mark,
            ..Model::wire(ms(10), rate)
        };
        let config = Config {
            ack: AckKind::delayed(2),
            accurate_ecn,
            congestion: tack_tcp::Algorithm::CUBIC,
            ..Config::default()
        };
        let mut pair = Pair::open(1, &config, forward, Model::default());
        pair.establish(secs(5));
        pair.send(Side::Client, 1_000_000);
        let begin = pair.now();
        let done = pair.run_until(secs(300), |pair| pair.app(Side::Server).read == 1_000_000);
        assert!(done, "{accurate_ecn:?}");
        let marks = pair.connection(Side::Server).stats(pair.now()).ce_received;
        (pair.now().saturating_since(begin).as_secs_f64(), marks)
    };
    let (unmarked, _) = ends(AccurateEcn::Offer, 0.0);
    for feedback in [AccurateEcn::Offer, AccurateEcn::Off] {
        for mark in [1.0, 0.98] {
            let (marked, marks) = ends(feedback, mark);
            assert!(
                marked < 6.0 * unmarked,
                "{feedback:?}, {mark}: {marked} s, without marks {unmarked} s"
            );
            assert!((4..100).contains(&marks), "{feedback:?}, {mark}: {marks}");
        }
    }
}

/// Two ends over a path that marks and loses: the counts agree, and no controller collapses.
#[test]
fn a_path_that_marks_and_loses() {
    for congestion in [tack_tcp::Algorithm::default(), tack_tcp::Algorithm::CUBIC] {
        let forward = || Model {
            mark: 0.02,
            loss: 0.005,
            ..Model::wire(ms(10), tack_base::Rate::from_bits_per_sec(50_000_000))
        };
        let config = |accurate_ecn| Config {
            ack: AckKind::delayed(2),
            accurate_ecn,
            congestion,
            ..Config::default()
        };
        let ends = |accurate_ecn| {
            let back = Model {
                loss: 0.02,
                ..Model::default()
            };
            let mut pair = Pair::open(1, &config(accurate_ecn), forward(), back);
            pair.establish(secs(5));
            pair.send(Side::Client, 1_000_000);
            let done = pair.run_until(secs(60), |pair| pair.app(Side::Server).read == 1_000_000);
            assert!(done, "{congestion}");
            let stats =
                [Side::Client, Side::Server].map(|side| pair.connection(side).stats(pair.now()));
            (pair.now(), stats)
        };
        let (classic, _) = ends(AccurateEcn::Off);
        let (accurate, [sender, receiver]) = ends(AccurateEcn::Offer);
        assert!(receiver.ce_received > 10, "{congestion}: {receiver:?}");
        // The last ones may be on their way; a count over lost acknowledgements may be too high.
        let (low, high) = (receiver.ce_received - 5, receiver.ce_received * 3 / 2);
        assert!(
            (low..=high).contains(&sender.ce_reported),
            "{congestion}: {sender:?} {receiver:?}"
        );
        let ratio = accurate.as_nanos() as f64 / classic.as_nanos() as f64;
        assert!((0.5..1.5).contains(&ratio), "{congestion}: {ratio}");
    }
}
