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

/// What the page concludes: how much more goodput a mechanism has than another one, over all cases
/// of a kind.
#[test]
fn conclusions_follow_from_the_tables() {
    let measured = measured();
    let page = read("mechanisms.md").replace('\n', " ");
    let range = |media: &[&str], traffic: &str, rtts: &[u32], stations: &[u32], pair: [&str; 2]| {
        let mut gains = Vec::new();
        for medium in media {
            for rtt in rtts {
                for count in stations {
                    let [before, after] = pair.map(|mechanism| {
                        let case = (
                            (*medium).to_owned(),
                            traffic.to_owned(),
                            *rtt,
                            *count,
                            mechanism.to_owned(),
                        );
                        measured.get(&case).map(|values| values[0])
                    });
                    gains.extend(before.zip(after).map(|(a, b)| 100.0 * (b / a - 1.0)));
                }
            }
        }
        assert!(!gains.is_empty());
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        let most = gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let [least, most] = [least, most].map(percent);
        if least == most {
            format!("{least} %")
        } else {
            format!("{least} to {most} %")
        }
    };
    let both = [2, 80];
    let (down, up, mixed) = ("downloads", "uploads", "downloads and uploads");
    let hack = ["L = 2", "L = 2, HACK"];
    let filter = ["L = 2", "L = 2, filter"];
    let mut missing = Vec::new();
    for (what, media, traffic, rtts, stations, pair) in [
        (
            "TCP/HACK, downloads",
            &MEDIA[..],
            down,
            &both[..],
            &STATIONS[..],
            hack,
        ),
        (
            "TCP/HACK, both ways, g, one station",
            &MEDIA[..1],
            mixed,
            &both[..],
            &[1][..],
            hack,
        ),
        (
            "TCP/HACK, both ways, g, five stations",
            &MEDIA[..1],
            mixed,
            &both[..],
            &[5][..],
            hack,
        ),
        (
            "TCP/HACK, both ways, g, many",
            &MEDIA[..1],
            mixed,
            &both[..],
            &[10, 20][..],
            hack,
        ),
        (
            "TCP/HACK, both ways, n and ac",
            &MEDIA[1..],
            mixed,
            &both[..],
            &STATIONS[..],
            hack,
        ),
        (
            "TCP/HACK, one upload",
            &MEDIA[..],
            up,
            &both[..],
            &[1][..],
            hack,
        ),
        (
            "filter, both ways, one station",
            &MEDIA[..],
            mixed,
            &both[..],
            &[1][..],
            filter,
        ),
        (
            "filter, both ways, more",
            &MEDIA[..],
            mixed,
            &both[..],
            &STATIONS[1..],
            filter,
        ),
        (
            "filter, downloads, n and ac",
            &MEDIA[1..],
            down,
            &both[..],
            &STATIONS[..],
            filter,
        ),
        (
            "TACK, one download, 80 ms",
            &MEDIA[..],
            down,
            &[80][..],
            &[1][..],
            ["L = 2", "TACK"],
        ),
        (
            "TACK, ten downloads, 80 ms",
            &MEDIA[..],
            down,
            &[80][..],
            &[10][..],
            ["L = 2", "TACK"],
        ),
        (
            "TACK, twenty downloads, 80 ms",
            &MEDIA[..],
            down,
            &[80][..],
            &[20][..],
            ["L = 2", "TACK"],
        ),
        (
            "TACK, downloads, n and ac, 2 ms",
            &MEDIA[1..],
            down,
            &[2][..],
            &STATIONS[..],
            ["L = 2", "TACK"],
        ),
        (
            "L = 16, downloads, g",
            &MEDIA[..1],
            down,
            &both[..],
            &STATIONS[..],
            ["L = 2", "L = 16"],
        ),
        (
            "L = 16, downloads, n",
            &MEDIA[1..2],
            down,
            &both[..],
            &STATIONS[..],
            ["L = 2", "L = 16"],
        ),
    ] {
        let range = range(media, traffic, rtts, stations, pair);
        missing.extend((!page.contains(&range)).then(|| format!("{what}: {range}")));
    }
    let jain = |mechanism: &str| {
        let case = (
            "802.11g".to_owned(),
            mixed.to_owned(),
            2,
            10,
            mechanism.to_owned(),
        );
        shown(2, measured[&case][2])
    };
    let said = format!(
        "{} with TCP/HACK and {} without",
        jain(hack[1]),
        jain(hack[0])
    );
    missing.extend((!page.contains(&said)).then(|| format!("Jain's index: {said}")));
    // A filter lets TACK's acknowledgements pass.
    let filtered = measured
        .iter()
        .filter(|((.., mechanism), _)| mechanism == "TACK, filter");
    let most = filtered
        .filter_map(|(case, values)| {
            let mut plain = case.clone();
            plain.4 = "TACK".to_owned();
            Some(100.0 * (values[0] / measured.get(&plain)?[0] - 1.0).abs())
        })
        .fold(0.0, f64::max);
    let said = format!("at most {most:.1} %");
    missing.extend((!page.contains(&said)).then(|| format!("TACK with a filter: {said}")));
    assert!(missing.is_empty(), "the page does not say: {missing:#?}");
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
