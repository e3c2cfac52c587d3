//! An emulator between sockets as a thing to start and stop.

use std::io;
use std::net::SocketAddr;

use tack_io::UdpOptions;
use tokio::sync::mpsc;

use crate::figures::{Sample, Summary};
use crate::relay::Relay;
use crate::running::{Running, StartError};
use crate::settings::Settings;

/// A running emulator. Dropping it stops it.
#[derive(Debug)]
pub struct Emulator {
    local: SocketAddr,
    running: Running,
}

impl Emulator {
    /// Opens the socket and starts the emulation. Time in the model begins now.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        if settings.scenario.wlan.is_none() {
            return Err(StartError::NoWireless);
        }
        let (listen, to) = (settings.listen, settings.to);
        if listen.is_ipv4() && to.ip().to_canonical().is_ipv6() {
            return Err(StartError::Families { listen, to });
        }
        let settings = Settings {
            to: SocketAddr::new(to.ip().to_canonical(), to.port()),
            ..settings
        };
        let (running, local) = Running::start(move |samples, stop| {
            let sockets =
                UdpOptions::new(settings.listen)
                    .open()
                    .map_err(|error| StartError::Listen {
                        address: settings.listen,
                        error,
                    })?;
            let relay = Relay::new(&settings, sockets, samples, stop)?;
            let local = relay.local_addr();
            Ok((relay, local))
        })?;
        Ok(Self { local, running })
    }

    /// The address that clients send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The receiver of all samples. Returns `None` after the first call.
    pub fn take_samples(&mut self) -> Option<mpsc::Receiver<Sample>> {
        self.running.take_samples()
    }

    /// Stops the emulation and returns its results. Takes no longer than a turn of the loop, well
    /// below a millisecond.
    ///
    /// # Errors
    /// When the system failed the emulator while it ran.
    pub fn stop(self) -> io::Result<Summary> {
        self.running.stop()
    }
}
