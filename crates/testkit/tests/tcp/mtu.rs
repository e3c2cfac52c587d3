//! The segment size and the path (RFC 1191, 8201, 4821, 9293 §3.7.1).

use tack_tcp::{Algorithm, Config};
use tack_testkit::{Model, Pair, Peer, Side};

use crate::settings::{ms, plain, secs, with_sack};

/// RFC 9293 §3.7.1 (MUST-16): the smaller of the peer's MSS and our own, less options on each
/// segment (RFC 6691).
#[test]
fn the_smaller_size_wins() {
    let mut peer = Peer::accepted(
        Config {
            mss: 700,
            ..plain()
        },
        "mss 1000",
    );
    peer.run("write 1400\n+0 > . 1:1401(1400) ack 1 each 700");
    let mut peer = Peer::accepted(
        Config {
            mss: 1460,
            timestamps: true,
            ..plain()
        },
        "mss 1000,TS",
    );
    peer.run("write 1976\n+0 > . 1:1977(1976) ack 1 each 988");
}

/// RFC 1191 §4, §6.5: a report lowers the segment size; what was too long comes again at once, cut
/// up, without congestion control being told of congestion.
#[test]
fn a_path_report_cuts_segments() {
    let mut peer = Peer::accepted(with_sack(), "mss 1460,sackOK");
    let before = peer.connection().stats(peer.now());
    peer.run(
        "
        write 2920
        +0    > . 1:2921(2920) ack 1 each 1460
        +1ms  mtu 1000
        +0    > . 1:961(960) ack 1
        +0    > . 961:1461(500) ack 1
        +0    > . 1461:2421(960) ack 1
        +0    > . 2421:2921(500) ack 1
        +10ms < . 1:1(0) ack 2921
        write 2000
        +0    > . 2921:4921(2000) ack 1 each 960
        ",
    );
    let after = peer.connection().stats(peer.now());
    assert_eq!((after.mss, after.ssthresh), (960, before.ssthresh));
}

/// RFC 8201 §6: absurd reports (attacks) cannot make segments absurdly small, and cannot make them
/// larger.
#[test]
fn absurd_reports_are_bounded() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run("mtu 65535\nmtu 0\nmtu 1");
    let mss = peer.connection().stats(peer.now()).mss;
    assert!((48..=1000).contains(&mss), "{mss}");
    peer.run("mtu 9000");
    assert_eq!(peer.connection().stats(peer.now()).mss, mss);
}

/// RFC 4821 §7.7: a path that drops full-sized segments silently is noticed, and the
/// transfer ends.
#[test]
fn a_black_hole_is_noticed() {
    for congestion in Algorithm::ALL {
        for mtu in [1400, 1200, 700] {
            let forward = Model {
                mtu,
                ..Model::default()
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
            pair.send(Side::Client, 200_000);
            let done = pair.run_until(secs(60), |pair| pair.app(Side::Server).read == 200_000);
            assert!(
                done,
                "{congestion} over {mtu}: {:?}",
                pair.connection(Side::Client).stats(pair.now())
            );
        }
    }
}

/// The tail of a stream that is too long for the path, though shorter than the first fallback.
#[test]
fn a_stuck_tail_is_cut() {
    let mut pair = Pair::open(1, &with_sack(), Model::default(), Model::default());
    pair.establish(secs(1));
    pair.model(Side::Client).mtu = 600;
    pair.send(Side::Client, 570);
    pair.finish(Side::Client);
    assert!(pair.run_until(secs(60), |pair| pair.app(Side::Server).ended));
}

/// RFC 4821 §7.7: an outage looks like a black hole; afterwards the former size comes back.
#[test]
fn the_segment_size_recovers_from_an_outage() {
    let wire = || Model::wire(ms(10), tack_base::Rate::from_bits_per_sec(20_000_000));
    let mut pair = Pair::open(1, &Config::default(), wire(), wire());
    pair.establish(secs(1));
    pair.send(Side::Client, u64::from(u32::MAX));
    pair.run_for(secs(1));
    let outage = pair.now()..pair.now() + secs(10);
    pair.model(Side::Client).blackouts.push(outage);
    let full = pair.connection(Side::Client).stats(pair.now()).mss;
    pair.run_for(secs(14));
    assert!(pair.connection(Side::Client).stats(pair.now()).mss < full);
    pair.run_for(secs(30));
    let stats = pair.connection(Side::Client).stats(pair.now());
    assert_eq!((stats.mss, stats.cwnd > 50_000), (full, true), "{stats:?}");
}

/// A path that turns into a black hole in the middle of a transfer.
#[test]
fn a_path_that_narrows() {
    let mut pair = Pair::open(1, &Config::default(), Model::default(), Model::default());
    pair.establish(secs(1));
    pair.send(Side::Client, 3_000_000);
    pair.run_for(std::time::Duration::from_millis(200));
    pair.model(Side::Client).mtu = 1300;
    assert!(pair.run_until(secs(120), |pair| pair.app(Side::Server).read == 3_000_000));
}

/// RFC 8899 §5.3, RFC 4821 §7.3 to 7.6: one segment probes for a larger size. Its loss costs no
/// window; its bytes leave again in segments that fit; three losses, and the size is too long.
#[test]
fn probes_look_for_a_larger_size() {
    let mut peer = Peer::accepted(
        Config {
            base_mss: Some(1000),
            initial_window_segments: 20,
            ..with_sack()
        },
        "mss 1460,sackOK",
    );
    let before = peer.connection().stats(peer.now());
    assert_eq!(before.mss, 1000);
    peer.run(
        "
        write 9460
        +0    > . 1:1461(1460) ack 1
        +0    > . 1461:9461(8000) ack 1 each 1000
        +10ms < . 1:1(0) ack 1 <sack 1461:9461>
        * > . 1:1001(1000) ack 1
        * > . 1001:1461(460) ack 1
        +10ms < . 1:1(0) ack 9461
        write 9460
        * > . 9461:10921(1460) ack 1
        * > . 10921:18921(8000) ack 1 each 1000
        +10ms < . 1:1(0) ack 18921
        write 3000
        * > . 18921:21921(3000) ack 1 each 1460
        ",
    );
    let after = peer.connection().stats(peer.now());
    assert_eq!(after.mss, 1460);
    assert_eq!(
        (after.ssthresh, after.fast_recoveries),
        (before.ssthresh, 0)
    );
    assert!(after.cwnd >= before.cwnd);
}

/// Without SACK nothing tells which segment got lost, and nothing is probed.
#[test]
fn nothing_is_probed_without_sack() {
    let mut peer = Peer::accepted(
        Config {
            base_mss: Some(1000),
            initial_window_segments: 20,
            ..plain()
        },
        "mss 1460",
    );
    peer.run("write 9000\n+0 > . 1:9001(9000) ack 1 each 1000");
}

/// Sends a little each second, for so long.
fn trickle(pair: &mut Pair, seconds: u64) {
    for _ in 0..seconds {
        pair.send(Side::Client, 40_000);
        pair.run_for(secs(1));
    }
}

fn mss(pair: &Pair) -> u16 {
    pair.connection(Side::Client).stats(pair.now()).mss
}

/// RFC 8899 §5.1.1: the path named a size, ten minutes later it takes more, and that is found; with
/// TACK, whose receiver tells of losses, and without.
#[test]
fn a_path_that_grows_is_noticed_after_ten_minutes() {
    for ack in ["tack", "delayed:2"] {
        let config = Config {
            ack: ack.parse().unwrap(),
            ..Config::default()
        };
        let wire = || Model::wire(ms(5), tack_base::Rate::from_bits_per_sec(50_000_000));
        let mut pair = Pair::open(1, &config, wire(), wire());
        pair.establish(secs(1));
        trickle(&mut pair, 2);
        let full = mss(&pair);
        pair.with(Side::Client, |connection, now| {
            connection.handle_path_mtu(now, 1300)
        });
        pair.model(Side::Client).mtu = 1300;
        let small = mss(&pair);
        assert_eq!(full - small, 200, "{ack}");
        trickle(&mut pair, 590);
        // Options take as much more at most.
        let about = |size: u16| size - 24..=size;
        assert!(about(small).contains(&mss(&pair)), "{ack}: it is believed");
        // The first search finds that nothing has changed, and costs no window.
        trickle(&mut pair, 60);
        assert!(about(small).contains(&mss(&pair)), "{ack}");
        let stats = pair.connection(Side::Client).stats(pair.now());
        assert_eq!(
            (stats.fast_recoveries, stats.rto_count),
            (0, 0),
            "{ack}: {stats:?}"
        );
        assert!(stats.retransmitted_segments > 0, "{ack}: there were probes");
        pair.model(Side::Client).mtu = 1500;
        trickle(&mut pair, 620);
        assert!(about(full).contains(&mss(&pair)), "{ack}: {}", mss(&pair));
        // A black hole afterwards is noticed as any.
        pair.model(Side::Client).mtu = 1200;
        trickle(&mut pair, 60);
        let read = pair.app(Side::Server).read;
        assert_eq!(read, 40_000 * (2 + 590 + 60 + 620 + 60), "{ack}");
        assert!(
            mss(&pair) < 1200 && mss(&pair) > 1100,
            "{ack}: {}",
            mss(&pair)
        );
    }
}

/// A search on a path that loses and reorders finds the size all the same, and everything arrives.
#[test]
fn a_search_among_other_losses() {
    for (seed, congestion) in [(1, Algorithm::default()), (2, Algorithm::CUBIC)] {
        let forward = Model {
            mtu: 1400,
            loss: 0.01,
            reorder: 0.01,
            reorder_by: ms(3),
            ..Model::wire(ms(5), tack_base::Rate::from_bits_per_sec(50_000_000))
        };
        let config = Config {
            base_mss: Some(1000),
            congestion,
            ..Config::default()
        };
        let mut pair = Pair::open(seed, &config, forward, Model::default());
        pair.establish(secs(5));
        pair.send(Side::Client, 3_000_000);
        let done = pair.run_until(secs(120), |pair| pair.app(Side::Server).read == 3_000_000);
        assert!(done, "{congestion}");
        assert!(
            (1200..=1380).contains(&mss(&pair)),
            "{congestion}: {}",
            mss(&pair)
        );
    }
}
