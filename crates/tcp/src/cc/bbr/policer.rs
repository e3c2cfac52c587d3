//! Token-bucket policers: a burst goes through at line rate, then everything above the policed rate
//! is dropped. Two consecutive intervals with at least 20 % loss and the same delivery rate give
//! the policer away; its rate is then used instead of the bandwidth filter's, which remembers the
//! burst.

use core::time::Duration;

use tack_base::{Instant, Rate};

/// Shortest interval, rounds; the longest has four times as many.
const INTERVAL_ROUNDS: u32 = 4;
/// Loss that shows a policer, as parts of 256 delivered.
const LOSS_PER_256: u64 = 50;
/// Rates of two intervals are the same when they differ by at most this part, …
const SAME_RATE_DIVISOR: u64 = 8;
/// … or by this much.
const SAME_RATE: u64 = 4_000;
/// Rounds for which the policed rate is used before probing again.
const USE_ROUNDS: u32 = 48;

/// An acknowledgement as the detector sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// When data was last delivered.
    pub(super) delivered_at: Instant,
    pub(super) total_delivered: u64,
    pub(super) total_lost: u64,
    /// Losses were seen with it.
    pub(super) lost: bool,
    pub(super) app_limited: bool,
    pub(super) round_started: bool,
    pub(super) probing_bandwidth: bool,
}

/// What follows from an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Nothing.
    Continue,
    /// The policed rate has been used long enough: probe again.
    ProbeAgain,
}

/// The detector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policer {
    sampling: bool,
    policed: bool,
    /// Rate of the last interval.
    rate: Option<Rate>,
    began: Instant,
    delivered: u64,
    lost: u64,
    rounds: u32,
}

impl Policer {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            sampling: false,
            policed: false,
            rate: None,
            began: now,
            delivered: 0,
            lost: 0,
            rounds: 0,
        }
    }

    /// The policed rate, once there is evidence for it.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate.filter(|_| self.policed)
    }

    /// Forgets all evidence.
    pub(super) fn reset(&mut self, view: &View) {
        self.rate = None;
        self.policed = false;
        self.sampling = false;
        self.begin_interval(view);
    }

    fn begin_interval(&mut self, view: &View) {
        self.began = view.delivered_at;
        self.delivered = view.total_delivered;
        self.lost = view.total_lost;
        self.rounds = 0;
    }

    /// Takes an acknowledgement (or a timeout).
    pub(super) fn on_ack(&mut self, view: &View) -> Verdict {
        if self.policed {
            if view.probing_bandwidth && view.round_started {
                self.rounds += 1;
                if self.rounds >= USE_ROUNDS {
                    self.reset(view);
                    return Verdict::ProbeAgain;
                }
            }
            return Verdict::Continue;
        }
        if !self.sampling {
            // The first loss: the bucket has just run empty.
            if !view.lost {
                return Verdict::Continue;
            }
            self.begin_interval(view);
            self.sampling = true;
        }
        if view.app_limited {
            self.reset(view);
            return Verdict::Continue;
        }
        if view.round_started {
            self.rounds += 1;
        }
        if self.rounds < INTERVAL_ROUNDS {
            return Verdict::Continue;
        }
        if self.rounds > 4 * INTERVAL_ROUNDS {
            self.reset(view);
            return Verdict::Continue;
        }
        // An interval ends with a loss too, with the bucket empty: else the rate comes out too low.
        if view.lost {
            self.end_interval(view);
        }
        Verdict::Continue
    }

    fn end_interval(&mut self, view: &View) {
        let lost = view.total_lost.saturating_sub(self.lost);
        let delivered = view.total_delivered.saturating_sub(self.delivered);
        if delivered == 0 || lost.saturating_mul(256) < LOSS_PER_256.saturating_mul(delivered) {
            return;
        }
        let interval = view.delivered_at.saturating_since(self.began);
        if interval < Duration::from_millis(1) {
            return;
        }
        let rate = Rate::from_bytes_over(delivered, interval);
        if let Some(last) = self.rate {
            let (last, rate) = (last.bits_per_sec(), rate.bits_per_sec());
            let difference = last.abs_diff(rate);
            if difference <= last / SAME_RATE_DIVISOR || difference <= SAME_RATE {
                self.rate = Some(Rate::from_bits_per_sec(last.midpoint(rate)));
                self.policed = true;
                self.rounds = 0;
                return;
            }
        }
        self.rate = Some(rate);
        self.begin_interval(view);
    }
}
