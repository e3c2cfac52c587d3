//! How much harm a script does.

/// What becomes of a stream on a path with this in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Harm {
    /// Segments are lost, late, doubled or shorter: everything arrives all the same.
    Path,
    /// What an acknowledgement says beyond its number, or the window, is not what its sender said:
    /// everything arrives all the same, once it is.
    Words,
    /// Both ends may believe different things for good. The bytes that arrive are those that were
    /// written.
    State,
    /// Anything may arrive.
    Content,
}
