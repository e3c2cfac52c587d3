//! Rounds: packet-timed round trips, told apart by delivered bytes.

/// Tells round trips apart by the delivery of what was in flight when each began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// The round ends when something sent after this many delivered bytes is delivered.
    end: u64,
    started: bool,
}

impl Round {
    /// True when the present acknowledgement began a round.
    pub(super) const fn started(&self) -> bool {
        self.started
    }

    /// A delivery-rate sample: `prior_delivered` of the newest delivered transmission, and the
    /// total now.
    pub(super) fn on_sample(&mut self, prior_delivered: u64, total_delivered: u64) {
        self.started = prior_delivered >= self.end;
        if self.started {
            self.end = total_delivered;
        }
    }

    /// An acknowledgement without sample begins no round.
    pub(super) fn no_sample(&mut self) {
        self.started = false;
    }

    /// Lets a round begin here, at this total of delivered bytes.
    pub(super) fn restart(&mut self, total_delivered: u64) {
        self.end = total_delivered;
    }
}
