//! The comparison as rows, and these as a table for people.

use comfy_table::{CellAlignment, Table, presets};
use tack_base::Rate;
use tack_plot::format_number;

use super::figures::{Figures, Outcome, mean};
use super::setting::Setting;

/// One row: a name, and for each mechanism a value, and how much it is above the first one's.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<String>,
    /// Empty where nothing is compared.
    pub(crate) changes: Vec<String>,
}

impl Row {
    fn plain(name: &'static str, values: Vec<String>) -> Self {
        let changes = vec![String::new(); values.len()];
        Self {
            name,
            values,
            changes,
        }
    }

    fn unchanged(self) -> Self {
        Self::plain(self.name, self.values)
    }
}

/// The rows: means over the seeds.
pub(crate) fn rows(outcomes: &[Outcome], mechanisms: &[String]) -> Vec<Row> {
    let of = |mechanism: &str, value: &dyn Fn(&Outcome) -> f64| {
        mean(
            outcomes
                .iter()
                .filter(|outcome| outcome.mechanism == mechanism)
                .map(value),
        )
    };
    let row =
        |name: &'static str, value: &dyn Fn(&Outcome) -> f64, show: &dyn Fn(f64) -> String| {
            let numbers: Vec<f64> = mechanisms.iter().map(|name| of(name, value)).collect();
            let first = numbers.first().copied().unwrap_or(0.0);
            let change = |(index, number): (usize, &f64)| match index {
                0 => String::new(),
                _ if first <= 0.0 => String::new(),
                _ => signed_percent(number / first - 1.0),
            };
            Row {
                name,
                changes: numbers.iter().enumerate().map(change).collect(),
                values: numbers.into_iter().map(show).collect(),
            }
        };
    let measured = |value: fn(&Figures) -> f64| move |outcome: &Outcome| value(&outcome.measured);
    let rate = |bits: f64| Rate::from_bits_per_sec(bits as u64).to_string();
    let percent = |share: f64| format!("{} %", format_number(share * 100.0));
    let seconds = |seconds: f64| format!("{seconds:.2} s");
    // Runs on a machine that did not keep up cannot be compared.
    let compared = |row: Row| match outcomes.iter().all(|outcome| outcome.trust.ok) {
        true => row,
        false => row.unchanged(),
    };
    let mut rows = vec![
        Row::plain(
            "to be trusted",
            mechanisms
                .iter()
                .map(|name| trusted(outcomes, name))
                .collect(),
        ),
        compared(row("goodput", &measured(|run| run.goodput_bps), &rate)),
        row(
            "  in virtual time",
            &|outcome| outcome.virtual_time.goodput_bps,
            &rate,
        ),
        row(
            "  real against virtual",
            &Outcome::deviation,
            &signed_percent,
        )
        .unchanged(),
        compared(row("time", &measured(|run| run.seconds), &seconds)),
        row("ACKs", &measured(|run| run.acks as f64), &format_number),
    ];
    rows.extend(at_the_radios(outcomes, &row));
    rows.extend([
        row(
            "ACKs per 100 data segments",
            &measured(Figures::acks_per_100),
            &format_number,
        ),
        compared(row(
            "airtime of ACKs",
            &measured(|run| run.air.ack),
            &percent,
        )),
        compared(row(
            "airtime of data",
            &measured(|run| run.air.data),
            &percent,
        )),
    ]);
    if outcomes
        .iter()
        .any(|outcome| outcome.measured.air.neighbour > 0.0)
    {
        // The parts that are added up above contain it.
        rows.push(compared(row(
            "airtime of neighbours",
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
        row(
            "deliveries late by (p99)",
            &|outcome| outcome.lateness.p99_us as f64 / 1e3,
            &|ms| format!("{ms:.2} ms"),
        )
        .unchanged(),
        Row::plain(
            "limited by",
            mechanisms
                .iter()
                .map(|name| limits(outcomes, name))
                .collect(),
        ),
        Row::plain(
            "BLAKE3 of the bytes",
            mechanisms
                .iter()
                .map(|name| verified(outcomes, name))
                .collect(),
        ),
    ]);
    rows
}

/// Makes a row of means: its name, the value of a run, how a mean is shown.
type MakeRow<'a> =
    dyn Fn(&'static str, &dyn Fn(&Outcome) -> f64, &dyn Fn(f64) -> String) -> Row + 'a;

/// What became of the acknowledgements, where filters or TCP/HACK had a hand in it.
fn at_the_radios(outcomes: &[Outcome], row: &MakeRow<'_>) -> Vec<Row> {
    let radios = |outcome: &Outcome| outcome.measured.radios;
    let any = |used: &dyn Fn(&Outcome) -> bool| outcomes.iter().any(used);
    let [filters, hack] = [
        any(&|outcome| outcome.ack_filter != "off"),
        any(&|outcome| outcome.hack != "off"),
    ];
    let count = |value: f64| match value {
        0.0 => "–".into(),
        value => format_number(value),
    };
    let mut rows = Vec::new();
    if filters {
        let filtered = |outcome: &Outcome| radios(outcome).acks_filtered as f64;
        rows.push(row("  dropped by a filter", &filtered, &count).unchanged());
    }
    if hack {
        let inside = |outcome: &Outcome| radios(outcome).acks_in_link_acks as f64;
        rows.push(row("  in ACKs of the link", &inside, &count).unchanged());
    }
    if filters || hack {
        let alone = |outcome: &Outcome| outcome.measured.acks_in_frames() as f64;
        rows.push(row("  in frames of their own", &alone, &format_number));
    }
    if hack {
        let size = |outcome: &Outcome| {
            radios(outcome)
                .hack
                .map_or(0.0, |hack| hack.mean_compressed)
        };
        let bytes = |value: f64| match value {
            0.0 => "–".into(),
            value => format!("{value:.1} bytes"),
        };
        rows.push(row("  size of a compressed ACK", &size, &bytes).unchanged());
    }
    rows
}

/// What limited the runs with one mechanism, each reason once.
fn limits(outcomes: &[Outcome], mechanism: &str) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for outcome in outcomes
        .iter()
        .filter(|outcome| outcome.mechanism == mechanism)
    {
        let reason = outcome.measured.limited_by.as_str();
        let kind = reason.split(" (").next().unwrap_or(reason);
        if !reasons.contains(&kind) {
            reasons.push(kind);
        }
    }
    reasons.join("; ")
}

fn verified(outcomes: &[Outcome], mechanism: &str) -> String {
    let all = outcomes
        .iter()
        .filter(|outcome| outcome.mechanism == mechanism)
        .all(|outcome| outcome.verified);
    if all { "equal" } else { "NOT EQUAL" }.into()
}

/// Whether the machine kept up in the runs with one mechanism.
fn trusted(outcomes: &[Outcome], mechanism: &str) -> String {
    let runs = outcomes
        .iter()
        .filter(|outcome| outcome.mechanism == mechanism);
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
        let run = format!("{}, seed {}", outcome.mechanism, outcome.seed);
        let reasons = outcome.trust.reasons.iter();
        reasons.map(move |reason| format!("{run} is not to be trusted: {reason}"))
    });
    let longest = outcomes.iter().map(|outcome| outcome.virtual_time.seconds);
    let longest = longest.fold(0.0, f64::max);
    let brief = (longest < ENOUGH_S && !outcomes.is_empty()).then(|| {
        format!("{longest:.2} s are too short to compare, because connection start-up takes most of that time; use a larger file")
    });
    spoilt.chain(brief).collect()
}

/// The table with what belongs around it.
pub(crate) fn render(setting: &Setting, outcomes: &[Outcome]) -> String {
    let mechanisms = &setting.mechanisms;
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    // Beside the second of two values there is room for its change; of more, each has its own
    // behind it.
    let is_pair = mechanisms.len() == 2;
    let head = std::iter::once(setting.congestion.clone())
        .chain(mechanisms.iter().cloned())
        .chain(is_pair.then(String::new));
    table.set_header(head);
    for row in rows(outcomes, mechanisms) {
        let change = row.changes.last().cloned().filter(|_| is_pair);
        let values = row.values.into_iter().zip(row.changes);
        let values = values.map(|(value, change)| match change.as_str() {
            "" => value,
            _ if is_pair => value,
            change => format!("{value} ({change})"),
        });
        let cells = std::iter::once(row.name.to_owned())
            .chain(values)
            .chain(change);
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
    use tack_sim::report::HackReport;

    use super::*;
    use crate::demo::figures::{Point, Radios};

    pub(crate) fn outcome(mechanism: &str, goodput: f64, acks: u64) -> Outcome {
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
            radios: Radios::default(),
            limited_by: "the air (idle 2 % of the time)".into(),
            series: vec![Point {
                seconds: 0.1,
                goodput_bps: goodput,
                queue: 3,
                acks_per_second: Some(5.0),
            }],
        };
        Outcome {
            mechanism: mechanism.into(),
            ack: mechanism.split('+').next().unwrap().into(),
            ack_filter: if mechanism.contains("+filter") {
                "safe"
            } else {
                "off"
            },
            hack: if mechanism.contains("+hack") {
                "more-data"
            } else {
                "off"
            },
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
            mechanisms: vec!["delayed:2".into(), "tack".into()],
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
        let text = render(&setting(), outcomes);
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

    /// Four mechanisms, of which the last two spare acknowledgements.
    pub(crate) fn four() -> (Setting, [Outcome; 4]) {
        let names = ["delayed:2", "tack", "delayed:2+filter", "delayed:2+hack"];
        let mut outcomes = names.map(|name| kept_up(outcome(name, 1e8, 500)));
        outcomes[1].measured.acks = 30;
        outcomes[2].measured.radios.acks_filtered = 200;
        outcomes[3].measured.goodput_bps = 1.1e8;
        outcomes[3].measured.radios = Radios {
            acks_filtered: 0,
            acks_in_link_acks: 450,
            hack: Some(HackReport {
                mean_compressed: 4.25,
                ..HackReport::default()
            }),
        };
        let setting = Setting {
            mechanisms: names.map(str::to_owned).to_vec(),
            ..setting()
        };
        (setting, outcomes)
    }

    #[test]
    fn each_of_four_is_compared_with_the_first() {
        let (setting, outcomes) = four();
        let text = render(&setting, &outcomes);
        let line = |name: &str| {
            let found = text.lines().find(|line| line.trim().starts_with(name));
            let words = found.unwrap_or_else(|| panic!("{name}: {text}"));
            words.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(
            line("goodput").ends_with("(0 %) 110 Mbit/s (+10 %)"),
            "{text}"
        );
        assert!(line("dropped by a filter").ends_with("– – 200 –"), "{text}");
        assert!(line("in ACKs of the link").ends_with("– – – 450"), "{text}");
        let alone = line("in frames of their own");
        assert!(
            alone.ends_with("500 30 (−94 %) 300 (−40 %) 50 (−90 %)"),
            "{alone}"
        );
        assert!(
            line("size of a compressed").ends_with("4.2 bytes"),
            "{text}"
        );
        let plain = render(&self::setting(), &both());
        assert!(!plain.contains("of their own"), "{plain}");
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
