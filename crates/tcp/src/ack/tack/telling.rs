//! Which of the lost gaps a report names.
//!
//! Most of what is lost has been told and filled long ago, without the receiver's being able to know that; among it is a
//! retransmission whose loss nobody heard of. So however many there are, each has its turn: what was never told first, then
//! what is due longest. Within a round trip of the first time a gap is told as often as there is room, as reports get lost.
//! After that a repair would be here, had it come through: the gap is told at growing intervals.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use tack_base::Instant;

/// Gaps that a report names at most: no more fit, however close they are.
const MOST: usize = 700;
/// Longest interval between two times that an open gap is told.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);

/// What was told of one gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Told {
    /// When for the first time.
    first: Option<Instant>,
    /// Interval from the last time to the next.
    wait: Duration,
    /// Not told again before.
    due: Instant,
}

impl Told {
    /// Not told yet.
    pub(super) const NEVER: Self = Self {
        first: None,
        wait: Duration::ZERO,
        due: Instant::ZERO,
    };

    /// Told once more; a repair can be here `round` later, and no sooner.
    fn again(self, now: Instant, round: Duration) -> Self {
        let first = self.first.unwrap_or(now);
        let wait = if now < first + round {
            Duration::ZERO
        } else {
            (self.wait * 2).clamp(round.min(LONGEST_SILENCE), LONGEST_SILENCE)
        };
        Self {
            first: Some(first),
            wait,
            due: now + wait,
        }
    }
}

/// The order of the lost gaps, each known by its first number.
#[derive(Debug, Default)]
pub(super) struct Turns {
    due: BTreeSet<(Instant, u64)>,
    /// Kept so that reporting allocates nothing.
    chosen: Vec<u64>,
}

impl Turns {
    /// True when no gap is lost.
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// True when some gap was never told.
    pub(super) fn is_any_untold(&self) -> bool {
        self.due
            .first()
            .is_some_and(|(due, _)| *due == Told::NEVER.due)
    }

    /// The gap from `number` on is lost.
    pub(super) fn add(&mut self, number: u64, told: Told) {
        self.due.insert((told.due, number));
    }

    /// The gap from `number` on is none any more.
    pub(super) fn remove(&mut self, number: u64, told: Told) {
        self.due.remove(&(told.due, number));
    }

    /// The gap from `number` on was told. Returns what is to be remembered of that.
    pub(super) fn tell(&mut self, number: u64, told: Told, now: Instant, round: Duration) -> Told {
        self.remove(number, told);
        let told = told.again(now, round);
        self.add(number, told);
        told
    }

    /// The first numbers of at most `wanted` gaps that are due, ascending. To be given back.
    pub(super) fn take_due(&mut self, wanted: u64, now: Instant) -> Vec<u64> {
        let wanted = usize::try_from(wanted).unwrap_or(MOST).min(MOST);
        let mut chosen = core::mem::take(&mut self.chosen);
        chosen.clear();
        let due = self.due.iter().take_while(|(due, _)| *due <= now);
        chosen.extend(due.take(wanted).map(|(_, number)| *number));
        chosen.sort_unstable();
        chosen
    }

    /// Takes back what was lent, to be used for the next report.
    pub(super) fn give_back(&mut self, chosen: Vec<u64>) {
        self.chosen = chosen;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_millis(50);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Lets `turns` tell at most `wanted` gaps at `now`.
    fn tell(turns: &mut Turns, told: &mut [Told], wanted: u64, now: Instant) -> Vec<u64> {
        let chosen = turns.take_due(wanted, now);
        for &number in &chosen {
            told[number as usize] = turns.tell(number, told[number as usize], now, ROUND);
        }
        chosen
    }

    #[test]
    fn a_gap_is_told_often_for_a_round_trip_and_then_at_growing_intervals() {
        let (mut turns, mut told) = (Turns::default(), [Told::NEVER]);
        turns.add(0, told[0]);
        assert!(turns.is_any_untold());
        let times: Vec<u64> = (0..20_000_u64)
            .step_by(10)
            .filter(|&now| !tell(&mut turns, &mut told, 4, at(1_000 + now)).is_empty())
            .collect();
        let first = [0, 10, 20, 30, 40, 50];
        let later = [100, 200, 400, 800, 1_600, 3_200, 5_200, 7_200];
        assert_eq!(times[..6], first);
        assert_eq!(times[6..14], later);
        assert!(
            times[13..]
                .windows(2)
                .all(|pair| pair[1] - pair[0] == 2_000)
        );
        assert!(!turns.is_any_untold());
    }

    #[test]
    fn each_gap_has_its_turn() {
        const GAPS: u64 = 10_000;
        let (mut turns, mut told) = (Turns::default(), [Told::NEVER; GAPS as usize]);
        for number in 0..GAPS {
            turns.add(number, Told::NEVER);
        }
        let mut times = [0; GAPS as usize];
        for round in 0..GAPS / 4 {
            let chosen = tell(&mut turns, &mut told, 4, at(1 + round));
            assert!(chosen.is_sorted() && chosen.len() == 4);
            for number in chosen {
                times[number as usize] += 1;
            }
        }
        assert!(times.iter().all(|times| *times == 1));
        assert_eq!(
            tell(&mut turns, &mut told, u64::MAX, at(1 + GAPS)).len(),
            MOST
        );
        for number in 0..GAPS {
            turns.remove(number, told[number as usize]);
        }
        assert!(turns.is_empty());
    }
}
