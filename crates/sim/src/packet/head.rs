//! The headers of a packet, in place.

use std::ops::{Deref, DerefMut};

use tack_wire::ip;

/// Most header bytes of a packet: IPv4 and a full TCP header.
pub const MAX_HEAD: usize = ip::IPV4_HEADER_LEN + tack_wire::segment::MAX_HEADER_LEN;

/// Up to [`MAX_HEAD`] bytes of IP and transport header.
///
/// A copy of an array and its length: packets are copied for each transmission over the air, and
/// lists that copy element by element take a twentieth of a run for that.
#[derive(Clone, Copy)]
pub struct Head {
    len: u8,
    bytes: [u8; MAX_HEAD],
}

const _: () = assert!(MAX_HEAD <= u8::MAX as usize);

impl Head {
    /// No bytes.
    pub const fn new() -> Self {
        Self {
            len: 0,
            bytes: [0; MAX_HEAD],
        }
    }

    /// These bytes; `None` when they are more than [`MAX_HEAD`].
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        let mut head = Self::new();
        head.append(bytes).then_some(head)
    }

    /// Adds bytes at the end. Returns false, and adds none, when they are too many.
    #[must_use]
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        let (start, end) = (self.len(), self.len() + bytes.len());
        let Some(place) = self.bytes.get_mut(start..end) else {
            return false;
        };
        place.copy_from_slice(bytes);
        self.len = end as u8;
        true
    }

    /// Keeps the first `len` bytes, all of them when there are no more.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len().min(len) as u8;
    }
}

impl Default for Head {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Head {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl DerefMut for Head {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for Head {
    /// Bytes beyond the length do not count.
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Head {}

impl std::fmt::Debug for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_holds_80_bytes_and_no_more() {
        let mut head = Head::from_slice(&[7; MAX_HEAD - 1]).unwrap();
        assert!(!head.append(&[1, 2]));
        assert_eq!(head.len(), MAX_HEAD - 1);
        assert!(head.append(&[1]));
        assert_eq!(head[MAX_HEAD - 2..], [7, 1]);
        assert_eq!(Head::from_slice(&[0; MAX_HEAD + 1]), None);
    }

    #[test]
    fn what_was_cut_off_does_not_count() {
        let mut head = Head::from_slice(&[1, 2, 3]).unwrap();
        head.truncate(5);
        assert_eq!(*head, [1, 2, 3]);
        head.truncate(2);
        assert_eq!(head, Head::from_slice(&[1, 2]).unwrap());
        assert!(head.append(&[9]));
        assert_eq!(*head, [1, 2, 9]);
    }
}
