//! The filter of Linux's `sch_cake` (net/sched/sch_cake.c, `cake_ack_filter`), for comparison.

use super::segment::{Flags, Segment, SegmentReader, before, same_flow, segment};
use super::{Admission, Discipline, OtherOptions, Waiting};
use crate::frame::{Class, Msdu};

/// How many redundant acknowledgements stay in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thinning {
    /// Two eligible acknowledgements are needed for the older one to go: a redundant one always
    /// stays.
    Conservative,
    /// One suffices, if it is the last of its flow and has the flags of the packet that comes.
    Aggressive,
}

/// A packet with ACK, data or not, lets one older pure acknowledgement of its flow go, that nearest
/// to the head. It goes to the tail itself.
#[derive(Clone, Copy, Debug)]
pub struct CakeFilter<R> {
    reader: R,
    thinning: Thinning,
}

impl<R> CakeFilter<R> {
    /// A filter that reads packets by `reader`.
    pub const fn new(reader: R, thinning: Thinning) -> Self {
        Self { reader, thinning }
    }
}

impl<M, R: SegmentReader<M>> Discipline<M> for CakeFilter<R> {
    fn admit(&mut self, msdu: &Msdu<M>, waiting: Waiting<'_, M>) -> Admission {
        let Some(new) = segment(&self.reader, msdu).filter(triggers) else {
            return Admission::Append;
        };
        // The oldest eligible one, and the flags that whatever follows it has to have.
        let mut eligible: Option<(usize, Flags)> = None;
        let mut last = None;
        for (position, old) in same_flow(&self.reader, msdu, waiting) {
            last = Some(position);
            // Data counts only by its flags, behind something eligible. Queues are full of it.
            if eligible.is_none() && old.class == Class::Data {
                continue;
            }
            // What cannot be read is taken for data of unknown flags.
            let Some(old) = segment(&self.reader, old) else {
                eligible = None;
                continue;
            };
            let flags = old.flags.of(Flags::ECE_CWR);
            if eligible.is_some_and(|(_, others)| others != flags) {
                eligible = None;
            }
            if !may_drop(&old, &new) {
                continue;
            }
            match eligible {
                None => eligible = Some((position, flags)),
                Some((first, _)) => return Admission::Supersede(first),
            }
        }
        match eligible {
            Some((first, flags))
                if self.thinning == Thinning::Aggressive
                    && last == Some(first)
                    && flags == new.flags.of(Flags::ECE_CWR) =>
            {
                Admission::Supersede(first)
            }
            _ => Admission::Append,
        }
    }
}

/// ACK without SYN; it may carry data. Other than in `sch_cake`, segments of TACK let nothing go.
fn triggers(new: &Segment) -> bool {
    new.flags.any(Flags::ACK) && !new.flags.any(Flags::SYN) && new.options != OtherOptions::Tack
}

/// `cake_tcph_may_drop` and what follows it.
fn may_drop(old: &Segment, new: &Segment) -> bool {
    let has_plain_flags = old.flags.without(Flags::ECE_CWR) == Flags::ACK;
    let has_plain_options = matches!(old.options, OtherOptions::None | OtherOptions::Signature);
    // A packet without the option counts as one with zeros.
    let newest = new.timestamps.unwrap_or_default();
    let is_not_later = old
        .timestamps
        .is_none_or(|old| !before(newest.value, old.value) && !before(newest.echo, old.echo));
    has_plain_flags
        && has_plain_options
        && is_not_later
        && old.payload == 0
        && !before(new.ack, old.ack)
        && match compare_sack(old, new) {
            Sack::Less => true,
            Sack::Equal => old.ack != new.ack,
            Sack::Greater => false,
        }
}

/// What the older packet reports selectively, against what the newer one does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sack {
    Less,
    Equal,
    /// It has a block that the newer one lacks, or a DSACK.
    Greater,
}

/// `cake_tcph_sack_compare`.
fn compare_sack(old: &Segment, new: &Segment) -> Sack {
    match (old.sack.is_empty(), new.sack.is_empty()) {
        (true, true) => return Sack::Equal,
        (true, false) => return Sack::Less,
        (false, true) => return Sack::Greater,
        (false, false) => {}
    }
    let bytes = |segment: &Segment| {
        let blocks = segment.sack.as_slice().iter();
        blocks.fold(0_u32, |sum, (start, end)| {
            sum.wrapping_add(end.wrapping_sub(*start))
        })
    };
    let is_covered = |(start, end): &(u32, u32)| {
        let mut blocks = new.sack.as_slice().iter();
        !before(*start, old.ack)
            && blocks.any(|block| !before(*start, block.0) && !before(block.1, *end))
    };
    if !old.sack.as_slice().iter().all(is_covered) {
        Sack::Greater
    } else if bytes(new) > bytes(old) {
        Sack::Less
    } else {
        Sack::Equal
    }
}
