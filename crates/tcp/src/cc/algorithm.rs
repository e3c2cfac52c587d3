//! Naming a congestion controller: the choice itself and its text form.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use super::{
    Bbr, BbrOptions, BbrProfile, Compound, CongestionController, Cubic, CubicProfile, Init,
    NewReno, ProbeRttKind, Vegas,
};

/// Which congestion controller to run.
///
/// As text: `new_reno`, `cubic`, `bbr`, `vegas` or `compound`; `bbr` and `cubic` take settings, as
/// in `bbr:profile=realtime,probe_rtt=mild` and `cubic:profile=linux`. `Display` writes the
/// shortest form that reads back as the same value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// RFC 5681 and 6582.
    NewReno,
    /// RFC 9438 with HyStart++ (RFC 9406).
    Cubic(CubicProfile),
    /// BBR version 1 as Linux runs it, with the extra_acked aggregation allowance; with a peer that
    /// acknowledges sparsely, the receiver-based form of it.
    Bbr(BbrOptions),
    /// Vegas (Brakmo and Peterson, IEEE JSAC 13(8), 1995).
    Vegas,
    /// Compound TCP (draft-sridharan-tcpm-ctcp-02).
    Compound,
}

impl Algorithm {
    /// RFC 9438 with its default settings.
    pub const CUBIC: Self = Self::Cubic(CubicProfile::Default);

    /// Every algorithm with its default settings, for tables and sweeps.
    pub const ALL: [Self; 5] = [
        Self::NewReno,
        Self::CUBIC,
        Self::Bbr(BbrOptions::DEFAULT),
        Self::Vegas,
        Self::Compound,
    ];

    /// The name used in scenario files and on the command line, without settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "new_reno",
            Self::Cubic(_) => "cubic",
            Self::Bbr(_) => "bbr",
            Self::Vegas => "vegas",
            Self::Compound => "compound",
        }
    }

    /// A fresh controller.
    pub fn build(self, init: &Init) -> Box<dyn CongestionController> {
        match self {
            Self::NewReno => Box::new(NewReno::new(init)),
            Self::Cubic(profile) => Box::new(Cubic::new(init, profile)),
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
        let options = match self {
            Self::Bbr(options) => options,
            Self::Cubic(CubicProfile::Linux) => return f.write_str(":profile=linux"),
            _ => return Ok(()),
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
        "unknown congestion control `{0}`; one of: new_reno, cubic, bbr, vegas, compound (two take settings, as in bbr:profile=realtime and cubic:profile=linux)"
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
    #[error("unknown setting `{given}` of {algorithm}; one of: {allowed}")]
    UnknownSetting {
        /// The controller.
        algorithm: &'static str,
        /// What was given.
        given: String,
        /// What the controller understands.
        allowed: &'static str,
    },
    /// The setting has no such value.
    #[error("`{value}` is not a {setting} of {algorithm}; one of: {allowed}")]
    Value {
        /// The controller.
        algorithm: &'static str,
        /// The setting.
        setting: &'static str,
        /// What was given.
        value: String,
        /// What the setting understands.
        allowed: &'static str,
    },
    /// The setting was given before.
    #[error("setting {setting} of {algorithm} is given twice; once is enough")]
    Repeated {
        /// The controller.
        algorithm: &'static str,
        /// The setting.
        setting: &'static str,
    },
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
            (Self::Cubic(_), Some(settings)) => read_cubic(settings).map(Self::Cubic),
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
    let bbr = Reading {
        algorithm: "bbr",
        allowed: "profile=default, profile=realtime, probe_rtt=full, probe_rtt=mild",
    };
    for setting in settings.split(',') {
        match setting.split_once('=') {
            Some(("profile", value)) => {
                let choices = [
                    ("default", BbrProfile::Default),
                    ("realtime", BbrProfile::RealTime),
                ];
                bbr.once(&mut profile, "profile", value, "default, realtime", choices)?;
            }
            Some(("probe_rtt", value)) => {
                let choices = [("full", ProbeRttKind::Full), ("mild", ProbeRttKind::Mild)];
                bbr.once(&mut probe_rtt, "probe_rtt", value, "full, mild", choices)?;
            }
            _ => return Err(bbr.unknown(setting)),
        }
    }
    Ok(BbrOptions {
        profile: profile.unwrap_or_default(),
        probe_rtt: probe_rtt.unwrap_or_default(),
    })
}

/// The settings after `cubic:`.
fn read_cubic(settings: &str) -> Result<CubicProfile, ParseAlgorithmError> {
    let mut profile = None;
    let cubic = Reading {
        algorithm: "cubic",
        allowed: "profile=default, profile=linux",
    };
    for setting in settings.split(',') {
        let Some(("profile", value)) = setting.split_once('=') else {
            return Err(cubic.unknown(setting));
        };
        let choices = [
            ("default", CubicProfile::Default),
            ("linux", CubicProfile::Linux),
        ];
        cubic.once(&mut profile, "profile", value, "default, linux", choices)?;
    }
    Ok(profile.unwrap_or_default())
}

/// Reads the settings of one controller.
struct Reading {
    algorithm: &'static str,
    /// All of them, for messages.
    allowed: &'static str,
}

impl Reading {
    /// Reads one value of `setting` into `place`, which must be empty yet. `allowed` names the
    /// choices.
    fn once<T, const N: usize>(
        &self,
        place: &mut Option<T>,
        setting: &'static str,
        value: &str,
        allowed: &'static str,
        choices: [(&str, T); N],
    ) -> Result<(), ParseAlgorithmError> {
        let Self { algorithm, .. } = *self;
        let mut choices = choices.into_iter();
        let (_, read) =
            choices
                .find(|(name, _)| *name == value)
                .ok_or_else(|| ParseAlgorithmError::Value {
                    algorithm,
                    setting,
                    value: value.to_string(),
                    allowed,
                })?;
        match place.replace(read) {
            None => Ok(()),
            Some(_) => Err(ParseAlgorithmError::Repeated { algorithm, setting }),
        }
    }

    fn unknown(&self, setting: &str) -> ParseAlgorithmError {
        ParseAlgorithmError::UnknownSetting {
            algorithm: self.algorithm,
            given: setting.to_string(),
            allowed: self.allowed,
        }
    }
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
        let linux = Algorithm::Cubic(CubicProfile::Linux);
        for algorithm in Algorithm::ALL.into_iter().chain(options).chain([linux]) {
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
            ("cubic:profile=default", "cubic"),
            ("cubic:profile=linux", "cubic:profile=linux"),
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
                "compound:profile=realtime",
                "`profile=realtime`",
                "compound has no settings",
            ),
            ("cubic:profile=realtime", "`realtime`", "default, linux"),
            ("cubic:linux", "`linux` of cubic", "profile=linux"),
            ("cubic:", "``", "profile=linux"),
            (
                "cubic:profile=linux,profile=linux",
                "profile of cubic",
                "once is enough",
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
