//! Which segments left more than once lately: a report that one arrived twice then tells a needless
//! retransmission from a duplicate that the network made.

use alloc::collections::VecDeque;

use tack_base::StreamOffset;

use crate::send::packet_number::PacketNumber;

/// How many are remembered: reports come within a round trip, and then in their order.
const REMEMBERED: usize = 256;

/// Numbers and stream positions of segments retransmitted lately.
#[derive(Debug, Default)]
pub(crate) struct Retransmitted(VecDeque<(PacketNumber, StreamOffset)>);

impl Retransmitted {
    /// The segment that starts at `start` left again, under `number`.
    pub(crate) fn note(&mut self, number: PacketNumber, start: StreamOffset) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((number, start));
    }

    /// True when the segment at `start` was retransmitted; forgets one such time.
    pub(crate) fn take(&mut self, start: StreamOffset) -> bool {
        let index = self.0.iter().position(|known| known.1 == start);
        index.is_some_and(|index| self.0.remove(index).is_some())
    }

    /// Where the segment starts that left again under `number`; forgets it.
    pub(crate) fn take_number(&mut self, number: PacketNumber) -> Option<StreamOffset> {
        // Numbers ascend, and the one asked for is among the newest.
        let index = self.0.iter().rposition(|known| known.0 <= number)?;
        (self.0[index].0 == number)
            .then(|| self.0.remove(index))
            .flatten()
            .map(|known| known.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_retransmission_is_taken_once_and_memory_is_bounded() {
        let mut retransmitted = Retransmitted::default();
        for start in 0..1000 {
            retransmitted.note(PacketNumber(10 + start), StreamOffset(start));
        }
        assert!(retransmitted.0.len() <= REMEMBERED);
        assert!(!retransmitted.take(StreamOffset(5)));
        assert!(retransmitted.take(StreamOffset(999)));
        assert!(!retransmitted.take(StreamOffset(999)));
        assert_eq!(
            retransmitted.take_number(PacketNumber(1_008)),
            Some(StreamOffset(998))
        );
        assert_eq!(retransmitted.take_number(PacketNumber(1_008)), None);
        assert_eq!(retransmitted.take_number(PacketNumber(5_000)), None);
    }
}
