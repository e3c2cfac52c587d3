//! A timer file descriptor in the runtime's poller.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tack_base::Instant;
use tack_base::time::nanos;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A one-shot timer; arming it again replaces the deadline.
#[derive(Debug)]
pub struct PacingTimer {
    fd: AsyncFd<OwnedFd>,
}

impl PacingTimer {
    /// Shortest wait that the timer keeps reliably (a wake-up is about 15 µs late on an idle
    /// machine).
    pub const GRANULARITY: Duration = Duration::from_micros(50);

    /// A timer that is not armed. Must be called within a tokio runtime whose I/O is enabled.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: the descriptor is a fresh timer owned by the `AsyncFd` and never lent out
        // mutably, so it stays open and the same until the `AsyncFd` is dropped.
        #[expect(
            unsafe_code,
            reason = "registering with the poller takes a promise about the descriptor"
        )]
        let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        Ok(Self { fd: registered? })
    }

    /// Arms the timer for `deadline` (at once when that has passed); `now` is the time now on the
    /// same clock.
    ///
    /// # Errors
    /// Only if the kernel refuses a valid request, which it has no reason to.
    pub fn arm(&self, now: Instant, deadline: Instant) -> io::Result<()> {
        // Zero would disarm.
        let wait = nanos(deadline.saturating_since(now)).max(1);
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: (wait / 1_000_000_000) as i64,
                tv_nsec: (wait % 1_000_000_000) as i64,
            },
        };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// Ready when the armed deadline has passed, once; may also be ready too early, so compare with
    /// the clock.
    pub fn poll_expired(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut guard = ready!(self.fd.poll_read_ready(cx))?;
        // The poller is edge-triggered and the next `arm` zeroes the expiry count: reading it out
        // would cost a system call and change nothing.
        guard.clear_ready();
        Poll::Ready(Ok(()))
    }
}
