//! The filter that loses no information: an acknowledgement is dropped only if a newer one reports
//! all that it reported.

use alloc::vec::Vec;

use super::segment::{Segment, SegmentReader, before, same_flow, segment};
use super::{Admission, Discipline, OtherOptions, Waiting};
use crate::frame::Msdu;

/// A pure acknowledgement replaces the newest one of its flow that waits and is redundant beside
/// it: in its place if nothing of the flow waits between the two, else at the tail, so that
/// segments keep their order.
#[derive(Clone, Debug)]
pub struct SafeFilter<R> {
    reader: R,
    /// What of the flow waits, reused.
    flow: Vec<(usize, Option<Segment>)>,
}

impl<R> SafeFilter<R> {
    /// A filter that reads packets by `reader`.
    pub const fn new(reader: R) -> Self {
        Self {
            reader,
            flow: Vec::new(),
        }
    }

    fn choose(&self, new: &Segment) -> Admission {
        // Duplicates are counted by their receiver (RFC 5681 §3.2).
        let has_twin = |at: usize, old: &Segment| {
            let mut others = self.flow.iter().enumerate();
            others.any(|(other, (_, one))| {
                other != at && one.is_some_and(|one| one.is_ack() && one.ack == old.ack)
            })
        };
        for (at, (position, old)) in self.flow.iter().enumerate().rev() {
            let Some(old) = old else {
                return Admission::Append;
            };
            // What lies between must not differ in its marks either, or a change would be lost with
            // its neighbours.
            if marks(old) != marks(new) {
                return Admission::Append;
            }
            if is_redundant(old, new) && !has_twin(at, old) {
                let is_last = at + 1 == self.flow.len();
                return if is_last {
                    Admission::Replace(*position)
                } else {
                    Admission::Supersede(*position)
                };
            }
        }
        Admission::Append
    }
}

impl<M, R: SegmentReader<M>> Discipline<M> for SafeFilter<R> {
    fn admit(&mut self, msdu: &Msdu<M>, waiting: Waiting<'_, M>) -> Admission {
        let Some(new) = segment(&self.reader, msdu).filter(Segment::is_plain_ack) else {
            return Admission::Append;
        };
        self.flow.clear();
        let packets = same_flow(&self.reader, msdu, waiting);
        self.flow
            .extend(packets.map(|(position, packet)| (position, segment(&self.reader, packet))));
        self.choose(&new)
    }
}

/// ECE, CWR and AE, DSCP and ECN.
fn marks(segment: &Segment) -> (super::Flags, u8) {
    (segment.flags.of(super::Flags::ECN), segment.traffic_class)
}

/// True when `new` reports all that `old` reported. Their marks are equal.
fn is_redundant(old: &Segment, new: &Segment) -> bool {
    old.is_plain_ack()
        && old.options == OtherOptions::None
        && before(old.ack, new.ack)
        && timestamps_advance(old, new)
        && !old.has_dsack()
        && is_covered(old, new)
}

/// Both or neither have timestamps, and those of `new` are not older (a receiver would drop it, RFC
/// 7323 §5.3).
fn timestamps_advance(old: &Segment, new: &Segment) -> bool {
    match (old.timestamps, new.timestamps) {
        (None, None) => true,
        (Some(old), Some(new)) => !before(new.value, old.value) && !before(new.echo, old.echo),
        _ => false,
    }
}

/// Every block of `old` is acknowledged by `new`, cumulatively or by a block.
fn is_covered(old: &Segment, new: &Segment) -> bool {
    old.sack.as_slice().iter().all(|(start, end)| {
        let start = if before(*start, new.ack) {
            new.ack
        } else {
            *start
        };
        let mut blocks = new.sack.as_slice().iter();
        !before(start, *end)
            || blocks.any(|block| !before(start, block.0) && !before(block.1, *end))
    })
}
