//! Answers that no receiver would give.

/// The receiver answered something that makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the receiver broke the protocol: {0}")]
pub(crate) struct BadAnswer(pub(super) &'static str);

impl BadAnswer {
    pub(crate) fn unexpected() -> Self {
        Self("unexpected answer")
    }
}
