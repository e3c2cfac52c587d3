//! Who an installation is: an Ed25519 key pair.

use std::fmt;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::SigningKey;
use zeroize::Zeroizing;

use super::key::PublicKey;

/// What stands before the 32 secret bytes of an Ed25519 key in PKCS#8 (RFC 8410 §10.3).
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Bytes of the secret.
const SECRET: usize = 32;

/// The key pair by which peers know this side: an Ed25519 key (RFC 8032). Cheap to clone: the
/// secret is there once, and is overwritten when the last clone goes. `Debug` prints the public key
/// only.
#[derive(Clone)]
pub struct Identity(Arc<Inner>);

struct Inner {
    pkcs8: Zeroizing<Vec<u8>>,
    signing: Arc<dyn SigningKey>,
    public: PublicKey,
}

/// Why an identity cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The bytes are not a private key in PKCS#8 (RFC 5958), or not one of Ed25519.
    #[error("expected an Ed25519 private key in PKCS#8 form")]
    Malformed,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(#[source] getrandom::Error),
}

impl Identity {
    /// A new identity from the system's random generator.
    ///
    /// # Errors
    /// [`IdentityError::Random`] when the system has no random bytes.
    pub fn generate() -> Result<Self, IdentityError> {
        let mut pkcs8 = Zeroizing::new(vec![0; PKCS8_PREFIX.len() + SECRET]);
        let (prefix, secret) = pkcs8.split_at_mut(PKCS8_PREFIX.len());
        prefix.copy_from_slice(&PKCS8_PREFIX);
        getrandom::fill(secret).map_err(IdentityError::Random)?;
        Self::load(pkcs8)
    }

    /// The identity whose private key is `bytes`, in PKCS#8 (RFC 5958, RFC 8410 §7), with or
    /// without the public key.
    ///
    /// # Errors
    /// [`IdentityError::Malformed`] for anything else.
    pub fn from_pkcs8(bytes: &[u8]) -> Result<Self, IdentityError> {
        Self::load(Zeroizing::new(bytes.to_vec()))
    }

    fn load(pkcs8: Zeroizing<Vec<u8>>) -> Result<Self, IdentityError> {
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pkcs8.as_slice()));
        let signing = aws_lc_rs::sign::any_eddsa_type(match &der {
            PrivateKeyDer::Pkcs8(key) => key,
            _ => return Err(IdentityError::Malformed),
        })
        .map_err(|_| IdentityError::Malformed)?;
        let public = signing
            .public_key()
            .and_then(|spki| PublicKey::from_spki(&spki))
            .ok_or(IdentityError::Malformed)?;
        Ok(Self(Arc::new(Inner {
            pkcs8,
            signing,
            public,
        })))
    }

    /// The private key in PKCS#8, to be kept in a file that only its owner can read. Overwritten
    /// when dropped.
    pub fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        self.0.pkcs8.clone()
    }

    /// The public key, by which peers know this side.
    pub fn public_key(&self) -> PublicKey {
        self.0.public
    }

    /// Signs `message` for `purpose`, a text that names what such a signature means: one made for
    /// another purpose, or by TLS, does not pass for it.
    pub fn sign(&self, purpose: &str, message: &[u8]) -> [u8; 64] {
        let signer = self
            .0
            .signing
            .choose_scheme(&[SignatureScheme::ED25519])
            .expect("an Ed25519 key signs by Ed25519");
        let signature = signer
            .sign(&statement(purpose, message))
            .expect("Ed25519 signs any message");
        signature.try_into().expect("RFC 8032 §5.1.6: 64 bytes")
    }

    pub(super) fn signing(&self) -> Arc<dyn SigningKey> {
        Arc::clone(&self.0.signing)
    }
}

impl PublicKey {
    /// True when `signature` was made by the owner of this key with [`Identity::sign`], for the
    /// same purpose and message.
    pub fn verifies(&self, purpose: &str, message: &[u8], signature: &[u8]) -> bool {
        aws_lc_rs::default_provider()
            .signature_verification_algorithms
            .all
            .iter()
            .filter(|algorithm| algorithm.public_key_alg_id() == rustls::pki_types::alg_id::ED25519)
            .any(|algorithm| {
                let statement = statement(purpose, message);
                let verified = algorithm.verify_signature(self.as_bytes(), &statement, signature);
                verified.is_ok()
            })
    }
}

/// What is signed: begins otherwise than what TLS signs (RFC 8446 §4.4.3: 64 spaces), and says
/// where the purpose ends.
fn statement(purpose: &str, message: &[u8]) -> Vec<u8> {
    let len = (purpose.len() as u64).to_be_bytes();
    [b"tack signature\0", &len[..], purpose.as_bytes(), message].concat()
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({}, secret)", self.0.public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_survives_a_file() {
        let identity = Identity::generate().unwrap();
        let bytes = identity.to_pkcs8();
        let again = Identity::from_pkcs8(&bytes).unwrap();
        assert_eq!(again.public_key(), identity.public_key());
        assert_ne!(
            Identity::generate().unwrap().public_key(),
            identity.public_key()
        );
        for wrong in [&bytes[1..], &bytes[..40], b"", &[0; 48]] {
            assert!(Identity::from_pkcs8(wrong).is_err());
        }
    }

    #[test]
    fn a_key_file_of_openssl_is_read() {
        // RFC 8410 §10.3, whose public key is in §10.1.
        let secret = [
            0xd4, 0xee, 0x72, 0xdb, 0xf9, 0x13, 0x58, 0x4a, 0xd5, 0xb6, 0xd8, 0xf1, 0xf7, 0x69,
            0xf8, 0xad, 0x3a, 0xfe, 0x7c, 0x28, 0xcb, 0xf1, 0xd4, 0xfb, 0xe0, 0x97, 0xa8, 0x8f,
            0x44, 0x75, 0x58, 0x42,
        ];
        let identity = Identity::from_pkcs8(&[&PKCS8_PREFIX[..], &secret].concat()).unwrap();
        let public = [
            0x19, 0xbf, 0x44, 0x09, 0x69, 0x84, 0xcd, 0xfe, 0x85, 0x41, 0xba, 0xc1, 0x67, 0xdc,
            0x3b, 0x96, 0xc8, 0x50, 0x86, 0xaa, 0x30, 0xb6, 0xb6, 0xcb, 0x0c, 0x5c, 0x38, 0xad,
            0x70, 0x31, 0x66, 0xe1,
        ];
        assert_eq!(identity.public_key(), PublicKey::from(public));
    }

    #[test]
    fn nothing_prints_the_secret() {
        let identity = Identity::generate().unwrap();
        let printed = format!("{identity:?}");
        let expected = format!("Identity({}, secret)", identity.public_key());
        assert_eq!(printed, expected);
    }

    #[test]
    fn a_signature_holds_for_its_purpose_message_and_key() {
        let identity = Identity::generate().unwrap();
        let key = identity.public_key();
        let signature = identity.sign("successor", b"new key");
        assert!(key.verifies("successor", b"new key", &signature));
        assert!(!key.verifies("successo", b"rnew key", &signature));
        assert!(!key.verifies("successor", b"other key", &signature));
        assert!(!key.verifies("successor", b"new key", &signature[1..]));
        let other = Identity::generate().unwrap().public_key();
        assert!(!other.verifies("successor", b"new key", &signature));
    }
}
