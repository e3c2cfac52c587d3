//! The filter of the paper: H. Kim, H. Lee, S. Shin, I. Kang, "On the cross-layer impact of TCP ACK
//! thinning on IEEE 802.11 wireless MAC dynamics", Figure 1.

use super::segment::{Segment, SegmentReader, before, same_flow, segment};
use super::{Admission, Discipline, Waiting};
use crate::frame::Msdu;

/// A pure acknowledgement takes the place of the first one of its flow that waits and has a smaller
/// number.
///
/// An equal number is not smaller, so that duplicates get through. What else the older one told
/// (SACK blocks, timestamps, ECN echoes) is not looked at, and the newer one overtakes whatever of
/// its flow waited between the two.
#[derive(Clone, Copy, Debug)]
pub struct PaperFilter<R> {
    reader: R,
}

impl<R> PaperFilter<R> {
    /// A filter that reads packets by `reader`.
    pub const fn new(reader: R) -> Self {
        Self { reader }
    }
}

impl<M, R: SegmentReader<M>> Discipline<M> for PaperFilter<R> {
    fn admit(&mut self, msdu: &Msdu<M>, waiting: Waiting<'_, M>) -> Admission {
        let Some(new) = segment(&self.reader, msdu).filter(Segment::is_ack) else {
            return Admission::Append;
        };
        let is_older = |old: Segment| old.is_ack() && before(old.ack, new.ack);
        same_flow(&self.reader, msdu, waiting)
            .find(|(_, old)| segment(&self.reader, old).is_some_and(is_older))
            .map_or(Admission::Append, |(position, _)| {
                Admission::Replace(position)
            })
    }
}
