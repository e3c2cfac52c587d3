//! Congestion marks: an upper bound of the window while a queue on the path marks (RFC 3168 §6.1.2).
//!
//! The model knows no marks: their queue is shorter than what BBR keeps in flight at times, and whoever answers them beside
//! it would starve. So from the first mark on, the window is at most what CUBIC would have that answers marks alone,
//! with the mild reduction of RFC 8511, and begins with what was in flight. Once that has grown beyond the model's own
//! window it is forgotten.

use super::super::{Ack, Congestion, CongestionController, Cubic, Init};

/// The bound, and what it begins with.
#[derive(Debug, Default)]
pub(super) struct Marks {
    bound: Option<Cubic>,
    /// Most bytes in flight in the present round and the one before.
    peak: [u64; 2],
}

impl Marks {
    /// Bytes that may be in flight; `None` while nothing marks.
    pub(super) fn bound(&self) -> Option<u64> {
        self.bound.as_ref().map(CongestionController::cwnd)
    }

    /// A mark was echoed.
    pub(super) fn on_mark(&mut self, congestion: &Congestion, cwnd: u64, mss: u64) {
        let in_use = self.peak[0].max(self.peak[1]).min(cwnd).max(mss);
        let congestion = Congestion {
            prior_in_flight: in_use,
            cwnd_limited: self.limits(cwnd) && congestion.cwnd_limited,
            ..*congestion
        };
        let bound = self.bound.get_or_insert_with(|| {
            Cubic::of_marks(&Init {
                now: congestion.now,
                mss,
                initial_window: in_use,
                rtt: None,
                seed: 0,
            })
        });
        bound.on_congestion(&congestion);
    }

    /// An acknowledgement arrived, with the window `cwnd` in force and the model's own at `target`.
    pub(super) fn on_ack(&mut self, ack: &Ack, round_started: bool, cwnd: u64, target: u64) {
        if round_started {
            self.peak = [0, self.peak[0]];
        }
        self.peak[0] = self.peak[0].max(ack.prior_in_flight);
        let limits = self.limits(cwnd);
        let Some(bound) = &mut self.bound else {
            return;
        };
        bound.on_ack(&Ack {
            // What growth counts is progress; the model repairs on its own.
            acked: ack.delivered,
            in_recovery: false,
            cwnd_limited: limits && ack.cwnd_limited,
            ..*ack
        });
        if bound.cwnd() > target {
            self.bound = None;
        }
    }

    pub(super) fn on_mss(&mut self, mss: u64) {
        if let Some(bound) = &mut self.bound {
            bound.on_mss(mss);
        }
    }

    /// The bound is what holds the window down.
    fn limits(&self, cwnd: u64) -> bool {
        self.bound().is_some_and(|bound| cwnd >= bound)
    }
}
