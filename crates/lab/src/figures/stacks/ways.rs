//! Ways to move bytes, paths, and the runs of each pair.

use std::ops::RangeInclusive;

use crate::figure::{Depth, Extent};
use crate::figures::tack::paths::PATHS;
use crate::measure::{Measure, Receiver, Stack, Tuning};
use crate::point::Cell;
use crate::scenarios::{WAN, WLAN_TCP};

/// A way to move bytes.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) name: &'static str,
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

const fn kernel(name: &'static str, receiver: Receiver, congestion: &'static str) -> Way {
    way(name, Stack::Kernel(receiver), congestion, "delayed:2")
}

const fn quinn(name: &'static str, tuning: Tuning, congestion: &'static str) -> Way {
    way(name, Stack::Quinn(tuning), congestion, "delayed:2")
}

impl Way {
    /// Whether the receiving kernel's TCP counts what it gets.
    pub(super) const fn is_kernel(&self) -> bool {
        matches!(self.stack, Stack::Kernel(_))
    }
}

/// What every path has; what has a name in [`ONLY_N`] is measured over 802.11n only.
pub(super) const WAYS: [Way; 15] = [
    kernel("kernel CUBIC", Receiver::Offloaded, "cubic"),
    kernel("kernel BBR", Receiver::Offloaded, "bbr"),
    kernel("kernel BBR, no GRO", Receiver::Plain, "bbr"),
    kernel(
        "kernel CUBIC, no GRO, read seldom",
        Receiver::SeldomRead,
        "cubic",
    ),
    kernel(
        "kernel BBR, no GRO, read seldom",
        Receiver::SeldomRead,
        "bbr",
    ),
    quinn("quinn CUBIC", Tuning::Wide, "cubic"),
    quinn("quinn BBR", Tuning::Wide, "bbr"),
    quinn("quinn CUBIC, ACK frequency", Tuning::AckFrequency, "cubic"),
    quinn("quinn BBR, ACK frequency", Tuning::AckFrequency, "bbr"),
    way("tack CUBIC delayed:2", Stack::Tack, "cubic", "delayed:2"),
    way("tack BBR delayed:2", Stack::Tack, "bbr", "delayed:2"),
    way("TCP-TACK (BBR)", Stack::Tack, "bbr", "tack"),
    quinn("quinn CUBIC, default windows", Tuning::Defaults, "cubic"),
    quinn("quinn CUBIC, an ACK every 20 ms", Tuning::RareAcks, "cubic"),
    way("TCP-TACK (CUBIC)", Stack::Tack, "cubic", "tack"),
];
pub(super) const KERNEL_CUBIC: usize = 0;
pub(super) const KERNEL_BBR: usize = 1;
pub(super) const KERNEL_BBR_READ: usize = 2;
pub(super) const KERNEL_CUBIC_PLAIN: usize = 3;
pub(super) const KERNEL_BBR_PLAIN: usize = 4;
pub(super) const QUINN_CUBIC: usize = 5;
pub(super) const QUINN_BBR: usize = 6;
pub(super) const QUINN_FEWER: usize = 7;
pub(super) const OURS_CUBIC: usize = 9;
pub(super) const OURS_BBR: usize = 10;
pub(super) const TACK: usize = 11;
pub(super) const QUINN_DEFAULT: usize = 12;
pub(super) const QUINN_RARE: usize = 13;
pub(super) const TACK_CUBIC: usize = 14;

/// The first of the ways that only 802.11n has.
const ONLY_N: usize = QUINN_DEFAULT;

/// A path, and whether it has a radio.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) name: &'static str,
    pub(super) is_wireless: bool,
    settings: &'static [&'static str],
}

const fn radio(name: &'static str, settings: &'static [&'static str]) -> Route {
    Route {
        name,
        is_wireless: true,
        settings,
    }
}

pub(super) const RADIOS: [Route; 3] = [
    radio("802.11g", &["wlan.preset=tack-g"]),
    radio("802.11n", &["wlan.preset=tack-n"]),
    radio("802.11ac", &["wlan.preset=tack-ac"]),
];
pub(super) const N: Route = RADIOS[1];
pub(super) const AC: Route = RADIOS[2];

impl Route {
    /// The ways that are measured on it, by their place in [`WAYS`].
    pub(super) fn ways(&self) -> std::ops::Range<usize> {
        match self.name == N.name {
            true => 0..WAYS.len(),
            false => 0..ONLY_N,
        }
    }
}

/// The path of the Pantheon that the quick form has: 100.42 Mbit/s, 27 ms.
const QUICK_PATH: usize = 3;

pub(super) fn routes(depth: &Depth) -> Vec<Route> {
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

pub(super) fn seeds(depth: &Depth) -> RangeInclusive<u64> {
    depth.seeds(3, 5)
}

pub(super) fn cell(depth: &Depth, route: Route, way: usize) -> Cell {
    let way = WAYS[way];
    let source = if route.is_wireless { &WLAN_TCP } else { &WAN };
    let seconds = depth.pick(["warmup=3s", "duration=6s"], ["warmup=4s", "duration=14s"]);
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
