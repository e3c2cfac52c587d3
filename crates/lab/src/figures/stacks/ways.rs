//! Ways to move bytes, paths, and the runs of each pair.

use std::ops::RangeInclusive;

use crate::figure::{Depth, Extent, Only};
use crate::figures::tack::paths::PATHS;
use crate::measure::{Measure, Receiver, Stack, Taking, Tuning};
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
        self.stack.receiver().is_some()
    }

    /// Whether this stack takes what one system call delivers together.
    pub(super) const fn is_batched(&self) -> bool {
        matches!(
            self.stack,
            Stack::Tack(Taking::Batches) | Stack::TackWithoutGso
        )
    }
}

const fn ours(name: &'static str, taking: Taking, congestion: &'static str) -> Way {
    way(name, Stack::Tack(taking), congestion, "delayed:2")
}

const fn tack(name: &'static str, congestion: &'static str) -> Way {
    way(name, Stack::Tack(Taking::Singly), congestion, "tack")
}

/// What every path has; what [`ONLY_N`] begins is measured over 802.11n only,
/// [`KERNEL_CUBIC_NO_GSO`] over 802.11g and n and on policers, [`KERNEL_BBR_NO_GSO`] and
/// [`BBR_NO_GSO`] on policers only, what [`ONLY_AC`] begins over 802.11ac only; [`LINUX_CUBIC`] and
/// [`KERNEL_CUBIC_PACED`] also where the window has few segments. Without GSO the emulator of a
/// machine with two processors is late over 802.11ac. Ways that a claim compares stand, and run,
/// beside each other, but for those that one path alone has.
pub(super) const WAYS: [Way; 26] = [
    kernel(
        "kernel CUBIC, read seldom",
        Receiver::OffloadedSeldomRead,
        "cubic",
    ),
    kernel("kernel CUBIC", Receiver::Offloaded, "cubic"),
    ours("tack CUBIC delayed:2, batches", Taking::Batches, "cubic"),
    kernel(
        "kernel CUBIC, no GRO, read seldom",
        Receiver::SeldomRead,
        "cubic",
    ),
    ours("tack CUBIC delayed:2", Taking::Singly, "cubic"),
    kernel(
        "kernel BBR, read seldom",
        Receiver::OffloadedSeldomRead,
        "bbr",
    ),
    kernel("kernel BBR", Receiver::Offloaded, "bbr"),
    ours("tack BBR delayed:2, batches", Taking::Batches, "bbr"),
    kernel(
        "kernel BBR, no GRO, read seldom",
        Receiver::SeldomRead,
        "bbr",
    ),
    ours("tack BBR delayed:2", Taking::Singly, "bbr"),
    kernel("kernel BBR, no GRO", Receiver::Plain, "bbr"),
    tack("TCP-TACK (BBR)", "bbr"),
    quinn("quinn CUBIC", Tuning::Wide, "cubic"),
    quinn("quinn BBR", Tuning::Wide, "bbr"),
    quinn("quinn CUBIC, ACK frequency", Tuning::AckFrequency, "cubic"),
    quinn("quinn BBR, ACK frequency", Tuning::AckFrequency, "bbr"),
    quinn("quinn CUBIC, default windows", Tuning::Defaults, "cubic"),
    quinn("quinn CUBIC, an ACK every 20 ms", Tuning::RareAcks, "cubic"),
    tack("TCP-TACK (CUBIC)", "cubic"),
    way(
        "kernel CUBIC, no GSO, paced",
        Stack::KernelWithoutGso,
        "cubic",
        "delayed:2",
    ),
    way(
        "kernel BBR, no GSO",
        Stack::KernelWithoutGso,
        "bbr",
        "delayed:2",
    ),
    way(
        "tack BBR delayed:2, batches, no GSO",
        Stack::TackWithoutGso,
        "bbr",
        "delayed:2",
    ),
    way(
        "kernel CUBIC, paced",
        Stack::KernelPaced(Receiver::Offloaded),
        "cubic",
        "delayed:2",
    ),
    way(
        "kernel CUBIC, no GRO, read seldom, paced",
        Stack::KernelPaced(Receiver::SeldomRead),
        "cubic",
        "delayed:2",
    ),
    way(
        "tack BBR delayed:32, batches",
        Stack::Tack(Taking::Batches),
        "bbr",
        "delayed:32",
    ),
    ours(
        "tack CUBIC delayed:2, batches, by Linux' rules",
        Taking::Batches,
        "cubic:profile=linux",
    ),
];
pub(super) const KERNEL_CUBIC_SELDOM: usize = 0;
pub(super) const KERNEL_CUBIC: usize = 1;
pub(super) const BATCHES_CUBIC: usize = 2;
pub(super) const KERNEL_CUBIC_PLAIN: usize = 3;
pub(super) const OURS_CUBIC: usize = 4;
pub(super) const KERNEL_BBR_SELDOM: usize = 5;
pub(super) const KERNEL_BBR: usize = 6;
pub(super) const BATCHES_BBR: usize = 7;
pub(super) const KERNEL_BBR_PLAIN: usize = 8;
pub(super) const OURS_BBR: usize = 9;
pub(super) const KERNEL_BBR_READ: usize = 10;
pub(super) const TACK: usize = 11;
pub(super) const QUINN_CUBIC: usize = 12;
pub(super) const QUINN_BBR: usize = 13;
pub(super) const QUINN_FEWER: usize = 14;
pub(super) const QUINN_FEWER_BBR: usize = 15;
pub(super) const QUINN_DEFAULT: usize = 16;
pub(super) const QUINN_RARE: usize = 17;
pub(super) const TACK_CUBIC: usize = 18;
pub(super) const KERNEL_CUBIC_NO_GSO: usize = 19;
pub(super) const KERNEL_BBR_NO_GSO: usize = 20;
pub(super) const BBR_NO_GSO: usize = 21;
pub(super) const KERNEL_CUBIC_PACED: usize = 22;
pub(super) const KERNEL_CUBIC_PLAIN_PACED: usize = 23;
pub(super) const FEWER_ACKS_BBR: usize = 24;
pub(super) const LINUX_CUBIC: usize = 25;

/// The first of the ways that only 802.11n has.
const ONLY_N: usize = QUINN_DEFAULT;
/// The first of the ways that only 802.11ac has.
const ONLY_AC: usize = KERNEL_CUBIC_PACED;

/// The ways that claims about QUIC need; the last three are measured over 802.11n only.
const QUIC: [usize; 9] = [
    KERNEL_BBR,
    TACK,
    QUINN_CUBIC,
    QUINN_BBR,
    QUINN_FEWER,
    QUINN_FEWER_BBR,
    QUINN_DEFAULT,
    QUINN_RARE,
    TACK_CUBIC,
];

/// The ways that claims beside GRO need on every path.
const GRO: [usize; 6] = [
    KERNEL_CUBIC_SELDOM,
    KERNEL_CUBIC,
    BATCHES_CUBIC,
    KERNEL_BBR_SELDOM,
    KERNEL_BBR,
    BATCHES_BBR,
];

/// The ways that claims beside GRO need on this path and not on every one.
fn beside_gro(route: Route) -> &'static [usize] {
    if route.is_policer() {
        &[
            KERNEL_CUBIC_PLAIN,
            KERNEL_BBR_PLAIN,
            KERNEL_CUBIC_NO_GSO,
            KERNEL_BBR_NO_GSO,
            BBR_NO_GSO,
        ]
    } else if route.is_slow_radio() {
        &[KERNEL_CUBIC_NO_GSO]
    } else if route.is_wireless {
        &[KERNEL_CUBIC_PACED, FEWER_ACKS_BBR]
    } else if route.has(LINUX_CUBIC) {
        &[LINUX_CUBIC, KERNEL_CUBIC_PACED]
    } else {
        &[]
    }
}

/// The ways that claims without GRO need; the last is measured over 802.11ac only.
const NO_GRO: [usize; 5] = [
    KERNEL_CUBIC_PLAIN,
    OURS_CUBIC,
    KERNEL_BBR_PLAIN,
    OURS_BBR,
    KERNEL_CUBIC_PLAIN_PACED,
];

/// Whether the claims of a part need a way on this path.
fn is_needed(part: Only, route: Route, way: usize) -> bool {
    match part {
        Only::Gro => GRO.contains(&way) || beside_gro(route).contains(&way),
        Only::NoGro => NO_GRO.contains(&way),
        Only::Reads => [KERNEL_BBR_PLAIN, KERNEL_BBR_READ].contains(&way),
        Only::Quic => QUIC.contains(&way),
        _ => false,
    }
}

/// Whether `depth` has a way on a path run.
pub(super) fn is_wanted(depth: &Depth, route: Route, way: usize) -> bool {
    let mut claims = depth.only.iter().filter(|part| !part.is_link());
    let is_named = claims.clone().any(|part| is_needed(*part, route, way));
    let is_whole = claims.next().is_none();
    // What explains a claim about one path is not run where there is none.
    let is_reason = [KERNEL_CUBIC_SELDOM, KERNEL_BBR_SELDOM].contains(&way);
    // What has settled is compared with the kernel alone.
    if route.settled.is_some() && !is_whole && !depth.only.contains(&Only::Gro) {
        return false;
    }
    let has_claims = || routes(depth).iter().any(|own| own.name == route.name);
    if is_reason && !has_claims() {
        return false;
    }
    depth.has(route.part()) && (is_whole || is_named)
}

/// A path, and whether it has a radio.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) name: &'static str,
    pub(super) is_wireless: bool,
    settings: &'static [&'static str],
    /// It is measured late, when senders have settled.
    pub(super) settled: Option<Settled>,
}

/// What is measured of a path on which ten seconds are too short.
#[derive(Clone, Copy)]
pub(super) struct Settled {
    /// The name of the path.
    pub(super) path: &'static str,
    name: &'static str,
    /// This stack, and what it is compared with.
    pub(super) ways: &'static [usize],
    pub(super) why: Why,
    warmup: &'static str,
    duration: &'static str,
}

/// Why the stacks may differ on such a path, once they have settled.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Why {
    /// They need not.
    Nothing,
    /// Acknowledgements may fill the way back, which delivers at most so many bytes a second.
    FullWayBack(f64),
    /// The window has so few segments that it matters by which rules a part of one is counted.
    FewSegments,
    /// The window follows from a rate, and the rate from the window.
    Window,
}

const fn radio(name: &'static str, settings: &'static [&'static str]) -> Route {
    Route {
        name,
        is_wireless: true,
        settings,
        settled: None,
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
    /// Whether its queue holds one packet, so that a second one that comes with it is dropped.
    pub(super) fn is_policer(&self) -> bool {
        self.settings.contains(&"wired.queue=1p")
    }

    /// Whether it is 802.11g or n.
    fn is_slow_radio(&self) -> bool {
        self.is_wireless && self.name != AC.name
    }

    /// What `--only` calls it.
    fn part(&self) -> Only {
        match RADIOS.iter().position(|radio| radio.name == self.name) {
            Some(0) => Only::G,
            Some(1) => Only::N,
            Some(_) => Only::Ac,
            None => Only::Wired,
        }
    }

    /// Whether a way is measured on it.
    pub(super) fn has(&self, way: usize) -> bool {
        self.ways().any(|own| own == way)
    }

    /// The ways that are measured on it, by their place in [`WAYS`].
    pub(super) fn ways(&self) -> impl Iterator<Item = usize> + use<> {
        let (is_n, is_ac) = (self.name == N.name, self.name == AC.name);
        let is_policer = self.is_policer();
        let is_slow_radio = self.is_slow_radio();
        let settled = self.settled;
        (0..WAYS.len()).filter(move |way| match (settled, *way) {
            (Some(settled), way) => settled.ways.contains(&way),
            (None, KERNEL_CUBIC_NO_GSO) => is_policer || is_slow_radio,
            (None, KERNEL_BBR_NO_GSO | BBR_NO_GSO) => is_policer,
            (None, LINUX_CUBIC) => false,
            (None, ONLY_AC..) => is_ac,
            (None, ONLY_N..) => is_n,
            (None, _) => true,
        })
    }
}

/// The path of the Pantheon that the quick form has: 100.42 Mbit/s, 27 ms.
const QUICK_PATH: usize = 3;

/// All paths that the Pantheon calibrated.
pub(super) fn pantheon() -> impl Iterator<Item = Route> {
    PATHS.into_iter().map(|(name, settings)| Route {
        name,
        is_wireless: false,
        settings,
        settled: None,
    })
}

/// What is measured once senders have settled.
///
/// Where acknowledgements come in bunches BBR needs half a minute or longer: round trips take up to
/// a second, and bring few samples of the rate. Where slow start ends over a queue that holds a
/// second of the path's rate, CUBIC repairs its losses for ten seconds. Where the window has a few
/// segments, few losses come in ten seconds. The same holds on policers with a long round trip.
pub(super) const SETTLED: [Settled; 8] = [
    Settled {
        path: "ACKs delivered each 100 ms",
        name: "ACKs delivered each 100 ms, from 40 s on",
        ways: &[BATCHES_BBR, KERNEL_BBR],
        // One opportunity for 1,500 bytes in 100 ms.
        why: Why::FullWayBack(15e3),
        warmup: "40s",
        duration: "70s",
    },
    Settled {
        path: "ACKs delivered each 200 ms",
        name: "ACKs delivered each 200 ms, from 60 s on",
        ways: &[BATCHES_BBR, KERNEL_BBR],
        why: Why::Window,
        // The longest that iperf3 can leave out.
        warmup: "60s",
        duration: "90s",
    },
    Settled {
        path: "0.57 Mbit/s Poisson, 28 ms, 4.77 % loss",
        name: "0.57 Mbit/s Poisson, 28 ms, 4.77 % loss, from 40 s on",
        ways: &[BATCHES_CUBIC, KERNEL_CUBIC, LINUX_CUBIC, KERNEL_CUBIC_PACED],
        why: Why::FewSegments,
        warmup: "40s",
        duration: "130s",
    },
    Settled {
        path: "2.64 Mbit/s Poisson, 88 ms",
        name: "2.64 Mbit/s Poisson, 88 ms, from 40 s on",
        ways: &[BATCHES_CUBIC, KERNEL_CUBIC],
        why: Why::Nothing,
        warmup: "40s",
        duration: "70s",
    },
    Settled {
        path: "3.04 Mbit/s Poisson, 130 ms",
        name: "3.04 Mbit/s Poisson, 130 ms, from 40 s on",
        ways: &[BATCHES_CUBIC, KERNEL_CUBIC],
        why: Why::Nothing,
        warmup: "40s",
        duration: "70s",
    },
    policer(
        "policer 12 Mbit/s, RTT 100 ms",
        "policer 12 Mbit/s, RTT 100 ms, from 40 s on",
    ),
    policer(
        "policer 60 Mbit/s, RTT 100 ms",
        "policer 60 Mbit/s, RTT 100 ms, from 40 s on",
    ),
    policer(
        "policer 108 Mbit/s, RTT 100 ms",
        "policer 108 Mbit/s, RTT 100 ms, from 40 s on",
    ),
];

/// A policer with a round trip of 100 ms, on which CUBIC needs four to nine seconds from loss to
/// loss.
const fn policer(path: &'static str, name: &'static str) -> Settled {
    Settled {
        path,
        name,
        ways: &[BATCHES_CUBIC, KERNEL_CUBIC, KERNEL_CUBIC_NO_GSO],
        why: Why::Nothing,
        warmup: "40s",
        duration: "90s",
    }
}

/// The paths of [`SETTLED`].
pub(super) fn settled() -> impl Iterator<Item = Route> {
    SETTLED.into_iter().flat_map(|settled| {
        let same = move |path: &Route| path.name == settled.path;
        pantheon().filter(same).map(move |path| Route {
            name: settled.name,
            settled: Some(settled),
            ..path
        })
    })
}

/// The paths about which claims are made one by one.
pub(super) fn routes(depth: &Depth) -> Vec<Route> {
    let paths = match depth.extent {
        Extent::Quick => QUICK_PATH..QUICK_PATH + 1,
        Extent::Full => 0..PATHS.len(),
    };
    let wired = pantheon().skip(paths.start).take(paths.len());
    RADIOS.into_iter().chain(wired).collect()
}

/// All paths.
pub(super) fn all() -> impl Iterator<Item = Route> {
    RADIOS.into_iter().chain(pantheon()).chain(settled())
}

/// The paths on which something is run.
pub(super) fn planned(depth: &Depth) -> Vec<Route> {
    let path = depth.path.as_deref();
    let is_named = |route: &Route| path.is_none_or(|path| route.name.contains(path));
    match path.is_some() || depth.only.contains(&Only::Pantheon) {
        true => all().filter(is_named).collect(),
        false => routes(depth),
    }
}

pub(super) fn seeds(depth: &Depth) -> RangeInclusive<u64> {
    depth.seeds(3, 5)
}

pub(super) fn cell(depth: &Depth, route: Route, way: usize) -> Cell {
    let way = WAYS[way];
    let source = if route.is_wireless { &WLAN_TCP } else { &WAN };
    // CUBIC over 802.11ac needs 5 s until its window holds the path. BBR drains the path to measure
    // its round-trip time every 10 s or a little more (PROBE_RTT), which costs 3 % of the goodput
    // of ten seconds: from 5 s to 15 s each run has that once, to 25 s twice.
    let seconds = depth.pick(["warmup=5s", "duration=15s"], ["warmup=5s", "duration=25s"]);
    let seconds = match route.settled {
        Some(settled) => [
            format!("warmup={}", settled.warmup),
            format!("duration={}", settled.duration),
        ],
        None => seconds.map(str::to_owned),
    };
    let mut cell = Cell::new(source)
        .set(seconds[0].as_str())
        .set(seconds[1].as_str())
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
