//! Files as groups of 256 KiB. Each group has a BLAKE3 chaining value; merged they give the hash of
//! the file.
//!
//! BLAKE3 is a tree over chunks of 1 KiB (BLAKE3 paper, section 2.4), and a group of a power of two
//! chunks is a subtree of it. So two sides can compare a file group by group and still end up with
//! its ordinary hash.

use std::io::{self, Read};

use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

use super::pages::Pages;
use super::protocol::{Hash, Value};

/// Bytes of a group; the last one of a file may be shorter. What a receiver has of a group that is
/// not complete is sent again: a quarter of the MiB that a kill may cost, the rest of which is for
/// what was on its way.
pub(crate) const GROUP: u64 = 256 << 10;

/// Number of groups in a file of `size` bytes.
pub(crate) fn groups_in(size: u64) -> u64 {
    size.div_ceil(GROUP)
}

/// The chaining value of group `number`.
pub(crate) fn value(number: u64, bytes: &[u8]) -> Value {
    debug_assert!(!bytes.is_empty() && bytes.len() as u64 <= GROUP);
    let mut hasher = at(number);
    hasher.update(bytes);
    hasher.finalize_non_root()
}

/// The hash of all that `file` gives.
pub(crate) fn hash_of(mut file: impl Read) -> io::Result<Hash> {
    let mut hasher = Hasher::new();
    let mut buffer = Pages::new(GROUP as usize);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(*hasher.finalize().as_bytes()),
            Ok(len) => {
                hasher.update(&buffer[..len]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn at(number: u64) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.set_input_offset(number.saturating_mul(GROUP));
    hasher
}

/// Hashes a file from its beginning to its end, from bytes and from values of groups.
#[derive(Debug)]
pub(crate) struct FileHasher {
    /// Values of complete subtrees, the largest first. Two are merged only when more follows,
    /// because the last merge of all is another function.
    stack: Vec<Value>,
    /// Groups in `stack`.
    closed: u64,
    /// The group after those.
    hasher: Hasher,
    filled: u64,
}

impl FileHasher {
    pub(crate) fn new() -> Self {
        Self {
            stack: Vec::new(),
            closed: 0,
            hasher: Hasher::new(),
            filled: 0,
        }
    }

    /// Number of bytes hashed so far.
    pub(crate) fn position(&self) -> u64 {
        self.closed * GROUP + self.filled
    }

    /// True if the next byte begins a group.
    pub(crate) fn is_between(&self) -> bool {
        self.filled == 0 || self.filled == GROUP
    }

    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.filled == GROUP {
                self.close();
            }
            let free = usize::try_from(GROUP - self.filled).unwrap_or(usize::MAX);
            let (part, rest) = bytes.split_at(bytes.len().min(free));
            self.hasher.update(part);
            self.filled += part.len() as u64;
            bytes = rest;
        }
    }

    /// Hashes `len` zero bytes.
    pub(crate) fn zeros(&mut self, mut len: u64) {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        while len > 0 {
            let amount = usize::try_from(len).unwrap_or(usize::MAX).min(ZEROS.len());
            self.update(&ZEROS[..amount]);
            len -= amount as u64;
        }
    }

    /// Appends a whole group by its value. Only between groups, in a file of at least two groups.
    pub(crate) fn push(&mut self, value: &Value) {
        debug_assert!(self.is_between());
        if self.filled == GROUP {
            self.close();
        }
        self.add(*value);
        self.hasher = at(self.closed);
    }

    fn close(&mut self) {
        let value = self.hasher.finalize_non_root();
        self.add(value);
        self.hasher = at(self.closed);
        self.filled = 0;
    }

    fn add(&mut self, value: Value) {
        while self.stack.len() > self.closed.count_ones() as usize {
            self.merge();
        }
        self.stack.push(value);
        self.closed += 1;
    }

    fn merge(&mut self) {
        if let (Some(right), Some(left)) = (self.stack.pop(), self.stack.pop()) {
            let merged = merge_subtrees_non_root(&left, &right, Mode::Hash);
            self.stack.push(merged);
        }
    }

    /// The hash of the file. `None` if it has one group, of which only the value is known.
    pub(crate) fn finish(mut self) -> Option<Hash> {
        if self.closed == 0 {
            return Some(*self.hasher.finalize().as_bytes());
        }
        if self.filled > 0 {
            self.close();
        }
        while self.stack.len() > 2 {
            self.merge();
        }
        let (right, left) = (self.stack.pop()?, self.stack.pop()?);
        Some(*merge_subtrees_root(&left, &right, Mode::Hash).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(len: usize) -> Vec<u8> {
        (0..len as u32)
            .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
            .collect()
    }

    #[test]
    fn groups_merge_to_the_hash_of_the_file() {
        let group = GROUP as usize;
        for len in [
            0,
            1,
            group - 1,
            group,
            group + 1,
            2 * group,
            3 * group - 5,
            4 * group,
            5 * group + 1,
            7 * group,
            8 * group,
        ] {
            let bytes = content(len);
            let expected = *blake3::hash(&bytes).as_bytes();
            for step in [1_000_003, 262_144] {
                let mut hasher = FileHasher::new();
                bytes.chunks(step).for_each(|chunk| hasher.update(chunk));
                assert_eq!(hasher.position(), len as u64);
                assert_eq!(hasher.finish(), Some(expected), "{len}");
            }
            if len <= group {
                continue;
            }
            // Every second group by its value.
            let mut hasher = FileHasher::new();
            for (number, chunk) in (0..).zip(bytes.chunks(group)) {
                if number % 2 == 0 {
                    hasher.push(&value(number, chunk));
                } else {
                    hasher.update(chunk);
                }
            }
            assert_eq!(hasher.finish(), Some(expected), "{len}");
        }
    }

    #[test]
    fn zeros_are_hashed_as_if_they_were_there() {
        for len in [0, 1, 65_536, 200_000, (3 << 20) + 7] {
            let mut hasher = FileHasher::new();
            hasher.zeros(len as u64);
            assert_eq!(
                hasher.finish(),
                Some(*blake3::hash(&vec![0; len]).as_bytes())
            );
        }
    }
}
