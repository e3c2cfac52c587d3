//! How fast data is delivered.

pub(crate) mod receiver;
pub(crate) mod sender;
