//! The report: one HTML page that needs nothing beside it.

use askama::Template;
use tack_plot::{STYLE, Width};

use crate::claim::Verdict;
use crate::entry::Entry;
use crate::export::{data_url, name, plot_csv};
use crate::figure::{Extent, Outcome, Paper, Table};
use crate::point::CODE_VERSION;

impl Entry {
    fn id(&self) -> &'static str {
        self.figure.id
    }

    fn heading(&self) -> String {
        self.figure.heading()
    }

    /// Every table with something to call it by.
    fn tables<'a>(&self, outcome: &'a Outcome) -> Vec<(String, &'a Table)> {
        outcome
            .tables()
            .map(|table| match table.part {
                "" => ("Every number".into(), table),
                part => (format!("Every number: {part}"), table),
            })
            .collect()
    }

    /// How many claims there are of each verdict that occurs.
    /// A number of a table, in one line with its interval.
    fn cell(&self, text: &str) -> String {
        unbroken(text)
    }

    fn counts(&self) -> Vec<Count> {
        let lines = self.claims();
        Verdict::ALL
            .into_iter()
            .map(|verdict| Count {
                verdict: verdict.name(),
                count: lines
                    .iter()
                    .filter(|line| line.verdict == verdict.name())
                    .count(),
            })
            .filter(|count| count.count > 0)
            .collect()
    }

    /// The plots in both widths, and as files.
    fn plots<'a>(&self, outcome: &'a Outcome) -> Vec<Drawn<'a>> {
        let drawn = |plot: &'a crate::Plot| Drawn {
            page: plot.svg.inline(Width::Page),
            column: plot.svg.inline(Width::Column),
            caption: &plot.caption,
            name: name(&plot.svg),
            svg: data_url("image/svg+xml", plot.svg.file(Width::Page).as_bytes()),
            csv: data_url("text/csv", &plot_csv(&plot.svg)),
        };
        outcome.plots.iter().map(drawn).collect()
    }

    fn extent(&self) -> &'static str {
        self.depth.pick("quick form", "full form")
    }

    fn claims(&self) -> Vec<Line<'_>> {
        let Some(outcome) = &self.outcome else {
            return Vec::new();
        };
        let line = |claim| {
            let claim: &crate::Claim = claim;
            Line {
                claim,
                verdict: claim.verdict().name(),
                reason: claim.verdict().reason(),
                paper: unbroken(&claim.paper),
                ours: unbroken(&claim.ours),
            }
        };
        outcome.claims.iter().map(line).collect()
    }
}

/// A verdict, and how many claims have it.
struct Count {
    verdict: &'static str,
    count: usize,
}

/// A plot as the page has it.
struct Drawn<'a> {
    page: String,
    column: String,
    caption: &'a str,
    /// Of its files.
    name: String,
    svg: String,
    csv: String,
}

struct Line<'a> {
    claim: &'a crate::Claim,
    verdict: &'static str,
    reason: &'a str,
    paper: String,
    ours: String,
}

/// Numbers stay with their intervals and units, however narrow their column is.
fn unbroken(text: &str) -> String {
    text.replace(" ±", "\u{a0}±")
        .replace("± ", "±\u{a0}")
        .replace(" %", "\u{a0}%")
        .replace(" ms", "\u{a0}ms")
        .replace(" Mbit/s", "\u{a0}Mbit/s")
}

#[derive(Template)]
#[template(path = "lab.html")]
struct Page<'a> {
    style: &'static str,
    entries: &'a [Entry],
    /// Those that have a figure here.
    papers: Vec<Paper>,
    summary: Summary,
    intervals: &'static str,
    written: &'a str,
    code: &'static str,
    version: &'static str,
}

/// The page of `entries`; `written` is the date it shows.
pub fn page(entries: &[Entry], written: &str) -> String {
    let page = Page {
        style: STYLE,
        entries,
        papers: Paper::ALL
            .into_iter()
            .filter(|paper| entries.iter().any(|entry| entry.figure.paper == *paper))
            .collect(),
        summary: Summary::of(entries),
        intervals: INTERVALS,
        written,
        code: CODE_VERSION,
        version: env!("CARGO_PKG_VERSION"),
    };
    // Writing to a string fails only when a value's own Display does, and these are texts.
    page.render().unwrap_or_default()
}

/// The beginning of the page.
struct Summary {
    /// Which figures, and how deep.
    figures: String,
    /// Of all verdicts, those without a claim too, with what they mean.
    counts: Vec<(Count, &'static str)>,
}

impl Summary {
    fn of(entries: &[Entry]) -> Self {
        let lines: Vec<_> = entries.iter().flat_map(Entry::claims).collect();
        let counts = Verdict::ALL.map(|verdict| {
            let name = verdict.name();
            let count = lines.iter().filter(|line| line.verdict == name).count();
            let count = Count {
                verdict: name,
                count,
            };
            (count, meaning(verdict))
        });
        let measured = |extent: Extent| {
            let of = |entry: &&Entry| entry.outcome.is_some() && entry.depth.extent == extent;
            entries.iter().filter(of).count()
        };
        let (full, quick) = (measured(Extent::Full), measured(Extent::Quick));
        Self {
            figures: format!(
                "{} of {} figures measured: {full} in full, {quick} in the quick form with few seeds.",
                full + quick,
                entries.len()
            ),
            counts: counts.into(),
        }
    }
}

fn meaning(verdict: Verdict<'_>) -> &'static str {
    match verdict {
        Verdict::Pass => "the claim holds",
        Verdict::Calibrated => "parameters were chosen so that it holds",
        Verdict::Deviation(_) => "it does not hold, for a reason that is given and tested",
        Verdict::Unexplained(_) => "it does not hold, and why is not known",
        Verdict::Inconclusive(_) => "the interval contains the bound: more runs have to decide",
        Verdict::Fail => "it does not hold",
    }
}

/// How the page's intervals are to be read.
const INTERVALS: &str = "± is the 95 % confidence interval of a mean over seeds (Student's t); without it there was one run, \
or all were equal.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Depth;
    use crate::figures::FIGURES;
    use crate::results::Results;

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
        let html = page(&entries, "2026-01-01");
        let plots = html.matches("<svg").count();
        assert!(plots >= FIGURES.len());
        assert_eq!(html.matches("role=\"img\"").count(), plots);
        assert_eq!(html.matches("aria-labelledby=\"").count(), plots);
        let verdicts = html.find(">verdict</th>").unwrap();
        assert!(
            verdicts < html.find(">claim</th>").unwrap(),
            "verdicts first"
        );
        for figure in FIGURES {
            assert_eq!(
                html.matches(&format!("<section id=\"figure-{}\"", figure.id))
                    .count(),
                1
            );
        }
        let missing = html
            .find("NaN")
            .map(|at| &html[at.saturating_sub(120)..at + 3]);
        assert_eq!(missing, None, "what is missing is a dash");
        assert!(html.contains("name=\"viewport\""), "for phones");
        assert!(html.contains("prefers-color-scheme:dark"));
        assert_eq!(
            html.matches(" download=\"").count(),
            plots,
            "each plot is there in two widths, and as SVG and CSV"
        );
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
        let html = page(&[entry], "2026-01-01");
        assert!(html.contains(&format!("tack lab run {} --full", FIGURES[0].id)));
        assert!(html.contains("not measured"));
        assert!(html.contains("<details class=\"folded\"><summary>"));
        assert!(html.contains("2026-01-01"));
    }

    #[test]
    fn reasons_are_behind_a_disclosure_and_verdicts_are_counted() {
        let claims = vec![
            crate::Claim::new("fast", "2", "2", true),
            crate::Claim::new("slow", "2", "1", false).or("the air is ideal", true),
            crate::Claim::new("base", "2", "2", true).calibrated(),
            crate::Claim::new("apart", "2", "1", false).or_unexplained("not the air", true),
            crate::Claim::new("maybe", "2", "1", crate::Estimate::of(&[1.0]).is_above(2.0)),
        ];
        let entry = Entry {
            figure: FIGURES[0],
            depth: Depth::quick(),
            outcome: Some(Outcome {
                claims,
                ..Outcome::default()
            }),
        };
        let html = page(&[entry], "2026-01-01");
        let reason =
            "<details><summary>Why</summary><div class=\"reason\">the air is ideal</div></details>";
        assert_eq!(html.matches(reason).count(), 1);
        for verdict in Verdict::ALL {
            let name = verdict.name();
            let count = usize::from(name != "fail");
            let counted = format!("<span class=\"{name}\">{count} {name}</span>");
            // On top of the page; and in the table of contents and the section when there are any.
            assert_eq!(html.matches(&counted).count(), 1 + 2 * count, "{name}");
        }
    }

    #[test]
    fn numbers_of_tables_stay_with_their_intervals() {
        let mut numbers = crate::figure::Table::new(["Mbit/s"]);
        numbers.row(["2.44 ± <0.01".into()]);
        let entry = Entry {
            figure: FIGURES[0],
            depth: Depth::quick(),
            outcome: Some(Outcome {
                numbers,
                ..Outcome::default()
            }),
        };
        let html = page(&[entry], "2026-01-01");
        let number = html.split("<td>").find(|cell| cell.starts_with("2.44"));
        let number = number.expect("the number is there");
        assert!(number.starts_with("2.44\u{a0}±\u{a0}"), "{number}");
    }
}
