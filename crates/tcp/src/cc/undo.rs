//! What window-based controllers remember of loss episodes: which kind is open, and how to take it
//! back.

use super::Cause;

/// The loss episode a controller is in, by its own record of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Episode {
    /// None.
    #[default]
    Open,
    /// Fast recovery: the sender shapes (PRR), the window waits.
    FastRecovery,
    /// After a timeout: slow start while the outstanding data is repaired (RFC 5681 §3.1).
    Timeout,
}

impl Episode {
    /// What is open once an undone episode gives way to `before`, the one it had begun in:
    /// nothing, when the sender has already closed all.
    pub(super) fn back_to(self, before: Self) -> Self {
        if self == Self::Open {
            Self::Open
        } else {
            before
        }
    }
}

/// States saved when episodes begin, for the case that an episode turns out to be false.
///
/// A timeout may strike within fast recovery, so there are two: taking back the timeout alone
/// returns to the window of fast recovery, taking back the loss takes back both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo<S> {
    before_loss: Option<S>,
    before_timeout: Option<S>,
}

impl<S: Copy> Undo<S> {
    pub(super) const fn new() -> Self {
        Self {
            before_loss: None,
            before_timeout: None,
        }
    }

    /// An episode of this `cause` begins in `state`; `open` is the episode that was open until now.
    pub(super) fn save(&mut self, cause: Cause, open: Episode, state: S) {
        match cause {
            Cause::Loss => {
                *self = Self {
                    before_loss: Some(state),
                    before_timeout: None,
                }
            }
            Cause::Timeout => {
                if open != Episode::FastRecovery {
                    self.before_loss = None;
                }
                self.before_timeout = Some(state);
            }
            // A congestion mark is the network's word and never false; what was saved before it is
            // out of date now.
            Cause::Ecn => *self = Self::new(),
        }
    }

    /// The state to return to, given up only once.
    pub(super) fn take(&mut self, cause: Cause) -> Option<S> {
        match cause {
            Cause::Loss => {
                self.before_timeout = None;
                self.before_loss.take()
            }
            Cause::Timeout => self.before_timeout.take(),
            Cause::Ecn => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_within_fast_recovery_is_undone_alone_or_with_it() {
        let mut undo = Undo::new();
        undo.save(Cause::Loss, Episode::Open, 100);
        undo.save(Cause::Timeout, Episode::FastRecovery, 50);
        assert_eq!(undo.take(Cause::Timeout), Some(50));
        assert_eq!(undo.take(Cause::Timeout), None, "only once");
        assert_eq!(undo.take(Cause::Loss), Some(100));

        undo.save(Cause::Loss, Episode::Open, 100);
        undo.save(Cause::Timeout, Episode::FastRecovery, 50);
        assert_eq!(undo.take(Cause::Loss), Some(100));
        assert_eq!(undo.take(Cause::Timeout), None, "undone with the loss");
    }

    #[test]
    fn what_is_out_of_date_is_not_restored() {
        let mut undo = Undo::new();
        undo.save(Cause::Loss, Episode::Open, 100);
        undo.save(Cause::Timeout, Episode::Open, 60);
        assert_eq!(
            undo.take(Cause::Loss),
            None,
            "the recovery had ended long before"
        );
        undo.save(Cause::Loss, Episode::Open, 80);
        undo.save(Cause::Ecn, Episode::Open, 40);
        assert_eq!(
            undo.take(Cause::Loss),
            None,
            "a mark confirmed the congestion"
        );
        assert_eq!(undo.take(Cause::Ecn), None);
    }
}
