//! The retransmission timer (RFC 6298), to the nanosecond.

use std::time::Duration;

use tack_tcp::Config;
use tack_testkit::Peer;
use tack_wire::tack::{LossReport, TackOption};

use crate::settings::{ms, plain, secs};
use crate::tack_peer::{RTT_MS, TackPeer, stamp, tack};

/// RTOs straight from the formula: the floor is out of the way.
fn config() -> Config {
    Config {
        min_rto: Duration::from_micros(1),
        ..plain()
    }
}

fn exchange(peer: &mut Peer, first: u32, rtt: Duration) {
    peer.run(&format!(
        "write 100\n+0 > P. {first}:{}(100) ack 1",
        first + 100
    ));
    peer.wait(rtt);
    peer.run(&format!("+0 < . 1:1(0) ack {}", first + 100));
}

/// RFC 6298 §2.1: before any sample the RTO is 1 s.
#[test]
fn initial_rto() {
    let peer = Peer::connecting(plain());
    assert_eq!(peer.connection().stats(peer.now()).rto, secs(1));
}

/// RFC 6298 §2.2, §2.3: SRTT = R, RTTVAR = R/2; then RTTVAR = 3/4 RTTVAR + 1/4 |SRTT − R'|, SRTT =
/// 7/8 SRTT + 1/8 R'; RTO = SRTT
/// + 4 RTTVAR. One sample a round trip, as the RFC has it.
#[test]
fn estimator_follows_the_formula() {
    let mut peer = Peer::accepted(config(), "mss 1000");
    let stats = peer.connection().stats(peer.now());
    assert_eq!(
        (stats.srtt, stats.rttvar, stats.rto),
        (Some(ms(10)), Some(ms(5)), ms(30))
    );
    // A larger sample: RTTVAR = 3/4 · 5 + 1/4 · |10 − 26| = 7.75 ms, SRTT = 7/8 · 10 + 1/8 · 26 =
    // 12 ms.
    exchange(&mut peer, 1, ms(26));
    let stats = peer.connection().stats(peer.now());
    assert_eq!(
        (stats.srtt, stats.rttvar),
        (Some(ms(12)), Some(Duration::from_micros(7750)))
    );
    assert_eq!(stats.rto, ms(12) + 4 * Duration::from_micros(7750));
    // A steady path: both converge.
    let mut first = 101;
    for _ in 0..60 {
        exchange(&mut peer, first, ms(20));
        first += 100;
    }
    let stats = peer.connection().stats(peer.now());
    assert!(
        stats
            .srtt
            .is_some_and(|srtt| srtt.abs_diff(ms(20)) < Duration::from_micros(100)),
        "{stats:?}"
    );
    assert!(
        stats.rttvar.is_some_and(|rttvar| rttvar < ms(1)),
        "{stats:?}"
    );
}

/// RFC 6298 §2.4, §2.5: floor and ceiling.
#[test]
fn floor_and_ceiling() {
    let mut peer = Peer::accepted(
        Config {
            min_rto: secs(1),
            ..plain()
        },
        "mss 1000",
    );
    let rto = peer.connection().stats(peer.now()).rto;
    assert!((secs(1)..=ms(1010)).contains(&rto), "{rto:?}");
    exchange(&mut peer, 1, ms(10));
    let mut peer = Peer::accepted(
        Config {
            max_rto: secs(2),
            user_timeout: Some(secs(60)),
            ..plain()
        },
        "mss 1000",
    );
    peer.run("write 100\n+0 > P. 1:101(100) ack 1");
    let mut times = Vec::new();
    for _ in 0..8 {
        times.push(peer.next_output().at);
    }
    assert!(
        times
            .windows(2)
            .skip(3)
            .all(|pair| pair[1] - pair[0] <= secs(2)),
        "{times:?}"
    );
}

/// RFC 6298 §5.4 to §5.6: the earliest unacknowledged segment goes first, and the timeout doubles
/// each time.
#[test]
fn timeouts_double() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run("write 3000\n+0 > . 1:3001(3000) ack 1 each 1000");
    let rto = peer.connection().stats(peer.now()).rto;
    assert_eq!(rto, ms(210), "10 ms and the floor of 200 ms");
    // A tail loss probe may come before (RFC 8985 §7); the timer runs from its departure.
    let mut outputs = Vec::new();
    while outputs.len() < 6 {
        outputs.push(peer.next_output());
    }
    let timeouts: Vec<_> = outputs
        .iter()
        .filter(|output| output.header.seq.0 == 1_000_001)
        .map(|output| output.at)
        .collect();
    assert!(timeouts.len() >= 4, "{timeouts:?}");
    for (index, pair) in timeouts.windows(2).enumerate() {
        assert_eq!(pair[1] - pair[0], rto * (2 << index), "{timeouts:?}");
    }
    let stats = peer.connection().stats(peer.now());
    assert_eq!(
        stats.cwnd,
        u64::from(stats.mss),
        "RFC 5681 §3.1: one segment after a timeout"
    );
}

/// RFC 6298 §3 (Karn): a segment sent twice gives no sample.
#[test]
fn karn() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "write 100\n+0 > P. 1:101(100) ack 1\n* > P. 1:101(100) ack 1\n+3ms < . 1:1(0) ack 101",
    );
    let stats = peer.connection().stats(peer.now());
    assert_eq!((stats.srtt, stats.min_rtt), (Some(ms(10)), Some(ms(10))));
}

/// RFC 6298 §5.2, §5.3: the timer restarts with new acknowledgements, and stops when nothing is
/// outstanding.
#[test]
fn the_timer_restarts_and_stops() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        write 1000
        +0    > . 1:1001(1000) ack 1
        +10ms < . 1:1(0) ack 1001
        +100s > nothing
        ",
    );
}

/// RFC 9293 §3.9.1 (user timeout): unacknowledged data ends the connection after the configured
/// time, neither before nor much later.
#[test]
fn user_timeout() {
    let mut peer = Peer::accepted(
        Config {
            user_timeout: Some(secs(10)),
            ..plain()
        },
        "mss 1000",
    );
    peer.run("+1s write 100\n+0 > P. 1:101(100) ack 1");
    peer.wait(ms(9_900));
    peer.take_output();
    peer.run("event nothing");
    peer.wait(ms(200));
    peer.take_output();
    peer.run("event Closed TimedOut");
    peer.take_output();
    peer.run("+1000s > nothing");
}

/// RFC 9293 §3.9.1: progress postpones the user timeout.
#[test]
fn progress_postpones_the_user_timeout() {
    let mut peer = Peer::accepted(
        Config {
            user_timeout: Some(secs(2)),
            ..plain()
        },
        "mss 1000",
    );
    let mut first = 1;
    for _ in 0..10 {
        peer.run(&format!(
            "write 100\n+0 > P. {first}:{}(100) ack 1",
            first + 100
        ));
        peer.wait(ms(1500));
        peer.take_output();
        peer.run(&format!("+0 < . 1:1(0) ack {}", first + 100));
        first += 100;
    }
    peer.run("event nothing");
}

/// Without a user timeout data is repeated forever, at the longest interval.
#[test]
fn without_a_user_timeout_it_waits_for_ever() {
    let mut peer = Peer::accepted(
        Config {
            user_timeout: None,
            ..plain()
        },
        "mss 1000",
    );
    peer.run("write 100\n+0 > P. 1:101(100) ack 1");
    peer.wait(secs(24 * 3600));
    let sent = peer.take_output();
    assert!((1440..1500).contains(&sent.len()), "{}", sent.len());
    peer.run("event nothing");
    // The path comes back: everything goes on at once.
    peer.run("+0 < . 1:1(0) ack 101\nwrite 100\n+0 > P. 101:201(100) ack 1");
}

/// RTT is measured to the arrival of the acknowledgement, not to its late processing.
#[test]
fn late_processing_is_not_part_of_the_rtt() {
    use tack_testkit::{Model, Pair, Side};
    let late = || Model {
        late: ms(30),
        ..Model::default()
    };
    // 10 ms each way and 30 ms in the other host: the 30 ms in our own are left out, and with TACK
    // the other's as well.
    for (ack, expected) in [("delayed:2", ms(50)..ms(60)), ("tack", ms(20)..ms(21))] {
        let config = Config {
            ack: ack.parse().expect("a policy"),
            ..Config::default()
        };
        let mut pair = Pair::open(1, &config, late(), late());
        pair.establish(secs(1));
        pair.send(Side::Client, 500_000);
        assert!(pair.run_until(secs(10), |pair| pair.app(Side::Server).read == 500_000));
        let stats = pair.connection(Side::Client).stats(pair.now());
        assert!(
            stats.min_rtt.is_some_and(|rtt| expected.contains(&rtt)),
            "{ack}: {stats:?}"
        );
    }
}

/// A peer that has a segment already does not note the timestamp of its retransmission (RFC 7323
/// §5.3 R2): when the first acknowledgement got lost, the one that the retransmission draws echoes
/// the original, and its age is mostly our own timeouts. They must not become the round-trip time.
#[test]
fn timeouts_are_no_round_trip_time() {
    let config = Config {
        timestamps: true,
        ..plain()
    };
    let mut peer = Peer::accepted(config, "mss 1000,TS val 100 ecr 0");
    peer.run("write 100\n+0 > P. 1:101(100) ack 1");
    let original = peer.newest_timestamp();
    let before = peer.connection().stats(peer.now()).rto;
    for _ in 0..5 {
        let timeout = peer.next_timer().expect("a timer is armed");
        peer.wait(timeout);
        peer.take_output();
    }
    let value = peer.peer_timestamp() + 10;
    peer.run(&format!(
        "+10ms < . 1:1(0) ack 101 <TS val {value} ecr {original}>"
    ));
    let after = peer.connection().stats(peer.now()).rto;
    assert!(after < 3 * before, "from {before:?} to {after:?}");
}

/// A connection that has measured a round trip, and how many transmissions it has made.
fn measured() -> (TackPeer, u32) {
    let mut peer = TackPeer::new(tack());
    peer.write(100);
    peer.peer.wait(ms(RTT_MS));
    peer.send_report(101, peer.report(0), &[]);
    peer.peer.take_output();
    (peer, 1)
}

/// The peer's only answer: a report that the transmissions from number `first` to the one before
/// `arrived` got lost, and that `arrived` brought everything up to position `ack`.
fn report_loss(peer: &mut TackPeer, first: u32, arrived: u32, ack: u32) {
    peer.peer.wait(ms(RTT_MS));
    let loss = LossReport {
        lists: false,
        loss_rate: 0,
        number: peer.number,
        largest: arrived,
        largest_delay: 0,
        above: 0,
        before_gap: first - 1,
        after_gap: arrived,
    };
    peer.send_loss(ack, loss, &[]);
    peer.peer.take_output();
}

/// Path 70441 of the random search: each answer gets lost at first, so that nothing but reports of
/// losses acknowledges it. They name the transmission that arrived: what is measured by that ends
/// backing off, though no data was acknowledged that had left once.
#[test]
fn a_report_of_a_loss_ends_backing_off() {
    let (mut peer, mut next) = measured();
    let mut waits = Vec::new();
    for round in 1..=5 {
        let left = peer.write(100);
        let written = peer.peer.elapsed();
        let rto_count = peer.stats().rto_count;
        let arrived = loop {
            let tack = peer.peer.next_output().header.options.tack;
            if let Some(TackOption::Data(stamp)) = tack
                && peer.stats().rto_count > rto_count
            {
                break stamp.number;
            }
        };
        waits.push(peer.peer.elapsed() - written);
        assert_eq!(stamp(&left[0]).number, next);
        report_loss(&mut peer, next, arrived, 101 + 100 * round);
        next = arrived + 1;
    }
    assert!(
        waits.iter().all(|wait| *wait < waits[0] + ms(50)),
        "{waits:?}"
    );
}

/// On the same path: the probe's packet number says that the probe arrived and the original did
/// not, so that the next answer has a probe as well.
#[test]
fn a_probe_whose_number_is_reported_is_answered() {
    let (mut peer, mut next) = measured();
    for round in 1..=5 {
        peer.write(100);
        let probe = stamp(&peer.peer.next_output()).number;
        assert_eq!((probe, peer.stats().rto_count), (next + 1, 0));
        assert_eq!(peer.stats().tlp_count, u64::from(round));
        report_loss(&mut peer, next, probe, 101 + 100 * round);
        next = probe + 1;
    }
}
