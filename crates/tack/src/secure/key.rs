//! Public keys, and the text that people compare and type.

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE32_NOPAD, BASE32_NOPAD_NOCASE};

/// What stands before the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410 §4).
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// Bytes of a key.
const KEY: usize = 32;
/// Bytes of the check sum in the text of a key. Together they are whole base32 characters.
const CHECK: usize = 3;
/// Characters of the text of a key.
const TEXT: usize = (KEY + CHECK) * 8 / 5;

/// The public half of an [`Identity`](super::Identity): an Ed25519 key (RFC 8032).
///
/// Its text is 56 characters of base32 (RFC 4648 §6) in lower case, of which the last few are a
/// check sum, so that a mistyped key is refused rather than not found. Upper case and spaces around
/// it are read, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY]);

/// A text that is not a valid public key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPublicKey {
    /// Too many characters, or too few.
    #[error("expected a public key of 56 characters, got {0}")]
    Length(
        /// Characters given.
        usize,
    ),
    /// A character outside base32.
    #[error("a public key consists of the letters a to z and the digits 2 to 7; got {0:?}")]
    Character(
        /// The first such character.
        char,
    ),
    /// The check sum does not match.
    #[error("the public key is mistyped: its check sum does not match")]
    CheckSum,
}

impl PublicKey {
    /// The 32 bytes of the key (RFC 8032 §5.1.2).
    pub fn as_bytes(&self) -> &[u8; KEY] {
        &self.0
    }

    /// The key in a SubjectPublicKeyInfo, as raw public keys travel (RFC 7250 §3).
    pub(super) fn to_spki(self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.0].concat()
    }

    /// The key in a SubjectPublicKeyInfo; `None` for anything else than an Ed25519 key.
    pub(super) fn from_spki(spki: &[u8]) -> Option<Self> {
        let key = spki.strip_prefix(&SPKI_PREFIX)?;
        Some(Self(key.try_into().ok()?))
    }

    fn check_sum(&self) -> [u8; CHECK] {
        let [_, check @ ..] = crc32fast::hash(&self.0).to_be_bytes();
        check
    }
}

impl From<[u8; KEY]> for PublicKey {
    fn from(bytes: [u8; KEY]) -> Self {
        Self(bytes)
    }
}

impl From<PublicKey> for [u8; KEY] {
    fn from(key: PublicKey) -> Self {
        key.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; KEY + CHECK];
        bytes[..KEY].copy_from_slice(&self.0);
        bytes[KEY..].copy_from_slice(&self.check_sum());
        f.pad(&BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = InvalidPublicKey;

    fn from_str(text: &str) -> Result<Self, InvalidPublicKey> {
        let text = text.trim();
        let is_base32 = |c: char| c.is_ascii_alphabetic() || ('2'..='7').contains(&c);
        if let Some(wrong) = text.chars().find(|c| !is_base32(*c)) {
            return Err(InvalidPublicKey::Character(wrong));
        }
        if text.len() != TEXT {
            return Err(InvalidPublicKey::Length(text.len()));
        }
        let bytes = BASE32_NOPAD_NOCASE
            .decode(text.as_bytes())
            .map_err(|_| InvalidPublicKey::CheckSum)?;
        let (key, check) = bytes
            .split_first_chunk::<KEY>()
            .ok_or(InvalidPublicKey::Length(text.len()))?;
        let key = Self(*key);
        if check == key.check_sum() {
            Ok(key)
        } else {
            Err(InvalidPublicKey::CheckSum)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_text() {
        let key = PublicKey(std::array::from_fn(|at| at as u8 * 7));
        let text = key.to_string();
        assert_eq!(text.len(), TEXT);
        assert_eq!(text.parse(), Ok(key));
        assert_eq!(format!(" {} ", text.to_uppercase()).parse(), Ok(key));
        assert_eq!(format!("{key:?}"), format!("PublicKey({text})"));
        assert_eq!(PublicKey::from_spki(&key.to_spki()), Some(key));
    }

    #[test]
    fn a_wrong_text_is_refused_with_the_reason() {
        let text = PublicKey([9; KEY]).to_string();
        let parse = str::parse::<PublicKey>;
        assert_eq!(parse(&text[1..]), Err(InvalidPublicKey::Length(55)));
        assert_eq!(parse("not-a-key"), Err(InvalidPublicKey::Character('-')));
        // Each single character matters.
        for at in 0..TEXT {
            let other = if text.as_bytes()[at] == b'a' {
                "b"
            } else {
                "a"
            };
            let wrong = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            assert_eq!(parse(&wrong), Err(InvalidPublicKey::CheckSum), "{wrong}");
        }
        // Another algorithm, and a byte too many.
        let mut spki = PublicKey([9; KEY]).to_spki();
        spki.push(0);
        assert_eq!(PublicKey::from_spki(&spki), None);
        spki.pop();
        spki[8] ^= 1;
        assert_eq!(PublicKey::from_spki(&spki), None);
    }
}
