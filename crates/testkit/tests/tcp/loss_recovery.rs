//! Finding and repairing loss (RFC 5681, 6675, 8985, 6937).

use tack_tcp::{Algorithm, Config};
use tack_testkit::{Fate, Model, Pair, Peer, Side};

use crate::settings::{ms, plain, secs, with_sack};

fn write(peer: &mut Peer, len: usize) {
    let data = tack_testkit::pattern::bytes(0, len);
    assert_eq!(
        peer.with(|connection, now| connection.write(now, &data)),
        Ok(len)
    );
}

/// Ten segments are out, nothing is acknowledged yet.
fn ten_out(config: Config, options: &str) -> Peer {
    let mut peer = Peer::accepted(config, options);
    peer.run("write 10000\n+0 > . 1:10001(10000) ack 1 each 1000\n+10ms > nothing");
    peer
}

/// RFC 5681 §3.2: three duplicate acknowledgements repair the first segment, and only it.
#[test]
fn fast_retransmit_without_sack() {
    let mut peer = ten_out(plain(), "mss 1000");
    peer.run(
        "
        +0    < . 1:1(0) ack 1
        +0    < . 1:1(0) ack 1
        +0    > nothing
        +0    < . 1:1(0) ack 1
        +0    > . 1:1001(1000) ack 1
        ",
    );
    let stats = peer.connection().stats(peer.now());
    assert_eq!(
        (
            stats.fast_recoveries,
            stats.retransmitted_segments,
            stats.ssthresh
        ),
        (1, 1, 5000)
    );
}

/// RFC 6582 §3.2: a partial acknowledgement repairs the next hole at once; the full one ends the
/// episode.
#[test]
fn new_reno_repairs_hole_after_hole() {
    let mut peer = ten_out(plain(), "mss 1000");
    for _ in 0..3 {
        peer.arrives(". 1:1(0) ack 1");
    }
    let partial = peer.arrives(". 1:1(0) ack 4001");
    assert!(
        partial
            .iter()
            .any(|output| output.header.seq.0 == 1_004_001),
        "{partial:?}"
    );
    peer.arrives(". 1:1(0) ack 10001");
    let stats = peer.connection().stats(peer.now());
    assert_eq!(
        (
            stats.fast_recoveries,
            stats.rto_count,
            stats.bytes_in_flight
        ),
        (1, 0, 0)
    );
    assert!(stats.cwnd <= 6000, "{stats:?}");
}

/// RFC 6675 §5, RFC 8985 §6.2: with SACK the holes are known: each is repaired once, nothing else
/// is.
#[test]
fn selective_repair() {
    let mut peer = ten_out(with_sack(), "mss 1000,sackOK");
    let mut sent = Vec::new();
    for ack in [
        ". 1:1(0) ack 1 <sack 1001:3001>",
        ". 1:1(0) ack 1 <sack 1001:3001 4001:6001>",
        ". 1:1(0) ack 1 <sack 1001:3001 4001:10001>",
    ] {
        sent.extend(peer.arrives(ack));
        peer.wait(ms(1));
    }
    sent.extend(peer.take_output());
    peer.wait(ms(5));
    sent.extend(peer.take_output());
    let mut repaired: Vec<_> = sent
        .iter()
        .map(|output| output.header.seq.0 - 1_000_000)
        .collect();
    repaired.sort_unstable();
    assert_eq!(repaired, [1, 3001]);
    peer.run("+10ms < . 1:1(0) ack 10001");
    let stats = peer.connection().stats(peer.now());
    assert_eq!(
        (
            stats.fast_recoveries,
            stats.rto_count,
            stats.retransmitted_segments
        ),
        (1, 0, 2)
    );
}

/// RFC 8985 §6.2: one or two segments overtaken within a quarter of the RTT are reordering, not
/// loss.
#[test]
fn small_reordering_is_no_loss() {
    let mut peer = ten_out(with_sack(), "mss 1000,sackOK");
    peer.run(
        "
        +0    < . 1:1(0) ack 1 <sack 1001:2001>
        +1ms  < . 1:1(0) ack 2001
        +0    < . 1:1(0) ack 2001 <sack 3001:4001>
        +1ms  < . 1:1(0) ack 4001
        +0    < . 1:1(0) ack 10001
        ",
    );
    let stats = peer.connection().stats(peer.now());
    assert_eq!(
        (stats.retransmitted_segments, stats.fast_recoveries),
        (0, 0)
    );
}

/// RFC 8985 §7: the tail of a flight is probed after 2·SRTT, long before the RTO, and its SACK
/// repairs the rest.
#[test]
fn tail_loss_is_probed() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
    peer.run("write 5000\n+0 > . 1:5001(5000) ack 1 each 1000\n+10ms < . 1:1(0) ack 2001");
    let acked = peer.elapsed();
    let probe = peer.next_output();
    assert_eq!(
        (probe.header.seq.0, probe.at - acked),
        (1_004_001, ms(20)),
        "last segment, 2·SRTT after the ACK"
    );
    assert_eq!(peer.connection().stats(peer.now()).tlp_count, 1);
    // The probe's SACK shows the holes.
    peer.wait(ms(10));
    peer.arrives(". 1:1(0) ack 2001 <sack 4001:5001>");
    peer.wait(ms(10));
    peer.arrives(". 1:1(0) ack 3001 <sack 4001:5001>");
    let stats = peer.connection().stats(peer.now());
    assert_eq!(
        (stats.rto_count, stats.retransmitted_segments),
        (0, 3),
        "probe and both holes"
    );
}

/// RFC 8985 §7.2: a lone segment is probed when its RTO would come, if a delayed acknowledgement
/// could take longer than 2·SRTT; the window survives that.
#[test]
fn a_lone_segment_is_probed_instead_of_timed_out() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
    let before = peer.connection().stats(peer.now());
    peer.run("write 1000\n+0 > . 1:1001(1000) ack 1");
    let (begin, probe) = (peer.elapsed(), peer.next_output());
    assert_eq!(
        (probe.header.seq.0, probe.at - begin),
        (1_000_001, before.rto)
    );
    let stats = peer.connection().stats(peer.now());
    assert_eq!(
        (stats.tlp_count, stats.rto_count, stats.cwnd),
        (1, 0, before.cwnd)
    );
}

/// RFC 8985 §7.2, §7.3: with new data to send the probe is new data; one probe only, then the RTO.
#[test]
fn probes_are_single() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
    peer.run("write 2000\n+0 > . 1:2001(2000) ack 1 each 1000");
    let first = peer.next_output();
    let second = peer.next_output();
    let stats = peer.connection().stats(peer.now());
    assert_eq!((stats.tlp_count, stats.rto_count), (1, 1));
    assert_eq!(
        (first.header.seq.0, second.header.seq.0),
        (1_001_001, 1_000_001)
    );
}

/// RFC 8985 §7.4.2: a loss repaired by the probe alone still counts as congestion, as soon as that
/// is certain.
#[test]
fn a_loss_repaired_by_the_probe_is_answered_for() {
    let mut peer = ten_out(with_sack(), "mss 1000,sackOK");
    peer.run("+0 < . 1:1(0) ack 8001");
    let before = peer.connection().stats(peer.now());
    let probe = peer.next_output();
    assert_eq!(probe.header.seq.0, 1_009_001);
    peer.run("+10ms < . 1:1(0) ack 10001");
    let between = peer.connection().stats(peer.now());
    assert!(
        between.cwnd >= before.cwnd,
        "the original may still come: {before:?}\n{between:?}"
    );
    peer.run("write 1000\n+0 > . 10001:11001(1000) ack 1\n+10ms < . 1:1(0) ack 11001");
    let after = peer.connection().stats(peer.now());
    assert!(after.cwnd < before.cwnd, "{before:?}\n{after:?}");
}

/// RFC 8985 §7.4, RFC 2883: probe and original both arrived: no loss, no reduction.
#[test]
fn a_needless_probe_is_not_answered_for() {
    let mut peer = ten_out(with_sack(), "mss 1000,sackOK");
    peer.run("+0 < . 1:1(0) ack 8001");
    let before = peer.connection().stats(peer.now());
    peer.next_output();
    peer.run("+1ms < . 1:1(0) ack 10001\n+9ms < . 1:1(0) ack 10001 <sack 9001:10001>");
    let after = peer.connection().stats(peer.now());
    assert!(after.cwnd >= before.cwnd, "{before:?}\n{after:?}");
}

/// A lost retransmission is found by RACK without a timeout when later segments arrive (RFC 8985
/// §1).
#[test]
fn a_lost_retransmission_is_found() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
    write(&mut peer, 40_000);
    assert_eq!(peer.take_output().len(), 10);
    peer.wait(ms(10));
    // The first segment is lost, its repair leaves; new data follows.
    let mut sent = Vec::new();
    for at in 2..=10 {
        sent.extend(peer.arrives(&format!(". 1:1(0) ack 1 <sack 1001:{}>", at * 1000 + 1)));
    }
    let repairs = sent
        .iter()
        .filter(|output| output.header.seq.0 == 1_000_001)
        .count();
    let new: Vec<_> = sent
        .iter()
        .map(|output| output.header.seq.0 - 1_000_000)
        .filter(|seq| *seq > 10_000)
        .collect();
    assert_eq!(repairs, 1);
    assert!(
        !new.is_empty(),
        "PRR sends new data while the repair is out"
    );
    // An RTT later the new data is reported, the repair is not.
    peer.wait(ms(10));
    let mut again = Vec::new();
    for seq in new {
        again.extend(peer.arrives(&format!(". 1:1(0) ack 1 <sack 1001:{}>", seq + 1000)));
    }
    peer.wait(ms(10));
    again.extend(peer.take_output());
    assert!(
        again.iter().any(|output| output.header.seq.0 == 1_000_001),
        "{again:?}"
    );
    assert_eq!(peer.connection().stats(peer.now()).rto_count, 0);
}

/// RFC 6937: in recovery one segment leaves for two delivered (NewReno halves), without a burst at
/// the end.
#[test]
fn proportional_rate_reduction() {
    let mut peer = Peer::accepted(
        Config {
            initial_window_segments: 20,
            ..with_sack()
        },
        "mss 1000,sackOK",
    );
    write(&mut peer, 60_000);
    assert_eq!(peer.take_output().len(), 20);
    peer.wait(ms(10));
    let mut per_ack = Vec::new();
    for at in 2..=20 {
        per_ack.push(
            peer.arrives(&format!(". 1:1(0) ack 1 <sack 1001:{}>", at * 1000 + 1))
                .len(),
        );
    }
    let total: usize = per_ack.iter().sum();
    assert!((9..=11).contains(&total), "{per_ack:?}");
    assert!(per_ack.iter().all(|sent| *sent <= 2), "{per_ack:?}");
    // The hole closes: no burst.
    assert!(peer.arrives(". 1:1(0) ack 20001").len() <= 3);
}

/// RFC 5681 §3.1: after a timeout slow start begins from one segment, and everything lost comes
/// again.
#[test]
fn a_lost_flight_is_repaired_after_the_timeout() {
    for algorithm in Algorithm::ALL {
        let config = Config {
            congestion: algorithm,
            ..Config::default()
        };
        let forward = Model::default().judged(|packet| {
            if (3..13).contains(&packet.index) {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        let mut pair = Pair::open(1, &config, forward, Model::default());
        pair.transfer(200_000, 0, secs(30));
    }
}

/// Loss of acknowledgements alone costs nothing but time: the next one says it all.
#[test]
fn lost_acknowledgements_are_made_up_for() {
    let backward = Model::default().judged(|packet| {
        if packet.index % 3 == 1 && packet.segment.payload.is_empty() {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let mut pair = Pair::open(1, &Config::default(), Model::default(), backward);
    pair.transfer(1_000_000, 0, secs(30));
    let app = pair.app(Side::Client).id;
    assert!(
        pair.endpoint(Side::Client)
            .get(app)
            .is_none_or(|connection| connection
                .stats(tack_base::Instant::ZERO)
                .retransmitted_segments
                < 5)
    );
}

/// The very last segments and the FIN are lost again and again: it still ends.
#[test]
fn a_lossy_tail_ends() {
    for seed in 0..20 {
        let lossy = || Model {
            loss: 0.4,
            ..Model::default()
        };
        let mut pair = Pair::open(
            seed,
            &Config {
                user_timeout: None,
                syn_retries: 20,
                time_wait: secs(7200),
                ..Config::default()
            },
            lossy(),
            lossy(),
        );
        pair.transfer(5_000, 5_000, secs(36_000));
    }
}

/// RFC 3042: without SACK, each of the first two duplicate acknowledgements lets one new segment
/// out, so that a third one can come.
#[test]
fn limited_transmit() {
    let mut peer = Peer::accepted(
        Config {
            initial_window_segments: 3,
            ..plain()
        },
        "mss 1000",
    );
    write(&mut peer, 8_000);
    assert_eq!(peer.take_output().len(), 3);
    peer.wait(ms(10));
    for expected in [3001, 4001] {
        let sent = peer.arrives(". 1:1(0) ack 1");
        let sent: Vec<_> = sent
            .iter()
            .map(|output| output.header.seq.0 - 1_000_000)
            .collect();
        assert_eq!(sent, [expected]);
    }
    let sent = peer.arrives(". 1:1(0) ack 1");
    assert_eq!(sent[0].header.seq.0, 1_000_001);
}

/// RFC 8985 §6.2 step 5: a lone hole below one or two delivered segments is not lost yet, but is
/// when the reordering window of a quarter of the RTT is over, by timer, to the nanosecond.
#[test]
fn the_reordering_timer_is_exact() {
    let mut peer = ten_out(with_sack(), "mss 1000,sackOK");
    assert!(peer.arrives(". 1:1(0) ack 1 <sack 1001:2001>").is_empty());
    let begin = peer.elapsed();
    let repair = peer.next_output();
    // All left together and RTT is 10 ms: due at departure + RTT + RTT/4.
    assert_eq!(
        (repair.header.seq.0, repair.at - begin),
        (1_000_001, std::time::Duration::from_micros(2500))
    );
}

/// RFC 8985 §6.2 step 4: a DSACK shows that a repair was needless, and widens the window: the same
/// delay is borne the next time.
#[test]
fn duplicates_widen_the_reordering_window() {
    let mut peer = ten_out(with_sack(), "mss 1000,sackOK");
    peer.arrives(". 1:1(0) ack 1 <sack 1001:2001>");
    peer.next_output();
    // The original was only 3 ms late; original and repair are both acknowledged.
    peer.wait(std::time::Duration::from_micros(500));
    peer.arrives(". 1:1(0) ack 10001");
    peer.wait(ms(10));
    peer.arrives(". 1:1(0) ack 10001 <sack 1:1001>");
    peer.run("write 5000\n+0 > . 10001:15001(5000) ack 1 each 1000\n+10ms > nothing");
    peer.arrives(". 1:1(0) ack 10001 <sack 11001:12001>");
    peer.run("+3ms > nothing\n+0 < . 1:1(0) ack 15001");
    assert_eq!(
        peer.connection().stats(peer.now()).retransmitted_segments,
        1
    );
}

/// RFC 2018 §8: after a timeout SACK information is not relied upon when the peer forgot the data
/// it reported.
#[test]
fn a_peer_that_reneges() {
    let mut peer = ten_out(with_sack(), "mss 1000,sackOK");
    for at in 2..=10 {
        peer.arrives(&format!(". 1:1(0) ack 1 <sack 1001:{}>", at * 1000 + 1));
    }
    peer.take_output();
    // The hole is repaired, and everything behind it is gone at the peer.
    peer.wait(ms(10));
    let mut acked = 1001;
    peer.arrives(". 1:1(0) ack 1001");
    let mut guard = 0;
    while acked < 10_001 {
        guard += 1;
        assert!(guard < 100, "the transfer is stuck at {acked}");
        let output = peer.next_output();
        if output.header.seq.0 - 1_000_000 == acked {
            acked += output.payload.len() as u32;
            peer.wait(ms(10));
            peer.take_output();
            peer.arrives(&format!(". 1:1(0) ack {acked}"));
        }
    }
}
