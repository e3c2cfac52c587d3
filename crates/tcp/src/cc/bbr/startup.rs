//! Startup: double the rate each round until the pipe is full; then drain, in about a round, the
//! queue that this built.

use tack_base::Rate;

use super::super::Ack;

/// The smallest gain that doubles the delivery rate each round: 2/ln 2.
pub(super) const HIGH_GAIN: f64 = 2.885;
/// Drain's gain: its inverse.
pub(super) const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;

/// Growth of the bandwidth estimate within [`FULL_ROUNDS`] that shows there is more to have.
const GROWTH: f64 = 1.25;
/// Rounds without such growth after which the pipe is full: three, so that receive windows can
/// open.
const FULL_ROUNDS: u32 = 3;
/// So many times what the path holds at the bandwidth estimate were in flight: a queue stands, and
/// whatever keeps the sender from sending more, the pipe is full.
pub(super) const OVERFULL: f64 = 1.5;

/// Share of the data, a fiftieth (draft-ietf-ccwg-bbr §5.3.1.3, `BBR.LossThresh`), …
const OVERFLOW_PART: u64 = 50;
/// … and segments that must be lost before a queue counts as overflowing. The draft has six
/// (`BBR.StartupFullLossCnt`), and leaves startup for good then. Here a round of packet
/// conservation follows, and it takes several rounds to end startup. A path that holds ten segments
/// would lose half of a flight before six were lost.
const OVERFLOW_SEGMENTS: u64 = 3;

/// Whether `lost` of `all` bytes are so much that a queue must have overflowed.
pub(super) fn is_overflow(lost: u64, all: u64, mss: u64) -> bool {
    lost >= OVERFLOW_SEGMENTS * mss && lost > all / OVERFLOW_PART
}

/// A round trip of more than so many times the floor has waited in a queue.
pub(super) const QUEUED: f64 = 1.125;
/// How many more rounds with a queue must have lost something, each counted twice, than have not,
/// for the bursts of an application to count as overflowing that queue.
const OVERFLOWS: u32 = 16;

/// Watches whether the pipe is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Bandwidth at the last growth.
    bandwidth: Rate,
    rounds: u32,
    reached: bool,
    /// The most in flight since the round began, bytes.
    in_flight: u64,
    /// Bytes lost, and delivered, since the round began.
    lost_bytes: u64,
    delivered: u64,
    /// An episode began since the round did, …
    lost: bool,
    /// … or was being repaired.
    in_recovery: bool,
    /// A round trip showed a queue since the round began.
    is_queued: bool,
    /// Rounds that the application limited and that lost something, counted twice, less those that
    /// lost nothing.
    lossy: u32,
}

impl FullPipe {
    /// The bandwidth estimate once stopped growing: it is of the bottleneck.
    pub(super) const fn reached(&self) -> bool {
        self.reached
    }

    /// An acknowledgement arrived; `is_queued` says that its round trip showed a queue.
    pub(super) fn on_ack(&mut self, ack: &Ack, is_queued: bool) {
        self.in_flight = self.in_flight.max(ack.prior_in_flight);
        self.lost_bytes = self.lost_bytes.saturating_add(ack.lost);
        self.delivered = self.delivered.saturating_add(ack.delivered);
        self.in_recovery |= ack.in_recovery;
        self.is_queued |= is_queued;
    }

    /// A loss episode begins, or a tail loss probe has repaired a loss.
    pub(super) fn on_loss(&mut self) {
        self.lost = true;
    }

    /// A round began with this bandwidth estimate. A round that the application limited says
    /// nothing about the pipe, unless more than `overfull` bytes were in flight, or a queue
    /// overflowed: an application that fills a path with less than the windows allow would keep
    /// the gain of startup forever, and with it a queue that overflows.
    pub(super) fn on_round(&mut self, bandwidth: Rate, app_limited: bool, overfull: u64, mss: u64) {
        let in_flight = core::mem::take(&mut self.in_flight);
        let lost = core::mem::take(&mut self.lost);
        let in_recovery = core::mem::take(&mut self.in_recovery);
        let is_queued = core::mem::take(&mut self.is_queued);
        let lost_bytes = core::mem::take(&mut self.lost_bytes);
        let all = core::mem::take(&mut self.delivered).saturating_add(lost_bytes);
        if self.reached {
            return;
        }
        if app_limited && lost && is_queued {
            self.lossy += 2;
        } else if !in_recovery {
            self.lossy = self.lossy.saturating_sub(1);
        }
        if self.lossy >= OVERFLOWS {
            self.reached = true;
            return;
        }
        let overflows = is_queued && is_overflow(lost_bytes, all, mss);
        if app_limited && in_flight <= overfull && !overflows {
            return;
        }
        if bandwidth >= self.bandwidth.scale(GROWTH) {
            self.bandwidth = bandwidth;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= FULL_ROUNDS;
    }

    /// A timeout: growth is measured anew.
    pub(super) fn on_timeout(&mut self) {
        self.bandwidth = Rate::ZERO;
    }

    /// A loss episode was false: what it did to the bandwidth says nothing about the pipe.
    pub(super) fn on_spurious(&mut self) {
        self.bandwidth = Rate::ZERO;
        self.rounds = 0;
    }
}

#[cfg(test)]
mod tests {
    use tack_base::Instant;

    use super::super::super::test_events::plain_ack;
    use super::*;

    const MSS: u64 = 1_000;

    /// After how many rounds that the application limits startup ends, of `most`. In each twenty
    /// segments arrive; `lost` says how many are lost, and `is_queued` whether round trips show a
    /// queue.
    fn ends(most: u32, lost: impl Fn(u32) -> u64, is_queued: impl Fn(u32) -> bool) -> Option<u32> {
        let mut pipe = FullPipe::default();
        (1..=most).find(|round| {
            for segment in 1..=20 {
                let ack = Ack {
                    lost: if segment == 20 { lost(*round) * MSS } else { 0 },
                    ..plain_ack(Instant::ZERO, MSS, segment * MSS, (segment + 10) * MSS)
                };
                pipe.on_ack(&ack, is_queued(*round));
            }
            if lost(*round) > 0 {
                pipe.on_loss();
            }
            pipe.on_round(Rate::from_bits_per_sec(1_000_000), true, 50_000, MSS);
            pipe.reached()
        })
    }

    #[test]
    fn losses_out_of_a_queue_end_startup_and_random_ones_do_not() {
        // Each answer, or one of its two rounds, overflows a queue.
        assert_eq!(ends(10, |_| 1, |_| true), Some(8));
        assert!(ends(100, |round| u64::from(round % 2 == 0), |_| true).is_some());
        // Nothing waits in a queue; a queue is there, and little gets lost; nothing gets lost.
        assert_eq!(ends(1_000, |_| 5, |_| false), None);
        assert_eq!(
            ends(1_000, |round| u64::from(round % 4 == 0), |_| true),
            None
        );
        assert_eq!(ends(1_000, |_| 0, |_| true), None);
    }

    /// The first of these rounds has the bandwidth that the others do not exceed.
    #[test]
    fn a_round_that_loses_much_out_of_a_queue_counts_whatever_the_application_limits() {
        assert_eq!(ends(10, |_| 3, |_| true), Some(4));
        assert_eq!(
            ends(10, |round| u64::from(3 * (round % 2)), |_| true),
            Some(7)
        );
    }
}
