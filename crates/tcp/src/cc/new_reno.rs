//! NewReno: RFC 5681 with byte counting (RFC 3465); RFC 6582's recovery itself is the sender's
//! work.
//!
//! Below `ssthresh` the window grows by the bytes delivered (it doubles each round trip), above it
//! by one segment for each window of bytes delivered. Loss and marks halve it, a timeout reduces it
//! to one segment. With [`Counting::Acknowledgements`] an acknowledgement counts for one segment at
//! most (RFC 5681 §3.1).
//!
//! Deviation: RFC 3465 §2.2 limits the growth of one acknowledgement to two segments, against
//! bursts. The sender paces, so there are none, and the limit would starve receivers that
//! acknowledge rarely. After a timeout its limit of one segment guards against cumulative
//! acknowledgements that jump over data delivered long before: counting newly *delivered* bytes
//! does that exactly.

use core::time::Duration;

use tack_base::Instant;

use super::hystart::{HyStart, Step};
use super::undo::{Episode, Undo};
use super::unreported::Unreported;
use super::{
    Ack, Cause, Congestion, CongestionController, Counting, Init, MAX_MSS, MAX_WINDOW, Metrics,
    for_segments,
};

/// What an undone episode restores.
#[derive(Clone, Copy, Debug)]
struct Saved {
    cwnd: u64,
    ssthresh: u64,
    episode: Episode,
    hystart: Option<HyStart>,
}

/// The NewReno controller.
#[derive(Debug)]
pub struct NewReno {
    mss: u64,
    restart_window: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Bytes delivered in congestion avoidance that did not yet make up a window.
    acked_bytes: u64,
    /// Present while it watches the first slow start.
    hystart: Option<HyStart>,
    episode: Episode,
    undo: Undo<Saved>,
    unreported: Unreported,
    counting: Counting,
}

impl NewReno {
    /// A controller with the standard slow start of RFC 5681.
    pub fn new(init: &Init) -> Self {
        let mss = init.mss.clamp(1, MAX_MSS);
        let initial_window = init.initial_window.clamp(mss, MAX_WINDOW);
        Self {
            mss,
            restart_window: init.restart_window.clamp(mss, MAX_WINDOW),
            cwnd: initial_window,
            ssthresh: u64::MAX,
            acked_bytes: 0,
            hystart: None,
            episode: Episode::Open,
            undo: Undo::new(),
            unreported: Unreported::default(),
            counting: init.counting,
        }
    }

    /// The same with HyStart++ (RFC 9406) in the first slow start.
    pub fn with_hystart(init: &Init) -> Self {
        Self {
            hystart: Some(HyStart::default()),
            ..Self::new(init)
        }
    }

    pub(super) const fn mss(&self) -> u64 {
        self.mss
    }

    /// Congestion window, bytes, without the room for what is not reported yet.
    pub(super) const fn window(&self) -> u64 {
        self.cwnd
    }

    /// By how much the window in force is wider: in slow start not, as it is acknowledged densely.
    pub(super) fn widening(&self) -> f64 {
        if self.in_slow_start() {
            1.0
        } else {
            self.unreported.ratio(self.cwnd, self.mss)
        }
    }

    pub(super) const fn episode(&self) -> Episode {
        self.episode
    }

    /// Notes what every acknowledgement tells, foremost whether the sender still repairs; true when
    /// nothing is open.
    pub(super) fn settle(&mut self, ack: &Ack) -> bool {
        self.unreported.on_ack(ack, self.in_slow_start());
        if !ack.in_recovery {
            self.episode = Episode::Open;
        }
        self.episode == Episode::Open
    }

    /// A controller built on this one found room for `bytes` more.
    pub(super) fn grow(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(MAX_WINDOW);
    }

    /// A controller built on this one found too much in flight: congestion avoidance from `window`
    /// on, but not from less than two segments.
    pub(super) fn come_down_to(&mut self, window: u64) {
        self.cwnd = self.cwnd.min(window.max(2 * self.mss));
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }

    /// RFC 5681 §3.1, with what lies beyond `ssthresh` left for congestion avoidance.
    fn slow_start(&mut self, bytes: u64) -> u64 {
        let grown = self
            .cwnd
            .saturating_add(bytes)
            .min(self.ssthresh)
            .min(MAX_WINDOW);
        let used = grown - self.cwnd;
        self.cwnd = grown;
        bytes.saturating_sub(used)
    }

    /// RFC 3465 §2.1: one segment for each window of bytes.
    fn congestion_avoidance(&mut self, bytes: u64) {
        self.acked_bytes = self.acked_bytes.saturating_add(bytes);
        let windows = self.acked_bytes / self.cwnd;
        if windows > 0 {
            self.acked_bytes -= windows * self.cwnd;
            self.cwnd = self
                .cwnd
                .saturating_add(windows.saturating_mul(self.mss))
                .min(MAX_WINDOW);
        }
    }
}

impl CongestionController for NewReno {
    fn on_ack(&mut self, ack: &Ack) {
        self.settle(ack);
        // RFC 5681 §3.2: duplicate acknowledgements do not open the window.
        if self.episode == Episode::FastRecovery || ack.acked == 0 {
            return;
        }
        let mut bytes = match self.counting {
            Counting::Bytes => ack.delivered,
            Counting::Acknowledgements => ack.delivered.min(self.mss),
        };
        if self.in_slow_start() {
            let mut growth = bytes;
            if let Some(hystart) = &mut self.hystart {
                match hystart.on_ack(ack, bytes, self.unreported.interval()) {
                    Step::Grow(bytes) => growth = bytes,
                    Step::Exit => {
                        self.hystart = None;
                        self.ssthresh = self.cwnd;
                        return;
                    }
                }
            }
            if !ack.cwnd_limited {
                return;
            }
            bytes = self.slow_start(growth.min(ack.slow_start_room));
            if self.in_slow_start() {
                return;
            }
        }
        if ack.cwnd_limited {
            self.congestion_avoidance(bytes);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        // RFC 5681 §3.1: a timeout of a segment that already timed out leaves ssthresh alone.
        let first = congestion.cause != Cause::Timeout || congestion.consecutive_timeouts <= 1;
        if first {
            let saved = Saved {
                cwnd: self.cwnd,
                ssthresh: self.ssthresh,
                episode: self.episode,
                hystart: self.hystart,
            };
            self.undo.save(congestion.cause, self.episode, saved);
            let flight = match (congestion.cause, self.episode) {
                // RFC 5681 §4.3: the loss of a retransmission lowers the window a second time. What
                // is in flight says little here, as losses are off it already.
                (Cause::Timeout, Episode::FastRecovery) => self.cwnd,
                _ if self.in_slow_start() => self.cwnd.min(congestion.prior_in_flight),
                _ => self.unreported.used(congestion, self.cwnd, self.mss),
            };
            self.ssthresh = (flight / 2).max(2 * self.mss).min(MAX_WINDOW);
        }
        match congestion.cause {
            Cause::Loss => {
                self.episode = Episode::FastRecovery;
                self.cwnd = self.cwnd.min(self.ssthresh);
            }
            // RFC 3168 §6.1.2: as for loss, with nothing to retransmit.
            Cause::Ecn => self.cwnd = self.cwnd.min(self.ssthresh),
            Cause::Timeout => {
                self.episode = Episode::Timeout;
                self.cwnd = self.mss;
            }
        }
        self.acked_bytes = 0;
        self.hystart = None;
    }

    fn on_recovered(&mut self, _now: Instant) {
        self.episode = Episode::Open;
    }

    fn on_spurious(&mut self, _now: Instant, cause: Cause) {
        if let Some(saved) = self.undo.take(cause) {
            self.cwnd = self.cwnd.max(saved.cwnd);
            self.ssthresh = self.ssthresh.max(saved.ssthresh);
            self.episode = self.episode.back_to(saved.episode);
            self.hystart = saved.hystart;
        }
    }

    fn on_false_marks(&mut self, _now: Instant, window: u64) {
        let window = window.min(MAX_WINDOW);
        self.cwnd = self.cwnd.max(window);
        self.ssthresh = self.ssthresh.max(window);
    }

    fn on_idle_restart(&mut self, _now: Instant, _idle: Duration) {
        // RFC 2861 §2: remember most of the old window as threshold, so that slow start returns to
        // it.
        self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
        // RFC 5681 §4.1: the restart window.
        self.cwnd = self.cwnd.min(self.restart_window);
        self.acked_bytes = 0;
    }

    fn on_mss(&mut self, mss: u64) {
        let old = core::mem::replace(&mut self.mss, mss.clamp(1, MAX_MSS));
        self.restart_window = for_segments(self.restart_window, old, self.mss);
        self.cwnd = for_segments(self.cwnd, old, self.mss);
    }

    fn on_feedback_threshold(&mut self, segments: u16) {
        self.unreported.on_feedback_threshold(segments);
    }

    fn on_feedback_gap(&mut self, gap: Duration) {
        self.unreported.on_feedback_gap(gap);
    }

    fn on_feedback_interval(&mut self, interval: Duration) {
        self.unreported.on_feedback_interval(interval);
    }

    fn cwnd(&self) -> u64 {
        if self.in_slow_start() {
            self.cwnd
        } else {
            self.unreported.widen(self.cwnd, self.mss)
        }
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    fn pacing_gain(&self) -> f64 {
        // Of the window in force, what makes the standard gain of the window.
        if self.in_slow_start() {
            2.0
        } else {
            1.2 / self.widening()
        }
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn metrics(&self) -> Metrics {
        let phase = match self.episode {
            Episode::FastRecovery => "recovery",
            _ if !self.in_slow_start() => "congestion_avoidance",
            _ if self
                .hystart
                .is_some_and(|hystart| hystart.is_conservative()) =>
            {
                "conservative_slow_start"
            }
            _ => "slow_start",
        };
        Metrics {
            phase,
            ..Metrics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_events::{congestion, plain_ack};
    use super::*;

    const MSS: u64 = 1000;

    fn controller() -> NewReno {
        NewReno::new(&Init {
            now: Instant::ZERO,
            mss: MSS,
            initial_window: 10 * MSS,
            restart_window: 10 * MSS,
            rtt: None,
            seed: 0,
            counting: Counting::Bytes,
        })
    }

    fn ack(bytes: u64) -> Ack {
        plain_ack(Instant::ZERO, bytes, 1_000 * MSS, 1_100 * MSS)
    }

    #[test]
    fn bytes_count_not_acknowledgements() {
        let (mut often, mut rarely) = (controller(), controller());
        for _ in 0..10 {
            often.on_ack(&ack(MSS));
        }
        rarely.on_ack(&ack(10 * MSS));
        assert_eq!((often.cwnd(), rarely.cwnd()), (20 * MSS, 20 * MSS));
    }

    #[test]
    fn acknowledgements_count_for_one_segment_at_most_when_they_are_counted() {
        let mut reno = NewReno {
            counting: Counting::Acknowledgements,
            ..controller()
        };
        reno.on_ack(&ack(10 * MSS));
        assert_eq!(reno.cwnd(), 11 * MSS, "slow start");
        reno.ssthresh = 11 * MSS;
        for _ in 0..11 {
            reno.on_ack(&ack(2 * MSS));
        }
        assert_eq!(reno.cwnd(), 12 * MSS, "congestion avoidance");
        reno.on_ack(&ack(MSS / 2));
        assert_eq!(reno.acked_bytes, MSS / 2);
    }

    #[test]
    fn what_lies_beyond_the_threshold_counts_for_avoidance() {
        let mut reno = controller();
        reno.ssthresh = 12 * MSS;
        reno.on_ack(&ack(5 * MSS));
        assert_eq!((reno.cwnd(), reno.acked_bytes), (12 * MSS, 3 * MSS));
        reno.on_ack(&ack(9 * MSS));
        assert_eq!((reno.cwnd(), reno.acked_bytes), (13 * MSS, 0));
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut reno = controller();
        reno.on_ack(&Ack {
            cwnd_limited: false,
            ..ack(10 * MSS)
        });
        assert_eq!(reno.cwnd(), 10 * MSS);
    }

    #[test]
    fn slow_start_keeps_to_its_room() {
        let mut reno = controller();
        reno.on_ack(&Ack {
            slow_start_room: 3 * MSS,
            ..ack(10 * MSS)
        });
        assert_eq!(reno.cwnd(), 13 * MSS);
    }

    #[test]
    fn loss_halves_what_was_in_flight_and_fast_recovery_waits() {
        let mut reno = controller();
        reno.on_ack(&ack(90 * MSS));
        reno.on_congestion(&congestion(Cause::Loss, 80 * MSS, 0));
        assert_eq!((reno.cwnd(), reno.ssthresh()), (40 * MSS, 40 * MSS));
        reno.on_ack(&Ack {
            in_recovery: true,
            ..ack(20 * MSS)
        });
        assert_eq!(reno.cwnd(), 40 * MSS);
        reno.on_recovered(Instant::ZERO);
        reno.on_ack(&ack(40 * MSS));
        assert_eq!(reno.cwnd(), 41 * MSS);
        reno.on_congestion(&congestion(Cause::Ecn, 20 * MSS, 0));
        assert_eq!((reno.cwnd(), reno.ssthresh()), (10 * MSS, 10 * MSS));
    }

    #[test]
    fn timeouts_in_a_row_reduce_the_threshold_once_and_slow_start_repairs() {
        let mut reno = controller();
        reno.on_ack(&ack(90 * MSS));
        reno.on_congestion(&congestion(Cause::Timeout, 100 * MSS, 1));
        assert_eq!((reno.cwnd(), reno.ssthresh()), (MSS, 50 * MSS));
        reno.on_congestion(&congestion(Cause::Timeout, MSS, 2));
        assert_eq!((reno.cwnd(), reno.ssthresh()), (MSS, 50 * MSS));
        // A jump over data delivered before counts by what it newly delivers.
        reno.on_ack(&Ack {
            in_recovery: true,
            acked: 60 * MSS,
            ..ack(MSS)
        });
        assert_eq!(reno.cwnd(), 2 * MSS);
        reno.on_spurious(Instant::ZERO, Cause::Timeout);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (100 * MSS, u64::MAX));
    }

    #[test]
    fn a_timeout_within_fast_recovery_lowers_twice_and_is_undone_alone() {
        let mut reno = controller();
        reno.on_ack(&ack(90 * MSS));
        reno.on_congestion(&congestion(Cause::Loss, 100 * MSS, 0));
        reno.on_congestion(&congestion(Cause::Timeout, 3 * MSS, 1));
        assert_eq!((reno.cwnd(), reno.ssthresh()), (MSS, 25 * MSS));
        reno.on_spurious(Instant::ZERO, Cause::Timeout);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (50 * MSS, 50 * MSS));
        assert_eq!(reno.metrics().phase, "recovery");
    }

    #[test]
    fn idle_time_brings_the_restart_window_and_remembers_the_old_one() {
        let mut reno = controller();
        reno.on_ack(&ack(90 * MSS));
        reno.ssthresh = 20 * MSS;
        reno.on_idle_restart(Instant::ZERO, Duration::from_secs(1));
        assert_eq!((reno.cwnd(), reno.ssthresh()), (10 * MSS, 75 * MSS));
    }

    #[test]
    fn a_lost_syn_does_not_make_the_restart_window_small() {
        let init = Init {
            restart_window: 10 * MSS,
            ..Init::new(Instant::ZERO, MSS, MSS)
        };
        let mut reno = NewReno::new(&init);
        assert_eq!(reno.cwnd(), MSS);
        reno.on_ack(&ack(90 * MSS));
        reno.on_idle_restart(Instant::ZERO, Duration::from_secs(1));
        assert_eq!(reno.cwnd(), 10 * MSS);
    }

    #[test]
    fn hystart_is_there_by_choice() {
        let init = Init {
            now: Instant::ZERO,
            mss: MSS,
            initial_window: 10 * MSS,
            restart_window: 10 * MSS,
            rtt: None,
            seed: 0,
            counting: Counting::Bytes,
        };
        let mut reno = NewReno::with_hystart(&init);
        for number in 0..8_u64 {
            for i in 1..=10 {
                let una = (number * 10 + i) * MSS;
                let rtt = Duration::from_millis(40 + 20 * number);
                let ack = plain_ack(Instant::ZERO, MSS, una, (number + 1) * 10 * MSS);
                reno.on_ack(&Ack {
                    rtt: Some(rtt),
                    ..ack
                });
            }
        }
        assert_eq!(reno.metrics().phase, "congestion_avoidance");
    }
}
