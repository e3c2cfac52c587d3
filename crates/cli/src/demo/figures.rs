//! What a transfer was, measured or in virtual time: the same figures, so that they can stand side
//! by side.

use serde::Serialize;
use tack_emulator::{AirSeconds, Lateness, Trust};
use tack_sim::report::{HackReport, WlanReport};

/// Figures of one transfer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// File bytes over the time from the first SYN to the last byte.
    pub(crate) goodput_bps: f64,
    /// The time from the first SYN to the last byte.
    pub(crate) seconds: f64,
    pub(crate) data_segments: u64,
    pub(crate) retransmitted_segments: u64,
    pub(crate) acks: u64,
    /// Shares of the time on the air.
    pub(crate) air: AirSeconds,
    pub(crate) collisions: u64,
    /// What became of the acknowledgements at the radios.
    #[serde(flatten)]
    pub(crate) radios: Radios,
    /// What kept the sender from sending faster.
    pub(crate) limited_by: String,
    pub(crate) series: Vec<Point>,
}

/// What the radios did with acknowledgements, those of the sender included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Radios {
    /// Dropped for newer ones by a filter.
    pub(crate) acks_filtered: u64,
    /// Delivered inside ACKs of the link.
    pub(crate) acks_in_link_acks: u64,
    /// Counters of TCP/HACK, where it is on.
    pub(crate) hack: Option<HackReport>,
}

impl From<&WlanReport> for Radios {
    fn from(wlan: &WlanReport) -> Self {
        Self {
            acks_filtered: wlan.acks_filtered,
            acks_in_link_acks: wlan.acks_in_link_acks,
            hack: wlan.hack,
        }
    }
}

/// The state after one interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    pub(crate) seconds: f64,
    pub(crate) goodput_bps: f64,
    /// Packets at the access point.
    pub(crate) queue: usize,
    /// Acknowledgements a second; not known in virtual time.
    pub(crate) acks_per_second: Option<f64>,
}

/// A transfer over sockets, and the same in virtual time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Outcome {
    /// What is compared, by its name in `--compare`.
    pub(crate) mechanism: String,
    /// Its acknowledgement policy.
    pub(crate) ack: String,
    /// The filter of the radios' queues.
    pub(crate) ack_filter: &'static str,
    /// The variant of TCP/HACK.
    pub(crate) hack: &'static str,
    pub(crate) seed: u64,
    pub(crate) measured: Figures,
    pub(crate) virtual_time: Figures,
    /// The received bytes are the sent ones.
    pub(crate) verified: bool,
    pub(crate) lateness: Lateness,
    pub(crate) trust: Trust,
}

impl Figures {
    pub(crate) fn acks_per_100(&self) -> f64 {
        self.acks as f64 * 100.0 / self.data_segments.max(1) as f64
    }

    /// Acknowledgements that took a frame: neither dropped by a filter nor carried in the link's
    /// own ACKs.
    pub(crate) fn acks_in_frames(&self) -> u64 {
        let others = self.radios.acks_filtered + self.radios.acks_in_link_acks;
        self.acks.saturating_sub(others)
    }
}

impl Outcome {
    /// How much more was measured than virtual time says, as a fraction.
    pub(crate) fn deviation(&self) -> f64 {
        self.measured.goodput_bps / self.virtual_time.goodput_bps.max(1.0) - 1.0
    }
}

/// Times that sending waited for something, seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    pub(crate) cwnd: f64,
    pub(crate) rwnd: f64,
    pub(crate) pacing: f64,
    pub(crate) app: f64,
}

/// The channel limits a transfer when it is idle for a smaller share of the time than this.
const BUSY: f64 = 0.1;

/// What limited a transfer with this airtime and these waits.
pub(crate) fn limit(air: &AirSeconds, waits: Waits) -> String {
    if air.idle < BUSY {
        return format!("the air (idle {:.0} % of the time)", air.idle * 100.0);
    }
    let reasons = [
        (waits.cwnd, "the congestion window"),
        (waits.rwnd, "the receiver's window"),
        (waits.pacing, "the pacing rate"),
        (waits.app, "the sending program"),
    ];
    let longest = reasons
        .iter()
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map_or("", |(_, name)| *name);
    format!("{longest} (air idle {:.0} %)", air.idle * 100.0)
}

/// The mean.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values {
        sum += value;
        count += 1;
    }
    sum / f64::from(count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_air_when_it_is_full_and_else_the_longest_wait() {
        let waits = Waits {
            rwnd: 0.3,
            pacing: 0.6,
            ..Waits::default()
        };
        let full = AirSeconds {
            data: 0.97,
            idle: 0.03,
            ..AirSeconds::default()
        };
        assert_eq!(limit(&full, waits), "the air (idle 3 % of the time)");
        let half = AirSeconds {
            data: 0.5,
            idle: 0.5,
            ..AirSeconds::default()
        };
        assert_eq!(limit(&half, waits), "the pacing rate (air idle 50 %)");
        assert_eq!(mean([1.0, 3.0].into_iter()), 2.0);
        assert_eq!(mean([].into_iter()), 0.0);
    }
}
