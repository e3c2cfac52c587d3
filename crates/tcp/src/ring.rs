//! Bytes by 64-bit stream position, in pages.
//!
//! The stream moves through memory, and memory that was used last is nearest: a page whose bytes are no longer needed is the
//! next to be written. One block addressed modulo its size would visit all of itself in turn, however few bytes
//! are alive, and each copy would miss the caches.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of a page. No segment is longer, so none lies in more than two pages.
pub(crate) const PAGE: usize = 64 << 10;
/// Smallest page: a connection that carries little holds little.
const SMALLEST: usize = 4 << 10;
/// Most unused pages kept for later.
const SPARES: usize = 32;

/// A window over a stream of bytes. Only ranges that were written, and not released since, have a meaning.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    /// From the page that holds the first live byte on, each as long as it was written. The first page of a stream has as much
    /// memory as it needs, a page that nothing was written to yet has none.
    pages: VecDeque<Vec<u8>>,
    /// Number of the first page.
    first: u64,
    spares: Vec<Vec<u8>>,
}

/// Number of the page that `position` lies in, and where in it.
#[inline]
const fn place(position: u64) -> (u64, usize) {
    (position / PAGE as u64, (position % PAGE as u64) as usize)
}

impl Ring {
    /// Stores `data` at position `at`, which is not below what was released.
    pub(crate) fn write(&mut self, mut at: u64, mut data: &[u8]) {
        debug_assert!(
            place(at).0 >= self.first,
            "written where bytes were released"
        );
        while !data.is_empty() {
            let (number, offset) = place(at);
            let (now, later) = data.split_at(data.len().min(PAGE - offset));
            let page = self.page(number, offset + now.len());
            // A stream that comes in order only ever extends the page.
            if page.len() < offset {
                page.resize(offset, 0);
            }
            let (over, beyond) = now.split_at(now.len().min(page.len() - offset));
            page[offset..offset + over.len()].copy_from_slice(over);
            page.extend_from_slice(beyond);
            data = later;
            at += now.len() as u64;
        }
    }

    /// Page `number`, with room for `len` bytes.
    #[inline]
    fn page(&mut self, number: u64, len: usize) -> &mut Vec<u8> {
        let index = (number - self.first) as usize;
        if index >= self.pages.len() {
            self.pages.resize_with(index + 1, Vec::new);
        }
        let page = &mut self.pages[index];
        if page.capacity() < len {
            // A stream that has filled a page is not small.
            let wanted = if number == 0 {
                len.next_power_of_two().max(SMALLEST)
            } else {
                PAGE
            };
            if page.is_empty()
                && let Some(spare) = self.spares.pop()
            {
                *page = spare;
            } else {
                page.reserve_exact(wanted - page.len());
            }
        }
        page
    }

    /// The bytes of `range` in at most two pieces: all of them if it is no longer than a page, else as many from its
    /// beginning as two pages hold.
    #[inline]
    pub(crate) fn slices(&self, range: Range<u64>) -> (&[u8], &[u8]) {
        if range.is_empty() {
            return (&[], &[]);
        }
        let (number, offset) = place(range.start);
        let index = (number - self.first) as usize;
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let in_first = len.min(PAGE - offset);
        let in_second = (len - in_first).min(PAGE);
        let first = &self.pages[index][offset..offset + in_first];
        if in_second == 0 {
            return (first, &[]);
        }
        (first, &self.pages[index + 1][..in_second])
    }

    /// Forgets everything below `position`.
    pub(crate) fn release_to(&mut self, position: u64) {
        let (number, _) = place(position);
        while self.first < number {
            self.first = match self.pages.pop_front() {
                Some(mut page) => {
                    // Only whole pages are worth keeping: what comes next fills them.
                    if page.capacity() == PAGE && self.spares.len() < SPARES {
                        page.clear();
                        self.spares.push(page);
                    }
                    self.first + 1
                }
                None => number,
            };
        }
    }

    /// Bytes of heap held.
    pub(crate) fn capacity(&self) -> usize {
        self.pages
            .iter()
            .chain(&self.spares)
            .map(Vec::capacity)
            .sum()
    }

    /// Gives the heap back; nothing may be live.
    pub(crate) fn clear(&mut self) {
        self.pages = VecDeque::new();
        self.spares = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_survive_the_seam_of_pages() {
        let mut ring = Ring::default();
        let start = PAGE as u64 * 3 - 5;
        ring.release_to(start);
        let data: Vec<u8> = (0..100).collect();
        ring.write(start, &data);
        let (a, b) = ring.slices(start..start + 100);
        assert_eq!((a.len(), b.len()), (5, 95));
        assert_eq!([a, b].concat(), data);
    }

    #[test]
    fn a_long_range_shows_its_first_two_pages() {
        let mut ring = Ring::default();
        ring.write(10, &alloc::vec![7; 3 * PAGE]);
        let (a, b) = ring.slices(10..10 + 3 * PAGE as u64);
        assert_eq!((a.len(), b.len()), (PAGE - 10, PAGE));
    }

    #[test]
    fn a_steady_stream_stays_in_the_same_pages() {
        let mut ring = Ring::default();
        let mut written = 0_u64;
        let block = [1; 1000];
        for _ in 0..10_000 {
            ring.write(written, &block);
            written += 1000;
            ring.release_to(written.saturating_sub(100_000));
        }
        // 100 kB alive lie in three pages; one more may be spare.
        assert!(ring.capacity() <= 4 * PAGE, "{}", ring.capacity());
    }

    #[test]
    fn little_data_takes_little_memory() {
        let mut ring = Ring::default();
        ring.write(1, b"hello");
        assert_eq!(ring.capacity(), SMALLEST);
        // Far ahead, as after a lost window: what lies between takes none.
        ring.write(20 * PAGE as u64, b"x");
        assert_eq!(ring.capacity(), SMALLEST + PAGE);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(
            steps in proptest::collection::vec((0_u64..300_000, 1_usize..70_000, 0_u64..200_000), 1..40),
        ) {
            let byte = |position: u64| (position ^ (position >> 8) ^ (position >> 16)) as u8;
            let mut ring = Ring::default();
            let mut released = 0;
            for (ahead, len, release) in steps {
                let at = released + ahead;
                let data: Vec<u8> = (at..at + len as u64).map(byte).collect();
                ring.write(at, &data);
                let (a, b) = ring.slices(at..at + len.min(PAGE) as u64);
                prop_assert_eq!(a.len() + b.len(), len.min(PAGE));
                prop_assert!(a.iter().chain(b).zip(&data).all(|(got, put)| got == put));
                released += release;
                ring.release_to(released);
            }
        }
    }
}
