//! The pacing rate, and what it means for windows: senders and receivers work in bursts, so a
//! window needs room for some of them beyond the bandwidth-delay product.

use core::time::Duration;

use tack_base::Rate;

use super::startup::HIGH_GAIN;

/// Part of the bandwidth that is used, so that a standing queue drains.
const MARGIN: f64 = 0.99;
/// RTT assumed before the first sample.
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Below this rate bursts are single segments.
const LOW_RATE: Rate = Rate::from_bits_per_sec(1_200_000);
/// A burst is what is sent within this time, about a millisecond, …
const BURST_INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 1024);
/// … up to this many bytes, the largest segment train that offload engines take, …
const MAX_BURST: u64 = 65_535;
/// … and this many segments.
const MAX_BURST_SEGMENTS: u64 = 127;

/// The rate in force.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacing {
    rate: Rate,
    /// The initial rate came from a measured RTT.
    seen_rtt: bool,
}

impl Pacing {
    /// The rate that sends the initial window in one RTT, times the gain of startup.
    pub(super) fn new(window: u64, rtt: Option<Duration>, mss: u64) -> Self {
        let mut pacing = Self {
            rate: Rate::ZERO,
            seen_rtt: false,
        };
        pacing.initialize(window, rtt, mss);
        pacing
    }

    fn initialize(&mut self, window: u64, rtt: Option<Duration>, mss: u64) {
        self.seen_rtt = rtt.is_some();
        let rtt = rtt.unwrap_or(NOMINAL_RTT).max(Duration::from_micros(1));
        self.rate = paced(Rate::from_bytes_over(window, rtt), HIGH_GAIN, mss);
    }

    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    /// A smoothed RTT is known: replaces a rate that was guessed.
    pub(super) fn on_srtt(&mut self, window: u64, srtt: Duration, mss: u64) {
        if !self.seen_rtt && !srtt.is_zero() {
            self.initialize(window, Some(srtt), mss);
        }
    }

    /// Follows the bandwidth estimate, down to `floor`; until the pipe is full, upwards only.
    pub(super) fn update(&mut self, bandwidth: Rate, gain: f64, full: bool, mss: u64, floor: Rate) {
        let rate = paced(bandwidth, gain, mss).max(floor);
        if full || rate > self.rate {
            self.rate = rate;
        }
    }

    /// Bytes of one burst at this rate, whole segments.
    pub(super) fn burst(&self, mss: u64) -> u64 {
        let least = if self.rate < LOW_RATE { 1 } else { 2 };
        let segments = self.rate.bytes_in(BURST_INTERVAL).min(MAX_BURST) / mss;
        segments.max(least).min(MAX_BURST_SEGMENTS) * mss
    }
}

/// `gain` times the bandwidth less the margin; at least a segment a second, so that a flow with a
/// bandwidth sample near zero can still take a better one.
fn paced(bandwidth: Rate, gain: f64, mss: u64) -> Rate {
    bandwidth
        .scale(gain * MARGIN)
        .max(Rate::from_bytes_per_sec(mss))
}
