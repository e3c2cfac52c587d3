//! HyStart++ (RFC 9406): leave slow start when the RTT grows, before the queue overflows.
//!
//! Slow start is divided into rounds by stream position. When the smallest RTT of a round exceeds
//! that of the round before by a threshold, *conservative slow start* (CSS) grows at a quarter of
//! the speed for up to five rounds; when the RTT falls back meanwhile, the rise was jitter and slow
//! start goes on, otherwise congestion avoidance begins.
//!
//! RFC 9406 §4.2's limit `L` is infinite here: the sender paces.

use core::time::Duration;

use super::Ack;
use tack_base::StreamOffset;

/// Bounds of the RTT rise that ends a phase (RFC 9406 §4.3: `MIN_RTT_THRESH`, `MAX_RTT_THRESH`).
const RTT_RISE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// The rise is this part of the last round's RTT (`MIN_RTT_DIVISOR`).
const RTT_RISE_DIVISOR: u32 = 8;
/// RTT samples that a round needs before its minimum says anything (`N_RTT_SAMPLE`), …
const SAMPLES: u32 = 8;
/// … and how few do when the peer's acknowledgements are too sparse for that.
const SPARSE_SAMPLES: u32 = 2;
/// How much slower CSS grows (`CSS_GROWTH_DIVISOR`).
const CSS_GROWTH_DIVISOR: u64 = 4;
/// How many rounds CSS lasts (`CSS_ROUNDS`).
const CSS_ROUNDS: u32 = 5;

/// What an acknowledgement in slow start is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Let the window grow by this many bytes.
    Grow(u64),
    /// Slow start is over: congestion avoidance begins at the present window.
    Exit,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The round minimum at which the phase began.
    baseline: Duration,
    /// Rounds begun in the phase, the partial first one included.
    rounds: u32,
}

/// The state of one slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    /// The round ends when this stream position is passed.
    window_end: StreamOffset,
    last_round_min: Option<Duration>,
    current_round_min: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
}

impl HyStart {
    /// True in conservative slow start.
    pub(super) const fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }

    /// Takes the RTT sample of an acknowledgement that advanced `snd_una`; `bytes` is what the
    /// window would grow by in plain slow start, `interval` how often the peer acknowledges: zero
    /// for legacy acknowledgements.
    pub(super) fn on_ack(&mut self, ack: &Ack, bytes: u64, interval: Duration) -> Step {
        if ack.snd_una > self.window_end {
            self.window_end = ack.snd_nxt;
            self.last_round_min = self.current_round_min.take();
            self.samples = 0;
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds > CSS_ROUNDS {
                    return Step::Exit;
                }
            }
        }
        if let Some(rtt) = ack.rtt {
            self.samples = self.samples.saturating_add(1);
            self.current_round_min = Some(self.current_round_min.map_or(rtt, |min| min.min(rtt)));
        }
        self.judge(interval);
        Step::Grow(if self.is_conservative() {
            bytes / CSS_GROWTH_DIVISOR
        } else {
            bytes
        })
    }

    /// Moves between slow start and CSS once the round has enough samples.
    fn judge(&mut self, interval: Duration) {
        let Some(current) = self
            .current_round_min
            .filter(|round| self.samples >= needed(*round, interval))
        else {
            return;
        };
        match self.conservative {
            Some(conservative) if current < conservative.baseline => self.conservative = None,
            Some(_) => {}
            None => {
                let Some(last) = self.last_round_min else {
                    return;
                };
                let rise = (last / RTT_RISE_DIVISOR).clamp(RTT_RISE.0, RTT_RISE.1);
                if current >= last.saturating_add(rise) {
                    self.conservative = Some(Conservative {
                        baseline: current,
                        rounds: 1,
                    });
                }
            }
        }
    }
}

/// Samples that a round needs: as many as its acknowledgements can bring, where those are few.
fn needed(round: Duration, interval: Duration) -> u32 {
    if interval.is_zero() {
        return SAMPLES;
    }
    let expected = round.as_nanos() / interval.as_nanos();
    u32::try_from(expected)
        .unwrap_or(SAMPLES)
        .clamp(SPARSE_SAMPLES, SAMPLES)
}

#[cfg(test)]
mod tests {
    use super::super::test_events::plain_ack;
    use super::*;
    use tack_base::Instant;

    const MSS: u64 = 1000;

    /// A round of ten acknowledgements with this RTT; the last answer.
    fn round(hystart: &mut HyStart, number: u64, rtt_ms: u64) -> Step {
        let mut step = Step::Grow(0);
        for i in 1..=10 {
            let una = number * 10 * MSS + i * MSS;
            let mut ack = plain_ack(Instant::ZERO, MSS, una, (number + 1) * 10 * MSS + i * MSS);
            // Only the round's first acknowledgement sets its end: at the round's last byte.
            ack.snd_nxt = StreamOffset((number + 1) * 10 * MSS);
            ack.rtt = Some(Duration::from_millis(rtt_ms));
            step = hystart.on_ack(&ack, MSS, Duration::ZERO);
            if step == Step::Exit {
                break;
            }
        }
        step
    }

    #[test]
    fn five_slow_rounds_after_the_rtt_rose_end_slow_start() {
        let mut hystart = HyStart::default();
        assert_eq!(round(&mut hystart, 0, 40), Step::Grow(MSS));
        assert_eq!(
            round(&mut hystart, 1, 44),
            Step::Grow(MSS),
            "an eighth is five milliseconds"
        );
        // It is the last round that counts, not the first.
        assert_eq!(round(&mut hystart, 2, 50), Step::Grow(MSS / 4));
        assert!(hystart.is_conservative());
        for number in 3..7 {
            assert_eq!(
                round(&mut hystart, number, 55),
                Step::Grow(MSS / 4),
                "round {number}"
            );
        }
        assert_eq!(round(&mut hystart, 7, 55), Step::Exit);
    }

    #[test]
    fn jitter_does_not_end_it() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 0, 40);
        assert_eq!(round(&mut hystart, 1, 60), Step::Grow(MSS / 4));
        assert_eq!(round(&mut hystart, 2, 41), Step::Grow(MSS));
        assert!(!hystart.is_conservative());
    }

    #[test]
    fn sparse_acknowledgements_bring_as_many_samples_as_they_can() {
        for (interval_ms, needed) in [(0, 8), (1, 8), (10, 4), (30, 2), (1_000, 2)] {
            let mut hystart = HyStart::default();
            round(&mut hystart, 0, 40);
            let interval = Duration::from_millis(interval_ms);
            let mut samples = 0;
            while !hystart.is_conservative() {
                samples += 1;
                let una = 10 * MSS + samples * MSS;
                let mut ack = plain_ack(Instant::ZERO, MSS, una, 20 * MSS);
                ack.rtt = Some(Duration::from_millis(47));
                hystart.on_ack(&ack, MSS, interval);
                assert!(samples < 9, "every {interval_ms} ms");
            }
            assert_eq!(samples, needed, "every {interval_ms} ms");
        }
    }

    #[test]
    fn few_samples_say_nothing() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 0, 40);
        for i in 1..SAMPLES as u64 {
            let mut ack = plain_ack(Instant::ZERO, MSS, 10 * MSS + i * MSS, 20 * MSS);
            ack.rtt = Some(Duration::from_millis(90));
            assert_eq!(hystart.on_ack(&ack, MSS, Duration::ZERO), Step::Grow(MSS));
        }
    }
}
