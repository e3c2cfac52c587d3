//! How long a report may be.
//!
//! The lists of many losses make a packet that is longer than any other of its direction, and the
//! way back may drop such packets silently (RFC 8899 calls that a black hole). The search for a
//! segment size knows nothing of it, as a side that only receives has no segments to lose. So what
//! a report repeats, and its blocks, hardly make it long. What no report has named yet may: with
//! thousands of losses at once that saves round trips. And where a long report leaves, and the last
//! loss that it named has not come two round trips later, all are short for as long. Then a long
//! one is tried again, as an outage of the way back loses long and short ones: where that is in
//! vain as well, they are short for twice as long, and so on up to a minute.

use core::time::Duration;

use tack_base::Instant;

use super::schedule::BASE_GAPS;
use crate::send::packet_number::PacketNumber;

/// Bytes of lists that fit into an IP packet of 576 bytes, which every host takes (RFC 1122
/// §3.3.2), behind IPv6, UDP and TCP with all its options.
const SHORT: usize = 448;
/// What gaps keep from blocks in a short report, at most.
const FOR_GAPS: usize = SHORT / 2;
/// Most bytes of a block, and those of most blocks.
const LONGEST_BLOCK: usize = 10;
const BLOCK: usize = 7;
/// Bytes of a gap of up to 127 packets within two million of the newest.
const GAP: usize = 4;
/// Longest time for which reports stay short.
const MEMORY: Duration = Duration::from_secs(60);

/// What is known of the length of reports.
#[derive(Debug, Default)]
pub(super) struct ReportSize {
    /// When the first long report left of those about which nothing is known, and the last loss
    /// that it named.
    unanswered: Option<(Instant, PacketNumber)>,
    short_to: Instant,
    /// How long they were short the last time; nothing once a long one was answered.
    rest: Duration,
}

/// What a report has room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Bytes that its lists may have.
    pub(super) all: usize,
    for_blocks: usize,
}

impl Room {
    /// Blocks that it may list, about as many as fit.
    pub(super) fn blocks(self) -> usize {
        self.for_blocks / BLOCK
    }

    /// Whether another block fits behind `written` bytes.
    pub(super) fn has_place_for_block(self, written: usize) -> bool {
        written + LONGEST_BLOCK <= self.for_blocks
    }

    /// How many gaps that are repeated fit behind `written` bytes. They are chosen by their turn,
    /// and written by their numbers: what does not fit must not be chosen.
    pub(super) fn gaps(self, written: usize) -> u64 {
        let room = self.all.min(SHORT).saturating_sub(written);
        ((room / GAP) as u64).max(BASE_GAPS)
    }
}

impl ReportSize {
    /// What a report of `lost` gaps has room for.
    pub(super) fn room(&self, now: Instant, lost: usize) -> Room {
        if now < self.short_to {
            Room {
                all: SHORT,
                for_blocks: SHORT - (GAP * lost).min(FOR_GAPS),
            }
        } else {
            Room {
                all: usize::MAX,
                for_blocks: SHORT,
            }
        }
    }

    /// Whether a long report was in vain: it had `patience` to bring about the repair of what it
    /// named, and that `is_missing`. Reports are short from now on, and what long ones named has to
    /// be named again.
    pub(super) fn gives_up(
        &mut self,
        now: Instant,
        patience: Duration,
        is_missing: impl FnOnce(PacketNumber) -> bool,
    ) -> bool {
        let due = self
            .unanswered
            .take_if(|(since, _)| *since + patience <= now);
        let Some((_, named)) = due else { return false };
        let in_vain = is_missing(named);
        self.rest = match in_vain {
            true => (self.rest * 2).max(patience).min(MEMORY),
            false => Duration::ZERO,
        };
        self.short_to = now + self.rest;
        in_vain
    }

    /// A report leaves whose lists have `len` bytes; `last` begins the last gap that it names.
    pub(super) fn on_report(&mut self, now: Instant, len: usize, last: Option<PacketNumber>) {
        if len > SHORT && self.unanswered.is_none() {
            self.unanswered = last.map(|last| (now, last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(100);
    const LAST: Option<PacketNumber> = Some(PacketNumber(7));

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn long_reports_that_bring_nothing_about_are_given_up_for_a_while() {
        let mut size = ReportSize::default();
        size.on_report(at(0), SHORT + 1, LAST);
        size.on_report(at(90), SHORT + 1, Some(PacketNumber(9)));
        assert!(!size.gives_up(at(99), PATIENCE, |_| true));
        assert_eq!(size.room(at(99), 0).all, usize::MAX);
        assert!(size.gives_up(at(100), PATIENCE, |number| number == PacketNumber(7)));
        assert_eq!(size.room(at(199), 0).all, SHORT);
        assert!(!size.gives_up(at(1_000), PATIENCE, |_| true), "once");
        // Each time for twice as long, up to a minute.
        let mut now = 200;
        for rest in [
            200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000, 60_000,
        ] {
            assert_eq!(size.room(at(now), 0).all, usize::MAX);
            size.on_report(at(now), SHORT + 1, LAST);
            now += 100;
            assert!(size.gives_up(at(now), PATIENCE, |_| true));
            assert_eq!(size.room(at(now + rest - 1), 0).all, SHORT);
            now += rest;
        }
        size.on_report(at(now), SHORT + 1, LAST);
        assert!(!size.gives_up(at(now + 100), PATIENCE, |_| false));
        assert_eq!(size.room(at(now + 100), 0).all, usize::MAX);
    }

    #[test]
    fn long_reports_that_are_answered_stay_long() {
        let mut size = ReportSize::default();
        for round in 0..10 {
            size.on_report(at(100 * round), SHORT + 1, LAST);
            assert!(!size.gives_up(at(100 * round + 100), PATIENCE, |_| false));
        }
        // Short ones prove nothing.
        size.on_report(at(2_000), SHORT, LAST);
        assert!(!size.gives_up(at(9_000), PATIENCE, |_| true));
        assert_eq!(size.room(at(9_000), 0).all, usize::MAX);
    }

    #[test]
    fn blocks_and_gaps_share_a_short_report() {
        let size = ReportSize {
            short_to: at(1),
            ..ReportSize::default()
        };
        let room = |lost| size.room(at(0), lost);
        let most = |lost| (0..).find(|written| !room(lost).has_place_for_block(*written));
        assert_eq!([0, 4, 500].map(most), [Some(439), Some(423), Some(215)]);
        assert_eq!([0, 4, 500].map(|lost| room(lost).blocks()), [64, 61, 32]);
        assert_eq!(
            [224, 500].map(|written| room(0).gaps(written)),
            [56, BASE_GAPS]
        );
    }
}
