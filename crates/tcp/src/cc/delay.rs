//! Queueing delay, round by round: what delay-based controllers steer by.
//!
//! A round is a round trip by stream position. Its RTT is the smallest sample within it: the only
//! one that an acknowledgement policy does not bend, be it a delayed-ACK timer (as in Linux' Vegas)
//! or a report of the interval's fastest segment alone (TACK). The original algorithms average,
//! where every segment has a sample.

use core::time::Duration;

use super::Ack;
use tack_base::StreamOffset;

/// Legacy acknowledgements: with fewer samples a round's smallest may be a delayed one (Linux'
/// Vegas).
const LEGACY_SAMPLES: u32 = 3;

/// A round trip, propagation and queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Delay {
    /// Smallest RTT ever: propagation.
    pub(super) base: Duration,
    /// RTT of the round.
    pub(super) rtt: Duration,
}

impl Delay {
    /// How much of a window of this many bytes waits in queues: `window · (1 − base/rtt)`, the
    /// difference between expected and actual rate times the base RTT.
    pub(super) fn backlog(&self, window: u64) -> f64 {
        let queueing = self.rtt.saturating_sub(self.base);
        if queueing.is_zero() {
            return 0.0;
        }
        window as f64 * (queueing.as_secs_f64() / self.rtt.as_secs_f64())
    }
}

/// A finished round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Round {
    /// What was measured; `None` when the samples were too few to trust.
    pub(super) delay: Option<Delay>,
    /// The window limited sending within the round.
    pub(super) in_use: bool,
}

/// Measures rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DelayMeter {
    base: Option<Duration>,
    /// Stream position that ends the round; `None` before the first acknowledgement of one.
    end: Option<StreamOffset>,
    smallest: Option<Duration>,
    samples: u32,
    in_use: bool,
    /// The peer acknowledges by the clock, and its RTT samples contain no delay of its own.
    sparse: bool,
}

impl DelayMeter {
    /// Smallest RTT ever, as far as it counts.
    pub(super) const fn base(&self) -> Option<Duration> {
        self.base
    }

    /// How often the peer acknowledges; zero for legacy acknowledgements.
    pub(super) fn on_feedback_interval(&mut self, interval: Duration) {
        self.sparse = !interval.is_zero();
    }

    /// Takes an acknowledgement that advanced `snd_una`; the round, when that ended one.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Option<Round> {
        if let Some(rtt) = ack.rtt {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.smallest = Some(self.smallest.map_or(rtt, |smallest| smallest.min(rtt)));
            self.samples = self.samples.saturating_add(1);
        }
        self.in_use |= ack.cwnd_limited;
        let end = *self.end.get_or_insert(ack.snd_nxt);
        if ack.snd_una < end {
            return None;
        }
        let delay = self.so_far();
        let in_use = self.in_use;
        self.restart();
        // With nothing in flight, the next round begins with the next flight.
        self.end = Some(ack.snd_nxt).filter(|end| *end > ack.snd_una);
        Some(Round { delay, in_use })
    }

    /// What the round under way has shown, once there are enough samples to trust.
    pub(super) fn so_far(&self) -> Option<Delay> {
        let needed = if self.sparse { 1 } else { LEGACY_SAMPLES };
        match (self.base, self.smallest) {
            (Some(base), Some(rtt)) if self.samples >= needed => Some(Delay { base, rtt }),
            _ => None,
        }
    }

    /// The round under way is not to be judged, as the window changed for another reason.
    pub(super) fn restart(&mut self) {
        *self = Self {
            base: self.base,
            sparse: self.sparse,
            ..Self::default()
        };
    }

    /// What is known of propagation is out of date; `base` replaces it, if known.
    pub(super) fn reset_base(&mut self, base: Option<Duration>) {
        self.base = base;
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_events::plain_ack;
    use super::*;
    use tack_base::Instant;

    const MSS: u64 = 1000;

    /// A segment of a window of ten is acknowledged, with this RTT.
    fn ack(number: u64, rtt_ms: Option<u64>) -> Ack {
        let una = number * MSS;
        Ack {
            rtt: rtt_ms.map(Duration::from_millis),
            ..plain_ack(Instant::ZERO, MSS, una, una + 10 * MSS)
        }
    }

    #[test]
    fn a_round_is_a_window_by_position_and_its_rtt_the_smallest() {
        let mut meter = DelayMeter::default();
        let mut rounds = alloc::vec::Vec::new();
        for number in 1..=31 {
            let rtt = if number % 10 == 5 { 50 } else { 80 };
            let base = if number == 1 { 40 } else { rtt };
            rounds.extend(
                meter
                    .on_ack(&ack(number, Some(base)))
                    .map(|round| (number, round)),
            );
        }
        let numbers: alloc::vec::Vec<_> = rounds.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [11, 21, 31]);
        let measured = |rtt| Round {
            delay: Some(Delay {
                base: Duration::from_millis(40),
                rtt: Duration::from_millis(rtt),
            }),
            in_use: true,
        };
        assert_eq!(
            rounds[0].1,
            measured(40),
            "the base itself was in the first"
        );
        assert_eq!(rounds[1].1, measured(50));
        assert_eq!(rounds[2].1, measured(50));
    }

    #[test]
    fn backlog_is_what_the_window_holds_beyond_the_path() {
        let delay = Delay {
            base: Duration::from_millis(40),
            rtt: Duration::from_millis(50),
        };
        assert!((delay.backlog(100 * MSS) - 20_000.0).abs() < 1e-6);
        let none = Delay {
            base: Duration::ZERO,
            rtt: Duration::ZERO,
        };
        assert_eq!(none.backlog(100 * MSS), 0.0);
    }

    #[test]
    fn one_sample_is_enough_only_of_a_peer_that_takes_its_own_delay_out() {
        for (interval, known) in [(0, false), (10, true)] {
            let mut meter = DelayMeter::default();
            meter.on_feedback_interval(Duration::from_millis(interval));
            meter.on_ack(&ack(1, Some(40)));
            for number in 2..=10 {
                assert_eq!(meter.on_ack(&ack(number, None)), None);
            }
            let round = meter.on_ack(&ack(11, None)).expect("the end of a round");
            assert_eq!(round.delay.is_some(), known);
        }
    }
}
