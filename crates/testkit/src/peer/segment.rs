//! Segments that left, compared with what was expected, and segments to inject.

use std::time::Duration;

use tack_wire::{Ecn, Header};

use crate::script::SegmentSpec;
use crate::trace::Origins;

/// Port of the connection under test.
pub(super) const LOCAL_PORT: u16 = 1000;
/// Port of the peer.
pub(super) const REMOTE_PORT: u16 = 2000;

/// A segment that left.
#[derive(Clone, PartialEq, Debug)]
pub struct Output {
    /// When, since the beginning.
    pub at: Duration,
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub payload: Vec<u8>,
    /// ECN codepoint of its packet.
    pub ecn: Ecn,
}

/// Where a segment is not as a line has it, one line each; empty when it is.
pub(super) fn difference(
    output: &Output,
    spec: &SegmentSpec,
    at: Duration,
    origins: Origins,
    shift: u8,
) -> String {
    let mut text = String::new();
    let header = &output.header;
    let (ports, expected) = (
        (header.src_port, header.dst_port),
        (LOCAL_PORT, REMOTE_PORT),
    );
    if output.at != at {
        text += &format!("    time: {:?}, expected {at:?}\n", output.at);
    }
    if ports != expected {
        text += &format!("    ports: {ports:?}, expected {expected:?}\n");
    }
    text + &spec.difference(header, output.payload.len(), output.ecn, origins, shift)
}

/// The bytes of a segment; `unknown` is put in front of the options as it is, padded to words.
pub(super) fn encode(header: &Header, unknown: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; header.encoded_len()];
    header.emit(&mut bytes);
    let mut unknown = unknown.to_vec();
    unknown.resize(unknown.len().next_multiple_of(4), 1);
    bytes.splice(20..20, unknown);
    assert!(bytes.len() <= 60, "40 bytes of options at most");
    bytes[12] = ((bytes.len() / 4) as u8) << 4 | (bytes[12] & 0x0f);
    bytes.extend_from_slice(payload);
    bytes
}
