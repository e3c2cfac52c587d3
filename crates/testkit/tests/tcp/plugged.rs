//! Policies and controllers of the application, good ones and wrong ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tack_base::{Instant, Rate};
use tack_tcp::ack::{
    AckContract, AckDecision, AckPolicy, AckPolicyFactory, AckReason, Carried, DataArrival,
};
use tack_tcp::cc::{Ack, Congestion, CongestionController, ControllerFactory, Init, Metrics};
use tack_tcp::{Algorithm, Config};
use tack_testkit::{Model, Pair, Side};

use crate::settings::{ms, secs};

/// Every so many segments, and never by itself at the end of a burst.
#[derive(Debug)]
struct Counting(u32);

impl AckPolicy for Counting {
    fn contract(&self) -> AckContract {
        AckContract::new(ms(40), self.0)
    }

    fn on_data(&mut self, arrival: &DataArrival) -> AckDecision {
        if arrival.unacknowledged >= u64::from(self.0) * arrival.peer_mss {
            return AckDecision::Now(AckReason::Threshold);
        }
        AckDecision::Nothing
    }
}

/// Never acknowledges anything, and promises the most that it may.
#[derive(Debug)]
struct Silent;

impl AckPolicy for Silent {
    fn contract(&self) -> AckContract {
        AckContract::new(secs(3600), u32::MAX)
    }

    fn on_data(&mut self, _arrival: &DataArrival) -> AckDecision {
        AckDecision::Nothing
    }

    fn on_timer(&mut self, _now: Instant) -> AckDecision {
        AckDecision::Nothing
    }
}

/// Acknowledges everything, again and again.
#[derive(Debug)]
struct Restless;

impl AckPolicy for Restless {
    fn contract(&self) -> AckContract {
        AckContract::new(ms(0), 0)
    }

    fn on_data(&mut self, _arrival: &DataArrival) -> AckDecision {
        AckDecision::Now(AckReason::Event)
    }

    fn on_timer(&mut self, now: Instant) -> AckDecision {
        AckDecision::Delayed(now)
    }

    fn on_ack_sent(&mut self, now: Instant, _carried: Carried) -> Option<Instant> {
        Some(now)
    }
}

/// A window that never changes.
#[derive(Debug)]
struct Fixed {
    cwnd: u64,
    rate: Option<Rate>,
}

impl CongestionController for Fixed {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn on_congestion(&mut self, _congestion: &Congestion) {}
    fn on_mss(&mut self, _mss: u64) {}
    fn cwnd(&self) -> u64 {
        self.cwnd
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }
    fn metrics(&self) -> Metrics {
        Metrics::phase("fixed")
    }
}

fn with_policy<P: AckPolicy + 'static>(make: impl Fn() -> P + Send + Sync + 'static) -> Config {
    Config {
        ack_policy: Some(AckPolicyFactory::new("own", make)),
        ..Config::default()
    }
}

fn with_controller(cwnd: u64, rate: Option<Rate>) -> Config {
    let make = move |_: &Init| Fixed { cwnd, rate };
    Config {
        controller: Some(ControllerFactory::new("own", make)),
        ..Config::default()
    }
}

fn path(loss: f64) -> Model {
    Model {
        loss,
        ..Model::wire(ms(10), Rate::from_bits_per_sec(20_000_000))
    }
}

fn pair(config: &Config, loss: f64) -> Pair {
    Pair::open(7, config, path(loss), path(loss))
}

#[test]
fn a_policy_of_ones_own_decides_how_many_acknowledgements_leave() {
    let mut acks = Vec::new();
    for segments in [2, 16] {
        let mut pair = pair(&with_policy(move || Counting(segments)), 0.0);
        pair.transfer(2_000_000, 0, secs(60));
        let now = pair.now();
        let stats = pair.connection(Side::Server).stats(now);
        // Plain TCP: TACK is neither offered nor agreed.
        assert_eq!(stats.acks_tack, 0);
        acks.push(stats.acks);
    }
    assert!(acks[0] > 5 * acks[1], "{acks:?}");
}

#[test]
fn wrong_policies_cost_time_and_packets_but_no_bytes() {
    for (config, limit) in [
        (with_policy(|| Silent), secs(300)),
        (with_policy(|| Restless), secs(60)),
    ] {
        for loss in [0.0, 0.02] {
            // `transfer` compares every byte, and fails when the limit passes.
            pair(&config, loss).transfer(300_000, 300_000, limit);
        }
    }
}

#[test]
fn wrong_controllers_cost_time_and_packets_but_no_bytes() {
    for (cwnd, rate) in [
        (0, None),
        (u64::MAX, None),
        (u64::MAX, Some(Rate::ZERO)),
        (30_000, Some(Rate::from_bits_per_sec(1_000_000))),
    ] {
        pair(&with_controller(cwnd, rate), 0.01).transfer(200_000, 0, secs(300));
    }
}

#[test]
fn a_controller_of_ones_own_is_in_charge() {
    let mut pair = pair(&with_controller(14_000, None), 0.0);
    pair.transfer(200_000, 0, secs(60));
    let now = pair.now();
    assert_eq!(pair.connection(Side::Client).stats(now).cwnd, 14_000);
    assert_eq!(
        pair.connection(Side::Client).congestion_metrics().phase,
        "fixed"
    );
}

#[test]
fn factories_are_called_as_documented_and_named_in_reports() {
    let made = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&made);
    let config = Config {
        controller: Some(ControllerFactory::new("own", move |init: &Init| {
            counter.fetch_add(1, Ordering::Relaxed);
            Fixed {
                cwnd: init.initial_window,
                rate: None,
            }
        })),
        ..with_policy(|| Counting(2))
    };
    assert_eq!(config.ack_name(), "own");
    assert_eq!(config.congestion_name(), "own");
    assert_eq!(config, config.clone());
    let other = Config {
        congestion: Algorithm::CUBIC,
        ..Config::default()
    };
    assert_ne!(config, other);
    assert_eq!(other.ack_name(), "tack");
    assert_eq!(other.congestion_name(), "cubic");
    pair(&config, 0.0).transfer(1000, 0, secs(10));
    // Twice for each of the two ends.
    assert_eq!(made.load(Ordering::Relaxed), 4);
}
