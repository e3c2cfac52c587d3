//! How fast data is delivered.

pub(crate) mod estimator;

use tack_base::Rate;

/// Where a delivery rate comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Measured {
    /// The sender takes its own samples.
    #[default]
    BySender,
    /// The receiver measures; this acknowledgement carries a figure or does not.
    ByReceiver(Option<Rate>),
}
