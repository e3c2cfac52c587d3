//! The report: one HTML page that needs nothing beside it.

use askama::Template;
use tack_plot::STYLE;

use crate::claim::Verdict;
use crate::figure::{Depth, Figure, Outcome, Table};
use crate::point::CODE_VERSION;

/// A figure on the page.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Which.
    pub figure: Figure,
    /// How deep it was measured.
    pub depth: Depth,
    /// What came of it; `None` when it has not been run.
    pub outcome: Option<Outcome>,
}

impl Entry {
    fn id(&self) -> &'static str {
        self.figure.id
    }

    pub(crate) fn command(&self) -> String {
        let plan = self.figure.plan(&self.depth);
        let traces = if plan.iter().any(crate::Point::needs_recordings) {
            " --traces DIR"
        } else {
            ""
        };
        let options = self.depth.options();
        format!("tack lab run {} {options}{traces}", self.figure.id)
    }

    /// Every table with something to call it by.
    fn tables<'a>(&self, outcome: &'a Outcome) -> Vec<(String, &'a Table)> {
        let further = outcome.further.iter();
        std::iter::once(&outcome.numbers)
            .chain(further)
            .map(|table| match table.part {
                "" => ("Every number".into(), table),
                part => (format!("Every number: {part}"), table),
            })
            .collect()
    }

    /// Class and word of the whole: the worst of its claims.
    fn state(&self) -> (&'static str, &'static str) {
        let Some(outcome) = &self.outcome else {
            return ("none", "not run");
        };
        let verdicts = || outcome.claims.iter().map(crate::Claim::verdict);
        if verdicts().any(|verdict| verdict == Verdict::Fail) {
            ("fail", "fails")
        } else if verdicts().any(|verdict| verdict != Verdict::Pass) {
            ("deviation", "deviates")
        } else {
            ("pass", "passes")
        }
    }

    fn claims(&self) -> Vec<Line<'_>> {
        let Some(outcome) = &self.outcome else {
            return Vec::new();
        };
        let line = |claim| {
            let claim: &crate::Claim = claim;
            let (class, word, reason) = match claim.verdict() {
                Verdict::Pass => ("pass", "pass", ""),
                Verdict::Deviation(reason) => ("deviation", "deviation", reason),
                Verdict::Fail => ("fail", "fails", ""),
            };
            Line {
                claim,
                class,
                word,
                reason,
            }
        };
        outcome.claims.iter().map(line).collect()
    }
}

struct Line<'a> {
    claim: &'a crate::Claim,
    class: &'static str,
    word: &'static str,
    reason: &'a str,
}

#[derive(Template)]
#[template(path = "lab.html")]
struct Page<'a> {
    style: &'static str,
    entries: &'a [Entry],
    summary: String,
    intervals: &'static str,
    code: &'static str,
    version: &'static str,
}

/// The page of `entries`.
pub fn page(entries: &[Entry]) -> String {
    let page = Page {
        style: STYLE,
        entries,
        summary: summary(entries),
        intervals: INTERVALS,
        code: CODE_VERSION,
        version: env!("CARGO_PKG_VERSION"),
    };
    // Writing to a string fails only when a value's own Display does, and these are texts.
    page.render().unwrap_or_default()
}

fn summary(entries: &[Entry]) -> String {
    let all: Vec<_> = entries.iter().flat_map(Entry::claims).collect();
    let count = |class: &str| all.iter().filter(|line| line.class == class).count();
    let run = entries
        .iter()
        .filter(|entry| entry.outcome.is_some())
        .count();
    format!(
        "{run} of {} figures measured; of their {} claims {} hold, {} deviate for a reason that is given, {} fail.",
        entries.len(),
        all.len(),
        count("pass"),
        count("deviation"),
        count("fail")
    )
}

/// How the page's intervals are to be read.
const INTERVALS: &str = "± is the 95 % confidence interval of a mean over seeds (Student's t); without it there was one run, \
or all were equal.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::FIGURES;
    use crate::store::Results;

    #[test]
    fn the_page_needs_nothing_and_names_every_plot() {
        let depth = Depth::quick();
        let entries: Vec<Entry> = FIGURES
            .iter()
            .map(|figure| Entry {
                figure: *figure,
                depth: depth.clone(),
                outcome: Some(figure.reduce(&depth, &Results::default())),
            })
            .collect();
        let html = page(&entries);
        let plots = html.matches("<svg").count();
        assert!(plots >= FIGURES.len());
        assert_eq!(html.matches("role=\"img\"").count(), plots);
        assert_eq!(html.matches("aria-labelledby=\"").count(), plots);
        for figure in FIGURES {
            assert_eq!(
                html.matches(&format!("<section id=\"figure-{}\"", figure.id))
                    .count(),
                1
            );
        }
        assert!(!html.contains("NaN"), "what is missing is a dash");
        assert!(html.contains("name=\"viewport\""), "for phones");
        assert!(html.contains("prefers-color-scheme:dark"));
        for outside in ["src=", "href=\"http", "url(", "<script", "@import"] {
            assert!(!html.contains(outside), "{outside}");
        }
        // An id that stands twice breaks the names of plots.
        let mut ids: Vec<_> = html
            .split(" id=\"")
            .skip(1)
            .map(|rest| rest.split('"').next())
            .collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn figures_that_were_not_run_say_how() {
        let entry = Entry {
            figure: FIGURES[0],
            depth: Depth::full(),
            outcome: None,
        };
        let html = page(&[entry]);
        assert!(html.contains(&format!("tack lab run {} --full", FIGURES[0].id)));
        assert!(html.contains("not run"));
    }
}
