//! What a connection did and why, for those who want to know: a ring of events, polled by the
//! driver.
//!
//! Off by default; then it costs one comparison an event. A ring that nobody drains forgets the
//! oldest events and says how many.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use tack_base::{Instant, Rate, StreamOffset};

use crate::send::loss_sign::LossSign;
use crate::send::packet_number::PacketNumber;

/// Most events kept between two polls.
const CAPACITY: usize = 4096;
/// The same with those of segments.
const SEGMENTS_CAPACITY: usize = 16_384;

/// How detailed a trace is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum TraceDetail {
    /// Acknowledgements, losses and timers.
    Decisions,
    /// The same, and each data segment that was sent or received: many events.
    Segments,
}

/// One event and when it happened.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct TraceEvent {
    /// On the connection's clock.
    pub at: Instant,
    /// What happened.
    pub what: Traced,
}

/// A thing that a connection did or learned.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Traced {
    /// A pure acknowledgement left.
    AckSent(AckSent),
    /// An acknowledgement arrived and was taken.
    AckReceived(AckReceived),
    /// A sync left: a pure acknowledgement that reports to the peer what its acknowledgement policy
    /// needs (TACK).
    SyncSent {
        /// RTTmin that it reports.
        min_rtt: Duration,
        /// Share of the peer's acknowledgements that were lost, 0 to 1.
        ack_loss_rate: f64,
        /// The congestion controller probes for capacity.
        startup: bool,
    },
    /// Bytes in flight are presumed lost.
    Lost {
        /// Where they begin in the stream.
        start: StreamOffset,
        /// Where they end.
        end: StreamOffset,
        /// The number of their last transmission.
        number: PacketNumber,
        /// What told that they are.
        sign: LossSign,
    },
    /// A segment with payload left.
    SegmentSent {
        /// Of the transmission: larger than those before. A number may be missing, of a segment
        /// that was kept back or had no payload.
        number: PacketNumber,
        /// Where it begins in the stream.
        start: StreamOffset,
        /// Where its payload ends.
        end: StreamOffset,
        /// It left before.
        again: bool,
    },
    /// A segment with payload arrived.
    SegmentReceived {
        /// Of the transmission, modulo 2^32, where the peer tells (TACK).
        number: Option<u32>,
        /// Where it begins in the stream.
        start: StreamOffset,
        /// Where its payload ends.
        end: StreamOffset,
    },
    /// A loss episode began, or was found to be false.
    Recovery(&'static str),
    /// A timer ran out: `rto`, `tlp`, `reorder`, `persist`.
    Timeout(&'static str),
}

/// Why an acknowledgement left, and what it says.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct AckSent {
    /// What made it leave: `threshold`, `timer`, `loss`, `window`, `event`, `frequency`.
    pub reason: &'static str,
    /// How it looks: `ack`, `sack`, `tack`, `iack`.
    pub form: &'static str,
    /// Its number, where it has one.
    pub number: Option<u32>,
    /// Everything below this stream position is acknowledged.
    pub ack: StreamOffset,
    /// Bytes received above it.
    pub above: u64,
    /// Blocks of them that it lists.
    pub blocks: u16,
    /// Gaps that it lists.
    pub gaps: u16,
    /// Delivery rate that it reports.
    pub rate: Option<Rate>,
    /// Period of acknowledgements that it announces.
    pub period: Option<Duration>,
    /// Window that it announces, bytes.
    pub window: u64,
}

/// What an acknowledgement did at the sender.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct AckReceived {
    /// Everything below this stream position is acknowledged.
    pub ack: StreamOffset,
    /// Bytes newly known to be delivered.
    pub delivered: u64,
    /// Bytes newly known to be lost.
    pub lost: u64,
    /// Round trip measured with it.
    pub rtt: Option<Duration>,
    /// Delivery rate measured with it.
    pub rate: Option<Rate>,
    /// Bytes in flight afterwards.
    pub bytes_in_flight: u64,
    /// Congestion window afterwards, bytes.
    pub cwnd: u64,
    /// Pacing rate afterwards.
    pub pacing: Option<Rate>,
    /// Smallest round trip afterwards.
    pub min_rtt: Option<Duration>,
    /// Phase of the congestion controller afterwards.
    pub phase: &'static str,
    /// Its bandwidth estimate afterwards.
    pub bandwidth: Option<Rate>,
}

/// The events not polled yet.
#[derive(Debug)]
struct TraceRing {
    events: VecDeque<TraceEvent>,
    forgotten: u64,
    detail: TraceDetail,
}

/// The trace of one connection.
#[derive(Debug, Default)]
pub(crate) struct Trace(Option<Box<TraceRing>>);

impl Trace {
    /// Begins to keep events.
    pub(crate) fn switch_on(&mut self, detail: TraceDetail) {
        let ring = self.0.get_or_insert_with(|| {
            Box::new(TraceRing {
                events: VecDeque::new(),
                forgotten: 0,
                detail,
            })
        });
        ring.detail = ring.detail.max(detail);
    }

    /// As [`Self::add`], for what concerns one data segment.
    #[inline]
    pub(crate) fn add_segment(&mut self, at: Instant, what: impl FnOnce() -> Traced) {
        if (self.0.as_ref()).is_some_and(|ring| ring.detail == TraceDetail::Segments) {
            self.add(at, what);
        }
    }

    /// Keeps what `event` makes, where anybody wants to know.
    #[inline]
    pub(crate) fn add(&mut self, at: Instant, what: impl FnOnce() -> Traced) {
        if let Some(ring) = &mut self.0 {
            let capacity = match ring.detail {
                TraceDetail::Decisions => CAPACITY,
                TraceDetail::Segments => SEGMENTS_CAPACITY,
            };
            if ring.events.len() >= capacity {
                ring.events.pop_front();
                ring.forgotten += 1;
            }
            ring.events.push_back(TraceEvent { at, what: what() });
        }
    }

    /// Somebody wants to know.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The oldest event.
    pub(crate) fn poll(&mut self) -> Option<TraceEvent> {
        self.0.as_mut()?.events.pop_front()
    }

    /// Events that were forgotten because nobody polled.
    pub(crate) fn forgotten(&self) -> u64 {
        self.0.as_ref().map_or(0, |ring| ring.forgotten)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_nobody_drains_forgets_the_oldest() {
        let mut trace = Trace::default();
        trace.add(Instant::ZERO, || unreachable!("tracing is off"));
        trace.switch_on(TraceDetail::Decisions);
        trace.add_segment(Instant::ZERO, || unreachable!("segments are not traced"));
        for micros in 0..CAPACITY as u64 + 2 {
            trace.add(Instant::from_micros(micros), || Traced::Timeout("rto"));
        }
        assert_eq!(trace.forgotten(), 2);
        assert_eq!(
            trace.poll().map(|event| event.at),
            Some(Instant::from_micros(2))
        );
    }
}
