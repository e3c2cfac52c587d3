//! What to do about a name that is taken.

use crate::transfer::protocol::Taken;

/// What to do about a name that is taken by something else than what is sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Existing {
    /// Leave it, and refuse the entry.
    #[default]
    Refuse,
    /// Leave it; that is not a failure.
    Skip,
    /// Leave it, and store the entry under another name.
    Rename,
    /// Replace it if the entry is newer.
    Update,
    /// Replace it.
    Overwrite,
}

impl Existing {
    /// Whether this lets anything that is there be lost.
    pub(crate) fn may_replace(self) -> bool {
        matches!(self, Self::Update | Self::Overwrite)
    }

    /// What is done for a sender with this wish. It may always ask for less than the receiver
    /// permits, never for more.
    pub(crate) fn for_sender(self, wish: Taken) -> Self {
        match wish {
            Taken::Refuse => Self::Refuse,
            Taken::Skip => Self::Skip,
            Taken::Rename => Self::Rename,
            Taken::Update if self.may_replace() => Self::Update,
            Taken::AsReceiver | Taken::Update | Taken::Overwrite => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_gets_no_more_than_the_receiver_permits() {
        for own in [
            Existing::Refuse,
            Existing::Skip,
            Existing::Rename,
            Existing::Update,
            Existing::Overwrite,
        ] {
            for wish in [Taken::AsReceiver, Taken::Update, Taken::Overwrite] {
                let done = own.for_sender(wish);
                assert!(own.may_replace() || !done.may_replace());
                assert!(done != Existing::Overwrite || own == Existing::Overwrite);
            }
            assert_eq!(own.for_sender(Taken::AsReceiver), own);
            assert_eq!(own.for_sender(Taken::Skip), Existing::Skip);
        }
        let both = Existing::Overwrite.for_sender(Taken::Update);
        assert_eq!(both, Existing::Update);
    }
}
