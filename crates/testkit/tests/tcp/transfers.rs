//! Whole transfers over paths that misbehave.

use std::time::Duration;

use tack_base::random::RandomStream;
use tack_base::{Instant, Rate};
use tack_tcp::config::{Audits, Carrier};
use tack_tcp::{AckKind, Algorithm, Config};
use tack_testkit::pair::BEGIN;
use tack_testkit::{Fate, Model, Pair};

use crate::settings::{ms, secs};

fn policies() -> [AckKind; 7] {
    [
        AckKind::Every,
        AckKind::delayed(2),
        AckKind::delayed(4),
        AckKind::delayed(8),
        AckKind::delayed(16),
        "tack".parse().expect("a policy"),
        "tack:l=4,rich=off,timing=sampled"
            .parse()
            .expect("a policy"),
    ]
}

/// Draws a direction: each fault is there now and then, and never so bad that nothing passes.
fn model(random: &mut RandomStream) -> Model {
    let now_and_then = |random: &mut RandomStream, most: f64| {
        if random.chance(0.4) {
            random.unit() * most
        } else {
            0.0
        }
    };
    let delay = Duration::from_micros(100 + random.below(80_000));
    let start = BEGIN + Duration::from_millis(random.below(2000));
    Model {
        delay,
        rate: random
            .chance(0.7)
            .then(|| Rate::from_bits_per_sec(500_000 + random.below(100_000_000))),
        queue: 5 + random.below(500) as usize,
        loss: now_and_then(random, 0.1),
        duplicate: now_and_then(random, 0.1),
        reorder: now_and_then(random, 0.2),
        reorder_by: Duration::from_micros(random.below(60_000)),
        mark: now_and_then(random, 0.1),
        mtu: if random.chance(0.1) {
            600 + random.below(900) as usize
        } else {
            1500
        },
        blackouts: if random.chance(0.2) {
            vec![start..start + Duration::from_millis(random.below(1500))]
        } else {
            Vec::new()
        },
        late: if random.chance(0.2) {
            Duration::from_micros(random.below(30_000))
        } else {
            Duration::ZERO
        },
        judge: None,
        rewriter: None,
        adversary: None,
    }
}

/// 20 random mixes of impairments × policies × controllers × carriers move 1 MiB each way, byte for
/// byte, and close cleanly. (Long form: 200.)
#[test]
fn bad_paths() {
    for seed in 0..if crate::is_long() { 200 } else { 20 } {
        let mut random = RandomStream::new(seed, "bad paths", 0);
        let config = Config {
            ack: policies()[random.below(7) as usize],
            congestion: Algorithm::ALL[random.below(Algorithm::ALL.len() as u64) as usize],
            timestamps: random.chance(0.8),
            sack: random.chance(0.8),
            window_scaling: random.chance(0.8),
            ecn: random.chance(0.5),
            nagle: random.chance(0.3),
            receive_buffer: 4_000 + random.below(1 << 20) as usize,
            send_buffer: 4_000 + random.below(1 << 20) as usize,
            user_timeout: None,
            syn_retries: 30,
            time_wait: secs(600),
            carrier: if random.chance(0.5) {
                Carrier {
                    timer_granularity: Duration::from_micros(random.below(1000)),
                    max_batch: 1 + random.below(63) as usize,
                    overhead: 28,
                }
            } else {
                Carrier::default()
            },
            audit: if random.chance(0.3) {
                Audits::Every(10 + random.below(100) as u32)
            } else {
                Audits::Never
            },
            least_receive_buffer: random.chance(0.3).then(|| random.below(1 << 16) as usize),
            ..Config::default()
        };
        let (forward, backward) = (model(&mut random), model(&mut random));
        println!("seed {seed}: {config:?}\n  forward {forward:?}\n  backward {backward:?}");
        let mut pair = Pair::open(seed, &config, forward, backward);
        pair.transfer(1 << 20, 1 << 20, secs(4 * 3600));
        println!("  took {:?}", pair.elapsed());
    }
}

/// Each of the first twelve packets of either direction lost in turn: handshakes, first windows and
/// short ends recover within seconds.
#[test]
fn lost_first_packets_of_every_kind() {
    for direction in 0..2 {
        for lost in 0..12 {
            let judge = move |packet: &tack_testkit::model::Packet<'_>| {
                if packet.index == lost {
                    Fate::Drop
                } else {
                    Fate::Pass
                }
            };
            let (forward, backward) = if direction == 0 {
                (Model::default().judged(judge), Model::default())
            } else {
                (Model::default(), Model::default().judged(judge))
            };
            let mut pair = Pair::open(
                1,
                &Config {
                    time_wait: secs(600),
                    ..Config::default()
                },
                forward,
                backward,
            );
            pair.transfer(20_000, 20_000, secs(60));
            assert!(
                pair.elapsed() < secs(8),
                "packet {lost} of direction {direction}: {:?}",
                pair.elapsed()
            );
        }
    }
}

/// The path is dead for a minute, then good: the transfer ends soon after (no timer is forgotten).
#[test]
fn a_path_that_comes_back() {
    for congestion in Algorithm::ALL {
        let dead = || vec![BEGIN + ms(300)..BEGIN + secs(60)];
        let good = || Model {
            blackouts: dead(),
            ..Model::wire(ms(20), Rate::from_bits_per_sec(20_000_000))
        };
        let mut pair = Pair::open(
            1,
            &Config {
                congestion,
                ..Config::default()
            },
            good(),
            good(),
        );
        pair.transfer(2_000_000, 500_000, secs(600));
        // The last retry before the path comes back may have been one RTO of up to 60 s before.
        assert!(
            pair.elapsed() < secs(130),
            "{congestion}: {:?}",
            pair.elapsed()
        );
    }
}

/// Same seed, same run: to the last counter.
#[test]
fn runs_are_reproducible() {
    let run = || {
        let lossy = || Model {
            loss: 0.02,
            reorder: 0.1,
            duplicate: 0.02,
            ..Model::default()
        };
        let mut pair = Pair::open(9, &Config::default(), lossy(), lossy());
        pair.transfer(300_000, 300_000, secs(600));
        (pair.elapsed(), pair.packets, format!("{}", pair.trace()))
    };
    assert_eq!(run(), run());
}

/// Utilisation in virtual time: BBR and CUBIC fill a clean 20 Mbit/s path.
#[test]
fn a_clean_path_is_filled() {
    for &congestion in crate::algorithms() {
        let wire = || Model {
            queue: 100,
            ..Model::wire(ms(20), Rate::from_bits_per_sec(20_000_000))
        };
        let mut pair = Pair::open(
            1,
            &Config {
                congestion,
                ..Config::default()
            },
            wire(),
            wire(),
        );
        pair.establish(secs(1));
        pair.send(tack_testkit::Side::Client, u64::from(u32::MAX));
        pair.run_for(secs(5));
        let (begin, before) = (pair.now(), pair.app(tack_testkit::Side::Server).read);
        pair.run_for(secs(10));
        let read = pair.app(tack_testkit::Side::Server).read - before;
        let share = read as f64 * 8.0 / pair.now().saturating_since(begin).as_secs_f64() / 20e6
            * 1500.0
            / 1448.0;
        assert!(share > 0.93, "{congestion}: {share}");
        assert!(Instant::ZERO < begin);
    }
}
