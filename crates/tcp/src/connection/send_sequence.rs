//! Send sequence variables (RFC 9293 §3.3.1).

use tack_base::StreamOffset;

/// Where sending stands in our stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendSequence {
    /// SND.UNA: the oldest position not acknowledged.
    pub(super) una: StreamOffset,
    /// SND.NXT: the next position to be sent.
    pub(super) nxt: StreamOffset,
}

impl SendSequence {
    /// Positions sent and not cumulatively acknowledged.
    #[inline]
    pub(super) fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }
}

impl Default for SendSequence {
    /// The SYN is to be acknowledged.
    fn default() -> Self {
        Self {
            una: StreamOffset::SYN,
            nxt: StreamOffset::FIRST_BYTE,
        }
    }
}
