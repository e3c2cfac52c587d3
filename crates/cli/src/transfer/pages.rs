//! Memory that begins at a page, as the pages of files in the kernel's memory do.
//!
//! The kernel copies between the two with instructions that are several times slower on some
//! processors where source and destination lie differently within their pages.

use std::ops::{Deref, DerefMut};

/// Bytes of a page. Where pages are larger, this alignment serves as well.
pub(crate) const PAGE: usize = 4096;

/// Zeros at first.
#[derive(Debug)]
pub(crate) struct Pages {
    bytes: Box<[u8]>,
    /// Where the first page begins.
    start: usize,
}

impl Pages {
    /// `len` bytes.
    pub(crate) fn new(len: usize) -> Self {
        let bytes = vec![0; len + PAGE - 1].into_boxed_slice();
        // It may be said that no place is known; then all are alike.
        let start = bytes.as_ptr().align_offset(PAGE).min(PAGE - 1);
        Self { bytes, start }
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let len = self.bytes.len() - (PAGE - 1);
        &self.bytes[self.start..][..len]
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        let len = self.bytes.len() - (PAGE - 1);
        &mut self.bytes[self.start..][..len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_at_a_page_wherever_it_is() {
        let all: Vec<_> = [1, 100, PAGE, 3 * PAGE + 1].map(Pages::new).into();
        for (pages, len) in all.iter().zip([1, 100, PAGE, 3 * PAGE + 1]) {
            assert_eq!(pages.len(), len);
            assert_eq!(pages.as_ptr().align_offset(PAGE), 0);
        }
    }
}
