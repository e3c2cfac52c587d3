//! Pacing: when segments leave.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tack_base::{Instant, Rate};
use tack_tcp::config::Carrier;
use tack_tcp::{Algorithm, Config};
use tack_testkit::{Fate, Model, Pair, Peer, Side};

use crate::settings::{ms, secs, unpaced};

/// On a carrier with exact timers the first window is spread evenly at twice cwnd/SRTT (slow
/// start): 10 segments of 1000 bytes over 10 ms, one each 500 µs, to the nanosecond.
#[test]
fn exact_carriers_space_segments_evenly() {
    let config = Config {
        carrier: Carrier::default(),
        timestamps: false,
        ..unpaced()
    };
    let mut peer = Peer::accepted(config, "mss 1000");
    let data = tack_testkit::pattern::bytes(0, 10_000);
    assert_eq!(
        peer.with(|connection, now| connection.write(now, &data)),
        Ok(10_000)
    );
    peer.wait(ms(6));
    let times: Vec<_> = peer
        .take_output()
        .iter()
        .map(|output| output.at - ms(10))
        .collect();
    let expected: Vec<_> = (0..10)
        .map(|index| Duration::from_micros(500 * index))
        .collect();
    assert_eq!(times, expected);
}

/// A coarse carrier gets quanta of what the rate is worth in its granularity, not segment by
/// segment, and the average holds.
#[test]
fn coarse_carriers_get_quanta() {
    let carrier = Carrier {
        timer_granularity: ms(1),
        max_batch: 64,
        overhead: 28,
    };
    let config = Config {
        carrier,
        timestamps: false,
        initial_window_segments: 40,
        ..unpaced()
    };
    let mut peer = Peer::accepted(config, "mss 1000");
    let data = tack_testkit::pattern::bytes(0, 40_000);
    assert_eq!(
        peer.with(|connection, now| connection.write(now, &data)),
        Ok(40_000)
    );
    peer.wait(ms(6));
    let mut bursts: Vec<(Duration, usize)> = Vec::new();
    for output in peer.take_output() {
        match bursts.last_mut() {
            Some((at, count)) if *at == output.at => *count += 1,
            _ => bursts.push((output.at, 1)),
        }
    }
    // 40 segments in 5 ms: 8 a millisecond.
    assert_eq!(bursts.iter().map(|burst| burst.1).sum::<usize>(), 40);
    assert!(bursts.iter().all(|burst| burst.1 <= 16), "{bursts:?}");
    assert!((4..=6).contains(&bursts.len()), "{bursts:?}");
}

/// Over a whole transfer no four segments in a row leave faster than the controller's rate: (2 in
/// slow start, else 1.2) × cwnd/SRTT for the window-based ones, and what BBR's highest gain makes
/// of the path.
#[test]
fn the_rate_holds_over_four_segments() {
    for congestion in Algorithm::ALL {
        let departures = Rc::new(RefCell::new(Vec::new()));
        let log = departures.clone();
        let wire = || Model::wire(ms(20), Rate::from_bits_per_sec(20_000_000));
        let forward = wire().judged(move |packet| {
            if !packet.segment.payload.is_empty() {
                log.borrow_mut().push(packet.now);
            }
            Fate::Pass
        });
        let mut pair = Pair::open(
            1,
            &Config {
                congestion,
                ..Config::default()
            },
            forward,
            wire(),
        );
        pair.establish(secs(1));
        // The highest rate in force, from each event on.
        let mut rates: Vec<(Instant, f64)> = Vec::new();
        pair.send(Side::Client, 5_000_000);
        assert!(pair.run_until(secs(30), |pair| {
            let stats = pair.connection(Side::Client).stats(pair.now());
            let gain = match stats.cwnd < stats.ssthresh {
                // Of the window that its round began with, which is the whole one at first.
                true if congestion == Algorithm::Vegas => 2.2,
                true => 2.0,
                false => 1.2,
            };
            let by_window = gain * stats.cwnd as f64
                / stats
                    .srtt
                    .map_or(f64::MIN_POSITIVE, |srtt| srtt.as_secs_f64());
            let rate = if congestion == Algorithm::default() {
                2.9 * 2_500_000.0
            } else {
                by_window
            };
            rates.push((pair.now(), rate));
            pair.app(Side::Server).read == 5_000_000
        }));
        let departures = departures.borrow();
        // BBR's first windows follow the handshake's RTT, not the path's rate.
        let first = if congestion == Algorithm::default() {
            100
        } else {
            0
        };
        for five in departures[first..departures.len() - 1].windows(5) {
            let begin = rates
                .partition_point(|(at, _)| *at < five[0])
                .saturating_sub(1);
            let end = rates.partition_point(|(at, _)| *at <= five[4]);
            let fastest = rates[begin..end]
                .iter()
                .map(|(_, rate)| *rate)
                .fold(0.0, f64::max);
            let taken = five[4].saturating_since(five[0]).as_secs_f64();
            // Four segments of 1448 bytes; 5 % for rounding of SRTT within an event.
            assert!(
                taken >= 0.95 * 4.0 * 1448.0 / fastest,
                "{congestion}: {taken} at {five:?}, rate {fastest}"
            );
        }
    }
}

/// The carrier that a socket of Linux is.
fn socket() -> Config {
    Config {
        carrier: Carrier {
            timer_granularity: Duration::from_micros(50),
            max_batch: 64,
            overhead: 28,
        },
        ..Config::default()
    }
}

/// How many seconds it takes a client to move `bytes`, where the client and the server each run
/// once in its turn; zero is at once.
fn upload(config: &Config, wire: impl Fn() -> Model, bytes: u64, turns: [Duration; 2]) -> f64 {
    let mut pair = Pair::open(1, config, wire(), wire());
    pair.establish(secs(1));
    pair.set_turns(Side::Client, turns[0]);
    pair.set_turns(Side::Server, turns[1]);
    let begin = pair.elapsed();
    pair.send(Side::Client, bytes);
    assert!(pair.run_until(secs(600), |pair| pair.app(Side::Server).read == bytes));
    (pair.elapsed() - begin).as_secs_f64()
}

/// On a machine with other work a process runs once in several milliseconds. The timer of the
/// carrier is finer, so each pacing wait costs a whole turn. The sender makes up for it, and BBR
/// does not take its own delay for the rate of the path: it needs no longer than CUBIC, whose
/// window opens until pacing does not matter (without: 1.5 to 4.6 times as long).
#[test]
fn a_busy_machine_does_not_slow_bbr_down() {
    let wire = || {
        Model::wire(
            Duration::from_micros(20),
            Rate::from_bits_per_sec(10_000_000_000),
        )
    };
    let seconds = |congestion, turns| {
        let config = Config {
            congestion,
            ..socket()
        };
        upload(&config, wire, 64 << 20, turns)
    };
    let all = [[20, 20], [4, 0], [4, 4], [12, 0]];
    for turns in &all[..if crate::is_long() { 4 } else { 1 }] {
        let [bbr, cubic] = [Algorithm::default(), Algorithm::CUBIC]
            .map(|congestion| seconds(congestion, turns.map(ms)));
        assert!(bbr < 1.3 * cubic, "{turns:?}: {bbr} s, CUBIC {cubic} s");
    }
}

/// A window of 32 KiB is full again and again, and turns make each timer late. Were what they hold
/// back always spread, BBR would need 1.36, 1.99 and 1.73 times as long; were it never, 1, 1.07 and
/// 1.6 times.
#[test]
fn late_turns_do_not_hold_back_a_small_window() {
    let wire = || Model::wire(ms(1), Rate::from_bits_per_sec(80_000_000));
    let seconds = |congestion, turn| {
        let config = Config {
            congestion,
            receive_buffer: 32 << 10,
            initial_receive_buffer: 32 << 10,
            ..socket()
        };
        upload(&config, wire, 4 << 20, [turn, Duration::ZERO])
    };
    for congestion in [Algorithm::CUBIC, Algorithm::default()] {
        for (micros, most) in [(500, 1.02), (1_000, 1.1), (2_000, 1.7)] {
            let turn = Duration::from_micros(micros);
            let [prompt, late] = [Duration::ZERO, turn].map(|turn| seconds(congestion, turn));
            assert!(
                late < most * prompt,
                "{congestion}, {micros} us: {late} s, {prompt} s"
            );
        }
    }
}
