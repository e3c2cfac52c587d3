//! When to acknowledge: the policy, its decisions, and the contract that the rest of the stack reads.
//!
//! Nothing outside this room asks which policy runs. Loss recovery, RTO, rate measurement and
//! pacing read the [`AckContract`] instead.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// Which acknowledgement policy to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckKind {
    /// Every data segment at once (Linux TCP_QUICKACK).
    Every,
    /// Every `segments`-th full-sized segment, or when `timer` runs out (RFC 9293 §3.8.6.3).
    Delayed {
        /// Full-sized segments per acknowledgement: 1 to 255.
        segments: u8,
        /// Longest delay of an acknowledgement. RFC 9293 wants less than 500 ms.
        timer: Duration,
    },
}

impl AckKind {
    /// Default timer of delayed acknowledgements.
    pub const DEFAULT_TIMER: Duration = Duration::from_millis(40);

    /// `delayed:L` with the default timer.
    pub const fn delayed(segments: u8) -> Self {
        Self::Delayed { segments, timer: Self::DEFAULT_TIMER }
    }
}

impl Default for AckKind {
    fn default() -> Self {
        Self::delayed(2)
    }
}

impl fmt::Display for AckKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Every => f.write_str("every"),
            Self::Delayed { segments, timer } if timer == Self::DEFAULT_TIMER => write!(f, "delayed:{segments}"),
            Self::Delayed { segments, timer } => write!(f, "delayed:{segments},timer={}us", timer.as_micros()),
        }
    }
}

/// Text that is no acknowledgement policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownAckKind;

impl fmt::Display for UnknownAckKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown ack policy; one of: every, delayed:L (L from 1 to 255), delayed:L,timer=40ms")
    }
}

impl core::error::Error for UnknownAckKind {}

impl FromStr for AckKind {
    type Err = UnknownAckKind;

    fn from_str(_text: &str) -> Result<Self, Self::Err> {
        unimplemented!()
    }
}
