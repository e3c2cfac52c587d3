//! An emulator as a thing to start and stop: it has a thread of its own, because it sleeps and must
//! not be kept waiting.

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use tack_io::UdpOptions;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::figures::{Sample, Summary};
use crate::relay::Relay;
use crate::settings::Settings;

/// Samples that wait to be read; further ones are dropped.
const SAMPLES: usize = 1_024;

/// Why an emulator did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The scenario has no `[wlan]`.
    #[error("the scenario has no wireless network; give it a [wlan] table")]
    NoWireless,
    /// One address is IPv4 and the other IPv6.
    #[error("cannot relay from {listen} to {to}: one is IPv4, the other IPv6")]
    Families {
        /// The address that clients send to.
        listen: SocketAddr,
        /// Where their datagrams go.
        to: SocketAddr,
    },
    /// The socket cannot be opened.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The system gives no thread or no poller.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// A running emulator. Dropping it stops it.
#[derive(Debug)]
pub struct Emulator {
    local: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    samples: Option<mpsc::Receiver<Sample>>,
    thread: Option<JoinHandle<io::Result<Summary>>>,
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
        let (stop, stopped) = oneshot::channel();
        let (sampler, samples) = mpsc::channel(SAMPLES);
        let (opened, opening) = std::sync::mpsc::channel();
        // The runtime is made on its own thread: the caller may be within a runtime, which must not
        // drop another one.
        let work = move || {
            let (runtime, relay) = match prepare(&settings, sampler, stopped) {
                Ok((runtime, relay)) => (runtime, relay),
                Err(error) => {
                    let _gone = opened.send(Err(error));
                    return Err(io::ErrorKind::Other.into());
                }
            };
            let _gone = opened.send(Ok(relay.local_addr()));
            sleep_exactly();
            runtime.block_on(async {
                let mut relay = relay;
                (&mut relay).await?;
                relay.summary()
            })
        };
        let thread = std::thread::Builder::new()
            .name("emulator".into())
            .spawn(work)?;
        let local = opening
            .recv()
            .map_err(|_| io::Error::other("the emulator ended by a panic"))??;
        Ok(Self {
            local,
            stop: Some(stop),
            samples: Some(samples),
            thread: Some(thread),
        })
    }

    /// The address that clients send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The receiver of all samples. Returns `None` after the first call.
    pub fn take_samples(&mut self) -> Option<mpsc::Receiver<Sample>> {
        self.samples.take()
    }

    /// Stops the emulation and returns its results. Takes no longer than a turn of the loop, well
    /// below a millisecond.
    ///
    /// # Errors
    /// When the system failed the emulator while it ran.
    pub fn stop(mut self) -> io::Result<Summary> {
        self.stop.take();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            _ => Err(io::Error::other("the emulator ended by a panic")),
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _outcome = thread.join();
        }
    }
}

/// The runtime of the emulator's thread, and the relay with its socket open.
fn prepare(
    settings: &Settings,
    samples: mpsc::Sender<Sample>,
    stop: oneshot::Receiver<()>,
) -> Result<(Runtime, Relay), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Each turn of the relay looks for what arrived.
        .event_interval(1)
        .build()?;
    let context = runtime.enter();
    let sockets = UdpOptions::new(settings.listen)
        .open()
        .map_err(|error| StartError::Listen {
            address: settings.listen,
            error,
        })?;
    let relay = Relay::new(settings, sockets, samples, stop)?;
    drop(context);
    Ok((runtime, relay))
}

/// Asks the kernel not to round this thread's sleeps up by the 50 µs that it allows itself. Not
/// every system can.
fn sleep_exactly() {
    #[cfg(target_os = "linux")]
    let _unsupported = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
