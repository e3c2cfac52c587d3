//! Invariants of the stack, checked at every event: what its own books say, and what an observer
//! sees on the wire.

use tack_base::time::nanos;
use tack_base::{Duration, Instant, Rate};
use tack_tcp::Connection;
use tack_tcp::config::Carrier;
use tack_wire::{Header, SeqNum};

/// Window field of RFC 7323: shifted by at most this.
const MOST_SHIFT: u8 = 14;
/// Quanta that may leave at once.
const QUANTA: u64 = 4;
/// The interval that a quantum of a batching carrier covers.
const QUANTUM_INTERVAL: Duration = Duration::from_micros(250);

/// One side of a connection, as seen on the wire.
#[derive(Clone, Debug, Default)]
pub(super) struct WireObserver {
    /// Highest acknowledgement number sent.
    acked: Option<SeqNum>,
    /// Shift of its own window, offered with SYN; and of the peer's.
    own_shift: Option<u8>,
    peer_shift: Option<u8>,
    /// Right edge of the largest window that it was told.
    edge: Option<SeqNum>,
    /// The number after the highest one sent with payload.
    sent_end: Option<SeqNum>,
    pace: Option<Pace>,
}

/// A token bucket: the pacing rate over time, and at most [`QUANTA`] quanta at once.
///
/// A segment takes its time at the rate at which it left, and a lower rate holds from the next one
/// on: that is how departures are scheduled (draft-cardwell-iccrg-bbr-congestion-control,
/// `next_departure_time`). Where acknowledgements come in step with departures, as on a path of a
/// few segments, a bucket filled at each rate from the moment at which it is set would be a
/// part of a segment short each time the rate falls, and empty after some seconds.
#[derive(Clone, Copy, Debug)]
struct Pace {
    rate: Rate,
    depth: u64,
    /// Tokens, in bytes.
    tokens: f64,
    since: Instant,
    /// The time of what left is over then, and tokens come at the rate at which it left, if that
    /// is the higher one.
    under_way_until: Instant,
    left_at_rate: Rate,
    /// Payload of a full-sized segment, bytes.
    mss: u64,
}

impl WireObserver {
    /// The side sends a segment of `payload` bytes with `header` at `now`, by its own clock.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        header: &Header,
        payload: usize,
    ) -> Result<(), String> {
        if header.flags.rst() {
            return Ok(());
        }
        if header.flags.syn() {
            self.own_shift = header.options.window_scale;
        }
        if header.flags.ack() {
            if let Some(acked) = self.acked
                && header.ack.before(acked)
            {
                return Err(format!(
                    "the acknowledgement number went back from {acked:?} to {:?}",
                    header.ack
                ));
            }
            self.acked = Some(header.ack);
        }
        if payload == 0 {
            return Ok(());
        }
        let end = header.seq + payload as u32;
        // A probe of a closed window is one byte beyond it (RFC 9293 §3.8.6.1).
        if let Some(edge) = self.edge
            && end.distance(edge) > 1
        {
            return Err(format!(
                "{} bytes were sent beyond the window",
                end.distance(edge)
            ));
        }
        // A fast retransmission, and one for a partial acknowledgement (RFC 6582 §3.2), leaves at
        // once.
        if self.sent_end.is_some_and(|highest| !end.after(highest)) {
            return Ok(());
        }
        self.sent_end = Some(end);
        self.take(now, payload as u64)
    }

    /// The side processes a segment with `header`.
    pub(super) fn on_received(&mut self, header: &Header) {
        if header.flags.rst() || !header.flags.ack() {
            if header.flags.syn() {
                self.peer_shift = header.options.window_scale;
            }
            return;
        }
        if header.flags.syn() {
            self.peer_shift = header.options.window_scale;
        }
        // Scaling is in force when both offered it, and never for a SYN's own window (RFC 7323
        // §2.2).
        let shift = match (self.own_shift, self.peer_shift) {
            (Some(_), Some(shift)) if !header.flags.syn() => shift.min(MOST_SHIFT),
            _ => 0,
        };
        let edge = header.ack + (u32::from(header.window) << shift);
        // Windows do not shrink for an observer: what was allowed once may be under way.
        if self.edge.is_none_or(|known| edge.after(known)) {
            self.edge = Some(edge);
        }
    }

    /// From `now` on the side paces at `rate`, segments of `mss` bytes on this carrier.
    pub(super) fn set_rate(
        &mut self,
        now: Instant,
        rate: Option<Rate>,
        mss: u64,
        carrier: Carrier,
    ) {
        let Some(rate) = rate else {
            self.pace = None;
            return;
        };
        let batch = rate
            .bytes_in(carrier.timer_granularity.max(QUANTUM_INTERVAL))
            .clamp(mss, mss * carrier.max_batch as u64);
        // What a late timer held back is made up for: with single segments too.
        let quantum = batch.max(rate.bytes_in(carrier.timer_granularity));
        let depth = quantum * QUANTA;
        let pace = self.pace.unwrap_or(Pace {
            rate,
            depth,
            tokens: depth as f64,
            since: now,
            under_way_until: now,
            left_at_rate: rate,
            mss,
        });
        self.pace = Some(Pace {
            rate,
            depth,
            mss,
            // A quantum in reserve is one at the rate in force.
            tokens: pace.filled(now) * (depth as f64 / pace.depth as f64).max(1.0),
            since: now,
            ..pace
        });
    }

    fn take(&mut self, now: Instant, bytes: u64) -> Result<(), String> {
        let Some(pace) = &mut self.pace else {
            return Ok(());
        };
        pace.tokens = pace.filled(now) - bytes as f64;
        pace.since = now;
        pace.left_at_rate = if pace.under_way_until > now {
            pace.left_at_rate.max(pace.rate)
        } else {
            pace.rate
        };
        pace.under_way_until = pace.under_way_until.max(now) + pace.rate.time_for(bytes);
        // A probe for a larger path MTU leaves as a whole, and what follows waits for longer.
        let beyond_mss = bytes.saturating_sub(pace.mss);
        // Times are whole nanoseconds.
        let rounding = pace.rate.bytes_in(Duration::from_nanos(1));
        if pace.tokens + ((beyond_mss + rounding) as f64) < 0.0 {
            let (rate, excess) = (pace.rate, -pace.tokens);
            return Err(format!(
                "sent {excess:.0} bytes more than the pacing rate of {rate} and four quanta allow"
            ));
        }
        Ok(())
    }
}

impl Pace {
    /// Tokens at `now`.
    fn filled(&self, now: Instant) -> f64 {
        // A pacer that counts whole nanoseconds is a little fast: less than a thousandth where
        // anyone paces.
        let earned = |rate: Rate, from: Instant, to: Instant| {
            rate.bits_per_sec() as f64 / 8e9 * 1.001 * nanos(to.saturating_since(from)) as f64
        };
        let until = self.under_way_until.clamp(self.since, now);
        let earned = earned(self.rate.max(self.left_at_rate), self.since, until)
            + earned(self.rate, until, now);
        // A quantum begun at a higher rate may be sent to its end: what is above a smaller depth
        // only gets no more.
        (self.tokens + earned).min(self.tokens.max(self.depth as f64))
    }
}

/// Records of a connection that are added up per event. A sum that is wrong stays wrong, so that a
/// connection with more of them is looked at whole after as many events as it takes.
const RECORDS_AN_EVENT: usize = 16;

/// The counters of a connection. `events` went by since its sums were added up.
pub(super) fn books(
    connection: &Connection,
    deadline: Option<Instant>,
    events: &mut usize,
) -> Result<(), String> {
    connection.check_state()?;
    *events += 1;
    if *events * RECORDS_AN_EVENT >= connection.records() {
        *events = 0;
        connection.check_sums()?;
    }
    if connection.poll_timeout().is_some() && deadline.is_none() {
        return Err("a connection waits for a timer that its endpoint does not know of".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tack_wire::Flags;

    fn header(seq: u32, ack: u32, window: u16) -> Header {
        Header {
            seq: SeqNum(seq),
            ack: SeqNum(ack),
            window,
            flags: Flags::ACK,
            ..Header::default()
        }
    }

    #[test]
    fn each_broken_promise_is_seen() {
        let mut side = WireObserver::default();
        side.on_received(&header(1, 100, 50));
        let now = Instant::ZERO;
        assert_eq!(side.on_sent(now, &header(100, 10, 0), 50), Ok(()));
        assert_eq!(side.on_sent(now, &header(150, 10, 0), 1), Ok(()), "a probe");
        assert!(
            side.on_sent(now, &header(150, 10, 0), 2).is_err(),
            "beyond the window"
        );
        assert!(side.on_sent(now, &header(150, 9, 0), 0).is_err(), "back");
        assert_eq!(side.on_sent(now, &header(100, 10, 0), 50), Ok(()), "again");
        side.on_received(&header(1, 100, 10_000));
        side.set_rate(
            now,
            Some(Rate::from_bytes_per_sec(1_000)),
            100,
            Carrier::default(),
        );
        assert_eq!(side.on_sent(now, &header(200, 10, 0), 400), Ok(()));
        assert!(
            side.on_sent(now, &header(600, 10, 0), 1).is_err(),
            "too fast"
        );
        let mut side = WireObserver::default();
        side.set_rate(
            now,
            Some(Rate::from_bytes_per_sec(1_000)),
            100,
            Carrier::default(),
        );
        for millis in 0..50 {
            let (at, seq) = (
                Instant::from_millis(100 * millis),
                200 + 100 * millis as u32,
            );
            assert_eq!(side.on_sent(at, &header(seq, 10, 0), 100), Ok(()));
        }
    }

    /// Sends 60 segments of 100 bytes, of which each takes its time at 1,000 bytes a second, or a
    /// little `less`, while a lower rate is set in between each time.
    fn sends_in_step_with_lower_rates(less: u64) -> Result<(), String> {
        let mut side = WireObserver::default();
        let tell = |side: &mut WireObserver, at, bytes| {
            let rate = Some(Rate::from_bytes_per_sec(bytes));
            side.set_rate(at, rate, 100, Carrier::default());
        };
        (0..60).try_for_each(|nth| {
            let at = Instant::from_millis((100 - less) * nth);
            tell(&mut side, at, 1_000);
            side.on_sent(at, &header(200 + 100 * nth as u32, 10, 0), 100)?;
            tell(&mut side, at + Duration::from_millis(10), 600);
            Ok(())
        })
    }

    #[test]
    fn a_segment_takes_its_time_at_the_rate_at_which_it_left() {
        assert_eq!(sends_in_step_with_lower_rates(0), Ok(()));
        assert!(sends_in_step_with_lower_rates(10).is_err());
    }
}
