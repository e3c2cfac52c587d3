//! The interface between a policy and the stack: what it sees, what it decides, what it promises.

use core::fmt;
use core::time::Duration;

use tack_base::Instant;

/// Where an arriving data segment fell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// It continued the stream and nothing waits above a hole.
    InOrder,
    /// It continued the stream below data that waits: a hole shrank or closed (RFC 5681 §4.2).
    FilledGap,
    /// It lies above a hole.
    OutOfOrder,
    /// It brought nothing new.
    Duplicate,
}

/// A data segment arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataArrival {
    /// When it is processed.
    pub(crate) now: Instant,
    /// Where it fell.
    pub(crate) place: Place,
    /// The FIN came with it.
    pub(crate) fin: bool,
    /// Bytes received in order and not acknowledged yet, this segment included.
    pub(crate) unacknowledged: u64,
    /// Payload of the peer's full-sized segments, as observed.
    pub(crate) peer_mss: u64,
    /// The congestion-experienced state changed with it (RFC 3168).
    pub(crate) ce_changed: bool,
}

/// Why an acknowledgement leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) enum AckReason {
    /// The policy's threshold was reached.
    Threshold,
    /// The policy's timer ran out.
    Timer,
    /// Out-of-order, duplicate or gap-filling data.
    Loss,
    /// The receive window changed in a way that the peer must know.
    Window,
    /// Handshake, FIN, keep-alive answer, challenge, congestion mark.
    Event,
}

/// What to do about an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckDecision {
    /// Nothing changes.
    Nothing,
    /// Not later than this; an earlier deadline stands.
    Delayed(Instant),
    /// At once.
    Now(AckReason),
}

/// Who finds out that a segment is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LossDetectedBy {
    /// The sender, from acknowledgements.
    Sender,
}

/// What a policy promises to the rest of the stack, which reads this instead of asking who the policy is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AckContract {
    /// Longest time that an acknowledgement of in-order data is held back.
    pub(crate) max_delay: Duration,
    /// Most full-sized segments that one acknowledgement waits for.
    pub(crate) max_segments: u32,
    /// Who detects loss.
    pub(crate) loss_detected_by: LossDetectedBy,
}

impl AckContract {
    /// What a peer of unknown policy is held to: RFC 9293 §3.8.6.3, with the 200 ms that RFC 8985 §7.2 reckons with.
    pub(crate) const LEGACY: Self = Self {
        max_delay: Duration::from_millis(200),
        max_segments: 2,
        loss_detected_by: LossDetectedBy::Sender,
    };
}

/// Decides when to acknowledge.
pub(crate) trait AckPolicy: fmt::Debug + Send {
    /// What it promises.
    fn contract(&self) -> AckContract;

    /// A data segment arrived.
    fn on_data(&mut self, arrival: &DataArrival) -> AckDecision;

    /// An acknowledgement of everything received in order left (alone or on data).
    fn on_ack_sent(&mut self, now: Instant) {
        let _ = now;
    }
}
