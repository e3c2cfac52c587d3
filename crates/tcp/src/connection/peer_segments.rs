//! What the segments of the peer show besides their payload: its segment size, and the round trip
//! as this side sees it.

use tack_base::Instant;
use tack_wire::{Flags, Segment, TackOption};

use crate::recv::round_trip::ReceiverRoundTrip;
use crate::rtt::timestamps::TimestampClock;

/// So many shorter segments in a row, and that is the size of full segments.
const SHORT_RUN: u8 = 16;

/// So many of those does a much shorter segment count for behind which its sender had more data.
const WITH_MORE_BEHIND: u8 = 4;

/// The default MSS (RFC 9293 §3.7.1, MUST-15), bytes.
const LEAST_STEP: u64 = 536;

/// What the peer's segments have shown.
#[derive(Debug)]
pub(super) struct PeerSegments {
    /// Payload of its full-sized segments, bytes.
    size: u64,
    /// Shorter segments in a row that may be full-sized.
    short_run: u8,
    /// The round trip as the receiver sees it.
    pub(super) round_trip: ReceiverRoundTrip,
}

impl PeerSegments {
    /// No segment arrived; full-sized ones are taken for `size` bytes.
    pub(super) fn new(size: u64) -> Self {
        Self {
            size,
            short_run: 0,
            round_trip: ReceiverRoundTrip::default(),
        }
    }

    /// Payload of full-sized segments, bytes.
    #[inline]
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// By how much the right edge of a window has to move at least that asks for full-sized
    /// segments, bytes (RFC 9293 §3.8.6.2.2, MUST-39). A peer of small segments does not make it
    /// silly.
    #[inline]
    pub(super) fn window_step(&self) -> u64 {
        self.size.max(LEAST_STEP)
    }

    #[inline]
    fn learn_size(&mut self, len: u64, ends_a_write: bool) {
        if len > self.size {
            self.size = len.min(u64::from(u16::MAX));
            self.short_run = 0;
        } else if len == self.size {
            self.short_run = 0;
        } else if len >= self.size / 4 || !ends_a_write {
            // A path that got narrower: full segments of the old size will not come again, and an
            // acknowledgement that waits for two of them would always wait for the timer. From
            // jumbo frames it can get narrower by more than a message is short of a segment, but
            // only the last segment of a write has PSH (RFC 9293 §3.9.1).
            self.short_run += match len >= self.size / 4 {
                true => 1,
                false => WITH_MORE_BEHIND,
            };
            if self.short_run >= SHORT_RUN {
                self.size = len;
                self.short_run = 0;
            }
        }
    }

    /// A segment with payload arrived.
    #[inline]
    pub(super) fn on_segment(
        &mut self,
        arrived: Instant,
        segment: &Segment<'_>,
        clock: &TimestampClock,
    ) {
        let len = segment.payload.len() as u64;
        let ends_a_write = segment.header.flags.contains(Flags::PSH);
        self.learn_size(len, ends_a_write);
        let options = &segment.header.options;
        if let Some(TackOption::Data(stamp)) = &options.tack {
            self.round_trip.on_departure(arrived, stamp.departure);
        }
        if let Some(timestamps) = options.timestamps
            && clock.is_agreed()
            && len >= self.size
            && self.round_trip.is_new_echo(timestamps.echo)
            && let Some(age) = clock.age(arrived, timestamps.echo)
        {
            if options.tack.is_none() {
                // What the sender stated once is of before it, or the path, gave TACK up.
                self.round_trip.forget_stated();
            }
            self.round_trip.on_echo_age(age);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrower_path_is_noticed_after_a_run_of_shorter_segments() {
        let mut segments = PeerSegments::new(536);
        segments.learn_size(1460, false);
        assert_eq!(segments.size(), 1460);
        for _ in 1..SHORT_RUN {
            segments.learn_size(1200, true);
        }
        // A short one that ends a write is not evidence, and a full one ends the run.
        segments.learn_size(100, true);
        assert_eq!(segments.size(), 1460);
        segments.learn_size(1200, true);
        assert_eq!(segments.size(), 1200);
    }

    #[test]
    fn a_path_that_had_jumbo_frames_is_noticed_sooner() {
        let mut segments = PeerSegments::new(8_948);
        // Messages, each of which ends a write.
        for _ in 0..100 {
            segments.learn_size(1_012, true);
        }
        assert_eq!(segments.size(), 8_948);
        for _ in 1..SHORT_RUN / WITH_MORE_BEHIND {
            segments.learn_size(1_012, false);
        }
        assert_eq!(segments.size(), 8_948);
        segments.learn_size(1_012, false);
        assert_eq!(segments.size(), 1_012);
    }
}
