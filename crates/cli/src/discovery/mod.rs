//! Programs that wait on the same network: multicast DNS (RFC 6762, RFC 6763).

mod announce;
mod find;
mod local;

pub(crate) use announce::Announcement;
use data_encoding::HEXLOWER;
pub(crate) use find::Finder;
pub(crate) use local::reachable;
use tack_pairing::PublicKey;

/// The type of the service.
const SERVICE: &str = "_tack._udp.local.";
/// The key of the TXT record with the number of the code, which is not secret.
const NUMBER: &str = "n";
/// The key of the TXT record with the tag of a public key.
const TAG: &str = "k";

/// What a waiting program is looked for by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// The number of its code.
    Number(u16),
    /// Its public key, for peers that have met it. Others on the network do not learn the key, and
    /// do not recognise it the next time.
    Key(PublicKey),
}

/// Bytes of a nonce, and of the tag of a key with it.
const NONCE: usize = 8;
const TAG_LEN: usize = 16;

fn tag(key: &PublicKey, nonce: &[u8]) -> [u8; TAG_LEN] {
    let mut hasher = blake3::Hasher::new_derive_key("tack 2026 tag of a key in multicast DNS");
    hasher.update(key.as_bytes()).update(nonce);
    let mut tag = [0; TAG_LEN];
    hasher.finalize_xof().fill(&mut tag);
    tag
}

impl Mark {
    /// The property that announces it.
    fn property(&self) -> Result<(&'static str, String), String> {
        Ok(match self {
            Self::Number(number) => (NUMBER, number.to_string()),
            Self::Key(key) => {
                let mut nonce = [0; NONCE];
                getrandom::fill(&mut nonce).map_err(|error| error.to_string())?;
                let bytes = [&nonce[..], &tag(key, &nonce)].concat();
                (TAG, HEXLOWER.encode(&bytes))
            }
        })
    }

    /// Whether a program with these properties has it.
    fn is_in<'a>(&self, property: impl Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Self::Number(number) => {
                property(NUMBER).and_then(|found| found.parse().ok()) == Some(*number)
            }
            Self::Key(key) => {
                let found = property(TAG).and_then(|found| HEXLOWER.decode(found.as_bytes()).ok());
                found.is_some_and(|found| {
                    found.len() == NONCE + TAG_LEN && tag(key, &found[..NONCE]) == found[NONCE..]
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_recognised_by_those_who_know_it_and_looks_new_each_time() {
        let [ours, other] = [1, 2].map(|byte| Mark::Key(PublicKey::from([byte; 32])));
        let (name, first) = ours.property().unwrap();
        let (_, second) = ours.property().unwrap();
        assert_ne!(first, second);
        for text in [&first, &second] {
            let announced = |asked: &str| (asked == name).then_some(&**text);
            assert!(ours.is_in(announced));
            assert!(!other.is_in(announced) && !Mark::Number(7).is_in(announced));
        }
        for wrong in ["", "00", &first[..first.len() - 2], &first.to_uppercase()] {
            assert!(!ours.is_in(|_| Some(wrong)), "{wrong}");
        }
    }
}
