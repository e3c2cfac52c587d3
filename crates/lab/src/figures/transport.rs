//! A transport that figures compare.

/// A controller and how it is acknowledged.
#[derive(Clone, Copy)]
pub(super) struct Transport {
    pub(super) name: &'static str,
    pub(super) congestion: &'static str,
    pub(super) ack: &'static str,
}

impl Transport {
    pub(super) const fn new(
        name: &'static str,
        congestion: &'static str,
        ack: &'static str,
    ) -> Self {
        Self {
            name,
            congestion,
            ack,
        }
    }
}
