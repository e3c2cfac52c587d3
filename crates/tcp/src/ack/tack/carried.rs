//! What lost numbers carried, as far as that is known, and which of it has come since.
//!
//! When an arrival shows how far new data had got, all that was skipped before it lies in one span
//! of the stream. Spans are disjoint and ascend with their numbers. One is looked at again only
//! when data has come for it: what a report costs does not depend on how many are open.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use tack_base::StreamOffset;
use tack_base::range_set::RangeSet;

use crate::send::packet_number::PacketNumber;

/// Part of the stream that holds everything some numbers carried.
#[derive(Debug)]
struct Span {
    /// Where it ends.
    end: StreamOffset,
    /// The numbers.
    numbers: Range<PacketNumber>,
    /// It waits to be looked at.
    touched: bool,
}

/// The spans.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// By where they start.
    spans: BTreeMap<StreamOffset, Span>,
    /// Those that something came for, by where they start. Some may be gone.
    touched: Vec<StreamOffset>,
}

impl Carried {
    /// How many spans are known.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// What the missing among `numbers` carried is all in `span`, which lies above the spans known.
    pub(super) fn add(&mut self, span: Range<StreamOffset>, numbers: Range<PacketNumber>) {
        self.touched.push(span.start);
        let known = Span {
            end: span.end,
            numbers,
            touched: true,
        };
        self.spans.insert(span.start, known);
    }

    /// Data came above a hole.
    pub(super) fn on_data(&mut self, data: &Range<StreamOffset>) {
        // As for most segments. A search stalls even in an empty tree: its result on the stack
        // waits for the payload, which was stored just before.
        if self.spans.is_empty() {
            return;
        }
        let below = self.spans.range_mut(..data.end).rev();
        for (&start, span) in below.take_while(|(_, span)| span.end > data.start) {
            if !core::mem::replace(&mut span.touched, true) {
                self.touched.push(start);
            }
        }
    }

    /// Everything below `position` is here.
    #[inline]
    pub(super) fn forget_below(&mut self, position: StreamOffset) {
        if self.spans.is_empty() {
            return;
        }
        while let Some(first) = self.spans.first_entry()
            && first.get().end <= position
        {
            first.remove();
        }
    }

    /// Everything below `position` is here, and what is `ahead` of it. Forgets the spans that are
    /// complete by that, and gives their numbers to `each`.
    pub(super) fn complete(
        &mut self,
        position: StreamOffset,
        ahead: &RangeSet<StreamOffset>,
        mut each: impl FnMut(Range<PacketNumber>),
    ) {
        while let Some(start) = self.touched.pop() {
            let Some(span) = self.spans.get_mut(&start) else {
                continue;
            };
            span.touched = false;
            if ahead.contains(&(start.max(position)..span.end)) {
                each(span.numbers.clone());
                self.spans.remove(&start);
            }
        }
    }

    /// What `number` carried is in here, if that is known.
    #[cfg(test)]
    pub(super) fn of(&self, number: PacketNumber) -> Option<Range<StreamOffset>> {
        let holds = |(_, span): &(&StreamOffset, &Span)| span.numbers.contains(&number);
        let (start, span) = self.spans.iter().find(holds)?;
        Some(*start..span.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_looked_at_when_something_came_for_them() {
        let (mut carried, mut ahead) = (Carried::default(), RangeSet::new());
        for n in 0..1_000 {
            carried.add(
                StreamOffset::range(20 * n + 10..20 * n + 20),
                PacketNumber(2 * n + 1).run(1),
            );
            ahead.insert(StreamOffset::range(20 * n + 20..20 * n + 30));
        }
        carried.complete(StreamOffset(10), &ahead, |numbers| {
            panic!("{numbers:?} is not here")
        });
        for data in [210..215, 615..620, 215..220, 5_005..5_035].map(StreamOffset::range) {
            ahead.insert(data.clone());
            carried.on_data(&data);
            carried.on_data(&data);
        }
        assert_eq!(carried.touched.len(), 4);
        let mut came = Vec::new();
        carried.complete(StreamOffset(10), &ahead, |numbers| came.push(numbers.start));
        came.sort_unstable();
        assert_eq!(came, [21, 501].map(PacketNumber));
        assert!(carried.touched.is_empty());
        carried.forget_below(StreamOffset(10_000));
        assert_eq!(carried.len(), 500);
        assert_eq!(
            carried.of(PacketNumber(1_001)),
            Some(StreamOffset::range(10_010..10_020))
        );
        // Half of it is below what is here by now.
        carried.on_data(&StreamOffset::range(10_015..10_020));
        ahead.insert(StreamOffset::range(10_015..10_020));
        carried.complete(StreamOffset(10_015), &ahead, |numbers| {
            assert_eq!(numbers, PacketNumber(1_001).run(1))
        });
        assert_eq!(carried.len(), 499);
    }
}
