//! Figure 11: video projected over Wi-Fi.

use tack_plot::{Group, ValueBars};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, plot};
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::PROJECTION;
use crate::{Plot, Values};
use tack_stats::Estimate;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "11",
    title: "Projecting video over Wi-Fi",
    about: "A telephone projects its screen to a television: 60 frames a second at a mean of 100 \
        Mbit/s and a peak of 200 Mbit/s over 802.11ac. The paper's numbers come from homes, and \
        it does not describe their medium. Two media stand for them, both with a PHY rate of 351 \
        Mbit/s and a saturated station of a neighbouring network: one with nothing more, and one \
        with rare bursts of losses that the link does not repair (0.2 % on average). Over TCP \
        the player stops at a late frame until it has 100 ms of video again; UDP as in RTP shows \
        damaged frames instead.",
    plan,
    reduce,
};

/// How the video travels.
struct Player {
    name: &'static str,
    settings: &'static [&'static str],
    /// The paper's rebuffering, percent.
    paper: &'static str,
}

const TRANSPORTS: [Player; 4] = [
    Player {
        name: "RTP",
        settings: &["flow.0.transport=udp"],
        paper: "none",
    },
    Player {
        name: "TCP CUBIC",
        settings: &["flow.0.congestion=cubic", "flow.0.ack=delayed:2"],
        paper: "50 to 90",
    },
    Player {
        name: "TCP BBR",
        settings: &["flow.0.congestion=bbr", "flow.0.ack=delayed:2"],
        paper: "30 to 58",
    },
    Player {
        name: "BBR with TACK",
        settings: &["flow.0.congestion=bbr", "flow.0.ack=tack"],
        paper: "5 to 15",
    },
];

const MEDIA: [(&str, &[&str]); 2] = [
    ("a neighbour", &[]),
    (
        "a neighbour, and bursts of losses",
        &[
            "wired.gilbert_elliott.good_to_bad=0.0002",
            "wired.gilbert_elliott.bad_to_good=0.05",
            "wired.gilbert_elliott.loss_bad=0.5",
        ],
    ),
];

fn cell(depth: &Depth, medium: usize, transport: usize) -> Cell {
    let settings = MEDIA[medium].1.iter().chain(TRANSPORTS[transport].settings);
    let cell = Cell::new(&PROJECTION).set(depth.pick("duration=30s", "duration=120s"));
    settings.fold(cell, |cell, setting| cell.set(*setting))
}

fn plan(depth: &Depth) -> Vec<Point> {
    (0..MEDIA.len())
        .flat_map(|medium| (0..TRANSPORTS.len()).map(move |transport| (medium, transport)))
        .flat_map(|(medium, transport)| {
            let cell = cell(depth, medium, transport);
            depth.seeds(3, 10).map(move |seed| cell.at(seed))
        })
        .collect()
}

/// The paper's claims; `all` by medium and transport: time stopped, or damaged frames for RTP, %.
fn claims(depth: &Depth, results: &Results, all: &[[Estimate; 4]]) -> Vec<Claim> {
    let bursts = all[1];
    let still = |medium: usize| {
        format!(
            "{} / {} / {} %",
            all[medium][1], all[medium][2], all[medium][3]
        )
    };
    // How much longer video stands still with one transport than with another, percentage points.
    let longer = |medium: usize, first: usize, second: usize| {
        let cells = [first, second].map(|transport| cell(depth, medium, transport));
        let share = |values: &Values| 100.0 * values.get("flows.0.video.rebuffering_share");
        results.paired(
            [&cells[0], &cells[1]],
            depth.seeds(3, 10),
            |first, second| share(first) - share(second),
        )
    };
    let order = |medium: usize| [longer(medium, 1, 2), longer(medium, 2, 3)];
    let is_order = |medium: usize| {
        let order = order(medium);
        Finding::all(order.iter().map(|longer| longer.is_above(0.0)))
    };
    let text = |medium: usize| {
        let [bbr, tack] = order(medium);
        format!("{}; differences {bbr} and {tack} points", still(medium))
    };
    let ranges = [50.0..=90.0, 30.0..=58.0, 5.0..=15.0];
    vec![
        Claim::new(
            "With bursts of losses: video stops for the longest time with CUBIC, less with \
                    BBR, least with TACK",
            "CUBIC > BBR > TACK",
            text(1),
            is_order(1),
        ),
        Claim::new(
            "With bursts of losses: the share of time for which it stops lies in the paper's \
                ranges (CUBIC, BBR, TACK)",
            "50 to 90 / 30 to 58 / 5 to 15 %",
            still(1),
            Finding::all(
                ranges
                    .into_iter()
                    .zip(&bursts[1..])
                    .map(|(range, still)| still.is_within(range)),
            ),
        )
        .or(
            "The paper does not describe its medium, and this medium was not fitted to the \
                paper's numbers. Its losses slow CUBIC down as in the paper. They do not slow \
                BBR down, with either acknowledgement. Only the order can be compared.",
            bursts[1]
                .is_at_least(20.0)
                .and(bursts[2].is_at_most(30.0))
                .and(bursts[3].is_at_most(15.0)),
        ),
        Claim::new(
            "With bursts of losses: RTP, which does not wait, shows at least 5 % damaged \
                    frames (over TCP there are none, because the player waits)",
            "5 to 6 times as many artifacts, none over TCP",
            format!("{} % damaged", bursts[0]),
            bursts[0].is_above(5.0),
        ),
        Claim::new(
            "With the neighbour alone: the same order",
            "CUBIC > BBR > TACK",
            text(0),
            is_order(0),
        )
        .or(
            "Without losses the link decides: the video needs most of the airtime that a \
                saturated neighbour leaves, and stops for less than 10 % of the time with every \
                transport.",
            Finding::all(all[0][1..].iter().map(|still| still.is_below(10.0))),
        ),
    ]
}

fn viewer_plot(bursts: [Estimate; 4], groups: Vec<Group>) -> Plot {
    let svg = ValueBars {
        id: "plot-11".into(),
        title: "What the viewer of a projected video gets".into(),
        description: format!(
            "With bursts of losses {} % of RTP's frames are damaged; video stops for {} % of the \
                time with CUBIC, {} % with BBR, {} % with TACK.",
            bursts[0], bursts[1], bursts[2], bursts[3]
        ),
        label: "RTP: damaged frames, %; others: time stopped, %".into(),
        series: TRANSPORTS
            .iter()
            .zip([3, 4, 0, 1])
            .map(|(player, colour)| (player.name.into(), colour))
            .collect(),
        reference: String::new(),
        groups,
        ..ValueBars::default()
    }
    .to_svg();
    plot(
        svg,
        format!(
            "Video over 802.11ac. In the paper it stops for {} % (CUBIC), {} % (BBR), {} % \
                (TACK) of the time.",
            TRANSPORTS[1].paper, TRANSPORTS[2].paper, TRANSPORTS[3].paper
        ),
    )
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "medium",
            "transport",
            "stands still, %",
            "damaged frames, %",
            "late frames, %",
        ]),
        ..Outcome::default()
    };
    let mut groups = Vec::new();
    let mut all: Vec<[Estimate; 4]> = Vec::new();
    for (medium, (name, _)) in MEDIA.into_iter().enumerate() {
        let of = |transport: usize, read: fn(&Values) -> f64| {
            let cell = cell(depth, medium, transport);
            results
                .estimate(&cell, depth.seeds(3, 10), read)
                .times(100.0)
        };
        let trouble = [0, 1, 2, 3].map(|transport: usize| {
            of(
                transport,
                if transport == 0 {
                    |values| values.get("flows.0.video.macroblocking_share")
                } else {
                    |values| values.get("flows.0.video.rebuffering_share")
                },
            )
        });
        for (transport, player) in TRANSPORTS.iter().enumerate() {
            let late = of(transport, |values| {
                values.get("flows.0.video.frames_late") / values.get("flows.0.video.frames")
            });
            // A player over UDP never waits, and one over TCP waits for every byte.
            let none = || "–".to_owned();
            let (still, damaged) = if transport == 0 {
                (none(), trouble[0].to_string())
            } else {
                (trouble[transport].to_string(), none())
            };
            outcome.numbers.row([
                name.into(),
                player.name.into(),
                still,
                damaged,
                late.to_string(),
            ]);
        }
        groups.push(Group {
            name: name.into(),
            values: (0..4)
                .map(|index| bar(index, trouble[index], None))
                .collect(),
        });
        all.push(trouble);
    }
    outcome.claims = claims(depth, results, &all);
    outcome.plots.push(viewer_plot(all[1], groups));
    outcome
}
