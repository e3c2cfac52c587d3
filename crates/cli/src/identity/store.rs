//! The identity on disk.

use data_encoding::{BASE64, HEXLOWER};
use serde::{Deserialize, Serialize};
use tack_pairing::{Identity, MAX_ROTATIONS, PublicKey, Rotation};
use zeroize::{Zeroize, Zeroizing};

use crate::exit::Failure;
use crate::state::StateDir;

const FILE: &str = "identity";
const VERSION: u32 = 1;

/// This installation's identity, and how its key follows from earlier ones.
#[derive(Clone, Debug)]
pub(crate) struct OwnIdentity {
    pub(crate) identity: Identity,
    /// Rotations to the current key, the oldest first.
    pub(crate) rotations: Vec<Rotation>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    /// PKCS#8 (RFC 8410), base64.
    private_key: String,
    rotations: Vec<StoredRotation>,
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.private_key.zeroize();
    }
}

#[derive(Serialize, Deserialize)]
struct StoredRotation {
    old: String,
    new: String,
    signature: String,
}

impl OwnIdentity {
    /// The identity, made at first use; true when it was made now.
    pub(crate) fn load_or_make(state: &StateDir) -> Result<(Self, bool), Failure> {
        if let Some(own) = Self::load(state)? {
            return Ok((own, false));
        }
        // Two programs that start together must not make two.
        let _lock = state.lock()?;
        if let Some(own) = Self::load(state)? {
            return Ok((own, false));
        }
        let own = Self {
            identity: generate()?,
            rotations: Vec::new(),
        };
        own.store(state)?;
        Ok((own, true))
    }

    fn load(state: &StateDir) -> Result<Option<Self>, Failure> {
        let Some(bytes) = state.read(FILE)? else {
            return Ok(None);
        };
        parse(&bytes).map(Some).ok_or_else(|| {
            Failure::plain(format!(
                "{} is damaged, or of a newer version of tack; move it away to make a new identity",
                state.path().join(FILE).display()
            ))
        })
    }

    fn store(&self, state: &StateDir) -> Result<(), Failure> {
        let stored = Stored {
            version: VERSION,
            private_key: BASE64.encode(&self.identity.to_pkcs8()),
            rotations: self.rotations.iter().map(store_rotation).collect(),
        };
        // Growing would leave copies of the secret behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(1024 + 512 * MAX_ROTATIONS));
        serde_json::to_writer_pretty(&mut *bytes, &stored)
            .map_err(|error| Failure::failed("cannot write the identity", error))?;
        state.write(FILE, &bytes)
    }

    /// Puts a new key in place of the one on disk. Signed by the old one unless `forget`.
    pub(crate) fn rotate(state: &StateDir, forget: bool) -> Result<(PublicKey, Self), Failure> {
        Self::load_or_make(state)?;
        let _lock = state.lock()?;
        let old = Self::load(state)?
            .ok_or_else(|| Failure::plain("the identity was removed at this moment"))?;
        let identity = generate()?;
        let mut rotations = Vec::new();
        if !forget {
            rotations = old.rotations;
            rotations.push(Rotation::sign(&old.identity, &identity.public_key()));
            rotations.drain(..rotations.len().saturating_sub(MAX_ROTATIONS));
        }
        let new = Self {
            identity,
            rotations,
        };
        new.store(state)?;
        Ok((old.identity.public_key(), new))
    }
}

fn generate() -> Result<Identity, Failure> {
    Identity::generate().map_err(|error| Failure::failed("cannot make an identity", error))
}

fn store_rotation(rotation: &Rotation) -> StoredRotation {
    StoredRotation {
        old: rotation.old.to_string(),
        new: rotation.new.to_string(),
        signature: HEXLOWER.encode(&rotation.signature),
    }
}

fn parse(bytes: &[u8]) -> Option<OwnIdentity> {
    let stored: Stored = serde_json::from_slice(bytes).ok()?;
    if stored.version != VERSION {
        return None;
    }
    let private_key = Zeroizing::new(BASE64.decode(stored.private_key.as_bytes()).ok()?);
    let rotation = |stored: &StoredRotation| {
        Some(Rotation {
            old: stored.old.parse().ok()?,
            new: stored.new.parse().ok()?,
            signature: HEXLOWER
                .decode(stored.signature.as_bytes())
                .ok()?
                .try_into()
                .ok()?,
        })
    };
    Some(OwnIdentity {
        identity: Identity::from_pkcs8(&private_key).ok()?,
        rotations: stored
            .rotations
            .iter()
            .take(MAX_ROTATIONS)
            .map(rotation)
            .collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_made_once_and_survives() {
        let scratch = tempfile::tempdir().unwrap();
        let state = StateDir::at(scratch.path());
        let (first, made) = OwnIdentity::load_or_make(&state).unwrap();
        assert!(made);
        let (second, made) = OwnIdentity::load_or_make(&state).unwrap();
        assert!(!made);
        assert_eq!(first.identity.public_key(), second.identity.public_key());
        let printed = format!("{first:?}");
        let secret = BASE64.encode(&first.identity.to_pkcs8());
        assert!(!printed.contains(&secret[24..]), "{printed}");
    }

    #[test]
    fn the_new_key_follows_from_all_old_ones_unless_they_are_forgotten() {
        let scratch = tempfile::tempdir().unwrap();
        let state = StateDir::at(scratch.path());
        let (first, _) = OwnIdentity::load_or_make(&state).unwrap();
        for _ in 0..3 {
            OwnIdentity::rotate(&state, false).unwrap();
        }
        let (now, _) = OwnIdentity::load_or_make(&state).unwrap();
        let (old, new) = (first.identity.public_key(), now.identity.public_key());
        assert!(tack_pairing::leads(&old, &new, &now.rotations));
        let (_, forgotten) = OwnIdentity::rotate(&state, true).unwrap();
        let newest = forgotten.identity.public_key();
        assert!(!tack_pairing::leads(&new, &newest, &forgotten.rotations));
        for _ in 0..2 * MAX_ROTATIONS {
            OwnIdentity::rotate(&state, false).unwrap();
        }
        assert_eq!(
            OwnIdentity::load_or_make(&state).unwrap().0.rotations.len(),
            MAX_ROTATIONS
        );
    }

    #[test]
    fn a_damaged_identity_is_not_replaced() {
        let scratch = tempfile::tempdir().unwrap();
        let state = StateDir::at(scratch.path());
        for damaged in [
            "",
            "{}",
            "not json",
            "{\"version\":2,\"private_key\":\"\",\"rotations\":[]}",
        ] {
            state.write(FILE, damaged.as_bytes()).unwrap();
            let refused = OwnIdentity::load_or_make(&state).unwrap_err().to_string();
            assert!(refused.contains("damaged"), "{refused}");
            assert!(OwnIdentity::rotate(&state, false).is_err());
            assert_eq!(&state.read(FILE).unwrap().unwrap()[..], damaged.as_bytes());
        }
    }
}
