//! Keep-alive (RFC 9293 §3.8.4).

use tack_tcp::Config;
use tack_tcp::config::KeepAlive;
use tack_testkit::{Model, Pair, Peer, Side};

use crate::settings::{plain, secs};

fn config() -> Config {
    Config {
        keep_alive: Some(KeepAlive {
            idle: secs(10),
            interval: secs(1),
            probes: 3,
        }),
        ..plain()
    }
}

/// An idle peer is asked after the idle time, to the nanosecond; its answer starts the idle time
/// over.
#[test]
fn an_idle_peer_is_asked() {
    let mut peer = Peer::accepted(config(), "mss 1000");
    peer.run(
        "
        +10s  > . 0:0(0) ack 1
        +10ms < . 1:1(0) ack 1
        +10s  > . 0:0(0) ack 1
        +10ms < . 1:1(0) ack 1
        +5s   < . 1:101(100) ack 1
        +0    > . 1:1(0) ack 101
        +10s  > . 0:0(0) ack 101
        ",
    );
}

/// Without an answer the probes are repeated, then the connection is given up (MUST-29: not by one
/// lost probe).
#[test]
fn a_silent_peer_is_given_up() {
    let mut peer = Peer::accepted(config(), "mss 1000");
    peer.run(
        "
        +10s  > . 0:0(0) ack 1
        +1s   > . 0:0(0) ack 1
        +1s   > . 0:0(0) ack 1
        event nothing
        *     > R. 1:1(0) ack 1
        state Closed
        event Closed TimedOut
        ",
    );
    assert_eq!(
        peer.elapsed(),
        secs(13) + std::time::Duration::from_millis(10)
    );
}

/// With the times of `tack perf`, a peer that dies is noticed in 15 s, whether data is on its way
/// to it or not.
#[test]
fn a_dead_peer_is_noticed_in_15_s() {
    let config = || Config {
        user_timeout: Some(secs(15)),
        keep_alive: Some(KeepAlive {
            idle: secs(6),
            interval: secs(3),
            probes: 3,
        }),
        ..plain()
    };
    for data in ["", "write 100\n+0 > P. 1:101(100) ack 1"] {
        let mut peer = Peer::accepted(config(), "mss 1000");
        let begin = peer.elapsed();
        peer.run(data);
        peer.wait(secs(14));
        peer.take_output();
        peer.run("event nothing");
        peer.wait(secs(1) - (peer.elapsed() - begin - secs(14)));
        peer.take_output();
        peer.run("event Closed TimedOut");
    }
}

/// MUST-25: off by default.
#[test]
fn off_by_default() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run("+100000s > nothing");
}

/// A peer that asks is answered; also with one octet of garbage (RFC 9293 §3.8.4).
#[test]
fn a_probe_is_answered() {
    let mut peer = Peer::accepted(plain(), "mss 1000");
    peer.run(
        "
        +1s   < . 0:0(0) ack 1
        +0    > . 1:1(0) ack 1
        +1s   < . 0:1(1) ack 1
        +0    > . 1:1(0) ack 1
        read 0
        ",
    );
}

/// Data in flight is watched by its own timer: no probes beside it.
#[test]
fn no_probes_beside_data() {
    let mut peer = Peer::accepted(config(), "mss 1000");
    peer.run("write 100\n+0 > P. 1:101(100) ack 1");
    for output in {
        peer.wait(secs(30));
        peer.take_output()
    } {
        assert_eq!(output.payload.len(), 100, "{output:?}");
    }
}

/// A peer that asks while our data is stuck is answered: otherwise it would give us up.
#[test]
fn a_probe_is_answered_beside_stuck_data() {
    for ack in ["every", "tack"] {
        let config = Config {
            ack: ack.parse().expect("a policy"),
            ..plain()
        };
        let mut peer = Peer::accepted(config, "mss 1000");
        peer.run("write 100\n+0 > P. 1:101(100) ack 1\n+0 < F. 1:1(0) ack 1\n+0 > . 101:101(0) ack 2\nfinish\n+0 > F. 101:101(0) ack 2");
        peer.wait(secs(20));
        peer.take_output();
        for _ in 0..3 {
            peer.wait(secs(10));
            peer.take_output();
            let answers = peer.arrives(". 1:1(0) ack 1");
            assert_eq!(answers.len(), 1, "{ack}");
        }
    }
}

/// An idle connection between two ends that live stays open, whatever the policy.
#[test]
fn idle_connections_live_on() {
    for ack in ["every", "delayed:2", "tack"] {
        let config = Config {
            ack: ack.parse().expect("a policy"),
            ..self::config()
        };
        let mut pair = Pair::open(
            1,
            &Config {
                timestamps: true,
                sack: true,
                ..config
            },
            Model::default(),
            Model::default(),
        );
        pair.establish(secs(1));
        pair.send(Side::Client, 100_000);
        pair.run_for(secs(600));
        assert_eq!(pair.app(Side::Server).read, 100_000);
        for side in [Side::Client, Side::Server] {
            assert_eq!(pair.app(side).closed(), None, "{ack}, {side:?}");
        }
    }
}
