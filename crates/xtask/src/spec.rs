//! `cargo xtask spec`: which standards the sources cite where, and where they deviate.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::output;
use crate::sources::{self, Source};

/// The word that starts a comment on a deviation.
const DEVIATION: &str = "Deviation:";

pub(crate) fn list() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("xtask lies in crates/xtask")?;
    let mut sources = sources::below(root, Path::new("crates"))?;
    sources.retain(|source| !source.path.starts_with("crates/xtask"));
    let citations = citations(&sources);
    let deviations = deviations(&sources);
    output::write(&report(&citations, &deviations))?;
    let bare: Vec<_> = deviations
        .iter()
        .filter(|deviation| deviation.reason.is_empty())
        .map(|d| d.place.as_str())
        .collect();
    if !bare.is_empty() {
        bail!(
            "a deviation says what differs and why; these do not: {}",
            bare.join(", ")
        );
    }
    Ok(())
}

/// A standard and a section of it (empty when the whole is meant), and the places that cite it.
type Citations = BTreeMap<(Document, String), Vec<String>>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Document {
    Rfc(u32),
    /// `802.11-2020` and the like.
    Ieee(String),
    /// The paper behind the acknowledgement mechanism.
    Tack,
}

struct Deviation {
    place: String,
    reason: String,
}

fn citations(sources: &[Source]) -> Citations {
    let mut citations = Citations::new();
    for source in sources {
        for (number, line) in source.text.lines().enumerate() {
            let (_, Some(comment)) = sources::split_comment(line) else {
                continue;
            };
            for citation in in_comment(comment) {
                let place = format!("{}:{}", source.path.display(), number + 1);
                citations.entry(citation).or_default().push(place);
            }
        }
    }
    citations
}

/// The citations of one line: `RFC 6298 §5.5`, `RFC 7323 appendix A`, `802.11-2020 §10.3`, `TACK
/// §4.2`.
fn in_comment(comment: &str) -> Vec<(Document, String)> {
    let mut found = Vec::new();
    let words: Vec<&str> = comment
        .split_whitespace()
        .map(|word| word.trim_matches(['(', ')', ',', ';', ':', '`', '[', ']']))
        .collect();
    for (at, word) in words.iter().enumerate() {
        let next = |step: usize| words.get(at + step).copied().unwrap_or_default();
        let (document, section_at) = if *word == "RFC" {
            let digits: String = next(1).chars().take_while(char::is_ascii_digit).collect();
            match digits.parse() {
                Ok(number) => (Document::Rfc(number), 2),
                Err(_) => continue,
            }
        } else if word
            .strip_prefix("802.11-")
            .is_some_and(|year| year.starts_with("20"))
        {
            (Document::Ieee((*word).trim_end_matches('.').to_owned()), 1)
        } else if *word == "TACK" && next(1).starts_with('\u{a7}') {
            (Document::Tack, 1)
        } else {
            continue;
        };
        let word_after = next(section_at);
        let section = if let Some(section) = word_after.strip_prefix('\u{a7}') {
            let end = section
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '.'))
                .unwrap_or(section.len());
            format!("\u{a7}{}", section[..end].trim_end_matches('.'))
        } else if word_after.eq_ignore_ascii_case("appendix") {
            format!("appendix {}", next(section_at + 1).trim_end_matches('.'))
        } else {
            String::new()
        };
        found.push((document, section));
    }
    found
}

/// Every deviation with its text, which goes on over the comment lines that follow.
fn deviations(sources: &[Source]) -> Vec<Deviation> {
    let mut found = Vec::new();
    for source in sources {
        let comments: Vec<_> = source
            .text
            .lines()
            .map(|line| sources::split_comment(line).1)
            .collect();
        for (number, comment) in comments.iter().enumerate() {
            let Some((_, first)) = comment.and_then(|comment| comment.split_once(DEVIATION)) else {
                continue;
            };
            let mut reason = first.trim().to_owned();
            for line in comments[number + 1..]
                .iter()
                .map_while(|line| line.filter(|line| !line.is_empty()))
            {
                if line.contains(DEVIATION) {
                    break;
                }
                let _ = write!(reason, " {line}");
            }
            let place = format!("{}:{}", source.path.display(), number + 1);
            found.push(Deviation {
                place,
                reason: reason.trim().to_owned(),
            });
        }
    }
    found
}

fn report(citations: &Citations, deviations: &[Deviation]) -> String {
    let mut out = String::new();
    let mut last = None;
    for ((document, section), places) in citations {
        if last != Some(document) {
            let _ = match document {
                Document::Rfc(number) => writeln!(out, "RFC {number}"),
                Document::Ieee(name) => writeln!(out, "IEEE {name}"),
                Document::Tack => writeln!(out, "TACK"),
            };
            last = Some(document);
        }
        let section = if section.is_empty() {
            "as a whole"
        } else {
            section
        };
        let _ = writeln!(out, "  {section:<16} {}", places.join(" "));
    }
    let _ = writeln!(out, "\n{} deviation(s)", deviations.len());
    for Deviation { place, reason } in deviations {
        let _ = writeln!(out, "  {place}\n    {reason}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_are_read_in_the_forms_we_write() {
        let rfc = |number, section: &str| (Document::Rfc(number), section.to_owned());
        assert_eq!(
            in_comment("the timer (RFC 6298 §5.5), and RFC 9293"),
            [rfc(6298, "§5.5"), rfc(9293, "")]
        );
        assert_eq!(
            in_comment("(RFC 7323 appendix A): two NOPs"),
            [rfc(7323, "appendix A")]
        );
        assert_eq!(in_comment("see RFC 8200 §8.1."), [rfc(8200, "§8.1")]);
        assert_eq!(
            in_comment("802.11-2020 §10.23.2.2"),
            [(Document::Ieee("802.11-2020".into()), "§10.23.2.2".into())]
        );
        assert_eq!(
            in_comment("TACK §4.2 says"),
            [(Document::Tack, "§4.2".into())]
        );
        assert_eq!(in_comment("the RFC says; a TACK arrives"), []);
    }

    #[test]
    fn a_deviation_runs_to_the_end_of_its_paragraph() {
        let text = "// Deviation: no urgent data,\n// nobody uses it.\n//\n// More.\nlet x = 1; // Deviation:\n";
        let sources = [Source {
            path: "a.rs".into(),
            text: text.into(),
        }];
        let found = deviations(&sources);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].place.as_str(), found[0].reason.as_str()),
            ("a.rs:1", "no urgent data, nobody uses it.")
        );
        assert_eq!(
            (found[1].place.as_str(), found[1].reason.as_str()),
            ("a.rs:5", "")
        );
    }
}
