//! The claims of all figures as tables: for scripts, and for a document.

use std::fmt::Write as _;

use crate::claim::{Claim, Verdict};
use crate::entry::Entry;
use crate::figure::Table;
use crate::point::CODE_VERSION;

/// `claims.csv`: a row for each claim of each figure that was measured, in reading order. `figure`,
/// `command` (which measures it), `code` (the version of the code), `claim`, `paper`, `ours`,
/// `verdict` ([`Verdict::name`]), `reason`.
pub fn claims_csv(entries: &[Entry]) -> Vec<u8> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let header = [
        "figure", "command", "code", "claim", "paper", "ours", "verdict", "reason",
    ];
    // Writing to memory does not fail, nor do records of equal length.
    let _ = out.write_record(header);
    for entry in entries {
        for claim in claims(entry) {
            let verdict = claim.verdict();
            let command = entry.command();
            let _ = out.write_record([
                entry.figure.id,
                &command,
                CODE_VERSION,
                &claim.words,
                &claim.paper,
                &claim.ours,
                verdict.name(),
                verdict.reason(),
            ]);
        }
    }
    out.into_inner().unwrap_or_default()
}

/// How many claims there are of each verdict, of those that occur: `5 claims: 3 pass, 2 fail`.
pub fn counts(entries: &[Entry]) -> String {
    let of = |verdict: Verdict<'_>| {
        let all = entries.iter().flat_map(claims);
        all.filter(|claim| claim.verdict().name() == verdict.name())
            .count()
    };
    let counted = Verdict::ALL.map(|verdict| (of(verdict), verdict.name()));
    let total: usize = counted.iter().map(|(count, _)| count).sum();
    let parts: Vec<_> = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    match (total, parts.is_empty()) {
        (_, true) => "no claims".into(),
        (1, _) => format!("1 claim: {}", parts.join(", ")),
        _ => format!("{total} claims: {}", parts.join(", ")),
    }
}

/// The claims as JSON: an array with an object for each, with the same names as the columns of
/// [`claims_csv`].
pub fn claims_json(entries: &[Entry]) -> String {
    let objects: Vec<_> = entries
        .iter()
        .flat_map(|entry| claims(entry).map(move |claim| (entry, claim)))
        .map(|(entry, claim)| {
            let verdict = claim.verdict();
            serde_json::json!({
                "figure": entry.figure.id,
                "command": entry.command(),
                "code": CODE_VERSION,
                "claim": claim.words,
                "paper": claim.paper,
                "ours": claim.ours,
                "verdict": verdict.name(),
                "reason": verdict.reason(),
            })
        })
        .collect();
    serde_json::Value::from(objects).to_string()
}

/// `report.md`: the same as a document, with a section for each figure.
pub fn markdown(entries: &[Entry]) -> String {
    let mut text = String::from(
        "# TACK, TCP/HACK and ACK filtering: the figures of three papers, measured again\n",
    );
    for entry in entries {
        let _ = write!(
            text,
            "\n## {}: {}\n\n{}\n\n`{}`\n\n",
            entry.figure.heading(),
            entry.figure.title,
            entry.figure.about,
            entry.command()
        );
        let Some(outcome) = &entry.outcome else {
            text.push_str("Not measured yet.\n");
            continue;
        };
        if entry.figure.is_real_time() {
            let _ = writeln!(text, "{}.\n", counts(std::slice::from_ref(entry)));
        }
        text.push_str("| claim | paper | ours | verdict |\n| --- | --- | --- | --- |\n");
        for claim in claims(entry) {
            let verdict = claim.verdict();
            let (name, reason) = (verdict.name(), verdict.reason());
            let reason = if reason.is_empty() {
                String::new()
            } else {
                format!(": {}", cell(reason))
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {name}{reason} |",
                cell(&claim.words),
                cell(&claim.paper),
                cell(&claim.ours)
            );
        }
        // Nobody gets the same numbers again from runs in real time, so they stand here too.
        let tables = outcome.tables().filter(|_| entry.figure.is_real_time());
        for table in tables {
            write_table(&mut text, table);
        }
        for note in &outcome.notes {
            let _ = writeln!(text, "\n{note}");
        }
    }
    text
}

fn write_table(text: &mut String, table: &Table) {
    if !table.part.is_empty() {
        let _ = write!(text, "\n{}:\n", sentence(table.part));
    }
    let row = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|it| cell(it)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    text.push('\n');
    text.push_str(&row(&table.head));
    text.push_str(&row(&vec!["---".to_owned(); table.head.len()]));
    for cells in &table.rows {
        text.push_str(&row(cells));
    }
}

/// With a capital letter at the front.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .collect()
}

fn claims(entry: &Entry) -> impl Iterator<Item = &Claim> {
    entry.outcome.iter().flat_map(|outcome| &outcome.claims)
}

/// A text that stays inside its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Depth, FIGURES, Outcome, REAL_TIME};

    fn entries() -> [Entry; 2] {
        let claims = vec![
            Claim::new("a, \"b\" | c", "1 %", "2 ± 0.1 %", true),
            Claim::new("slower", "1", "2", false).or("air, and noise", true),
            Claim::new("faster", "1", "2", false),
            Claim::new("baseline", "1", "1", true).calibrated(),
            Claim::new("apart", "1", "2", false).or_unexplained("not the air", true),
            Claim::new("maybe", "1", "2", crate::Estimate::of(&[2.0]).is_above(1.0)),
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
        assert_eq!(
            column(3),
            [
                "a, \"b\" | c",
                "slower",
                "faster",
                "baseline",
                "apart",
                "maybe"
            ]
        );
        let verdicts = [
            "pass",
            "deviation",
            "fail",
            "calibrated",
            "unexplained",
            "inconclusive",
        ];
        assert_eq!(column(6), verdicts);
        let reasons = column(7);
        assert_eq!(reasons[..5], ["", "air, and noise", "", "", "not the air"]);
        assert!(reasons[5].starts_with("By its mean"));
        assert_eq!(&rows[0][1], "tack lab run 1 --quick");
    }

    #[test]
    fn numbers_of_runs_in_real_time_are_in_the_document() {
        let [mut entry, _] = entries();
        let mut table = Table::new(["path", "Mbit/s"]);
        table.row(["a|b".into(), "1".into()]);
        table.part = "the rest";
        let numbers = Table::new(["path"]);
        entry.outcome = Some(Outcome {
            numbers,
            further: vec![table],
            ..Outcome::default()
        });
        let text =
            "| path |\n| --- |\n\nThe rest:\n\n| path | Mbit/s |\n| --- | --- |\n| a\\|b | 1 |\n";
        assert!(!markdown(&[entry.clone()]).contains(text));
        entry.figure = REAL_TIME[0];
        let document = markdown(&[entry]);
        assert!(document.contains(text) && document.contains("\n\nno claims.\n\n|"));
    }

    #[test]
    fn claims_are_counted_by_verdict() {
        let text =
            "6 claims: 1 pass, 1 calibrated, 1 deviation, 1 unexplained, 1 inconclusive, 1 fail";
        assert_eq!(counts(&entries()), text);
        assert_eq!(counts(&entries()[1..]), "no claims");
    }

    #[test]
    fn claims_are_objects() {
        let parsed: serde_json::Value = serde_json::from_str(&claims_json(&entries())).unwrap();
        assert_eq!(parsed.as_array().map(Vec::len), Some(6));
        assert_eq!(parsed[1]["reason"], "air, and noise");
        assert_eq!(parsed[3]["verdict"], "calibrated");
        assert_eq!(parsed[5]["verdict"], "inconclusive");
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
