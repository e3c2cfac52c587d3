//! The queue in which acknowledgements wait on their way to the sender, as far as its round trips
//! show one, and how often reports leave on account of it.

use core::time::Duration;

use tack_base::Instant;
use tack_base::time::Nanos;
use tack_wire::tack::Sync;

use crate::ack::policy::Carried;

/// Longest time in queues that a report is not repeated for, whatever the sender says.
const LONGEST_QUEUEING: Duration = Duration::from_secs(1);
/// How long it is remembered that acknowledgements waited in a queue on their way.
const MEMORY: Duration = Duration::from_secs(10);
/// Reports in that queue where it may be theirs, so that the link has one to send and one waits:
/// more of them arrive no more often and later, and a short queue drops them.
const WAITING_REPORTS: u64 = 2;
/// They leave no more rarely than this on account of it, which is the time that the smallest
/// reports take on 20 kbit/s. A queue that needs more is that of other packets …
const LONGEST_OWN: Nanos = Nanos(25_000_000);
/// … and may have so many of them, or so many where acknowledgements get lost, as in a short queue.
const WAITING_AMONG_OTHERS: u64 = 8;
const WAITING_AMONG_OTHERS_OF_FEW: u64 = 3;
/// Loss rate of acknowledgements that shows such a queue. One that data of this side fills now and
/// then loses fewer.
const OVERFLOW: f64 = 0.05;
/// Reports in RTTmin/beta while the sender probes for capacity, and of losses on a slow path.
pub(super) const DENSE: u64 = 4;
/// The longest time between reports on account of that queue.
const LONGEST_INTERVAL: Nanos = Nanos(100_000_000);

/// What is known of the queue.
#[derive(Debug)]
pub(super) struct BackQueue {
    /// By how much the round trip, as the sender said, is longer now than two without queues.
    queueing: Duration,
    /// Until when it counts that acknowledgements waited in a queue on their way.
    sparse_to: Instant,
    /// The same of a queue longer than RTTmin, …
    clogged_to: Instant,
    /// … and the time between reports with which a few of them are in it.
    clogged_interval: Nanos,
    /// The part of it for a queue of reports alone.
    own_interval: Nanos,
    /// How long acknowledgements waited as of the sender's last statement.
    back: Nanos,
    /// Segments that left since then: alone, and with data, which make that queue theirs.
    reports: u32,
    data: u32,
    /// When all reports of losses that left would have left, had there been one in each period.
    losses_told_to: Instant,
}

impl Default for BackQueue {
    fn default() -> Self {
        Self {
            queueing: Duration::ZERO,
            sparse_to: Instant::ZERO,
            clogged_to: Instant::ZERO,
            clogged_interval: Nanos::ZERO,
            own_interval: Nanos::ZERO,
            back: Nanos::ZERO,
            reports: 0,
            data: 0,
            losses_told_to: Instant::ZERO,
        }
    }
}

impl BackQueue {
    /// The sender said what it measures. `forward` is the time that segments spend in queues on
    /// their way here: what its round trip is longer beyond that, acknowledgements spend on theirs.
    pub(super) fn on_sync(
        &mut self,
        now: Instant,
        sync: &Sync,
        forward: Duration,
        rtt_min: Duration,
        time_period: Nanos,
    ) {
        let longer = sync.rtt.saturating_sub(sync.rtt_min);
        let back = Duration::from_micros(longer.into()).saturating_sub(forward);
        if back > Duration::from(time_period / 2) {
            self.sparse_to = now + MEMORY;
        }
        if back > rtt_min {
            self.clogged_to = now + MEMORY;
        }
        let back = Nanos::from(back);
        // The round trip is older than `forward`: where a queue on the way here drained meanwhile,
        // it seems to be one on the way back. That does not happen twice in a row.
        let surely = back.min(core::mem::replace(&mut self.back, back));
        // Where both ways have a queue, that on the way here may hide the other one. What was sure
        // stays while the round trip has room for it.
        let longer = Nanos::from(Duration::from_micros(longer.into()));
        let hidden = self.own_interval.min(longer / WAITING_REPORTS);
        let alone = Some(surely / WAITING_REPORTS).filter(|alone| *alone <= LONGEST_OWN);
        let own = alone.unwrap_or_default().max(hidden);
        let is_own = core::mem::take(&mut self.reports) > core::mem::take(&mut self.data);
        self.own_interval = if is_own { own } else { Nanos::ZERO };
        let waiting = if f64::from(sync.ack_loss_rate) < OVERFLOW * 65_536.0 {
            WAITING_AMONG_OTHERS
        } else {
            WAITING_AMONG_OTHERS_OF_FEW
        };
        // Whatever the sender says.
        self.clogged_interval = self.own_interval.max(back / waiting).min(LONGEST_INTERVAL);
        let longer = sync.rtt.saturating_sub(sync.rtt_min.saturating_mul(2));
        self.queueing = Duration::from_micros(longer.into()).min(LONGEST_QUEUEING);
    }

    /// A segment left that acknowledges.
    #[inline]
    pub(super) fn on_sent(&mut self, carried: Carried) {
        match carried {
            Carried::OnData => self.data = self.data.saturating_add(1),
            _ => self.reports = self.reports.saturating_add(1),
        }
    }

    /// By how much the round trip is longer now than two without queues.
    pub(super) fn queueing(&self) -> Duration {
        self.queueing
    }

    /// Acknowledgements had lately waited in a queue for longer than half of RTTmin/beta.
    #[inline]
    pub(super) fn is_sparse(&self, at: Instant) -> bool {
        at < self.sparse_to
    }

    /// Acknowledgements have lately waited in a queue longer than RTTmin.
    pub(super) fn is_clogged(&self, now: Instant) -> bool {
        now < self.clogged_to
    }

    /// The time between reports with which a few of them are in the queue.
    #[inline]
    pub(super) fn clogged_interval(&self) -> Nanos {
        self.clogged_interval
    }

    /// When a loss may be reported: at once, but where beta such reports left at once there is one
    /// in each `interval`, and in RTTmin/beta where acknowledgements wait in a queue longer than
    /// RTTmin: more of them would only come later.
    pub(super) fn loss_report_at(
        &self,
        now: Instant,
        beta: u8,
        time_period: Nanos,
        interval: Nanos,
    ) -> Instant {
        let ahead = self.loss_period(now, time_period, interval) * u32::from(beta - 1);
        let told_to = self.losses_told_to.max(now + ahead);
        now + told_to.saturating_since(now + ahead)
    }

    /// A report of a loss leaves.
    pub(super) fn on_loss_report(&mut self, now: Instant, time_period: Nanos, interval: Nanos) {
        let period = self.loss_period(now, time_period, interval);
        self.losses_told_to = self.losses_told_to.max(now) + period;
    }

    /// The time between reports of losses after a burst of them.
    fn loss_period(&self, now: Instant, time_period: Nanos, interval: Nanos) -> Duration {
        let period = if self.is_clogged(now) {
            time_period.max(self.clogged_interval)
        } else {
            interval
        };
        period.into()
    }
}
