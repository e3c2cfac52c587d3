//! Figure 10: aggregate goodput of 1 to 10 clients, and what the host's delay does to it.

use std::ops::RangeInclusive;

use tack_plot::{Line, LineChart, Scale, Stroke, format_number};

use super::{clients, mistaken, total};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{percent, plot, tenths};
use crate::measure::Values;
use crate::point::{Cell, Point};
use crate::results::Results;
use tack_stats::Estimate;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Hack,
    id: "hack10",
    title: "Aggregate goodput of 1 to 10 clients over 802.11n",
    about: "Downloads at 150 Mbit/s by TCP with delayed ACK (NewReno), by each variant of TCP/HACK, and by UDP. As in the paper the \
            acknowledgements of a batch come too late for its own Block ACK: the host hears of an A-MPDU when it has ended, 30 us later, and \
            its answer takes 20 us to the network card, which makes 50 us in all. A second table has other delays, and hosts that hear of each \
            frame as it ends. MORE DATA is the paper's protocol but for two things: an acknowledgement also waits for 20 ms after a response that carried some, and those that wait in \
            the transmit queue can still be compressed (docs/hack.md).",
    plan,
    reduce,
};

/// The mechanisms to compare: names and settings.
const MECHANISMS: [(&str, &[&str]); 6] = [
    ("UDP", &["flow.0.transport=udp"]),
    ("TCP", &[]),
    ("opportunistic", &["wlan.hack=opportunistic"]),
    ("MORE DATA", &["wlan.hack=more-data"]),
    ("timer", &["wlan.hack=timer"]),
    ("timestamp echo", &["wlan.hack=timestamp-echo"]),
];
const UDP: usize = 0;
const TCP: usize = 1;
const OPPORTUNISTIC: usize = 2;
const MORE_DATA: usize = 3;

fn counts(depth: &Depth) -> &'static [usize] {
    depth.pick(&[1, 4, 10], &[1, 2, 4, 6, 8, 10])
}

fn seeds(depth: &Depth) -> RangeInclusive<u64> {
    depth.seeds(5, 5)
}

/// Lines of the plot alone have fewer runs.
fn seeds_of(depth: &Depth, mechanism: usize) -> RangeInclusive<u64> {
    match mechanism {
        TCP | OPPORTUNISTIC | MORE_DATA => seeds(depth),
        _ => depth.seeds(2, 5),
    }
}

fn cell(mechanism: usize, count: usize) -> Cell {
    let (_, settings) = MECHANISMS[mechanism];
    let is_udp = mechanism == UDP;
    settings
        .iter()
        .fold(clients(count, !is_udp), |cell, setting| cell.set(*setting))
}

/// Delays of the host, to receive and to send together, microseconds: half of each for either.
const DELAYS: [u64; 7] = [0, 20, 50, 100, 150, 200, 400];

/// The host takes so many microseconds for an answer.
fn delayed(mechanism: usize, micros: u64) -> Cell {
    let half = micros / 2;
    cell(mechanism, 1)
        .set(format!("wlan.host_receive_delay={half}us"))
        .set(format!("wlan.host_transmit_delay={half}us"))
}

/// Opportunistic hosts that take 200 us for an answer, and an access point that takes longer: with
/// 31.5 slots of backoff instead of 7.5 its mean access takes 326.5 us and not 110.5.
fn patient() -> Cell {
    delayed(OPPORTUNISTIC, 200)
        .set("wlan.cw_max=1023")
        .set("wlan.cw_min=63")
}

/// The host hears of each frame as it ends, not of all when the A-MPDU has.
fn prompt(mechanism: usize) -> Cell {
    cell(mechanism, 1).set("wlan.host_interrupt=frame")
}

/// MORE DATA with acknowledgements as RFC 6846 has them.
fn rfc() -> Cell {
    cell(MORE_DATA, 1).set("wlan.hack_codec=rfc")
}

/// Every cell with its seeds: those with a variant of TCP/HACK, and the others.
fn cells(depth: &Depth) -> [Vec<(Cell, RangeInclusive<u64>)>; 2] {
    let of = |mechanism: usize| {
        let by_count = counts(depth)
            .iter()
            .map(move |count| cell(mechanism, *count));
        let by_delay = DELAYS.iter().map(move |micros| delayed(mechanism, *micros));
        let others = by_delay.chain([prompt(mechanism)]);
        let is_delayed = matches!(mechanism, TCP | OPPORTUNISTIC | MORE_DATA);
        by_count
            .chain(others.filter(move |_| is_delayed))
            .map(move |cell| (cell, seeds_of(depth, mechanism)))
    };
    let hack = (OPPORTUNISTIC..MECHANISMS.len()).flat_map(of);
    let apart = [patient(), rfc()].map(|cell| (cell, seeds(depth)));
    [
        hack.chain(apart).collect(),
        [UDP, TCP].into_iter().flat_map(of).collect(),
    ]
}

fn plan(depth: &Depth) -> Vec<Point> {
    cells(depth)
        .into_iter()
        .flatten()
        .flat_map(|(cell, seeds)| seeds.map(move |seed| cell.at(seed)))
        .collect()
}

/// The gain of the second over the first, percent.
fn gain(depth: &Depth, results: &Results, cells: [&Cell; 2], count: usize) -> Estimate {
    results.paired(cells, seeds(depth), |before, after| {
        100.0 * (total(after, count) / total(before, count) - 1.0)
    })
}

/// Goodput by the number of clients.
fn by_clients(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table {
            head: std::iter::once("clients".into())
                .chain(MECHANISMS.iter().map(|(name, _)| format!("{name}, Mbit/s")))
                .collect(),
            ..Table::default()
        },
        ..Outcome::default()
    };
    let mut lines: Vec<Line> = MECHANISMS
        .iter()
        .enumerate()
        .map(|(colour, (name, _))| Line {
            name: (*name).into(),
            colour,
            stroke: Stroke::Solid,
            ..Line::default()
        })
        .collect();
    for count in counts(depth) {
        let mut row = vec![count.to_string()];
        for (mechanism, line) in lines.iter_mut().enumerate() {
            let goodput = results.estimate(
                &cell(mechanism, *count),
                seeds_of(depth, mechanism),
                |values| total(values, *count),
            );
            row.push(goodput.to_string());
            line.points.push((*count as f64, goodput.mean));
        }
        outcome.numbers.rows.push(row);
    }
    let svg = LineChart {
        id: "plot-hack10".into(),
        title: "Aggregate goodput by the number of clients".into(),
        description: "UDP is on top, the MORE DATA variant close below it, TCP at the bottom."
            .into(),
        x_label: "clients".into(),
        y_label: "goodput of all, Mbit/s".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        lines,
    }
    .to_svg();
    outcome
        .plots
        .push(plot(svg, "Downloads over 802.11n at 150 Mbit/s."));
    outcome
}

/// Mean bytes of a compressed acknowledgement, in the lean mode and as RFC 6846 has it.
fn mean_lengths(depth: &Depth, results: &Results) -> [Estimate; 2] {
    [cell(MORE_DATA, 1), rfc()].map(|cell| {
        results.estimate(&cell, seeds(depth), |values| {
            values.get("wlan.hack.mean_compressed")
        })
    })
}

fn claims(depth: &Depth, results: &Results) -> Vec<Claim> {
    let [lean, rfc] = mean_lengths(depth, results);
    let gain_of = |mechanism, count| {
        let cells = [TCP, mechanism].map(|mechanism| cell(mechanism, count));
        gain(depth, results, [&cells[0], &cells[1]], count)
    };
    let (one, ten) = (gain_of(MORE_DATA, 1), gain_of(MORE_DATA, 10));
    // The air that contention would have to take from TCP's data besides.
    let contention = [1, 10].map(|count| {
        results.estimate(&cell(TCP, count), seeds(depth), |values| {
            100.0 * (values.get("wlan.airtime.access") + values.get("wlan.airtime.collision"))
        })
    });
    let needed = {
        let data = results.estimate(&cell(TCP, 1), seeds(depth), |values| {
            100.0 * values.get("wlan.airtime.data")
        });
        let [tcp, hack] = [cell(TCP, 1), cell(MORE_DATA, 10)];
        let [tcp, hack] = [(&tcp, 1), (&hack, 10)].map(|(cell, count)| {
            results.estimate(cell, seeds(depth), |values| total(values, count))
        });
        data.mean * (1.0 - hack.mean / 1.22 / tcp.mean)
    };
    let udp = [1, 10].map(|count| {
        results.estimate(&cell(UDP, count), seeds_of(depth, UDP), |values| {
            total(values, count)
        })
    });
    let opportunistic = gain_of(OPPORTUNISTIC, 1);
    let native = results.estimate(&cell(MORE_DATA, 1), seeds(depth), native_share);
    let fitting = results.estimate(&cell(MORE_DATA, 1), seeds(depth), |values| {
        100.0 * values.get("wlan.hack.fitting_share")
    });
    let wrong = wrong(depth, results);
    let mut claims = vec![
        Claim::new(
            "MORE DATA gains 10 to 20 % over TCP with one client (the paper: 15 % in this figure, 14 % in figure 12)",
            "15 %",
            percent(one),
            one.is_within(10.0..=20.0),
        ),
        Claim::new(
            "The gain is larger with ten clients",
            "22 %",
            format!("{} against {}", percent(ten), percent(one)),
            ten.less(one).is_above(0.0),
        )
        .or(
            format!(
                "More clients cost TCP no air here: a batch goes to one client, and mostly that client alone has acknowledgements then. \
                 Collisions and waits for access take {} of the air with one client and {} with ten. A gain of 22 % would take {} percentage points more.",
                percent(contention[0]),
                percent(contention[1]),
                tenths(needed)
            ),
            contention[1].less(contention[0]).is_below(needed),
        ),
        Claim::new(
            "The opportunistic variant does not significantly outperform TCP, with one client: at most 5 %",
            "about equal",
            percent(opportunistic),
            opportunistic.is_at_most(5.0),
        ),
        Claim::new(
            "UDP has the same goodput with ten clients as with one, to 3 %",
            "roughly constant",
            format!("{} and {} Mbit/s", udp[0], udp[1]),
            udp[1].less(udp[0]).times(1.0 / udp[0].mean).is_within(-0.03..=0.03),
        ),
        Claim::new(
            "MORE DATA is ahead of the opportunistic variant, with one client",
            "ahead",
            format!("{} against {}", percent(one), percent(opportunistic)),
            {
                let cells = [OPPORTUNISTIC, MORE_DATA].map(|mechanism| cell(mechanism, 1));
                gain(depth, results, [&cells[0], &cells[1]], 1).is_above(0.0)
            },
        ),
        Claim::new(
            "Fewer than 1 % of the acknowledgements stay native with MORE DATA and one client",
            "10 of 9060",
            percent(native),
            native.is_below(1.0),
        ),
        Claim::new(
            "No rebuilt acknowledgement differs, no CRC fails, with any variant",
            "0",
            format_number(wrong),
            wrong == 0.0,
        ),
        Claim::new(
            "98.5 % of the lengthened link acknowledgements fit within AIFS, to 1.5 percentage points",
            "98.5 %",
            percent(fitting),
            fitting.is_within(97.0..=100.0),
        ),
        Claim::new(
            "A compressed acknowledgement takes 4.36 bytes, to half a byte (with timestamps, lean mode)",
            "4.36 bytes",
            format!("{lean} bytes; {rfc} as RFC 6846 has it"),
            lean.is_within(3.86..=4.86),
        ),
    ];
    claims.extend(claims_on_delays(depth, results));
    claims
}

/// How the opportunistic variant depends on the host's delay, and why.
fn claims_on_delays(depth: &Depth, results: &Results) -> [Claim; 3] {
    let compared = |before, after, micros| {
        let cells = [before, after].map(|mechanism| delayed(mechanism, micros));
        gain(depth, results, [&cells[0], &cells[1]], 1)
    };
    let over_tcp = |micros| compared(TCP, OPPORTUNISTIC, micros);
    let over_more_data = |micros| compared(MORE_DATA, OPPORTUNISTIC, micros);
    let native = |cell: &Cell| results.estimate(cell, seeds(depth), native_share);
    let natives = [50, 200].map(|micros| native(&delayed(OPPORTUNISTIC, micros)));
    let patiently = native(&patient());
    let later = |mechanism, read: fn(&Values) -> f64| {
        let cells = [50, 200].map(|micros| delayed(mechanism, micros));
        results.paired([&cells[0], &cells[1]], seeds(depth), |before, after| {
            100.0 * (read(after) / read(before) - 1.0)
        })
    };
    let [kept, lost] =
        [OPPORTUNISTIC, TCP].map(|mechanism| later(mechanism, |values| total(values, 1)));
    let smaller = later(TCP, batch);
    let none = "–";
    [
        Claim::new(
            "That depends on the host: an opportunistic acknowledgement that is ready at SIFS (0 us) is as good as MORE DATA, to 1 %; with 50 and \
             100 us the gain over TCP is at most 5 %; with 200 us it is more; with 400 us the variant is as good as MORE DATA again, to 2 %",
            none,
            format!(
                "0 and 400 us: {} and {} beside MORE DATA; 50, 100, 200 us: {}, {}, {} over TCP",
                over_more_data(0),
                percent(over_more_data(400)),
                over_tcp(50),
                over_tcp(100),
                percent(over_tcp(200))
            ),
            over_more_data(0)
                .is_within(-1.0..=1.0)
                .and(over_tcp(50).is_at_most(5.0))
                .and(over_tcp(100).is_at_most(5.0))
                .and(over_tcp(200).is_above(5.0))
                .and(over_more_data(400).is_within(-2.0..=2.0)),
        ),
        Claim::new(
            "Because an acknowledgement rides on the Block ACK of the next batch if that is on the air before the acknowledgement is queued: fewer \
             are native with 200 us than with 50, and more of them are with 200 us where the access point's mean access takes 326.5 us \
             (CWmin 63) instead of 110.5",
            none,
            format!(
                "{} native with 200 us, {} with 50; {} with 200 us and CWmin 63",
                percent(natives[1]),
                percent(natives[0]),
                percent(patiently)
            ),
            natives[1]
                .less(natives[0])
                .is_below(0.0)
                .and(patiently.less(natives[1]).is_above(0.0)),
        ),
        Claim::new(
            "Most of what the gain grows by from 50 to 200 us is TCP's loss, whose batches get smaller as acknowledgements come later",
            none,
            format!(
                "{} for TCP, {} for the opportunistic variant; frames a batch of TCP: {}",
                percent(lost),
                percent(kept),
                percent(smaller)
            ),
            kept.less(lost.times(-1.0))
                .is_below(0.0)
                .and(smaller.is_below(0.0)),
        ),
    ]
}

/// Gains by the host's delay, with one client.
fn by_delay(depth: &Depth, results: &Results) -> Table {
    let mut table = Table::new([
        "host's delay, us",
        "TCP, Mbit/s",
        "its frames a batch",
        "opportunistic, gain in %",
        "native, %",
        "MORE DATA, gain in %",
        "native, %",
    ]);
    table.part = "the host's delay, one client";
    let rows = DELAYS
        .map(|micros| {
            let cells = [TCP, OPPORTUNISTIC, MORE_DATA].map(|mechanism| delayed(mechanism, micros));
            (micros.to_string(), cells)
        })
        .into_iter()
        .chain([(
            "50, of each frame".into(),
            [TCP, OPPORTUNISTIC, MORE_DATA].map(prompt),
        )]);
    for (name, [tcp, opportunistic, more_data]) in rows {
        let gain_of = |cell: &Cell| gain(depth, results, [&tcp, cell], 1).to_string();
        let read = |cell: &Cell, of: fn(&Values) -> f64| {
            results.estimate(cell, seeds(depth), of).to_string()
        };
        table.row([
            name,
            read(&tcp, |values| total(values, 1)),
            read(&tcp, batch),
            gain_of(&opportunistic),
            read(&opportunistic, native_share),
            gain_of(&more_data),
            read(&more_data, native_share),
        ]);
    }
    table
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = by_clients(depth, results);
    outcome.claims = claims(depth, results);
    outcome.further.push(by_delay(depth, results));
    let [lean, rfc] = mean_lengths(depth, results);
    outcome.notes.push(format!(
        "Mean bytes of a compressed acknowledgement: {lean} in the lean mode, {rfc} in the mode of RFC 6846, in which a timestamp that did not \
         move takes three bytes. The paper's 4.36 cannot come from RFC 6846 with timestamps; it does not say what it did with them."
    ));
    outcome
}

/// Acknowledgements that were not compressed, percent.
fn native_share(values: &Values) -> f64 {
    let native = values.get("wlan.hack.native_acks");
    100.0 * native / (native + values.get("wlan.hack.rebuilt"))
}

/// Frames in an A-MPDU of the access point.
fn batch(values: &Values) -> f64 {
    values.get("wlan.ap.mpdus") / values.get("wlan.ap.attempts")
}

/// Failed CRCs, contexts that were missing and rebuilt acknowledgements that differ, in all runs
/// with TCP/HACK.
fn wrong(depth: &Depth, results: &Results) -> f64 {
    let [hack, _] = cells(depth);
    hack.iter()
        .flat_map(|(cell, seeds)| results.each(cell, seeds.clone(), mistaken))
        .sum()
}
