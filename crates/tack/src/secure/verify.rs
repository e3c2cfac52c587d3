//! Raw public keys (RFC 7250) as the peer shows them: that it owns its key is proven here; whether
//! the key is wanted is decided by whoever connects or listens.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::verify_tls13_signature_with_raw_key;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    SignatureScheme,
};

use super::key::PublicKey;
use super::provider::PROVIDER;

/// Accepts the pinned key, or any key of Ed25519, and notes which it was.
#[derive(Debug, Default)]
pub(super) struct RawKeys {
    expected: Option<PublicKey>,
    shown: Mutex<Option<PublicKey>>,
}

impl RawKeys {
    pub(super) fn new(expected: Option<PublicKey>) -> Arc<Self> {
        Arc::new(Self {
            expected,
            shown: Mutex::default(),
        })
    }

    /// The pinned key.
    pub(super) fn expected(&self) -> Option<PublicKey> {
        self.expected
    }

    /// The key that the peer showed, whether or not it could prove that it owns it.
    pub(super) fn shown(&self) -> Option<PublicKey> {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judge(&self, spki: &[u8]) -> Result<(), Error> {
        let key = PublicKey::from_spki(spki).ok_or(CertificateError::BadEncoding)?;
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        if self.expected.is_some_and(|expected| expected != key) {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(())
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
        verify(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
