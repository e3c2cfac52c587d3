//! What is proven inside the encrypted stream, bound to it by its exporter.
//!
//! The exporter of TLS 1.3 (RFC 8446 §7.5, RFC 9266) covers the handshake up to the server's
//! Finished, and not the key of the client. So every proof names both keys.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use spake2::{Ed25519Group, Password, Spake2};
use zeroize::Zeroizing;

use super::Channel;
use crate::code::Code;
use crate::secret::Secret;
use tack::secure::{Identity, PublicKey};

/// Which side of the connection someone is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// The side that connects: TLS calls it the client.
    Connecting,
    /// The side that waits.
    Waiting,
}

impl Role {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Connecting => b"connecting",
            Self::Waiting => b"waiting",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::Connecting => Self::Waiting,
            Self::Waiting => Self::Connecting,
        }
    }
}

/// The stream as both sides see it: exporter, then the connecting side's key, then the waiting
/// side's. `own` is our role.
fn transcript(channel: &Channel, own: Role) -> [u8; 96] {
    let (connecting, waiting) = match own {
        Role::Connecting => (&channel.own_key, &channel.peer_key),
        Role::Waiting => (&channel.peer_key, &channel.own_key),
    };
    let mut bytes = [0; 96];
    bytes[..32].copy_from_slice(&channel.exporter);
    bytes[32..64].copy_from_slice(connecting.as_bytes());
    bytes[64..].copy_from_slice(waiting.as_bytes());
    bytes
}

/// HMAC-SHA-256 over a label of its own, the role of who proves, and the stream.
fn mac(key: &[u8], label: &[u8], prover: Role, channel: &Channel, own: Role) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("takes any length");
    mac.update(label);
    mac.update(&[0]);
    mac.update(prover.name());
    mac.update(&[0]);
    mac.update(&transcript(channel, own));
    mac
}

const TICKET: &[u8] = b"tack ticket proof 1";
const CONFIRM: &[u8] = b"tack code confirmation 1";

/// The connecting side's proof of a ticket.
pub(super) fn ticket(secret: &Secret, channel: &Channel) -> [u8; 32] {
    let role = Role::Connecting;
    mac(secret.as_bytes(), TICKET, role, channel, role)
        .finalize()
        .into_bytes()
        .into()
}

/// True when the proof is right; takes the same time for every wrong one.
pub(super) fn ticket_is_right(secret: &Secret, channel: &Channel, proof: &[u8; 32]) -> bool {
    mac(
        secret.as_bytes(),
        TICKET,
        Role::Connecting,
        channel,
        Role::Waiting,
    )
    .verify_slice(proof)
    .is_ok()
}

/// One side of SPAKE2 under way.
pub(super) struct Exchange {
    state: Spake2<Ed25519Group>,
    own: Role,
}

/// The key that both sides share if they had the same code.
pub(super) struct SharedKey {
    key: Zeroizing<Vec<u8>>,
    own: Role,
}

impl Exchange {
    /// Begins, and returns the message for the other side.
    pub(super) fn begin(code: &Code, channel: &Channel, own: Role) -> (Self, Vec<u8>) {
        let text = code.text();
        let password = Password::new(text.as_bytes());
        let identity = |role: Role| {
            spake2::Identity::new(
                &[b"tack code 1 ", role.name(), &transcript(channel, own)].concat(),
            )
        };
        let (a, b) = (identity(Role::Connecting), identity(Role::Waiting));
        let (state, message) = match own {
            Role::Connecting => Spake2::start_a(&password, &a, &b),
            Role::Waiting => Spake2::start_b(&password, &a, &b),
        };
        (Self { state, own }, message)
    }

    /// The key; `None` when the other side's message is not a point of the curve.
    pub(super) fn finish(self, message: &[u8]) -> Option<SharedKey> {
        let key = Zeroizing::new(self.state.finish(message).ok()?);
        Some(SharedKey { key, own: self.own })
    }
}

impl SharedKey {
    /// Our proof that we have it.
    pub(super) fn confirmation(&self, channel: &Channel) -> [u8; 32] {
        mac(&self.key, CONFIRM, self.own, channel, self.own)
            .finalize()
            .into_bytes()
            .into()
    }

    /// True when the other side has it.
    pub(super) fn is_confirmed(&self, channel: &Channel, confirmation: &[u8; 32]) -> bool {
        mac(&self.key, CONFIRM, self.own.other(), channel, self.own)
            .verify_slice(confirmation)
            .is_ok()
    }
}

/// What a signature over a stream means.
const PURPOSE: &str = "tack meeting identity 1";

fn identity_message(channel: &Channel, own: Role, prover: Role) -> Vec<u8> {
    [prover.name(), b"\0", &transcript(channel, own)].concat()
}

/// Our signature over the stream with our long-term key.
pub(super) fn sign(identity: &Identity, channel: &Channel, own: Role) -> [u8; 64] {
    identity.sign(PURPOSE, &identity_message(channel, own, own))
}

/// True when the other side of this stream holds `key`.
pub(super) fn identity_is_right(
    key: &PublicKey,
    signature: &[u8; 64],
    channel: &Channel,
    own: Role,
) -> bool {
    key.verifies(
        PURPOSE,
        &identity_message(channel, own, own.other()),
        signature,
    )
}
