//! Tables 2 and 3: the acknowledgements of 25 MiB.

use tack_plot::{Group, ValueBars, format_number};

use super::prototype::{TCP, UDP, cell, points, seeds};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, percent, plot, tenths};
use crate::measure::Values;
use crate::point::Cell;
use crate::results::Results;

pub(in crate::figures) const COUNTS: Figure = Figure {
    paper: Paper::Hack,
    id: "hacktable2",
    title: "Native and compressed acknowledgements of 25 MiB",
    about: "One client downloads 25 MiB at 54 Mbit/s with timestamps, with MORE DATA as in figure 9. The paper does not say how it treated timestamps and the TCP checksum; \
            both modes of the codec are shown, and the lean one without checksum. Its counts are those of a transfer without losses, so the \
            receiver's window fits the access point's queue.",
    plan: |depth| points(depth, &transfer_cells()),
    reduce: reduce_counts,
};

pub(in crate::figures) const TIMES: Figure = Figure {
    paper: Paper::Hack,
    id: "hacktable3",
    title: "What the acknowledgements of 25 MiB cost in time",
    about: "The runs of table 2. Airtime of acknowledgements and of the bytes that link acknowledgements carry follows from their counts, as in \
            the paper. Channel acquisition and link acknowledgements are the differences of the measured time between TCP and UDP, and \
            between TCP/HACK and UDP, for as many bytes.",
    plan: |depth| points(depth, &transfer_cells()),
    reduce: reduce_times,
};

/// 25 MiB to one client: TCP, TCP/HACK in three modes, and UDP for as long.
fn transfer(hack: Option<&str>) -> Cell {
    let cell = cell(TCP, 1)
        .set("warmup=0s")
        .set("duration=60s")
        .set("flow.0.bytes=25MiB")
        .set("flow.0.timestamps=true")
        .set("flow.0.receive_buffer=160kB");
    match hack {
        Some(codec) => cell
            .set("wlan.hack=more-data")
            .set(format!("wlan.hack_codec={codec}")),
        None => cell,
    }
}

const CODECS: [&str; 3] = ["rfc", "lean", "lean-no-checksum"];

fn transfer_cells() -> Vec<Cell> {
    let hack = CODECS.map(|codec| transfer(Some(codec)));
    [transfer(None), cell(UDP, 1)]
        .into_iter()
        .chain(hack)
        .collect()
}

/// Bytes of the IP packets of the first flow's acknowledgements.
fn ack_bytes(values: &Values) -> f64 {
    values.get("flows.0.ack_bytes") + 20.0 * values.get("flows.0.acks")
}

fn reduce_counts(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "",
            "ACKs",
            "ACK bytes",
            "compressed",
            "their bytes",
            "bytes each",
            "ratio",
        ]),
        ..Outcome::default()
    };
    let read = |cell: &Cell, key: &'static str| {
        results.estimate(cell, seeds(depth), move |values| values.get(key))
    };
    let tcp = transfer(None);
    let acks = read(&tcp, "flows.0.acks");
    let bytes = results.estimate(&tcp, seeds(depth), ack_bytes);
    outcome.numbers.row([
        "TCP".into(),
        acks.to_string(),
        bytes.to_string(),
        "0".into(),
        "0".into(),
        format_number(bytes.mean / acks.mean),
        "1".into(),
    ]);
    let mut groups = Vec::new();
    let mut mean_of = Vec::new();
    for codec in CODECS {
        let cell = transfer(Some(codec));
        let [native, compressed, small, original] = [
            "wlan.hack.native_acks",
            "wlan.hack.compressed_acks",
            "wlan.hack.compressed_bytes",
            "wlan.hack.original_bytes",
        ]
        .map(|key| read(&cell, key));
        let each = read(&cell, "wlan.hack.mean_compressed");
        mean_of.push(each);
        outcome.numbers.row([
            format!("TCP/HACK, {codec}"),
            native.to_string(),
            format_number(native.mean * 52.0),
            compressed.to_string(),
            small.to_string(),
            each.to_string(),
            format_number(original.mean / small.mean),
        ]);
        groups.push(Group {
            name: codec.into(),
            values: vec![bar(0, each, Some(4.36))],
        });
    }
    let svg = ValueBars {
        id: "plot-hacktable2".into(),
        title: "Bytes of a compressed acknowledgement by mode of the codec".into(),
        description: "The lean modes bracket the paper's 4.36 bytes.".into(),
        label: "bytes".into(),
        series: vec![("compressed acknowledgement".into(), 1)],
        reference: "the paper's".into(),
        groups,
        ..ValueBars::default()
    }
    .to_svg();
    outcome
        .plots
        .push(plot(svg, "Mean length of a compressed acknowledgement."));
    let lean = transfer(Some("lean"));
    let native = results.estimate(&lean, seeds(depth), |values| {
        let native = values.get("wlan.hack.native_acks");
        100.0 * native / (native + values.get("wlan.hack.rebuilt"))
    });
    let [rfc, with_checksum, without] = [mean_of[0], mean_of[1], mean_of[2]];
    outcome.claims = vec![
        Claim::new(
            "TCP sends about 9,060 acknowledgements of 52 bytes, to 3 %",
            "9,060, 471,120 bytes",
            format!("{acks}, {bytes} bytes"),
            acks.is_near(9_060.0, 0.03)
                .and((bytes.mean / acks.mean - 52.0).abs() < 1.0),
        ),
        Claim::new(
            "With TCP/HACK at most 1 % of them stay native",
            "10 of 9,060",
            percent(native),
            native.is_at_most(1.0),
        ),
        Claim::new(
            "A compressed one has 4.36 bytes: between the lean mode without the TCP checksum and with it",
            "4.36 bytes",
            format!("{with_checksum} and {without}; RFC 6846: {rfc}"),
            without
                .is_at_most(4.36)
                .and(with_checksum.is_at_least(4.36)),
        ),
    ];
    outcome
}

fn reduce_times(depth: &Depth, results: &Results) -> Outcome {
    let tcp = transfer(None);
    let lean = transfer(Some("lean"));
    let read =
        |cell: &Cell, read: &dyn Fn(&Values) -> f64| results.estimate(cell, seeds(depth), read);
    let ack_air = read(&tcp, &|values| ack_bytes(values) * 8.0 / 54e3);
    let rohc = read(&lean, &|values| {
        values.get("wlan.hack.compressed_bytes") * 8.0 / 24e3
    });
    // What UDP takes for as many bytes.
    let per_byte = read(&cell(UDP, 1), &|values| {
        8.0 / values.get("flows.0.goodput_bps")
    });
    let time = |cell: &Cell| read(cell, &|values| 1e3 * values.get("flows.0.completion_s"));
    let [tcp_time, hack_time] = [time(&tcp), time(&lean)];
    let udp_time = per_byte.times(1e3 * 25.0 * 1_048_576.0 * (1_472.0 / 1_448.0));
    let costs = [tcp_time, hack_time].map(|time| time.less(udp_time));
    let (of_tcp, of_hack) = (costs[0].mean, costs[1].mean);
    let acks = read(&tcp, &|values| values.get("flows.0.acks"));
    let each = costs[0].less(ack_air).times(1e3 / acks.mean);
    let mut outcome = Outcome {
        numbers: Table::new(["", "TCP, ms", "TCP/HACK, ms", "the paper's"]),
        ..Outcome::default()
    };
    let shown = tenths;
    outcome.numbers.row([
        "airtime of acknowledgements".into(),
        ack_air.to_string(),
        "≈ 0".into(),
        "70 and 0.08".into(),
    ]);
    outcome.numbers.row([
        "bytes in link acknowledgements".into(),
        "0".into(),
        rohc.to_string(),
        "0 and 13.1".into(),
    ]);
    outcome.numbers.row([
        "all that acknowledgements cost, against UDP".into(),
        shown(of_tcp),
        shown(of_hack),
        "1,619 and 15".into(),
    ]);
    outcome.numbers.row([
        "time of the transfer".into(),
        tcp_time.to_string(),
        hack_time.to_string(),
        "–".into(),
    ]);
    let svg = ValueBars {
        id: "plot-hacktable3".into(),
        title: "What the acknowledgements of 25 MiB cost".into(),
        description: format!(
            "{} ms with TCP, {} ms with TCP/HACK.",
            shown(of_tcp),
            shown(of_hack)
        ),
        label: "ms against UDP for as many bytes".into(),
        series: vec![("TCP".into(), 0), ("TCP/HACK".into(), 1)],
        reference: String::new(),
        groups: [("TCP", 0, of_tcp), ("TCP/HACK", 1, of_hack)]
            .map(|(name, series, value)| Group {
                name: name.into(),
                values: vec![tack_plot::Value {
                    series,
                    value,
                    ..tack_plot::Value::default()
                }],
            })
            .into(),
        ..ValueBars::default()
    }
    .to_svg();
    outcome
        .plots
        .push(plot(svg, "Cost of acknowledgements in time."));
    outcome.claims = vec![
        Claim::new(
            "Acknowledgements take 70 ms of airtime with TCP, to 3 %",
            "70 ms",
            format!("{ack_air} ms"),
            ack_air.is_near(70.0, 0.03),
        ),
        Claim::new(
            "The compressed ones take 13.1 ms in link acknowledgements, to 20 %",
            "13.1 ms",
            format!("{rohc} ms"),
            rohc.is_near(13.1, 0.2),
        ),
        Claim::new(
            "Most of the cost is channel acquisition and link acknowledgements, not airtime of the acknowledgements",
            "1,549 of 1,619 ms",
            format!("{} of {} ms", shown(of_tcp - ack_air.mean), shown(of_tcp)),
            costs[0].times(0.5).less(ack_air).is_above(0.0),
        ),
        Claim::new(
            "TCP/HACK saves nearly all of it: at least 80 %",
            "99 %",
            format!("{} of {} ms", shown(of_tcp - of_hack), shown(of_tcp)),
            costs[1].less(costs[0].times(0.2)).is_below(0.0),
        ),
        Claim::new(
            "Each acknowledgement of TCP costs 120 us of acquisition (101.5 us of DIFS and backoff here) and its link acknowledgement (44 us): \
             between 120 and 200 us, collisions included",
            "120.6 + 50.3 us",
            format!("{each} us"),
            each.is_within(120.0..=200.0),
        ),
    ];
    outcome
}
