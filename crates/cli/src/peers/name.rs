//! Names of peers. As a target on a command line they end in a colon, so that no file, host or code
//! looks like one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Characters of a name at most.
const MAX_NAME: usize = 64;

/// A name, without its colon.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct PeerName(String);

/// A text that is not a name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} cannot be the name of a peer; expected letters, digits, hyphens, underscores or dots, at most {MAX_NAME}, such as laptop:"
)]
pub(crate) struct BadName(String);

impl FromStr for PeerName {
    type Err = BadName;

    /// Reads a name with its colon or without.
    fn from_str(text: &str) -> Result<Self, BadName> {
        let name = text.strip_suffix(':').unwrap_or(text);
        let is_right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = (1..=MAX_NAME).contains(&name.len())
            && name.chars().all(is_right)
            && name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if is_name {
            Ok(Self(name.to_owned()))
        } else {
            Err(BadName(text.chars().take(2 * MAX_NAME).collect()))
        }
    }
}

impl TryFrom<String> for PeerName {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        text.parse()
    }
}

impl From<PeerName> for String {
    fn from(name: PeerName) -> Self {
        name.0
    }
}

impl fmt::Display for PeerName {
    /// With its colon, as it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_with_its_colon_or_without() {
        for text in ["laptop", "laptop:", "Office-2.local:"] {
            let name: PeerName = text.parse().unwrap();
            assert_eq!(
                name.to_string().trim_end_matches(':'),
                text.trim_end_matches(':')
            );
        }
        for text in [
            "",
            ":",
            "a b",
            "a/b",
            "a::",
            "-rf",
            ".hidden",
            "é",
            &"x".repeat(65),
        ] {
            assert!(text.parse::<PeerName>().is_err(), "{text}");
        }
    }
}
