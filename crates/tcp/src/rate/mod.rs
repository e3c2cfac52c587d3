//! How fast data is delivered.

pub(crate) mod sender;
