//! Outgoing segments: a batch in the caller's buffer, and what the carrier must know about it.

use alloc::vec::Vec;

use tack_base::Instant;
use tack_wire::Ecn;

/// A caller's buffer that takes one or more equally sized segments, back to back.
///
/// UDP segmentation offload wants exactly this layout: every segment `segment_size` long, the last
/// one possibly shorter. `prefix` bytes stay free (zeroed) in front of each segment for a carrier
/// that adds a header of its own, such as IP.
#[derive(Debug)]
pub struct Batch<'a> {
    pub(crate) buf: &'a mut Vec<u8>,
    pub(crate) prefix: usize,
    pub(crate) max_segments: usize,
}

impl<'a> Batch<'a> {
    /// A batch of at most `max_segments` segments (at least one) appended to `buf`, with `prefix`
    /// free bytes before each.
    pub fn new(buf: &'a mut Vec<u8>, prefix: usize, max_segments: usize) -> Self {
        Self {
            buf,
            prefix,
            max_segments: max_segments.max(1),
        }
    }
}

/// One batch that is ready to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Bytes appended to the buffer, prefixes included.
    pub len: usize,
    /// Length of every segment but the last one, prefix included.
    pub segment_size: usize,
    /// How many segments: 1 or more.
    pub segments: usize,
    /// ECN codepoint for all of them.
    pub ecn: Ecn,
    /// Not to leave before this instant. A carrier that cannot hold a packet back may send up to
    /// one quantum early (see [`crate::config::Carrier`]).
    pub departure: Instant,
}
