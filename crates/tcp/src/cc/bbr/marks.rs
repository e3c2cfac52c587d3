//! Congestion marks: an upper bound of the window while a queue on the path marks (RFC 3168
//! §6.1.2).
//!
//! The model knows no marks: their queue is shorter than what BBR keeps in flight at times, and
//! whoever answers them beside it would starve. So from the first mark on, the window is at most
//! what CUBIC would have that answers marks alone, with the mild reduction of RFC 8511, and begins
//! with what was in flight. Once that has grown beyond the model's own window it is forgotten.
//!
//! What the path holds without a queue stays allowed: a queue marks for want of less than that only
//! where the model is wrong, and a long path would be used in part for the sake of a short queue.

use super::super::{Ack, Congestion, CongestionController, Cubic, Init};

/// The bound, and what it begins with.
#[derive(Debug, Default)]
pub(super) struct Marks {
    bound: Option<Cubic>,
    /// Most bytes in flight in the present round and the one before.
    peak: [u64; 2],
}

impl Marks {
    /// Bytes that may be in flight, where the path holds `path`; `None` while nothing marks.
    pub(super) fn bound(&self, path: u64) -> Option<u64> {
        let bound = self.bound.as_ref()?;
        Some(bound.cwnd().max(path))
    }

    /// A mark was echoed, with the window `cwnd` in force.
    pub(super) fn on_mark(&mut self, congestion: &Congestion, cwnd: u64, path: u64, mss: u64) {
        if self
            .bound
            .as_ref()
            .is_some_and(|bound| bound.cwnd() <= path)
        {
            // A further reduction would empty the pipe, and the window would take longer to return.
            return;
        }
        let in_use = self.peak[0].max(self.peak[1]).min(cwnd).max(mss);
        let congestion = Congestion {
            prior_in_flight: in_use,
            cwnd_limited: congestion.cwnd_limited && self.limits(cwnd, path),
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
    }

    /// An acknowledgement arrived, with the window `cwnd` in force and the model's own at `target`.
    pub(super) fn on_ack(
        &mut self,
        ack: &Ack,
        round_started: bool,
        cwnd: u64,
        path: u64,
        target: u64,
    ) {
        if round_started {
            self.peak = [0, self.peak[0]];
        }
        self.peak[0] = self.peak[0].max(ack.prior_in_flight);
        let limits = self.limits(cwnd, path);
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

    /// What marked was not the network.
    pub(super) fn on_false_marks(&mut self) {
        self.bound = None;
    }

    pub(super) fn on_mss(&mut self, mss: u64) {
        if let Some(bound) = &mut self.bound {
            bound.on_mss(mss);
        }
    }

    /// The bound is what holds the window down.
    fn limits(&self, cwnd: u64, path: u64) -> bool {
        self.bound(path).is_some_and(|bound| cwnd >= bound)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Cause;
    use super::super::super::test_events::{congestion, plain_ack};
    use super::*;
    use tack_base::Instant;

    const MSS: u64 = 1000;

    /// Marked once with a hundred segments in flight, all of the window.
    fn marked() -> Marks {
        let mut marks = Marks::default();
        marks.on_ack(&ack(), true, 200 * MSS, 50 * MSS, 200 * MSS);
        let mark = congestion(Cause::Ecn, 100 * MSS, 0);
        marks.on_mark(&mark, 200 * MSS, 50 * MSS, MSS);
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
        assert_eq!(Marks::default().bound(50 * MSS), None);
        assert_eq!(marked().bound(50 * MSS), Some(85 * MSS));
    }

    #[test]
    fn further_marks_lower_it_down_to_what_the_path_holds() {
        let mut marks = marked();
        for expected in [72_250, 61_413, 52_201, 50_000, 50_000] {
            let cwnd = marks.bound(50 * MSS).expect("marked");
            let mark = Congestion {
                cwnd_limited: true,
                ..congestion(Cause::Ecn, 0, 0)
            };
            marks.on_mark(&mark, cwnd, 50 * MSS, MSS);
            assert_eq!(marks.bound(50 * MSS), Some(expected));
        }
    }

    #[test]
    fn it_grows_while_it_is_the_limit_and_ends_beyond_the_window_of_the_model() {
        let mut marks = marked();
        for _ in 0..1000 {
            // The model wants less: it is not what limits.
            marks.on_ack(&ack(), false, 60 * MSS, 50 * MSS, 90 * MSS);
        }
        assert_eq!(marks.bound(50 * MSS), Some(85 * MSS));
        let mut acks = 0;
        while let Some(bound) = marks.bound(50 * MSS) {
            marks.on_ack(&ack(), false, bound, 50 * MSS, 90 * MSS);
            acks += 1;
            assert!(acks < 10_000, "{bound}");
        }
        assert!(acks > 85, "five segments take rounds, not {acks} segments");
    }
}
