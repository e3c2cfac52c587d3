//! What passes from one step of sending to the next.

use core::ops::Range;

use tack_base::StreamOffset;
use tack_wire::Ecn;

/// Why data leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    New,
    Retransmission,
}

/// One data segment to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    /// Positions, the FIN's included.
    pub(super) range: Range<StreamOffset>,
    /// It is a tail loss probe or follows a timeout: windows of ours do not hold it back.
    pub(super) forced: bool,
    /// It probes for a larger segment size, this one.
    pub(super) probes: Option<u16>,
}

/// What was appended to a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::connection) struct Filled {
    /// Bytes of each segment but the last, prefix included.
    pub(super) segment_size: usize,
    pub(super) segments: usize,
    pub(super) ecn: Ecn,
}

impl Filled {
    /// One segment of `len` bytes.
    pub(in crate::connection) fn one(len: usize, ecn: Ecn) -> Self {
        Self {
            segment_size: len,
            segments: 1,
            ecn,
        }
    }
}
