//! Codes: `7-guitarist-orca`, to be read aloud. A number that tells waiting programs apart, and two
//! words that are secret.
//!
//! The words are of the PGP word list: first one of 256 with three syllables, then one of 256 with
//! two. These 16 bits can be guessed in 65,536 attempts, so a code permits one ([`CurrentCode`]).

mod current;

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use zeroize::{Zeroize, Zeroizing};

pub use current::{Attempt, CurrentCode, Unavailable, pause};

/// Largest number of a code.
pub const MAX_NUMBER: u16 = 99;

/// Letters of the longest word of the list, and some for typos.
const MAX_TEXT: usize = 64;

struct Words {
    /// Of two syllables.
    even: Vec<&'static str>,
    /// Of three syllables.
    odd: Vec<&'static str>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let lines = include_str!("../words/pgp.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let (even, odd) = lines.filter_map(|line| line.split_once(' ')).unzip();
    Words { even, odd }
});

/// A code: a number and two words.
#[derive(Clone)]
pub struct Code {
    number: u16,
    words: [u8; 2],
}

/// A text that is not a code.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadCode {
    /// The text is not a number and two words.
    #[error("expected a code: a number and two words, such as 7-guitarist-orca")]
    Form,
    /// The number is out of range.
    #[error("a code begins with a number from 1 to {MAX_NUMBER}")]
    Number,
    /// A word that is not in the list.
    #[error("{word:?} is not a word of the list{}", suggestion.map(|word| format!("; did you mean {word}?")).unwrap_or_default())]
    Word {
        /// As given.
        word: String,
        /// The nearest one of the list, if one is near.
        suggestion: Option<&'static str>,
    },
    /// Both words are in the list, in the other order.
    #[error("the two words of the code are in the wrong order")]
    Order,
}

impl Code {
    /// A new code with random words and this number, from 1 to [`MAX_NUMBER`].
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn generate(number: u16) -> Result<Self, getrandom::Error> {
        let mut words = [0; 2];
        getrandom::fill(&mut words)?;
        Ok(Self { number, words })
    }

    /// A random number for a code: a waiting program takes one that no other nearby shows.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn random_number() -> Result<u16, getrandom::Error> {
        let drawn = getrandom::u32()?;
        // A bias of one in forty million does not matter: the number is not secret.
        Ok((drawn % u32::from(MAX_NUMBER)) as u16 + 1)
    }

    /// The number of the code, which is not secret.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// The whole code as text: a secret.
    pub fn text(&self) -> Zeroizing<String> {
        let [first, second] = self.words.map(usize::from);
        Zeroizing::new(format!(
            "{}-{}-{}",
            self.number, WORDS.odd[first], WORDS.even[second]
        ))
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        self.words.zeroize();
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({}-…)", self.number)
    }
}

/// True for a text that is meant as a code: a number, then a hyphen or a space, then a letter.
pub fn looks_like(text: &str) -> bool {
    let text = text.trim();
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let mut rest_chars = rest.chars();
    rest.len() < text.len()
        && matches!(rest_chars.next(), Some('-' | ' '))
        && rest_chars.next().is_some_and(char::is_alphabetic)
        && !rest.contains(['.', ':', '/'])
}

impl FromStr for Code {
    type Err = BadCode;

    /// Reads a code in either case, with hyphens or spaces.
    fn from_str(text: &str) -> Result<Self, BadCode> {
        let text = text.trim();
        if text.len() > MAX_TEXT {
            return Err(BadCode::Form);
        }
        let lower = Zeroizing::new(text.to_lowercase());
        let mut parts = lower
            .split(|c: char| c == '-' || c.is_whitespace())
            .filter(|part| !part.is_empty());
        let (Some(number), Some(first), Some(second), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(BadCode::Form);
        };
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(BadCode::Form);
        }
        let number = number.parse().map_err(|_| BadCode::Number)?;
        if !(1..=MAX_NUMBER).contains(&number) {
            return Err(BadCode::Number);
        }
        match (index(&WORDS.odd, first), index(&WORDS.even, second)) {
            (Some(first), Some(second)) => Ok(Self {
                number,
                words: [first, second],
            }),
            _ if index(&WORDS.even, first).is_some() && index(&WORDS.odd, second).is_some() => {
                Err(BadCode::Order)
            }
            (None, _) => Err(unknown(&WORDS.odd, first)),
            (_, None) => Err(unknown(&WORDS.even, second)),
        }
    }
}

fn index(list: &[&str], word: &str) -> Option<u8> {
    let at = list.iter().position(|known| *known == word)?;
    u8::try_from(at).ok()
}

fn unknown(list: &[&'static str], word: &str) -> BadCode {
    let nearest = list
        .iter()
        .map(|known| (strsim::damerau_levenshtein(known, word), *known))
        .min();
    BadCode::Word {
        word: word.to_owned(),
        suggestion: nearest
            .filter(|(distance, _)| *distance <= 2)
            .map(|(_, known)| known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_twice_256_words_without_repetition() {
        for list in [&WORDS.even, &WORDS.odd] {
            assert_eq!(list.len(), 256);
            let distinct: std::collections::BTreeSet<_> = list.iter().collect();
            assert_eq!(distinct.len(), 256);
            assert!(
                list.iter()
                    .all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()))
            );
        }
        assert!(
            !WORDS.even.iter().any(|word| WORDS.odd.contains(word)),
            "a word in both lists would hide a wrong order"
        );
    }

    #[test]
    fn every_code_is_read_again() {
        for first in 0..=255 {
            let code = Code {
                number: u16::from(first % 99) + 1,
                words: [first, 255 - first],
            };
            let text = code.text();
            for text in [
                text.to_string(),
                text.to_uppercase(),
                text.replace('-', " "),
                format!("  {}\n", &*text),
            ] {
                let read: Code = text.parse().unwrap();
                assert_eq!((read.number, read.words), (code.number, code.words));
                assert!(looks_like(&text), "{text}");
            }
        }
    }

    #[test]
    fn a_typo_is_told_before_anything_is_sent() {
        let error = |text: &str| text.parse::<Code>().unwrap_err();
        assert_eq!(
            error("7-guitarst-orca").to_string(),
            "\"guitarst\" is not a word of the list; did you mean guitarist?"
        );
        assert!(matches!(
            error("7-guitarist-xylophones"),
            BadCode::Word {
                suggestion: None,
                ..
            }
        ));
        assert_eq!(error("7-orca-guitarist"), BadCode::Order);
        assert_eq!(error("0-guitarist-orca"), BadCode::Number);
        assert_eq!(error("70000-guitarist-orca"), BadCode::Number);
        for text in [
            "",
            "7",
            "7-guitarist",
            "7-a-b-c",
            "x-guitarist-orca",
            "-1-guitarist-orca-b",
        ] {
            assert_eq!(error(text), BadCode::Form, "{text}");
        }
        assert_eq!(error(&"7-".repeat(1000)), BadCode::Form);
    }

    #[test]
    fn addresses_and_files_do_not_look_like_codes() {
        for text in [
            "7777",
            "192.0.2.1",
            "7-zip.tar",
            "host-a-b",
            "10-a:7",
            "2001:db8::1",
            "7-1",
        ] {
            assert!(!looks_like(text), "{text}");
        }
    }

    #[test]
    fn the_words_are_not_printed_by_accident() {
        let code: Code = "7-guitarist-orca".parse().unwrap();
        assert_eq!(format!("{code:?}"), "Code(7-…)");
    }
}
