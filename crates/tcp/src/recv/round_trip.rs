//! The round trip as the receiver of data knows it: the measure of its window.
//!
//! Best is what the sender says, for it measures the whole round trip, queues included. What it
//! says is two round trips old: one passed before it had the sample, and its statement waits in the
//! queue that it speaks of. What the queue gained since then shows in the one-way delay of each
//! stamped segment, and is added. What it lost is taken off where that is more than half of what
//! the sender said. Echoed timestamps (RFC 7323) say the same where both sides agreed on them.
//! Without either there is the handshake, which saw an empty path, if it gave a sample at all; and
//! last the time in which a window's worth arrives, which is never shorter than a round trip (as
//! Linux' `tcp_rcv_rtt_measure`).

use core::time::Duration;

use tack_base::filter::WindowedMin;
use tack_base::time::nanos;
use tack_base::{Instant, StreamOffset};

use super::window::RoundTrip;

/// What a sender may claim at most.
const LONGEST: Duration = Duration::from_secs(10);

/// For how long the sender keeps its shortest round trip (TACK §4.4), and this side the shortest
/// delay.
const MIN_WINDOW: Duration = Duration::from_secs(10);

/// What the sender says of its round trips.
#[derive(Clone, Copy, Debug)]
struct Stated {
    /// The smoothed one.
    smoothed: Duration,
    /// The shortest one.
    shortest: Duration,
    /// The smoothed relative delay as the statement arrived, in 1/8 microseconds.
    delay: i64,
}

/// One-way delays from the sender, up to the unknown difference between the clocks.
#[derive(Debug)]
struct Delays {
    /// Delay of the first segment, microseconds modulo 2^32: all others are compared to it.
    origin: u32,
    /// The newest departure, microseconds modulo 2^32.
    newest: u32,
    /// Smoothed relative delay in 1/8 microseconds.
    smoothed: i64,
    /// The shortest relative delay, microseconds.
    shortest: WindowedMin<i64>,
}

impl Delays {
    /// By how much the delay is above the shortest.
    fn rise(&self) -> Duration {
        let rise = self
            .shortest
            .get()
            .map_or(0, |shortest| self.smoothed / 8 - shortest);
        Duration::from_micros(u64::try_from(rise).unwrap_or(0))
    }

    /// From now on the shortest delay is that of `rise` ago.
    fn set_rise(&mut self, now: Instant, rise: Duration) {
        let rise = i64::try_from(rise.as_micros()).unwrap_or(i64::MAX);
        let shortest = (self.smoothed / 8).saturating_sub(rise);
        self.shortest.reset(now.as_nanos(), shortest);
    }
}

/// Estimates of one connection, by source.
#[derive(Debug, Default)]
pub(crate) struct ReceiverRoundTrip {
    stated: Option<Stated>,
    /// From segments that carry their departure.
    delays: Option<Delays>,
    /// Smoothed age of echoed timestamps.
    echoed: Option<Duration>,
    /// Echo that was measured last: each is measured once.
    last_echo: u32,
    handshake: Option<Duration>,
    /// Shortest and newest time in which a window's worth arrived.
    by_window: Option<(Duration, Duration)>,
    /// The measurement at work: when it began, and the position that ends it.
    window: Option<(Instant, StreamOffset)>,
}

impl ReceiverRoundTrip {
    /// The sender states its smoothed and its shortest round trip.
    pub(crate) fn on_stated(&mut self, now: Instant, smoothed: Duration, shortest: Duration) {
        if smoothed.is_zero() {
            return;
        }
        let smoothed = smoothed.min(LONGEST);
        let shortest = shortest.min(smoothed);
        let delay = self.delays.as_ref().map_or(0, |delays| delays.smoothed);
        let known = self.stated.replace(Stated {
            smoothed,
            shortest,
            delay,
        });
        // The path became longer, or the shortest round trip is forgotten: the shortest delay
        // belongs to it and goes too.
        if let Some(known) = known
            && shortest > known.shortest
            && let Some(delays) = &mut self.delays
        {
            delays.set_rise(now, smoothed - shortest);
        }
    }

    /// A segment that left at `departure` (microseconds on the sender's clock) arrived.
    #[inline]
    pub(crate) fn on_departure(&mut self, arrived: Instant, departure: u32) {
        let raw = (arrived.as_micros() as u32).wrapping_sub(departure);
        let delays = self.delays.get_or_insert_with(|| Delays {
            origin: raw,
            newest: departure,
            smoothed: 0,
            shortest: WindowedMin::new(nanos(MIN_WINDOW)),
        });
        // A copy, or one that was overtaken, says nothing of the queue that newer ones have passed.
        let older = delays.newest.wrapping_sub(departure);
        if (1..LONGEST.as_micros() as u32).contains(&older) {
            return;
        }
        delays.newest = departure;
        let relative = i64::from(raw.wrapping_sub(delays.origin) as i32);
        delays.smoothed += relative - delays.smoothed / 8;
        delays.shortest.update(arrived.as_nanos(), relative);
    }

    /// Timestamps have taken the place of what the sender stated: that is of an earlier time.
    pub(crate) fn forget_stated(&mut self) {
        self.stated = None;
        self.delays = None;
    }

    /// The handshake measured a round trip.
    pub(crate) fn on_handshake(&mut self, round_trip: Duration) {
        self.handshake = Some(round_trip);
    }

    /// A full-sized segment echoes `echo`. True when that echo was not measured yet;
    /// [`Self::on_echo_age`] follows.
    pub(crate) fn is_new_echo(&mut self, echo: u32) -> bool {
        core::mem::replace(&mut self.last_echo, echo) != echo
    }

    /// The echoed timestamp is so old.
    pub(crate) fn on_echo_age(&mut self, age: Duration) {
        self.echoed = Some(self.echoed.map_or(age, |known| (known * 7 + age) / 8));
    }

    /// Everything below `next` is here; the sender may send up to `edge`.
    #[inline]
    pub(crate) fn on_arrival(&mut self, arrived: Instant, next: StreamOffset, edge: StreamOffset) {
        match self.window {
            Some((_, end)) if next < end => return,
            Some((since, _)) => {
                let took = arrived.saturating_since(since);
                let shortest = self.by_window.map_or(took, |(known, _)| known.min(took));
                self.by_window = Some((shortest, took));
            }
            None => {}
        }
        self.window = Some((arrived, edge.max(next + 1)));
    }

    /// The best estimate. `sending` is the smoothed round trip of what this side sends, where it
    /// sends.
    pub(crate) fn estimate(&self, sending: Option<Duration>) -> RoundTrip {
        let initial = self.handshake.or(sending);
        let stated = self.stated.map(|stated| {
            let Some(delays) = &self.delays else {
                return stated.smoothed;
            };
            // The queue drained, as in a pause. The sender says so once its round trip is half as
            // long, in a segment that may wait in a new queue.
            let fallen = (stated.delay - delays.smoothed) / 8;
            let fallen = Duration::from_micros(u64::try_from(fallen).unwrap_or(0));
            let has_drained = fallen > stated.smoothed / 2;
            let known = if has_drained {
                stated.smoothed.saturating_sub(fallen)
            } else {
                stated.smoothed
            };
            known.max(stated.shortest + delays.rise()).min(LONGEST)
        });
        match (stated, self.echoed, initial, self.by_window) {
            (Some(stated), ..) => RoundTrip::Measured(stated),
            (None, Some(echoed), ..) => RoundTrip::Measured(echoed),
            (None, None, Some(initial), _) => RoundTrip::Initial(initial),
            (None, None, None, Some((shortest, _))) => RoundTrip::Measured(shortest),
            (None, None, None, None) => RoundTrip::Initial(Duration::ZERO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_sender_knows_best_and_the_handshake_is_only_a_beginning() {
        let mut round_trip = ReceiverRoundTrip::default();
        assert_eq!(
            round_trip.estimate(Some(ms(7))),
            RoundTrip::Initial(ms(7)),
            "what this side sends measures the same path"
        );
        round_trip.on_handshake(ms(10));
        assert_eq!(round_trip.estimate(None), RoundTrip::Initial(ms(10)));
        round_trip.on_echo_age(ms(40));
        assert_eq!(round_trip.estimate(None), RoundTrip::Measured(ms(40)));
        let now = Instant::ZERO;
        round_trip.on_stated(now, ms(300), ms(10));
        round_trip.on_stated(now, Duration::ZERO, ms(10));
        assert_eq!(round_trip.estimate(None), RoundTrip::Measured(ms(300)));
        round_trip.on_stated(now, Duration::from_secs(3600), ms(10));
        assert_eq!(round_trip.estimate(None), RoundTrip::Measured(LONGEST));
    }

    /// Segments take 20 ms on a path of 40 ms that the sender stated; then a queue grows.
    #[test]
    fn a_queue_that_grows_shows_before_the_sender_can_say_so() {
        let mut round_trip = ReceiverRoundTrip::default();
        let offset = u32::MAX - 50_000;
        let segment = |round_trip: &mut ReceiverRoundTrip, at_ms: u64, took_ms: u64| {
            let departure = (at_ms as u32 * 1_000).wrapping_add(offset);
            round_trip.on_departure(Instant::from_millis(at_ms + took_ms), departure);
        };
        for at in 0..50 {
            segment(&mut round_trip, at, 20);
        }
        round_trip.on_stated(Instant::from_millis(70), ms(40), ms(40));
        assert_eq!(round_trip.estimate(None), RoundTrip::Measured(ms(40)));
        for at in 50..150 {
            segment(&mut round_trip, at, 80);
        }
        let RoundTrip::Measured(grown) = round_trip.estimate(None) else {
            panic!("the sender stated a round trip");
        };
        assert!((ms(99)..=ms(100)).contains(&grown), "{grown:?}");
        // The sender's shortest round trip expires in the queue: what the queue holds is not
        // counted twice.
        round_trip.on_stated(Instant::from_millis(240), ms(100), ms(98));
        let RoundTrip::Measured(stated) = round_trip.estimate(None) else {
            panic!("the sender stated a round trip");
        };
        assert!((ms(99)..=ms(101)).contains(&stated), "{stated:?}");
    }

    /// A queue of 500 ms has drained in a pause: segments take 20 ms as without it, and the sender
    /// has not said so yet. A fall that it would not state changes nothing.
    #[test]
    fn a_queue_that_drained_shows_before_the_sender_can_say_so() {
        let mut round_trip = ReceiverRoundTrip::default();
        let mut at_ms = 0;
        let mut segments = |round_trip: &mut ReceiverRoundTrip, took_ms: u64| {
            for _ in 0..100 {
                at_ms += 1;
                let arrived = Instant::from_millis(at_ms + took_ms);
                round_trip.on_departure(arrived, at_ms as u32 * 1_000);
            }
        };
        segments(&mut round_trip, 20);
        segments(&mut round_trip, 520);
        round_trip.on_stated(Instant::from_millis(720), ms(540), ms(40));
        for (took, least, most) in [
            (520, 539, 540),
            (320, 539, 540),
            (120, 140, 142),
            (20, 40, 42),
        ] {
            segments(&mut round_trip, took);
            let RoundTrip::Measured(known) = round_trip.estimate(None) else {
                panic!("the sender stated a round trip");
            };
            assert!((ms(least)..=ms(most)).contains(&known), "{took}: {known:?}");
        }
    }

    /// A sender limited by a window of 64 KiB: a window's worth takes a round trip. Larger windows
    /// later take longer.
    #[test]
    fn without_any_sample_a_windows_worth_measures_the_round_trip() {
        let mut round_trip = ReceiverRoundTrip::default();
        round_trip.on_arrival(
            Instant::from_millis(0),
            StreamOffset(1),
            StreamOffset(65_537),
        );
        round_trip.on_arrival(
            Instant::from_millis(150),
            StreamOffset(40_000),
            StreamOffset(105_536),
        );
        assert_eq!(
            round_trip.estimate(None),
            RoundTrip::Initial(Duration::ZERO)
        );
        round_trip.on_arrival(
            Instant::from_millis(200),
            StreamOffset(65_537),
            StreamOffset(131_073),
        );
        assert_eq!(round_trip.estimate(None), RoundTrip::Measured(ms(200)));
        round_trip.on_arrival(
            Instant::from_millis(600),
            StreamOffset(131_073),
            StreamOffset(400_000),
        );
        assert_eq!(round_trip.estimate(None), RoundTrip::Measured(ms(200)));
    }
}
