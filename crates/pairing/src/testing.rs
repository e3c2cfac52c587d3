//! What the tests share.

use tack::secure::Identity;

/// The identity with this seed in every byte.
pub(crate) fn identity(seed: u8) -> Identity {
    // PKCS#8 (RFC 8410 §10.3).
    let mut pkcs8 = vec![
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    pkcs8.extend_from_slice(&[seed; 32]);
    Identity::from_pkcs8(&pkcs8).unwrap()
}
