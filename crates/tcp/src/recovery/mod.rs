//! Loss recovery: who detects, what phase the sender is in, how it sends meanwhile, and how it
//! undoes a false episode.

mod dup_acks;
pub(crate) mod episodes;
mod evidence;
mod frto;
mod prr;
pub(crate) mod rack;
pub(crate) mod reported;
mod retransmitted;
pub(crate) mod tlp;
pub(crate) mod undo;

use core::fmt;
use core::ops::Range;
use core::time::Duration;

use tack_base::{Instant, StreamOffset};

use crate::send::packet_number::PacketNumber;
use crate::send::sent::{Delivered, SentLog};

/// Where the sender stands between losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// No loss outstanding.
    Open,
    /// Fast recovery until `until` is acknowledged (RFC 6675, RFC 8985).
    Recovery {
        /// SND.NXT when the episode began.
        until: StreamOffset,
    },
    /// After a retransmission timeout, until `until` is acknowledged.
    Timeout {
        /// SND.NXT when the timer first fired.
        until: StreamOffset,
    },
}

impl Phase {
    /// Position that ends the episode, within one.
    pub(crate) fn until(self) -> Option<StreamOffset> {
        match self {
            Self::Open => None,
            Self::Recovery { until } | Self::Timeout { until } => Some(until),
        }
    }
}

/// What loss detection needs to know about the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetectionContext {
    /// Now.
    pub(crate) now: Instant,
    /// Smallest RTT.
    pub(crate) min_rtt: Option<Duration>,
    /// Smoothed RTT.
    pub(crate) smoothed_rtt: Option<Duration>,
    /// Longest time that the receiver holds an acknowledgement back, by what was agreed and
    /// measured here.
    pub(crate) ack_delay: Duration,
    /// A loss episode is open.
    pub(crate) in_recovery: bool,
    /// Latest departure of what the acknowledgement echoes, where it echoes anything.
    pub(crate) echoed_departure: Option<Instant>,
}

impl DetectionContext {
    /// True where the acknowledgement is of an earlier transmission than the one of `sent_at`
    /// (RFC 8985 §6.2 step 2): it comes sooner than any round trip, or echoes an earlier departure.
    pub(crate) fn is_of_an_earlier(&self, sent_at: Instant) -> bool {
        let rtt = self.now.saturating_since(sent_at);
        self.min_rtt.is_some_and(|min| rtt < min)
            || self.echoed_departure.is_some_and(|at| sent_at > at)
    }
}

/// What one acknowledgement says about losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossView<'a> {
    /// When it arrived.
    pub(crate) arrived: Instant,
    /// Numbers of transmissions that the receiver calls lost.
    pub(crate) lost: &'a [Range<PacketNumber>],
    /// The largest number received, where the receiver tells.
    pub(crate) largest: Option<PacketNumber>,
    /// When it left, if that is on record.
    pub(crate) largest_left: Option<Instant>,
    /// How long before the acknowledgement left that had arrived.
    pub(crate) largest_age: Duration,
    /// Without a report: the newest transmission that is acknowledged, and when it left, if no
    /// earlier one of the same segment may have arrived in its place.
    pub(crate) unreported: Option<(PacketNumber, Instant)>,
    /// All that was received is known: what is outstanding below `largest` had not arrived.
    pub(crate) complete: bool,
}

impl LossView<'_> {
    /// SACK blocks that fit beside timestamps (RFC 2018 §3): fewer of them name all that was
    /// received above the cumulative acknowledgement. No block at all proves nothing, because a
    /// receiver that reports sends none.
    pub(crate) const SACK_ROOM: usize = 3;
}

/// Decides which transmissions are lost: from acknowledgements at the sender (RACK), or because the
/// receiver says so.
pub(crate) trait LossDetector: fmt::Debug + Send {
    /// An acknowledgement delivered a segment. `snd_una` is the cumulative acknowledgement before
    /// it.
    fn on_delivered(&mut self, context: &DetectionContext, delivered: &Delivered);

    /// A DSACK told that something arrived twice; `round_end` is SND.NXT.
    fn on_duplicate_report(&mut self, snd_una: StreamOffset, snd_nxt: StreamOffset);

    /// An acknowledgement says what the receiver misses.
    fn on_report(&mut self, view: &LossView<'_>) {
        let _ = view;
    }

    /// Marks what is lost in the log. Returns the bytes marked, and when to look again.
    fn detect(&mut self, context: &DetectionContext, log: &mut SentLog) -> Detection;

    /// The retransmission timer fired: marks what must be presumed lost. Returns the bytes marked.
    fn on_timeout(&mut self, context: &DetectionContext, log: &mut SentLog) -> u64;

    /// A loss episode ended.
    fn on_recovered(&mut self);

    /// A loss episode turned out to be false: what its retransmissions seemed to deliver were the
    /// originals.
    fn on_undone(&mut self);
}

/// What [`LossDetector::detect`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Detection {
    /// Bytes newly marked lost.
    pub(crate) lost: u64,
    /// When another segment would be deemed lost if nothing arrives.
    pub(crate) look_again: Option<Instant>,
    /// The oldest of what is lost leaves whatever the window is: its acknowledgement is to tell
    /// what became of the others.
    pub(crate) asks: bool,
}
