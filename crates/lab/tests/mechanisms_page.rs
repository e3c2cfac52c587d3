//! The page about mechanisms (`docs/mechanisms.md`) says what was measured
//! (`docs/validation/mechanisms.csv`).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Medium, traffic, RTT in milliseconds, stations, mechanism.
type Case = (String, String, u32, u32, String);

/// Columns of the file after those of the case.
const METRICS: [&str; 5] = [
    "goodput, Mbit/s",
    "95th percentile of the delay, ms",
    "Jain's index",
    "air of ACKs, %",
    "collisions, %",
];
const STATIONS: [u32; 4] = [1, 5, 10, 20];
const MEDIA: [&str; 3] = ["802.11g", "802.11n", "802.11ac"];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(docs().join(path)).unwrap()
}

/// Means: the file is the table that `tack lab export mechanisms` writes, "mean ± half-width".
fn measured() -> BTreeMap<Case, [f64; 5]> {
    let text = read("validation/mechanisms.csv");
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    rows.records()
        .map(|row| {
            let row = row.unwrap();
            let fields: Vec<&str> = row.iter().collect();
            let [medium, stations, traffic, rtt, mechanism, values @ ..] = &fields[..] else {
                panic!("{row:?}");
            };
            let mean = |text: &&str| {
                let mean = text.split(" ± ").next().unwrap().replace(',', "");
                mean.parse::<f64>().unwrap()
            };
            let values: Vec<f64> = values.iter().map(mean).collect();
            let key = (
                (*medium).to_owned(),
                (*traffic).to_owned(),
                rtt.parse().unwrap(),
                stations.parse().unwrap(),
                (*mechanism).to_owned(),
            );
            (key, values.try_into().unwrap())
        })
        .collect()
}

fn shown(metric: usize, value: f64) -> String {
    match metric {
        2 => format!("{value:.2}"),
        _ if value.abs() >= 99.95 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}

/// A table's row with what was measured in place of its numbers, or `None` where the line is no
/// such row. `table` is what the table is of: medium, traffic, metric.
fn row(
    line: &str,
    table: &mut Option<(String, String, usize)>,
    measured: &BTreeMap<Case, [f64; 5]>,
) -> Option<String> {
    let Some(row) = line
        .strip_prefix("| ")
        .and_then(|row| row.strip_suffix(" |"))
    else {
        *table = None;
        return None;
    };
    let cells: Vec<&str> = row.split(" | ").collect();
    if let Some((what, metric)) = cells[0].split_once(": ") {
        let (medium, traffic) = what.split_once(", ").unwrap();
        let metric = METRICS.iter().position(|name| *name == metric).unwrap();
        *table = Some((medium.to_owned(), traffic.to_owned(), metric));
        return None;
    }
    let (medium, traffic, metric) = table.as_ref()?;
    if matches!(cells[0], "---" | "RTT") {
        return None;
    }
    let mut out = format!("| {} |", cells[0]);
    for rtt in [2, 80] {
        for stations in STATIONS {
            let case = (
                medium.clone(),
                traffic.clone(),
                rtt,
                stations,
                cells[0].to_owned(),
            );
            let values = measured
                .get(&case)
                .unwrap_or_else(|| panic!("{case:?} was not measured"));
            let _ = write!(out, " {} |", shown(*metric, values[*metric]));
        }
    }
    Some(out)
}

/// Each number of each table. With `TACK_WRITE_TABLES=1` the tables are written from the file
/// instead.
#[test]
fn tables_are_what_was_measured() {
    let measured = measured();
    assert_eq!(
        measured.len(),
        3 * 3 * 2 * 4 * 11,
        "media, traffic, RTTs, stations, mechanisms"
    );
    let is_written = std::env::var_os("TACK_WRITE_TABLES").is_some();
    let mut seen = 0;
    for page in ["mechanisms.md", "validation/mechanisms.md"] {
        let text = read(page);
        let mut table = None;
        let mut out = String::new();
        for line in text.lines() {
            let row = row(line, &mut table, &measured);
            seen += row.as_ref().map_or(0, |_| 2 * STATIONS.len());
            out += row.as_deref().unwrap_or(line);
            out.push('\n');
        }
        if is_written {
            std::fs::write(docs().join(page), out).unwrap();
        } else {
            for (line, wanted) in text.lines().zip(out.lines()) {
                assert_eq!(line, wanted, "{page}");
            }
        }
    }
    assert_eq!(seen, METRICS.len() * measured.len(), "all of the file");
}

/// Cases of one traffic.
struct Cases<'a> {
    measured: &'a BTreeMap<Case, [f64; 5]>,
    media: &'a [&'a str],
    traffic: &'a str,
    rtts: &'a [u32],
    stations: &'a [u32],
}

/// Values of several cases.
struct Range(Vec<f64>);

impl Cases<'_> {
    /// One of [`METRICS`] with `mechanism`, case by case.
    fn values(&self, metric: usize, mechanism: &str) -> Vec<f64> {
        let mut values = Vec::new();
        for medium in self.media {
            for rtt in self.rtts {
                for stations in self.stations {
                    let (medium, traffic) = ((*medium).to_owned(), self.traffic.to_owned());
                    let case = (medium, traffic, *rtt, *stations, mechanism.to_owned());
                    values.push(self.measured[&case][metric]);
                }
            }
        }
        values
    }

    fn range(&self, metric: usize, mechanism: &str) -> Range {
        Range(self.values(metric, mechanism))
    }

    /// How many times as much `mechanism` has as L = 2.
    fn times(&self, metric: usize, mechanism: &str) -> Range {
        let pairs = self.values(metric, mechanism).into_iter();
        Range(
            pairs
                .zip(self.values(metric, L2))
                .map(|(after, before)| after / before)
                .collect(),
        )
    }

    /// How much more goodput `mechanism` has than L = 2, percent.
    fn gain(&self, mechanism: &str) -> Range {
        let times = self.times(GOODPUT, mechanism).0.into_iter();
        Range(times.map(|times| 100.0 * (times - 1.0)).collect())
    }
}

impl Range {
    fn ends(&self) -> [f64; 2] {
        let all = self.0.iter().copied();
        [
            all.clone().fold(f64::INFINITY, f64::min),
            all.fold(f64::NEG_INFINITY, f64::max),
        ]
    }

    fn geometric_mean(&self) -> f64 {
        let logs: f64 = self.0.iter().map(|value| value.ln()).sum();
        (logs / self.0.len() as f64).exp()
    }

    /// `3 to 8 %`.
    fn percent(&self) -> String {
        let [least, most] = self.ends().map(percent);
        if least == most {
            format!("{least} %")
        } else {
            format!("{least} to {most} %")
        }
    }

    /// `0.76 to 0.92`.
    fn hundredths(&self) -> String {
        let [least, most] = self.ends();
        format!("{least:.2} to {most:.2}")
    }

    /// `1.00 to 2.96 (1.74)`: with the geometric mean.
    fn with_mean(&self) -> String {
        format!("{} ({:.2})", self.hundredths(), self.geometric_mean())
    }
}

const GOODPUT: usize = 0;
const DELAY: usize = 1;
const JAIN: usize = 2;
const ACK_AIR: usize = 3;
const COLLISIONS: usize = 4;
const L2: &str = "L = 2";
const L16: &str = "L = 16";
const FILTER: &str = "L = 2, filter";
const HACK: &str = "L = 2, HACK";
const TACK: &str = "TACK";
const BBR: &str = "TACK, BBR";
const BOTH: [u32; 2] = [2, 80];
const DOWN: &str = "downloads";
const UP: &str = "uploads";
const MIXED: &str = "downloads and uploads";

/// The sentences of the page that have numbers, as they have to be.
fn conclusions(measured: &BTreeMap<Case, [f64; 5]>) -> Vec<String> {
    let cases = |media, traffic, rtts, stations| Cases {
        measured,
        media,
        traffic,
        rtts,
        stations,
    };
    let all = &MEDIA[..];
    let (g, n, n_ac) = (&MEDIA[..1], &MEDIA[1..2], &MEDIA[1..]);
    let (any, near, far) = (&BOTH[..], &BOTH[..1], &BOTH[1..]);
    let (each, one, many) = (&STATIONS[..], &STATIONS[..1], &STATIONS[2..]);
    let several = &STATIONS[1..];
    let ten = &STATIONS[2..3];
    let twenty = &STATIONS[3..];
    let both_ways = |media, stations| cases(media, MIXED, any, stations);
    let jain = |mechanism: &str| shown(JAIN, cases(g, MIXED, near, ten).values(JAIN, mechanism)[0]);
    let uploads = cases(all, UP, any, many);
    let mixed = both_ways(all, many);
    let downloads = cases(all, DOWN, any, each);
    vec![
        format!(
            "For downloads it gains {}, at any round trip and for 1 to 20 stations, and for one upload {}.",
            downloads.gain(HACK).percent(),
            cases(all, UP, any, one).gain(HACK).percent()
        ),
        format!(
            "it gains as much with one station of 802.11g ({}), {} with five, and {} with more.",
            both_ways(g, one).gain(HACK).percent(),
            both_ways(g, &STATIONS[1..2]).gain(HACK).percent(),
            both_ways(g, many).gain(HACK).percent()
        ),
        format!(
            "Acknowledgements take at most {:.1} % of the air there, and {:.1} to {:.1} % with L = 2.",
            both_ways(g, each).range(ACK_AIR, HACK).ends()[1],
            both_ways(g, each).range(ACK_AIR, L2).ends()[0],
            both_ways(g, each).range(ACK_AIR, L2).ends()[1],
        ),
        format!(
            "Jain's index of ten stations at 2 ms is {} with TCP/HACK and {} without, both ways over 802.11g.",
            jain(HACK),
            jain(L2)
        ),
        format!(
            "Over n and ac the gain is {}:",
            both_ways(n_ac, each).gain(HACK).percent()
        ),
        format!(
            "**Where stations download and upload at once, a filter gains** {} with one station, and {} with more of them.",
            both_ways(all, one).gain(FILTER).percent(),
            both_ways(all, several).gain(FILTER).percent()
        ),
        format!(
            "For downloads over n and ac it gains {}; over 802.11g, where acknowledgements seldom meet in a queue, {}.",
            cases(n_ac, DOWN, any, each).gain(FILTER).percent(),
            cases(g, DOWN, any, each).gain(FILTER).percent()
        ),
        match difference_by_filter(measured) {
            0.0 => "TACK's acknowledgements pass it, so it changes nothing for TACK.".to_owned(),
            most => {
                format!("TACK's acknowledgements pass it: goodput differs by at most {most:.1} %.")
            }
        },
        format!(
            "At 80 ms one download gains {}, and {} with TCP/HACK.",
            cases(all, DOWN, far, one).gain(TACK).percent(),
            cases(all, DOWN, far, one).gain(HACK).percent()
        ),
        format!(
            "Its gain shrinks with the number of flows, each of which has its own few acknowledgements per round trip: {} with ten stations, \
             {} with twenty.",
            cases(all, DOWN, far, ten).gain(TACK).percent(),
            cases(all, DOWN, far, twenty).gain(TACK).percent()
        ),
        format!(
            "**On short paths TACK alone gains little:** {} for downloads over n and ac.",
            cases(n_ac, DOWN, near, each).gain(TACK).percent()
        ),
        format!(
            "L = 16 has {} on 802.11g and {} on 802.11n, for downloads.",
            cases(g, DOWN, any, each).gain(L16).percent(),
            cases(n, DOWN, any, each).gain(L16).percent()
        ),
        format!(
            "From ten stations on {} of the attempts collide with L = 2.",
            uploads.range(COLLISIONS, L2).percent()
        ),
        format!(
            "Goodput differs from that of L = 2 by {} with TCP/HACK, {} with a filter, {} with TACK, and {} with TACK and BBR",
            uploads.gain(HACK).percent(),
            uploads.gain(FILTER).percent(),
            uploads.gain(TACK).percent(),
            uploads.gain(BBR).percent()
        ),
        format!(
            "For downloads it is {} times that of L = 2 with TCP/HACK, {} times with TACK, and {} times with a filter.",
            downloads.times(DELAY, HACK).hundredths(),
            downloads.times(DELAY, TACK).hundredths(),
            downloads.times(DELAY, FILTER).hundredths()
        ),
        format!(
            "With BBR one download at 2 ms has {} times the delay, ten over n and ac {} times. At 80 ms it is {} times with ten.",
            cases(all, DOWN, near, one).times(DELAY, BBR).hundredths(),
            cases(n_ac, DOWN, near, ten).times(DELAY, BBR).hundredths(),
            cases(all, DOWN, far, ten).times(DELAY, BBR).hundredths()
        ),
        format!(
            "From ten uploads on the delay is {} times that of L = 2 with TCP/HACK, {} times with a filter, {} times with TACK, and {} times with \
             TACK and BBR.",
            uploads.times(DELAY, HACK).with_mean(),
            uploads.times(DELAY, FILTER).with_mean(),
            uploads.times(DELAY, TACK).with_mean(),
            uploads.times(DELAY, BBR).with_mean()
        ),
        format!(
            "Both ways it is {}, {}, {} and {} times.",
            mixed.times(DELAY, HACK).with_mean(),
            mixed.times(DELAY, FILTER).with_mean(),
            mixed.times(DELAY, TACK).with_mean(),
            mixed.times(DELAY, BBR).with_mean()
        ),
        format!(
            "From ten uploads on Jain's index is {} with TCP/HACK, {} with a filter, {} with TACK and {} with L = 2.",
            uploads.range(JAIN, HACK).hundredths(),
            uploads.range(JAIN, FILTER).hundredths(),
            uploads.range(JAIN, TACK).hundredths(),
            uploads.range(JAIN, L2).hundredths()
        ),
        format!(
            "Both ways it is {}, {}, {} and {}.",
            mixed.range(JAIN, HACK).hundredths(),
            mixed.range(JAIN, FILTER).hundredths(),
            mixed.range(JAIN, TACK).hundredths(),
            mixed.range(JAIN, L2).hundredths()
        ),
        format!(
            "For five and more downloads it is {} with L = 2, {} with TCP/HACK, {} with a filter and {} with TACK.",
            cases(all, DOWN, any, several).range(JAIN, L2).with_mean(),
            cases(all, DOWN, any, several).range(JAIN, HACK).with_mean(),
            cases(all, DOWN, any, several)
                .range(JAIN, FILTER)
                .with_mean(),
            cases(all, DOWN, any, several).range(JAIN, TACK).with_mean()
        ),
        format!(
            "Over 802.11g it is {} with TACK and BBR, and {} with L = 2.",
            cases(g, DOWN, any, several).range(JAIN, BBR).hundredths(),
            cases(g, DOWN, any, several).range(JAIN, L2).hundredths()
        ),
    ]
}

/// How much a filter changes the goodput of TACK at most, percent.
fn difference_by_filter(measured: &BTreeMap<Case, [f64; 5]>) -> f64 {
    measured
        .iter()
        .filter(|((.., mechanism), _)| mechanism == "TACK, filter")
        .map(|(case, values)| {
            let mut plain = case.clone();
            plain.4 = TACK.to_owned();
            100.0 * (values[GOODPUT] / measured[&plain][GOODPUT] - 1.0).abs()
        })
        .fold(0.0, f64::max)
}

/// Each sentence with numbers is on the page as it has to be, word by word.
#[test]
fn conclusions_follow_from_the_tables() {
    let page = read("mechanisms.md");
    let page: Vec<&str> = page.split_whitespace().collect();
    let page = page.join(" ");
    let mut missing = conclusions(&measured());
    missing.retain(|sentence| !page.contains(sentence.as_str()));
    assert!(missing.is_empty(), "the page does not say: {missing:#?}");
}

/// What the page says in words alone.
#[test]
fn words_follow_from_the_tables() {
    let measured = measured();
    let cases = |media, traffic, rtts, stations| Cases {
        measured: &measured,
        media,
        traffic,
        rtts,
        stations,
    };
    let many = &STATIONS[2..];
    for traffic in [UP, MIXED] {
        let crowd = cases(&MEDIA, traffic, &BOTH, many);
        let delay = |mechanism| crowd.times(DELAY, mechanism).geometric_mean();
        assert!(
            delay(HACK) > delay(FILTER) && delay(FILTER) > 1.0,
            "{traffic}: TCP/HACK has the longest delay, then a filter"
        );
        assert!(delay(BBR) < 1.0, "{traffic}: BBR has a shorter one");
        let [least, _] = crowd.times(JAIN, HACK).ends();
        assert!(least > 1.0, "{traffic}: TCP/HACK is fairer in every case");
    }
    let downloads = cases(&MEDIA, DOWN, &BOTH, &STATIONS);
    let [_, most] = downloads.times(DELAY, HACK).ends();
    assert!(
        most < 1.0,
        "downloads: TCP/HACK has a shorter delay in every case"
    );
    let far = cases(&MEDIA, DOWN, &BOTH[1..], &STATIONS[2..3]);
    assert!(
        far.times(DELAY, BBR).geometric_mean() > 1.0,
        "ten downloads at 80 ms: BBR keeps no shorter queues"
    );
    let slow = cases(&MEDIA[..1], DOWN, &BOTH, &STATIONS[1..]);
    let [_, most] = slow.times(JAIN, BBR).ends();
    assert!(
        most < 1.0,
        "downloads over 802.11g: BBR shares less equally"
    );
}

/// Whole, with the sign of the minus that text has.
fn percent(value: f64) -> String {
    let whole = value.round();
    if whole < 0.0 {
        format!("−{:.0}", -whole)
    } else {
        format!("{:.0}", whole.abs())
    }
}
