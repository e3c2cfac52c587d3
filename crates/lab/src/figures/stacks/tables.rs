//! The tables and plots of the comparison.

use tack_plot::{COLOURS, Group, ValueBars, format_number};

use super::measured::{Measured, value};
use super::ways::{Route, WAYS, routes};
use crate::figure::{Plot, Table};
use crate::figures::presentation::{bar, plot};

pub(super) fn numbers(measured: &Measured<'_>) -> Table {
    let mut table = Table::new([
        "path",
        "transport",
        "Mbit/s",
        "ACKs per 100 data packets",
        "air: data, %",
        "air: ACKs, %",
        "air: collisions, %",
        "air: link control and access, %",
        "air: idle, %",
        "trusted",
    ]);
    for_each(measured, |route, way, name| {
        let percent = |name| measured.percent(route, way, name).to_string();
        let air = |name| match route.is_wireless {
            true => percent(name),
            false => "–".into(),
        };
        let others = measured.of(route, way, |values| {
            values.get(value::AIR_CONTROL) + values.get(value::AIR_ACCESS)
        });
        table.row([
            route.name.into(),
            name.into(),
            measured.mbps(route, way).to_string(),
            percent(value::ACKS),
            air(value::AIR_DATA),
            air(value::AIR_ACK),
            air(value::AIR_COLLISION),
            match route.is_wireless {
                true => others.times(100.0).to_string(),
                false => "–".into(),
            },
            air(value::AIR_IDLE),
            trust(measured, route, way),
        ]);
    });
    table
}

/// What explains the numbers: the sender's view, and what the receiver's TCP gets.
pub(super) fn reasons(measured: &Measured<'_>) -> Table {
    let mut table = Table::new([
        "path",
        "transport",
        "round-trip time, ms",
        "congestion window / round-trip time, Mbit/s",
        "sent again, %",
        "payload of a packet, bytes",
        "out of order or filling a hole, %",
        "packets at the kernel's TCP, of 100",
        "of them joined while the socket is held",
        "receiving system calls of this stack, of 100 packets",
        "ACKs of the kernel's timer per 100 data packets",
    ]);
    table.part = "what the sender sees, and what the receiver's TCP gets";
    for_each(measured, |route, way, name| {
        let percent = |name| measured.percent(route, way, name).to_string();
        let of_kernel = |name| match WAYS[way].is_kernel() {
            true => percent(name),
            false => "–".into(),
        };
        let rate = measured.get(route, way, value::WINDOW_RATE).times(1e-6);
        table.row([
            route.name.into(),
            name.into(),
            measured.get(route, way, value::RTT).to_string(),
            rate.to_string(),
            percent(value::LOST),
            measured.get(route, way, value::PAYLOAD).to_string(),
            percent(value::DISORDERED),
            of_kernel(value::TCP_PACKETS),
            of_kernel(value::TCP_MERGED),
            match WAYS[way].is_batched() {
                true => percent(value::BATCHES),
                false => "–".into(),
            },
            of_kernel(value::TCP_DELAYED),
        ]);
    });
    table
}

fn for_each(measured: &Measured<'_>, mut row: impl FnMut(Route, usize, &str)) {
    for route in measured.routes() {
        for way in route.ways().filter(|way| measured.was_tried(route, *way)) {
            row(route, way, WAYS[way].name);
        }
    }
}

fn trust(measured: &Measured<'_>, route: Route, way: usize) -> String {
    if !measured.has(route, way) {
        return "SKIPPED".into();
    }
    match measured.get(route, way, value::TRUSTED).mean {
        1.0 => "yes".to_owned(),
        share if share.is_nan() => "–".into(),
        share => format!("NO: {} of the runs", format_number(share)),
    }
}

pub(super) fn plots(measured: &Measured<'_>) -> Vec<Plot> {
    let bars = |is_logarithmic: bool, of: &dyn Fn(Route, usize) -> tack_stats::Estimate| {
        let groups = routes(measured.depth).into_iter().map(|route| Group {
            name: route.name.into(),
            values: route
                .ways()
                .map(|way| bar(way, of(route, way), None))
                .collect(),
        });
        ValueBars {
            is_positive: is_logarithmic,
            series: WAYS
                .iter()
                .map(|way| (way.name.into(), colour(way.name)))
                .collect(),
            groups: groups.collect(),
            ..ValueBars::default()
        }
    };
    let goodput = ValueBars {
        id: "plot-kernel".into(),
        title: "Goodput over the same links in real time".into(),
        description: "Goodput of one download for each transport and path.".into(),
        label: "goodput, Mbit/s".into(),
        ..bars(false, &|route, way| measured.mbps(route, way))
    };
    let acks = ValueBars {
        id: "plot-kernel-acks".into(),
        title: "Acknowledgements over the same links".into(),
        description:
            "Acknowledgements for 100 data packets that arrived, for each transport and path."
                .into(),
        label: "acknowledgements for 100 data packets".into(),
        ..bars(true, &|route, way| {
            measured.percent(route, way, value::ACKS)
        })
    };
    vec![
        plot(goodput.to_svg(), "Goodput of one download."),
        plot(
            acks.to_svg(),
            "Acknowledgements for 100 data packets that arrived.",
        ),
    ]
}

/// The kernel, quinn and this program have a colour each, and TACK one of its own.
fn colour(name: &str) -> usize {
    match name {
        name if name.starts_with("kernel") => 1,
        name if name.starts_with("quinn") => 2,
        name if name.starts_with("TCP-TACK") => 0,
        _ => COLOURS - 1,
    }
}

pub(super) fn notes(measured: &Measured<'_>) -> Vec<String> {
    let mut notes = vec![
        "Real time: results differ between runs and machines. A run counts as trusted if the emulator was late for at most 1 % of \
            the packets and the processors were idle for at least 5 % of the time; others are repeated up to twice, and decide no claim if they stay so."
            .to_owned(),
    ];
    let (mut untrusted, mut skipped) = (Vec::new(), Vec::new());
    for_each(measured, |route, way, name| {
        let name = format!("{name} over {}", route.name);
        if !measured.has(route, way) {
            skipped.push(name);
        } else if measured.get(route, way, value::TRUSTED).mean < 1.0 {
            untrusted.push(name);
        }
    });
    for (what, names) in [("NOT TRUSTED", untrusted), ("SKIPPED", skipped)] {
        if !names.is_empty() {
            notes.push(format!("{what}: {}.", names.join("; ")));
        }
    }
    notes
}
