//! Bytes by 64-bit stream position, in pages.
//!
//! The stream moves through memory, and memory that was used last is nearest: a page whose bytes
//! are no longer needed is the next to be written. One block addressed modulo its size would visit
//! all of itself in turn, however few bytes are alive, and each copy would miss the caches.

use alloc::collections::VecDeque;

use alloc::vec::Vec;
use core::ops::Range;
use tack_base::StreamOffset;

/// Bytes of a page. No segment is longer, so none lies in more than two pages.
pub(crate) const PAGE: usize = 64 << 10;
/// Smallest page: a connection that carries little holds little.
const SMALLEST: usize = 4 << 10;
/// Most unused pages kept for later.
const SPARES: usize = 32;

/// A part of the stream that begins at a multiple of [`PAGE`].
#[derive(Debug, Default)]
struct Page {
    /// Where in the page `bytes` begins: above zero where nothing was alive in it when the stream
    /// came there. A stream that never has much alive thus takes little memory, however long it
    /// runs.
    base: usize,
    /// As long as it was written.
    bytes: Vec<u8>,
}

/// A window over a stream of bytes. Only ranges that were written, and not released since, have a
/// meaning.
///
/// It holds memory for what is alive, in whole pages once that is more than one, and some unused
/// pages for what comes next; [`Ring::trim`] gives back what an idle stream does not need.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    /// From the page that holds the first live byte on. A page that nothing was written to yet has
    /// no memory.
    pages: VecDeque<Page>,
    /// Number of the first page.
    first: u64,
    /// Everything below this position is released.
    released: StreamOffset,
    spares: Vec<Vec<u8>>,
    /// Bytes of heap in `pages` and `spares`.
    held: usize,
}

/// Number of the page that `position` lies in, and where in it.
#[inline]
const fn place(position: StreamOffset) -> (u64, usize) {
    (
        position.0 / PAGE as u64,
        (position.0 % PAGE as u64) as usize,
    )
}

impl Ring {
    /// Stores `data` at position `at`, which is not below what was released.
    pub(crate) fn write(&mut self, mut at: StreamOffset, mut data: &[u8]) {
        debug_assert!(at >= self.released, "written where bytes were released");
        while !data.is_empty() {
            let (number, offset) = place(at);
            let (now, later) = data.split_at(data.len().min(PAGE - offset));
            let page = self.page(number, offset + now.len());
            let offset = offset - page.base;
            let bytes = &mut page.bytes;
            // A stream that comes in order only ever extends the page.
            if bytes.len() < offset {
                bytes.resize(offset, 0);
            }
            let (over, beyond) = now.split_at(now.len().min(bytes.len() - offset));
            bytes[offset..offset + over.len()].copy_from_slice(over);
            bytes.extend_from_slice(beyond);
            data = later;
            at += now.len() as u64;
        }
    }

    /// Page `number`, with room up to `end` in it.
    #[inline]
    fn page(&mut self, number: u64, end: usize) -> &mut Page {
        let index = (number - self.first) as usize;
        if index >= self.pages.len() {
            self.pages.resize_with(index + 1, Page::default);
        }
        // A stream that takes a page is not small.
        let small = self.held < PAGE;
        let page = &mut self.pages[index];
        if page.bytes.capacity() == 0
            && let Some(spare) = self.spares.pop()
        {
            page.bytes = spare;
        }
        if index == 0 {
            // Nothing below what was released will ever be written.
            let (_, released) = place(self.released);
            if page.base + page.bytes.len() <= released {
                page.base = released;
                page.bytes.clear();
            }
        }
        let len = end - page.base;
        if page.bytes.capacity() < len {
            let wanted = if small {
                len.next_power_of_two().clamp(SMALLEST, PAGE)
            } else {
                PAGE
            };
            self.held -= page.bytes.capacity();
            page.bytes.reserve_exact(wanted - page.bytes.len());
            self.held += page.bytes.capacity();
        }
        page
    }

    /// The bytes of `range` in at most two pieces: all of them if it is no longer than a page, else
    /// as many from its beginning as two pages hold.
    #[inline]
    pub(crate) fn slices(&self, range: Range<StreamOffset>) -> (&[u8], &[u8]) {
        if range.is_empty() {
            return (&[], &[]);
        }
        let (number, offset) = place(range.start);
        let index = (number - self.first) as usize;
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let in_first = len.min(PAGE - offset);
        let in_second = (len - in_first).min(PAGE);
        let page = &self.pages[index];
        let first = &page.bytes[offset - page.base..offset - page.base + in_first];
        if in_second == 0 {
            return (first, &[]);
        }
        (first, &self.pages[index + 1].bytes[..in_second])
    }

    /// Forgets everything below `position`.
    pub(crate) fn release_to(&mut self, position: StreamOffset) {
        self.released = self.released.max(position);
        let (number, _) = place(position);
        while self.first < number {
            self.first = match self.pages.pop_front() {
                Some(Page { mut bytes, .. }) => {
                    // Only whole pages are worth keeping: what comes next fills them.
                    if bytes.capacity() == PAGE && self.spares.len() < SPARES {
                        bytes.clear();
                        self.spares.push(bytes);
                    } else {
                        self.held -= bytes.capacity();
                    }
                    self.first + 1
                }
                None => number,
            };
        }
    }

    /// Forgets everything from `position` on, which is not below what was released.
    pub(crate) fn cut(&mut self, position: StreamOffset) {
        let (number, offset) = place(position);
        let keep = number.saturating_sub(self.first) as usize;
        while self.pages.len() > keep + 1 {
            self.held -= self
                .pages
                .pop_back()
                .map_or(0, |page| page.bytes.capacity());
        }
        if let Some(page) = self.pages.get_mut(keep) {
            page.bytes.truncate(offset.saturating_sub(page.base));
        }
    }

    /// Bytes of heap held, less the few that manage them.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.held
    }

    /// Gives back the heap that holds nothing alive. Everything below `end` that is not released
    /// stays.
    pub(crate) fn trim(&mut self, end: StreamOffset) {
        self.held -= self.spares.iter().map(Vec::capacity).sum::<usize>();
        self.spares = Vec::new();
        if self.released >= end {
            self.clear();
        }
    }

    /// Gives the heap back; nothing may be live.
    pub(crate) fn clear(&mut self) {
        self.pages = VecDeque::new();
        self.spares = Vec::new();
        self.held = 0;
        // The next page begins where the stream is.
        self.first = place(self.released).0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_survive_the_seam_of_pages() {
        let mut ring = Ring::default();
        let start = PAGE as u64 * 3 - 5;
        ring.release_to(StreamOffset(start));
        let data: Vec<u8> = (0..100).collect();
        ring.write(StreamOffset(start), &data);
        let (a, b) = ring.slices(StreamOffset::range(start..start + 100));
        assert_eq!((a.len(), b.len()), (5, 95));
        assert_eq!([a, b].concat(), data);
    }

    #[test]
    fn a_long_range_shows_its_first_two_pages() {
        let mut ring = Ring::default();
        ring.write(StreamOffset(10), &alloc::vec![7; 3 * PAGE]);
        let (a, b) = ring.slices(StreamOffset::range(10..10 + 3 * PAGE as u64));
        assert_eq!((a.len(), b.len()), (PAGE - 10, PAGE));
    }

    #[test]
    fn a_steady_stream_stays_in_the_same_pages() {
        let mut ring = Ring::default();
        let mut written = 0_u64;
        let block = [1; 1000];
        for _ in 0..10_000 {
            ring.write(StreamOffset(written), &block);
            written += 1000;
            ring.release_to(StreamOffset(written.saturating_sub(100_000)));
        }
        // 100 kB alive lie in three pages; one more may be spare.
        assert!(ring.capacity() <= 4 * PAGE, "{}", ring.capacity());
    }

    #[test]
    fn a_stream_that_empties_stays_small_however_long_it_runs() {
        let (mut sent, mut received) = (Ring::default(), Ring::default());
        let mut at = StreamOffset::FIRST_BYTE;
        for round in 0..2_000_usize {
            let data = alloc::vec![round as u8; 1 + round % 3_000];
            let end = at + data.len() as u64;
            sent.write(at, &data);
            // The second half comes first.
            let half = data.len() / 2;
            received.write(at + half as u64, &data[half..]);
            received.write(at, &data[..half]);
            for ring in [&mut sent, &mut received] {
                let (a, b) = ring.slices(at..end);
                assert_eq!([a, b].concat(), data);
                let pages = if b.is_empty() { 1 } else { 2 };
                assert_eq!(ring.capacity(), pages * SMALLEST, "at {at:?}");
                ring.release_to(end);
            }
            at = end;
        }
    }

    #[test]
    fn what_is_alive_stays_where_it_is() {
        let mut ring = Ring::default();
        ring.write(StreamOffset(1), b"abc");
        ring.release_to(StreamOffset(3));
        ring.write(StreamOffset(4), b"def");
        assert_eq!(ring.slices(StreamOffset::range(3..7)).0, b"cdef");
        // Released is only what comes before the hole.
        ring.write(StreamOffset(9), b"xyz");
        ring.release_to(StreamOffset(7));
        ring.write(StreamOffset(7), b"gh");
        assert_eq!(ring.slices(StreamOffset::range(7..12)).0, b"ghxyz");
    }

    #[test]
    fn little_data_takes_little_memory() {
        let mut ring = Ring::default();
        ring.write(StreamOffset(1), b"hello");
        assert_eq!(ring.capacity(), SMALLEST);
        // Far ahead, as after a lost window: what lies between takes none.
        ring.write(StreamOffset(20 * PAGE as u64), b"x");
        assert_eq!(ring.capacity(), 2 * SMALLEST);
    }

    #[test]
    fn an_idle_stream_takes_no_memory_and_goes_on_with_little() {
        let mut ring = Ring::default();
        ring.write(StreamOffset(1), &alloc::vec![3; 5 * PAGE]);
        let end = 1 + 5 * PAGE as u64;
        ring.release_to(StreamOffset(end - 10));
        ring.trim(StreamOffset(end));
        assert_eq!(ring.capacity(), 2 * PAGE, "what is alive stays");
        ring.release_to(StreamOffset(end));
        ring.trim(StreamOffset(end));
        assert_eq!(ring.capacity(), 0);
        // Out of order, in the middle of a page: only what lies above the stream's position takes
        // memory.
        ring.write(StreamOffset(end + 5), b"world");
        ring.write(StreamOffset(end), b"hello");
        assert_eq!(
            ring.slices(StreamOffset::range(end..end + 10)).0,
            b"helloworld"
        );
        assert_eq!(ring.capacity(), SMALLEST);
    }

    #[test]
    fn what_is_cut_off_is_written_anew() {
        let mut ring = Ring::default();
        ring.write(StreamOffset(1), b"abc");
        ring.write(StreamOffset(2 * PAGE as u64), b"far");
        ring.cut(StreamOffset(4));
        assert_eq!(ring.capacity(), SMALLEST);
        assert_eq!(ring.slices(StreamOffset::range(1..4)).0, b"abc");
        ring.write(StreamOffset(4), b"def");
        assert_eq!(ring.slices(StreamOffset::range(1..7)).0, b"abcdef");
    }

    /// The bytes of a stream, as far as 40 steps go.
    static STREAM: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let byte = |position: u64| (position ^ (position >> 8) ^ (position >> 16)) as u8;
        (0..40 * 200_000 + 300_000 + 70_000).map(byte).collect()
    });

    proptest! {
        #[test]
        fn what_was_written_is_read_back(
            steps in proptest::collection::vec((0_u64..300_000, 1_usize..70_000, 0_u64..200_000, proptest::bool::weighted(0.3)), 1..40),
        ) {
            let mut ring = Ring::default();
            let mut released = 0;
            for (ahead, len, release, trim) in steps {
                let at = released + ahead;
                let data = &STREAM[at as usize..at as usize + len];
                ring.write(StreamOffset(at), data);
                let (a, b) = ring.slices(StreamOffset::range(at..at + len.min(PAGE) as u64));
                prop_assert_eq!(a.len() + b.len(), len.min(PAGE));
                prop_assert!(data.starts_with(a) && data[a.len()..].starts_with(b));
                released += release;
                ring.release_to(StreamOffset(released));
                if trim {
                    ring.trim(StreamOffset(at + len as u64));
                }
                let held: usize = ring.pages.iter().map(|page| page.bytes.capacity()).sum();
                let spare: usize = ring.spares.iter().map(Vec::capacity).sum();
                prop_assert_eq!(ring.capacity(), held + spare);
            }
        }
    }
}
