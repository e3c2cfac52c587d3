//! The round trip as the receiver of data knows it: the measure of its window.
//!
//! Best is what the sender says, for it measures the round trip as it is now, queues included. Echoed timestamps
//! (RFC 7323) say the same where both sides agreed on them. Without either there is the handshake, which saw
//! an empty path, if it gave a sample at all; and last the time in which a window's worth arrives, which is never
//! shorter than a round trip (as Linux' `tcp_rcv_rtt_measure`).

use core::time::Duration;

use tack_base::Instant;

use super::window::RoundTrip;

/// What a sender may claim at most.
const LONGEST: Duration = Duration::from_secs(10);

/// Estimates of one connection, by source.
#[derive(Debug, Default)]
pub(crate) struct ReceiverRoundTrip {
    /// The sender's smoothed round trip, as it last said.
    stated: Option<Duration>,
    /// Smoothed age of echoed timestamps.
    echoed: Option<Duration>,
    /// Echo that was measured last: each is measured once.
    last_echo: u32,
    handshake: Option<Duration>,
    /// Shortest and newest time in which a window's worth arrived.
    by_window: Option<(Duration, Duration)>,
    /// The measurement at work: when it began, and the position that ends it.
    window: Option<(Instant, u64)>,
}

impl ReceiverRoundTrip {
    /// The sender states its smoothed round trip.
    pub(crate) fn on_stated(&mut self, round_trip: Duration) {
        if !round_trip.is_zero() {
            self.stated = Some(round_trip.min(LONGEST));
        }
    }

    /// The handshake measured a round trip.
    pub(crate) fn on_handshake(&mut self, round_trip: Duration) {
        self.handshake = Some(round_trip);
    }

    /// A full-sized segment echoes `echo`. True when that echo was not measured yet; [`Self::on_echo_age`] follows.
    pub(crate) fn is_new_echo(&mut self, echo: u32) -> bool {
        core::mem::replace(&mut self.last_echo, echo) != echo
    }

    /// The echoed timestamp is so old.
    pub(crate) fn on_echo_age(&mut self, age: Duration) {
        self.echoed = Some(self.echoed.map_or(age, |known| (known * 7 + age) / 8));
    }

    /// Everything below `next` is here; the sender may send up to `edge`.
    #[inline]
    pub(crate) fn on_arrival(&mut self, arrived: Instant, next: u64, edge: u64) {
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

    /// The best estimate. `sending` is the smoothed round trip of what this side sends, where it sends.
    pub(crate) fn estimate(&self, sending: Option<Duration>) -> RoundTrip {
        let initial = self.handshake.or(sending);
        match (self.stated, self.echoed, initial, self.by_window) {
            // What the sender stated is a round trip old. A sender that the window limits fills it each round trip; another
            // takes more than two, as the window has room for twice what it sends.
            (Some(stated), _, _, Some((_, newest))) if newest < stated * 7 / 4 => {
                RoundTrip::Measured(newest.max(stated))
            }
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
        round_trip.on_stated(ms(300));
        round_trip.on_stated(Duration::ZERO);
        assert_eq!(round_trip.estimate(None), RoundTrip::Measured(ms(300)));
        round_trip.on_stated(Duration::from_secs(3600));
        assert_eq!(round_trip.estimate(None), RoundTrip::Measured(LONGEST));
    }

    #[test]
    fn a_window_that_takes_longer_to_fill_tells_sooner_than_the_sender() {
        let filled_in = |millis| {
            let mut round_trip = ReceiverRoundTrip::default();
            round_trip.on_stated(ms(100));
            round_trip.on_arrival(Instant::from_millis(0), 1, 65_537);
            round_trip.on_arrival(Instant::from_millis(millis), 65_537, 131_073);
            round_trip.estimate(None)
        };
        assert_eq!(filled_in(160), RoundTrip::Measured(ms(160)));
        assert_eq!(filled_in(60), RoundTrip::Measured(ms(100)));
        let unlimited = filled_in(200);
        assert_eq!(unlimited, RoundTrip::Measured(ms(100)));
    }

    /// A sender limited by a window of 64 KiB: a window's worth takes a round trip. Larger windows later take longer.
    #[test]
    fn without_any_sample_a_windows_worth_measures_the_round_trip() {
        let mut round_trip = ReceiverRoundTrip::default();
        round_trip.on_arrival(Instant::from_millis(0), 1, 65_537);
        round_trip.on_arrival(Instant::from_millis(150), 40_000, 105_536);
        assert_eq!(
            round_trip.estimate(None),
            RoundTrip::Initial(Duration::ZERO)
        );
        round_trip.on_arrival(Instant::from_millis(200), 65_537, 131_073);
        assert_eq!(round_trip.estimate(None), RoundTrip::Measured(ms(200)));
        round_trip.on_arrival(Instant::from_millis(600), 131_073, 400_000);
        assert_eq!(round_trip.estimate(None), RoundTrip::Measured(ms(200)));
    }
}
