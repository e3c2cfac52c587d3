//! When a relay has its turns: as soon as something may be due, and not more often than [`REST`].

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use tack_base::Instant;
use tack_io::{Clock, PacingTimer};

/// Least time between two turns.
const REST: Duration = Duration::from_micros(20);

/// The clock of a relay, and when it acts next.
#[derive(Debug)]
pub(crate) struct Pace {
    pub(crate) clock: Clock,
    timer: PacingTimer,
    /// When the relay may have its next turn.
    rested: Instant,
    /// When it has its next turn at the latest, unless the machine is late.
    planned: Instant,
    next_sample: Instant,
    interval: Duration,
}

impl Pace {
    /// A clock that starts now, and samples each `interval`, at least a millisecond.
    pub(crate) fn new(interval: Duration) -> io::Result<Self> {
        let interval = interval.max(Duration::from_millis(1));
        Ok(Self {
            clock: Clock::new(),
            timer: PacingTimer::new()?,
            rested: Instant::ZERO,
            planned: Instant::ZERO,
            next_sample: Instant::ZERO + interval,
            interval,
        })
    }

    /// Sleeps until the next turn may begin. The thread is the relay's own, so it may sleep: a
    /// wake-up for each packet in between would only cost time.
    pub(crate) fn rest(&self) {
        let rest = self.rested.saturating_since(self.clock.now());
        if !rest.is_zero() {
            std::thread::sleep(rest);
        }
    }

    /// How much later than planned this turn begins.
    pub(crate) fn overslept(&self, now: Instant) -> Duration {
        now.saturating_since(self.planned)
    }

    /// True once for each interval up to `model`.
    pub(crate) fn is_sample_due(&mut self, model: Instant) -> bool {
        let is_due = model >= self.next_sample;
        while self.next_sample <= model {
            self.next_sample += self.interval;
        }
        is_due
    }

    /// Ends a turn: has the task woken when the model has something to do, or a sample is due.
    /// Always pending, but for errors of the timer.
    pub(crate) fn wait(
        &mut self,
        cx: &mut Context<'_>,
        next: Option<Instant>,
    ) -> Poll<io::Result<()>> {
        let now = self.clock.now();
        self.rested = now + REST;
        let deadline = next.map_or(self.next_sample, |next| next.min(self.next_sample));
        self.planned = deadline.max(self.rested);
        if deadline <= self.rested {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // Something may have been pending from the last arming.
        loop {
            self.timer.arm(self.clock.now(), deadline)?;
            match self.timer.poll_expired(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(outcome) => outcome?,
            }
            if deadline <= self.clock.now() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}
