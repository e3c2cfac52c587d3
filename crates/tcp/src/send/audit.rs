//! Does the peer acknowledge what it did not get? Now and then a segment is kept back while those
//! behind it leave.
//!
//! Who got those and not this one cannot acknowledge it; who acknowledges it anyway guesses, to be
//! sent more than its path carries (Savage et al., "TCP Congestion Control with a Misbehaving
//! Receiver", 1999). An honest peer tells of a hole, as of any loss, and gets the segment then: it
//! costs it one round trip now and then, and no congestion event.

use core::ops::Range;
use core::time::Duration;

use tack_base::random::RandomStream;
use tack_base::{Instant, StreamOffset};

use crate::send::packet_number::PacketNumber;

/// Least of the shortest round trips between two audits that stop the sender, and before the first
/// one. The sender stands still for one, and what then leaves at once may overflow a queue, which
/// costs some ten: together less than 1 % of the time.
const ROUND_TRIPS_BETWEEN: u32 = 1024;

/// The segment kept back.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Kept {
    range: Range<StreamOffset>,
    number: PacketNumber,
}

/// Keeps segments back, or does not.
#[derive(Debug)]
pub(crate) struct Audit {
    /// Segments between two audits, on average; `None` for no audits.
    every: Option<u64>,
    random: RandomStream,
    /// Segments until the next one.
    left: u64,
    kept: Option<Kept>,
    /// When the next one may begin where it stops the sender.
    resumes: Option<Instant>,
}

impl Audit {
    /// An audit each `every` segments on average.
    pub(crate) fn new(every: Option<u32>, seed: u64) -> Self {
        let mut audit = Self {
            every: every.map(u64::from),
            random: RandomStream::new(seed, "audit", 0),
            left: 0,
            kept: None,
            resumes: None,
        };
        audit.draw();
        audit
    }

    /// Nobody can know when the next one comes: from half to one and a half times the average.
    fn draw(&mut self) {
        if let Some(every) = self.every {
            self.left = every / 2 + self.random.below(every.max(1)) + 1;
        }
    }

    /// A new segment is about to leave. True when it is to be kept back, if that is possible.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        if self.every.is_none() {
            return false;
        }
        self.left = self.left.saturating_sub(1);
        self.left == 0 && self.kept.is_none()
    }

    /// These positions are kept back; they would have left as transmission `number`.
    pub(crate) fn keep(
        &mut self,
        range: Range<StreamOffset>,
        number: PacketNumber,
        now: Instant,
        min_rtt: Duration,
    ) {
        self.kept = Some(Kept { range, number });
        self.resumes = Some(now + min_rtt * ROUND_TRIPS_BETWEEN);
        self.draw();
    }

    /// True where an audit may stop the sender for a round trip. Time counts from the first
    /// question.
    pub(crate) fn may_stop(&mut self, now: Instant, min_rtt: Duration) -> bool {
        let first = now + min_rtt * ROUND_TRIPS_BETWEEN;
        now >= *self.resumes.get_or_insert(first)
    }

    /// The segment that starts at `start` is kept back.
    #[inline]
    pub(crate) fn keeps(&self, start: StreamOffset) -> bool {
        self.kept
            .as_ref()
            .is_some_and(|kept| kept.range.start == start)
    }

    /// Some of these positions are kept back.
    #[inline]
    pub(crate) fn overlaps(&self, range: &Range<StreamOffset>) -> bool {
        self.kept
            .as_ref()
            .is_some_and(|kept| range.start < kept.range.end && kept.range.start < range.end)
    }

    /// The segment may leave: `largest` arrived, which left after it would have.
    pub(crate) fn on_report(&mut self, largest: Option<PacketNumber>) {
        self.kept
            .take_if(|kept| largest.is_some_and(|largest| largest > kept.number));
    }

    /// Nothing is kept back any more.
    pub(crate) fn end(&mut self) {
        self.kept = None;
    }

    /// What never left is said to have arrived: all below `ack`, or in one of the `blocks`.
    pub(crate) fn is_failed(&self, ack: StreamOffset, blocks: &[Range<StreamOffset>]) -> bool {
        self.kept.as_ref().is_some_and(|kept| {
            ack > kept.range.start || blocks.iter().any(|block| self.overlaps(block))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_setting_nothing_is_kept_back() {
        let mut audit = Audit::new(None, 1);
        assert!((0..100_000).all(|_| !audit.is_due()));
        assert!(!audit.is_failed(StreamOffset(u64::MAX), &[]));
    }

    #[test]
    fn audits_come_at_random_and_wait_for_an_occasion() {
        let mut audit = Audit::new(Some(100), 1);
        let mut audits = 0;
        for number in 0..100_000 {
            if audit.is_due() {
                audits += 1;
                audit.keep(
                    StreamOffset::range(number..number + 1),
                    PacketNumber(number),
                    Instant::ZERO,
                    Duration::ZERO,
                );
                audit.on_report(Some(PacketNumber(number)));
                assert!(audit.keeps(StreamOffset(number)));
                audit.on_report(Some(PacketNumber(number + 1)));
                assert!(!audit.keeps(StreamOffset(number)));
            }
        }
        assert!((900..1100).contains(&audits), "{audits}");
        // Where an occasion is not taken, the next one is.
        assert!((0..1000).any(|_| audit.is_due()));
        assert!((0..1000).all(|_| audit.is_due()));
    }

    #[test]
    fn what_never_left_cannot_arrive() {
        let mut audit = Audit::new(Some(1), 1);
        audit.keep(
            StreamOffset::range(1000..2000),
            PacketNumber(7),
            Instant::ZERO,
            Duration::ZERO,
        );
        for (start, end, is_kept) in [
            (0, 1000, false),
            (0, 1001, true),
            (1999, 2500, true),
            (2000, 2500, false),
        ] {
            assert_eq!(audit.overlaps(&StreamOffset::range(start..end)), is_kept);
        }
        assert!(!audit.is_failed(
            StreamOffset(1000),
            &[
                StreamOffset::range(2000..3000),
                StreamOffset::range(1..1000)
            ]
        ));
        assert!(audit.is_failed(StreamOffset(1001), &[]));
        assert!(audit.is_failed(
            StreamOffset(1),
            &[
                StreamOffset::range(2000..3000),
                StreamOffset::range(1500..1600)
            ]
        ));
        audit.end();
        assert!(!audit.is_failed(StreamOffset(5000), &[]));
    }
}
