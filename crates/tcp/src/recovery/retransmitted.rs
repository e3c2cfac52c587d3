//! Which segments left more than once lately: a report that one arrived twice then tells a needless
//! retransmission from a duplicate that the network made.

use alloc::collections::VecDeque;

use tack_base::StreamOffset;

/// How many are remembered: reports come within a round trip, and then in their order.
const REMEMBERED: usize = 256;

/// Stream positions of segments retransmitted lately.
#[derive(Debug, Default)]
pub(crate) struct Retransmitted(VecDeque<StreamOffset>);

impl Retransmitted {
    /// The segment that starts at `start` left again.
    pub(crate) fn note(&mut self, start: StreamOffset) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(start);
    }

    /// True when the segment at `start` was retransmitted; forgets one such time.
    pub(crate) fn take(&mut self, start: StreamOffset) -> bool {
        let index = self.0.iter().position(|known| *known == start);
        index.is_some_and(|index| self.0.remove(index).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_retransmission_is_taken_once_and_memory_is_bounded() {
        let mut retransmitted = Retransmitted::default();
        for start in 0..1000 {
            retransmitted.note(StreamOffset(start));
        }
        assert!(retransmitted.0.len() <= REMEMBERED);
        assert!(!retransmitted.take(StreamOffset(5)));
        assert!(retransmitted.take(StreamOffset(999)));
        assert!(!retransmitted.take(StreamOffset(999)));
    }
}
