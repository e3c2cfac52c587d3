//! Byte streams whose every byte the receiver can check: a pseudo-random pattern by flow, direction
//! and position.

use std::ops::Range;

use bytes::Bytes;
use tack_base::random::RandomStream;

/// Length after which the pattern repeats. A prime: no segment size, buffer or window divides it,
/// so bytes that end up at the wrong place do not look right there.
const PERIOD: usize = 65_521;

/// Bytes of one stream: one block for all streams of a run, entered at a place of its own by each.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// The pattern twice: any [`PERIOD`] bytes are contiguous.
    block: Bytes,
    offset: u64,
}

impl Pattern {
    /// The block. It does not depend on the seed.
    pub(super) fn new() -> Self {
        let mut stream = RandomStream::new(0, "pattern", 0);
        let mut block = Vec::with_capacity(2 * PERIOD + 8);
        while block.len() < PERIOD {
            block.extend_from_slice(&stream.next_u64().to_le_bytes());
        }
        block.truncate(PERIOD);
        block.extend_from_within(..);
        Self {
            block: block.into(),
            offset: 0,
        }
    }

    /// The stream that `side` (0 connects, 1 accepts) of `flow` sends.
    pub(super) fn stream(&self, flow: usize, side: usize) -> Self {
        let offset = RandomStream::new(0, "pattern_offset", (flow as u64) << 1 | side as u64)
            .below(PERIOD as u64);
        Self {
            block: self.block.clone(),
            offset,
        }
    }

    fn range(&self, position: u64, len: usize) -> Range<usize> {
        let start = ((position + self.offset) % PERIOD as u64) as usize;
        start..start + len.min(PERIOD)
    }

    /// Up to `len` bytes from `position` on.
    pub(super) fn at(&self, position: u64, len: usize) -> &[u8] {
        &self.block[self.range(position, len)]
    }

    /// The same, shared.
    ///
    /// # Panics
    /// When `len` is more than the pattern has in one piece.
    pub(super) fn share(&self, position: u64, len: usize) -> Bytes {
        assert!(len <= PERIOD);
        self.block.slice(self.range(position, len))
    }

    /// True when `bytes` are what stands at `position`.
    pub(super) fn matches(&self, position: u64, bytes: &[u8]) -> bool {
        let mut position = position;
        bytes.chunks(PERIOD).all(|chunk| {
            let same = self.at(position, chunk.len()) == chunk;
            position += chunk.len() as u64;
            same
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_depend_on_position_flow_and_side() {
        let block = Pattern::new();
        let pattern = block.stream(0, 0);
        let bytes = pattern.at(100_000, 1_000).to_vec();
        assert!(pattern.matches(100_000, &bytes));
        assert!(!pattern.matches(100_001, &bytes));
        assert!(!block.stream(0, 1).matches(100_000, &bytes));
        assert!(!block.stream(1, 0).matches(100_000, &bytes));
        assert_eq!(pattern.share(100_000, 1_000), bytes);
        let long: Vec<u8> = (0..200_u64)
            .flat_map(|n| pattern.at(n * 1_000, 1_000).to_vec())
            .collect();
        assert!(pattern.matches(0, &long));
        assert!(!pattern.matches(1, &long));
    }
}
