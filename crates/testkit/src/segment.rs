//! Segments as bytes.

use tack_wire::Header;

/// The segment as bytes.
pub(crate) fn encode(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; header.encoded_len()];
    header.emit(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}
