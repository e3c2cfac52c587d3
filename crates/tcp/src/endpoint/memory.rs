//! The limit on what all connections of an endpoint hold together.

use crate::connection::pressure::Pressure;

/// A limit, and where the search for memory to free goes on.
#[derive(Debug)]
pub(super) struct Memory {
    limit: usize,
    /// The place in the table to look at next.
    pub(super) hand: usize,
}

/// Connections looked at when memory has to be freed, each time that one of them has used some:
/// enough to come round, too few to be felt.
pub(super) const LOOKED_AT: usize = 16;

impl Memory {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, hand: 0 }
    }

    /// How scarce memory is when so much is in use.
    #[inline]
    pub(super) const fn pressure(&self, used: usize) -> Pressure {
        if used >= self.limit {
            Pressure::Exhausted
        } else if used >= self.limit / 4 * 3 {
            Pressure::Scarce
        } else {
            Pressure::None
        }
    }
}
