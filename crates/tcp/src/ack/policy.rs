//! The interface between a policy and the stack: what it sees, what it decides, what it promises.

use core::fmt;
use core::time::Duration;

use tack_base::range_set::RangeSet;
use tack_base::{Instant, StreamOffset};
use tack_wire::TackOption;
use tack_wire::tack::{DataStamp, Sync};

/// Where an arriving data segment fell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SegmentOrder {
    /// It continued the stream and nothing waits above a hole.
    InOrder,
    /// It continued the stream below data that waits: a hole shrank or closed (RFC 5681 §4.2).
    FilledGap,
    /// It lies above a hole.
    OutOfOrder,
    /// It brought nothing new.
    Duplicate,
}

/// A segment with data, or with the FIN, arrived. Positions count the bytes of the stream from 1
/// (the SYN is 0).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DataArrival {
    /// When it is processed. Deadlines count from here.
    pub now: Instant,
    /// When it arrived; not after `now`.
    pub arrived: Instant,
    /// Stream position of its first byte.
    pub start: StreamOffset,
    /// Payload bytes: 0 (a FIN alone) to 65,535.
    pub len: u64,
    /// Where the segment fell in the stream.
    pub order: SegmentOrder,
    /// It has the PSH flag: the peer has nothing more to send for the moment.
    pub push: bool,
    /// It completed the stream: the FIN and everything before it are here.
    pub fin: bool,
    /// Everything below this stream position is here.
    pub received_to: StreamOffset,
    /// Bytes received in order and not acknowledged yet, this segment included.
    pub unacknowledged: u64,
    /// Payload of the peer's full-sized segments as observed, bytes: at least 1.
    pub peer_mss: u64,
    /// Bytes that the peer may still send beyond the newest received.
    pub window_left: u64,
    /// Receive buffer, bytes.
    pub window: u64,
    /// A congestion mark begins with it (RFC 3168): the peer should know at once.
    pub ce_changed: bool,
    /// An acknowledgement would let the peer send more, whether or not it acknowledges data: the
    /// application read some, or the receive buffer grew.
    pub(crate) window_moves: bool,
    /// Number and departure, where the peer stamps them.
    pub(crate) stamp: Option<DataStamp>,
}

impl DataArrival {
    /// A full-sized segment of `len` bytes that arrived in order at `now`, the first that is not
    /// acknowledged: what tests of a policy start from. Set the public fields that differ.
    pub const fn in_order(now: Instant, len: u64) -> Self {
        Self {
            now,
            arrived: now,
            start: StreamOffset::FIRST_BYTE,
            len,
            order: SegmentOrder::InOrder,
            push: false,
            fin: false,
            received_to: StreamOffset(1 + len),
            unacknowledged: len,
            peer_mss: if len == 0 { 1 } else { len },
            window_left: 1 << 20,
            window: 1 << 20,
            ce_changed: false,
            window_moves: false,
            stamp: None,
        }
    }
}

/// Why an acknowledgement leaves. Counters and traces show it; nothing depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum AckReason {
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

/// What a policy decides about an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckDecision {
    /// Nothing changes.
    Nothing,
    /// Ask again not later than this; an earlier deadline stands.
    Delayed(Instant),
    /// At once.
    Now(AckReason),
}

/// How a segment that acknowledges left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Carried {
    /// On its own.
    Alone,
    /// On a segment with data.
    OnData,
    /// On a sync: a pure acknowledgement that reports RTTmin and the loss rate of acknowledgements
    /// to the peer (TACK).
    /// A policy of a program never gets this value.
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

/// What a policy promises: how long, and how many segments, an acknowledgement of in-order data may
/// wait.
///
/// A connection holds a policy of the application to its contract, and to RFC 9293 §3.8.6.3
/// (MUST-40: less than 0.5 s). The peer is not told: a sender reckons with 200 ms (RFC 8985 §7.2),
/// and its retransmission timer with little more, so that a contract with longer waits costs
/// needless retransmissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckContract {
    /// Longest time that an acknowledgement of in-order data is held back.
    pub max_delay: Duration,
    /// Most full-sized segments that one acknowledgement waits for: 1 to `u32::MAX`, which leaves
    /// it to `max_delay`.
    pub max_segments: u32,
    /// Full-sized segments for which it waits at least, however long ago the last one left, unless
    /// the last is pushed.
    pub(crate) least_segments: u16,
    /// Regular interval between acknowledgements of a steady stream; zero where segments are
    /// counted instead.
    pub(crate) interval: Duration,
    /// Time within which an acknowledgement of a steady stream arrives nine times of ten, as some
    /// get lost. Not shorter than `interval`.
    pub(crate) gap: Duration,
    /// What the retransmission timeout must allow for beyond RFC 6298, because acknowledgements
    /// may merely be late.
    pub(crate) timeout_allowance: Duration,
    /// Who detects loss.
    pub(crate) loss_detected_by: LossDetectedBy,
}

impl AckContract {
    /// A promise to acknowledge at least every `max_segments` full-sized segments, and `max_delay`
    /// after the first that waits.
    pub const fn new(max_delay: Duration, max_segments: u32) -> Self {
        Self {
            max_delay,
            max_segments,
            ..Self::LEGACY
        }
    }

    /// What a peer of unknown policy is held to: RFC 9293 §3.8.6.3, with the 200 ms that RFC 8985
    /// §7.2 reckons with.
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
    /// When the report leaves.
    pub(crate) now: Instant,
    /// Why the report leaves.
    pub(crate) reason: AckReason,
    /// Everything below this stream position is here.
    pub(crate) received_to: StreamOffset,
    /// What is here above it.
    pub(crate) ahead: &'a RangeSet<StreamOffset>,
}

/// Decides when to acknowledge.
///
/// The policy sees the data that arrives at one side of a connection and says when an
/// acknowledgement leaves. What the acknowledgement says is not its business: the cumulative
/// number, the window and the SACK blocks are the stack's. Give a connection a policy of your own
/// by [`AckPolicyFactory`](super::AckPolicyFactory).
///
/// # Order of calls
/// One connection owns the policy and calls it from one thread at a time.
/// [`on_handshake`](Self::on_handshake) comes first, at most once, where the handshake measured a
/// round trip. Then [`on_data`](Self::on_data) for each segment that takes sequence space,
/// [`on_timer`](Self::on_timer) at the deadline that the policy asked for, and
/// [`on_ack_sent`](Self::on_ack_sent) whenever an acknowledgement left, for whatever reason. `now`
/// never goes back. [`contract`](Self::contract) and [`memory`](Self::memory) may be called at any
/// time.
///
/// # What a wrong policy breaks
/// A slow policy makes the peer slow: its window grows late, its timers run out, it sends again
/// what arrived. A hasty one costs packets. It cannot break more than that. The connection
/// acknowledges handshake, FIN, window updates, keep-alives and suspicious segments itself; it
/// acknowledges data when the contract says so even if the policy stays silent; it limits the
/// rate of answers to copies; and the bytes that the application reads do not depend on it. A
/// policy that panics takes its endpoint with it.
pub trait AckPolicy: fmt::Debug + Send {
    /// What it promises. May change while the connection lives.
    fn contract(&self) -> AckContract;

    /// A data segment arrived. An acknowledgement that is already due stays due, whatever is
    /// returned.
    fn on_data(&mut self, arrival: &DataArrival) -> AckDecision;

    /// The deadline of [`AckDecision::Delayed`], or of the contract, is reached.
    fn on_timer(&mut self, now: Instant) -> AckDecision {
        let _ = now;
        AckDecision::Now(AckReason::Timer)
    }

    /// A segment that acknowledges everything received in order left, decided by the policy or not.
    /// The timer is stopped; returns when to ask again all
    /// the same, 1 ms from now at the earliest.
    fn on_ack_sent(&mut self, now: Instant, carried: Carried) -> Option<Instant> {
        let _ = (now, carried);
        None
    }

    /// The handshake measured a round trip.
    fn on_handshake(&mut self, round_trip: Duration) {
        let _ = round_trip;
    }

    /// Bytes of heap held besides itself, as far as a peer can make it grow. They count against the
    /// memory of the endpoint.
    fn memory(&self) -> usize {
        0
    }
}

/// A policy that also writes what acknowledgements say beyond the cumulative number, where that is
/// not SACK.
pub(crate) trait FeedbackWriter: AckPolicy {
    /// True when a due acknowledgement has to leave on its own, because data cannot carry what it
    /// says.
    fn leaves_alone(&self) -> bool {
        false
    }

    /// True when the cumulative number says all that an acknowledgement of what arrived would say,
    /// so that data may carry it.
    fn is_carried(&self) -> bool {
        true
    }

    /// True when the application is likely to answer soon what arrived, with data that carries the
    /// window, and a timer runs for the case that it does not: until then a window that has room
    /// for a segment is not announced by itself.
    fn awaits_answer(&self) -> bool {
        false
    }

    /// The report for an acknowledgement that leaves alone, and how many bytes of `lists` it
    /// filled; `None` where acknowledgements carry SACK blocks. `lists` is empty unless it
    /// [`leaves_alone`](Self::leaves_alone).
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

    /// The number of a segment lies far behind the largest one, so that it may be an old copy.
    fn is_behind(&self, stamp: &DataStamp) -> bool {
        let _ = stamp;
        false
    }

    /// A segment with this stamp, which arrived at `arrived`, left so long ago that its sequence
    /// number may mean something else by now.
    fn is_outdated(&mut self, arrived: Instant, stamp: &DataStamp) -> bool {
        let _ = (arrived, stamp);
        false
    }
}
