//! Without SACK: duplicate acknowledgements (RFC 5681 §3.2, RFC 6582).
//!
//! Each duplicate says that one segment left the network, not which. Three say that the first one
//! is lost. While they last, each takes one segment off what counts as in flight.

/// Duplicate acknowledgements that make the first segment lost.
const DUP_THRESH: u64 = 3;

/// Counts duplicate acknowledgements of a connection without SACK.
#[derive(Debug, Default)]
pub(crate) struct DupAcks {
    count: u64,
}

impl DupAcks {
    /// A duplicate arrived. True when it makes the first unacknowledged segment lost.
    pub(crate) fn on_duplicate(&mut self) -> bool {
        self.count += 1;
        self.count == DUP_THRESH
    }

    /// The cumulative acknowledgement advanced by `acked` bytes. Within recovery part of the
    /// duplicates stood for those bytes (RFC 6582 §3.2 step 3); outside it counting starts over.
    pub(crate) fn on_advance(&mut self, acked: u64, mss: u64, in_recovery: bool) {
        if in_recovery {
            let segments = acked.div_ceil(mss.max(1));
            self.count = self.count.saturating_sub(segments.saturating_sub(1));
        } else {
            self.count = 0;
        }
    }

    /// Counting starts over.
    pub(crate) fn reset(&mut self) {
        self.count = 0;
    }

    /// Bytes that duplicates say have left the network, of `in_flight` at most.
    #[inline]
    pub(crate) fn departed(&self, mss: u64, in_flight: u64) -> u64 {
        (self.count * mss).min(in_flight)
    }
}
