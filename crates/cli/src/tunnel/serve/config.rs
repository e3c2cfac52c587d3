//! The configuration file of `tack serve`, which has the form of TOML.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use tack_base::Rate;

use super::policy::{InboxPolicy, PeerPolicy, Policy};
use crate::address::Address;
use crate::exit::Failure;
use crate::peers::PeerName;
use crate::transfer::Existing;
use crate::tunnel::rules::TargetRule;
use crate::values;

/// What a file says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct ServeFile {
    /// Address to listen on; a reload does not change it.
    pub(super) listen: Option<Text<Address>>,
    /// The known peers that are served. Without it all are.
    allow: Option<Vec<Text<PeerName>>>,
    max_connections: Option<NonZeroU32>,
    max_per_peer: Option<NonZeroU32>,
    targets: Vec<Text<TargetRule>>,
    remote_listen: Vec<Text<TargetRule>>,
    rate: Option<Text<Rate>>,
    receive: Option<InboxTable>,
    offer: Vec<PathBuf>,
    /// Rules for single peers: each replaces that of the file as a whole.
    peers: BTreeMap<String, PeerTable>,
}

/// Rules for one peer. What is not written is as for all peers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct PeerTable {
    targets: Option<Vec<Text<TargetRule>>>,
    remote_listen: Option<Vec<Text<TargetRule>>>,
    max_connections: Option<NonZeroU32>,
    rate: Option<Text<Rate>>,
    receive: Option<InboxTable>,
    offer: Option<Vec<PathBuf>>,
}

/// A folder that peers may send into.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct InboxTable {
    dir: PathBuf,
    #[serde(default)]
    existing: Text<Existing>,
    #[serde(default)]
    delete: bool,
    #[serde(default)]
    max_bytes: Option<Text<Size>>,
}

/// Encloses, before the words of an error, where in the file it is: the places of `toml`'s own
/// errors are not those of elements of a list.
const AT: char = '\u{0}';

/// A value that is written as a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Text<T>(pub(super) T);

/// A size, bytes.
#[derive(Clone, Copy, Debug)]
struct Size(u64);

/// What a text is read as.
trait FromText: Sized {
    fn from_text(text: &str) -> Result<Self, String>;
}

impl FromText for Address {
    fn from_text(text: &str) -> Result<Self, String> {
        values::listen(text)
    }
}

impl FromText for PeerName {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{error}"))
    }
}

impl FromText for TargetRule {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{error}"))
    }
}

impl FromText for Rate {
    fn from_text(text: &str) -> Result<Self, String> {
        values::rate_above_zero(text)
    }
}

impl FromText for Size {
    fn from_text(text: &str) -> Result<Self, String> {
        values::size(text).map(Size)
    }
}

impl FromText for Existing {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "refuse" => Ok(Self::Refuse),
            "skip" => Ok(Self::Skip),
            "rename" => Ok(Self::Rename),
            "update" => Ok(Self::Update),
            "overwrite" => Ok(Self::Overwrite),
            _ => Err(format!(
                "expected refuse, skip, rename, update or overwrite, got {text:?}"
            )),
        }
    }
}

impl<'de, T: FromText> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = toml::Spanned::<String>::deserialize(deserializer)?;
        let start = text.span().start;
        T::from_text(text.get_ref())
            .map(Self)
            .map_err(|error| D::Error::custom(format!("{AT}{start}{AT}{error}")))
    }
}

impl ServeFile {
    /// Reads a file.
    ///
    /// # Errors
    /// A usage error with file, line and what would be right.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        Self::parse(&text, &path.display().to_string()).map_err(Failure::usage)
    }

    fn parse(text: &str, source: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            let (own, message) = placed(error.message());
            let start = own.or(error.span().map(|span| span.start));
            let place = start.map_or_else(String::new, |start| {
                let before = text.as_bytes().iter().take(start);
                format!(":{}", before.filter(|byte| **byte == b'\n').count() + 1)
            });
            format!("{source}{place}: {}", explained(message))
        })
    }

    /// The policy of the file and the flags together: `flags` has what the command line says. Lists
    /// are joined; of two single values that of the command line holds.
    ///
    /// # Errors
    /// For a peer whose rules nobody can use.
    pub(super) fn policy(&self, flags: &FlagPolicy) -> Result<Policy, Failure> {
        let common = PeerPolicy {
            targets: joined(&flags.targets, &self.targets),
            remote_listen: joined(&flags.remote_listen, &self.remote_listen),
            max_connections: (flags.max_per_peer)
                .or(self.max_per_peer.map(NonZeroU32::get))
                .unwrap_or(4096),
            rate: flags.rate.or(self.rate.as_ref().map(|rate| rate.0)),
            inbox: flags
                .inbox
                .clone()
                .or(self.receive.as_ref().map(InboxTable::policy)),
            offer: flags.offer.iter().chain(&self.offer).cloned().collect(),
        };
        let allowed = joined(&flags.allowed, self.allow.as_deref().unwrap_or_default());
        // An empty list in the policy is all known peers.
        if self.allow.is_some() && allowed.is_empty() {
            return Err(Failure::usage(
                "`allow` is an empty list: expected at least one name, or no `allow` at all",
            ));
        }
        let mut peers = BTreeMap::new();
        for (name, table) in &self.peers {
            let wrong = |why: String| Failure::usage(format!("peers.{name}: {why}"));
            let name: PeerName = name.parse().map_err(|error| wrong(format!("{error}")))?;
            if !allowed.is_empty() && !allowed.contains(&name) {
                return Err(wrong(
                    "it has rules, but `allow` does not name it".to_owned(),
                ));
            }
            let own = |texts: &Option<Vec<Text<TargetRule>>>, common: &[TargetRule]| match texts {
                Some(texts) => texts.iter().map(|text| text.0.clone()).collect(),
                None => common.to_vec(),
            };
            let policy = PeerPolicy {
                targets: own(&table.targets, &common.targets),
                remote_listen: own(&table.remote_listen, &common.remote_listen),
                max_connections: (table.max_connections)
                    .map_or(common.max_connections, NonZeroU32::get),
                rate: table.rate.as_ref().map(|rate| rate.0).or(common.rate),
                inbox: match &table.receive {
                    Some(table) => Some(table.policy()),
                    None => common.inbox.clone(),
                },
                offer: table.offer.clone().unwrap_or_else(|| common.offer.clone()),
            };
            peers.insert(name, Arc::new(policy));
        }
        let policy = Policy {
            allowed,
            max_connections: flags
                .max_connections
                .or(self.max_connections.map(NonZeroU32::get))
                .unwrap_or(8192),
            common: Arc::new(common),
            peers,
        };
        Ok(policy)
    }
}

impl InboxTable {
    fn policy(&self) -> InboxPolicy {
        InboxPolicy {
            dir: self.dir.clone(),
            existing: self.existing.0,
            delete: self.delete,
            max_bytes: self.max_bytes.as_ref().map(|size| size.0.0),
        }
    }
}

/// What the command line says of the policy.
#[derive(Debug, Default)]
pub(super) struct FlagPolicy {
    pub(super) allowed: Vec<PeerName>,
    pub(super) max_connections: Option<u32>,
    pub(super) max_per_peer: Option<u32>,
    pub(super) targets: Vec<TargetRule>,
    pub(super) remote_listen: Vec<TargetRule>,
    pub(super) rate: Option<Rate>,
    pub(super) inbox: Option<InboxPolicy>,
    pub(super) offer: Vec<PathBuf>,
}

fn joined<T: Clone>(flags: &[T], file: &[Text<T>]) -> Vec<T> {
    let file = file.iter().map(|text| &text.0);
    flags.iter().chain(file).cloned().collect()
}

/// The place before the words of an error, and the words.
fn placed(message: &str) -> (Option<usize>, &str) {
    let split = message
        .strip_prefix(AT)
        .and_then(|rest| rest.split_once(AT));
    match split {
        Some((start, words)) => (start.parse().ok(), words),
        None => (None, message),
    }
}

/// The words of serde, with the key that was probably meant.
fn explained(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return message.to_owned();
    };
    let mut quoted = rest.split('`').step_by(2);
    let unknown = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    let nearest = known
        .iter()
        .map(|key| (strsim::damerau_levenshtein(key, unknown), key))
        .min()
        .filter(|(distance, key)| *distance <= 2.max(key.len() / 4))
        .map_or_else(
            || ".".to_owned(),
            |(_, key)| format!("; did you mean {key:?}?"),
        );
    format!(
        "unknown key {unknown:?}{nearest} Keys here: {}",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        ServeFile::parse(text, "serve.toml").unwrap_err()
    }

    #[test]
    fn a_file_and_flags_are_one_policy() {
        let file = ServeFile::parse(
            r#"
            targets = ["nas:22"]
            max-connections = 100
            rate = "50Mbps"
            offer = ["/srv/music"]
            [receive]
            dir = "/srv/inbox"
            existing = "rename"
            max-bytes = "10GiB"
            [peers.phone]
            targets = ["127.0.0.1:80"]
            max-connections = 2
            offer = []
            [peers.desk]
            rate = "1Mbps"
            "#,
            "serve.toml",
        )
        .unwrap();
        let flags = FlagPolicy {
            targets: vec!["nas:80".parse().unwrap()],
            max_connections: Some(7),
            ..FlagPolicy::default()
        };
        let policy = file.policy(&flags).unwrap();
        let shown = |rules: &[TargetRule]| -> Vec<String> {
            rules.iter().map(ToString::to_string).collect()
        };
        assert_eq!(policy.max_connections, 7);
        assert_eq!(shown(&policy.common.targets), ["nas:80", "nas:22"]);
        assert_eq!(policy.common.max_connections, 4096);
        let of = |name: &str| policy.of(Some(&name.parse().unwrap()));
        let phone = of("phone");
        assert_eq!(shown(&phone.targets), ["127.0.0.1:80"]);
        assert_eq!((phone.max_connections, phone.offer.len()), (2, 0));
        assert_eq!(phone.rate, Some(Rate::from_bits_per_sec(50_000_000)));
        let inbox = phone.inbox.as_ref().unwrap();
        assert_eq!(
            (inbox.existing, inbox.max_bytes),
            (Existing::Rename, Some(10 << 30))
        );
        let desk = of("desk");
        assert_eq!(
            (desk.rate, desk.offer.len()),
            (Some(Rate::from_bits_per_sec(1_000_000)), 1)
        );
        assert_eq!(shown(&of("other").targets), ["nas:80", "nas:22"]);
    }

    #[test]
    fn mistakes_have_a_line_and_what_would_be_right() {
        let typo = wrong("targets = []\n\nremote-listn = []\n");
        assert!(
            typo.starts_with("serve.toml:3: unknown key \"remote-listn\""),
            "{typo}"
        );
        assert!(typo.contains("did you mean \"remote-listen\"?"), "{typo}");
        let rule = wrong("targets = [\n  \"nas:22\",\n  \"nas\",\n]\n");
        assert!(
            rule.starts_with("serve.toml:3: \"nas\" is not a valid rule"),
            "{rule}"
        );
        let nested = wrong("[peers.phone]\ntarget = []\n");
        assert!(nested.starts_with("serve.toml:2: "), "{nested}");
        assert!(nested.contains("did you mean \"targets\"?"), "{nested}");
        assert!(wrong("max-connections = \"many\"\n").starts_with("serve.toml:1: "));
        assert!(wrong("rate = \"0bps\"\n").contains("above zero"));
        for key in ["max-connections", "max-per-peer"] {
            let zero = wrong(&format!("\n{key} = 0\n"));
            assert!(
                zero.starts_with("serve.toml:2: ") && zero.contains("nonzero"),
                "{zero}"
            );
        }
        assert!(wrong("[receive]\ndir = \"a\"\nexisting = \"all\"\n").contains("overwrite"));
        assert!(wrong("[receive]\n").contains("dir"));
        assert!(wrong("targets = [\n").starts_with("serve.toml:"));
        let nobody = ServeFile::parse("allow = []\n", "serve.toml").unwrap();
        let words = nobody.policy(&FlagPolicy::default()).unwrap_err();
        assert!(
            words.to_string().contains("`allow` is an empty list"),
            "{words}"
        );
        let named = FlagPolicy {
            allowed: vec!["desk".parse().unwrap()],
            ..FlagPolicy::default()
        };
        assert_eq!(nobody.policy(&named).unwrap().allowed, named.allowed);
        let unused = ServeFile::parse("allow = [\"desk\"]\n[peers.phone]\n", "serve.toml").unwrap();
        let words = unused
            .policy(&FlagPolicy::default())
            .unwrap_err()
            .to_string();
        assert!(
            words.contains("peers.phone") && words.contains("allow"),
            "{words}"
        );
    }
}
