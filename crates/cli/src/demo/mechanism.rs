//! What is compared: an acknowledgement policy, and what the radios do with its acknowledgements.

use std::fmt;

use tack::AckKind;
use tack_sim::Scenario;
use tack_sim::scenario::{ACK_FILTERS, HACK_VARIANTS};
use tack_wlan::mac::discipline::AckFilter;
use tack_wlan::mac::hack::{HackConfig, Variant};

/// A page with more is hard to read.
pub(crate) const MOST: usize = 4;

/// Filter and variant of `+filter` and `+hack`.
const FILTER: AckFilter = AckFilter::Safe;
const HACK: Variant = Variant::MoreData;

/// One mechanism. As text: `tack`, `delayed:2+filter`, `delayed:2+filter=paper+hack=timer`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mechanism {
    pub(crate) ack: AckKind,
    /// `None`: as the links have it.
    pub(crate) filter: Option<AckFilter>,
    /// `None`: as the links have it.
    pub(crate) hack: Option<Variant>,
}

impl Mechanism {
    /// True when the radios have TCP/HACK on, whatever the links say.
    pub(crate) fn turns_hack_on(&self) -> bool {
        self.hack.is_some_and(|variant| variant != Variant::Off)
    }

    /// The links with what this mechanism wants of the radios.
    pub(crate) fn links(&self, links: &Scenario) -> Scenario {
        let mut links = links.clone();
        if let Some(wlan) = &mut links.wlan {
            wlan.ack_filter = self.filter.unwrap_or(wlan.ack_filter);
            if let Some(variant) = self.hack.filter(|hack| *hack != wlan.world.hack.variant) {
                wlan.world.hack = HackConfig::new(variant);
            }
        }
        links
    }
}

/// The name of a choice.
fn name<T: PartialEq + Copy>(choices: &[(&'static str, T)], wanted: T) -> &'static str {
    let found = choices.iter().find(|(_, choice)| *choice == wanted);
    found.map_or("", |(name, _)| name)
}

/// The names of filter and variant that these links have.
pub(crate) fn radios(links: &Scenario) -> [&'static str; 2] {
    links.wlan.as_ref().map_or(["off"; 2], |wlan| {
        [
            name(&ACK_FILTERS, wlan.ack_filter),
            name(&HACK_VARIANTS, wlan.world.hack.variant),
        ]
    })
}

impl fmt::Display for Mechanism {
    /// The shortest form that reads back as the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ack)?;
        match self.filter {
            None => {}
            Some(FILTER) => f.write_str("+filter")?,
            Some(mode) => write!(f, "+filter={}", name(&ACK_FILTERS, mode))?,
        }
        match self.hack {
            None => Ok(()),
            Some(HACK) => f.write_str("+hack"),
            Some(variant) => write!(f, "+hack={}", name(&HACK_VARIANTS, variant)),
        }
    }
}

impl std::str::FromStr for Mechanism {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('+');
        let ack = parts.next().unwrap_or_default().trim();
        let mut mechanism = Self {
            ack: ack.parse::<AckKind>().map_err(|error| error.to_string())?,
            filter: None,
            hack: None,
        };
        for part in parts {
            let (key, value) = part.trim().split_once('=').map_or_else(
                || (part.trim(), None),
                |(key, value)| (key.trim(), Some(value.trim())),
            );
            match key {
                "filter" => set(&mut mechanism.filter, key, value, (&ACK_FILTERS, FILTER))?,
                "hack" => set(&mut mechanism.hack, key, value, (&HACK_VARIANTS, HACK))?,
                _ => {
                    return Err(format!(
                        "expected +filter, +filter=MODE, +hack or +hack=VARIANT after {ack}, got \"+{part}\""
                    ));
                }
            }
        }
        Ok(mechanism)
    }
}

/// Sets what a part of a mechanism says.
fn set<T: Copy>(
    place: &mut Option<T>,
    key: &str,
    value: Option<&str>,
    (choices, usual): (&[(&'static str, T)], T),
) -> Result<(), String> {
    let chosen = match value {
        None => usual,
        Some(value) => {
            let found = choices.iter().find(|(name, _)| *name == value);
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            let wrong = || {
                format!(
                    "expected one of {} after +{key}=, got {value:?}",
                    names.join(", ")
                )
            };
            found.ok_or_else(wrong)?.1
        }
    };
    match place.replace(chosen) {
        None => Ok(()),
        Some(_) => Err(format!("+{key} is given twice")),
    }
}

/// What `--compare` lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mechanisms(pub(crate) Vec<Mechanism>);

impl std::str::FromStr for Mechanisms {
    type Err = String;

    /// Separated by commas. Settings of a policy are too: what begins with no policy belongs to the
    /// one before.
    fn from_str(text: &str) -> Result<Self, String> {
        const POLICIES: [&str; 3] = ["every", "delayed", "tack"];
        let mut texts: Vec<String> = Vec::new();
        for piece in text.split(',') {
            let policy = piece.trim().split([':', '+']).next().unwrap_or_default();
            match texts.last_mut() {
                Some(last) if piece.contains('=') && !POLICIES.contains(&policy) => {
                    last.push(',');
                    last.push_str(piece);
                }
                _ => texts.push(piece.to_owned()),
            }
        }
        let mechanisms = texts
            .iter()
            .map(|text| text.parse())
            .collect::<Result<Vec<Mechanism>, _>>()?;
        if !(2..=MOST).contains(&mechanisms.len()) {
            return Err(format!(
                "expected 2 to {MOST} mechanisms to compare, such as delayed:2,tack,delayed:2+hack, got {}",
                mechanisms.len()
            ));
        }
        for (index, mechanism) in mechanisms.iter().enumerate() {
            if mechanisms[..index].contains(mechanism) {
                return Err(format!("{mechanism} is listed twice"));
            }
        }
        Ok(Self(mechanisms))
    }
}

impl fmt::Display for Mechanisms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Mechanisms, String> {
        text.parse()
    }

    #[test]
    fn mechanisms_read_back() {
        for text in [
            "delayed:2,tack",
            "tack,delayed:2,delayed:2+filter,delayed:2+hack",
            "tack:l=1,beta=8,delayed:2,timer=20ms+filter=paper+hack=timer,every",
            "delayed:2+filter=off+hack=off,delayed:2+hack=timestamp-echo",
        ] {
            let read = read(text).unwrap();
            assert_eq!(read.to_string().parse(), Ok(read.clone()));
            if !text.contains("l=1") {
                assert_eq!(read.to_string(), text);
            }
        }
        let full = "delayed:2+filter=safe, delayed:2+hack=more-data";
        let read = read(full).unwrap();
        assert_eq!(read.to_string(), "delayed:2+filter,delayed:2+hack");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, wrong) in [
            ("tack", "expected 2 to 4"),
            ("every,delayed:2,delayed:3,delayed:4,tack", "got 5"),
            ("tack,tack", "tack is listed twice"),
            (
                "tack,delayed:2+filter,delayed:2+filter=safe",
                "listed twice",
            ),
            ("tack,delayed:2+filter=best", "off, paper, safe"),
            ("tack,delayed:2+hack=best", "more-data"),
            ("tack,delayed:2+hack+hack=off", "twice"),
            ("tack,delayed:2+hacks", "+hacks"),
            ("tack,sometimes", "sometimes"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }

    #[test]
    fn a_mechanism_changes_what_it_names_and_nothing_else() {
        let overrides = [
            "wlan.ack_filter=paper",
            "wlan.hack=timer",
            "wlan.hack_timer=3ms",
        ];
        let overrides = overrides.map(str::to_owned);
        let links = Scenario::from_toml("test", "[wlan]\n[[flow]]\n", &overrides).unwrap();
        let of = |text: &str| {
            let links = text.parse::<Mechanism>().unwrap().links(&links);
            let wlan = links.wlan.as_ref().unwrap();
            (radios(&links), wlan.world.hack.hold.as_millis())
        };
        assert_eq!(of("tack"), (["paper", "timer"], 3));
        assert_eq!(of("tack+hack=timer"), (["paper", "timer"], 3));
        assert_eq!(of("tack+filter+hack=off"), (["safe", "off"], 100));
        assert_eq!(of("tack+hack"), (["paper", "more-data"], 100));
    }
}
