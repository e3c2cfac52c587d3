//! Wi-Fi between hosts that the kernel runs: each station and the server is a network namespace,
//! whose only device leads into the model.

mod bridge;
mod coalesce;
mod connections;
mod namespaces;
mod packets;
mod processor;
mod settings;

use std::io;

use tokio::sync::mpsc;

use crate::figures::{Sample, Summary};
use crate::running::{Running, StartError};
use bridge::Bridge;
use processor::OwnProcessor;
pub use settings::{Host, HostSettings};
use settings::{MAX_MTU, MIN_MTU};

/// A running emulation between hosts. Dropping it stops it, and with it go the devices; a namespace
/// goes with the last process in it.
#[derive(Debug)]
pub struct Hosts {
    hosts: Vec<Host>,
    running: Running,
}

impl Hosts {
    /// Makes the hosts and starts the emulation. Time in the model begins now.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(settings: HostSettings) -> Result<Self, StartError> {
        if !(MIN_MTU..=MAX_MTU).contains(&settings.mtu) {
            return Err(StartError::Settings(format!(
                "expected an MTU between {MIN_MTU} (the least of IPv6) and {MAX_MTU} (the most of 802.11) bytes, got {}",
                settings.mtu
            )));
        }
        let (running, hosts) = Running::start(move |samples, stop| {
            let count = bridge::hosts(&settings.scenario, settings.seed);
            let mut own = match settings.own_processor {
                true => OwnProcessor::choose()?,
                false => None,
            };
            let connected = namespaces::connect(count, settings.mtu, own.as_mut())?;
            if let Some(own) = own {
                own.stay()?;
            }
            Ok(Bridge::new(&settings, connected, samples, stop)?)
        })?;
        Ok(Self { hosts, running })
    }

    /// The hosts: the server, then the stations.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The receiver of all samples. Returns `None` after the first call.
    pub fn take_samples(&mut self) -> Option<mpsc::Receiver<Sample>> {
        self.running.take_samples()
    }

    /// Stops the emulation and returns its results. The devices are gone then.
    ///
    /// # Errors
    /// When the system failed the emulator while it ran.
    pub fn stop(self) -> io::Result<Summary> {
        self.running.stop()
    }
}
