//! Figure 10(a): TACK against delayed ACK on the wireless links, same controller, alone and among
//! neighbours.

use tack_plot::{Group, ValueBars, format_number};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Plot, Table};
use crate::figures::presentation::{bar, percent, plot};
use crate::figures::readings::mbps;
use crate::figures::tack::calibrations::{self, Gains};
use crate::figures::tack::links::udp_tool;
use crate::figures::tack::links::{LINKS, Link};
use crate::figures::tack::media::{Bookkeeping, Medium};
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::WLAN_TCP;
use tack_stats::Estimate;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "10a",
    title: "Goodput over the wireless links, with and without neighbours",
    about: "One BBR download at 80 ms over each link, with TACK and with delayed ACK. The \
        paper's runs had more than ten other access points and a hundred users around; their \
        load is not known. The figure shows an ideal medium without neighbours, and two kinds of \
        busy media. Neighbours with a load: of ten thousand access points most see their 2.4 GHz \
        channel in use for 20 % of the time or more, and the busiest tenth for more than 50 % \
        (Biswas et al., SIGCOMM 2015). So 10 stations of another network offer Poisson traffic \
        of 1,500-byte packets that takes such a share of the airtime if each packet is sent \
        alone. Saturated neighbours always have something to send. UDP without acknowledgements \
        beside the same neighbours is the upper bound of any mechanism. For the ideal medium the \
        figure also shows the gain with every calibration that explains the paper's UDP baseline \
        (figure 7), and the gain over a receiver that coalesces. Such a receiver (GRO) delivers \
        the packets of an aggregate to TCP as one large segment, which it acknowledges once: L = \
        14 models the A-MPDUs of this 802.11n, L = 42 those of 65,535 bytes.",
    plan: figure_plan,
    reduce,
};

/// The paper's numbers for each link, percent: acknowledgements fewer by, goodput better by.
pub(in crate::figures) const PAPER: [(f64, f64); 4] =
    [(90.5, 20.0), (95.4, 26.3), (99.4, 27.7), (99.8, 28.1)];

const WAYS: [&str; 2] = ["delayed:2", "tack"];

/// Delayed ACK behind a receiver that coalesces: what stands for it, and its name. An A-MPDU
/// becomes one large segment (GRO), which draws one acknowledgement; 14 packets are an A-MPDU of
/// `tack-n`, 42 one of 65,535 bytes.
const COALESCED: [(&str, &str); 2] = [
    ("delayed:14", "over L = 14 (coalesced)"),
    ("delayed:42", "over L = 42 (coalesced)"),
];

/// Seeds of runs, in the quick and the full form: of TCP, and of UDP as figure 7 has them.
const SEEDS: [(u64, u64); 2] = [(3, 10), (3, 8)];

fn cell(depth: &Depth, link: Link, rtt_ms: u32, medium: Medium, ack: &str) -> Cell {
    let cell = Cell::new(&WLAN_TCP)
        .set(format!("wlan.preset={}", link.preset))
        .set(format!("wired.delay={}ms", rtt_ms / 2));
    let cell = medium.of(cell, link).set(format!("flow.0.ack={ack}"));
    match depth.extent {
        crate::Extent::Quick => cell.set("duration=20s").set("warmup=8s"),
        crate::Extent::Full => cell.set("duration=40s").set("warmup=10s"),
    }
}

pub(in crate::figures) fn pair(
    depth: &Depth,
    link: Link,
    rtt_ms: u32,
    medium: Medium,
) -> [Cell; 2] {
    WAYS.map(|ack| cell(depth, link, rtt_ms, medium, ack))
}

/// The gains of TACK over delayed ACK and over receivers that coalesce, percent, at 80 ms on the
/// ideal medium.
pub(in crate::figures) fn over_baselines(
    depth: &Depth,
    results: &Results,
    link: Link,
) -> [Estimate; 3] {
    ["delayed:2", COALESCED[0].0, COALESCED[1].0].map(|ack| {
        let [first, tack] = [ack, "tack"].map(|ack| cell(depth, link, 80, Medium::Ideal, ack));
        gain(depth, results, &[first, tack])
    })
}

/// The runs that [`over_baselines`] needs besides those of [`plan`].
pub(in crate::figures) fn coalesced_points(depth: &Depth) -> Vec<Point> {
    let cells = LINKS
        .into_iter()
        .flat_map(|link| COALESCED.map(|(ack, _)| cell(depth, link, 80, Medium::Ideal, ack)));
    points(depth, cells)
}

/// A claim with the numbers and the plot behind it.
struct Shown {
    claim: Claim,
    table: Table,
    plot: Plot,
}

/// That links whose acknowledgements cost air even when they are few gain over a receiver that
/// coalesces; and the plot of all.
fn over_coalescing(depth: &Depth, results: &Results, figure: &str) -> Shown {
    let gains = LINKS.map(|link| over_baselines(depth, results, link));
    let mut table = Table {
        part: "gains over a receiver that coalesces",
        ..Table::new(["link", "over L = 2, %", "over L = 14, %", "over L = 42, %"])
    };
    for (link, gains) in LINKS.iter().zip(&gains) {
        let [two, fourteen, forty_two] = gains.map(|gain| gain.to_string());
        table.row([link.name.into(), two, fourteen, forty_two]);
    }
    let claim = Claim::new(
        "802.11n and ac: TACK also gains over a receiver that coalesces, L = 14 and L = 42",
        "–",
        format!(
            "{} and {} % on n, {} and {} % on ac (and {} and {} % on g, {} and {} % on b, where \
                coalescing has most or all of the gain)",
            gains[2][1],
            gains[2][2],
            gains[3][1],
            gains[3][2],
            gains[1][1],
            gains[1][2],
            gains[0][1],
            gains[0][2]
        ),
        Finding::all(
            gains[2..]
                .iter()
                .flat_map(|gains| &gains[1..])
                .map(|gain| gain.is_above(0.0)),
        ),
    );
    let groups = LINKS
        .iter()
        .zip(gains)
        .map(|(link, gains)| Group {
            name: link.name.into(),
            values: [0, 1, 2].map(|index| bar(index, gains[index], None)).into(),
        })
        .collect();
    let mut series = vec![("over L = 2".to_owned(), 1)];
    series.extend(
        COALESCED
            .iter()
            .zip([2, 4])
            .map(|((_, name), colour)| ((*name).to_owned(), colour)),
    );
    let svg = ValueBars {
        id: format!("plot-{figure}-coalesced"),
        title: "Goodput gained by TACK over receivers that coalesce".into(),
        description: claim.ours.clone(),
        label: "goodput better by, %".into(),
        series,
        reference: String::new(),
        groups,
        ..ValueBars::default()
    }
    .to_svg();
    let plot = plot(
        svg,
        "Goodput of TACK over delayed ACK at 80 ms, ideal medium. L = 14 and L = 42 stand for a receiver that coalesces the packets of \
         an A-MPDU (GRO) and acknowledges them once.",
    );
    Shown { claim, table, plot }
}

/// UDP without acknowledgements: on the ideal medium the run of figure 7.
fn udp(depth: &Depth, link: Link, medium: Medium) -> Cell {
    let cell = udp_tool(depth, link, 0);
    match medium {
        Medium::Ideal => cell,
        _ => medium.of(cell, link),
    }
}

/// The explanation of the gain at 80 ms.
fn bookkeeping(depth: &Depth, results: &Results, link: Link, medium: Medium) -> Bookkeeping {
    let (ways, udp) = (pair(depth, link, 80, medium), udp(depth, link, medium));
    Bookkeeping::new(depth, results, &ways, &udp, SEEDS)
}

/// The plan of these pairs at 80 ms, of UDP beside them, and of what [`show_besides`] shows.
pub(in crate::figures) fn plan(depth: &Depth, media: &[Medium]) -> Vec<Point> {
    let mut plan = calibrations::plan(depth, |link| pair(depth, link, 80, Medium::Ideal));
    plan.extend(coalesced_points(depth));
    for (link, medium) in LINKS
        .iter()
        .flat_map(|link| media.iter().map(|medium| (*link, *medium)))
    {
        plan.extend(points(depth, pair(depth, link, 80, medium).into_iter()));
        let udp = udp(depth, link, medium);
        plan.extend(depth.seeds(SEEDS[1].0, SEEDS[1].1).map(|seed| udp.at(seed)));
    }
    plan
}

pub(in crate::figures) fn runs(depth: &Depth) -> std::ops::RangeInclusive<u64> {
    depth.seeds(SEEDS[0].0, SEEDS[0].1)
}

pub(in crate::figures) fn points(depth: &Depth, cells: impl Iterator<Item = Cell>) -> Vec<Point> {
    cells
        .flat_map(|cell| runs(depth).map(move |seed| cell.at(seed)))
        .collect()
}

/// As busy as the busiest tenth.
pub(in crate::figures) const BUSY: Medium = Medium::Load(50);

/// Goodputs of a pair, Mbit/s.
pub(in crate::figures) fn goodputs(
    depth: &Depth,
    results: &Results,
    pair: &[Cell; 2],
) -> [Estimate; 2] {
    pair.each_ref()
        .map(|cell| results.estimate(cell, runs(depth), mbps))
}

/// How much more goodput the second has, percent.
pub(in crate::figures) fn gain(
    depth: &Depth,
    results: &Results,
    [tcp, tack]: &[Cell; 2],
) -> Estimate {
    let gain = |tcp: &crate::Values, tack: &crate::Values| mbps(tack) / mbps(tcp) - 1.0;
    results.paired([tcp, tack], runs(depth), gain).times(100.0)
}

/// The claim that TACK gains as much as in the paper, at 80 ms. Where it does not, the reason is
/// measured: UDP without any acknowledgement says how much there is to have on this medium, and
/// TACK has nearly all of it.
pub(in crate::figures) fn gain_claim(
    depth: &Depth,
    results: &Results,
    (link, paper): (Link, f64),
    medium: Medium,
) -> Claim {
    let ways = pair(depth, link, 80, medium);
    let gain = gain(depth, results, &ways);
    let books = bookkeeping(depth, results, link, medium);
    let [delayed, tack] = goodputs(depth, results, &ways);
    let claim = Claim::new(
        format!(
            "{}, {}: goodput rises by at least the paper's gain",
            link.name,
            medium.name()
        ),
        format!("{} %", format_number(paper)),
        match medium {
            Medium::Ideal => format!(
                "{} ({tack} against {delayed} Mbit/s); {}",
                percent(gain),
                calibrated_gains(depth, results, link).text()
            ),
            _ => format!("{} ({tack} against {delayed} Mbit/s)", percent(gain)),
        },
        gain.is_at_least(paper),
    );
    let least = if medium == Medium::Ideal { 93.0 } else { 85.0 };
    // The paper's gain would take (nearly) all that there is, or more; and TACK is near to that.
    let at_the_ceiling = books
        .needed(paper)
        .is_at_least(95.0)
        .and(books.share().is_at_least(least));
    let ceiling = format!(
        "On this medium UDP without acknowledgements carries {:.1} Mbit/s of the same payload, \
            {:.1} % more than delayed ACK: no mechanism can gain more. The paper's gain would \
            need {:.0} % of UDP's goodput; TACK has {:.1} %.",
        books.goodput[2].mean,
        books.ceiling(),
        books.needed(paper).mean,
        books.share().mean,
    );
    match medium {
        Medium::Ideal => {
            let [delayed, tack] = books.acks.map(|share| 100.0 * share);
            let idle = 100.0 * books.idle[1];
            // What TACK lacks to UDP is the air of its acknowledgements and what BBR leaves idle.
            let rest = 100.0 - tack - idle;
            let explained = books.share().is_within(rest - 3.0..=rest + 3.0);
            let reason = format!(
                "{ceiling} Acknowledgements take {delayed:.1} % of the airtime with delayed ACK \
                    and {tack:.1} % with TACK, with their collisions and their share of backoff \
                    and link control. The medium is idle for {idle:.1} %, mostly in BBR's probes \
                    for the minimum RTT (200 ms in ten seconds)."
            );
            claim.or(reason, at_the_ceiling.and(explained))
        }
        Medium::Load(_) => {
            let [delayed, tack] = books.receiver_share.map(|share| 100.0 * share);
            let reason = format!(
                "{ceiling} The receiver makes {delayed:.1} % of all channel accesses with \
                    delayed ACK and {tack:.1} % with TACK. The backoff and the collisions of the \
                    other stations remain."
            );
            claim.or(reason, at_the_ceiling.and(delayed < 30.0 && tack < delayed))
        }
        Medium::Saturated(_) => {
            let [spared, won] = [
                books.receiver[0] - books.receiver[1],
                books.sender[1] - books.sender[0],
            ];
            let [before, after] = books.neighbours.map(|share| 100.0 * share);
            let reason = format!(
                "{ceiling} TACK saves the receiver {spared:.0} channel accesses a second. The \
                    access point does not win them all: it has {:.0} instead of {:.0}, and the \
                    neighbours' share of the airtime changes from {before:.1} to {after:.1} %.",
                books.sender[1], books.sender[0],
            );
            claim.or(
                reason,
                at_the_ceiling.and(won < spared && after > before - 0.5),
            )
        }
    }
}

fn media(depth: &Depth) -> &'static [Medium] {
    depth.pick(
        &[Medium::Ideal, BUSY, Medium::Saturated(2)],
        &[
            Medium::Ideal,
            Medium::Load(20),
            Medium::Load(35),
            BUSY,
            Medium::Saturated(2),
            Medium::Saturated(4),
        ],
    )
}

fn figure_plan(depth: &Depth) -> Vec<Point> {
    plan(depth, media(depth))
}

/// The gain of TACK on the ideal medium with each calibration.
pub(in crate::figures) fn calibrated_gains(depth: &Depth, results: &Results, link: Link) -> Gains {
    let pair = pair(depth, link, 80, Medium::Ideal);
    let preset = gain(depth, results, &pair);
    Gains::new(depth, results, link, &pair, preset)
}

/// Shows the gains with each calibration, and over receivers that coalesce.
pub(in crate::figures) fn show_besides(
    depth: &Depth,
    results: &Results,
    outcome: &mut Outcome,
    figure: &str,
) {
    let all = LINKS.map(|link| calibrated_gains(depth, results, link));
    outcome.further.push(calibrations::table(&all));
    outcome.plots.push(calibrations::plot(
        &format!("plot-{figure}-calibrations"),
        "Goodput gained by TACK with every calibration",
        &all,
        Some(PAPER.map(|(_, gain)| gain)),
    ));
    let Shown { claim, table, plot } = over_coalescing(depth, results, figure);
    outcome.claims.push(claim);
    outcome.further.push(table);
    outcome.plots.push(plot);
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "link",
            "medium",
            "delayed ACK, Mbit/s",
            "TACK, Mbit/s",
            "gain, %",
            "UDP without ACKs, gain, %",
            "neighbours' frames, % of the air",
        ]),
        ..Outcome::default()
    };
    let mut groups = Vec::new();
    for (link, (_, paper)) in LINKS.into_iter().zip(PAPER) {
        let mut values = Vec::new();
        for (index, medium) in media(depth).iter().enumerate() {
            let pair = pair(depth, link, 80, *medium);
            let gain = gain(depth, results, &pair);
            let books = bookkeeping(depth, results, link, *medium);
            let [delayed, tack] = goodputs(depth, results, &pair).map(|one| one.to_string());
            outcome.numbers.row([
                link.name.into(),
                medium.name(),
                delayed,
                tack,
                gain.to_string(),
                format_number(books.ceiling()),
                format_number(100.0 * books.neighbours[1]),
            ]);
            values.push(bar(index, gain, Some(paper)));
            outcome
                .claims
                .push(gain_claim(depth, results, (link, paper), *medium));
        }
        groups.push(Group {
            name: link.name.into(),
            values,
        });
    }
    outcome.claims.extend(
        media(depth)
            .iter()
            .filter(|medium| matches!(medium, Medium::Load(_)))
            .map(|medium| load_claim(depth, results, *medium)),
    );
    let series = media(depth)
        .iter()
        .zip([1, 4, 2, 3, 5, 6])
        .map(|(medium, colour)| (medium.name(), colour))
        .collect();
    let svg = ValueBars {
        id: "plot-10a".into(),
        title: "Goodput gained by TACK, with and without neighbours".into(),
        description: "The gain over delayed ACK on each link: on an ideal medium, with \
            neighbours that have a load, and with saturated neighbours. The mark is the paper's \
            gain."
            .into(),
        label: "goodput better by, %".into(),
        series,
        reference: "paper".into(),
        groups,
        ..ValueBars::default()
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Goodput of TACK over delayed ACK (L = 2), same BBR, RTT 80 ms.",
    ));
    show_besides(depth, results, &mut outcome, "10a");
    outcome
}

/// That neighbours with a load get it carried, whichever way our flow acknowledges: what TACK
/// spares is ours then.
fn load_claim(depth: &Depth, results: &Results, medium: Medium) -> Claim {
    let carried: Vec<Estimate> = LINKS
        .iter()
        .flat_map(|link| pair(depth, *link, 80, medium).map(|cell| (*link, cell)))
        .map(|(link, cell)| {
            let carried = |values: &crate::Values| 100.0 * medium.carried(link, values);
            results.estimate(&cell, runs(depth), carried)
        })
        .collect();
    let least = carried
        .iter()
        .map(|one| one.mean)
        .fold(f64::INFINITY, f64::min);
    let most = carried.iter().map(|one| one.mean).fold(0.0, f64::max);
    Claim::new(
        format!(
            "{}: they send all they offer, with delayed ACK and with TACK",
            medium.name()
        ),
        "–",
        format!(
            "{} to {} % of it, over all links",
            format_number(least),
            format_number(most)
        ),
        Finding::all(carried.iter().map(|share| share.is_within(95.0..=105.0))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tack::fig1_wlan_preview;

    /// Receivers that coalesce are baselines of both figures, on each link.
    #[test]
    fn receivers_that_coalesce_are_baselines() {
        for figure in [FIGURE, fig1_wlan_preview::FIGURE] {
            let plan = figure.plan(&Depth::quick());
            for (link, ack) in LINKS
                .iter()
                .flat_map(|link| COALESCED.map(|(ack, _)| (link, format!("flow.0.ack={ack}"))))
            {
                let preset = format!("wlan.preset={}", link.preset);
                let has = |point: &Point| {
                    let settings = point.settings();
                    settings.contains(&preset) && settings.contains(&ack)
                };
                assert!(
                    plan.iter().any(has),
                    "figure {}: {preset}, {ack}",
                    figure.id
                );
            }
        }
    }
}
