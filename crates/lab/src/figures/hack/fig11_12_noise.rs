//! Figures 11 and 12: goodput by signal-to-noise ratio, and by rate against the closed form.

use tack_plot::{Line, LineChart, Scale, Stroke, format_number};

use super::fig1_analytic::{COMPRESSED, Carrier, aggregated, mac_n};
use super::{clients, mistaken, total};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{percent, plot};
use crate::point::{Cell, Point};
use crate::results::Results;
use tack_stats::Estimate;
use tack_stats::Finding;

pub(in crate::figures) const ENVELOPE: Figure = Figure {
    paper: Paper::Hack,
    id: "hack11",
    title: "Goodput by signal-to-noise ratio",
    about: "One client of 802.11n, white noise. At each ratio the best of the rates that work there, as an ideal rate adaptation would choose, with \
            TCP (delayed ACK, NewReno) and with TCP/HACK (MORE DATA). Link acknowledgements have the highest basic rate not above the data rate; \
            A-MPDUs last at most 4 ms. MORE DATA is the paper's protocol but for two things: an acknowledgement also waits for 20 ms after a response that carried some, and those that wait in \
            the transmit queue can still be compressed (docs/hack.md).",
    plan: envelope_plan,
    reduce: envelope_reduce,
};

pub(in crate::figures) const RATES: Figure = Figure {
    paper: Paper::Hack,
    id: "hack12",
    title: "Theoretical and simulated goodput by rate",
    about: "The runs of figure 11 without noise, beside the closed form of figure 1(b).",
    plan: rates_plan,
    reduce: rates_reduce,
};

/// Goodput of MCS 0 to 7 at 40 MHz with the short guard interval, Mbit/s, and the ratio at which
/// half of the long frames are lost in the model, dB.
const MODES: [(f64, f64); 8] = [
    (15.0, 3.4),
    (30.0, 6.4),
    (45.0, 9.3),
    (60.0, 12.9),
    (90.0, 16.0),
    (120.0, 20.8),
    (135.0, 22.0),
    (150.0, 23.2),
];

fn ratios(depth: &Depth) -> Vec<f64> {
    let step = depth.pick(4, 1);
    (5..=29).step_by(step).map(f64::from).collect()
}

fn seeds(depth: &Depth) -> std::ops::RangeInclusive<u64> {
    depth.seeds(3, 3)
}

/// A client at MCS `mcs`, by TCP or TCP/HACK.
fn cell(mcs: usize, is_hack: bool) -> Cell {
    // The rates of link acknowledgements follow from the data rate: 6, 12 and 24 Mbit/s.
    let control = [6, 12, 12, 24, 24, 24, 24, 24][mcs];
    let cell = clients(1, true)
        .set(format!("wlan.rate={}Mbps", MODES[mcs].0))
        .set(format!("wlan.control_rate={control}Mbps"));
    if is_hack {
        cell.set("wlan.hack=more-data")
    } else {
        cell
    }
}

fn noisy(mcs: usize, is_hack: bool, ratio: f64) -> Cell {
    cell(mcs, is_hack).set(format!("wlan.error_model.snr_db={ratio:.1}"))
}

/// The rates that may be the best at `ratio`.
fn candidates(ratio: f64) -> impl Iterator<Item = usize> {
    (0..MODES.len()).filter(move |mcs| {
        (-0.5..7.0).contains(&(ratio - MODES[*mcs].1)) || ratio - MODES[*mcs].1 >= 7.0 && *mcs == 7
    })
}

fn envelope_plan(depth: &Depth) -> Vec<Point> {
    ratios(depth)
        .into_iter()
        .flat_map(|ratio| {
            candidates(ratio)
                .flat_map(move |mcs| [false, true].map(|is_hack| noisy(mcs, is_hack, ratio)))
        })
        .flat_map(|cell| seeds(depth).map(move |seed| cell.at(seed)))
        .collect()
}

fn goodput(depth: &Depth, results: &Results, cell: &Cell) -> f64 {
    results
        .estimate(cell, seeds(depth), |values| total(values, 1))
        .mean
}

fn envelope_reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "SNR, dB",
            "TCP, Mbit/s",
            "at rate",
            "TCP/HACK, Mbit/s",
            "at rate",
            "gain, %",
        ]),
        ..Outcome::default()
    };
    let mut lines = [("TCP", 0), ("TCP/HACK", 1)].map(|(name, colour)| Line {
        name: name.into(),
        colour,
        stroke: Stroke::Solid,
        ..Line::default()
    });
    let mut gains = Vec::new();
    let mut by_seed = Vec::new();
    let (mut failures, mut timeouts, mut stall) = (0.0, 0.0, 0.0_f64);
    for ratio in ratios(depth) {
        let best = [false, true].map(|is_hack| {
            candidates(ratio)
                .map(|mcs| (mcs, goodput(depth, results, &noisy(mcs, is_hack, ratio))))
                .max_by(|a, b| a.1.total_cmp(&b.1))
                .unwrap_or((0, f64::NAN))
        });
        for mcs in candidates(ratio) {
            let cell = noisy(mcs, true, ratio);
            failures += results
                .each(&cell, seeds(depth), mistaken)
                .iter()
                .sum::<f64>();
            if mcs == best[1].0 {
                let each = |name: &'static str| {
                    results.each(&cell, seeds(depth), move |values| values.get(name))
                };
                timeouts += each("flows.0.rto_count").iter().sum::<f64>();
                stall = each("flows.0.no_progress_max_s")
                    .into_iter()
                    .fold(stall, f64::max);
            }
        }
        let cells =
            [false, true].map(|is_hack| noisy(best[usize::from(is_hack)].0, is_hack, ratio));
        let runs = cells.map(|cell| results.each(&cell, seeds(depth), |values| total(values, 1)));
        let gain: Vec<_> = (runs[0].iter().zip(&runs[1]))
            .map(|(tcp, hack)| 100.0 * (hack / tcp - 1.0))
            .collect();
        gains.push(Estimate::of(&gain));
        by_seed.push(gain);
        let gain = Estimate::of(by_seed.last().map_or(&[], Vec::as_slice));
        outcome.numbers.row([
            format_number(ratio),
            format_number(best[0].1),
            format_number(MODES[best[0].0].0),
            format_number(best[1].1),
            format_number(MODES[best[1].0].0),
            gain.to_string(),
        ]);
        for (line, (_, goodput)) in lines.iter_mut().zip(best) {
            line.points.push((ratio, goodput));
        }
    }
    let means = (0..seeds(depth).count()).map(|seed| {
        let ratios = by_seed.iter().map(|gains| gains[seed]);
        ratios.sum::<f64>() / by_seed.len() as f64
    });
    let mean = Estimate::of(&means.collect::<Vec<_>>());
    let svg = LineChart {
        id: "plot-hack11".into(),
        title: "Goodput of one client by signal-to-noise ratio".into(),
        description: format!("TCP/HACK gains {mean} % on average."),
        x_label: "signal-to-noise ratio, dB".into(),
        y_label: "goodput, Mbit/s".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        lines: lines.into(),
    }
    .to_svg();
    outcome
        .plots
        .push(plot(svg, "The best rate at each ratio."));
    outcome.claims = vec![
        Claim::new(
            "TCP/HACK gains 12.6 % on average over the ratios, to 4 percentage points",
            "12.6 %",
            percent(mean),
            mean.is_within(8.6..=16.6),
        ),
        Claim::new(
            "It gains at every ratio",
            "yes",
            format!(
                "at least {} %",
                format_number(gains.iter().map(|gain| gain.mean).fold(f64::NAN, f64::min))
            ),
            Finding::all(gains.iter().map(|gain| gain.is_above(0.0))),
        ),
        Claim::new(
            "No decompression fails its CRC, and no rebuilt acknowledgement differs, at any rate and ratio",
            "0",
            format_number(failures),
            failures == 0.0,
        ),
        Claim::new(
            "No stall from recurring timeouts: not one retransmission timeout at the best rate of any ratio",
            "none",
            format!(
                "{}; the longest time without progress is {} s",
                format_number(timeouts),
                format_number(stall)
            ),
            timeouts == 0.0,
        ),
    ];
    outcome
}

fn rates_seeds(depth: &Depth) -> std::ops::RangeInclusive<u64> {
    depth.seeds(5, 5)
}

fn rates_plan(depth: &Depth) -> Vec<Point> {
    (0..MODES.len())
        .flat_map(|mcs| [false, true].map(|is_hack| cell(mcs, is_hack)))
        .flat_map(|cell| rates_seeds(depth).map(move |seed| cell.at(seed)))
        .collect()
}

fn rates_reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "rate, Mbit/s",
            "TCP, closed form",
            "simulated",
            "TCP/HACK, closed form",
            "simulated",
            "gain, closed form, %",
            "simulated, %",
        ]),
        ..Outcome::default()
    };
    let names = [
        "TCP, closed form",
        "TCP, simulated",
        "TCP/HACK, closed form",
        "TCP/HACK, simulated",
    ];
    let mut lines = [0, 1, 2, 3].map(|index| Line {
        name: names[index].into(),
        colour: index / 2,
        stroke: if index % 2 == 0 {
            Stroke::Dashed
        } else {
            Stroke::Solid
        },
        ..Line::default()
    });
    let mut gains = Vec::new();
    for (mcs, (rate, _)) in MODES.iter().enumerate() {
        let theory = mac_n(mcs as u8).map_or([f64::NAN; 2], |mac| {
            [Carrier::Tcp, Carrier::Hack(COMPRESSED)].map(|carrier| aggregated(&mac, carrier))
        });
        let cells = [false, true].map(|is_hack| cell(mcs, is_hack));
        let seeds = || rates_seeds(depth);
        let simulated =
            [0, 1].map(|index| results.estimate(&cells[index], seeds(), |values| total(values, 1)));
        let gain = results.paired([&cells[0], &cells[1]], seeds(), |tcp, hack| {
            100.0 * (total(hack, 1) / total(tcp, 1) - 1.0)
        });
        let theoretical = 100.0 * (theory[1] / theory[0] - 1.0);
        gains.push((*rate, theoretical, gain));
        outcome.numbers.row([
            format_number(*rate),
            format_number(theory[0]),
            simulated[0].to_string(),
            format_number(theory[1]),
            simulated[1].to_string(),
            format_number(theoretical),
            gain.to_string(),
        ]);
        let values = [theory[0], simulated[0].mean, theory[1], simulated[1].mean];
        for (line, value) in lines.iter_mut().zip(values) {
            line.points.push((*rate, value));
        }
    }
    let svg = LineChart {
        id: "plot-hack12".into(),
        title: "Theoretical and simulated goodput over 802.11n by rate".into(),
        description: "The simulated gain of TCP/HACK exceeds the theoretical one.".into(),
        x_label: "rate of data frames, Mbit/s".into(),
        y_label: "goodput, Mbit/s".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        lines: lines.into(),
    }
    .to_svg();
    outcome
        .plots
        .push(plot(svg, "Goodput without noise, beside the closed form."));
    let (_, theoretical, fastest) = gains[gains.len() - 1];
    let exceeding = gains
        .iter()
        .filter(|(_, theory, gain)| gain.mean > *theory)
        .count();
    outcome.claims = vec![
        Claim::new(
            "At 150 Mbit/s TCP/HACK gains 14 % in simulation, to 4 percentage points",
            "14 %",
            percent(fastest),
            fastest.is_within(10.0..=18.0),
        ),
        Claim::new(
            "That exceeds the theoretical gain of 7 %, since collisions go too",
            "14 against 7 %",
            format!("{} against {theoretical:.1} %", percent(fastest)),
            fastest.is_above(theoretical),
        ),
        Claim::new(
            "It does so at every rate",
            "every rate",
            format!("at {exceeding} of {} rates", gains.len()),
            Finding::all(gains.iter().map(|(_, theory, gain)| gain.is_above(*theory))),
        ),
    ];
    outcome
}
