//! Raw public keys (RFC 7250) as the peer shows them: that it owns its key is proven here; whether
//! the key is wanted is decided by whoever connects or listens.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::verify_tls13_signature_with_raw_key;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    SignatureScheme,
};

use super::error::SecureError;
use super::key::PublicKey;
use super::provider::PROVIDER;

/// Accepts the pinned key, or those that are admitted, and notes which it was.
pub(super) struct RawKeys {
    wanted: Wanted,
    shown: Mutex<Option<PublicKey>>,
    /// The key was proven, and not admitted.
    refused: AtomicBool,
}

/// Says of a key that its owner has proven whether it is admitted.
pub(super) type Authorise = Box<dyn Fn(&PublicKey) -> bool + Send + Sync>;

/// Whom this side wants to speak to.
pub(super) enum Wanted {
    /// Whoever owns this key.
    Owner(PublicKey),
    /// Whoever owns a key that is admitted.
    Admitted(Authorise),
    /// Whoever owns a key.
    Anybody,
}

impl fmt::Debug for RawKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawKeys")
            .field("shown", &self.shown())
            .finish_non_exhaustive()
    }
}

impl RawKeys {
    pub(super) fn new(wanted: Wanted) -> Arc<Self> {
        Arc::new(Self {
            wanted,
            shown: Mutex::default(),
            refused: AtomicBool::new(false),
        })
    }

    /// What rustls' refusal of this handshake means.
    pub(super) fn explain(&self, error: Error) -> SecureError {
        let presented = self.shown();
        match (&self.wanted, presented) {
            (_, Some(key)) if self.refused.load(Ordering::Relaxed) => SecureError::NotAdmitted(key),
            (Wanted::Owner(expected), _) => {
                SecureError::from_tls(error, Some(*expected), presented)
            }
            _ => SecureError::from_tls(error, None, presented),
        }
    }

    /// The key that the peer showed, whether or not it could prove that it owns it.
    fn shown(&self) -> Option<PublicKey> {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judge(&self, spki: &[u8]) -> Result<(), Error> {
        let key = PublicKey::from_spki(spki).ok_or(CertificateError::BadEncoding)?;
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        match self.wanted {
            Wanted::Owner(expected) if expected != key => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(()),
        }
    }

    /// Asks the authoriser of a key that was proven. Not earlier: the answer whether a key is
    /// admitted goes to its owner only.
    fn admit(&self) -> Result<(), Error> {
        let (Wanted::Admitted(authorise), Some(key)) = (&self.wanted, self.shown()) else {
            return Ok(());
        };
        if authorise(&key) {
            return Ok(());
        }
        self.refused.store(true, Ordering::Relaxed);
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

fn verify(
    message: &[u8],
    key: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    verify_tls13_signature_with_raw_key(
        message,
        &SubjectPublicKeyInfoDer::from(key.as_ref()),
        signature,
        &PROVIDER.signature_verification_algorithms,
    )
}

fn no_tls12() -> Error {
    PeerIncompatible::Tls12NotOfferedOrEnabled.into()
}

impl ServerCertVerifier for RawKeys {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.judge(key).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for RawKeys {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.judge(key).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let proven = verify(message, key, signature)?;
        self.admit()?;
        Ok(proven)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
