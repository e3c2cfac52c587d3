//! Keying material that both sides of a connection can compute and nobody else (RFC 8446 §7.5, RFC
//! 9266).
//!
//! rustls computes it only while it owns the connection, and lets go of that after the handshake.
//! So the exporter's secret is kept, which rustls tells by the interface made for that (`KeyLog`),
//! and the two steps of RFC 8446 are done here with rustls' own HKDF. A test compares the result
//! with what rustls says.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use rustls::crypto::tls13::{HkdfExpander, OkmBlock};
use rustls::{KeyLog, Tls13CipherSuite};
use zeroize::Zeroizing;

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
    /// Nothing was asked for, or more than the key derivation yields.
    #[error("expected 1 to 8160 bytes of keying material, got {0}")]
    Length(
        /// Bytes asked for.
        usize,
    ),
}

/// Where a handshake leaves its `exporter_master_secret`, and nothing else.
#[derive(Default)]
pub(super) struct ExporterSecret(Mutex<Zeroizing<Vec<u8>>>);

impl ExporterSecret {
    pub(super) fn take(&self) -> Zeroizing<Vec<u8>> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for ExporterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExporterSecret")
    }
}

impl KeyLog for ExporterSecret {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        if self.will_log(label) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
                Zeroizing::new(secret.to_vec());
        }
    }

    fn will_log(&self, label: &str) -> bool {
        label == "EXPORTER_SECRET"
    }
}

/// TLS-Exporter of RFC 8446 §7.5 with `secret`, the `exporter_master_secret` of a connection with
/// `suite`.
pub(super) fn export(
    suite: &'static Tls13CipherSuite,
    secret: &[u8],
    label: &[u8],
    context: &[u8],
    out: &mut [u8],
) -> Result<(), ExportError> {
    if label.len() > 255 - PREFIX.len() {
        return Err(ExportError::Label(label.len()));
    }
    if out.is_empty() {
        return Err(ExportError::Length(0));
    }
    let hash = suite.common.hash_provider;
    let expander = |secret: &[u8]| {
        let block = OkmBlock::new(secret);
        suite.hkdf_provider.expander_for_okm(&block)
    };
    let mut derived = Zeroizing::new(vec![0; hash.output_len()]);
    let len = out.len();
    expand_label(
        &*expander(secret),
        label,
        hash.hash(&[]).as_ref(),
        &mut derived,
    )
    .and_then(|()| {
        expand_label(
            &*expander(&derived),
            b"exporter",
            hash.hash(context).as_ref(),
            out,
        )
    })
    .ok_or(ExportError::Length(len))
}

const PREFIX: &[u8] = b"tls13 ";

/// HKDF-Expand-Label of RFC 8446 §7.1; `None` when `out` is too long.
fn expand_label(
    expander: &dyn HkdfExpander,
    label: &[u8],
    context: &[u8],
    out: &mut [u8],
) -> Option<()> {
    let info = [
        &u16::try_from(out.len()).ok()?.to_be_bytes()[..],
        &[u8::try_from(PREFIX.len() + label.len()).ok()?],
        PREFIX,
        label,
        &[u8::try_from(context.len()).ok()?],
        context,
    ];
    expander.expand_slice(&info, out).ok()
}
