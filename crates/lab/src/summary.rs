//! The claims of all figures as tables: for scripts, and for a document.

use std::fmt::Write as _;

use crate::claim::{Claim, Verdict};
use crate::page::Entry;
use crate::point::CODE_VERSION;

/// `claims.csv`: a row for each claim of each figure that was measured, in reading order. `figure`, `command` (which measures
/// it), `code` (the version of the code), `claim`, `paper`, `ours`, `verdict` (`pass`, `deviation` or `fail`), `reason`.
pub fn claims_csv(entries: &[Entry]) -> Vec<u8> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let header = [
        "figure", "command", "code", "claim", "paper", "ours", "verdict", "reason",
    ];
    // Writing to memory does not fail, nor do records of equal length.
    let _ = out.write_record(header);
    for entry in entries {
        for claim in claims(entry) {
            let (verdict, reason) = verdict(claim);
            let command = entry.command();
            let _ = out.write_record([
                entry.figure.id,
                &command,
                CODE_VERSION,
                &claim.words,
                &claim.paper,
                &claim.ours,
                verdict,
                reason,
            ]);
        }
    }
    out.into_inner().unwrap_or_default()
}

/// `report.md`: the same as a document, with a section for each figure.
pub fn markdown(entries: &[Entry]) -> String {
    let mut text = String::from("# The figures of the TACK paper, measured again\n");
    for entry in entries {
        let _ = write!(
            text,
            "\n## Figure {}: {}\n\n{}\n\n`{}`\n\n",
            entry.figure.id,
            entry.figure.title,
            entry.figure.about,
            entry.command()
        );
        let Some(outcome) = &entry.outcome else {
            text.push_str("Not measured yet.\n");
            continue;
        };
        text.push_str("| claim | paper | ours | verdict |\n| --- | --- | --- | --- |\n");
        for claim in claims(entry) {
            let (verdict, reason) = verdict(claim);
            let reason = if reason.is_empty() {
                String::new()
            } else {
                format!(": {}", cell(reason))
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {verdict}{reason} |",
                cell(&claim.words),
                cell(&claim.paper),
                cell(&claim.ours)
            );
        }
        for note in &outcome.notes {
            let _ = writeln!(text, "\n{note}");
        }
    }
    text
}

fn claims(entry: &Entry) -> impl Iterator<Item = &Claim> {
    entry.outcome.iter().flat_map(|outcome| &outcome.claims)
}

fn verdict(claim: &Claim) -> (&'static str, &str) {
    match claim.verdict() {
        Verdict::Pass => ("pass", ""),
        Verdict::Deviation(reason) => ("deviation", reason),
        Verdict::Inconclusive => ("inconclusive", ""),
        Verdict::Fail => ("fail", ""),
    }
}

/// A text that stays inside its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Depth, FIGURES, Outcome};

    fn entries() -> [Entry; 2] {
        let claims = vec![
            Claim::new("a, \"b\" | c", "1 %", "2 ± 0.1 %", true),
            Claim::new("slower", "1", "2", false).or("air, and noise", true),
            Claim::new("faster", "1", "2", false),
        ];
        [
            Some(Outcome {
                claims,
                ..Outcome::default()
            }),
            None,
        ]
        .map(|outcome| Entry {
            figure: FIGURES[0],
            depth: Depth::quick(),
            outcome,
        })
    }

    #[test]
    fn claims_are_rows() {
        let table = claims_csv(&entries());
        let rows: Vec<_> = csv::Reader::from_reader(&table[..])
            .into_records()
            .map(|row| row.expect("a row"))
            .collect();
        let column = |index: usize| -> Vec<_> { rows.iter().map(|row| &row[index]).collect() };
        assert_eq!(column(3), ["a, \"b\" | c", "slower", "faster"]);
        assert_eq!(column(6), ["pass", "deviation", "fail"]);
        assert_eq!(column(7), ["", "air, and noise", ""]);
        assert_eq!(&rows[0][1], "tack lab run 1 --quick");
    }

    #[test]
    fn the_document_has_a_table_for_each_figure() {
        let text = markdown(&entries());
        assert!(
            text.contains("| a, \"b\" \\| c | 1 % | 2 ± 0.1 % | pass |"),
            "{text}"
        );
        assert!(
            text.contains("| slower | 1 | 2 | deviation: air, and noise |"),
            "{text}"
        );
        assert!(text.ends_with("Not measured yet.\n"), "{text}");
    }
}
