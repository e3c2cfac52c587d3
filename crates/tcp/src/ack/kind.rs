//! Naming an acknowledgement policy: the choice itself and its text form.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use tack_base::units::{UnitError, parse_duration, show_duration};

/// Which acknowledgement policy to run.
///
/// As text: `every`, `delayed:L` (L from 1 to 255), `delayed:L,timer=40ms`, or `tack` with settings
/// as in `tack:beta=4,l=2` (see [`TackParams`]). `Display` writes the shortest form that
/// reads back as the same value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
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
    /// TACK: few acknowledgements, instant ones on events, measuring at the receiver. Needs a peer
    /// that agrees; towards others, and after a fallback, `delayed:2` runs instead.
    Tack(TackParams),
}

/// Settings of TACK at the receiver of data.
///
/// As text after `tack:`, separated by commas: `l=2`, `beta=4`, `timer=40ms`, `rich=off`,
/// `iack=off`, `timing=sampled`, `percentile=0`, `settle=adaptive` or a fraction of RTTmin such as
/// `settle=0.25`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TackParams {
    /// L: full-sized segments per acknowledgement where counting decides. 1 (real time) to 255;
    /// default 2.
    pub segments: u8,
    /// beta: acknowledgements per RTTmin where time decides. 2 to 255; default 4.
    pub beta: u8,
    /// Longest wait of a remainder smaller than L segments. Default 40 ms, as delayed
    /// acknowledgements have it.
    pub timer: Duration,
    /// Lists grow with the loss on both paths. Off: one gap and one block (Q = 1). Default on.
    pub rich: bool,
    /// How losses are reported. Default at once; the others only to see what that buys.
    pub losses: LossReporting,
    /// How the sender gets its RTT. Default one-way timing.
    pub timing: Timing,
    /// Settling time of a gap before it counts as lost. Default adaptive.
    pub settle: Settle,
}

/// How the receiver reports losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LossReporting {
    /// An instant acknowledgement signals each loss, up to a limit where many get lost, and
    /// periodic ones list what was signalled (TACK §5.1).
    AtOnce,
    /// Periodic acknowledgements alone list them.
    Periodically,
    /// Not at all: no instant acknowledgement signals a loss, and periodic ones list only what was
    /// signalled. The sender is left to probes and timeouts, as in the paper's figure 5(a)
    /// without IACK.
    Never,
}

/// How an acknowledgement lets the sender measure the round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Timing {
    /// It names the segment at this percentile of one-way delay (0: the least) since the last one,
    /// and corrects for the time that it was held.
    OneWay {
        /// 0 to 100.
        percentile: u8,
    },
    /// It names the oldest segment since the last one, without correction, as delayed
    /// acknowledgements do.
    Sampled,
}

/// How long a skipped number may be late before it counts as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Settle {
    /// Nothing until reordering is seen, then as long as it was seen to last.
    Adaptive,
    /// This many thousandths of RTTmin: 0 to 1000.
    Fixed(u16),
}

impl Default for TackParams {
    fn default() -> Self {
        Self {
            segments: 2,
            beta: 4,
            timer: AckKind::DEFAULT_TIMER,
            rich: true,
            losses: LossReporting::AtOnce,
            timing: Timing::OneWay { percentile: 0 },
            settle: Settle::Adaptive,
        }
    }
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
    /// TACK: with a peer that does not know it, that is `delayed:2`.
    fn default() -> Self {
        Self::Tack(TackParams::default())
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
            Self::Tack(params) => params.fmt(f),
        }
    }
}

impl fmt::Display for TackParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tack")?;
        let default = Self::default();
        let mut separator = ':';
        let mut setting = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            let before = core::mem::replace(&mut separator, ',');
            write!(f, "{before}{text}")
        };
        if self.segments != default.segments {
            setting(f, format_args!("l={}", self.segments))?;
        }
        if self.beta != default.beta {
            setting(f, format_args!("beta={}", self.beta))?;
        }
        if self.timer != default.timer {
            setting(f, format_args!("timer={}", show_duration(self.timer)))?;
        }
        if !self.rich {
            setting(f, format_args!("rich=off"))?;
        }
        match self.losses {
            LossReporting::AtOnce => {}
            LossReporting::Periodically => setting(f, format_args!("iack=periodic"))?,
            LossReporting::Never => setting(f, format_args!("iack=off"))?,
        }
        match self.timing {
            Timing::Sampled => setting(f, format_args!("timing=sampled"))?,
            Timing::OneWay { percentile: 0 } => {}
            Timing::OneWay { percentile } => setting(f, format_args!("percentile={percentile}"))?,
        }
        if let Settle::Fixed(thousandths) = self.settle {
            setting(
                f,
                format_args!("settle={}", f64::from(thousandths) / 1000.0),
            )?;
        }
        Ok(())
    }
}

impl TackParams {
    /// Takes one setting of the text form.
    fn set(&mut self, setting: &str) -> Result<(), ParseAckKindError> {
        let unknown = || ParseAckKindError::UnknownSetting {
            policy: "tack",
            setting: setting.to_string(),
            allowed: "it has l, beta, timer, rich, iack, timing, percentile and settle, as in tack:beta=4,l=2",
        };
        let Some((name, value)) = setting.split_once('=') else {
            return Err(unknown());
        };
        let wrong = |expected: &'static str| ParseAckKindError::TackSetting {
            setting: setting.to_string(),
            expected,
        };
        let switch = |expected| match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(wrong(expected)),
        };
        match name {
            "l" => {
                let expected = "expected 1 to 255 segments, as in l=2";
                self.segments = value
                    .parse()
                    .ok()
                    .filter(|l| *l > 0)
                    .ok_or_else(|| wrong(expected))?;
            }
            "beta" => {
                let expected = "expected 2 to 255 acknowledgements per RTTmin, as in beta=4";
                self.beta = value
                    .parse()
                    .ok()
                    .filter(|beta| *beta > 1)
                    .ok_or_else(|| wrong(expected))?;
            }
            "timer" => {
                self.timer = parse_duration(value)?;
                if self.timer.is_zero() || self.timer >= Duration::from_millis(500) {
                    return Err(wrong(
                        "expected a time above 0 and below 500ms, as in timer=40ms",
                    ));
                }
            }
            "rich" => self.rich = switch("expected on or off, as in rich=off")?,
            "iack" => {
                self.losses = match value {
                    "on" => LossReporting::AtOnce,
                    "periodic" => LossReporting::Periodically,
                    "off" => LossReporting::Never,
                    _ => return Err(wrong("expected on, periodic or off, as in iack=off")),
                };
            }
            "timing" => {
                self.timing = match value {
                    "oneway" => Timing::OneWay { percentile: 0 },
                    "sampled" => Timing::Sampled,
                    _ => return Err(wrong("expected oneway or sampled, as in timing=sampled")),
                };
            }
            "percentile" => {
                let expected = "expected 0 to 100, as in percentile=50";
                let percentile = value
                    .parse()
                    .ok()
                    .filter(|p| *p <= 100)
                    .ok_or_else(|| wrong(expected))?;
                self.timing = Timing::OneWay { percentile };
            }
            "settle" => {
                let expected =
                    "expected adaptive, or a fraction of RTTmin from 0 to 1, as in settle=0.25";
                self.settle = if value == "adaptive" {
                    Settle::Adaptive
                } else {
                    let fraction = value
                        .parse::<f64>()
                        .ok()
                        .filter(|f| (0.0..=1.0).contains(f));
                    Settle::Fixed((fraction.ok_or_else(|| wrong(expected))? * 1000.0 + 0.5) as u16)
                };
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

/// Why a text names no acknowledgement policy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseAckKindError {
    /// No policy has this name.
    #[error(
        "unknown ack policy `{0}`; one of: every, delayed:L (L from 1 to 255), delayed:L,timer=40ms, tack, tack:beta=4,l=2"
    )]
    UnknownPolicy(String),
    /// What follows `delayed:` is not a number of segments.
    #[error("`{0}` is not a number of segments for delayed; expected 1 to 255, as in delayed:2")]
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
    /// The timer is not a duration.
    #[error("timer of delayed: {0}")]
    Timer(#[from] UnitError),
    /// RFC 9293 §3.8.6.3 (MUST-40) wants less than 0.5 s.
    #[error(
        "`{0}` is not a timer for delayed; expected a time above 0 and below 500ms, as in timer=40ms"
    )]
    TimerRange(String),
    /// A setting of tack has an impossible value.
    #[error("`{setting}` is not a setting for tack; {expected}")]
    TackSetting {
        /// What was given.
        setting: String,
        /// What would be right.
        expected: &'static str,
    },
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
            None if text == "tack" => Ok(Self::Tack(TackParams::default())),
            Some(("tack", first)) => {
                let mut params = TackParams::default();
                for setting in core::iter::once(first).chain(parts) {
                    params.set(setting)?;
                }
                Ok(Self::Tack(params))
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
        for text in [
            "tack",
            "tack:l=1",
            "tack:beta=8",
            "tack:l=255,beta=2,timer=5ms,rich=off,iack=off,timing=sampled,settle=0.25",
            "tack:iack=periodic,percentile=95,settle=0",
        ] {
            let kind: AckKind = text.parse().expect(text);
            assert_eq!(kind.to_string(), text);
            assert_eq!(kind.to_string().parse(), Ok(kind), "{text}");
        }
        assert_eq!(AckKind::default().to_string(), "tack");
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
            ("tack:", "``", "l, beta"),
            ("tack:l=0", "`l=0`", "1 to 255"),
            ("tack:beta=1", "`beta=1`", "2 to 255"),
            ("tack:rich=no", "`rich=no`", "on or off"),
            ("tack:settle=2", "`settle=2`", "from 0 to 1"),
            ("tack:percentile=101", "`percentile=101`", "0 to 100"),
            ("tack:timer=500ms", "`timer=500ms`", "below 500ms"),
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
