//! What an acknowledgement says beyond the cumulative number, read and checked at the sender of
//! data.
//!
//! Two dialects, one result: SACK blocks with DSACK ([`SackReader`]), and TACK's reports. Nothing
//! that cannot be true gets past a reader.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use core::time::Duration;

use tack_base::{Instant, StreamOffset};
use tack_wire::tack::Sync;
use tack_wire::{Segment, SeqNum};

use super::policy::AckContract;
use crate::rate::Measured;
use crate::send::packet_number::PacketNumber;
use crate::send::sent::SentLog;

/// A round trip measured with the receiver's help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RoundTrip {
    /// Of the newest segment: for SRTT.
    pub(crate) newest: Duration,
    /// Of the fastest one since the last report: for the minimum.
    pub(crate) fastest: Duration,
}

/// What one acknowledgement says. Reused, so that reading allocates nothing in the steady state.
#[derive(Debug, Default)]
pub(crate) struct AckInfo {
    /// Stream positions received above the cumulative acknowledgement.
    pub(crate) acked: Vec<Range<StreamOffset>>,
    /// Something that starts here was received twice.
    pub(crate) duplicate: Option<StreamOffset>,
    /// The largest transmission brought nothing new.
    pub(crate) largest_repeated: bool,
    /// How much is received above the cumulative acknowledgement, listed or not, where the
    /// receiver says.
    pub(crate) above: Option<u64>,
    /// Transmissions reported lost.
    pub(crate) lost: Vec<Range<PacketNumber>>,
    /// The largest transmission number received, where the receiver says.
    pub(crate) largest: Option<PacketNumber>,
    /// No report before told of that number.
    pub(crate) largest_is_news: bool,
    /// When it left, if that is on record.
    pub(crate) largest_left: Option<Instant>,
    /// How long before the acknowledgement left that had arrived.
    pub(crate) largest_age: Duration,
    /// Round trip; `None` leaves it to the sender's own log.
    pub(crate) round_trip: Option<RoundTrip>,
    /// Delivery rate.
    pub(crate) rate: Measured,
    /// The acknowledgement's place in time is known by a number of its own, not by the sequence
    /// number it carries.
    pub(crate) numbered: bool,
    /// That number shows it to be a copy, or overtaken by a newer one.
    pub(crate) old: bool,
}

impl AckInfo {
    /// Gives back the heap that it holds for the next acknowledgement.
    pub(crate) fn trim(&mut self) {
        self.acked = Vec::new();
        self.lost = Vec::new();
    }

    /// Empties it for the next acknowledgement.
    pub(crate) fn clear(&mut self) {
        self.acked.clear();
        self.above = None;
        self.duplicate = None;
        self.lost.clear();
        self.largest = None;
        self.largest_is_news = false;
        self.largest_repeated = false;
        self.largest_left = None;
        self.largest_age = Duration::ZERO;
        self.round_trip = None;
        self.rate = Measured::BySender;
        self.numbered = false;
        self.old = false;
    }
}

/// What a reader checks against.
#[derive(Debug)]
pub(crate) struct ReadContext<'a> {
    /// When the acknowledgement arrived.
    pub(crate) arrived: Instant,
    /// Position of the cumulative acknowledgement.
    pub(crate) ack: StreamOffset,
    /// SND.UNA before it.
    pub(crate) snd_una: StreamOffset,
    /// SND.NXT.
    pub(crate) snd_nxt: StreamOffset,
    /// Sequence number of position zero.
    pub(crate) iss: SeqNum,
    /// Largest window that the peer ever announced.
    pub(crate) largest_window: u64,
    /// Payload of a full segment.
    pub(crate) mss: u64,
    /// SRTT; zero before the first sample.
    pub(crate) smoothed_rtt: Duration,
    /// What is in flight.
    pub(crate) log: &'a SentLog,
}

/// The acknowledgement says what cannot be true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InvalidFeedback;

/// State of the sender that a receiver needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderState {
    /// Now.
    pub(crate) now: Instant,
    /// Smallest RTT.
    pub(crate) min_rtt: Duration,
    /// Smoothed RTT.
    pub(crate) smoothed_rtt: Duration,
    /// Round trip of the newest segment acknowledged, or the smoothed one if that is longer: with
    /// a few samples in each round trip the smoothed one is late.
    pub(crate) round_trip: Duration,
    /// The same as this acknowledgement measured it; `None` if it measured nothing.
    pub(crate) newest: Option<Duration>,
    /// The congestion controller probes for capacity.
    pub(crate) startup: bool,
}

/// Reads acknowledgements.
pub(crate) trait FeedbackReader: fmt::Debug + Send {
    /// Reads `segment` with the data field `lists` into `info`, which is empty.
    ///
    /// # Errors
    /// [`InvalidFeedback`]: the whole segment is to be dropped; nothing moved.
    fn read(
        &mut self,
        context: &ReadContext<'_>,
        segment: &Segment<'_>,
        lists: &[u8],
        info: &mut AckInfo,
    ) -> Result<(), InvalidFeedback>;

    /// What the peer promises, as far as known.
    fn contract(&self) -> AckContract;

    /// Changes whenever the contract may have changed.
    fn contract_version(&self) -> u32 {
        0
    }

    /// False once what the peer reports beyond its cumulative acknowledgement has turned out to
    /// make no sense.
    fn is_intelligible(&self) -> bool {
        true
    }

    /// True when a segment with data, without a report and without blocks, would change nothing
    /// here while nothing is outstanding.
    fn is_settled(&self) -> bool;

    /// True as long as it is of use to stamp segments.
    fn stamps(&self) -> bool {
        false
    }

    /// True when payload that comes with a feedback option is outside the sequence space.
    fn separates_lists(&self) -> bool {
        false
    }

    /// What the peer has to know now, if anything.
    fn poll_sync(&mut self, state: &SenderState) -> Option<Sync> {
        let _ = state;
        None
    }
}

/// Reads SACK (RFC 2018) and DSACK (RFC 2883).
#[derive(Debug)]
pub(crate) struct SackReader {
    agreed: bool,
    /// Acknowledgements none of whose blocks could be true, while none made sense; `None` once one
    /// did.
    invalid: Option<u8>,
}

/// That many, and SACK is given up: a middlebox shifts sequence numbers and forgets the blocks, or
/// the peer is malicious. Counting duplicates (RFC 5681 §3.2) then finds losses that blocks would
/// have shown.
const MOST_INVALID: u8 = 3;

impl SackReader {
    /// `agreed` when both sides permit SACK.
    pub(crate) fn new(agreed: bool) -> Self {
        Self {
            agreed,
            invalid: Some(0),
        }
    }
}

impl FeedbackReader for SackReader {
    fn read(
        &mut self,
        context: &ReadContext<'_>,
        segment: &Segment<'_>,
        _lists: &[u8],
        info: &mut AckInfo,
    ) -> Result<(), InvalidFeedback> {
        if !self.agreed || !self.is_intelligible() {
            return Ok(());
        }
        let blocks = &segment.header.options.sack;
        let Some(first) = blocks.first() else {
            return Ok(());
        };
        // DSACK: a first block below the cumulative acknowledgement, or inside the second block.
        let below = !first.end.after(segment.header.ack);
        let inside = blocks.get(1).is_some_and(|second| {
            !first.start.before(second.start) && !first.end.after(second.end)
        });
        if (below || inside)
            && first.start.before(first.end)
            && let Some(start) = first.start.position(context.iss, context.snd_una)
            && start < context.snd_nxt
            // Not longer ago than a window: older ones cannot be true.
            && start + context.largest_window >= context.snd_una
        {
            info.duplicate = Some(start);
        }
        for block in blocks {
            let position = |seq: SeqNum| seq.position(context.iss, context.ack);
            let (Some(start), Some(end)) = (position(block.start), position(block.end)) else {
                continue;
            };
            // Not empty, above the cumulative acknowledgement, within what was sent.
            if start < end && start >= context.ack && end <= context.snd_nxt {
                info.acked.push(start..end);
            }
        }
        let is_valid = info.duplicate.is_some() || !info.acked.is_empty();
        self.invalid = self.invalid.filter(|_| !is_valid).map(|count| count + 1);
        Ok(())
    }

    fn is_intelligible(&self) -> bool {
        self.invalid.is_none_or(|count| count < MOST_INVALID)
    }

    fn is_settled(&self) -> bool {
        true
    }

    fn contract(&self) -> AckContract {
        AckContract::LEGACY
    }
}
