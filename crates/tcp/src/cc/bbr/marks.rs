//! Congestion marks: an upper bound of the window while a queue on the path marks (RFC 3168
//! §6.1.2).
//!
//! The model knows no marks: their queue is shorter than what BBR keeps in flight at times, and
//! whoever answers them beside it would starve. So from the first mark on, the window is at most
//! what CUBIC would have that answers marks alone, with the mild reduction of RFC 8511, and begins
//! with what was in flight. Once that has grown beyond the model's own window it is forgotten.
//!
//! What the path holds without a queue, by the model, stays allowed in startup, and one reduction
//! less than that later: a long path would be used in part for the sake of a short queue. To allow
//! all of it for good would be no answer. The bandwidth is the largest of the last rounds, so that
//! a flow which has most of it would keep it, all the more so where a sparse peer's reports take as
//! long with a short queue as without one.

use super::super::cubic::BETA_OF_MARKS;
use super::super::{Ack, Congestion, CongestionController, Cubic, Init};
use super::Bbr;

/// The bound, and what it begins with.
#[derive(Debug, Default)]
pub(super) struct Marks {
    bound: Option<Cubic>,
    /// Most bytes in flight in the present round and the one before.
    peak: [u64; 2],
}

/// What the model says of the window at an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// The window in force, bytes.
    pub(super) cwnd: u64,
    /// Bytes in flight that marks leave it.
    pub(super) floor: u64,
    /// The model's own window, bytes.
    pub(super) target: u64,
}

impl Bbr {
    /// What [`Marks`] has to know.
    pub(super) fn marks_view(&self) -> View {
        let path = self.path_holds();
        let floor = if self.full_pipe.reached() {
            (path as f64 * BETA_OF_MARKS) as u64
        } else {
            path
        };
        View {
            cwnd: self.cwnd,
            floor,
            target: self.target(),
        }
    }
}

impl Marks {
    /// Bytes that may be in flight; `None` while nothing marks.
    pub(super) fn bound(&self) -> Option<u64> {
        Some(self.bound.as_ref()?.cwnd())
    }

    /// A mark was echoed.
    pub(super) fn on_mark(&mut self, congestion: &Congestion, view: &View, mss: u64) {
        let in_use = self.peak[0].max(self.peak[1]).min(view.cwnd).max(mss);
        let congestion = Congestion {
            prior_in_flight: in_use,
            cwnd_limited: congestion.cwnd_limited && self.limits(view.cwnd),
            ..*congestion
        };
        let bound = self.bound.get_or_insert_with(|| {
            Cubic::of_marks(&Init {
                now: congestion.now,
                mss,
                initial_window: in_use,
                restart_window: in_use,
                rtt: None,
                seed: 0,
                counting: crate::cc::Counting::Bytes,
            })
        });
        bound.on_congestion(&congestion);
        bound.raise(view.floor);
    }

    /// An acknowledgement arrived.
    pub(super) fn on_ack(&mut self, ack: &Ack, round_started: bool, view: &View) {
        if round_started {
            self.peak = [0, self.peak[0]];
        }
        self.peak[0] = self.peak[0].max(ack.prior_in_flight);
        let limits = self.limits(view.cwnd);
        let Some(bound) = &mut self.bound else {
            return;
        };
        bound.raise(view.floor);
        bound.on_ack(&Ack {
            // What growth counts is progress; the model repairs on its own.
            acked: ack.delivered,
            in_recovery: false,
            cwnd_limited: limits && ack.cwnd_limited,
            ..*ack
        });
        if bound.cwnd() > view.target {
            self.bound = None;
        }
    }

    /// What marked was not the network.
    pub(super) fn on_false_marks(&mut self) {
        self.bound = None;
    }

    pub(super) fn on_mss(&mut self, mss: u64) {
        if let Some(bound) = &mut self.bound {
            bound.on_mss(mss);
        }
    }

    /// The bound is what holds the window `cwnd` down.
    pub(super) fn limits(&self, cwnd: u64) -> bool {
        self.bound().is_some_and(|bound| cwnd >= bound)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Cause;
    use super::super::super::test_events::{congestion, plain_ack};
    use super::*;
    use tack_base::Instant;

    const MSS: u64 = 1000;

    /// The path holds fifty segments, and marks leave as much.
    fn view(cwnd: u64, target: u64) -> View {
        View {
            cwnd,
            floor: 50 * MSS,
            target,
        }
    }

    /// Marked once with a hundred segments in flight, all of the window.
    fn marked() -> Marks {
        let mut marks = Marks::default();
        let view = view(200 * MSS, 200 * MSS);
        marks.on_ack(&ack(), true, &view);
        let mark = congestion(Cause::Ecn, 100 * MSS, 0);
        marks.on_mark(&mark, &view, MSS);
        marks
    }

    fn ack() -> Ack {
        Ack {
            prior_in_flight: 100 * MSS,
            ..plain_ack(Instant::ZERO, MSS, 1_000 * MSS, 1_100 * MSS)
        }
    }

    #[test]
    fn the_first_mark_bounds_the_window_by_what_was_in_flight() {
        assert_eq!(Marks::default().bound(), None);
        assert_eq!(marked().bound(), Some(85 * MSS));
    }

    #[test]
    fn further_marks_lower_it_down_to_the_floor() {
        let mut marks = marked();
        for expected in [72_250, 61_413, 52_201, 50_000, 50_000] {
            let cwnd = marks.bound().expect("marked");
            let mark = Congestion {
                cwnd_limited: true,
                ..congestion(Cause::Ecn, 0, 0)
            };
            marks.on_mark(&mark, &view(cwnd, 200 * MSS), MSS);
            assert_eq!(marks.bound(), Some(expected));
        }
    }

    #[test]
    fn it_grows_while_it_is_the_limit_and_ends_beyond_the_window_of_the_model() {
        let mut marks = marked();
        for _ in 0..1000 {
            // The model wants less: it is not what limits.
            marks.on_ack(&ack(), false, &view(60 * MSS, 90 * MSS));
        }
        assert_eq!(marks.bound(), Some(85 * MSS));
        let mut acks = 0;
        while let Some(bound) = marks.bound() {
            marks.on_ack(&ack(), false, &view(bound, 90 * MSS));
            acks += 1;
            assert!(acks < 10_000, "{bound}");
        }
        assert!(acks > 85, "five segments take rounds, not {acks} segments");
    }
}
