//! Settings that the tests share.

use std::time::Duration;

use tack_tcp::config::Carrier;
use tack_tcp::{AckKind, Algorithm, Config};

/// NewReno, every segment acknowledged, and a carrier so coarse that pacing never holds anything
/// back: what leaves is decided by windows and timers alone. All options offered.
pub(crate) fn unpaced() -> Config {
    Config {
        ack: AckKind::Every,
        congestion: Algorithm::NewReno,
        carrier: Carrier {
            timer_granularity: Duration::from_secs(1),
            max_batch: 64,
            overhead: 20,
        },
        ..Config::default()
    }
}

/// [`unpaced`] without any option or ECN: what RFC 9293 has on its own.
pub(crate) fn plain() -> Config {
    Config {
        timestamps: false,
        sack: false,
        window_scaling: false,
        ecn: false,
        ..unpaced()
    }
}

/// [`plain`] with SACK.
pub(crate) fn with_sack() -> Config {
    Config {
        sack: true,
        ..plain()
    }
}

/// [`plain`] with timestamps.
pub(crate) fn with_timestamps() -> Config {
    Config {
        timestamps: true,
        ..plain()
    }
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
