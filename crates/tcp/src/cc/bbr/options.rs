//! What can be chosen about BBR.

use core::time::Duration;

/// Settings of BBR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct BbrOptions {
    /// How fast it follows the path's bandwidth.
    pub profile: BbrProfile,
    /// How it looks for the RTT floor.
    pub probe_rtt: ProbeRttKind,
}

impl BbrOptions {
    /// What Linux does.
    pub const DEFAULT: Self = Self {
        profile: BbrProfile::Default,
        probe_rtt: ProbeRttKind::Full,
    };
}

/// How fast BBR follows the path's bandwidth: steadiness against agility.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum BbrProfile {
    /// Probes every eighth round trip and remembers ten (32 and 40 acknowledgement intervals of a
    /// peer that acknowledges four times a round trip).
    #[default]
    Default,
    /// Probes every fourth round trip and remembers five: for media whose encoder follows the rate.
    RealTime,
}

impl BbrProfile {
    /// Phases of the gain cycle, each about one RTT floor long.
    pub(super) const fn phases(self) -> usize {
        match self {
            Self::Default => 8,
            Self::RealTime => 4,
        }
    }

    /// Window of the bandwidth filter, rounds: one gain cycle and the time its effect takes to
    /// show.
    pub(super) const fn bandwidth_rounds(self) -> u64 {
        match self {
            Self::Default => 10,
            Self::RealTime => 5,
        }
    }
}

/// How BBR looks for the RTT floor once what it knows of it is old.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum ProbeRttKind {
    /// Every ten seconds, with four segments in flight.
    #[default]
    Full,
    /// Every two and a half seconds, at three quarters of the rate with no more than a
    /// bandwidth-delay product in flight: media goes on meanwhile.
    Mild,
}

impl ProbeRttKind {
    /// How old the RTT floor may become.
    pub(super) const fn min_rtt_window(self) -> Duration {
        match self {
            Self::Full => Duration::from_secs(10),
            Self::Mild => Duration::from_millis(2_500),
        }
    }

    /// Pacing gain of the probe.
    pub(super) const fn gain(self) -> f64 {
        match self {
            Self::Full => 1.0,
            Self::Mild => 0.75,
        }
    }
}
