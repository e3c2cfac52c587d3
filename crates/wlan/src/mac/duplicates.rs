//! Duplicate detection without Block ACK (§10.3.2.14): the last sequence number of each
//! transmitter.

use alloc::vec::Vec;

/// The receiver's cache.
#[derive(Clone, Debug, Default)]
pub struct DuplicateCache {
    last: Vec<Option<u16>>,
}

impl DuplicateCache {
    /// True when the frame is new; remembers it. A frame is a duplicate when it is a retry of the
    /// last one.
    pub fn accept(&mut self, transmitter: usize, seq: u16, retry: bool) -> bool {
        if self.last.len() <= transmitter {
            self.last.resize(transmitter + 1, None);
        }
        let is_new = !(retry && self.last[transmitter] == Some(seq));
        self.last[transmitter] = Some(seq);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_retries_of_the_last_frame_are_duplicates() {
        let mut cache = DuplicateCache::default();
        assert!(cache.accept(3, 7, true));
        assert!(!cache.accept(3, 7, true));
        assert!(cache.accept(1, 7, true), "another transmitter");
        assert!(cache.accept(3, 8, true));
        assert!(cache.accept(3, 8, false), "not a retry: 4096 frames later");
    }
}
