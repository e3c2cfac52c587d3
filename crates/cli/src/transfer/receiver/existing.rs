//! What to do about a name that is taken.

/// What to do about a name that is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Existing {
    Refuse,
    Overwrite,
}
