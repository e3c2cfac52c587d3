//! Tail loss probe (RFC 8985 §7): when acknowledgements stop, one segment asks for another.

use core::ops::Range;
use core::time::Duration;

use tack_base::filter::WindowedMax;
use tack_base::time::Nanos;
use tack_base::{Instant, StreamOffset};

use crate::send::packet_number::PacketNumber;

/// PTO before there is an RTT sample.
const INITIAL: Nanos = Nanos(1_000_000_000);
/// Answers that are remembered.
const ANSWERS: u64 = 16;

/// A probe in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    /// Where its segment starts.
    start: StreamOffset,
    /// SND.NXT when the probe left: an acknowledgement of it ends the probe.
    pub(crate) end: StreamOffset,
    /// When it left, if it repeated the last segment instead of sending new data.
    pub(crate) repeated_at: Option<Instant>,
    /// Its packet number.
    number: PacketNumber,
}

/// How long the peer may hold back the acknowledgement of what is in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeldBack {
    /// Not at all: it counts segments, and there are enough.
    No,
    /// It waits for more, up to so long.
    Remainder(Duration),
    /// It reports by the clock. What is in flight is enough for a report, which comes after
    /// `period`; a remainder would be held back for `longest`.
    Period { period: Duration, longest: Duration },
}

/// Tail loss probing of one connection: at most one probe at a time.
#[derive(Debug)]
pub(crate) struct TailLossProbe {
    probe: Option<Probe>,
    /// The longest that reports which were due took, of the last [`ANSWERS`], from the departure
    /// of the oldest segment that they are about to when they were handled; of those that told of
    /// a loss, from the departure of the newest. Round trips are measured without what either host
    /// adds to them; timers meet that all the same.
    answer: WindowedMax<Nanos>,
    answers: u64,
}

/// What an acknowledgement means for the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProbeOutcome {
    /// Nothing to conclude.
    None,
    /// The probe repaired a loss that must be answered for (RFC 8985 §7.4).
    RepairedLoss,
}

impl TailLossProbe {
    /// No probe, and no answer known.
    pub(crate) const fn new() -> Self {
        Self {
            probe: None,
            answer: WindowedMax::new(ANSWERS),
            answers: 0,
        }
    }

    /// The probe timeout from now (RFC 8985 §7.2), with WCDelAckT where acknowledgements are held
    /// back. Reports by the clock wait no longer than they have lately.
    #[inline]
    pub(crate) fn timeout(&self, smoothed: Option<Nanos>, held_back: HeldBack) -> Nanos {
        let Some(smoothed) = smoothed else {
            return INITIAL;
        };
        let two = smoothed * 2;
        match (held_back, self.answer.get()) {
            (HeldBack::No, _) => two,
            (HeldBack::Remainder(delay), _) => two + delay.into(),
            (HeldBack::Period { longest, .. }, None) => two + longest.into(),
            (HeldBack::Period { period, longest }, Some(answer)) => (two + period.into())
                .max(answer * 2)
                .min(two + longest.into()),
        }
    }

    /// A report that was due told of data that had left up to `took` ago, and only once; or one
    /// that told of a loss came so long after the departure of the segment that showed it.
    pub(crate) fn on_answer(&mut self, took: Nanos) {
        self.answers += 1;
        self.answer.update(self.answers, took);
    }

    /// True while a probe is unanswered: the next step is the retransmission timer's.
    pub(crate) fn is_outstanding(&self) -> bool {
        self.probe.is_some()
    }

    /// A probe leaves under `number`, up to SND.NXT; `repeated_at` when it is not new data.
    pub(crate) fn on_probe(
        &mut self,
        number: PacketNumber,
        range: Range<StreamOffset>,
        repeated_at: Option<Instant>,
    ) {
        self.probe = Some(Probe {
            start: range.start,
            end: range.end,
            repeated_at,
            number,
        });
    }

    /// When the unanswered probe left, if it is a retransmission.
    pub(crate) fn repeated_at(&self) -> Option<Instant> {
        self.probe.and_then(|probe| probe.repeated_at)
    }

    /// An acknowledgement up to `ack` arrived (RFC 8985 §7.4.2); `duplicate` where something starts
    /// that it reports to have arrived twice (DSACK), `plain` that it is a duplicate
    /// acknowledgement without any block; `largest` the largest packet number that it reports.
    ///
    /// RFC 8985 cannot tell which of the two transmissions an acknowledgement of the probe answers,
    /// and sends no other probe until later data is acknowledged: of requests whose answers all get
    /// lost at first, every second one would wait for the timeout. A packet number tells.
    pub(crate) fn on_ack(
        &mut self,
        ack: StreamOffset,
        duplicate: Option<StreamOffset>,
        plain: bool,
        largest: Option<PacketNumber>,
    ) -> ProbeOutcome {
        let Some(probe) = self.probe else {
            return ProbeOutcome::None;
        };
        if ack < probe.end {
            return ProbeOutcome::None;
        }
        if probe.repeated_at.is_none() || duplicate.is_some_and(|start| start >= probe.start) {
            // New data, or original and probe both arrived: nothing was lost.
            self.probe = None;
            return ProbeOutcome::None;
        }
        if ack > probe.end || largest == Some(probe.number) {
            // What followed the probe arrived, or the probe itself, and no duplicate was reported
            // on the way: one copy was lost.
            self.probe = None;
            return ProbeOutcome::RepairedLoss;
        }
        if plain {
            // Both copies arrived, and the peer knows no DSACK.
            self.probe = None;
        }
        ProbeOutcome::None
    }

    /// The retransmission timer took over, or the connection moved on.
    pub(crate) fn cancel(&mut self) {
        self.probe = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    const BY_THE_CLOCK: HeldBack = HeldBack::Period {
        period: ms(5),
        longest: ms(40),
    };

    #[test]
    fn a_probe_waits_for_reports_as_long_as_they_took() {
        let mut probe = TailLossProbe::new();
        let wait = |probe: &TailLossProbe| probe.timeout(Some(ms(20).into()), BY_THE_CLOCK);
        // Nothing is known: as long as a remainder may be held back.
        assert_eq!(wait(&probe), ms(80).into());
        // Reports come at once, after a period, and from a host that wakes late.
        for (took, expected) in [(20, 45), (25, 50), (35, 70), (300, 80)] {
            probe.on_answer(ms(took).into());
            assert_eq!(wait(&probe), ms(expected).into(), "{took}");
        }
        // What was long ago does not count.
        for _ in 0..2 * ANSWERS {
            probe.on_answer(ms(25).into());
        }
        assert_eq!(wait(&probe), ms(50).into());
    }

    #[test]
    fn a_remainder_is_granted_the_longest_delay_whatever_reports_took() {
        let mut probe = TailLossProbe::new();
        probe.on_answer(ms(20).into());
        let smoothed = Some(ms(20).into());
        assert_eq!(
            probe.timeout(smoothed, HeldBack::Remainder(ms(40))),
            ms(80).into()
        );
        assert_eq!(probe.timeout(smoothed, HeldBack::No), ms(40).into());
        assert_eq!(probe.timeout(None, HeldBack::No), INITIAL);
    }
}
