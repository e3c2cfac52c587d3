//! Naming a congestion controller: the choice itself and its text form.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use super::{
    Bbr, BbrOptions, BbrProfile, Compound, CongestionController, Cubic, Init, NewReno,
    ProbeRttKind, Vegas,
};

/// Which congestion controller to run.
///
/// As text: `new_reno`, `cubic`, `bbr`, `vegas` or `compound`; `bbr` takes settings, as in
/// `bbr:profile=realtime,probe_rtt=mild`. `Display` writes the shortest form that reads back as the
/// same value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// RFC 5681 and 6582.
    NewReno,
    /// RFC 9438 with HyStart++ (RFC 9406).
    Cubic,
    /// BBR version 1 as Linux runs it, with the extra_acked aggregation allowance; with a peer that
    /// acknowledges sparsely, the receiver-based form of it.
    Bbr(BbrOptions),
    /// Vegas (Brakmo and Peterson, IEEE JSAC 13(8), 1995).
    Vegas,
    /// Compound TCP (draft-sridharan-tcpm-ctcp-02).
    Compound,
}

impl Algorithm {
    /// Every algorithm with its default settings, for tables and sweeps.
    pub const ALL: [Self; 5] = [
        Self::NewReno,
        Self::Cubic,
        Self::Bbr(BbrOptions::DEFAULT),
        Self::Vegas,
        Self::Compound,
    ];

    /// The name used in scenario files and on the command line, without settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "new_reno",
            Self::Cubic => "cubic",
            Self::Bbr(_) => "bbr",
            Self::Vegas => "vegas",
            Self::Compound => "compound",
        }
    }

    /// A fresh controller.
    pub fn build(self, init: &Init) -> Box<dyn CongestionController> {
        match self {
            Self::NewReno => Box::new(NewReno::new(init)),
            Self::Cubic => Box::new(Cubic::new(init)),
            Self::Bbr(options) => Box::new(Bbr::new(init, options)),
            Self::Vegas => Box::new(Vegas::new(init)),
            Self::Compound => Box::new(Compound::new(init)),
        }
    }
}

impl Default for Algorithm {
    fn default() -> Self {
        Self::Bbr(BbrOptions::DEFAULT)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let Self::Bbr(options) = self else {
            return Ok(());
        };
        let mut separator = ':';
        if options.profile == BbrProfile::RealTime {
            write!(f, "{separator}profile=realtime")?;
            separator = ',';
        }
        if options.probe_rtt == ProbeRttKind::Mild {
            write!(f, "{separator}probe_rtt=mild")?;
        }
        Ok(())
    }
}

/// Why a text names no congestion controller.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseAlgorithmError {
    /// No controller has this name.
    #[error(
        "unknown congestion control `{0}`; one of: new_reno, cubic, bbr, vegas, compound (bbr takes settings, as in bbr:profile=realtime)"
    )]
    Unknown(String),
    /// The controller takes no settings.
    #[error("{algorithm} has no settings, so `{settings}` has no place after it")]
    NoSettings {
        /// The controller.
        algorithm: &'static str,
        /// What was given.
        settings: String,
    },
    /// The controller has no such setting.
    #[error(
        "unknown setting `{0}` of bbr; one of: profile=default, profile=realtime, probe_rtt=full, probe_rtt=mild"
    )]
    UnknownSetting(String),
    /// The setting has no such value.
    #[error("`{value}` is not a {setting} of bbr; one of: {allowed}")]
    Value {
        /// The setting.
        setting: &'static str,
        /// What was given.
        value: String,
        /// What the setting understands.
        allowed: &'static str,
    },
    /// The setting was given before.
    #[error("setting {0} of bbr is given twice; once is enough")]
    Repeated(&'static str),
}

impl FromStr for Algorithm {
    type Err = ParseAlgorithmError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, settings) = match text.split_once(':') {
            Some((name, settings)) => (name, Some(settings)),
            None => (text, None),
        };
        let algorithm = Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| ParseAlgorithmError::Unknown(name.to_string()))?;
        match (algorithm, settings) {
            (_, None) => Ok(algorithm),
            (Self::Bbr(_), Some(settings)) => read_bbr(settings).map(Self::Bbr),
            (_, Some(settings)) => Err(ParseAlgorithmError::NoSettings {
                algorithm: algorithm.name(),
                settings: settings.to_string(),
            }),
        }
    }
}

/// The settings after `bbr:`.
fn read_bbr(settings: &str) -> Result<BbrOptions, ParseAlgorithmError> {
    let (mut profile, mut probe_rtt) = (None, None);
    for setting in settings.split(',') {
        let repeated = match setting.split_once('=') {
            Some(("profile", value)) => {
                let read = match value {
                    "default" => BbrProfile::Default,
                    "realtime" => BbrProfile::RealTime,
                    _ => {
                        return Err(ParseAlgorithmError::Value {
                            setting: "profile",
                            value: value.to_string(),
                            allowed: "default, realtime",
                        });
                    }
                };
                profile.replace(read).map(|_| "profile")
            }
            Some(("probe_rtt", value)) => {
                let read = match value {
                    "full" => ProbeRttKind::Full,
                    "mild" => ProbeRttKind::Mild,
                    _ => {
                        return Err(ParseAlgorithmError::Value {
                            setting: "probe_rtt",
                            value: value.to_string(),
                            allowed: "full, mild",
                        });
                    }
                };
                probe_rtt.replace(read).map(|_| "probe_rtt")
            }
            _ => return Err(ParseAlgorithmError::UnknownSetting(setting.to_string())),
        };
        if let Some(setting) = repeated {
            return Err(ParseAlgorithmError::Repeated(setting));
        }
    }
    Ok(BbrOptions {
        profile: profile.unwrap_or_default(),
        probe_rtt: probe_rtt.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_back_as_the_same_choice() {
        let options = [BbrProfile::Default, BbrProfile::RealTime]
            .into_iter()
            .flat_map(|profile| {
                [ProbeRttKind::Full, ProbeRttKind::Mild]
                    .map(|probe_rtt| Algorithm::Bbr(BbrOptions { profile, probe_rtt }))
            });
        for algorithm in Algorithm::ALL.into_iter().chain(options) {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm), "{algorithm}");
        }
    }

    #[test]
    fn the_shortest_form_is_written() {
        for (text, shortest) in [
            ("bbr", "bbr"),
            ("bbr:profile=default,probe_rtt=full", "bbr"),
            ("bbr:profile=realtime", "bbr:profile=realtime"),
            ("bbr:probe_rtt=mild", "bbr:probe_rtt=mild"),
            (
                "bbr:probe_rtt=mild,profile=realtime",
                "bbr:profile=realtime,probe_rtt=mild",
            ),
            ("vegas", "vegas"),
        ] {
            let algorithm = text.parse::<Algorithm>().expect(text);
            assert_eq!(algorithm.to_string(), shortest);
            assert_eq!(Some(algorithm.name()), shortest.split(':').next());
        }
        assert_eq!(Algorithm::default().to_string(), "bbr");
    }

    #[test]
    fn errors_name_what_is_wrong_and_what_would_be_right() {
        for (text, wrong, right) in [
            ("", "``", "new_reno, cubic, bbr, vegas, compound"),
            ("reno", "`reno`", "new_reno"),
            ("BBR", "`BBR`", "bbr"),
            ("bbr2:profile=realtime", "`bbr2`", "bbr"),
            (
                "cubic:profile=realtime",
                "`profile=realtime`",
                "cubic has no settings",
            ),
            ("vegas:", "``", "vegas has no settings"),
            ("bbr:", "``", "profile=realtime"),
            ("bbr:realtime", "`realtime`", "profile=realtime"),
            ("bbr:profile=realtime,", "``", "probe_rtt=mild"),
            ("bbr:profile=fast", "`fast`", "default, realtime"),
            ("bbr:probe_rtt=none", "`none`", "full, mild"),
            (
                "bbr:profile=default,profile=realtime",
                "profile",
                "once is enough",
            ),
        ] {
            let error = text.parse::<Algorithm>().expect_err(text).to_string();
            assert!(
                error.contains(wrong) && error.contains(right),
                "{text}: {error}"
            );
        }
    }
}
