//! The runs of figure 6(b), and what is read from each.

use std::ops::RangeInclusive;

use tack_plot::format_number;

use crate::Values;
use crate::figure::{Depth, Table};
use crate::figures::readings::mbps;
use crate::figures::tack::paths::PATHS;
use crate::point::Cell;
use crate::results::Results;
use crate::scenarios::WAN;

pub(super) const TIMINGS: [&str; 2] = ["tack", "tack:timing=sampled"];

/// Name, controller.
pub(super) const CONTROLLERS: [(&str, &str); 2] =
    [("BBR without pauses", "bbr:probe_rtt=mild"), ("BBR", "bbr")];

/// The first of figure 14's paths are those that were calibrated on real ones.
pub(super) fn paths() -> &'static [(&'static str, &'static [&'static str])] {
    &PATHS[..6]
}

pub(super) fn seeds(depth: &Depth) -> RangeInclusive<u64> {
    depth.seeds(2, 10)
}

/// What is measured of a run.
#[derive(Clone, Copy)]
pub(super) enum Conditions {
    /// All of it, over the path's own queue.
    Whole,
    /// Without its startup, and over a queue that is [`LONGER`]: neither bounds the delay.
    Free,
    /// All of it, over the path's own queue, with the buffers that a user has.
    Default,
}

impl Conditions {
    pub(super) const ALL: [Self; 3] = [Self::Whole, Self::Free, Self::Default];
}

/// By how much a queue is longer that does not bound the delay.
pub(super) const LONGER: u32 = 8;

/// A run of figure 14, with another timing or controller.
pub(super) fn cell(path: &[&'static str], (congestion, conditions): Way, ack: &str) -> Cell {
    let cell = Cell::new(&WAN)
        .set(format!("flow.0.congestion={congestion}"))
        .set(format!("flow.0.ack={ack}"));
    let over_the_path = |cell: Cell| path.iter().fold(cell, |cell, setting| cell.set(*setting));
    match conditions {
        Conditions::Whole => over_the_path(cell),
        Conditions::Default => over_the_path(cell)
            .set("flow.0.receive_buffer=6MiB")
            .set("flow.0.send_buffer=6MiB"),
        Conditions::Free => {
            let settings = path.iter().map(|setting| longer(setting));
            settings.fold(cell.set("warmup=10s"), Cell::set)
        }
    }
}

/// Controller, and what is measured.
pub(super) type Way<'a> = (&'a str, Conditions);

/// A setting, with a longer queue if it is the queue's.
pub(super) fn longer(setting: &str) -> String {
    let queue = setting
        .strip_prefix("wired.queue=")
        .and_then(|queue| queue.strip_suffix('p')?.parse::<u32>().ok());
    match queue {
        Some(packets) => format!("wired.queue={}p", LONGER * packets),
        None => setting.into(),
    }
}

/// The 95th percentile of one-way delay, ms.
pub(super) fn delay(values: &Values) -> f64 {
    values.get("flows.0.owd_p95_us") / 1e3
}

/// Share of the packets that the path loses.
pub(super) fn loss(values: &Values) -> f64 {
    (values.get("wired.forward.queue_drops") + values.get("wired.forward.lost"))
        / values.get("wired.forward.packets")
}

/// The sender's smallest round trip, ms.
pub(super) fn min_rtt(values: &Values) -> f64 {
    values.get("flows.0.min_rtt_us") / 1e3
}

pub(super) fn listed(numbers: &[f64]) -> String {
    let texts = numbers.iter().map(|number| format_number(*number));
    texts.collect::<Vec<_>>().join(", ")
}

/// A table of what both timings have on each path.
pub(super) fn numbers() -> Table {
    Table::new([
        "controller",
        "path",
        "timing",
        "Mbit/s",
        "95th percentile of one-way delay, ms",
        "packets lost, %",
        "RTTmin, ms",
    ])
}

/// Adds a controller's rows to it.
pub(super) fn rows(
    depth: &Depth,
    results: &Results,
    (name, way): (&str, Way<'_>),
    table: &mut Table,
) {
    for (path_name, path) in paths().iter().copied() {
        for (timing, ack) in ["one-way", "sampling"].into_iter().zip(TIMINGS) {
            let of = |read: fn(&Values) -> f64| {
                results.estimate(&cell(path, way, ack), seeds(depth), read)
            };
            table.row([
                name.into(),
                path_name.into(),
                timing.into(),
                of(mbps).to_string(),
                of(delay).to_string(),
                of(loss).times(100.0).to_string(),
                of(min_rtt).to_string(),
            ]);
        }
    }
}
