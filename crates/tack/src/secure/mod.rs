//! Encryption: TLS 1.3 (RFC 8446) above a [`Stream`](crate::Stream), with raw public keys (RFC
//! 7250) on both sides.
//!
//! There are no certificates, no names and no dates: a peer is its Ed25519 key, and each side
//! proves to own one. Keys are agreed by X25519MLKEM768, so that what is recorded today cannot be
//! read with a quantum computer later; records are encrypted with AES-128-GCM, or with
//! ChaCha20-Poly1305 where one side's processor has no instructions for AES. Sessions are
//! not resumed, and nothing is sent before the handshake is complete.
//!
//! TLS protects what the streams carry. The headers of the transport below stay readable, as with
//! every TLS over TCP: somebody on the path can see when and how much is sent, and can cut a
//! connection off, but not read or change what it carries.
//!
//! Clear text and TLS are never negotiated. Each side recognises from the peer's first byte if it
//! is of the other kind, and fails with [`SecureError::PeerIsNotEncrypted`]; a service in clear
//! text recognises TLS by [`is_tls`].

mod cipher;
mod config;
mod connect;
mod error;
mod exporter;
mod handshake;
mod handshake_slots;
mod identity;
mod key;
mod limits;
mod listener;
mod parting;
mod provider;
mod records;
mod session;
mod split;
mod stream;
#[cfg(test)]
mod tests;
mod traffic;
mod verify;

pub use connect::SecureConnect;
pub use error::{ExportError, SecureError};
pub use handshake::is_tls;
pub use identity::{Identity, IdentityError};
pub use key::{InvalidPublicKey, PublicKey};
pub use limits::HandshakeLimits;
pub use listener::{Admission, HandshakeStats, SecureListenOptions, SecureListener};
pub use split::{SecureReadHalf, SecureReuniteError, SecureWriteHalf};
pub use stream::SecureStream;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use traffic::trial::records as trial_of_records;
