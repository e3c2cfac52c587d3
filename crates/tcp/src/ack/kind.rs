//! Naming an acknowledgement policy: the choice itself and its text form.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use tack_base::units::{UnitError, parse_duration, show_duration};

/// Which acknowledgement policy to run.
///
/// As text: `every`, `delayed:L` (L from 1 to 255) or `delayed:L,timer=40ms`. `Display` writes the shortest form that
/// reads back as the same value.
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
        Self::Delayed {
            segments,
            timer: Self::DEFAULT_TIMER,
        }
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
            Self::Delayed { segments, timer } => {
                write!(f, "delayed:{segments}")?;
                if timer == Self::DEFAULT_TIMER {
                    Ok(())
                } else {
                    write!(f, ",timer={}", show_duration(timer))
                }
            }
        }
    }
}

/// Why a text names no acknowledgement policy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseAckKindError {
    /// No policy has this name.
    #[error(
        "unknown ack policy `{0}`; one of: every, delayed:L (L from 1 to 255), delayed:L,timer=40ms"
    )]
    UnknownPolicy(String),
    /// What follows `delayed:` is no number of segments.
    #[error("`{0}` is no number of segments for delayed; from 1 to 255 is meant, as in delayed:2")]
    Segments(String),
    /// The policy has no such setting.
    #[error("unknown setting `{setting}` of ack policy {policy}; {allowed}")]
    UnknownSetting {
        /// The policy.
        policy: &'static str,
        /// What was given.
        setting: String,
        /// What the policy understands.
        allowed: &'static str,
    },
    /// The timer is no duration.
    #[error("timer of delayed: {0}")]
    Timer(#[from] UnitError),
    /// RFC 9293 §3.8.6.3 (MUST-40) wants less than 0.5 s.
    #[error("`{0}` is no timer for delayed; above 0 and below 500ms is meant, as in timer=40ms")]
    TimerRange(String),
}

impl FromStr for AckKind {
    type Err = ParseAckKindError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(',');
        let head = parts.next().unwrap_or_default();
        match head.split_once(':') {
            None if head == "every" => match parts.next() {
                None => Ok(Self::Every),
                Some(setting) => Err(ParseAckKindError::UnknownSetting {
                    policy: "every",
                    setting: setting.to_string(),
                    allowed: "it has none",
                }),
            },
            // The bare name is a plausible slip: say what is missing instead of "unknown".
            None if head == "delayed" => Err(ParseAckKindError::Segments(String::new())),
            Some(("delayed", segments)) => {
                let segments = match segments.parse::<u8>() {
                    Ok(count) if count > 0 => count,
                    _ => return Err(ParseAckKindError::Segments(segments.to_string())),
                };
                let mut timer = Self::DEFAULT_TIMER;
                for setting in parts {
                    let Some(("timer", value)) = setting.split_once('=') else {
                        return Err(ParseAckKindError::UnknownSetting {
                            policy: "delayed",
                            setting: setting.to_string(),
                            allowed: "its only one is timer, as in timer=40ms",
                        });
                    };
                    timer = parse_duration(value)?;
                    if timer.is_zero() || timer >= Duration::from_millis(500) {
                        return Err(ParseAckKindError::TimerRange(value.to_string()));
                    }
                }
                Ok(Self::Delayed { segments, timer })
            }
            _ => Err(ParseAckKindError::UnknownPolicy(text.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_back_as_the_same_policy() {
        for kind in [
            AckKind::Every,
            AckKind::delayed(1),
            AckKind::delayed(16),
            AckKind::delayed(255),
            AckKind::Delayed {
                segments: 4,
                timer: Duration::from_millis(5),
            },
            AckKind::Delayed {
                segments: 4,
                timer: Duration::from_micros(1_500),
            },
            AckKind::Delayed {
                segments: 4,
                timer: Duration::from_nanos(1_001),
            },
        ] {
            assert_eq!(kind.to_string().parse(), Ok(kind), "{kind}");
        }
        assert_eq!("delayed:8,timer=40ms".parse(), Ok(AckKind::delayed(8)));
        assert_eq!(AckKind::default().to_string(), "delayed:2");
    }

    #[test]
    fn errors_name_what_is_wrong_and_what_would_be_right() {
        for (text, wrong, right) in [
            ("", "``", "one of: every"),
            ("Every", "`Every`", "one of: every"),
            ("sometimes:2", "`sometimes:2`", "delayed:L"),
            ("every,timer=1ms", "`timer=1ms`", "it has none"),
            ("delayed", "``", "1 to 255"),
            ("delayed:", "``", "1 to 255"),
            ("delayed:0", "`0`", "1 to 255"),
            ("delayed:256", "`256`", "1 to 255"),
            ("delayed:-1", "`-1`", "1 to 255"),
            ("delayed:2,", "``", "timer=40ms"),
            ("delayed:2,delay=4ms", "`delay=4ms`", "timer=40ms"),
            ("delayed:2,timer=40", "\"40\"", "200ms"),
            ("delayed:2,timer=0ms", "`0ms`", "above 0"),
            ("delayed:2,timer=500ms", "`500ms`", "below 500ms"),
            (
                "delayed:2,timer=99999999999999999999ms",
                "99999999999999999999ms",
                "too large",
            ),
        ] {
            let error = text.parse::<AckKind>().expect_err(text).to_string();
            assert!(
                error.contains(wrong) && error.contains(right),
                "{text}: {error}"
            );
        }
    }
}
