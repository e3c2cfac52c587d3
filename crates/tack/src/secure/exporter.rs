//! Keying material for what speaks over a connection (RFC 8446 §7.5).

use std::fmt;
use std::sync::{Mutex, PoisonError};

use rustls::crypto::tls13::OkmBlock;
use rustls::{KeyLog, Tls13CipherSuite};
use zeroize::Zeroizing;

use super::error::ExportError;

/// The label under which rustls tells the exporter's secret.
const EXPORTER_SECRET: &str = "EXPORTER_SECRET";
/// Longest label: its length travels in one byte, with six characters before it.
const MAX_LABEL: usize = 249;

/// Keeps the exporter's secret of one handshake, and none of the others that rustls could tell.
#[derive(Default)]
pub(super) struct SecretKeeper(Mutex<Option<Zeroizing<Vec<u8>>>>);

impl SecretKeeper {
    /// The secret, once the handshake is complete.
    pub(super) fn take(&self) -> Option<Zeroizing<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for SecretKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKeeper").finish_non_exhaustive()
    }
}

impl KeyLog for SecretKeeper {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        if label == EXPORTER_SECRET {
            let secret = Zeroizing::new(secret.to_vec());
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        label == EXPORTER_SECRET
    }
}

/// Derives keying material from a connection's secret.
pub(super) struct Exporter {
    suite: &'static Tls13CipherSuite,
    secret: OkmBlock,
}

impl Exporter {
    pub(super) fn new(suite: &'static Tls13CipherSuite, secret: &[u8]) -> Self {
        Self {
            suite,
            secret: OkmBlock::new(secret),
        }
    }

    /// Fills `out` with what `label` and `context` stand for.
    pub(super) fn export(
        &self,
        label: &[u8],
        context: &[u8],
        out: &mut [u8],
    ) -> Result<(), ExportError> {
        if label.len() > MAX_LABEL {
            return Err(ExportError::Label(label.len()));
        }
        let len = out.len();
        if len == 0 {
            return Err(ExportError::Length(len));
        }
        let hash = self.suite.common.hash_provider;
        let hkdf = self.suite.hkdf_provider;
        let nothing = hash.hash(b"");
        let derived = with_label(label, nothing.as_ref(), hash.output_len(), |info| {
            hkdf.expander_for_okm(&self.secret).expand_block(info)
        });
        let context = hash.hash(context);
        with_label(b"exporter", context.as_ref(), len, |info| {
            let expander = hkdf.expander_for_okm(&derived);
            expander.expand_slice(info, out)
        })
        .map_err(|_| ExportError::Length(len))
    }
}

/// Calls `expand` with what `HKDF-Expand-Label` gives to HKDF (RFC 8446 §7.1). A length above
/// 65,535 is refused by HKDF itself.
fn with_label<T>(
    label: &[u8],
    context: &[u8],
    len: usize,
    expand: impl FnOnce(&[&[u8]]) -> T,
) -> T {
    const PREFIX: &[u8] = b"tls13 ";
    expand(&[
        &(len as u16).to_be_bytes(),
        &[(PREFIX.len() + label.len()) as u8],
        PREFIX,
        label,
        &[context.len() as u8],
        context,
    ])
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;

    use super::super::config::tests::{meet, setup};
    use super::*;

    #[test]
    fn material_is_what_rustls_itself_exports() {
        let (config, keeper) = setup().client().unwrap();
        let name = ServerName::try_from("tack.invalid").unwrap();
        let mut client = rustls::ClientConnection::new(config, name).unwrap();
        let mut server = rustls::ServerConnection::new(setup().server().unwrap().0).unwrap();
        meet(&mut client, &mut server);
        let suite = client.negotiated_cipher_suite().unwrap().tls13().unwrap();
        let exporter = Exporter::new(suite, &keeper.take().unwrap());
        assert!(keeper.take().is_none());
        for (label, context, len) in [
            (&b"EXPORTER-Channel-Binding"[..], &b""[..], 32),
            (b"", b"context", 1),
            (&[b'l'; MAX_LABEL], &[7; 1000], 8160),
        ] {
            let (mut ours, mut theirs) = (vec![0; len], vec![0; len]);
            exporter.export(label, context, &mut ours).unwrap();
            server
                .export_keying_material(&mut theirs, label, Some(context))
                .unwrap();
            assert_eq!(ours, theirs);
        }
    }
}
