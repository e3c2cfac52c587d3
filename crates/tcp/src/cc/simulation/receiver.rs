//! The receiver of a flow: when it acknowledges, and what it measures for that.

use core::time::Duration;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use tack_base::{Instant, Rate};

use super::{AckPacket, MSS};

const DELAYED_ACK: Duration = Duration::from_millis(40);
/// Segments an acknowledgement, where there are not too many of these.
const SEGMENTS: usize = 2;

/// What an arrival asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    Now,
    /// Then at the latest, unless an acknowledgement left before.
    At(Instant),
    /// The time that was set stands.
    Wait,
}

#[derive(Debug)]
pub(super) struct Receiver {
    /// Time between acknowledgements (TACK: the lower of a clock's rate and one every second
    /// segment); zero: none but the delayed-ACK timer (RFC 9293 §3.8.6.3).
    interval: Duration,
    /// Next segment in order.
    expected: u64,
    out_of_order: BTreeSet<u64>,
    /// Transmissions that arrived since the last acknowledgement, and when.
    pending: Vec<(u64, Instant)>,
    next_tx: u64,
    last_report_at: Instant,
    bytes: u64,
    /// Arrival time and bytes at the acknowledgements of the last two intervals.
    marks: VecDeque<(Instant, u64)>,
    pub(super) ack_epoch: u64,
    pub(super) last_ack_at: Instant,
    /// What arrived for the first time, and when.
    pub(super) received: Vec<(Instant, u64)>,
    pub(super) acknowledgements: u64,
}

impl Receiver {
    pub(super) const fn new(interval: Duration) -> Self {
        Self {
            interval,
            expected: 0,
            out_of_order: BTreeSet::new(),
            pending: Vec::new(),
            next_tx: 0,
            last_report_at: Instant::ZERO,
            bytes: 0,
            marks: VecDeque::new(),
            ack_epoch: 0,
            last_ack_at: Instant::ZERO,
            received: Vec::new(),
            acknowledgements: 0,
        }
    }

    /// A transmission arrives; `segment` is what it carries, unless that was repaired meanwhile.
    /// `dense` is the sender's wish.
    pub(super) fn arrival(
        &mut self,
        now: Instant,
        tx: u64,
        segment: Option<u64>,
        dense: bool,
    ) -> Decision {
        self.pending.push((tx, now));
        if let Some(segment) = segment
            && segment >= self.expected
            && self.out_of_order.insert(segment)
        {
            self.received.push((now, MSS));
            self.bytes += MSS;
            while self.out_of_order.remove(&self.expected) {
                self.expected += 1;
            }
        }
        let gap = tx > self.next_tx;
        self.next_tx = self.next_tx.max(tx + 1);
        if self.interval.is_zero() || dense {
            return match self.pending.len() {
                _ if !self.out_of_order.is_empty() => Decision::Now,
                SEGMENTS.. => Decision::Now,
                _ => Decision::At(now + DELAYED_ACK),
            };
        }
        let due = self.last_report_at + self.interval;
        match self.pending.len() {
            // A loss is reported at once, but once.
            _ if gap => Decision::Now,
            SEGMENTS.. if now >= due => Decision::Now,
            SEGMENTS => Decision::At(due),
            1 => Decision::At(due.max(now + self.interval)),
            _ => Decision::Wait,
        }
    }

    pub(super) fn acknowledge(&mut self, now: Instant) -> AckPacket {
        self.acknowledgements += 1;
        self.ack_epoch += 1;
        self.last_report_at = now;
        let arrived = core::mem::take(&mut self.pending)
            .into_iter()
            .map(|(tx, at)| (tx, now.saturating_since(at)))
            .collect();
        AckPacket {
            cumulative: self.expected,
            arrived,
            rate: self.measure(),
        }
    }

    /// The rate over two intervals at least.
    fn measure(&mut self) -> Option<Rate> {
        let (at, _) = *self.received.last()?;
        if self.interval.is_zero() || self.marks.back().is_some_and(|(last, _)| *last == at) {
            return None;
        }
        let since = |mark: &(Instant, u64)| at.saturating_since(mark.0);
        while self
            .marks
            .get(1)
            .is_some_and(|mark| since(mark) >= 2 * self.interval)
        {
            self.marks.pop_front();
        }
        let rate = self
            .marks
            .front()
            .filter(|mark| since(mark) >= 2 * self.interval)
            .map(|mark| Rate::from_bytes_over(self.bytes - mark.1, since(mark)));
        self.marks.push_back((at, self.bytes));
        rate
    }
}
