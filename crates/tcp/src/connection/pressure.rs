//! How scarce memory is, and what a connection held when it was trimmed.

/// How scarce the memory of an endpoint is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Pressure {
    /// There is enough: buffers grow as their settings allow.
    #[default]
    None,
    /// Buffers do not grow any more.
    Scarce,
    /// The limit is reached: buffers shrink to the least that keeps a connection moving, and data
    /// that waits above a hole is thrown away.
    Exhausted,
}

/// How a connection stands with memory.
#[derive(Debug)]
pub(super) struct Memory {
    /// How scarce it is.
    pub(super) pressure: Pressure,
    /// What the connection held after it was trimmed last, bytes.
    pub(super) trimmed_to: usize,
}

impl Memory {
    /// The connection holds `held` bytes to begin with.
    pub(super) const fn new(held: usize) -> Self {
        Self {
            pressure: Pressure::None,
            trimmed_to: held,
        }
    }
}
