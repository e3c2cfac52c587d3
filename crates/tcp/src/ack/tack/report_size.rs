//! How long a report may be.
//!
//! The lists of many losses make a packet that is longer than any other of its direction, and the
//! way back may drop such packets silently (RFC 8899 calls that a black hole). The search for a
//! segment size knows nothing of it, as a side that only receives has no segments to lose. So what
//! a report repeats, and most of its blocks, never make it long. What no report has named yet may:
//! with thousands of losses at once that saves round trips. And where long reports leave, and for
//! two round trips nothing that is missing comes, all are short from then on.

use core::time::Duration;

use tack_base::Instant;

/// Bytes of lists that fit into an IP packet of 576 bytes, which every host takes (RFC 1122
/// §3.3.2), behind IPv6, UDP and TCP with all its options.
pub(super) const SHORT: usize = 448;
/// Of these, what blocks may take where gaps are listed, too.
const FOR_BLOCKS: usize = SHORT / 2;
/// Bytes of a block and of a gap, about.
const BLOCK: usize = 7;
const GAP: usize = 3;

/// What is known of the length of reports.
#[derive(Debug, Default)]
pub(super) struct ReportSize {
    /// When the first long report left of those after which nothing that was missing came.
    unanswered: Option<Instant>,
    is_short: bool,
}

impl ReportSize {
    /// Bytes that the lists of a report may have.
    pub(super) fn limit(&self) -> usize {
        if self.is_short { SHORT } else { usize::MAX }
    }

    /// Blocks that a report may list. With `gaps` these need a part of the room.
    pub(super) fn blocks(gaps: bool) -> usize {
        if gaps {
            FOR_BLOCKS / BLOCK
        } else {
            SHORT / BLOCK
        }
    }

    /// Whether a gap that was named before fits behind `written` bytes, beside `new` that were not.
    pub(super) fn has_room_for_repeated(written: usize, new: usize) -> bool {
        written + GAP * (new + 1) <= SHORT
    }

    /// Long reports had `patience` to bring about a repair, and did not: they are short from now
    /// on. Returns whether this is new, so that what they listed has to be listed again.
    pub(super) fn gives_up(&mut self, now: Instant, patience: Duration) -> bool {
        let is_in_vain = self.unanswered.is_some_and(|since| since + patience <= now);
        self.is_short |= is_in_vain;
        is_in_vain && self.unanswered.take().is_some()
    }

    /// A report leaves whose lists have `len` bytes.
    pub(super) fn on_report(&mut self, now: Instant, len: usize) {
        if len > SHORT && self.unanswered.is_none() {
            self.unanswered = Some(now);
        }
    }

    /// Something that was missing came.
    pub(super) fn on_repair(&mut self) {
        self.unanswered = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn long_reports_that_bring_nothing_about_are_given_up() {
        let mut size = ReportSize::default();
        size.on_report(at(0), SHORT + 1);
        size.on_report(at(90), SHORT + 1);
        assert!(!size.gives_up(at(99), PATIENCE));
        assert_eq!(size.limit(), usize::MAX);
        assert!(size.gives_up(at(100), PATIENCE));
        assert_eq!(size.limit(), SHORT);
        assert!(!size.gives_up(at(1000), PATIENCE), "once");
    }

    #[test]
    fn long_reports_that_are_answered_stay_long() {
        let mut size = ReportSize::default();
        for round in 0..10 {
            size.on_report(at(90 * round), SHORT + 1);
            assert!(!size.gives_up(at(90 * round + 80), PATIENCE));
            size.on_repair();
        }
        // Short ones prove nothing.
        size.on_report(at(1_000), SHORT);
        assert!(!size.gives_up(at(9_000), PATIENCE));
        assert_eq!(size.limit(), usize::MAX);
    }
}
