//! The state of the handshake: what left, and what both sides agreed on.

use tack_base::Instant;
use tack_wire::Flags;

/// The handshake's own state.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    /// How many have left.
    pub(super) transmissions: u32,
    /// How often the timer ran out: a peer that repeats its SYN makes us answer, but not give up
    /// sooner.
    pub(super) timeouts: u32,
    /// When the first one left, and the newest.
    pub(super) sent_at: Option<Instant>,
    pub(super) newest_at: Option<Instant>,
    /// Both sides permit SACK.
    pub(super) sack: bool,
    /// The connection was opened by the peer.
    pub(super) passive: bool,
    /// Flags of our SYN-ACK that answer what the peer's SYN asked of ECN.
    pub(super) ecn_answer: Flags,
    /// The peer's SYN offered window scaling with this shift.
    pub(super) peer_scale: Option<u8>,
    /// Both sides want the same acknowledgement mechanism, beyond what every TCP does.
    pub(super) mechanism_agreed: bool,
    /// The path to this peer is known to drop SYNs that offer a mechanism.
    pub(super) offer_withheld: bool,
}
