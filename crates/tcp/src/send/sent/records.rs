//! The two kinds of record that the log keeps, and what it tells of them.

use core::ops::Range;

use tack_base::{Instant, StreamOffset};

use crate::cc::SendToken;
use crate::send::loss_sign::LossSign;
use crate::send::packet_number::PacketNumber;

/// One transmission of one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    /// Sequence positions it carried (FIN counts one).
    pub(crate) start: StreamOffset,
    /// Position after the last one.
    pub(crate) end: StreamOffset,
    /// When it left.
    pub(crate) sent_at: Instant,
    /// It repeated positions sent before.
    pub(crate) retransmission: bool,
    /// Rate sampling state at departure.
    pub(crate) flight: FlightStart,
    /// The controller's token.
    pub(crate) token: SendToken,
}

impl Transmission {
    /// One that left at `sent_at`, for tests of how it is reported.
    #[cfg(test)]
    pub(crate) fn new(range: Range<StreamOffset>, sent_at: Instant, retransmission: bool) -> Self {
        Self {
            start: range.start,
            end: range.end,
            sent_at,
            retransmission,
            flight: FlightStart::default(),
            token: SendToken::default(),
        }
    }

    /// Sequence positions carried.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// State of the delivery-rate estimator when a transmission left (draft-ietf-ccwg-bbr §4.1.2.2,
/// "P.*").
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlightStart {
    /// Total delivered then.
    pub(crate) delivered: u64,
    /// When that total was reached.
    pub(crate) delivered_at: Instant,
    /// When the first transmission of the flight left.
    pub(crate) first_sent_at: Instant,
    /// Sending was application-limited then.
    pub(crate) app_limited: bool,
}

/// Where a segment stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// Sent, not heard of.
    InFlight,
    /// Selectively acknowledged.
    Sacked,
    /// Marked lost; its retransmission has not left.
    Lost,
}

/// A segment that was sent and is not cumulatively acknowledged, by sequence position.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentSegment {
    pub(super) start: StreamOffset,
    pub(super) end: StreamOffset,
    /// Number of its newest transmission.
    pub(super) latest: PacketNumber,
    pub(super) fate: Fate,
    /// It left more than once.
    pub(super) retransmitted: bool,
    /// When it left for the first time.
    pub(super) first_sent_at: Instant,
}

impl SentSegment {
    pub(super) fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// A segment that an acknowledgement delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    /// Number of its newest transmission.
    pub(crate) number: PacketNumber,
    /// Its newest transmission.
    pub(crate) transmission: Transmission,
    /// It was retransmitted at least once.
    pub(crate) retransmitted: bool,
    /// It had been marked lost and was not retransmitted since: an original arrived after all.
    pub(crate) was_lost: bool,
}

/// A segment that was marked lost.
#[derive(Clone, Debug)]
pub(crate) struct NewlyLost {
    /// Sequence positions it carries.
    pub(crate) range: Range<StreamOffset>,
    /// Number of its newest transmission.
    pub(crate) number: PacketNumber,
    /// What told.
    pub(crate) sign: LossSign,
}
