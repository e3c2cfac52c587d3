//! Round-trip time: the estimator, and the clock of the timestamps option.

pub(crate) mod estimator;
pub(crate) mod timestamps;
