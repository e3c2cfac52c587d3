//! The kernel's TCP, QUIC and this project's transport over the same emulated links, in real time.

use std::ops::RangeInclusive;

use tack_plot::{Group, ValueBars, format_number};
use tack_stats::{Estimate, Finding};

use crate::claim::Claim;
use crate::figure::{Depth, Extent, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, plot};
use crate::figures::tack::paths::PATHS;
use crate::measure::{Measure, Stack, Values};
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::{WAN, WLAN_TCP};

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Stacks,
    id: "kernel",
    title: "The kernel's TCP, QUIC and TACK over the same links in real time",
    about: "One download at a time, between network namespaces that the emulator joins: over the paper's 802.11g, n and ac devices at \
        a round-trip time of 80 ms with 1,000 packets of queue at the access point, and over paths that the Pantheon calibrated. The \
        kernel's TCP by iperf3, as it is, and without generic receive offload (GRO) and compression of SACKs; QUIC by quinn with its own congestion controllers, \
        with and without the ACK-frequency extension; this project's over UDP. Buffers do not limit. QUIC encrypts, the others do \
        not. Goodput is what the receiving program counted after the first 2 s (4 s in the full form); acknowledgements, data \
        packets and airtime are the emulator's, over the same time. For QUIC, packets of at most 100 bytes count as acknowledgements.",
    plan,
    reduce,
};

/// A way to move bytes.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    stack: Stack,
    congestion: &'static str,
    ack: &'static str,
}

const fn way(name: &'static str, stack: Stack, congestion: &'static str, ack: &'static str) -> Way {
    Way {
        name,
        stack,
        congestion,
        ack,
    }
}

const KERNEL: Stack = Stack::Kernel {
    receive_offload: true,
};
const KERNEL_BARE: Stack = Stack::Kernel {
    receive_offload: false,
};
const QUINN: Stack = Stack::Quinn {
    ack_frequency: false,
};
const QUINN_RARE: Stack = Stack::Quinn {
    ack_frequency: true,
};

const WAYS: [Way; 11] = [
    way("kernel CUBIC", KERNEL, "cubic", "delayed:2"),
    way("kernel BBR", KERNEL, "bbr", "delayed:2"),
    way("kernel CUBIC, no GRO", KERNEL_BARE, "cubic", "delayed:2"),
    way("kernel BBR, no GRO", KERNEL_BARE, "bbr", "delayed:2"),
    way("quinn CUBIC", QUINN, "cubic", "delayed:2"),
    way("quinn BBR", QUINN, "bbr", "delayed:2"),
    way(
        "quinn CUBIC, ACK frequency",
        QUINN_RARE,
        "cubic",
        "delayed:2",
    ),
    way("quinn BBR, ACK frequency", QUINN_RARE, "bbr", "delayed:2"),
    way("tack CUBIC delayed:2", Stack::Tack, "cubic", "delayed:2"),
    way("tack BBR delayed:2", Stack::Tack, "bbr", "delayed:2"),
    way("TCP-TACK (BBR)", Stack::Tack, "bbr", "tack"),
];
const KERNEL_BBR: usize = 1;
const KERNEL_CUBIC_BARE: usize = 2;
const KERNEL_BBR_BARE: usize = 3;
const QUINN_CUBIC: usize = 4;
const OURS_CUBIC: usize = 8;
const OURS_BBR: usize = 9;
const TACK: usize = 10;

/// A path, and whether it has a radio.
#[derive(Clone, Copy)]
struct Route {
    name: &'static str,
    is_wireless: bool,
    settings: &'static [&'static str],
}

const fn radio(name: &'static str, settings: &'static [&'static str]) -> Route {
    Route {
        name,
        is_wireless: true,
        settings,
    }
}

const RADIOS: [Route; 3] = [
    radio("802.11g", &["wlan.preset=tack-g"]),
    radio("802.11n", &["wlan.preset=tack-n"]),
    radio("802.11ac", &["wlan.preset=tack-ac"]),
];
const N: Route = RADIOS[1];

/// The path of the Pantheon that the quick form has: 100.42 Mbit/s, 27 ms.
const QUICK_PATH: usize = 3;

/// The names of values that the program that runs a point keeps besides those of the emulator.
pub(in crate::figures) mod value {
    /// Goodput, bits a second.
    pub(in crate::figures) const GOODPUT: &str = "goodput_bps";
    /// Acknowledgements for each data packet.
    pub(in crate::figures) const ACKS: &str = "acks_per_data";
    /// Shares of the time on the air.
    pub(in crate::figures) const AIR_ACK: &str = "air.ack";
    pub(in crate::figures) const AIR_DATA: &str = "air.data";
    pub(in crate::figures) const AIR_COLLISION: &str = "air.collision";
    pub(in crate::figures) const AIR_IDLE: &str = "air.idle";
    /// 1 when the machine kept up.
    pub(in crate::figures) const TRUSTED: &str = "trusted";
    /// 1 when the run could not be made here.
    pub(in crate::figures) const SKIPPED: &str = "skipped";
}

fn routes(depth: &Depth) -> Vec<Route> {
    let wired = |(name, settings): (&'static str, &'static [&'static str])| Route {
        name,
        is_wireless: false,
        settings,
    };
    let paths = PATHS.into_iter().map(wired);
    match depth.extent {
        Extent::Quick => RADIOS
            .into_iter()
            .chain(paths.skip(QUICK_PATH).take(1))
            .collect(),
        Extent::Full => RADIOS.into_iter().chain(paths).collect(),
    }
}

fn seeds(depth: &Depth) -> RangeInclusive<u64> {
    depth.seeds(2, 5)
}

fn cell(depth: &Depth, route: Route, way: Way) -> Cell {
    let source = if route.is_wireless { &WLAN_TCP } else { &WAN };
    let seconds = depth.pick(["warmup=2s", "duration=4s"], ["warmup=4s", "duration=14s"]);
    let mut cell = Cell::new(source)
        .set(seconds[0])
        .set(seconds[1])
        .set(format!("flow.0.congestion={}", way.congestion))
        .set(format!("flow.0.ack={}", way.ack))
        .measuring(Measure::RealTime(way.stack));
    if route.is_wireless {
        cell = cell.set("wlan.ap_queue=1000p");
    }
    for setting in route.settings {
        cell = cell.set(*setting);
    }
    cell
}

fn plan(depth: &Depth) -> Vec<Point> {
    let mut points = Vec::new();
    // What is compared runs one after the other.
    for seed in seeds(depth) {
        for route in routes(depth) {
            points.extend(WAYS.map(|way| cell(depth, route, way).at(seed)));
        }
    }
    points
}

/// What was measured.
struct Measured<'a> {
    depth: &'a Depth,
    results: &'a Results,
}

impl Measured<'_> {
    fn get(&self, route: Route, way: usize, name: &str) -> Estimate {
        let cell = cell(self.depth, route, WAYS[way]);
        self.results
            .estimate(&cell, seeds(self.depth), |values| values.get(name))
    }

    fn mbps(&self, route: Route, way: usize) -> Estimate {
        self.get(route, way, value::GOODPUT).times(1e-6)
    }

    /// By how many percent `of` is more for the first way than for the second one, seed by seed.
    fn change(&self, route: Route, ways: [usize; 2], of: fn(&Values) -> f64) -> Estimate {
        let cells = ways.map(|way| cell(self.depth, route, WAYS[way]));
        self.results
            .paired([&cells[0], &cells[1]], seeds(self.depth), |a, b| {
                100.0 * (of(a) / of(b) - 1.0)
            })
    }

    /// A claim about these ways on these routes is decided only by runs that can be trusted.
    fn judged(&self, routes: &[Route], ways: &[usize], finding: Finding) -> Finding {
        let is_trusted = routes.iter().all(|route| {
            ways.iter().all(|way| {
                let trusted = self.get(*route, *way, value::TRUSTED).mean;
                // Nothing measured, which refutes, is no question of trust.
                trusted.is_nan() || trusted >= 1.0
            })
        });
        Finding {
            is_decided: finding.is_decided && is_trusted,
            ..finding
        }
    }
}

fn goodput(values: &Values) -> f64 {
    values.get(value::GOODPUT)
}

fn acks(values: &Values) -> f64 {
    values.get(value::ACKS)
}

fn show(estimates: &[(Route, Estimate)], unit: &str) -> String {
    estimates
        .iter()
        .map(|(route, estimate)| format!("{} {estimate}{unit}", route.name))
        .collect::<Vec<_>>()
        .join(", ")
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let measured = Measured { depth, results };
    let mut outcome = Outcome {
        numbers: table(&measured),
        ..Outcome::default()
    };
    outcome.claims = legacy(&measured);
    outcome.claims.extend(comparison(&measured));
    outcome.plots = vec![plot_of(&measured)];
    outcome.notes = notes(&measured);
    outcome
}

/// Our stack without TACK against the kernel's.
fn legacy(measured: &Measured<'_>) -> Vec<Claim> {
    let pairs = [
        ("BBR", [OURS_BBR, KERNEL_BBR_BARE]),
        ("CUBIC", [OURS_CUBIC, KERNEL_CUBIC_BARE]),
    ];
    let mut claims = Vec::new();
    for (name, ways) in pairs {
        for (what, of, bound) in [
            ("goodput", goodput as fn(&Values) -> f64, 5.0),
            ("acknowledgements for each data packet", acks, 10.0),
        ] {
            let each: Vec<_> = routes(measured.depth)
                .into_iter()
                .map(|route| (route, measured.change(route, ways, of)))
                .collect();
            for (route, change) in each {
                let finding = measured.judged(&[route], &ways, change.is_within(-bound..=bound));
                let ours = measured.get(route, ways[0], value::ACKS);
                let claim = Claim::new(
                    format!(
                        "{}, {name} with delayed:2: the {what} of this stack is within {bound} % of the kernel's without GRO and SACK compression",
                        route.name
                    ),
                    "–",
                    format!("{change} %"),
                    finding,
                );
                // What follows from the cause that is known, and only while runs can be trusted.
                let reason = measured.judged(
                    &[route],
                    &ways,
                    change.is_above(0.0).and(ours.is_within(0.45..=0.55)),
                );
                claims.push(match what {
                    "goodput" => claim,
                    _ => claim.or(
                        format!(
                            "This stack sends {ours} for each data packet, as its policy says. The kernel sends fewer, because segments \
                                that arrive while the program reads from the socket wait in its backlog, where the kernel puts them \
                                together; nothing turns that off."
                        ),
                        reason,
                    ),
                });
            }
        }
    }
    claims
}

fn comparison(measured: &Measured<'_>) -> Vec<Claim> {
    let over = |other: usize| -> Vec<(Route, Estimate)> {
        RADIOS
            .into_iter()
            .map(|route| (route, measured.change(route, [TACK, other], goodput)))
            .collect()
    };
    let mut claims = Vec::new();
    for other in [KERNEL_BBR, QUINN_CUBIC] {
        let gains = over(other);
        let finding = Finding::all(gains.iter().map(|(_, gain)| gain.is_at_least(-2.0)));
        claims.push(Claim::new(
            format!(
                "TCP-TACK is no slower than {} over 802.11g, n and ac at 80 ms (by at most 2 %)",
                WAYS[other].name
            ),
            "–",
            show(&gains, " %"),
            measured.judged(&RADIOS, &[TACK, other], finding),
        ));
    }
    let fewer: Vec<_> = RADIOS
        .into_iter()
        .map(|route| (route, measured.change(route, [TACK, KERNEL_BBR], acks)))
        .collect();
    let finding = Finding::all(fewer.iter().map(|(_, change)| change.is_at_most(-50.0)));
    claims.push(Claim::new(
        "TCP-TACK sends at most half as many acknowledgements for each data packet as the kernel with GRO",
        "–",
        show(&fewer, " %"),
        measured.judged(&RADIOS, &[TACK, KERNEL_BBR], finding),
    ));
    // Why QUIC is slower: its acknowledgements take air, or its controller leaves air idle.
    let quinn = measured.change(N, [QUINN_CUBIC, TACK], goodput);
    let air = |way, name| measured.get(N, way, name).times(100.0);
    let (idle, own_idle) = (
        air(QUINN_CUBIC, value::AIR_IDLE),
        air(TACK, value::AIR_IDLE),
    );
    let (taken, own_taken) = (air(QUINN_CUBIC, value::AIR_ACK), air(TACK, value::AIR_ACK));
    let left = idle.less(own_idle);
    let spent = taken.less(own_taken);
    claims.push(Claim::new(
        "802.11n: where quinn with CUBIC is slower than TCP-TACK, it leaves the channel idle for longer, or its acknowledgements take more airtime",
        "–",
        format!(
            "goodput {quinn} %; idle {idle} % against {own_idle} %, acknowledgements {taken} % against {own_taken} %"
        ),
        measured.judged(
            &[N],
            &[QUINN_CUBIC, TACK],
            either(quinn.is_at_least(0.0), either(left.is_above(0.0), spent.is_above(0.0))),
        ),
    ));
    claims
}

/// One of two holds. It is decided when one surely does, or both surely do not.
fn either(a: Finding, b: Finding) -> Finding {
    Finding {
        holds: a.holds || b.holds,
        is_decided: a.is_sure() || b.is_sure() || (a.is_decided && b.is_decided),
    }
}

fn table(measured: &Measured<'_>) -> Table {
    let mut table = Table::new([
        "path",
        "transport",
        "Mbit/s",
        "ACKs per 100 data packets",
        "air: data, %",
        "air: ACKs, %",
        "air: collisions, %",
        "air: idle, %",
        "trusted",
    ]);
    for route in routes(measured.depth) {
        for (index, way) in WAYS.iter().enumerate() {
            let percent = |name| measured.get(route, index, name).times(100.0).to_string();
            let air = |name| match route.is_wireless {
                true => percent(name),
                false => "–".into(),
            };
            let trusted = if measured.get(route, index, value::SKIPPED).mean > 0.0 {
                "SKIPPED".into()
            } else {
                match measured.get(route, index, value::TRUSTED).mean {
                    1.0 => "yes".to_owned(),
                    share if share.is_nan() => "–".into(),
                    share => format!("NO: {} of the runs", format_number(share)),
                }
            };
            table.row([
                route.name.into(),
                way.name.into(),
                measured.mbps(route, index).to_string(),
                percent(value::ACKS),
                air(value::AIR_DATA),
                air(value::AIR_ACK),
                air(value::AIR_COLLISION),
                air(value::AIR_IDLE),
                trusted,
            ]);
        }
    }
    table
}

fn plot_of(measured: &Measured<'_>) -> crate::Plot {
    let groups = routes(measured.depth).into_iter().map(|route| Group {
        name: route.name.into(),
        values: (0..WAYS.len())
            .map(|way| bar(way % 8, measured.mbps(route, way), None))
            .collect(),
    });
    let svg = ValueBars {
        id: "plot-kernel".into(),
        title: "Goodput over the same links in real time".into(),
        description: "Goodput of one download for each transport and path.".into(),
        label: "goodput, Mbit/s".into(),
        series: WAYS
            .iter()
            .enumerate()
            .map(|(index, way)| (way.name.into(), index % 8))
            .collect(),
        reference: String::new(),
        groups: groups.collect(),
        ..ValueBars::default()
    }
    .to_svg();
    plot(
        svg,
        "Goodput of one download. The bars of a path are in the order of the table.",
    )
}

fn notes(measured: &Measured<'_>) -> Vec<String> {
    let mut notes = vec![
        "Real time: results differ between runs and machines. A run counts as trusted if the emulator was late for at most 1 % of \
            the packets and the processors were idle for at least 5 % of the time; others are repeated up to twice, and decide no claim if they stay so."
            .to_owned(),
    ];
    let (mut untrusted, mut skipped) = (Vec::new(), Vec::new());
    for route in routes(measured.depth) {
        for (index, way) in WAYS.iter().enumerate() {
            let name = || format!("{} over {}", way.name, route.name);
            if measured.get(route, index, value::SKIPPED).mean > 0.0 {
                skipped.push(name());
            } else if measured.get(route, index, value::TRUSTED).mean < 1.0 {
                untrusted.push(name());
            }
        }
    }
    for (what, names) in [("NOT TRUSTED", untrusted), ("SKIPPED", skipped)] {
        if !names.is_empty() {
            notes.push(format!("{what}: {}.", names.join("; ")));
        }
    }
    notes
}
