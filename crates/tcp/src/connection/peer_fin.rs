//! The end of the peer's stream.

use tack_base::StreamOffset;

/// Where the peer's stream ends, and whether the end was reached.
#[derive(Debug, Default)]
pub(super) struct PeerFin {
    /// Position of the FIN once known.
    position: Option<StreamOffset>,
    /// Everything before it, and the FIN itself, arrived.
    received: bool,
}

impl PeerFin {
    /// True once everything before the FIN, and the FIN itself, arrived.
    #[inline]
    pub(super) fn is_received(&self) -> bool {
        self.received
    }

    /// No payload lies at or beyond this position.
    #[inline]
    pub(super) fn limit(&self) -> StreamOffset {
        self.position.unwrap_or(StreamOffset::MAX)
    }

    /// The stream ends at `position`; the highest byte received lies below `highest`, and
    /// everything below `next` is here. A second, different end cannot be true and is ignored.
    pub(super) fn note(
        &mut self,
        position: StreamOffset,
        next: StreamOffset,
        highest: StreamOffset,
    ) {
        if self.position.is_none() && position >= next && highest <= position {
            self.position = Some(position);
        }
    }

    /// Takes the FIN if everything below it is here. True when it was reached with that.
    pub(super) fn reach(&mut self, next: StreamOffset) -> bool {
        let reached = !self.received && self.position == Some(next);
        self.received |= reached;
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_possible_end_counts_and_is_reached_once() {
        let mut fin = PeerFin::default();
        fin.note(StreamOffset(50), StreamOffset(10), StreamOffset(60));
        fin.note(StreamOffset(5), StreamOffset(10), StreamOffset(10));
        assert_eq!(fin.limit(), StreamOffset(u64::MAX));
        fin.note(StreamOffset(60), StreamOffset(10), StreamOffset(60));
        fin.note(StreamOffset(70), StreamOffset(10), StreamOffset(60));
        assert_eq!(fin.limit(), StreamOffset(60));
        assert!(
            !fin.reach(StreamOffset(59))
                && fin.reach(StreamOffset(60))
                && !fin.reach(StreamOffset(60))
        );
        assert!(fin.is_received());
    }
}
