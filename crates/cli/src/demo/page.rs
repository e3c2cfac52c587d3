//! The report: one HTML page that needs nothing beside it.

use askama::Template;
use tack_emulator::AirSeconds;
use tack_plot::{Bar, Line, LineChart, STYLE, StackedBars, Stroke, Width, format_number};

use super::figures::{Figures, Outcome, Point};
use super::setting::Setting;
use super::table::{Row, rows, signed_percent, warnings};

/// A plot and its caption.
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
    /// Names of the mechanisms, cut where lines may break.
    heads: Vec<Vec<&'a str>>,
    title: String,
    headline: String,
    rows: Vec<Row>,
    warnings: Vec<String>,
    figures: Vec<Figure>,
    /// A filter or TCP/HACK is on in some run.
    filters: bool,
    hack: bool,
    runs: Vec<Run>,
    version: &'static str,
}

impl<'a> Page<'a> {
    pub(crate) fn new(setting: &'a Setting, outcomes: &[Outcome]) -> Self {
        let mechanisms = &setting.mechanisms;
        Self {
            style: STYLE,
            setting,
            heads: mechanisms
                .iter()
                .map(|name| name.split('+').collect())
                .collect(),
            title: title(mechanisms.len()),
            headline: headline(outcomes, mechanisms),
            rows: rows(outcomes, mechanisms)
                .into_iter()
                .map(unbroken)
                .collect(),
            warnings: warnings(outcomes),
            figures: figures(outcomes, mechanisms),
            filters: outcomes.iter().any(|outcome| outcome.ack_filter != "off"),
            hack: outcomes.iter().any(|outcome| outcome.hack != "off"),
            runs: outcomes.iter().map(Run::new).collect(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// Two have a column for the change from the one to the other; of more, each has its own below
    /// its value.
    fn is_pair(&self) -> bool {
        self.heads.len() == 2
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
            name: format!("{}, seed {}", outcome.mechanism, outcome.seed),
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
        changes: row.changes.into_iter().map(join).collect(),
        ..row
    }
}

fn title(mechanisms: usize) -> String {
    let number = ["no", "one", "two", "three", "four"].get(mechanisms);
    let number = number.map_or_else(|| mechanisms.to_string(), |word| (*word).to_owned());
    format!("One file, {number} ways to acknowledge it")
}

/// The comparison in a sentence or two. Goodput is compared in virtual time where the machine
/// spoilt the measurement.
fn headline(outcomes: &[Outcome], mechanisms: &[String]) -> String {
    let rows = rows(outcomes, mechanisms);
    let change = |name: &str, index: usize| {
        let row = rows.iter().find(|row| row.name.trim() == name);
        row.and_then(|row| row.changes.get(index).cloned())
            .unwrap_or_default()
    };
    let is_trusted = outcomes.iter().all(|outcome| outcome.trust.ok);
    let goodput = |index| match is_trusted {
        true => format!("goodput {}", change("goodput", index)),
        false => format!(
            "goodput {} in virtual time",
            change("in virtual time", index)
        ),
    };
    let spoilt = match is_trusted {
        true => "",
        false => {
            " This machine did not keep up in real time, so the measurements cannot be compared; see below."
        }
    };
    let same = "The same file, the same stack, the same congestion control; only the acknowledgements differ.";
    if let [_, second] = mechanisms {
        let (goodput, acks) = (goodput(1), change("ACKs", 1));
        return format!("{same} With {second}: {goodput}, ACKs {acks}.{spoilt}");
    }
    let Some((first, others)) = mechanisms.split_first() else {
        return same.into();
    };
    let others: Vec<_> = others
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let air = change("airtime of ACKs", index + 1);
            let air = match air.as_str() {
                "" => air,
                _ => format!(", airtime of ACKs {air}"),
            };
            format!("{name}: {}{air}", goodput(index + 1))
        })
        .collect();
    format!(
        "{same} Compared with {first}, {}.{spoilt}",
        others.join("; ")
    )
}

/// The first run of each mechanism.
fn firsts<'o>(outcomes: &'o [Outcome], mechanisms: &[String]) -> Vec<&'o Outcome> {
    let first = |name: &String| outcomes.iter().find(|outcome| outcome.mechanism == *name);
    mechanisms.iter().filter_map(first).collect()
}

/// A run in a plot over time.
struct Shown<'o> {
    kind: &'static str,
    stroke: Stroke,
    run: &'o Figures,
}

/// The runs of a mechanism that a plot over time shows, with the strokes of their lines: more than
/// two mechanisms have one each, or the lines could not be distinguished.
fn shown(outcome: &Outcome, mechanisms: usize) -> Vec<Shown<'_>> {
    let measured = Shown {
        kind: "measured",
        stroke: Stroke::Solid,
        run: &outcome.measured,
    };
    let in_virtual_time = Shown {
        kind: "virtual time",
        stroke: Stroke::Dashed,
        run: &outcome.virtual_time,
    };
    match mechanisms {
        0..=2 => vec![in_virtual_time, measured],
        _ if outcome.trust.ok => vec![measured],
        _ => vec![in_virtual_time],
    }
}

fn figures(outcomes: &[Outcome], mechanisms: &[String]) -> Vec<Figure> {
    let firsts = firsts(outcomes, mechanisms);
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
        for Shown { kind, stroke, run } in shown(outcome, firsts.len()) {
            let name = format!("{}, {kind}", outcome.mechanism);
            let mbps = |point: &Point| Some(point.goodput_bps / 1e6);
            lines.push(line(name, colour, stroke, &run.series, mbps));
        }
    }
    let description = firsts
        .iter()
        .map(|outcome| {
            format!(
                "{}: {} Mbit/s on average over {:.1} s; in virtual time {} Mbit/s.",
                outcome.mechanism,
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
                name: format!("{}, {kind}", outcome.mechanism),
                values: values(&run.air),
            })
        })
        .collect();
    let description = firsts
        .iter()
        .map(|outcome| {
            format!(
                "{}: data {} %, ACKs {} %, collisions {} %.",
                outcome.mechanism,
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
            title: "Airtime by use".into(),
            description: description.clone(),
            parts: parts
                .map(|(name, colour)| (name.to_owned(), colour))
                .to_vec(),
            bars,
        }
        .to_svg(),
        "Airtime by use",
        &format!(
            "{description} Access is the time that radios wait before they transmit: interframe spaces and backoff."
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
                outcome.mechanism.clone(),
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
                outcome.mechanism,
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
        for Shown { kind, stroke, run } in shown(outcome, firsts.len()) {
            let name = format!("{}, {kind}", outcome.mechanism);
            let packets = |point: &Point| Some(point.queue as f64);
            lines.push(line(name, colour, stroke, &run.series, packets));
        }
    }
    let description = "Packets in the queue of the access point.";
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
    use super::super::table::tests::{four, kept_up, outcome, setting};
    use super::*;

    #[test]
    fn the_page_needs_nothing_and_names_every_plot() {
        let outcomes = [outcome("delayed:2", 1e8, 500), outcome("tack", 1.2e8, 30)];
        let setting = setting();
        let html = Page::new(&setting, &outcomes).to_html();
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
        let policies = setting().mechanisms;
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
    fn a_page_of_four_shows_each_beside_the_first() {
        let (setting, mut outcomes) = four();
        let html = Page::new(&setting, &outcomes).to_html();
        assert!(html.contains("<h1>One file, four ways to acknowledge it</h1>"));
        assert!(
            html.contains("delayed:2<wbr>+filter"),
            "a name may be broken"
        );
        assert!(!html.contains("<th scope=\"col\">change</th>"));
        let headline = headline(&outcomes, &setting.mechanisms);
        assert!(
            headline.ends_with(
                "Compared with delayed:2, tack: goodput 0 %, airtime of ACKs 0 %; delayed:2+filter: goodput 0 %, airtime \
                 of ACKs 0 %; delayed:2+hack: goodput +10 %, airtime of ACKs 0 %."
            ),
            "{headline}"
        );
        assert!(html.contains("delayed:2+hack, measured</"), "{html}");
        outcomes[3].trust.ok = false;
        let [rates, ..] = &figures(&outcomes, &setting.mechanisms)[..] else {
            panic!("there are plots");
        };
        assert!(rates.svg.contains("delayed:2+hack, virtual time</"));
        assert!(!rates.svg.contains("delayed:2+hack, measured</"));
    }

    #[test]
    fn pages_about_nothing_are_pages() {
        let setting = setting();
        assert!(Page::new(&setting, &[]).to_html().contains("</html>"));
    }
}
