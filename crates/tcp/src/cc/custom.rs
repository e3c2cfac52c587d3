//! A controller of the application: how connections get it, and which of its answers they believe.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use tack_base::{Instant, Rate};

use super::{
    Ack, Cause, Congestion, CongestionController, Init, MAX_WINDOW, Metrics, RecoveryShaping,
    SendToken, Sent,
};

/// Makes the congestion controller of each connection, in place of [`Algorithm`](super::Algorithm).
///
/// Two factories are equal when one is a clone of the other.
#[derive(Clone)]
pub struct ControllerFactory {
    name: Arc<str>,
    make: Arc<Make>,
}

type Make = dyn Fn(&Init) -> Box<dyn CongestionController> + Send + Sync;

impl ControllerFactory {
    /// A factory of controllers that reports call `name`. `make` must not block. It is called twice
    /// for each connection: when the connection is made, and once the handshake told segment
    /// size and round trip. The first controller sees no data.
    pub fn new<C: CongestionController + 'static>(
        name: impl Into<String>,
        make: impl Fn(&Init) -> C + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into().into(),
            make: Arc::new(move |init| Box::new(make(init))),
        }
    }

    /// What reports call the controller.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn build(&self, init: &Init) -> Box<dyn CongestionController> {
        Box::new(Bounded {
            controller: (self.make)(init),
            mss: init.mss,
        })
    }
}

impl fmt::Debug for ControllerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ControllerFactory")
            .field(&self.name)
            .finish()
    }
}

impl PartialEq for ControllerFactory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.make, &other.make)
    }
}

/// Pacing gains that are believed: outside of them nothing would leave for long, or no pacing were
/// left.
const GAINS: (f64, f64) = (0.1, 10.0);
/// Gain of a controller whose own is not a number: that of Linux after slow start.
const USUAL_GAIN: f64 = 1.2;

/// A foreign controller whose answers stay within what the sender can work with.
#[derive(Debug)]
struct Bounded {
    controller: Box<dyn CongestionController>,
    mss: u64,
}

impl CongestionController for Bounded {
    fn on_send(&mut self, sent: &Sent) -> SendToken {
        self.controller.on_send(sent)
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.controller.on_ack(ack);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.controller.on_congestion(congestion);
    }

    fn on_recovered(&mut self, now: Instant) {
        self.controller.on_recovered(now);
    }

    fn on_spurious(&mut self, now: Instant, cause: Cause) {
        self.controller.on_spurious(now, cause);
    }

    fn on_false_marks(&mut self, now: Instant, window: u64) {
        self.controller.on_false_marks(now, window);
    }

    fn on_idle_restart(&mut self, now: Instant, idle: Duration) {
        self.controller.on_idle_restart(now, idle);
    }

    fn on_mss(&mut self, mss: u64) {
        self.mss = mss;
        self.controller.on_mss(mss);
    }

    fn on_feedback_interval(&mut self, interval: Duration) {
        self.controller.on_feedback_interval(interval);
    }

    fn on_feedback_threshold(&mut self, segments: u16) {
        self.controller.on_feedback_threshold(segments);
    }

    fn on_feedback_gap(&mut self, gap: Duration) {
        self.controller.on_feedback_gap(gap);
    }

    fn cwnd(&self) -> u64 {
        self.controller.cwnd().clamp(self.mss, MAX_WINDOW)
    }

    fn ssthresh(&self) -> u64 {
        self.controller.ssthresh()
    }

    fn in_slow_start(&self) -> bool {
        self.controller.in_slow_start()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        // Below a segment a second the connection would seem to hang; a rate of zero means no
        // pacing.
        self.controller
            .pacing_rate()
            .filter(|rate| !rate.is_zero())
            .map(|rate| rate.max(Rate::from_bytes_per_sec(self.mss)))
    }

    fn pacing_gain(&self) -> f64 {
        let gain = self.controller.pacing_gain();
        if gain.is_nan() {
            USUAL_GAIN
        } else {
            gain.clamp(GAINS.0, GAINS.1)
        }
    }

    fn recovery_shaping(&self) -> RecoveryShaping {
        self.controller.recovery_shaping()
    }

    fn responds_to_ecn(&self) -> bool {
        self.controller.responds_to_ecn()
    }

    fn metrics(&self) -> Metrics {
        self.controller.metrics()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Absurd {
        cwnd: u64,
        rate: Option<Rate>,
        gain: f64,
    }

    impl CongestionController for Absurd {
        fn on_ack(&mut self, _ack: &Ack) {}
        fn on_congestion(&mut self, _congestion: &Congestion) {}
        fn on_mss(&mut self, _mss: u64) {}
        fn cwnd(&self) -> u64 {
            self.cwnd
        }
        fn pacing_rate(&self) -> Option<Rate> {
            self.rate
        }
        fn pacing_gain(&self) -> f64 {
            self.gain
        }
        fn metrics(&self) -> Metrics {
            Metrics::default()
        }
    }

    fn bounded(cwnd: u64, rate: Option<Rate>, gain: f64) -> Box<dyn CongestionController> {
        let factory = ControllerFactory::new("absurd", move |_: &Init| Absurd { cwnd, rate, gain });
        factory.build(&Init::new(Instant::ZERO, 1000, 10_000))
    }

    #[test]
    fn a_window_is_at_least_a_segment_and_never_overflows() {
        assert_eq!(bounded(0, None, 1.0).cwnd(), 1000);
        assert_eq!(bounded(u64::MAX, None, 1.0).cwnd(), MAX_WINDOW);
        let mut controller = bounded(0, None, 1.0);
        controller.on_mss(500);
        assert_eq!(controller.cwnd(), 500);
    }

    #[test]
    fn a_pacing_rate_lets_a_segment_leave_each_second() {
        let crawl = Some(Rate::from_bytes_per_sec(1));
        assert_eq!(
            bounded(5000, crawl, 1.0).pacing_rate(),
            Some(Rate::from_bytes_per_sec(1000))
        );
        assert_eq!(bounded(5000, Some(Rate::ZERO), 1.0).pacing_rate(), None);
    }

    #[test]
    fn gains_are_finite() {
        for (gain, believed) in [
            (f64::NAN, USUAL_GAIN),
            (f64::INFINITY, 10.0),
            (-1.0, 0.1),
            (1.25, 1.25),
        ] {
            let in_force = bounded(5000, None, gain).pacing_gain();
            assert!((in_force - believed).abs() < 1e-9, "{gain}: {in_force}");
        }
    }
}
