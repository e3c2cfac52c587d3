//! The record layer after the handshake (RFC 8446 §5): plaintext to records and back.
//!
//! rustls makes the ciphers, the nonces and the keys; here are the header of a record and the count
//! of records for each key. Each direction stands alone, so that two tasks can seal and open at the
//! same time.

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks,
    OutboundPlainMessage,
};
use rustls::{
    ConnectionTrafficSecrets, ContentType, Error as TlsError, ProtocolVersion, Tls13CipherSuite,
};

use super::error::SecureError;

/// Most plaintext of a record, bytes (RFC 8446 §5.1).
pub(super) const FRAGMENT: usize = 1 << 14;
/// Header of a record.
pub(super) const HEADER: usize = 5;
/// What a record of ours has besides its plaintext: header, content type, authentication tag.
pub(super) const OVERHEAD: usize = HEADER + 1 + 16;
/// Most bytes of a record after its header (RFC 8446 §5.2).
const LONGEST: usize = FRAGMENT + 256;

/// The body of a KeyUpdate that asks for none in return (RFC 8446 §4.6.3).
const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 0];
/// A `close_notify` (RFC 8446 §6.1).
pub(super) const CLOSE_NOTIFY: [u8; 2] = [1, 0];

/// Key and IV of one direction, and the number of its next record.
pub(super) type TrafficKeys = (u64, ConnectionTrafficSecrets);

fn split(keys: ConnectionTrafficSecrets) -> Result<(AeadKey, Iv), SecureError> {
    match keys {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => Ok((key, iv)),
        _ => Err(SecureError::Misbehaved("unknown cipher".into())),
    }
}

/// Makes records.
pub(super) struct Sealer {
    suite: &'static Tls13CipherSuite,
    cipher: Box<dyn MessageEncrypter>,
    next: u64,
    /// Most records with one key (RFC 8446 §5.5).
    limit: u64,
}

impl Sealer {
    pub(super) fn new(
        suite: &'static Tls13CipherSuite,
        (next, keys): TrafficKeys,
    ) -> Result<Self, SecureError> {
        let (key, iv) = split(keys)?;
        Ok(Self {
            suite,
            cipher: suite.aead_alg.encrypter(key, iv),
            next,
            limit: suite.common.confidentiality_limit,
        })
    }

    /// True when the key has done its share. One more record, the update, still fits.
    pub(super) fn is_worn(&self) -> bool {
        self.next.saturating_add(1) >= self.limit
    }

    /// The record of a KeyUpdate under the old key; what follows is under `keys`.
    pub(super) fn update(&mut self, keys: TrafficKeys) -> Result<Vec<u8>, SecureError> {
        let said = self.seal(ContentType::Handshake, OutboundChunks::Single(&KEY_UPDATE))?;
        let limit = self.limit;
        *self = Self::new(self.suite, keys)?;
        self.limit = limit;
        Ok(said)
    }

    /// One record with `payload`, at most [`FRAGMENT`] bytes.
    pub(super) fn seal(
        &mut self,
        kind: ContentType,
        payload: OutboundChunks<'_>,
    ) -> Result<Vec<u8>, SecureError> {
        let message = OutboundPlainMessage {
            typ: kind,
            version: ProtocolVersion::TLSv1_2,
            payload,
        };
        let record = self
            .cipher
            .encrypt(message, self.next)
            .map_err(|error| SecureError::Misbehaved(error.to_string()))?;
        self.next += 1;
        Ok(record.encode())
    }

    #[cfg(test)]
    pub(super) fn wear_after(&mut self, records: u64) {
        self.limit = records;
    }

    #[cfg(test)]
    pub(super) fn sealed(&self) -> u64 {
        self.next
    }
}

/// Reads records.
pub(super) struct Opener {
    suite: &'static Tls13CipherSuite,
    cipher: Box<dyn MessageDecrypter>,
    next: u64,
}

impl Opener {
    pub(super) fn new(
        suite: &'static Tls13CipherSuite,
        (next, keys): TrafficKeys,
    ) -> Result<Self, SecureError> {
        let (key, iv) = split(keys)?;
        Ok(Self {
            suite,
            cipher: suite.aead_alg.decrypter(key, iv),
            next,
        })
    }

    /// From here on records are under `keys`.
    pub(super) fn update(&mut self, keys: TrafficKeys) -> Result<(), SecureError> {
        *self = Self::new(self.suite, keys)?;
        Ok(())
    }

    /// Decrypts `body`, a record without its header, in place: its kind, and how many bytes from
    /// the front are plaintext.
    pub(super) fn open(&mut self, body: &mut [u8]) -> Result<(ContentType, usize), SecureError> {
        let message =
            InboundOpaqueMessage::new(ContentType::ApplicationData, ProtocolVersion::TLSv1_2, body);
        match self.cipher.decrypt(message, self.next) {
            Ok(plain) => {
                // 2^64 records take longer than any connection lives.
                self.next += 1;
                Ok((plain.typ, plain.payload.len()))
            }
            Err(TlsError::DecryptError) => Err(SecureError::Corrupt),
            Err(error) => Err(SecureError::Misbehaved(error.to_string())),
        }
    }
}

/// The length of the record at the front of `bytes`, header included; `None` while the header is
/// not complete.
pub(super) fn record_len(bytes: &[u8]) -> Result<Option<usize>, SecureError> {
    let Some(&[kind, _, _, high, low]) = bytes.first_chunk::<HEADER>() else {
        return Ok(None);
    };
    // RFC 8446 §5.2: after the handshake every record says that it has application data.
    if kind != u8::from(ContentType::ApplicationData) {
        return Err(SecureError::Misbehaved(format!(
            "a record of type {kind} in clear text"
        )));
    }
    let body = usize::from(u16::from_be_bytes([high, low]));
    if body > LONGEST {
        return Err(SecureError::Misbehaved(format!(
            "a record of {body} bytes, expected at most {LONGEST}"
        )));
    }
    Ok(Some(HEADER + body))
}
