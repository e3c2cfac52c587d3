//! What every connection of `tack forward` and `tack proxy` shares: the peer, the places, and how
//! much is said of failures.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Semaphore;

use super::dial::TunnelPeer;

/// Connections that are carried at a time; more wait to be accepted.
pub(super) const MAX_CONNECTIONS: usize = 8192;
/// Lines about connections that failed; further failures are not reported.
const MAX_COMPLAINTS: u32 = 100;

/// Carries connections to one peer.
pub(crate) struct Carrier {
    pub(crate) peer: TunnelPeer,
    pub(crate) places: Arc<Semaphore>,
    complaints: AtomicU32,
    quiet: bool,
}

impl Carrier {
    pub(crate) fn new(peer: TunnelPeer) -> Self {
        Self {
            peer,
            places: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            complaints: AtomicU32::new(0),
            quiet: false,
        }
    }

    /// Whether failures are not reported.
    pub(crate) fn quiet(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }

    /// Reports a failure on standard error and in the log.
    pub(crate) fn complain(&self, about: &dyn fmt::Display, why: &dyn fmt::Display) {
        tracing::info!("{about}: {why}");
        if self.quiet {
            return;
        }
        match self.complaints.fetch_add(1, Ordering::Relaxed) {
            count if count < MAX_COMPLAINTS => eprintln!("tack: {about}: {why}"),
            MAX_COMPLAINTS => eprintln!("tack: further failures are not reported"),
            _ => {}
        }
    }
}
