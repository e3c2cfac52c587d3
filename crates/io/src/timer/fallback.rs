//! The runtime's timer, for systems without timer file descriptors.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tack_base::Instant;
use tokio::time::Sleep;

/// A one-shot timer; arming it again replaces the deadline.
#[derive(Debug)]
pub struct PacingTimer {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The wait of the latest arming, until the poller has taken it: only the poller is sure to
    /// run in the runtime.
    requested: Option<Duration>,
    sleep: Option<Pin<Box<Sleep>>>,
    poller: Option<Waker>,
}

impl PacingTimer {
    /// Shortest wait that the timer keeps reliably: the runtime counts milliseconds and rounds up.
    #[cfg_attr(target_os = "linux", allow(dead_code))]
    pub const GRANULARITY: Duration = Duration::from_millis(2);

    /// A timer that is not armed. Must be polled within a tokio runtime whose time is enabled.
    ///
    /// # Errors
    /// None here; timers of other systems may fail.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            state: Mutex::new(State::default()),
        })
    }

    /// Arms the timer for `deadline` (at once when that has passed); `now` is the time now on the
    /// same clock.
    ///
    /// # Errors
    /// None here; timers of other systems may fail.
    pub fn arm(&self, now: Instant, deadline: Instant) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requested = Some(deadline.saturating_since(now));
        if let Some(poller) = state.poller.take() {
            poller.wake();
        }
        Ok(())
    }

    /// Ready when the armed deadline has passed, once; may also be ready too early, so compare with
    /// the clock.
    pub fn poll_expired(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wait) = state.requested.take() {
            state.sleep = Some(Box::pin(tokio::time::sleep(wait)));
        }
        match state.sleep.as_mut().map(|sleep| sleep.as_mut().poll(cx)) {
            Some(Poll::Ready(())) => {
                state.sleep = None;
                Poll::Ready(Ok(()))
            }
            _ => {
                state.poller = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
