//! Figures 8(a), 9(a) and 10(a) over the latency between the endpoints: what TACK gains hardly
//! depends on it.

use std::ops::RangeInclusive;

use tack_plot::{Group, ValueBars, format_number};

use crate::Values;
use crate::claim::Claim;
use crate::figure::{Depth, Extent, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, percent, plot};
use crate::figures::readings::{ack_frequency, by_buffers, equation_3, mbps, seconds};
use crate::figures::tack::links::udp_tool;
use crate::figures::tack::links::{LINKS, Link};
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::WLAN_TCP;
use tack_stats::Estimate;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "8a",
    title: "The gain of TACK hardly depends on the latency",
    about: "The paper concludes from its figures 8(a) and 9(a) that the goodput gain is \
        insensitive to the latency between the endpoints. The ideal gain: the UDP tool \
        acknowledges every second datagram, or as rarely as equation (3) has it for RTTmin of \
        10, 80 and 200 ms. The actual gain: BBR downloads, TACK against delayed ACK, with a \
        user's default buffers (6 MiB). The medium is ideal. The acknowledgements per data \
        packet belong to figure 10(a).",
    plan,
    reduce,
};

const ROUND_TRIPS: [u32; 3] = [10, 80, 200];
/// The buffers of a connection for which nothing else is asked.
const BUFFER: f64 = 6.0 * 1_048_576.0;

/// How far gains may be apart to count as insensitive, percentage points. "Only slightly" is all
/// that the paper says. What a reason for a deviation leaves unexplained may not be more either.
const TOLERANCE: f64 = 3.0;
/// The paper's share of acknowledgements with TACK over 802.11g, percent of the data packets.
const PAPERS_SHARE: f64 = 1.9;
/// How far acknowledgements may be from equation (3), as a share.
const EQUATION: f64 = 0.05;

/// Datagrams for each acknowledgement by equation (3), with the paper's baseline.
fn rarity(link: Link, rtt_ms: u32) -> u64 {
    let datagrams_per_second = link.baseline * 1e6 / 8.0 / 1_472.0;
    ((datagrams_per_second * f64::from(rtt_ms) / 1e3 / 4.0).round() as u64).max(2)
}

/// The UDP tool as TCP and as TACK.
fn ideal(depth: &Depth, link: Link, rtt_ms: u32) -> [Cell; 2] {
    [2, rarity(link, rtt_ms)].map(|every| udp_tool(depth, link, every))
}

/// Delayed ACK and TACK.
fn actual(depth: &Depth, link: Link, rtt_ms: u32) -> [Cell; 2] {
    ["delayed:2", "tack"].map(|ack| {
        let cell = Cell::new(&WLAN_TCP)
            .set(format!("wlan.preset={}", link.preset))
            .set(format!("wired.delay={}ms", rtt_ms / 2))
            .set(format!("flow.0.ack={ack}"))
            .set("flow.0.receive_buffer=6MiB")
            .set("flow.0.send_buffer=6MiB");
        match depth.extent {
            Extent::Quick => cell.set("duration=12s").set("warmup=6s"),
            Extent::Full => cell.set("duration=40s").set("warmup=10s"),
        }
    })
}

fn ideal_seeds(depth: &Depth) -> RangeInclusive<u64> {
    depth.seeds(3, 8)
}

fn actual_seeds(depth: &Depth) -> RangeInclusive<u64> {
    depth.seeds(3, 10)
}

/// Links and round trips of the downloads.
fn downloads(depth: &Depth) -> Vec<(Link, u32)> {
    let all = LINKS
        .iter()
        .flat_map(|link| ROUND_TRIPS.map(|rtt_ms| (*link, rtt_ms)));
    all.filter(|(_, rtt_ms)| depth.extent == Extent::Full || *rtt_ms != 80)
        .collect()
}

/// The paper's 1.9 %: its round trips were 4 to 200 ms. Over 802.11g, at these.
const SHARES: [u32; 3] = [80, 100, 200];

fn share_cell(depth: &Depth, rtt_ms: u32) -> Cell {
    let [_, tack] = actual(depth, LINKS[1], rtt_ms);
    match depth.extent {
        // Twenty acknowledgements a second take longer to count.
        Extent::Quick => tack.set("duration=26s"),
        Extent::Full => tack,
    }
}

fn plan(depth: &Depth) -> Vec<Point> {
    let mut points = Vec::new();
    for link in LINKS {
        let tools = ROUND_TRIPS
            .into_iter()
            .flat_map(|rtt_ms| ideal(depth, link, rtt_ms));
        for cell in tools.chain([udp_tool(depth, link, 0)]) {
            points.extend(ideal_seeds(depth).map(|seed| cell.at(seed)));
        }
    }
    for (link, rtt_ms) in downloads(depth) {
        for cell in actual(depth, link, rtt_ms) {
            points.extend(actual_seeds(depth).map(|seed| cell.at(seed)));
        }
    }
    for rtt_ms in SHARES {
        points.extend(actual_seeds(depth).map(|seed| share_cell(depth, rtt_ms).at(seed)));
    }
    points
}

/// How much more goodput TACK has, percent.
fn gain(results: &Results, [tcp, tack]: &[Cell; 2], seeds: RangeInclusive<u64>) -> Estimate {
    let gain = |tcp: &Values, tack: &Values| mbps(tack) / mbps(tcp) - 1.0;
    results.paired([tcp, tack], seeds, gain).times(100.0)
}

/// Acknowledgements per data packet, percent.
fn share(values: &Values) -> f64 {
    100.0 * values.get("flows.0.acks") / values.get("flows.0.data_segments")
}

/// Where gains lie, as texts.
fn texts(gains: &[(u32, Estimate)]) -> String {
    let texts = gains
        .iter()
        .map(|(rtt_ms, gain)| format!("{} at {rtt_ms} ms", percent(*gain)));
    texts.collect::<Vec<_>>().join(", ")
}

/// How far gains are apart.
fn spread(gains: &[(u32, Estimate)]) -> f64 {
    let means = || gains.iter().map(|(_, gain)| gain.mean);
    means().fold(f64::NAN, f64::max) - means().fold(f64::NAN, f64::min)
}

/// Whether gains are as far apart as they may be, at most: each pair.
fn is_insensitive(gains: &[(u32, Estimate)]) -> Finding {
    let pairs = gains
        .iter()
        .enumerate()
        .flat_map(|(index, (_, one))| gains[index + 1..].iter().map(|(_, other)| one.less(*other)));
    Finding::all(pairs.map(|apart| apart.is_within(-TOLERANCE..=TOLERANCE)))
        .and(gains.iter().all(|(_, gain)| gain.mean.is_finite()))
}

/// The cost of the receiver's accesses in runs of the UDP tool.
struct Cost {
    /// Accesses a second.
    accesses: f64,
    /// Air that each takes from the data, microseconds: what goodput lacks to that without
    /// acknowledgements.
    each_us: f64,
}

impl Cost {
    fn of(results: &Results, depth: &Depth, link: Link, cell: &Cell) -> Self {
        let of = |cell: &Cell, read: fn(&Values) -> f64| {
            results.estimate(cell, ideal_seeds(depth), read).mean
        };
        let accesses = of(cell, |values| {
            values.get("wlan.sta0.attempts") / seconds(values)
        });
        let lacking = 1.0 - of(cell, mbps) / of(&udp_tool(depth, link, 0), mbps);
        Self {
            accesses,
            each_us: 1e6 * lacking / accesses,
        }
    }

    /// Air that so many accesses a second take at this price, percent.
    fn air_of(&self, accesses: f64) -> f64 {
        accesses * self.each_us / 1e4
    }
}

fn ideal_gains(results: &Results, depth: &Depth, link: Link) -> [(u32, Estimate); 3] {
    ROUND_TRIPS.map(|rtt_ms| {
        let cells = ideal(depth, link, rtt_ms);
        (rtt_ms, gain(results, &cells, ideal_seeds(depth)))
    })
}

fn ideal_claim(results: &Results, depth: &Depth, link: Link) -> Claim {
    let gains = ideal_gains(results, depth, link);
    let [delayed, near] = ideal(depth, link, ROUND_TRIPS[0]);
    let [_, far] = ideal(depth, link, ROUND_TRIPS[2]);
    let [delayed, near, far] =
        [delayed, near, far].map(|cell| Cost::of(results, depth, link, &cell));
    Claim::new(
        format!(
            "{}: the ideal gain is insensitive to the latency, within {TOLERANCE} points",
            link.name
        ),
        "insensitive",
        texts(&gains),
        is_insensitive(&gains),
    )
    .or(
        format!(
            "Equation (3) allows up to 400 acknowledgements a second at 10 ms. The receiver wins \
                contention {:.0} times a second for them, and {:.0} times at 200 ms. With \
                delayed ACK each of these accesses takes {:.0} µs of airtime from the data, \
                whatever their number (here {:.0} µs). At that cost they take {:.1} % of the \
                airtime at 10 ms and {:.1} % at 200 ms, and the gains differ by {} points. \
                Between 80 and 200 ms the gain differs by {} points.",
            near.accesses,
            far.accesses,
            delayed.each_us,
            near.each_us,
            delayed.air_of(near.accesses),
            delayed.air_of(far.accesses),
            format_number(spread(&gains)),
            format_number(spread(&gains[1..])),
        ),
        // With that air taken off, the gains would be as close as claimed.
        gains[2]
            .1
            .less(gains[0].1)
            .less(Estimate::exact(
                delayed.air_of(near.accesses) - delayed.air_of(far.accesses),
            ))
            .is_within(-TOLERANCE..=TOLERANCE)
            .and(is_insensitive(&gains[1..])),
    )
}

fn actual_claim(results: &Results, depth: &Depth, link: Link) -> Claim {
    let all: Vec<(u32, [Cell; 2])> = downloads(depth)
        .into_iter()
        .filter(|(other, _)| other.name == link.name)
        .map(|(link, rtt_ms)| (rtt_ms, actual(depth, link, rtt_ms)))
        .collect();
    let gains: Vec<_> = all
        .iter()
        .map(|(rtt_ms, cells)| (*rtt_ms, gain(results, cells, actual_seeds(depth))))
        .collect();
    let claim = Claim::new(
        format!(
            "{}: with default buffers the actual gain is insensitive to the latency, within {TOLERANCE} points",
            link.name
        ),
        "insensitive",
        texts(&gains),
        is_insensitive(&gains),
    );
    let of = |at: Option<&(u32, [Cell; 2])>, read: fn(&Values) -> f64| {
        at.map_or(Estimate::of(&[]), |(_, [_, tack])| {
            results.estimate(tack, actual_seeds(depth), read)
        })
    };
    let (near, far) = (all.first(), all.last());
    let longest = ROUND_TRIPS[2];
    let bdp = link.baseline * 1e6 / 8.0 * f64::from(longest) / 1e3;
    if bdp * 4.0 / 3.0 > BUFFER {
        // All that a window without holes carries in a round trip.
        let most = BUFFER * 8.0 / (f64::from(longest) / 1e3) / 1e6;
        let [before, after] = [near, far].map(|at| 100.0 * of(at, by_buffers).mean);
        let more = near.zip(far).map(|((_, [_, near]), (_, [_, far]))| {
            let more = |near: &Values, far: &Values| by_buffers(far) - by_buffers(near);
            results.paired([near, far], actual_seeds(depth), more)
        });
        let rate = of(far, mbps);
        let ideal = spread(&ideal_gains(results, depth, link));
        return claim.or(
            format!(
                "At {longest} ms the bandwidth-delay product is {} MB. TACK needs 4/3 of it \
                    (equation 11), which exceeds the 6 MiB of the buffers; these carry {} Mbit/s \
                    at most. TACK has {}; the buffers limit the sender for {} % of the time ({} \
                    % at 10 ms). It acknowledges {} % of the data packets. Figure B3 shows this. \
                    The ideal gain, above, is not limited by buffers and differs by {} points.",
                format_number(bdp / 1e6),
                format_number(most),
                rate,
                format_number(after),
                format_number(before),
                of(far, share),
                format_number(ideal),
            ),
            more.map_or(false.into(), |more| more.is_above(0.0))
                .and(rate.is_at_most(most)),
        );
    }
    let ideal = ideal_gains(results, depth, link);
    let changes = [&ideal[..], &gains[..]].map(|gains| match gains {
        [(_, near), .., (_, far)] => far.less(*near),
        _ => Estimate::of(&[]),
    });
    claim.or(
        format!(
            "The ideal gain, above, depends on the latency as well: it differs by {} points \
                between 10 and {longest} ms, the actual gain by {}.",
            changes[0], changes[1],
        ),
        changes[0]
            .less(changes[1])
            .is_within(-TOLERANCE..=TOLERANCE),
    )
}

/// The paper's numbers for 802.11g: 1.9 % against 50 %.
fn share_claims(results: &Results, depth: &Depth) -> Vec<Claim> {
    let shares = SHARES.map(|rtt_ms| {
        let cell = share_cell(depth, rtt_ms);
        let share = results.estimate(&cell, actual_seeds(depth), share);
        let equation = results.estimate(&cell, actual_seeds(depth), |values| {
            let packets = mbps(values) * 1e6 / 8.0 / 1_448.0;
            100.0 * equation_3(mbps(values), values.get("flows.0.min_rtt_us") / 1e6, 2.0) / packets
        });
        (rtt_ms, share, equation)
    });
    let [tcp, _] = actual(depth, LINKS[1], ROUND_TRIPS[2]);
    let tcp = results.estimate(&tcp, actual_seeds(depth), share);
    let all = shares.map(|(rtt_ms, share, _)| (rtt_ms, share));
    let offs = shares.map(|(_, share, equation)| (share.mean / equation.mean - 1.0).abs());
    let off = offs.into_iter().fold(0.0, f64::max);
    let is_equation = |share: Estimate, equation: Estimate| share.is_near(equation.mean, EQUATION);
    let [at_80, at_100, _] = shares.map(|(_, share, _)| share);
    // The goodput of which four acknowledgements in 80 ms are the paper's share.
    let needed = 4.0 / 0.08 / (PAPERS_SHARE / 100.0) * 1_448.0 * 8.0 / 1e6;
    let rate_at_80 = results.estimate(&share_cell(depth, SHARES[0]), actual_seeds(depth), mbps);
    vec![
        Claim::new(
            "802.11g: acknowledgements per data packet with TACK are those of equation (3) for the RTTmin of the run, within 5 %, at 80, 100 and 200 ms",
            "equation (3)",
            format!("{}; at most {} % off", texts(&all), format_number(100.0 * off)),
            Finding::all(shares.map(|(_, share, equation)| is_equation(share, equation))),
        ),
        Claim::new(
            "802.11g: acknowledgements per data packet with TACK are the paper's, within a tenth, at a round trip of 100 ms, in the middle of the \
             paper's (4 to 200 ms)",
            "1.9 %",
            percent(at_100),
            at_100.is_near(PAPERS_SHARE, 0.1),
        ),
        Claim::new(
            "802.11g: acknowledgements per data packet with TACK are at most the paper's at 80 ms, where figure 10(a) is measured",
            "1.9 %",
            percent(at_80),
            at_80.is_at_most(PAPERS_SHARE),
        )
        .or(
            format!(
                "Equation (3) fixes the number: four acknowledgements in 80 ms are the paper's \
                    share only if the link carries {} Mbit/s or more. TACK has {rate_at_80} \
                    here, and follows the equation.",
                format_number(needed),
            ),
            rate_at_80.is_below(needed).and(is_equation(shares[0].1, shares[0].2)),
        ),
        Claim::new(
            "802.11g: acknowledgements per data packet with delayed ACK are the paper's, within 2 points",
            "50 %",
            percent(tcp),
            tcp.is_within(48.0..=52.0),
        ),
    ]
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "link",
            "round trip, ms",
            "what",
            "delayed ACK, Mbit/s",
            "TACK, Mbit/s",
            "gain, %",
            "ACKs/s saved",
            "limited by the receive window, % of time",
        ]),
        ..Outcome::default()
    };
    let mut row =
        |link: Link, rtt_ms: u32, what: &str, cells: &[Cell; 2], seeds: RangeInclusive<u64>| {
            let [tcp, tack] = cells
                .each_ref()
                .map(|cell| results.estimate(cell, seeds.clone(), mbps).to_string());
            let saved = results.paired(cells.each_ref(), seeds.clone(), |tcp, tack| {
                ack_frequency(tcp) - ack_frequency(tack)
            });
            let limited = results.estimate(&cells[1], seeds.clone(), |values| {
                100.0 * values.get("flows.0.limited_by.rwnd")
            });
            outcome.numbers.row([
                link.name.into(),
                rtt_ms.to_string(),
                what.into(),
                tcp,
                tack,
                gain(results, cells, seeds).to_string(),
                saved.to_string(),
                limited.to_string(),
            ]);
        };
    let mut groups = Vec::new();
    for link in LINKS {
        let mut values = Vec::new();
        for (index, rtt_ms) in ROUND_TRIPS.into_iter().enumerate() {
            let cells = ideal(depth, link, rtt_ms);
            row(link, rtt_ms, "ideal", &cells, ideal_seeds(depth));
            let gain = gain(results, &cells, ideal_seeds(depth));
            values.push(bar(index, gain, None));
        }
        groups.push(Group {
            name: format!("{}, ideal", link.name),
            values,
        });
    }
    for link in LINKS {
        let mut values = Vec::new();
        for (_, rtt_ms) in downloads(depth)
            .iter()
            .filter(|(other, _)| other.name == link.name)
        {
            let cells = actual(depth, link, *rtt_ms);
            row(link, *rtt_ms, "actual", &cells, actual_seeds(depth));
            let index = ROUND_TRIPS.iter().position(|other| other == rtt_ms);
            let gain = gain(results, &cells, actual_seeds(depth));
            values.push(bar(index.unwrap_or_default(), gain, None));
        }
        groups.push(Group {
            name: format!("{}, actual", link.name),
            values,
        });
    }
    for link in LINKS {
        outcome.claims.push(ideal_claim(results, depth, link));
    }
    for link in LINKS {
        outcome.claims.push(actual_claim(results, depth, link));
    }
    outcome.claims.extend(share_claims(results, depth));
    let svg = ValueBars {
        id: "plot-8a".into(),
        title: "Goodput gained by TACK, by latency".into(),
        description: "The ideal gain and the actual one with default buffers, on each link at round trips of 10, 80 and 200 ms.".into(),
        label: "goodput better by, %".into(),
        series: ROUND_TRIPS
            .iter()
            .zip([4, 1, 0])
            .map(|(rtt_ms, colour)| (format!("{rtt_ms} ms"), colour))
            .collect(),
        reference: String::new(),
        groups,
..ValueBars::default()
}
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Gain of TACK over delayed ACK (L = 2), by link and round trip.",
    ));
    outcome
}
