//! The settings of an emulator.

use std::net::SocketAddr;
use std::time::Duration;

use tack_sim::Scenario;

/// What to emulate, and between which addresses.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The links: wired path and wireless network. The flows and the duration of the scenario do
    /// not count here.
    pub scenario: Scenario,
    /// Seed of the model's random draws.
    pub seed: u64,
    /// The address that clients send to; port 0 picks a free one.
    pub listen: SocketAddr,
    /// The address that receives the datagrams of the clients.
    pub to: SocketAddr,
    /// Maximum number of client addresses at a time. A new one takes the place of one that has been
    /// silent for ten seconds, or is ignored where there is none.
    pub max_flows: usize,
    /// Time between samples, at least a millisecond.
    pub sample_interval: Duration,
}

impl Settings {
    /// The links of `scenario`, drawn with its own seed, between `listen` and `to`: at most 64
    /// flows, ten samples a second.
    pub fn new(scenario: Scenario, listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            seed: scenario.seed,
            scenario,
            listen,
            to,
            max_flows: 64,
            sample_interval: Duration::from_millis(100),
        }
    }
}
