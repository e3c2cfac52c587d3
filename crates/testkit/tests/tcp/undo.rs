//! Taking false alarms back: Eifel (RFC 3522, 4015), DSACK (RFC 3708), F-RTO (RFC 5682).

use tack_tcp::Config;
use tack_testkit::Peer;

use crate::settings::{ms, with_sack};
use crate::tack_peer::{TackPeer, stamp, tack};

fn full() -> Config {
    Config {
        timestamps: true,
        ..with_sack()
    }
}

/// RFC 3522: the acknowledgement after a timeout echoes the original's timestamp: the timeout was
/// false, the window comes back.
#[test]
fn eifel_undoes_a_false_timeout() {
    let mut peer = Peer::accepted(full(), "mss 1012,TS,sackOK");
    peer.run("write 5000\n+0 > . 1:5001(5000) ack 1 each 1000");
    let original = peer.newest_timestamp();
    let before = peer.connection().stats(peer.now());
    while peer.connection().stats(peer.now()).rto_count == 0 {
        peer.next_output();
    }
    assert!(peer.connection().stats(peer.now()).cwnd < before.cwnd);
    let clock = peer.peer_timestamp();
    peer.arrives(&format!(
        ". 1:1(0) ack 5001 <TS val {clock} ecr {original}>"
    ));
    let after = peer.connection().stats(peer.now());
    assert!(after.cwnd >= before.cwnd, "{before:?}\n{after:?}");
    assert_eq!(after.undone_episodes, 1);
}

/// RFC 3522 the other way round: the echo is that of the retransmission: the timeout was real.
#[test]
fn eifel_keeps_a_real_timeout() {
    let mut peer = Peer::accepted(full(), "mss 1012,TS,sackOK");
    peer.run("write 5000\n+0 > . 1:5001(5000) ack 1 each 1000");
    while peer.connection().stats(peer.now()).rto_count == 0 {
        peer.next_output();
    }
    peer.wait(ms(10));
    peer.take_output();
    let (clock, repair) = (peer.peer_timestamp(), peer.newest_timestamp());
    peer.arrives(&format!(". 1:1(0) ack 5001 <TS val {clock} ecr {repair}>"));
    assert_eq!(peer.connection().stats(peer.now()).undone_episodes, 0);
}

/// RFC 3708: every retransmission of the episode is reported as a duplicate: it was reordering.
#[test]
fn dsack_undoes_a_false_recovery() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
    peer.run("write 10000\n+0 > . 1:10001(10000) ack 1 each 1000\n+10ms > nothing");
    let before = peer.connection().stats(peer.now());
    let mut repairs = 0;
    for at in 2..=6 {
        repairs += peer
            .arrives(&format!(". 1:1(0) ack 1 <sack 1001:{}>", at * 1000 + 1))
            .len();
    }
    assert_eq!(repairs, 1);
    assert!(peer.connection().stats(peer.now()).ssthresh < before.ssthresh);
    // The late original arrives, then the repair: a duplicate.
    peer.run("+1ms < . 1:1(0) ack 6001\n+5ms < . 1:1(0) ack 6001 <sack 1:1001>");
    let after = peer.connection().stats(peer.now());
    assert_eq!(
        (after.undone_episodes, after.spurious_retransmissions),
        (1, 1)
    );
    assert!(after.cwnd >= before.cwnd, "{before:?}\n{after:?}");
}

/// RFC 3708 after the end of the episode: the report of the duplicate follows the acknowledgement
/// of the flight. It counts for a round trip, and only while nothing shows that the network makes
/// copies by itself.
#[test]
fn dsack_undoes_a_timeout_whose_flight_is_acknowledged() {
    let undone = |acknowledgements: &[&str]| {
        let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
        peer.run("write 30000\n+0 > . 1:10001(10000) ack 1 each 1000");
        let before = peer.connection().stats(peer.now());
        // The tail loss probe is new data, up to 11,001; the timeout repeats the first segment.
        while peer.connection().stats(peer.now()).rto_count == 0 {
            peer.next_output();
        }
        peer.wait(ms(20));
        peer.take_output();
        for acknowledgement in acknowledgements {
            peer.arrives(&format!(". 1:1(0) ack {acknowledgement}"));
        }
        let after = peer.connection().stats(peer.now());
        assert_eq!(after.undone_episodes == 1, after.cwnd >= before.cwnd);
        after.undone_episodes
    };
    let (flight, duplicate) = ("11001", "11001 <sack 1:1001>");
    assert_eq!(undone(&[flight, duplicate]), 1);
    assert_eq!(undone(&[flight]), 0);
    // What left only once arrived twice, too.
    assert_eq!(undone(&[flight, "11001 <sack 2001:3001>", duplicate]), 0);
    // What was sent by the end of the episode is acknowledged and more: too late.
    assert_eq!(undone(&[flight, "12001", "12001 <sack 1:1001>"]), 0);
}

/// The same with TACK, whose report says of the largest PKT.SEQ that its segment brought nothing
/// new.
#[test]
fn a_report_of_a_repeated_segment_undoes_a_timeout() {
    for (repeated, acknowledged_first) in [(true, false), (true, true), (false, true)] {
        let mut peer = TackPeer::new(tack());
        assert_eq!(peer.write(100_000).len(), 10);
        let before = peer.stats();
        // The tail loss probe is new data, with number 10.
        while peer.stats().rto_count == 0 {
            peer.peer.next_output();
        }
        peer.peer.wait(ms(60));
        let repair = peer.peer.take_output();
        assert!(repair.iter().all(|repair| stamp(repair).number == 11));
        let ack = 1 + 11 * 1448;
        if acknowledged_first {
            // On data, which carries no report.
            peer.send_data_with(ack, 1, 100, 0);
            assert_eq!(peer.stats().undone_episodes, 0);
        }
        let mut report = peer.report(11);
        report.repeated = repeated;
        peer.send_report(ack, report, &[]);
        let after = peer.stats();
        let context = format!("{repeated}, {acknowledged_first}");
        assert_eq!(after.undone_episodes, u64::from(repeated), "{context}");
        assert_eq!(after.cwnd >= before.cwnd, repeated, "{context}");
        assert_eq!(
            after.spurious_retransmissions,
            u64::from(repeated),
            "{context}"
        );
    }
}

/// Without timestamps, and without a second acknowledgement: the first one after a timeout comes
/// sooner after the retransmission than any round trip took, and so the original brought it about.
/// One that comes a round trip later may answer either.
#[test]
fn an_answer_sooner_than_any_round_trip_undoes_a_timeout() {
    // The handshake took 10 ms.
    for (answered, undone) in [(9, 1), (10, 0)] {
        let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
        peer.run("write 5000\n+0 > . 1:5001(5000) ack 1 each 1000");
        let before = peer.connection().stats(peer.now());
        while peer.connection().stats(peer.now()).rto_count == 0 {
            peer.next_output();
        }
        peer.wait(ms(answered));
        peer.take_output();
        peer.arrives(". 1:1(0) ack 5001");
        let after = peer.connection().stats(peer.now());
        assert_eq!(after.undone_episodes, undone, "after {answered} ms");
        assert_eq!(
            after.cwnd >= before.cwnd,
            undone == 1,
            "{before:?}\n{after:?}"
        );
    }
}

/// RFC 5682 §3 (SACK-enhanced F-RTO): after a timeout the first acknowledgement lets new data out,
/// and the second, advancing again over what was never repeated, shows that the timeout was false.
/// No go-back-N.
#[test]
fn f_rto_notices_a_delay_spike() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
    peer.run("write 30000\n+0 > . 1:10001(10000) ack 1 each 1000");
    let before = peer.connection().stats(peer.now());
    while peer.connection().stats(peer.now()).rto_count == 0 {
        peer.next_output();
    }
    peer.take_output();
    peer.wait(ms(20));
    // All acknowledgements come late, at once.
    let mut sent = Vec::new();
    for at in 1..=10 {
        sent.extend(peer.arrives(&format!(". 1:1(0) ack {}", at * 1000 + 1)));
    }
    let again = sent
        .iter()
        .filter(|output| output.header.seq.0 < 1_010_001)
        .count();
    assert_eq!(again, 0, "nothing that had arrived is repeated: {sent:?}");
    let after = peer.connection().stats(peer.now());
    assert_eq!(after.undone_episodes, 1);
    assert!(after.cwnd >= before.cwnd, "{before:?}\n{after:?}");
}

/// RFC 5682 §3: duplicate acknowledgements after the timeout say that the loss was real.
#[test]
fn f_rto_does_not_undo_a_real_loss() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
    peer.run("write 30000\n+0 > . 1:10001(10000) ack 1 each 1000");
    while peer.connection().stats(peer.now()).rto_count == 0 {
        peer.next_output();
    }
    peer.take_output();
    peer.wait(ms(10));
    // Only the repaired first segment arrives, then new data above the holes.
    let new = peer.arrives(". 1:1(0) ack 1001");
    let new: Vec<_> = new
        .iter()
        .map(|output| output.header.seq.0 - 1_000_000)
        .collect();
    assert_eq!(new, [11001, 12001], "two segments of new data (step 2b)");
    peer.wait(ms(10));
    peer.arrives(". 1:1(0) ack 1001 <sack 11001:12001>");
    let stats = peer.connection().stats(peer.now());
    assert_eq!(stats.undone_episodes, 0);
    assert!(stats.cwnd <= 5000, "{stats:?}");
}

/// A delay spike on a whole path: what was in flight arrives late; nothing is sent twice beyond the
/// first probe and repair, and the window survives.
#[test]
fn a_suspended_path_costs_little() {
    use tack_testkit::{Model, Pair, Side};
    let wire = || Model {
        queue: 100_000,
        ..Model::wire(ms(20), tack_base::Rate::from_bits_per_sec(50_000_000))
    };
    for &algorithm in crate::algorithms() {
        let mut pair = Pair::open(
            1,
            &Config {
                congestion: algorithm,
                ..Config::default()
            },
            wire(),
            wire(),
        );
        pair.establish(crate::settings::secs(1));
        pair.send(Side::Client, 20_000_000);
        pair.run_for(crate::settings::secs(1));
        // 400 ms of suspension: everything sent meanwhile comes out afterwards, in order.
        let resume = pair.now() + ms(400);
        pair.model(Side::Client).judge = Some(Box::new(move |_| tack_testkit::Fate::Hold(resume)));
        assert!(pair.run_until(
            crate::settings::secs(30),
            |pair| pair.app(Side::Server).read == 20_000_000
        ));
        let stats = pair.connection(Side::Client).stats(pair.now());
        assert!(stats.retransmitted_segments < 60, "{algorithm}: {stats:?}");
    }
}
