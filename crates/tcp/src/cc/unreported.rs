//! Room in a window for what a sparse peer has not reported yet.
//!
//! What arrived since the peer's last acknowledgement counts as in flight at the sender, up to one interval's
//! worth, or several where acknowledgements get lost. A window of `W` bytes would then send only `W` in `RTT + T`, and respond to loss as on a longer
//! path. So the window in force is `W · (1 + T/SRTT)`: that sends `W` each RTT, as with dense
//! acknowledgements, and in the network there is no more than with those.

use core::time::Duration;

use super::MAX_WINDOW;

/// What is known of the peer's reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unreported {
    /// How often the peer's acknowledgements arrive; zero for legacy acknowledgements.
    gap: Duration,
    srtt: Duration,
}

impl Unreported {
    pub(super) fn on_feedback_gap(&mut self, gap: Duration) {
        self.gap = gap;
    }

    pub(super) fn on_ack(&mut self, srtt: Duration) {
        if !srtt.is_zero() {
            self.srtt = srtt;
        }
    }

    /// `1 + T/SRTT`; never more than two, as an acknowledgement comes each round trip at least.
    pub(super) fn ratio(&self) -> f64 {
        if self.gap.is_zero() || self.srtt.is_zero() {
            return 1.0;
        }
        1.0 + (self.gap.as_secs_f64() / self.srtt.as_secs_f64()).min(1.0)
    }

    /// The window in force for a controller's window.
    pub(super) fn widen(&self, window: u64) -> u64 {
        if self.gap.is_zero() {
            return window;
        }
        ((window as f64 * self.ratio()) as u64).min(MAX_WINDOW)
    }

    /// The part of what counts as in flight that may be in the network.
    pub(super) fn narrow(&self, in_flight: u64) -> u64 {
        if self.gap.is_zero() {
            return in_flight;
        }
        (in_flight as f64 / self.ratio()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_a_quarter_makes_the_window_a_quarter_wider() {
        let mut unreported = Unreported::default();
        unreported.on_ack(Duration::from_millis(40));
        assert_eq!(unreported.widen(100_001), 100_001);
        unreported.on_feedback_gap(Duration::from_millis(10));
        assert_eq!(unreported.widen(100_000), 125_000);
        assert_eq!(unreported.narrow(125_000), 100_000);
        // A queue makes the interval a smaller part of the round trip.
        unreported.on_ack(Duration::from_millis(100));
        assert_eq!(unreported.widen(100_000), 110_000);
        unreported.on_feedback_gap(Duration::from_secs(5));
        assert_eq!(unreported.widen(100_000), 200_000);
        assert_eq!(unreported.widen(u64::MAX), MAX_WINDOW);
    }
}
