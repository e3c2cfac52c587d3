//! The comparison as rows, and these as a table for people.

use comfy_table::{CellAlignment, Table, presets};
use tack_base::Rate;
use tack_plot::format_number;

use super::Setting;
use super::figures::{Figures, Outcome, mean};

/// One row: a name, a value for each policy, and how much the second is above the first.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<String>,
    pub(crate) change: String,
}

/// The rows: means over the seeds.
pub(crate) fn rows(outcomes: &[Outcome], policies: &[&str]) -> Vec<Row> {
    let of = |ack: &str, value: &dyn Fn(&Outcome) -> f64| {
        mean(
            outcomes
                .iter()
                .filter(|outcome| outcome.ack == ack)
                .map(value),
        )
    };
    let row =
        |name: &'static str, value: &dyn Fn(&Outcome) -> f64, show: &dyn Fn(f64) -> String| {
            let numbers: Vec<f64> = policies.iter().map(|ack| of(ack, value)).collect();
            let change = match numbers[..] {
                [first, .., last] if first > 0.0 => signed_percent(last / first - 1.0),
                _ => String::new(),
            };
            Row {
                name,
                values: numbers.into_iter().map(show).collect(),
                change,
            }
        };
    let measured = |value: fn(&Figures) -> f64| move |outcome: &Outcome| value(&outcome.measured);
    let rate = |bits: f64| Rate::from_bits_per_sec(bits as u64).to_string();
    let percent = |share: f64| format!("{} %", format_number(share * 100.0));
    let seconds = |seconds: f64| format!("{seconds:.2} s");
    let unchanged = |row: Row| Row {
        change: String::new(),
        ..row
    };
    // What a machine that did not keep up measured is no comparison of the two.
    let compared = |row: Row| match outcomes.iter().all(|outcome| outcome.trust.ok) {
        true => row,
        false => unchanged(row),
    };
    let mut rows = vec![
        Row {
            name: "to be trusted",
            values: policies.iter().map(|ack| trusted(outcomes, ack)).collect(),
            change: String::new(),
        },
        compared(row("goodput", &measured(|run| run.goodput_bps), &rate)),
        row(
            "  in virtual time",
            &|outcome| outcome.virtual_time.goodput_bps,
            &rate,
        ),
        unchanged(row(
            "  real against virtual",
            &Outcome::deviation,
            &signed_percent,
        )),
        compared(row("time", &measured(|run| run.seconds), &seconds)),
        row("ACKs", &measured(|run| run.acks as f64), &format_number),
        row(
            "ACKs per 100 data segments",
            &measured(Figures::acks_per_100),
            &format_number,
        ),
        compared(row(
            "air spent on ACKs",
            &measured(|run| run.air.ack),
            &percent,
        )),
        compared(row(
            "air spent on data",
            &measured(|run| run.air.data),
            &percent,
        )),
    ];
    if outcomes
        .iter()
        .any(|outcome| outcome.measured.air.neighbour > 0.0)
    {
        // The parts that are added up above contain it.
        rows.push(compared(row(
            "air that neighbours took",
            &measured(|run| run.air.neighbour),
            &percent,
        )));
    }
    rows.extend([
        compared(row(
            "collisions",
            &measured(|run| run.collisions as f64),
            &format_number,
        )),
        compared(row(
            "retransmissions",
            &measured(|run| run.retransmitted_segments as f64),
            &format_number,
        )),
        unchanged(row(
            "deliveries late by (p99)",
            &|outcome| outcome.lateness.p99_us as f64 / 1e3,
            &|ms| format!("{ms:.2} ms"),
        )),
        Row {
            name: "limited by",
            values: policies.iter().map(|ack| limits(outcomes, ack)).collect(),
            change: String::new(),
        },
        Row {
            name: "BLAKE3 of the bytes",
            values: policies.iter().map(|ack| verified(outcomes, ack)).collect(),
            change: String::new(),
        },
    ]);
    rows
}

/// What limited the runs with one policy, each reason once.
fn limits(outcomes: &[Outcome], ack: &str) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.ack == ack) {
        let reason = outcome.measured.limited_by.as_str();
        let kind = reason.split(" (").next().unwrap_or(reason);
        if !reasons.contains(&kind) {
            reasons.push(kind);
        }
    }
    reasons.join("; ")
}

fn verified(outcomes: &[Outcome], ack: &str) -> String {
    let all = outcomes
        .iter()
        .filter(|outcome| outcome.ack == ack)
        .all(|outcome| outcome.verified);
    if all { "equal" } else { "NOT EQUAL" }.into()
}

/// Whether the machine kept up in the runs with one policy.
fn trusted(outcomes: &[Outcome], ack: &str) -> String {
    let runs = outcomes.iter().filter(|outcome| outcome.ack == ack);
    let (mut all, mut spoilt) = (0, 0);
    for outcome in runs {
        all += 1;
        spoilt += usize::from(!outcome.trust.ok);
    }
    match spoilt {
        0 => "yes".into(),
        _ if all == 1 => "NO".into(),
        _ => format!("NO ({spoilt} of {all} runs)"),
    }
}

/// `+15 %`, `−94 %`.
pub(crate) fn signed_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let sign = if percent > 0.0 { "+" } else { "" };
    format!("{sign}{} %", format_number(percent))
}

/// Shorter transfers are mostly the beginning of a connection.
const ENOUGH_S: f64 = 1.0;

/// What is to be said about runs that the machine spoilt, or that say little.
pub(crate) fn warnings(outcomes: &[Outcome]) -> Vec<String> {
    let spoilt = outcomes.iter().flat_map(|outcome| {
        let run = format!("{}, seed {}", outcome.ack, outcome.seed);
        let reasons = outcome.trust.reasons.iter();
        reasons.map(move |reason| format!("{run} is not to be trusted: {reason}"))
    });
    let longest = outcomes.iter().map(|outcome| outcome.virtual_time.seconds);
    let longest = longest.fold(0.0, f64::max);
    let brief = (longest < ENOUGH_S && !outcomes.is_empty()).then(|| {
        format!("{longest:.2} s are too short to compare: most of it is the beginning of the connection; a larger file says more")
    });
    spoilt.chain(brief).collect()
}

/// The table with what belongs around it.
pub(crate) fn render(setting: &Setting, outcomes: &[Outcome], policies: &[&str]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let head = std::iter::once(setting.congestion.as_str())
        .chain(policies.iter().copied())
        .chain([""]);
    table.set_header(head);
    for row in rows(outcomes, policies) {
        let cells = std::iter::once(row.name.to_owned())
            .chain(row.values)
            .chain([row.change]);
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text: String = table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    for warning in warnings(outcomes) {
        text.push_str(&format!("{warning}\n"));
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use tack_emulator::{AirSeconds, Lateness, Trust};

    use super::*;
    use crate::demo::figures::Point;

    pub(crate) fn outcome(ack: &str, goodput: f64, acks: u64) -> Outcome {
        let figures = Figures {
            goodput_bps: goodput,
            seconds: 8.0,
            data_segments: 1_000,
            retransmitted_segments: 0,
            acks,
            air: AirSeconds {
                data: 0.7,
                ack: 0.1,
                idle: 0.2,
                ..AirSeconds::default()
            },
            collisions: 12,
            limited_by: "the air (idle 2 % of the time)".into(),
            series: vec![Point {
                seconds: 0.1,
                goodput_bps: goodput,
                queue: 3,
                acks_per_second: Some(5.0),
            }],
        };
        Outcome {
            ack: ack.into(),
            seed: 1,
            measured: figures.clone(),
            virtual_time: figures,
            verified: true,
            lateness: Lateness::default(),
            trust: Trust {
                ok: false,
                reasons: vec!["the machine <slept>".into()],
            },
        }
    }

    pub(crate) fn setting() -> Setting {
        Setting {
            link: "tack-n".into(),
            content: "a <file>".into(),
            congestion: "bbr".into(),
            bytes: 1,
            hash: "00".into(),
        }
    }

    /// The same, by a machine that kept up.
    pub(crate) fn kept_up(outcome: Outcome) -> Outcome {
        let trust = Trust {
            ok: true,
            reasons: Vec::new(),
        };
        Outcome { trust, ..outcome }
    }

    fn line(outcomes: &[Outcome], name: &str) -> String {
        let text = render(&setting(), outcomes, &["delayed:2", "tack"]);
        let found = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        found.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    }

    fn both() -> [Outcome; 2] {
        [outcome("delayed:2", 1e8, 500), outcome("tack", 1.2e8, 30)]
    }

    #[test]
    fn the_table_compares() {
        let outcomes = both().map(kept_up);
        assert!(line(&outcomes, "goodput").contains("+20 %"));
        assert!(line(&outcomes, "ACKs per 100").contains("−94 %"));
        assert!(line(&outcomes, "limited by").contains("the air"));
        assert!(!line(&outcomes, "BLAKE3").contains("NOT"));
    }

    #[test]
    fn what_a_late_machine_measured_is_not_compared() {
        let outcomes = both();
        assert!(!line(&outcomes, "goodput").contains("+20 %"));
        assert!(line(&outcomes, "in virtual time").contains("+20 %"));
        assert!(line(&outcomes, "ACKs per 100").contains("−94 %"));
        line(&outcomes, "tack, seed 1 is not to be trusted");
        assert!(line(&outcomes, "to be trusted").contains("NO"));
        let [first, second] = both();
        let mixed = [kept_up(first.clone()), first, kept_up(second)];
        let marked = line(&mixed, "to be trusted");
        assert!(
            marked.contains("NO (1 of 2 runs)") && marked.ends_with("yes"),
            "{marked}"
        );
    }

    #[test]
    fn bytes_that_differ_are_called_so() {
        let mut outcomes = both();
        outcomes[1].verified = false;
        assert!(line(&outcomes, "BLAKE3").ends_with("NOT EQUAL"));
    }

    #[test]
    fn what_is_too_short_to_compare_is_called_so() {
        let is_brief = |outcomes: &[Outcome]| {
            let said = warnings(outcomes);
            said.iter().any(|warning| warning.contains("too short"))
        };
        let mut outcomes = both();
        assert!(!is_brief(&outcomes) && !is_brief(&[]));
        for outcome in &mut outcomes {
            outcome.virtual_time.seconds = 0.05;
        }
        assert!(is_brief(&outcomes));
    }
}
