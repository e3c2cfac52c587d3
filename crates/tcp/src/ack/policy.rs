//! The interface between a policy and the stack: what it sees, what it decides, what it promises.

use core::fmt;
use core::time::Duration;

use tack_base::Instant;
use tack_base::range_set::RangeSet;
use tack_wire::TackOption;
use tack_wire::tack::{DataStamp, Sync};

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
    /// When it arrived.
    pub(crate) arrived: Instant,
    /// Stream position of its first byte.
    pub(crate) start: u64,
    /// Payload bytes.
    pub(crate) len: u64,
    /// Where it fell.
    pub(crate) place: Place,
    /// The peer pushed: nothing follows for the moment.
    pub(crate) push: bool,
    /// The FIN came with it.
    pub(crate) fin: bool,
    /// Everything below this stream position is here.
    pub(crate) received_to: u64,
    /// Bytes received in order and not acknowledged yet, this segment included.
    pub(crate) unacknowledged: u64,
    /// Payload of the peer's full-sized segments, as observed.
    pub(crate) peer_mss: u64,
    /// Bytes that the peer may still send beyond the newest received.
    pub(crate) window_left: u64,
    /// Receive buffer, bytes.
    pub(crate) window: u64,
    /// The congestion-experienced state changed with it (RFC 3168).
    pub(crate) ce_changed: bool,
    /// Number and departure, where the peer stamps them.
    pub(crate) stamp: Option<DataStamp>,
}

/// Why an acknowledgement leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) enum AckReason {
    /// The policy's threshold was reached.
    Threshold,
    /// The policy's timer ran out.
    Timer,
    /// Out-of-order, duplicate or gap-filling data; a loss.
    Loss,
    /// The receive window changed in a way that the peer must know.
    Window,
    /// Handshake, FIN, keep-alive answer, challenge, congestion mark.
    Event,
    /// The frequency of acknowledgements halved or doubled.
    Frequency,
}

impl AckReason {
    /// Its name in traces.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Threshold => "threshold",
            Self::Timer => "timer",
            Self::Loss => "loss",
            Self::Window => "window",
            Self::Event => "event",
            Self::Frequency => "frequency",
        }
    }
}

/// What to do about an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckDecision {
    /// Nothing changes.
    Nothing,
    /// Ask again not later than this; an earlier deadline stands.
    Delayed(Instant),
    /// At once.
    Now(AckReason),
}

/// How a segment that acknowledges left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carried {
    /// On its own.
    Alone,
    /// On a segment with data.
    OnData,
    /// On a sync, which answers nothing.
    OnSync,
}

/// Who finds out that a segment is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LossDetectedBy {
    /// The sender, from acknowledgements.
    Sender,
    /// The receiver, from packet numbers; it reports them.
    Receiver,
}

/// What a policy promises to the rest of the stack, which reads this instead of asking who the policy is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AckContract {
    /// Longest time that an acknowledgement of in-order data is held back.
    pub(crate) max_delay: Duration,
    /// Most full-sized segments that one acknowledgement waits for.
    pub(crate) max_segments: u32,
    /// Full-sized segments for which it waits at least, however long ago the last one left, unless the last is pushed.
    pub(crate) least_segments: u16,
    /// Regular interval between acknowledgements of a steady stream; zero where segments are counted instead.
    pub(crate) interval: Duration,
    /// Time within which an acknowledgement of a steady stream arrives nine times of ten, as some get lost. Not shorter
    /// than `interval`.
    pub(crate) gap: Duration,
    /// What the retransmission timeout must allow for beyond RFC 6298, because acknowledgements may merely be late.
    pub(crate) timeout_allowance: Duration,
    /// Who detects loss.
    pub(crate) loss_detected_by: LossDetectedBy,
}

impl AckContract {
    /// What a peer of unknown policy is held to: RFC 9293 §3.8.6.3, with the 200 ms that RFC 8985 §7.2 reckons with.
    pub(crate) const LEGACY: Self = Self {
        max_delay: Duration::from_millis(200),
        max_segments: 2,
        least_segments: 1,
        interval: Duration::ZERO,
        gap: Duration::ZERO,
        timeout_allowance: Duration::ZERO,
        loss_detected_by: LossDetectedBy::Sender,
    };
}

/// What a report is made from.
#[derive(Debug)]
pub(crate) struct ReportContext<'a> {
    /// When it leaves.
    pub(crate) now: Instant,
    /// Why.
    pub(crate) reason: AckReason,
    /// Everything below this stream position is here.
    pub(crate) received_to: u64,
    /// What is here above it.
    pub(crate) ahead: &'a RangeSet,
}

/// Decides when to acknowledge, and what an acknowledgement says beyond the cumulative number.
pub(crate) trait AckPolicy: fmt::Debug + Send {
    /// What it promises.
    fn contract(&self) -> AckContract;

    /// A data segment arrived.
    fn on_data(&mut self, arrival: &DataArrival) -> AckDecision;

    /// The deadline of [`AckDecision::Delayed`] is reached.
    fn on_timer(&mut self, now: Instant) -> AckDecision {
        let _ = now;
        AckDecision::Now(AckReason::Timer)
    }

    /// A segment that acknowledges everything received in order left. Returns when to ask again.
    fn on_ack_sent(&mut self, now: Instant, carried: Carried) -> Option<Instant> {
        let _ = (now, carried);
        None
    }

    /// True when a due acknowledgement has to leave on its own, because data cannot carry what it says.
    fn leaves_alone(&self) -> bool {
        false
    }

    /// The report for an acknowledgement that leaves alone, and how many bytes of `lists` it filled; `None` where
    /// acknowledgements carry SACK blocks.
    fn report(
        &mut self,
        context: &ReportContext<'_>,
        lists: &mut [u8],
    ) -> Option<(TackOption, usize)> {
        let _ = (context, lists);
        None
    }

    /// The peer, as a sender of data, told what it measures.
    /// `None` when it is not newer than what it told before, or not expected at all.
    fn on_sync(&mut self, now: Instant, sync: &Sync) -> Option<AckDecision> {
        let _ = (now, sync);
        None
    }

    /// A segment with this stamp, which arrived at `arrived`, left so long ago that its sequence number may mean something else
    /// by now.
    fn is_outdated(&mut self, arrived: Instant, stamp: &DataStamp) -> bool {
        let _ = (arrived, stamp);
        false
    }

    /// Bytes of heap held besides itself, as far as a peer can make it grow.
    fn memory(&self) -> usize {
        0
    }

    /// The handshake measured a round trip.
    fn on_handshake(&mut self, round_trip: Duration) {
        let _ = round_trip;
    }
}
