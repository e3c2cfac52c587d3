//! When the receiver acknowledges, and what it reports (RFC 9293 §3.8.6.3, RFC 5681 §4.2, RFC 2018,
//! RFC 2883).

use tack_tcp::{AckKind, Config};
use tack_testkit::{Model, Pair, Peer, Side};
use tack_wire::TackOption;

use crate::settings::{ms, plain, secs, with_sack};
use crate::tack_peer::{RTT_MS, TackPeer, tack};

fn delayed(segments: u8) -> Config {
    Config {
        ack: AckKind::delayed(segments),
        ..plain()
    }
}

/// An established connection whose peer has sent full-sized segments before, so that their size is
/// known.
fn primed(config: Config) -> Peer {
    Peer::accepted(config, "mss 1000")
}

/// RFC 9293 §3.8.6.3 (SHLD-19): one ACK per two full-sized segments, exactly.
#[test]
fn one_acknowledgement_per_two_segments() {
    let mut peer = primed(delayed(2));
    // The first segments may be acknowledged sooner (the peer's window is small); then the rule
    // holds.
    peer.run("+0 < . 1:1461(1460) ack 1");
    peer.wait(ms(100));
    peer.take_output();
    for round in 0..50_u32 {
        let first = 1461 + round * 2920;
        peer.run(
            &format!(
                "+1ms < . {}:{}(1460) ack 1
             +0   > nothing
             +1ms < . {}:{}(1460) ack 1
             +0   > . 1:1(0) ack {}
             read 2920",
                first,
                first + 1460,
                first + 1460,
                first + 2920,
                first + 2920
            )
            .replace(
                "read 2920",
                if round == 0 { "read 4380" } else { "read 2920" },
            ),
        );
    }
}

/// The same for L = 4, 8 and 16.
#[test]
fn one_acknowledgement_per_l_segments() {
    for l in [4_u32, 8, 16] {
        let mut peer = primed(delayed(l as u8));
        peer.run("+0 < . 1:1461(1460) ack 1");
        peer.wait(ms(100));
        peer.take_output();
        peer.run("read 1460");
        let mut next = 1461;
        for _ in 0..10 {
            for index in 1..=l {
                let arrival = format!("+100us < . {next}:{}(1460) ack 1\n", next + 1460);
                next += 1460;
                peer.run(
                    &(arrival
                        + &if index < l {
                            "> nothing".to_string()
                        } else {
                            format!("> . 1:1(0) ack {next}")
                        }),
                );
            }
            // Reading may open the window so far that an update leaves.
            let mut buf = vec![0; l as usize * 1460];
            assert_eq!(
                peer.with(|connection, now| connection.read(now, &mut buf)),
                Ok(buf.len())
            );
            peer.take_output();
        }
    }
}

/// RFC 9293 §3.8.6.3 (SHLD-18, MUST-40): an odd segment is acknowledged when the timer runs out: 40
/// ms after it came, to the nanosecond, whatever came in between.
#[test]
fn the_delay_is_exact() {
    let mut peer = primed(delayed(8));
    peer.run(
        "
        +0    < . 1:1461(1460) ack 1
        +40ms > . 1:1(0) ack 1461
        +5ms  < . 1461:2921(1460) ack 1
        +30ms < . 2921:4381(1460) ack 1
        +10ms > . 1:1(0) ack 4381
        +1s   > nothing
        ",
    );
    let mut config = delayed(8);
    config.ack = "delayed:8,timer=7ms".parse().expect("a policy");
    let mut peer = primed(config);
    peer.run("+0 < . 1:1461(1460) ack 1\n+7ms > . 1:1(0) ack 1461");
}

/// Small segments count by bytes.
#[test]
fn small_segments_count_by_bytes() {
    let mut peer = primed(delayed(2));
    peer.run(
        "
        +0    < . 1:1461(1460) ack 1
        +40ms > . 1:1(0) ack 1461
        +1ms  < . 1461:1561(100) ack 1
        +1ms  < . 1561:1661(100) ack 1
        +1ms  < . 1661:1761(100) ack 1
        +38ms > . 1:1(0) ack 1761
        ",
    );
}

/// `every`: each segment at once.
#[test]
fn every_segment() {
    let mut peer = primed(plain());
    for at in 0..20_u32 {
        let first = 1 + at * 500;
        peer.run(&format!(
            "+1ms < . {first}:{}(500) ack 1\n+0 > . 1:1(0) ack {}",
            first + 500,
            first + 500
        ));
    }
    let stats = peer.connection().stats(peer.now());
    assert_eq!((stats.acks_delayed, stats.acks_loss), (20, 0));
}

/// RFC 5681 §4.2: at once on out-of-order data, and when a gap is filled, whatever L.
#[test]
fn out_of_order_data_is_acknowledged_at_once() {
    let mut peer = Peer::accepted(
        Config {
            sack: true,
            ..delayed(16)
        },
        "mss 1000,sackOK",
    );
    peer.run(
        "
        +0    < . 1:1001(1000) ack 1
        +40ms > . 1:1(0) ack 1001
        +0    < . 2001:3001(1000) ack 1
        +0    > . 1:1(0) ack 1001 <sack 2001:3001>
        +0    < . 3001:4001(1000) ack 1
        +0    > . 1:1(0) ack 1001 <sack 2001:4001>
        +0    < . 1001:1501(500) ack 1
        +0    > . 1:1(0) ack 1501 <sack 2001:4001>
        +0    < . 1501:2001(500) ack 1
        +0    > . 1:1(0) ack 4001 <>
        read 4000
        ",
    );
    let stats = peer.connection().stats(peer.now());
    assert_eq!((stats.acks_delayed, stats.acks_loss), (1, 4));
}

/// RFC 9293 §3.8.6.3: a FIN is acknowledged at once.
#[test]
fn a_fin_is_acknowledged_at_once() {
    let mut peer = primed(delayed(16));
    peer.run("+0 < F. 1:101(100) ack 1\n+0 > . 1:1(0) ack 102");
}

/// An acknowledgement that rides on data is not sent again on its own.
#[test]
fn acknowledgements_ride_on_data() {
    let mut peer = primed(delayed(2));
    peer.run(
        "
        +0    < P. 1:101(100) ack 1
        +1ms  write 10
        +0    > P. 1:11(10) ack 101
        +10ms < . 101:101(0) ack 11
        +1s   > nothing
        ",
    );
}

/// RFC 9293 §3.8.6.3: bare acknowledgements are not acknowledged.
#[test]
fn bare_acknowledgements_are_not_acknowledged() {
    let mut peer = primed(plain());
    peer.run("write 100\n+0 > P. 1:101(100) ack 1\n+10ms < . 1:1(0) ack 101\n+0 < . 1:1(0) ack 101\n+0 < . 1:1(0) ack 101 win 500\n+1s > nothing");
}

/// Path 163920: both ends repeat data, because what acknowledged it was lost. A
/// repetition acknowledges what arrived meanwhile. One that acknowledges nothing new is no
/// duplicate acknowledgement (RFC 5681 §2).
#[test]
fn a_repetition_acknowledges() {
    let mut peer = primed(plain());
    peer.run(
        "
        +0    < P. 1:1001(1000) ack 1
        +0    > . 1:1(0) ack 1001
        +0    < P. 1001:2001(1000) ack 1
        +0    > . 1:1(0) ack 2001
        read 2000
        write 3000
        +0    > P. 1:3001(3000) ack 2001 each 1000
        ",
    );
    for _ in 0..4 {
        let answers = peer.arrives("P. 1:1001(1000) ack 1");
        assert!(answers.iter().all(|it| it.payload.is_empty()));
    }
    let stats = peer.connection().stats(peer.now());
    assert_eq!((stats.fast_recoveries, stats.bytes_in_flight), (0, 3000));
    peer.arrives("P. 1:1001(1000) ack 2001");
    assert_eq!(peer.connection().stats(peer.now()).bytes_in_flight, 1000);
    // Nor does it acknowledge what was never sent.
    peer.arrives("P. 1:1001(1000) ack 3002");
    assert_eq!(peer.connection().stats(peer.now()).bytes_in_flight, 1000);
    peer.arrives("P. 1:1001(1000) ack 3001");
    peer.take_output();
    assert_eq!(peer.connection().stats(peer.now()).bytes_in_flight, 0);
    peer.run("+5s > nothing");
}

/// The last data with the FIN is repeated, too. What repeats data from before the last window is
/// stale, and is not heard.
#[test]
fn a_stale_repetition_does_not_acknowledge() {
    let config = Config {
        receive_buffer: 16_384,
        ..plain()
    };
    let mut peer = primed(config);
    for first in (1..40_001).step_by(1_000) {
        peer.arrives(&format!("P. {first}:{}(1000) ack 1", first + 1_000));
        peer.run("read 1000");
        peer.take_output();
    }
    peer.run("+0 < FP. 40001:41001(1000) ack 1\n+0 > . 1:1(0) ack 41002");
    peer.run("read 1000\nwrite 2000\n+0 > P. 1:2001(2000) ack 41002 each 1000");
    let in_flight = |peer: &Peer| peer.connection().stats(peer.now()).bytes_in_flight;
    peer.arrives("P. 1:1001(1000) ack 1001");
    assert_eq!(in_flight(&peer), 2000);
    peer.arrives("P. 39001:40001(1000) ack 1001");
    assert_eq!(in_flight(&peer), 1000);
    peer.arrives("FP. 40001:41001(1000) ack 2001");
    assert_eq!(in_flight(&peer), 0);
}

/// TACK's option comes with each repetition: what it acknowledges without a report does not show
/// that options are taken off on the way.
#[test]
fn repetitions_do_not_end_tack() {
    let mut peer = TackPeer::new(tack());
    peer.send_data(1, 1000, 0);
    peer.send_data(1001, 1000, 1);
    let sent = peer.write(8_000).len() as u32;
    assert!(sent > 4, "{sent}");
    for number in 0..sent {
        peer.peer.wait(ms(RTT_MS));
        // The end of a segment each.
        peer.send_data_with(1 + 1_460 * (number + 1).min(sent - 1), 1, 1000, number + 2);
    }
    let stats = peer.stats();
    assert!(stats.bytes_in_flight <= 1_460, "{stats:?}");
    peer.peer.take_output();
    let next = peer.write(1_000);
    assert!(
        matches!(next[0].header.options.tack, Some(TackOption::Data(_))),
        "{next:?}"
    );
}

/// RFC 2018 §4: the block with the newest segment comes first, then those reported before; with
/// timestamps three fit.
#[test]
fn sack_blocks_most_recent_first() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
    peer.run(
        "
        +0    < . 1001:2001(1000) ack 1
        +0    > . 1:1(0) ack 1 <sack 1001:2001>
        +0    < . 3001:4001(1000) ack 1
        +0    > . 1:1(0) ack 1 <sack 3001:4001 1001:2001>
        +0    < . 5001:6001(1000) ack 1
        +0    > . 1:1(0) ack 1 <sack 5001:6001 3001:4001 1001:2001>
        +0    < . 7001:8001(1000) ack 1
        +0    > . 1:1(0) ack 1 <sack 7001:8001 5001:6001 3001:4001 1001:2001>
        +0    < . 9001:10001(1000) ack 1
        +0    > . 1:1(0) ack 1 <sack 9001:10001 7001:8001 5001:6001 3001:4001>
        +0    < . 2001:3001(1000) ack 1
        +0    > . 1:1(0) ack 1 <sack 1001:4001 9001:10001 7001:8001 5001:6001>
        +0    < . 1:1001(1000) ack 1
        +0    > . 1:1(0) ack 4001 <sack 9001:10001 7001:8001 5001:6001>
        ",
    );
    let mut config = with_sack();
    config.timestamps = true;
    let mut peer = Peer::accepted(config, "mss 1000,sackOK,TS val 1 ecr 0");
    peer.run(
        "
        +0    < . 1001:2001(1000) ack 1
        +0    > . 1:1(0) ack 1 <TS,sack 1001:2001>
        +0    < . 3001:4001(1000) ack 1
        +0    > . 1:1(0) ack 1 <TS,sack 3001:4001 1001:2001>
        +0    < . 5001:6001(1000) ack 1
        +0    > . 1:1(0) ack 1 <TS,sack 5001:6001 3001:4001 1001:2001>
        +0    < . 7001:8001(1000) ack 1
        +0    > . 1:1(0) ack 1 <TS,sack 7001:8001 5001:6001 3001:4001>
        ",
    );
}

/// RFC 2883 §4: a duplicate is reported first and once; below the cumulative acknowledgement, and
/// inside a block.
#[test]
fn duplicates_are_reported() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
    peer.run(
        "
        +0    < . 1:1001(1000) ack 1
        +0    > . 1:1(0) ack 1001 <>
        +10ms < . 1:1001(1000) ack 1
        +0    > . 1:1(0) ack 1001 <sack 1:1001>
        +0    < . 3001:5001(2000) ack 1
        +0    > . 1:1(0) ack 1001 <sack 3001:5001>
        +0    < . 3001:4001(1000) ack 1
        +0    > . 1:1(0) ack 1001 <sack 3001:4001 3001:5001>
        +0    < . 1001:3001(2000) ack 1
        +0    > . 1:1(0) ack 5001 <>
        ",
    );
}

/// RFC 2883 §4.2: of a segment that arrived in part the first such part is reported, above the
/// cumulative acknowledgement too, and where a hole closes.
#[test]
fn duplicate_parts_are_reported() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000,sackOK");
    peer.run(
        "
        +0    < . 2001:3001(1000) ack 1
        +0    > . 1:1(0) ack 1 <sack 2001:3001>
        +0    < . 2501:3501(1000) ack 1
        +0    > . 1:1(0) ack 1 <sack 2501:3001 2001:3501>
        +0    < . 1501:2501(1000) ack 1
        +0    > . 1:1(0) ack 1 <sack 2001:2501 1501:3501>
        +0    < . 4001:4501(500) ack 1
        +0    > . 1:1(0) ack 1 <sack 4001:4501 1501:3501>
        +0    < . 3001:4301(1300) ack 1
        +0    > . 1:1(0) ack 1 <sack 3001:3501 1501:4501>
        +0    < . 1:1601(1600) ack 1
        +0    > . 1:1(0) ack 4501 <sack 1501:1601>
        +0    < . 4001:5001(1000) ack 1
        +0    > . 1:1(0) ack 5001 <sack 4001:4501>
        ",
    );
    // Nor without agreement.
    let mut peer = Peer::accepted(with_sack(), "mss 1000");
    peer.run(
        "
        +0    < . 2001:3001(1000) ack 1
        +0    > . 1:1(0) ack 1 <>
        +0    < . 2501:3501(1000) ack 1
        +0    > . 1:1(0) ack 1 <>
        ",
    );
}

/// RFC 2018 §2: without agreement no blocks are sent.
#[test]
fn no_sack_without_agreement() {
    let mut peer = Peer::accepted(with_sack(), "mss 1000");
    peer.run("+0 < . 1001:2001(1000) ack 1\n+0 > . 1:1(0) ack 1 <>");
}

/// Bytes above a hole are held, counted, and delivered once it closes; holes without end take no
/// memory without end.
#[test]
fn out_of_order_data_is_bounded() {
    let mut peer = Peer::accepted(
        Config {
            receive_buffer: 100_000,
            ..with_sack()
        },
        "mss 1000,sackOK",
    );
    for at in 0..40_000_u32 {
        peer.arrives(&format!(". {}:{}(1) ack 1", 3 + 2 * at, 4 + 2 * at));
    }
    assert!(peer.connection().buffer_memory() < 1 << 20);
    assert!(peer.connection().blocked_bytes() <= 100_000);
}

/// In a clean bulk transfer `delayed:2` sends one acknowledgement for two segments, ±2 %, also at
/// the end of long runs.
#[test]
fn the_ratio_holds_in_a_bulk_transfer() {
    let all = [2_u64, 16, 4, 8];
    for &l in &all[..if crate::is_long() { 4 } else { 1 }] {
        let config = Config {
            ack: AckKind::delayed(l as u8),
            ..Config::default()
        };
        let wire = || Model::wire(ms(20), tack_base::Rate::from_bits_per_sec(100_000_000));
        let mut pair = Pair::open(1, &config, wire(), wire());
        pair.establish(secs(1));
        pair.send(Side::Client, 50_000_000);
        assert!(pair.run_until(secs(60), |pair| pair.app(Side::Server).read == 50_000_000));
        let received = pair.connection(Side::Server).stats(pair.now());
        let ratio = received.segments_received as f64 / received.acks as f64;
        assert!(
            (ratio / l as f64 - 1.0).abs() < 0.02,
            "L = {l}: {ratio} ({received:?})"
        );
    }
}
