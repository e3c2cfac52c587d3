//! A new key in place of an old one: the old key signs the new one, so that peers need not pair
//! again.

use tack::secure::{Identity, PublicKey};

/// Rotations that a side shows, the newest: a peer that missed more has to pair again.
pub const MAX_ROTATIONS: usize = 8;

/// What such a signature means.
const PURPOSE: &str = "tack rotation 1";

/// The statement of an old key that a new one takes its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// The key that signs.
    pub old: PublicKey,
    /// The key that takes its place.
    pub new: PublicKey,
    /// Ed25519 signature of the old key.
    pub signature: [u8; 64],
}

fn message(old: &PublicKey, new: &PublicKey) -> Vec<u8> {
    [*old.as_bytes(), *new.as_bytes()].concat()
}

impl Rotation {
    /// A rotation from `old` to `new`, signed by `old`.
    pub fn sign(old: &Identity, new: &PublicKey) -> Self {
        let public = old.public_key();
        Self {
            old: public,
            new: *new,
            signature: old.sign(PURPOSE, &message(&public, new)),
        }
    }

    /// True if the signature of the old key is valid.
    pub fn is_valid(&self) -> bool {
        self.old
            .verifies(PURPOSE, &message(&self.old, &self.new), &self.signature)
    }
}

/// True when `rotations` lead from `known` to `shown`, each signed by the key before it. At most
/// [`MAX_ROTATIONS`] are looked at.
pub fn leads(known: &PublicKey, shown: &PublicKey, rotations: &[Rotation]) -> bool {
    let mut at = *known;
    // Each step takes one rotation, so that rotations in a circle end.
    for _ in 0..rotations.len().min(MAX_ROTATIONS) {
        if at == *shown {
            break;
        }
        let next = rotations
            .iter()
            .take(MAX_ROTATIONS)
            .find(|rotation| rotation.old == at && rotation.is_valid());
        match next {
            Some(rotation) => at = rotation.new,
            None => return false,
        }
    }
    at == *shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(seed: u8) -> Identity {
        crate::testing::identity(seed)
    }

    #[test]
    fn a_chain_of_rotations_leads_from_the_first_key_to_the_last() {
        let (a, b, c) = (secret(1), secret(2), secret(3));
        let chain = [
            Rotation::sign(&a, &b.public_key()),
            Rotation::sign(&b, &c.public_key()),
        ];
        assert!(leads(&a.public_key(), &c.public_key(), &chain));
        assert!(leads(&b.public_key(), &c.public_key(), &chain));
        assert!(leads(&c.public_key(), &c.public_key(), &[]));
        assert!(
            !leads(&c.public_key(), &a.public_key(), &chain),
            "not backwards"
        );
        assert!(!leads(&a.public_key(), &c.public_key(), &chain[..1]));
        assert!(!leads(&a.public_key(), &c.public_key(), &chain[1..]));
    }

    #[test]
    fn a_forged_rotation_leads_nowhere() {
        let (a, b, mallory) = (secret(1), secret(2), secret(66));
        let mut forged = Rotation::sign(&mallory, &mallory.public_key());
        forged.old = a.public_key();
        assert!(!leads(&a.public_key(), &mallory.public_key(), &[forged]));
        let mut turned = Rotation::sign(&a, &b.public_key());
        turned.new = mallory.public_key();
        assert!(!leads(&a.public_key(), &mallory.public_key(), &[turned]));
        // A forged one in front of the true one does not hide it.
        let chain = [forged, Rotation::sign(&a, &b.public_key())];
        assert!(leads(&a.public_key(), &b.public_key(), &chain));
    }

    #[test]
    fn rotations_in_a_circle_end() {
        let (a, b, c) = (secret(1), secret(2), secret(3));
        let circle = [
            Rotation::sign(&a, &b.public_key()),
            Rotation::sign(&b, &a.public_key()),
        ];
        assert!(!leads(&a.public_key(), &c.public_key(), &circle));
    }
}
