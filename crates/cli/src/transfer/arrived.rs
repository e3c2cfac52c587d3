//! Content of a file that arrived, in memory that its writer may keep.

use crate::transfer::pages::Pages;

/// Content that arrived.
pub(crate) trait Arrived {
    /// The content.
    fn bytes(&self) -> &[u8];

    /// Gives away the memory that holds the content, from
    /// [`CONTENT`](crate::transfer::buffers::CONTENT) on, and has `other` in its place. `bytes` are
    /// not the content any more then. `Err` returns `other` where the content is not all that the
    /// memory holds, or `other` has another size.
    fn exchange(&mut self, other: Pages) -> Result<Pages, Pages>;
}

/// Content in memory that stays where it is.
impl Arrived for &[u8] {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn exchange(&mut self, other: Pages) -> Result<Pages, Pages> {
        Err(other)
    }
}
