//! A growable byte ring addressed by 64-bit stream positions.

use alloc::vec::Vec;
use core::ops::Range;

/// Bytes by stream position: position `p` lives at `p mod capacity`. Only the range the owner keeps
/// alive has a meaning, and it is never longer than the capacity.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    buf: Vec<u8>,
}

impl Ring {
    const MIN_CAPACITY: usize = 16 << 10;

    /// Makes room for `needed` live bytes; the bytes of `live` keep their values.
    pub(crate) fn reserve(&mut self, live: Range<u64>, needed: usize) {
        let capacity = self.buf.len();
        if needed <= capacity {
            return;
        }
        let grown = needed.max(Self::MIN_CAPACITY).next_power_of_two();
        let mut buf = alloc::vec![0; grown];
        if capacity > 0 {
            let (a, b) = self.slices(live.clone());
            let mask = grown - 1;
            for (at, part) in [(live.start, a), (live.start + a.len() as u64, b)] {
                let offset = at as usize & mask;
                let first = part.len().min(grown - offset);
                buf[offset..offset + first].copy_from_slice(&part[..first]);
                buf[..part.len() - first].copy_from_slice(&part[first..]);
            }
        }
        self.buf = buf;
    }

    /// Stores `data` at position `at`; room must have been reserved.
    pub(crate) fn write(&mut self, at: u64, data: &[u8]) {
        let capacity = self.buf.len();
        debug_assert!(data.len() <= capacity, "written beyond the reserved room");
        let offset = at as usize & (capacity.wrapping_sub(1));
        let first = data.len().min(capacity - offset);
        self.buf[offset..offset + first].copy_from_slice(&data[..first]);
        self.buf[..data.len() - first].copy_from_slice(&data[first..]);
    }

    /// The bytes of `range`, in at most two pieces.
    #[inline]
    pub(crate) fn slices(&self, range: Range<u64>) -> (&[u8], &[u8]) {
        let len = (range.end - range.start) as usize;
        if len == 0 {
            return (&[], &[]);
        }
        let capacity = self.buf.len();
        let offset = range.start as usize & (capacity - 1);
        let first = len.min(capacity - offset);
        (&self.buf[offset..offset + first], &self.buf[..len - first])
    }

    /// Bytes of heap held.
    pub(crate) fn capacity(&self) -> usize {
        self.buf.len()
    }

    /// Gives the heap back; nothing may be live.
    pub(crate) fn clear(&mut self) {
        self.buf = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_keeps_live_bytes_across_the_seam() {
        let mut ring = Ring::default();
        ring.reserve(0..0, 1);
        let capacity = ring.capacity() as u64;
        let start = capacity * 3 - 5;
        let data: Vec<u8> = (0..100).collect();
        ring.write(start, &data);
        ring.reserve(start..start + 100, capacity as usize + 1);
        assert!(ring.capacity() as u64 > capacity);
        let (a, b) = ring.slices(start..start + 100);
        assert_eq!([a, b].concat(), data);
    }
}
