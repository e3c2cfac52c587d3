//! Room in a window for what a sparse peer has not reported yet.
//!
//! What arrived since the peer's last acknowledgement counts as in flight at the sender, up to one
//! interval's worth, or several where acknowledgements get lost. A window of `W` bytes would then
//! send only `W` in `RTT + T`, and respond to loss as on a longer path. So the window in force is
//! `W · (1 + T/SRTT)`: that sends `W` each RTT, as with dense acknowledgements, and in the network
//! there is no more than with those.

use core::time::Duration;

use tack_base::{Instant, Rate, StreamOffset};

use super::{Ack, Congestion, MAX_WINDOW};

/// What is known of the peer's reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unreported {
    interval: Duration,
    /// Full-sized segments that one waits for, however long that takes.
    segments: u16,
    /// How often they arrive, as some get lost.
    gap: Duration,
    srtt: Duration,
    /// How fast data arrives, as last measured.
    rate: Option<Rate>,
    /// The largest flight of late, and when it was that.
    peak: u64,
    peak_at: Instant,
    /// End of what was sent in slow start. The peer hears of the end of slow start half a round
    /// trip later, and reports densely until then. Until this position is acknowledged the window
    /// has no room for an interval, which would go into the queue that ended slow start.
    dense_until: Option<StreamOffset>,
    room: Room,
}

/// What follows from the fields above. It changes with acknowledgements, and is asked for several
/// times for each segment.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    /// `T/SRTT`, at most 1; 0 while either is unknown.
    share: f64,
    /// What a regular interval carries: bytes where the rate is known, else a part of the window.
    regular: Option<f64>,
    part: f64,
}

impl Unreported {
    pub(super) fn on_feedback_interval(&mut self, interval: Duration) {
        self.interval = interval;
        // Until told otherwise.
        self.gap = interval;
        self.measure();
    }

    /// The regular interval between the peer's acknowledgements; zero for legacy ones.
    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    pub(super) fn on_feedback_threshold(&mut self, segments: u16) {
        self.segments = segments;
    }

    pub(super) fn on_feedback_gap(&mut self, gap: Duration) {
        self.gap = gap;
        self.measure();
    }

    /// An acknowledgement arrived: what was in flight before it was as much as there was since the
    /// last one. `slow_start` tells whether the peer is to report densely.
    pub(super) fn on_ack(&mut self, ack: &Ack, slow_start: bool) {
        if !ack.srtt.is_zero() {
            self.srtt = ack.srtt;
        }
        if let Some(sample) = ack.rate {
            self.rate = Some(sample.delivery_rate);
        }
        if slow_start {
            self.dense_until = Some(ack.snd_nxt);
        } else if self.dense_until.is_some_and(|end| ack.snd_una >= end) {
            self.dense_until = None;
        }
        self.measure();
        if ack.prior_in_flight >= self.peak || !self.is_recent(ack.now) {
            self.peak = ack.prior_in_flight;
            self.peak_at = ack.now;
        }
    }

    fn measure(&mut self) {
        if self.gap.is_zero() || self.srtt.is_zero() {
            self.room = Room::default();
            return;
        }
        let srtt = self.srtt.as_secs_f64();
        self.room = Room {
            share: (self.gap.as_secs_f64() / srtt).min(1.0),
            regular: self.rate.map(|rate| rate.bytes_in(self.interval) as f64),
            part: self.interval.as_secs_f64() / srtt,
        };
    }

    /// The peak is from the acknowledgements since the last regular one, or that one's.
    fn is_recent(&self, now: Instant) -> bool {
        now.saturating_since(self.peak_at) <= self.gap
    }

    /// `1 + T/SRTT` for a controller's window; never more than two, as an acknowledgement comes
    /// each round trip at least. One where an interval of the window carries less than the
    /// segments that the peer waits for: it counts those instead, and its acknowledgements
    /// follow the data.
    pub(super) fn ratio(&self, window: u64, mss: u64) -> f64 {
        let Room {
            share,
            regular,
            part,
        } = self.room;
        let regular = regular.unwrap_or(window as f64 * part);
        if regular < f64::from(self.segments) * mss as f64 || self.dense_until.is_some() {
            return 1.0;
        }
        1.0 + share
    }

    /// The window in force for a controller's window.
    pub(super) fn widen(&self, window: u64, mss: u64) -> u64 {
        if self.gap.is_zero() {
            return window;
        }
        ((window as f64 * self.ratio(window, mss)) as u64).min(MAX_WINDOW)
    }

    /// What a window is reduced from in congestion avoidance: all of it where it was in use (RFC
    /// 9438 §4.6 and §5.8), else the part that was. FlightSize alone would be many windows
    /// after a long recovery, and no reduction at all.
    pub(super) fn used(&self, congestion: &Congestion, window: u64, mss: u64) -> u64 {
        if congestion.cwnd_limited {
            return window;
        }
        let ratio = self.ratio(window, mss);
        window.min(self.narrow(congestion.prior_in_flight, ratio, congestion.now))
    }

    /// The part of what counts as in flight at `now` that may be in the network. A loss is told at
    /// once, often just after an acknowledgement that freed a good part of the window, which
    /// leaves only by and by: the flight is that before it.
    fn narrow(&self, in_flight: u64, ratio: f64, now: Instant) -> u64 {
        if self.gap.is_zero() {
            return in_flight;
        }
        let flight = if self.is_recent(now) {
            in_flight.max(self.peak)
        } else {
            in_flight
        };
        (flight as f64 / ratio) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_events::{congestion, plain_ack};
    use super::super::{Cause, RateSample};
    use super::*;

    const MSS: u64 = 1_000;

    fn ack(ms: u64, srtt_ms: u64, prior_in_flight: u64) -> Ack {
        Ack {
            srtt: Duration::from_millis(srtt_ms),
            prior_in_flight,
            ..plain_ack(Instant::from_millis(ms), 1, 1, 1)
        }
    }

    #[test]
    fn an_interval_of_a_quarter_makes_the_window_a_quarter_wider() {
        let mut unreported = Unreported::default();
        unreported.on_ack(&ack(0, 40, 0), false);
        assert_eq!(unreported.widen(100_001, MSS), 100_001);
        unreported.on_feedback_gap(Duration::from_millis(10));
        assert_eq!(unreported.widen(100_000, MSS), 125_000);
        assert_eq!(unreported.narrow(125_000, 1.25, Instant::ZERO), 100_000);
        // A queue makes the interval a smaller part of the round trip.
        unreported.on_ack(&ack(0, 100, 0), false);
        assert_eq!(unreported.widen(100_000, MSS), 110_000);
        unreported.on_feedback_gap(Duration::from_secs(5));
        assert_eq!(unreported.widen(100_000, MSS), 200_000);
        assert_eq!(unreported.widen(u64::MAX, MSS), MAX_WINDOW);
    }

    /// Slow start has dense reports, and what is in flight when it ends has them still.
    #[test]
    fn what_slow_start_sent_leaves_no_room_for_an_interval() {
        let mut unreported = Unreported::default();
        unreported.on_feedback_interval(Duration::from_millis(10));
        let acks = |una, nxt| Ack {
            snd_una: StreamOffset(una),
            snd_nxt: StreamOffset(nxt),
            ..ack(0, 40, 0)
        };
        for (slow_start, una, expected) in [
            (true, 1_000, 100_000),
            (false, 8_999, 100_000),
            (false, 9_000, 125_000),
            (false, 20_000, 125_000),
        ] {
            unreported.on_ack(&acks(una, una + 8_000), slow_start);
            assert_eq!(unreported.widen(100_000, MSS), expected, "{una}");
        }
    }

    #[test]
    fn where_segments_are_counted_the_window_has_no_room_for_an_interval() {
        let mut unreported = Unreported::default();
        unreported.on_ack(&ack(0, 40, 0), false);
        unreported.on_feedback_threshold(2);
        unreported.on_feedback_interval(Duration::from_millis(10));
        // A quarter of seven segments is less than two, that of eight is two.
        assert_eq!(unreported.widen(7 * MSS, MSS), 7 * MSS);
        assert_eq!(unreported.widen(8 * MSS, MSS), 10 * MSS);
    }

    #[test]
    fn what_arrives_decides_whether_segments_are_counted_not_a_round_trip_that_lags_behind_a_queue()
    {
        let mut unreported = Unreported::default();
        unreported.on_feedback_threshold(2);
        unreported.on_feedback_interval(Duration::from_millis(10));
        // Twelve segments in 40 ms would be three in an interval; what arrives is not two.
        let sample = |segments: u64| RateSample {
            delivered: MSS,
            interval: Duration::from_millis(10),
            delivery_rate: Rate::from_bytes_per_sec(segments * 100 * MSS),
            prior_delivered: 0,
            app_limited: false,
        };
        for (arriving, expected) in [(1, 12 * MSS), (2, 15 * MSS)] {
            let ack = Ack {
                rate: Some(sample(arriving)),
                ..ack(0, 40, 0)
            };
            unreported.on_ack(&ack, false);
            assert_eq!(unreported.widen(12 * MSS, MSS), expected, "{arriving}");
        }
    }

    #[test]
    fn a_window_in_use_is_reduced_itself_however_much_is_outstanding() {
        let unreported = Unreported::default();
        for (cwnd_limited, flight, expected) in [
            (true, 90, 10),
            (true, 3, 10),
            (false, 90, 10),
            (false, 3, 3),
        ] {
            let congestion = Congestion {
                cwnd_limited,
                ..congestion(Cause::Loss, flight * MSS, 0)
            };
            assert_eq!(
                unreported.used(&congestion, 10 * MSS, MSS),
                expected * MSS,
                "{cwnd_limited} {flight}"
            );
        }
    }

    #[test]
    fn the_flight_at_a_loss_is_that_before_the_last_regular_acknowledgement() {
        let mut unreported = Unreported::default();
        unreported.on_feedback_gap(Duration::from_millis(10));
        unreported.on_ack(&ack(100, 40, 125_000), false);
        // One that told of a loss, in the trough.
        unreported.on_ack(&ack(102, 40, 100_000), false);
        let at = Instant::from_millis;
        assert_eq!(unreported.narrow(101_000, 1.25, at(103)), 100_000);
        assert_eq!(unreported.narrow(50_000, 1.25, at(150)), 40_000);
        unreported.on_ack(&ack(150, 40, 75_000), false);
        assert_eq!(unreported.narrow(50_000, 1.25, at(151)), 60_000);
    }
}
