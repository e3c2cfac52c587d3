//! What the segments of the peer show besides their payload: its segment size, and the round trip as this side sees it.

use tack_base::Instant;
use tack_wire::{Segment, TackOption};

use super::Connection;

impl Connection {
    /// Learns the peer's segment size, and the round trip as this side sees it.
    #[inline]
    pub(super) fn observe_peer_segment(
        &mut self,
        arrived: Instant,
        segment: &Segment<'_>,
        len: u64,
    ) {
        if len > self.peer_mss {
            self.peer_mss = len.min(u64::from(u16::MAX));
            self.peer_short_run = 0;
        } else if len == self.peer_mss {
            self.peer_short_run = 0;
        } else if len >= self.peer_mss / 4 {
            // A path that got narrower: full segments of the old size will not come again, and an
            // acknowledgement that waits for two of them would always wait for the timer.
            self.peer_short_run += 1;
            if self.peer_short_run >= 16 {
                self.peer_mss = len;
                self.peer_short_run = 0;
            }
        }
        if let Some(TackOption::Data(stamp)) = &segment.header.options.tack {
            self.receiver_round_trip
                .on_departure(arrived, stamp.departure);
        }
        if let Some(timestamps) = segment.header.options.timestamps
            && self.timestamps.is_agreed()
            && len >= self.peer_mss
            && self.receiver_round_trip.is_new_echo(timestamps.echo)
            && let Some(age) = self.timestamps.age(arrived, timestamps.echo)
        {
            if segment.header.options.tack.is_none() {
                // What the sender stated once is of before it, or the path, gave TACK up.
                self.receiver_round_trip.forget_stated();
            }
            self.receiver_round_trip.on_echo_age(age);
        }
    }
}
