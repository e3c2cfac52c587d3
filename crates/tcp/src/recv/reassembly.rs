//! Puts segments back in order, in place: each byte is copied once into the ring, once out of it.

use core::ops::Range;

use tack_base::StreamOffset;
use tack_base::range_set::RangeSet;

use crate::ring::Ring;

/// Remembering a hole takes more memory than a byte of data does. As many are kept as there are
/// segments of this size (RFC 9293 §3.7.1, the least that every path takes) between RCV.NXT and the
/// newest byte: honest senders leave fewer. Data that would open another one is dropped and comes
/// again.
const BYTES_PER_HOLE: u64 = 536;
/// So many holes are kept however short the distance is: some applications send small messages.
const FEW_HOLES: u64 = 128;

/// What became of a segment's payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It continued the stream; nothing is missing below or above it.
    InOrder,
    /// It continued the stream while data above a hole waits: the hole shrank or closed.
    FilledGap,
    /// It lies above a hole.
    OutOfOrder,
    /// All of it was here already.
    Duplicate(Range<StreamOffset>),
    /// It would have opened one hole too many, and was not kept.
    Dropped,
}

/// The receive buffer. Positions are sequence positions: SYN is 0, the first byte is 1.
#[derive(Debug)]
pub(crate) struct Reassembly {
    ring: Ring,
    /// First byte that the application has not taken.
    read: StreamOffset,
    /// RCV.NXT without the FIN.
    next: StreamOffset,
    /// What was received above the first hole. A FIN there counts as one position.
    ahead: RangeSet<StreamOffset>,
    /// Position of the FIN, once it came.
    fin: Option<StreamOffset>,
    /// Nothing more will come: what is read need not leave room for anything.
    ended: bool,
}

impl Reassembly {
    /// An empty buffer.
    pub(crate) fn new() -> Self {
        Self {
            ring: Ring::default(),
            read: StreamOffset::FIRST_BYTE,
            next: StreamOffset::FIRST_BYTE,
            ahead: RangeSet::new(),
            fin: None,
            ended: false,
        }
    }

    /// Position of the next byte expected.
    #[inline]
    pub(crate) fn next(&self) -> StreamOffset {
        self.next
    }

    /// Position of the first byte not yet taken by the application.
    #[inline]
    pub(crate) fn read_position(&self) -> StreamOffset {
        self.read
    }

    /// Stores `data` that starts at `start`; the caller has cut it to the window.
    pub(crate) fn insert(&mut self, start: StreamOffset, data: &[u8]) -> Arrival {
        let end = start + data.len() as u64;
        if end <= self.next {
            return Arrival::Duplicate(start..end);
        }
        let new_start = start.max(self.next);
        let data = &data[(new_start - start) as usize..];
        if new_start > self.next {
            if self.ahead.contains(&(new_start..end)) {
                return Arrival::Duplicate(start..end);
            }
            if self.ahead.len() as u64 >= self.most_holes(end)
                && !self.ahead.touches(&(new_start..end))
            {
                return Arrival::Dropped;
            }
        }
        self.ring.write(new_start, data);
        if new_start > self.next {
            self.ahead.insert(new_start..end);
            return Arrival::OutOfOrder;
        }
        self.next = end;
        if self.ahead.is_empty() {
            return Arrival::InOrder;
        }
        if let Some(first) = self.ahead.first()
            && first.start <= self.next
        {
            let taken = self.next.max(first.end);
            // `next` counts bytes of the stream, and the FIN is not one of them.
            self.next = self.fin.map_or(taken, |fin| taken.min(fin));
            self.ahead.remove_below(taken);
        }
        Arrival::FilledGap
    }

    /// The first part of a segment of `len` bytes at `start` that was received before.
    #[inline]
    pub(crate) fn repeated(&self, start: StreamOffset, len: usize) -> Option<Range<StreamOffset>> {
        let end = start + len as u64;
        if start < self.next {
            return Some(start..end.min(self.next));
        }
        if self.ahead.is_empty() {
            return None;
        }
        self.ahead.first_common(&(start..end))
    }

    /// Records a FIN that ends the stream at `position`. No byte at or beyond `position` may have
    /// been received. A FIN above a hole is part of `ahead`, because it takes a sequence number:
    /// without it, a segment that carries the last bytes and the FIN would never be reported as
    /// received.
    pub(crate) fn insert_fin(&mut self, position: StreamOffset) {
        self.fin = Some(position);
        if position > self.next {
            self.ahead.insert(position..position + 1);
        }
    }

    /// How many holes may be open when data arrives that ends at `end`.
    fn most_holes(&self, end: StreamOffset) -> u64 {
        let newest = self.ahead.last().map_or(end, |range| range.end.max(end));
        ((newest - self.next) / BYTES_PER_HOLE).max(FEW_HOLES)
    }

    /// Bytes ready for the application, in at most two pieces; there may be more behind them.
    pub(crate) fn peek(&self) -> (&[u8], &[u8]) {
        self.ring.slices(self.read..self.next)
    }

    /// Number of bytes ready.
    #[inline]
    pub(crate) fn readable(&self) -> usize {
        (self.next - self.read) as usize
    }

    /// Drops `len` bytes from the front of what is ready.
    pub(crate) fn consume(&mut self, len: usize) {
        self.read = (self.read + len as u64).min(self.next);
        self.ring.release_to(self.read);
        if self.ended && self.read == self.next {
            self.ring.clear();
        }
    }

    /// Nothing more will come: the stream has ended, or the connection. What is in order stays
    /// readable.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        self.prune();
        self.trim();
    }

    /// Throws away what lies above the first hole, to free memory. A receiver may do so even with
    /// what it reported (RFC 2018 §8): what is not cumulatively acknowledged is the sender's to
    /// keep. Returns whether there was anything.
    pub(crate) fn prune(&mut self) -> bool {
        if self.ahead.is_empty() {
            return false;
        }
        self.ahead.clear();
        self.ring.cut(self.next);
        true
    }

    /// Gives back the heap that holds none of the bytes kept.
    pub(crate) fn trim(&mut self) {
        let end = self.ahead.last().map_or(self.next, |range| range.end);
        // The FIN takes no room.
        self.ring
            .trim(self.fin.map_or(end, |fin| end.min(fin.max(self.next))));
    }

    /// Bytes above the first hole, and the FIN.
    pub(crate) fn blocked(&self) -> u64 {
        self.ahead.positions()
    }

    /// What was received above the first hole, including a FIN.
    pub(crate) fn ahead(&self) -> &RangeSet<StreamOffset> {
        &self.ahead
    }

    /// Bytes of heap held by the buffer.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        self.ring.capacity()
    }

    /// Bytes of heap held by what is known of holes.
    #[inline]
    pub(crate) fn records_memory(&self) -> usize {
        self.ahead.len() * 2 * size_of::<Range<StreamOffset>>()
    }

    /// Throws away everything not delivered: nobody reads any more.
    pub(crate) fn discard(&mut self) {
        self.read = self.next;
        self.ahead.clear();
        self.ring.release_to(self.read);
        self.ring.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn drain(buffer: &mut Reassembly) -> Vec<u8> {
        let (a, b) = buffer.peek();
        let out = [a, b].concat();
        buffer.consume(out.len());
        out
    }

    #[test]
    fn a_fin_above_a_hole_is_among_what_came() {
        let ahead = |buffer: &Reassembly| buffer.ahead().iter().collect::<Vec<_>>();
        // With the last bytes, and alone.
        for (last, reported) in [(&b"ef"[..], 5..8), (&b""[..], 5..6)] {
            let mut buffer = Reassembly::new();
            let fin = StreamOffset(5 + last.len() as u64);
            if !last.is_empty() {
                assert_eq!(buffer.insert(StreamOffset(5), last), Arrival::OutOfOrder);
            }
            buffer.insert_fin(fin);
            assert_eq!(ahead(&buffer), [StreamOffset::range(reported)]);
            assert_eq!(buffer.insert(StreamOffset(1), b"abcd"), Arrival::FilledGap);
            assert_eq!((buffer.next(), buffer.ahead().is_empty()), (fin, true));
            assert_eq!(drain(&mut buffer), [b"abcd", last].concat());
        }
        // In order there is nothing to report.
        let mut buffer = Reassembly::new();
        buffer.insert(StreamOffset(1), b"ab");
        buffer.insert_fin(StreamOffset(3));
        assert!(buffer.ahead().is_empty());
    }

    #[test]
    fn holes_block_and_fill() {
        let mut buffer = Reassembly::new();
        assert_eq!(buffer.insert(StreamOffset(1), b"ab"), Arrival::InOrder);
        assert_eq!(buffer.insert(StreamOffset(5), b"ef"), Arrival::OutOfOrder);
        assert_eq!(buffer.blocked(), 2);
        assert_eq!(
            buffer.insert(StreamOffset(5), b"ef"),
            Arrival::Duplicate(StreamOffset::range(5..7))
        );
        assert_eq!(
            buffer.insert(StreamOffset(1), b"a"),
            Arrival::Duplicate(StreamOffset::range(1..2))
        );
        assert_eq!(buffer.insert(StreamOffset(2), b"bcdef"), Arrival::FilledGap);
        assert_eq!(drain(&mut buffer), b"abcdef");
    }

    #[test]
    fn the_first_part_that_was_here_is_found() {
        let mut buffer = Reassembly::new();
        for (at, data) in [(1, &b"ab"[..]), (5, b"efgh"), (11, b"kl")] {
            buffer.insert(StreamOffset(at), data);
        }
        for (segment, repeated) in [
            (1..3, Some(1..3)),
            (2..6, Some(2..3)),
            (3..5, None),
            (3..6, Some(5..6)),
            (6..8, Some(6..8)),
            (7..11, Some(7..9)),
            (9..14, Some(11..13)),
            (13..15, None),
        ] {
            let len = (segment.end - segment.start) as usize;
            let found = buffer.repeated(StreamOffset(segment.start), len);
            assert_eq!(found, repeated.map(StreamOffset::range), "{segment:?}");
        }
    }

    #[test]
    fn holes_are_bounded_by_what_a_window_holds_and_can_all_be_filled() {
        const WINDOW: u64 = 64 << 10;
        let mut buffer = Reassembly::new();
        let dropped = (1..WINDOW / 2)
            .filter(|n| buffer.insert(StreamOffset(1 + 2 * n), b"x") == Arrival::Dropped)
            .count();
        assert_eq!(buffer.ahead().len() as u64, FEW_HOLES);
        assert_eq!(dropped as u64, WINDOW / 2 - 1 - FEW_HOLES);
        // What makes a known block longer opens no hole, nor does what fills one.
        assert_eq!(buffer.insert(StreamOffset(4), b"y"), Arrival::OutOfOrder);
        assert_eq!(buffer.insert(StreamOffset(1), b"ab"), Arrival::FilledGap);
        // And the stream goes on: everything else comes again.
        for at in 3..WINDOW {
            buffer.insert(StreamOffset(at), b"z");
        }
        assert_eq!((buffer.next(), buffer.blocked()), (StreamOffset(WINDOW), 0));
    }

    #[test]
    fn a_large_window_may_have_as_many_holes_as_segments() {
        let mut buffer = Reassembly::new();
        let data = [0; 1448];
        for n in 1..20_000 {
            assert_eq!(
                buffer.insert(StreamOffset(1 + 2 * n * 1448), &data),
                Arrival::OutOfOrder
            );
        }
        assert_eq!(buffer.ahead().len(), 19_999);
    }

    /// RFC 2018 §8: what was reported may be thrown away, as long as it is asked for again.
    #[test]
    fn what_was_pruned_is_taken_again() {
        let mut buffer = Reassembly::new();
        buffer.insert(StreamOffset(1), b"ab");
        buffer.insert(StreamOffset(5), b"ef");
        assert!(buffer.prune());
        assert_eq!((buffer.blocked(), buffer.next()), (0, StreamOffset(3)));
        assert!(!buffer.prune());
        assert_eq!(buffer.insert(StreamOffset(3), b"cd"), Arrival::InOrder);
        assert_eq!(buffer.insert(StreamOffset(5), b"ef"), Arrival::InOrder);
        assert_eq!(drain(&mut buffer), b"abcdef");
    }

    #[test]
    fn a_stream_that_ended_holds_what_can_be_read_and_no_more() {
        let mut buffer = Reassembly::new();
        buffer.insert(StreamOffset(1), b"ab");
        buffer.end();
        assert_eq!(drain(&mut buffer), b"ab");
        assert_eq!(buffer.memory(), 0);
    }

    proptest! {
        #[test]
        fn any_cutting_and_order_gives_the_stream_back(
            len in 1_usize..4000,
            pieces in proptest::collection::vec((0_usize..4000, 1_usize..600), 1..60),
        ) {
            let stream: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
            let mut buffer = Reassembly::new();
            let mut got = Vec::new();
            let tail = (0..len).step_by(97).map(|at| (at, 97));
            for (at, size) in pieces.into_iter().chain(tail) {
                let from = at.min(len);
                let to = (at + size).min(len);
                buffer.insert(StreamOffset(1 + from as u64), &stream[from..to]);
                if at % 3 == 0 {
                    got.extend(drain(&mut buffer));
                }
            }
            got.extend(drain(&mut buffer));
            prop_assert_eq!(got, stream);
            prop_assert_eq!(buffer.blocked(), 0);
        }
    }
}
