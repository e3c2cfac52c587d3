//! Which of the lost gaps a report names.
//!
//! Most of what is lost has been reported and filled long ago, which the receiver cannot know;
//! among it is a retransmission whose loss was never reported. So however many there are, each has
//! its place: what was never reported first, then what is due longest. Within a round trip of the
//! first time a gap is reported as often as there is room, as reports get lost. After that a repair
//! would be here, had it come through: the gap is reported at growing intervals.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use tack_base::Instant;

use crate::send::packet_number::PacketNumber;

/// Least bytes of a gap in a report.
const LEAST_GAP: usize = 2;
/// Longest interval between two times that an open gap is reported.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);

/// Which lost gaps a report should name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// So many of those that are due.
    pub(super) due: u64,
    /// All that were never reported.
    pub(super) all_new: bool,
    /// Bytes that there are for them.
    pub(super) room: usize,
}

/// When one gap was reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GapReports {
    /// When for the first time.
    first: Option<Instant>,
    /// Interval from the last time to the next.
    wait: Duration,
    /// Not reported again before.
    due: Instant,
}

impl GapReports {
    /// Not reported yet.
    pub(super) const NEVER: Self = Self {
        first: None,
        wait: Duration::ZERO,
        due: Instant::ZERO,
    };

    /// It was reported for the first time less than `time` before `now`, or never.
    pub(super) fn is_newer_than(self, now: Instant, time: Duration) -> bool {
        self.first.is_none_or(|first| now < first + time)
    }

    /// GapReports once more; a repair can be here `round` later, and no sooner.
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
pub(super) struct ReportOrder {
    due: BTreeSet<(Instant, PacketNumber)>,
    /// Kept so that reporting allocates nothing.
    chosen: Vec<PacketNumber>,
}

impl ReportOrder {
    /// Number of lost gaps.
    pub(super) fn len(&self) -> usize {
        self.due.len()
    }

    /// True when some gap was never reported.
    pub(super) fn is_any_unreported(&self) -> bool {
        self.due
            .first()
            .is_some_and(|(due, _)| *due == GapReports::NEVER.due)
    }

    /// The gap from `number` on is lost.
    pub(super) fn add(&mut self, number: PacketNumber, reported: GapReports) {
        self.due.insert((reported.due, number));
    }

    /// The gap from `number` on is not lost any more.
    pub(super) fn remove(&mut self, number: PacketNumber, reported: GapReports) {
        self.due.remove(&(reported.due, number));
    }

    /// The gap from `number` on was reported. Returns what is to be remembered of that.
    pub(super) fn report(
        &mut self,
        number: PacketNumber,
        reported: GapReports,
        now: Instant,
        round: Duration,
    ) -> GapReports {
        self.remove(number, reported);
        let reported = reported.again(now, round);
        self.add(number, reported);
        reported
    }

    /// The first numbers of the `wanted` gaps, ascending. To be given back.
    pub(super) fn take_due(&mut self, wanted: Wanted, now: Instant) -> Vec<PacketNumber> {
        // However close they are, no more fit.
        let fit = wanted.room / LEAST_GAP;
        let most = usize::try_from(wanted.due).unwrap_or(fit);
        let mut chosen = core::mem::take(&mut self.chosen);
        chosen.clear();
        let due = self.due.iter().take_while(|(due, _)| *due <= now);
        let due = due.enumerate().take(fit).take_while(|(index, (due, _))| {
            *index < most || wanted.all_new && *due == GapReports::NEVER.due
        });
        chosen.extend(due.map(|(_, (_, number))| *number));
        chosen.sort_unstable();
        chosen
    }

    /// Takes back what was lent, to be used for the next report.
    pub(super) fn give_back(&mut self, chosen: Vec<PacketNumber>) {
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

    /// Lets `order` report at most `due` gaps at `now`.
    fn report(
        order: &mut ReportOrder,
        reported: &mut [GapReports],
        due: u64,
        now: Instant,
    ) -> Vec<PacketNumber> {
        let all_new = false;
        let room = 1 << 20;
        let wanted = Wanted { due, all_new, room };
        let chosen = order.take_due(wanted, now);
        for &number in &chosen {
            let gap = &mut reported[number.0 as usize];
            *gap = order.report(number, *gap, now, ROUND);
        }
        chosen
    }

    /// Reports of many losses are as few as reports of few: a gap that one leaves out would wait
    /// for the next.
    #[test]
    fn all_new_gaps_are_reported_at_once() {
        let mut order = ReportOrder::default();
        for number in 0..1_400 {
            order.add(PacketNumber(number), GapReports::NEVER);
        }
        let all_new = Wanted {
            due: 4,
            all_new: true,
            room: 1_400,
        };
        for due in [700, 700, 4] {
            let chosen = order.take_due(all_new, at(1));
            assert_eq!(chosen.len(), due);
            for &number in &chosen {
                order.report(number, GapReports::NEVER, at(1), ROUND);
            }
            order.give_back(chosen);
        }
    }

    #[test]
    fn a_gap_is_told_often_for_a_round_trip_and_then_at_growing_intervals() {
        let (mut order, mut reported) = (ReportOrder::default(), [GapReports::NEVER]);
        order.add(PacketNumber(0), reported[0]);
        assert!(order.is_any_unreported());
        let times: Vec<u64> = (0..20_000_u64)
            .step_by(10)
            .filter(|&now| !report(&mut order, &mut reported, 4, at(1_000 + now)).is_empty())
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
        assert!(!order.is_any_unreported());
    }

    #[test]
    fn each_gap_has_its_turn() {
        const GAPS: u64 = 10_000;
        let (mut order, mut reported) =
            (ReportOrder::default(), [GapReports::NEVER; GAPS as usize]);
        for number in 0..GAPS {
            order.add(PacketNumber(number), GapReports::NEVER);
        }
        let mut times = [0; GAPS as usize];
        for round in 0..GAPS / 4 {
            let chosen = report(&mut order, &mut reported, 4, at(1 + round));
            assert!(chosen.is_sorted() && chosen.len() == 4);
            for number in chosen {
                times[number.0 as usize] += 1;
            }
        }
        assert!(times.iter().all(|times| *times == 1));
        let all = report(&mut order, &mut reported, u64::MAX, at(1 + GAPS));
        assert_eq!(all.len() as u64, GAPS);
        for number in 0..GAPS {
            order.remove(PacketNumber(number), reported[number as usize]);
        }
        assert_eq!(order.len(), 0);
    }
}
