//! The thread of an emulator: it sleeps, and must not be kept waiting.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::figures::{Sample, Summary};

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
    /// The system gives no network namespaces.
    #[error(
        "cannot make network namespaces: {0}; it takes Linux and root (the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN)"
    )]
    Namespaces(io::Error),
    /// A host's device cannot be made.
    #[error("cannot connect {host}: {error}")]
    Device {
        /// The host.
        host: String,
        /// What the system says.
        error: io::Error,
    },
    /// Settings that make no sense.
    #[error("{0}")]
    Settings(String),
    /// The system gives no thread or no poller.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// What a thread of an emulator does until it is stopped.
pub(crate) trait Relaying: Future<Output = io::Result<()>> + Unpin {
    /// What the run was.
    ///
    /// # Errors
    /// When the system fails.
    fn summary(self) -> io::Result<Summary>;
}

/// A relay on a thread of its own. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    samples: Option<mpsc::Receiver<Sample>>,
    thread: Option<JoinHandle<io::Result<Summary>>>,
}

impl Running {
    /// Starts a thread that makes a relay by `prepare`, which is called within the runtime that
    /// comes with the relay, and drives it. Returns what else `prepare` made.
    pub(crate) fn start<R: Relaying, T: Send + 'static>(
        prepare: impl FnOnce(mpsc::Sender<Sample>, oneshot::Receiver<()>) -> Result<(R, T), StartError>
        + Send
        + 'static,
    ) -> Result<(Self, T), StartError> {
        let (stop, stopped) = oneshot::channel();
        let (sampler, samples) = mpsc::channel(SAMPLES);
        let (opened, opening) = std::sync::mpsc::channel();
        // The runtime is made on its own thread: the caller may be within a runtime, which must not
        // drop another one.
        let work = move || {
            let prepared = runtime().and_then(|runtime| {
                let context = runtime.enter();
                let prepared = prepare(sampler, stopped)?;
                drop(context);
                Ok((runtime, prepared))
            });
            let (runtime, relay) = match prepared {
                Ok((runtime, (relay, other))) => {
                    let _gone = opened.send(Ok(other));
                    (runtime, relay)
                }
                Err(error) => {
                    let _gone = opened.send(Err(error));
                    return Err(io::ErrorKind::Other.into());
                }
            };
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
        let other = opening
            .recv()
            .map_err(|_| io::Error::other("the emulator ended by a panic"))??;
        let running = Self {
            stop: Some(stop),
            samples: Some(samples),
            thread: Some(thread),
        };
        Ok((running, other))
    }

    pub(crate) fn take_samples(&mut self) -> Option<mpsc::Receiver<Sample>> {
        self.samples.take()
    }

    pub(crate) fn stop(mut self) -> io::Result<Summary> {
        self.stop.take();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            _ => Err(io::Error::other("the emulator ended by a panic")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _outcome = thread.join();
        }
    }
}

/// The runtime of an emulator's thread.
fn runtime() -> Result<Runtime, StartError> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Each turn of the relay looks for what arrived.
        .event_interval(1)
        .build()?)
}

/// Asks the kernel not to round this thread's sleeps up by the 50 µs that it allows itself. Not
/// every system can.
fn sleep_exactly() {
    #[cfg(target_os = "linux")]
    let _unsupported = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
