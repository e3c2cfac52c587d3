//! Bytes the application wrote, kept until they are cumulatively acknowledged.

use core::ops::Range;

use crate::ring::Ring;
use tack_base::StreamOffset;

/// The send buffer. Positions are sequence positions: SYN is 0, the first byte is 1.
#[derive(Debug)]
pub(crate) struct SendQueue {
    ring: Ring,
    start: StreamOffset,
    end: StreamOffset,
    finished: bool,
}

impl SendQueue {
    /// An empty queue.
    pub(crate) fn new() -> Self {
        Self {
            ring: Ring::default(),
            start: StreamOffset::FIRST_BYTE,
            end: StreamOffset::FIRST_BYTE,
            finished: false,
        }
    }

    /// Takes as much of `data` as keeps the queue within `limit` bytes; returns how much that was.
    pub(crate) fn push(&mut self, data: &[u8], limit: usize) -> usize {
        let len = data.len().min(limit.saturating_sub(self.len()));
        if len > 0 {
            self.ring.write(self.end, &data[..len]);
            self.end += len as u64;
        }
        len
    }

    /// Marks the end of the stream: a FIN follows the last byte.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// True once [`SendQueue::finish`] was called.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Position after the last byte written: where the FIN goes.
    #[inline]
    pub(crate) fn end(&self) -> StreamOffset {
        self.end
    }

    /// Position after everything there is to send, the FIN included.
    #[inline]
    pub(crate) fn end_with_fin(&self) -> StreamOffset {
        self.end + u64::from(self.finished)
    }

    /// Forgets everything below `position`.
    pub(crate) fn release_to(&mut self, position: StreamOffset) {
        self.start = self.start.max(position.min(self.end));
        self.ring.release_to(self.start);
    }

    /// Bytes held.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// The bytes of `range`, in at most two pieces.
    #[inline]
    pub(crate) fn slices(&self, range: Range<StreamOffset>) -> (&[u8], &[u8]) {
        debug_assert!(
            self.start <= range.start && range.end <= self.end,
            "range is not in the queue"
        );
        self.ring.slices(range)
    }

    /// Bytes of heap held.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        self.ring.capacity()
    }

    /// Gives back the heap that holds none of the bytes kept.
    pub(crate) fn trim(&mut self) {
        self.ring.trim(self.end);
    }

    /// Drops everything: the connection is over.
    pub(crate) fn clear(&mut self) {
        self.start = self.end;
        self.ring.clear();
    }
}
