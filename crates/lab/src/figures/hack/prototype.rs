//! The common parts of figure 9, tables 1 to 3 and the cross-validation: single link
//! acknowledgements of 802.11a.

use tack_plot::{Group, ValueBars, format_number};

use super::total;
use crate::figure::{Depth, Table};
use crate::figures::presentation::bar;
use crate::measure::Values;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::HACK_PROTOTYPE;
use tack_stats::Estimate;

pub(super) fn seeds(depth: &Depth) -> std::ops::RangeInclusive<u64> {
    depth.seeds(3, 8)
}

pub(super) fn points(depth: &Depth, cells: &[Cell]) -> Vec<Point> {
    let all = cells.iter().cloned();
    all.flat_map(|cell| seeds(depth).map(move |seed| cell.at(seed)))
        .collect()
}

pub(super) const TRANSPORTS: [&str; 3] = ["TCP", "TCP/HACK", "UDP"];
pub(super) const TCP: usize = 0;
pub(super) const HACK: usize = 1;
pub(super) const UDP: usize = 2;

/// One or two clients with a transport.
pub(super) fn cell(transport: usize, clients: usize) -> Cell {
    let cell = Cell::new(&HACK_PROTOTYPE).set(format!("wlan.stations={clients}"));
    if transport == UDP {
        return cell.set("flow.0.transport=udp");
    }
    let cell = cell
        .set("flow.0.congestion=new_reno")
        .set("flow.0.ack=delayed:2");
    if transport == HACK {
        cell.set("wlan.hack=more-data")
    } else {
        cell
    }
}

pub(super) fn goodput_cells() -> Vec<Cell> {
    [1, 2]
        .into_iter()
        .flat_map(|clients| [TCP, HACK, UDP].map(|transport| cell(transport, clients)))
        .collect()
}

pub(super) fn gain(depth: &Depth, results: &Results, cells: [&Cell; 2], flows: usize) -> Estimate {
    results.paired(cells, seeds(depth), |before, after| {
        100.0 * (total(after, flows) / total(before, flows) - 1.0)
    })
}

/// Attempts with data frames of the access point that were the first of their frame, percent: as
/// many arrive at the first attempt when attempts fail independently.
pub(super) fn first_try(values: &Values) -> f64 {
    let (sent, again) = (values.get("wlan.ap.mpdus"), values.get("wlan.ap.retries"));
    100.0 * (sent - again) / sent
}

pub(super) fn cross(transport: usize, noise: &str) -> Cell {
    cell(transport, 1).set(format!("wlan.frame_error_rate={noise}"))
}

pub(super) fn cross_cells() -> Vec<Cell> {
    vec![
        cross(TCP, "0.12"),
        cross(TCP, "0.05"),
        cross(TCP, "0.02"),
        cross(HACK, "0.02"),
    ]
}

/// A group of bars for each number of clients: a bar for each transport, as `read`, beside the
/// paper's. Adds the rows to `numbers`.
pub(super) fn clients_and_transports(
    paper: [[f64; 3]; 2],
    read: impl Fn(usize, usize) -> Estimate,
    numbers: &mut Table,
) -> Vec<Group> {
    let group = |clients: usize| {
        let values = [TCP, HACK, UDP].map(|transport| {
            let (ours, paper) = (read(transport, clients), paper[clients - 1][transport]);
            numbers.row([
                clients.to_string(),
                TRANSPORTS[transport].into(),
                ours.to_string(),
                format_number(paper),
            ]);
            bar(transport, ours, Some(paper))
        });
        let plural = if clients == 1 { "" } else { "s" };
        Group {
            name: format!("{clients} client{plural}"),
            values: values.into(),
        }
    };
    [1, 2].map(group).into()
}

/// A plot of these groups, with its name and title.
pub(super) fn bars(
    [id, title]: [&str; 2],
    description: &str,
    label: &str,
    groups: Vec<Group>,
) -> tack_plot::Svg {
    let names = TRANSPORTS.iter().enumerate();
    ValueBars {
        id: id.into(),
        title: title.into(),
        description: description.into(),
        label: label.into(),
        series: names
            .map(|(colour, name)| ((*name).into(), colour))
            .collect(),
        reference: "the paper's prototype".into(),
        groups,
        ..ValueBars::default()
    }
    .to_svg()
}
