//! Small context identifiers (RFC 5795 §5.1): an octet before the packet says which flow it belongs
//! to.

/// The first four bits of an Add-CID octet; with CID 0 it is padding.
const ADD_CID: u8 = 0b1110;

/// The context identifier of a packet, 0 to 15. It is 0 unless an Add-CID octet says otherwise. A
/// carrier that has identifiers in its own frames needs none.
pub fn small_cid(bytes: &[u8]) -> u8 {
    match bytes[padding(bytes)..].first() {
        Some(&first) if first >> 4 == ADD_CID => first & 0xf,
        _ => 0,
    }
}

/// The octet to send before a packet of that context; `None` for 0, which needs none, and above 15.
pub const fn add_cid(cid: u8) -> Option<u8> {
    match cid {
        1..=15 => Some(ADD_CID << 4 | cid),
        _ => None,
    }
}

/// How many octets of padding start the packet.
pub(crate) fn padding(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|&&byte| byte == ADD_CID << 4)
        .count()
}

/// How many octets there are before the packet itself: padding, and the identifier.
pub(crate) fn prefix(bytes: &[u8]) -> usize {
    padding(bytes) + usize::from(small_cid(bytes) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identifier_stands_behind_the_padding() {
        assert_eq!(small_cid(&[0xe0, 0xe0, 0xe5, 0xfd]), 5);
        assert_eq!(prefix(&[0xe0, 0xe0, 0xe5, 0xfd]), 3);
        assert_eq!(small_cid(&[0xfd, 0x06]), 0);
        assert_eq!(prefix(&[]), 0);
        assert_eq!(add_cid(5), Some(0xe5));
        assert_eq!(add_cid(0), None);
        assert_eq!(add_cid(16), None);
    }
}
