//! Which of the lost gaps a report names.
//!
//! Most of what is lost has been told and filled long ago, without the receiver's being able to know that; among it is a
//! retransmission whose loss nobody heard of. So however many there are, each has its turn.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tack_base::Instant;

use super::gaps::Gap;

/// Gaps among which one report chooses: there may be tens of thousands, and reports come by the thousand.
const WINDOW: usize = 2048;
/// Gaps that a report names at most: no more fit, however close they are.
const MOST: usize = 700;

/// The choice of gaps.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Where the window of the next report begins.
    turn: usize,
    /// Kept so that reporting allocates nothing.
    chosen: Vec<u16>,
}

impl Choice {
    /// At most `wanted` of the gaps in `lost`, by index, ascending. First those of which nobody was told since `told`: what was
    /// never told, then what was told longest ago. Then the least told.
    pub(super) fn choose(&mut self, lost: &VecDeque<Gap>, wanted: u64, told: Instant) -> &[u16] {
        let len = lost.len();
        // The windows of successive reports cover all of them.
        let start = if len > WINDOW { self.turn % len } else { 0 };
        self.turn = start + WINDOW;
        self.chosen.clear();
        let window = (0..len.min(WINDOW)).map(|offset| (start + offset) % len);
        self.chosen.extend(window.map(|index| index as u16));
        let wanted = usize::try_from(wanted).unwrap_or(MOST).min(MOST);
        if wanted < self.chosen.len() {
            self.chosen.select_nth_unstable_by_key(wanted, |&index| {
                let gap = &lost[usize::from(index)];
                match gap.reported_at {
                    Some(at) if at > told => (true, u64::from(gap.reports), index),
                    Some(at) => (false, at.as_nanos(), index),
                    None => (false, 0, index),
                }
            });
            self.chosen.truncate(wanted);
        }
        self.chosen.sort_unstable();
        &self.chosen
    }
}
