//! What can go wrong on the way to an encrypted connection and on it.

use std::io;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError, Error as TlsError, PeerIncompatible};

use super::key::PublicKey;
use crate::error::ConnectError;

/// Why an encrypted connection could not be opened, or why it ended.
///
/// As the inner error of an [`io::Error`] it also tells why reading or writing failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecureError {
    /// The transport connection below TLS could not be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Neither the endpoint nor the connection has an identity.
    #[error(
        "an encrypted connection needs an identity: none was given to the endpoint or the connection"
    )]
    NoIdentity,
    /// The peer sends clear text.
    #[error("the peer does not encrypt: it sends clear text where TLS is expected")]
    PeerIsNotEncrypted,
    /// The peer's key is not the expected one.
    #[error("the peer has another key than expected: {presented} instead of {expected}")]
    WrongKey {
        /// The key that was expected.
        expected: PublicKey,
        /// The key that the peer showed.
        presented: PublicKey,
    },
    /// This side's authoriser refused the peer's key.
    #[error("the peer's key {0} is not admitted here")]
    NotAdmitted(
        /// The peer's key.
        PublicKey,
    ),
    /// The peer refused this side's key.
    #[error("the peer does not admit this side's key")]
    RefusedByPeer,
    /// The two sides speak different protocols over TLS (ALPN, RFC 7301).
    #[error("the peer speaks another protocol")]
    WrongProtocol,
    /// The peer speaks TLS, but not version 1.3.
    #[error("the peer does not speak TLS 1.3")]
    NoTls13,
    /// The peer shows no Ed25519 key, or shows it as a certificate.
    #[error("the peer shows no raw Ed25519 key (RFC 7250): it is another program")]
    NoRawKey,
    /// The peer cannot prove that it owns the key it shows.
    #[error("the peer does not own the key that it shows")]
    BadSignature,
    /// The handshake took too long.
    #[error("the peer did not complete the TLS handshake within {0:?}")]
    TimedOut(
        /// The time limit of the handshake.
        Duration,
    ),
    /// More handshakes were in progress than this side allows; this one was the oldest of its
    /// group of addresses.
    #[error("too many handshakes are under way; this one was given up")]
    Crowded,
    /// The handshake of the peer exceeded the size limit.
    #[error("the peer's TLS handshake is too long")]
    HandshakeTooLong,
    /// The connection ended in the middle of the handshake.
    #[error("the peer ended the connection during the TLS handshake")]
    EndedEarly,
    /// The peer's stream ended without its farewell (`close_notify`): somebody may have cut it off.
    #[error(
        "the stream was cut off: the connection ended before the peer said that it was complete"
    )]
    Truncated,
    /// A record failed its authentication: it was changed on the path, or the peer is faulty.
    #[error("a record was changed on the way")]
    Corrupt,
    /// The peer violated the TLS protocol.
    #[error("the peer broke the rules of TLS: {0}")]
    Misbehaved(
        /// A description of the violation, for people.
        String,
    ),
    /// The peer ended the connection with an alert (RFC 8446 §6).
    #[error("the peer ended the connection with the TLS alert {0}")]
    Alert(
        /// The name of the alert.
        String,
    ),
    /// The transport connection below TLS failed.
    #[error(transparent)]
    Io(io::Error),
}

impl SecureError {
    /// What an alert of the peer means.
    pub(super) fn from_alert(alert: AlertDescription) -> Self {
        match alert {
            AlertDescription::AccessDenied
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown
            | AlertDescription::BadCertificate => Self::RefusedByPeer,
            AlertDescription::NoApplicationProtocol => Self::WrongProtocol,
            AlertDescription::ProtocolVersion => Self::NoTls13,
            AlertDescription::UnsupportedCertificate => Self::NoRawKey,
            AlertDescription::BadRecordMac => Self::Corrupt,
            other => Self::Alert(format!("{other:?}")),
        }
    }

    /// What rustls' refusal of a handshake means.
    pub(super) fn from_tls(
        error: TlsError,
        expected: Option<PublicKey>,
        presented: Option<PublicKey>,
    ) -> Self {
        match error {
            TlsError::AlertReceived(alert) => Self::from_alert(alert),
            TlsError::NoApplicationProtocol => Self::WrongProtocol,
            TlsError::InvalidCertificate(CertificateError::BadSignature) => Self::BadSignature,
            TlsError::InvalidCertificate(_) => match (expected, presented) {
                (Some(expected), Some(presented)) if expected != presented => Self::WrongKey {
                    expected,
                    presented,
                },
                _ => Self::NoRawKey,
            },
            TlsError::NoCertificatesPresented => Self::NoRawKey,
            TlsError::DecryptError => Self::Corrupt,
            TlsError::PeerIncompatible(incompatible) => match incompatible {
                PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled
                | PeerIncompatible::Tls13RequiredForQuic
                | PeerIncompatible::SupportedVersionsExtensionRequired
                | PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig => Self::NoTls13,
                PeerIncompatible::IncorrectCertificateTypeExtension
                | PeerIncompatible::UnsolicitedCertificateTypeExtension
                | PeerIncompatible::NoSignatureSchemesInCommon
                | PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon => Self::NoRawKey,
                other => Self::Misbehaved(format!("{other:?}")),
            },
            other => Self::Misbehaved(other.to_string()),
        }
    }
}

impl From<SecureError> for io::Error {
    fn from(error: SecureError) -> Self {
        let kind = match error {
            SecureError::Connect(error) => return error.into(),
            SecureError::Io(error) => return error,
            SecureError::NoIdentity => io::ErrorKind::InvalidInput,
            SecureError::WrongKey { .. }
            | SecureError::NotAdmitted(_)
            | SecureError::RefusedByPeer
            | SecureError::BadSignature => io::ErrorKind::PermissionDenied,
            SecureError::TimedOut(_) => io::ErrorKind::TimedOut,
            SecureError::Crowded => io::ErrorKind::ConnectionAborted,
            SecureError::EndedEarly | SecureError::Truncated => io::ErrorKind::UnexpectedEof,
            SecureError::Alert(_) => io::ErrorKind::ConnectionAborted,
            SecureError::PeerIsNotEncrypted
            | SecureError::WrongProtocol
            | SecureError::NoTls13
            | SecureError::NoRawKey
            | SecureError::HandshakeTooLong
            | SecureError::Corrupt
            | SecureError::Misbehaved(_) => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

/// Why no keying material can be exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The label is too long: its length travels in one byte, with six characters before it.
    #[error("expected a label of at most 249 bytes, got {0}")]
    Label(
        /// Bytes given.
        usize,
    ),
    /// The requested length is zero, or more than the key derivation yields.
    #[error("expected 1 to 8160 bytes of keying material, got {0}")]
    Length(
        /// Bytes asked for.
        usize,
    ),
}
