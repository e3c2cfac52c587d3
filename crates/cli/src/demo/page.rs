//! The report: one HTML page that needs nothing beside it.

use askama::Template;
use tack_emulator::AirSeconds;
use tack_plot::{Bar, Line, LineChart, STYLE, StackedBars, Stroke, Width, format_number};

use super::Setting;
use super::figures::{Outcome, Point};
use super::table::{Row, rows, signed_percent, warnings};

/// A plot and what it says.
struct Figure {
    svg: String,
    caption: String,
}

/// One run in the list at the end.
struct Run {
    name: String,
    goodput: String,
    virtual_time: String,
    deviation: String,
    acks: String,
    lateness: String,
    limited_by: String,
}

#[derive(Template)]
#[template(path = "demo.html")]
pub(crate) struct Page<'a> {
    style: &'static str,
    setting: &'a Setting,
    policies: Vec<&'a str>,
    headline: String,
    rows: Vec<Row>,
    warnings: Vec<String>,
    figures: Vec<Figure>,
    runs: Vec<Run>,
    version: &'static str,
}

impl<'a> Page<'a> {
    pub(crate) fn new(setting: &'a Setting, outcomes: &[Outcome], policies: &[&'a str]) -> Self {
        Self {
            style: STYLE,
            setting,
            policies: policies.to_vec(),
            headline: headline(outcomes, policies),
            rows: rows(outcomes, policies).into_iter().map(unbroken).collect(),
            warnings: warnings(outcomes),
            figures: figures(outcomes, policies),
            runs: outcomes.iter().map(Run::new).collect(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    pub(crate) fn to_html(&self) -> String {
        // Writing to a string fails only when a value's own Display does, and these are texts.
        self.render().unwrap_or_default()
    }
}

impl Run {
    fn new(outcome: &Outcome) -> Self {
        let mbps = |bits: f64| format!("{} Mbit/s", format_number(bits / 1e6));
        Self {
            name: format!("{}, seed {}", outcome.ack, outcome.seed),
            goodput: mbps(outcome.measured.goodput_bps),
            virtual_time: mbps(outcome.virtual_time.goodput_bps),
            deviation: signed_percent(outcome.deviation()),
            acks: format!(
                "{} (virtual time: {})",
                format_number(outcome.measured.acks as f64),
                format_number(outcome.virtual_time.acks as f64)
            ),
            lateness: format!(
                "{:.2} / {:.2} / {:.1} ms",
                outcome.lateness.p50_us as f64 / 1e3,
                outcome.lateness.p99_us as f64 / 1e3,
                outcome.lateness.max_us as f64 / 1e3
            ),
            limited_by: outcome.measured.limited_by.clone(),
        }
    }
}

/// Numbers stay with their units, however narrow the page is.
fn unbroken(row: Row) -> Row {
    const LONGEST: usize = 14;
    let join = |text: String| match text.len() {
        0..=LONGEST => text.replace(' ', "\u{a0}"),
        _ => text,
    };
    Row {
        values: row.values.into_iter().map(join).collect(),
        change: join(row.change),
        ..row
    }
}

/// The comparison in a sentence. Goodput is compared in virtual time where the machine spoilt the measurement.
fn headline(outcomes: &[Outcome], policies: &[&str]) -> String {
    let changes = rows(outcomes, policies);
    let change = |name: &str| {
        let row = changes.iter().find(|row| row.name.trim() == name);
        row.map_or_else(String::new, |row| row.change.clone())
    };
    let (goodput, spoilt) = if outcomes.iter().all(|outcome| outcome.trust.ok) {
        (format!("goodput {}", change("goodput")), "")
    } else {
        (
            format!("goodput {} in virtual time", change("in virtual time")),
            " This machine did not keep up in real time, so that what was measured compares nothing: see below.",
        )
    };
    format!(
        "The same file, the same stack, the same congestion control; only the acknowledgements differ. With {}: {goodput}, \
         ACKs {}.{spoilt}",
        policies.last().copied().unwrap_or_default(),
        change("ACKs")
    )
}

/// The first run of each policy.
fn firsts<'o>(outcomes: &'o [Outcome], policies: &[&str]) -> Vec<&'o Outcome> {
    policies
        .iter()
        .filter_map(|ack| outcomes.iter().find(|outcome| outcome.ack == *ack))
        .collect()
}

fn figures(outcomes: &[Outcome], policies: &[&str]) -> Vec<Figure> {
    let firsts = firsts(outcomes, policies);
    vec![
        rates(&firsts),
        air(&firsts),
        acknowledgements(&firsts),
        queues(&firsts),
    ]
}

fn line(
    name: String,
    colour: usize,
    stroke: Stroke,
    points: &[Point],
    value: impl Fn(&Point) -> Option<f64>,
) -> Line {
    Line {
        name,
        points: points
            .iter()
            .filter_map(|point| Some((point.seconds, value(point)?)))
            .collect(),
        colour,
        stroke,
        ..Line::default()
    }
}

fn rates(firsts: &[&Outcome]) -> Figure {
    let mut lines = Vec::new();
    for (colour, outcome) in firsts.iter().enumerate() {
        for (kind, stroke, run) in [
            ("virtual time", Stroke::Dashed, &outcome.virtual_time),
            ("measured", Stroke::Solid, &outcome.measured),
        ] {
            let name = format!("{}, {kind}", outcome.ack);
            let mbps = |point: &Point| Some(point.goodput_bps / 1e6);
            lines.push(line(name, colour, stroke, &run.series, mbps));
        }
    }
    let description = firsts
        .iter()
        .map(|outcome| {
            format!(
                "{}: {} Mbit/s on average over {:.1} s; in virtual time {} Mbit/s.",
                outcome.ack,
                format_number(outcome.measured.goodput_bps / 1e6),
                outcome.measured.seconds,
                format_number(outcome.virtual_time.goodput_bps / 1e6)
            )
        })
        .collect::<Vec<_>>()
        .join(" ");
    over_time("rates", "Goodput over time", "Mbit/s", lines, &description)
}

fn air(firsts: &[&Outcome]) -> Figure {
    let parts = [
        ("data", 1),
        ("ACKs", 0),
        ("link control", 2),
        ("collisions", 3),
        ("access", 4),
        ("idle", 5),
    ];
    let values = |air: &AirSeconds| {
        vec![
            air.data,
            air.ack,
            air.control,
            air.collision,
            air.access,
            air.idle,
        ]
    };
    let bars = firsts
        .iter()
        .flat_map(|outcome| {
            [
                ("measured", &outcome.measured),
                ("virtual time", &outcome.virtual_time),
            ]
            .map(|(kind, run)| Bar {
                name: format!("{}, {kind}", outcome.ack),
                values: values(&run.air),
            })
        })
        .collect();
    let description = firsts
        .iter()
        .map(|outcome| {
            format!(
                "{}: data {} %, ACKs {} %, collisions {} %.",
                outcome.ack,
                format_number(outcome.measured.air.data * 100.0),
                format_number(outcome.measured.air.ack * 100.0),
                format_number(outcome.measured.air.collision * 100.0)
            )
        })
        .collect::<Vec<_>>()
        .join(" ");
    figure(
        StackedBars {
            id: "air".into(),
            title: "Who used the air".into(),
            description: description.clone(),
            parts: parts
                .map(|(name, colour)| (name.to_owned(), colour))
                .to_vec(),
            bars,
        }
        .to_svg(),
        "Who used the air",
        &format!(
            "{description} Access is the silence in which radios wait for their turn: interframe spaces and backoff."
        ),
    )
}

fn acknowledgements(firsts: &[&Outcome]) -> Figure {
    let lines = firsts
        .iter()
        .enumerate()
        .map(|(colour, outcome)| {
            let series = &outcome.measured.series;
            line(
                outcome.ack.clone(),
                colour,
                Stroke::Solid,
                series,
                |point| point.acks_per_second,
            )
        })
        .collect();
    let description = firsts
        .iter()
        .map(|outcome| {
            format!(
                "{}: {} per second on average.",
                outcome.ack,
                format_number(outcome.measured.acks as f64 / outcome.measured.seconds)
            )
        })
        .collect::<Vec<_>>()
        .join(" ");
    over_time(
        "acks",
        "Acknowledgements over time",
        "ACKs per second",
        lines,
        &description,
    )
}

fn queues(firsts: &[&Outcome]) -> Figure {
    let mut lines = Vec::new();
    for (colour, outcome) in firsts.iter().enumerate() {
        for (kind, stroke, run) in [
            ("virtual time", Stroke::Dashed, &outcome.virtual_time),
            ("measured", Stroke::Solid, &outcome.measured),
        ] {
            let name = format!("{}, {kind}", outcome.ack);
            let packets = |point: &Point| Some(point.queue as f64);
            lines.push(line(name, colour, stroke, &run.series, packets));
        }
    }
    let description = "Packets that wait at the access point.";
    over_time(
        "queues",
        "Queue of the access point",
        "packets",
        lines,
        description,
    )
}

/// What changes in the course of a run.
fn over_time(id: &str, title: &str, y_label: &str, lines: Vec<Line>, description: &str) -> Figure {
    let chart = LineChart {
        id: id.into(),
        title: title.into(),
        description: description.into(),
        x_label: "seconds".into(),
        y_label: y_label.into(),
        lines,
        ..LineChart::default()
    };
    figure(chart.to_svg().inline(Width::Column), title, description)
}

fn figure(svg: String, title: &str, caption: &str) -> Figure {
    Figure {
        svg,
        caption: format!("{title}. {caption}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::{kept_up, outcome, setting};
    use super::*;

    #[test]
    fn the_page_needs_nothing_and_names_every_plot() {
        let outcomes = [outcome("delayed:2", 1e8, 500), outcome("tack", 1.2e8, 30)];
        let setting = setting();
        let html = Page::new(&setting, &outcomes, &["delayed:2", "tack"]).to_html();
        assert_eq!(html.matches("<svg").count(), 4);
        assert_eq!(html.matches("role=\"img\"").count(), 4);
        assert_eq!(html.matches("aria-labelledby").count(), 4);
        for id in ["rates-column", "air", "acks-column", "queues-column"] {
            assert_eq!(html.matches(&format!("id=\"{id}-t\"")).count(), 1, "{id}");
        }
        assert!(html.contains("a &#60;file&#62;"), "texts are escaped");
        assert!(html.contains("the machine &#60;slept&#62;"));
        assert!(html.contains("name=\"viewport\""), "for phones");
        assert!(html.contains("prefers-color-scheme:dark"));
        for outside in ["src=", "href=\"http", "url(", "<script", "@import"] {
            assert!(!html.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_sentence_at_the_top_says_only_what_was_measured() {
        let policies = ["delayed:2", "tack"];
        let mut outcomes = [outcome("delayed:2", 1e8, 500), outcome("tack", 1.2e8, 30)];
        // A machine that slept: twice the goodput, which means nothing.
        outcomes[1].measured.goodput_bps = 2e8;
        let text = headline(&outcomes, &policies);
        assert!(text.contains("goodput +20 % in virtual time"), "{text}");
        assert!(text.contains("did not keep up"), "{text}");
        let text = headline(&outcomes.map(kept_up), &policies);
        assert!(text.contains("goodput +100 %, ACKs −94 %."), "{text}");
    }

    #[test]
    fn pages_about_nothing_are_pages() {
        let setting = setting();
        assert!(
            Page::new(&setting, &[], &["delayed:2", "tack"])
                .to_html()
                .contains("</html>")
        );
    }
}
