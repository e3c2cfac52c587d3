//! Where segments and acknowledgements of uploads wait, with TCP/HACK and without: a part of the
//! figure of all mechanisms.

use crate::claim::Claim;
use crate::figure::{Depth, Table};
use crate::figures::presentation::percent;
use crate::figures::readings::{all_mbps, delay_p95, jain};
use crate::figures::tack::links::{LINKS, Link};
use crate::measure::Values;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::MECHANISMS as SCENARIO;
use tack_stats::Estimate;

const STATIONS: usize = 10;
const CROWD: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setup {
    /// Delayed ACK, and a queue of 50 ms of what the radio carries at each radio.
    Plain,
    /// The same with TCP/HACK.
    Hack,
    /// With TCP/HACK, and queues of stations that hold 50 ms of twice a station's share.
    Short,
}

use Setup::{Hack, Plain, Short};

impl Setup {
    const ALL: [Self; 3] = [Plain, Hack, Short];

    fn name(self) -> &'static str {
        match self {
            Plain => "L = 2",
            Hack => "L = 2, HACK",
            Short => "L = 2, HACK, short queues",
        }
    }

    fn cell(self, depth: &Depth, link: Link) -> Cell {
        let cell = Cell::new(&SCENARIO)
            .set(format!("wlan.preset={}", link.preset))
            .set(format!("wlan.stations={STATIONS}"))
            .set(format!("wlan.queue={}p", capacity(link)))
            .set("flow.0.from=each")
            .set("flow.0.ack=delayed:2")
            .set(depth.pick("duration=5s", "duration=8s"))
            .set(depth.pick("warmup=2s", "warmup=3s"));
        match self {
            Plain => cell,
            Hack => cell.set("wlan.hack=more-data"),
            Short => cell.set("wlan.hack=more-data").set(format!(
                "wlan.station_queue={}p",
                2 * capacity(link) / STATIONS as u64
            )),
        }
    }
}

/// Twenty uploads over 802.11g with `setup`, of which flows may not get through the handshake.
fn crowded(depth: &Depth, setup: Setup) -> Cell {
    setup
        .cell(depth, LINKS[1])
        .set(format!("wlan.stations={CROWD}"))
}

/// The same with L = 2 and an access point that drops nothing.
fn lossless(depth: &Depth) -> Cell {
    crowded(depth, Plain).set("wlan.ap_queue=5000p")
}

/// Flows whose handshake has not ended: they have no round-trip time.
fn without_handshake(values: &Values) -> f64 {
    let is_missing = |flow: &usize| values.get(&format!("flows.{flow}.srtt_us")).is_nan();
    (0..CROWD).filter(is_missing).count() as f64
}

/// 50 ms of what the radio carries, packets.
fn capacity(link: Link) -> u64 {
    (link.baseline * 1e6 * 0.05 / 12_000.0) as u64
}

/// 802.11g and n.
fn links() -> [Link; 2] {
    [LINKS[1], LINKS[2]]
}

fn seeds(depth: &Depth) -> std::ops::RangeInclusive<u64> {
    depth.seeds(5, 5)
}

pub(in crate::figures) fn plan(depth: &Depth) -> Vec<Point> {
    links()
        .into_iter()
        .flat_map(|link| Setup::ALL.map(|setup| setup.cell(depth, link)))
        .chain([crowded(depth, Plain), crowded(depth, Hack), lossless(depth)])
        .flat_map(|cell| seeds(depth).map(move |seed| cell.at(seed)))
        .collect()
}

/// Mean over flows of the smoothed round-trip time at the end of the run, milliseconds. A flow has
/// none whose handshake has not ended.
fn round_trip(values: &Values) -> f64 {
    let times: Vec<f64> = (0..STATIONS)
        .map(|flow| values.get(&format!("flows.{flow}.srtt_us")) / 1e3)
        .filter(|time| !time.is_nan())
        .collect();
    times.iter().sum::<f64>() / times.len() as f64
}

/// Median of the access point's queue, which has acknowledgements only, packets.
fn ap_queue(values: &Values) -> f64 {
    values.get("wlan.ap_queue_p50")
}

fn total(values: &Values) -> f64 {
    all_mbps(values, STATIONS)
}

pub(in crate::figures) fn table(depth: &Depth, results: &Results) -> Table {
    let mut table = Table::new([
        "medium",
        "mechanism",
        "goodput, Mbit/s",
        "latency p95, ms",
        "round trip, ms",
        "access point's queue, packets",
        "a station's queue, packets",
        "Jain's index",
    ]);
    table.part = "where ten uploads wait, RTT 2 ms";
    for link in links() {
        for setup in Setup::ALL {
            let cell = setup.cell(depth, link);
            let read =
                |of: fn(&Values) -> f64| results.estimate(&cell, seeds(depth), of).to_string();
            table.row([
                link.name.into(),
                setup.name().into(),
                read(total),
                read(delay_p95),
                read(round_trip),
                read(ap_queue),
                read(|values| values.get("wlan.sta0.queue_p50")),
                read(|values| jain(values, STATIONS)),
            ]);
        }
    }
    table
}

pub(in crate::figures) fn claims(depth: &Depth, results: &Results) -> [Claim; 5] {
    let [g, n] = links();
    let read = |link, setup: Setup, of: fn(&Values) -> f64| -> Estimate {
        results.estimate(&setup.cell(depth, link), seeds(depth), of)
    };
    let more = |link, [before, after]: [Setup; 2], of: fn(&Values) -> f64| -> Estimate {
        let cells = [before, after].map(|setup| setup.cell(depth, link));
        results.paired([&cells[0], &cells[1]], seeds(depth), |before, after| {
            of(after) - of(before)
        })
    };
    let change = |link| {
        let cells = [Hack, Short].map(|setup| setup.cell(depth, link));
        results.paired([&cells[0], &cells[1]], seeds(depth), |before, after| {
            100.0 * (total(after) / total(before) - 1.0)
        })
    };
    let both = |of: &dyn Fn(Link) -> String| format!("{} on g, {} on n", of(g), of(n));
    let is_filled = |link| read(link, Plain, ap_queue).is_at_least(capacity(link) as f64 / 2.0);
    let missing = [crowded(depth, Plain), crowded(depth, Hack), lossless(depth)]
        .map(|cell| results.estimate(&cell, seeds(depth), without_handshake));
    let none = "–";
    [
        Claim::new(
            "Ten uploads over 802.11g: segments wait longer with TCP/HACK than with L = 2, by the 95th percentile of the one-way delay",
            none,
            format!(
                "{} against {} ms",
                read(g, Hack, delay_p95),
                read(g, Plain, delay_p95)
            ),
            more(g, [Plain, Hack], delay_p95).is_above(0.0),
        ),
        Claim::new(
            "Because no acknowledgements wait: those of L = 2 fill the access point's queue at least half, in half of the time, over 802.11g and \
             n, and with TCP/HACK at most one waits",
            none,
            both(&|link| {
                format!(
                    "{} against {} packets of {}",
                    read(link, Plain, ap_queue),
                    read(link, Hack, ap_queue),
                    capacity(link)
                )
            }),
            is_filled(g)
                .and(is_filled(n))
                .and(read(g, Hack, ap_queue).is_at_most(1.0))
                .and(read(n, Hack, ap_queue).is_at_most(1.0)),
        ),
        Claim::new(
            "The round trip over 802.11g, segment and acknowledgement together, is shorter with TCP/HACK",
            none,
            format!(
                "{} against {} ms",
                read(g, Hack, round_trip),
                read(g, Plain, round_trip)
            ),
            more(g, [Plain, Hack], round_trip).is_below(0.0),
        ),
        Claim::new(
            "The segments wait in the queues of their stations: where these hold 50 ms of twice a station's share TCP/HACK has a lower 95th \
             percentile than L = 2, and at most 5 % less goodput than with long queues",
            none,
            both(&|link| {
                format!(
                    "{} ms, {} of goodput",
                    read(link, Short, delay_p95),
                    percent(change(link))
                )
            }),
            more(g, [Plain, Short], delay_p95)
                .is_below(0.0)
                .and(more(n, [Plain, Short], delay_p95).is_below(0.0))
                .and(change(g).is_at_least(-5.0))
                .and(change(n).is_at_least(-5.0)),
        ),
        Claim::new(
            "Twenty uploads over 802.11g: with L = 2 the full queue of the access point drops SYN/ACKs too, and some flows have no handshake by the \
             end of the run; every flow has one with TCP/HACK, and with a queue of 5000 packets",
            none,
            format!(
                "without a handshake: {} of {CROWD} with L = 2, {} with TCP/HACK, {} with the long queue",
                missing[0], missing[1], missing[2]
            ),
            missing[0]
                .is_above(0.0)
                .and(missing[1].mean == 0.0)
                .and(missing[2].mean == 0.0),
        ),
    ]
}
