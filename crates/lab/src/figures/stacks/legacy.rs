//! This stack without TACK against the kernel's TCP: goodput, acknowledgements, and what makes the
//! difference where there is one.

use tack_stats::Finding;

use super::measured::{
    Measured, Stated, acks, acks_beyond_rule, acks_beyond_rule_of_linux, acks_by_rule,
    acks_by_rule_of_linux, acks_of_batches, acks_of_handled, either, goodput, value,
};
use super::ways::{
    AC, BATCHES_BBR, BATCHES_CUBIC, BBR_NO_GSO, FEWER_ACKS_BBR, KERNEL_BBR, KERNEL_BBR_NO_GSO,
    KERNEL_BBR_PLAIN, KERNEL_BBR_READ, KERNEL_BBR_SELDOM, KERNEL_CUBIC, KERNEL_CUBIC_NO_GSO,
    KERNEL_CUBIC_PACED, KERNEL_CUBIC_PLAIN, KERNEL_CUBIC_PLAIN_PACED, KERNEL_CUBIC_SELDOM,
    LINUX_CUBIC, OURS_BBR, OURS_CUBIC, Route, routes,
};
use crate::claim::Claim;

/// What this stack is compared with, by congestion control.
pub(super) struct Pair {
    pub(super) name: &'static str,
    /// This stack, which takes each segment alone, and the kernel with nothing that saves
    /// acknowledgements.
    pub(super) single: [usize; 2],
    /// This stack, which takes what comes together, and the kernel as it is.
    pub(super) joined: [usize; 2],
    /// The kernel as it is, to a program that reads seldom.
    seldom: usize,
    /// The kernel as it is, but without GSO at its sender.
    pub(super) without_gso: usize,
    /// This stack in batches, without GSO at its sender, where that is measured.
    pub(super) ours_without_gso: Option<usize>,
    /// The kernels of `single` and `joined`, paced, where their congestion control does not ask for
    /// pacing.
    paced: Option<[usize; 2]>,
}

pub(super) const PAIRS: [Pair; 2] = [
    Pair {
        name: "BBR",
        single: [OURS_BBR, KERNEL_BBR_PLAIN],
        joined: [BATCHES_BBR, KERNEL_BBR],
        seldom: KERNEL_BBR_SELDOM,
        without_gso: KERNEL_BBR_NO_GSO,
        ours_without_gso: Some(BBR_NO_GSO),
        paced: None,
    },
    Pair {
        name: "CUBIC",
        single: [OURS_CUBIC, KERNEL_CUBIC_PLAIN],
        joined: [BATCHES_CUBIC, KERNEL_CUBIC],
        seldom: KERNEL_CUBIC_SELDOM,
        without_gso: KERNEL_CUBIC_NO_GSO,
        ours_without_gso: None,
        paced: Some([KERNEL_CUBIC_PLAIN_PACED, KERNEL_CUBIC_PACED]),
    },
];

impl Pair {
    /// What this stack does in a comparison.
    pub(super) fn called(&self, ways: [usize; 2]) -> String {
        let name = self.name;
        match ways[0] {
            LINUX_CUBIC => format!("{name} by Linux' rules with delayed:2 in batches"),
            way if way == self.joined[0] => format!("{name} with delayed:2 in batches"),
            _ => format!("{name} with delayed:2"),
        }
    }
}

/// Most difference of goodput and of acknowledgements, percent.
pub(super) const GOODPUT: f64 = 5.0;
pub(super) const ACKS: f64 = 10.0;

/// How far from its rule a receiver that acknowledges every second packet in order may be,
/// acknowledgements for each packet: the timer, and the ends of what is measured, add and take a
/// little.
pub(super) const RULE: std::ops::RangeInclusive<f64> = -0.05..=0.05;

/// For each data packet that arrives the packets of a kernel that joins some (GRO) are fewer.
pub(super) const SINGLE: f64 = 0.9;

/// Most points by which a change of goodput may differ from that of the airtime of data which
/// explains it.
const AIR_POINTS: f64 = 3.0;

/// Most points of the time by which the channel may be idle for longer with this stack where the
/// channel is to explain its goodput: less airtime of data always comes with less goodput, and a
/// sender that leaves the channel idle has less of both. Below the 5 points that the difference
/// would have to be.
const IDLE_POINTS: f64 = 1.0;

/// Who counts the packets that are out of order or fill a hole.
const COUNTED: &str =
    "this stack's by its own count of why it acknowledged, the kernel's by its count of arrivals";

pub(super) fn claims(measured: &Measured<'_>) -> Vec<Stated> {
    let mut claims = Vec::new();
    for pair in &PAIRS {
        for route in routes(measured.depth) {
            let mut state =
                |ways: &[usize], claim| claims.push(measured.state(&[route], ways, claim));
            let modes = [
                (pair.single, "without GRO and SACK compression"),
                (pair.joined, "as it is"),
            ];
            for (index, (ways, what)) in modes.into_iter().enumerate() {
                let mut claim = same_goodput(measured, pair, ways, what, route);
                let paced = pair.paced.map(|paced| paced[index]);
                if let Some(paced) = paced.filter(|way| route.has(*way)) {
                    claim = not_paced(measured, route, ways, paced, claim);
                    let ways = [ways[0], paced];
                    let what = format!("{what}, paced");
                    state(&ways, same_goodput(measured, pair, ways, &what, route));
                }
                state(&ways, claim);
            }
            state(&pair.single, same_acks(measured, pair, route));
            if route.is_wireless {
                let (ways, claim) = same_or_by_offload(measured, pair, route);
                state(&ways, claim);
            }
            let [ours, linux] = pair.joined;
            if route.is_wireless && route.has(pair.without_gso) {
                let ways = [ours, pair.without_gso];
                let paced = same_goodput(measured, pair, ways, "without GSO, paced", route);
                state(&ways, paced);
            }
            let all = [ours, linux, pair.seldom];
            state(&all, acks_in_batches(measured, pair, route));
            state(&all[1..], rules_of_linux(measured, pair, route));
        }
    }
    let ways = [FEWER_ACKS_BBR, KERNEL_BBR];
    claims.push(measured.state(&[AC], &ways, fewer_acks(measured, AC, ways)));
    for route in routes(measured.depth) {
        let ways = [KERNEL_BBR_READ, KERNEL_BBR_PLAIN];
        claims.push(measured.state(&[route], &ways, reads(measured, route, ways)));
    }
    claims
}

/// This stack and the kernel, which is `what`, have the same goodput.
pub(super) fn same_goodput(
    measured: &Measured<'_>,
    pair: &Pair,
    ways: [usize; 2],
    what: &str,
    route: Route,
) -> Claim {
    let change = measured.change(route, ways, goodput);
    let finding = measured.judged(&[route], &ways, change.is_within(-GOODPUT..=GOODPUT));
    let claim = Claim::new(
        format!(
            "{}, {}: the goodput of this stack is within {GOODPUT} % of the kernel's {what}",
            route.name,
            pair.called(ways)
        ),
        "–",
        format!(
            "{change} % ({} against {} Mbit/s)",
            measured.mbps(route, ways[0]),
            measured.mbps(route, ways[1])
        ),
        finding,
    );
    if !route.is_wireless {
        return claim;
    }
    let data = measured.change(route, ways, |values| values.get(value::AIR_DATA));
    let air = |name| {
        format!(
            "{} against {} %",
            measured.percent(route, ways[0], name),
            measured.percent(route, ways[1], name)
        )
    };
    let apart = measured.compare(route, ways, |ours, theirs| {
        let change = |name| 100.0 * (ours.get(name) / theirs.get(name) - 1.0);
        change(value::GOODPUT) - change(value::AIR_DATA)
    });
    let idle = measured.compare(route, ways, |ours, theirs| {
        100.0 * (ours.get(value::AIR_IDLE) - theirs.get(value::AIR_IDLE))
    });
    let is_channel = apart
        .is_within(-AIR_POINTS..=AIR_POINTS)
        .and(idle.is_at_most(IDLE_POINTS));
    claim.or(
        format!(
            "The channel explains it. It carries data for {data} % more of the time here: {}. Acknowledgements take {}, collisions {}; \
                the channel is idle for {}, which is {idle} points more here (at most {IDLE_POINTS}). Of the packets {} are out of order, or fill \
                a hole: {COUNTED}. The sender sends {} again, at a mean round-trip time of {} against {} ms.",
            air(value::AIR_DATA),
            air(value::AIR_ACK),
            air(value::AIR_COLLISION),
            air(value::AIR_IDLE),
            air(value::DISORDERED),
            air(value::LOST),
            measured.get(route, ways[0], value::RTT),
            measured.get(route, ways[1], value::RTT),
        ),
        measured.judged(&[route], &ways, is_channel),
    )
}

/// Excuses a difference to a kernel that does not pace. The same kernel with pacing must have
/// clearly more goodput, and this stack must have the goodput of that one.
fn not_paced(
    measured: &Measured<'_>,
    route: Route,
    ways: [usize; 2],
    paced: usize,
    claim: Claim,
) -> Claim {
    let [ours, kernel] = ways;
    let left = measured.change(route, [ours, paced], goodput);
    let gained = measured.change(route, [paced, kernel], goodput);
    if !gained.is_at_least(GOODPUT).is_sure() {
        return claim;
    }
    let reason = left.is_within(-GOODPUT..=GOODPUT);
    claim.or(
        format!(
            "The kernel's CUBIC is not paced, and this stack's is. Paced the kernel has {gained} % more goodput ({} Mbit/s), and this stack differs from \
                that by {left} %.",
            measured.mbps(route, paced)
        ),
        measured.judged(&[route], &[ours, kernel, paced], reason),
    )
}

/// This stack has the kernel's goodput, or has it where nothing saves the kernel acknowledgements:
/// the difference is what offload at its receiver brings. Beside a kernel that is paced where there
/// is one, as this stack is. Returns the four ways that it needs.
fn same_or_by_offload(measured: &Measured<'_>, pair: &Pair, route: Route) -> ([usize; 4], Claim) {
    let paced = pair
        .paced
        .filter(|paced| paced.iter().all(|way| route.has(*way)));
    let [plain, kernel] = paced.unwrap_or([pair.single[1], pair.joined[1]]);
    let (joined, single) = ([pair.joined[0], kernel], [pair.single[0], plain]);
    let changes = [joined, single].map(|ways| measured.change(route, ways, goodput));
    let [as_it_is, without] = changes.map(|change| change.is_within(-GOODPUT..=GOODPUT));
    let ways = [joined[0], joined[1], single[0], single[1]];
    let name = pair.name;
    let paced = if paced.is_some() { ", paced" } else { "" };
    let claim = Claim::new(
        format!(
            "{}, {name}: the goodput of this stack is within {GOODPUT} % of the kernel's as it is{paced}, or the difference is gone without GRO, \
                compression of SACKs and reads that save acknowledgements",
            route.name
        ),
        "–",
        format!(
            "{} % as it is, with {} % more acknowledgements; {} % without, with {} % more",
            changes[0],
            measured.change(route, joined, acks),
            changes[1],
            measured.change(route, single, acks),
        ),
        measured.judged(&[route], &ways, either(as_it_is, without)),
    );
    (ways, claim)
}

/// This stack's BBR with an acknowledgement for 32 packets in order, which are half as many in all,
/// has the goodput of the kernel's.
fn fewer_acks(measured: &Measured<'_>, route: Route, ways: [usize; 2]) -> Claim {
    let change = measured.change(route, ways, goodput);
    let [ours, kernel] = ways.map(|way| measured.get(route, way, value::ACKS));
    let finding = change.is_within(-GOODPUT..=GOODPUT);
    Claim::new(
        format!(
            "{}, BBR with an acknowledgement for 32 packets, in batches: the goodput of this stack is within {GOODPUT} % of the kernel's as it is",
            route.name
        ),
        "–",
        format!(
            "{change} % ({} against {} Mbit/s), with {ours} against {kernel} acknowledgements for each packet",
            measured.mbps(route, ways[0]),
            measured.mbps(route, ways[1])
        ),
        measured.judged(&[route], &ways, finding),
    )
}

fn same_acks(measured: &Measured<'_>, pair: &Pair, route: Route) -> Claim {
    let ways = pair.single;
    let what = "without GRO and SACK compression, to a program that reads every 20 ms";
    acks_within(measured, pair, route, ways, what)
    .or(
        format!(
            "Both acknowledge every second packet that arrives in order, and at once every packet that does not, or that fills a hole: {} against {} % \
                of them, {COUNTED}. That makes {} against {} for each.",
            measured.percent(route, ways[0], value::DISORDERED),
            measured.percent(route, ways[1], value::DISORDERED),
            measured.of(route, ways[0], acks_by_rule),
            measured.of(route, ways[1], acks_by_rule),
        ),
        measured.judged(&[route], &ways, is_disorder(measured, route, ways)),
    )
}

/// Whether both acknowledge every second packet that arrives in order and each other one, so that
/// the order makes what difference there is.
fn is_disorder(measured: &Measured<'_>, route: Route, ways: [usize; 2]) -> Finding {
    Finding::all(ways.map(|way| follows_rule(measured, route, way)))
}

fn follows_rule(measured: &Measured<'_>, route: Route, way: usize) -> Finding {
    let beyond = measured.of(route, way, acks_beyond_rule);
    beyond.is_within(RULE)
}

/// The claim on acknowledgements, before its reason; `what` says what the kernel has.
fn acks_within(
    measured: &Measured<'_>,
    pair: &Pair,
    route: Route,
    ways: [usize; 2],
    what: &str,
) -> Claim {
    let change = measured.change(route, ways, acks);
    let finding = measured.judged(&[route], &ways, change.is_within(-ACKS..=ACKS));
    Claim::new(
        format!(
            "{}, {}: the acknowledgements of this stack for each data packet are within {ACKS} % of the kernel's {what}",
            route.name,
            pair.called(ways)
        ),
        "–",
        format!(
            "{change} % ({} against {})",
            measured.get(route, ways[0], value::ACKS),
            measured.get(route, ways[1], value::ACKS)
        ),
        finding,
    )
}

/// Acknowledgements for what comes at once, of a receiver that sends one for it: one, or
/// a fifth less or a tenth more. Its timer adds some, and what holds a single segment saves some;
/// neither is counted apart.
const AT_ONCE: std::ops::RangeInclusive<f64> = 0.8..=1.1;

/// Whether receive offload explains what the kernel sends: it has joined packets, and sends one
/// acknowledgement for each to a program that reads seldom, less what compression of SACKs saves,
/// and no more to iperf3, whose reads save some (tcp_cleanup_rbuf in net/ipv4/tcp.c acknowledges
/// for several).
fn is_offload(measured: &Measured<'_>, pair: &Pair, route: Route) -> Finding {
    let linux = pair.joined[1];
    let packets = measured.get(route, linux, value::TCP_PACKETS);
    let handled = measured.of(route, linux, acks_of_handled);
    let seldom = measured.of(route, pair.seldom, acks_of_handled);
    packets
        .is_below(SINGLE)
        .and(handled.is_at_most(*AT_ONCE.end()))
        .and(seldom.is_within(AT_ONCE))
}

/// What receive offload has joined is one packet to the kernel's TCP. To this stack it is one batch
/// if one system call delivers it. The reason of a difference is what each got at once, and that
/// each sends one acknowledgement for that, but for those that the reads of iperf3 save the kernel;
/// or the order of the packets, and that the kernel answers each packet while its window grows.
fn acks_in_batches(measured: &Measured<'_>, pair: &Pair, route: Route) -> Claim {
    let ways = pair.joined;
    let ours = measured.of(route, ways[0], acks_of_batches);
    let theirs = measured.of(route, ways[1], acks_of_handled);
    let packets = [
        measured.get(route, ways[0], value::BATCHES),
        measured.get(route, ways[1], value::TCP_PACKETS),
    ];
    let seldom = measured.of(route, pair.seldom, acks_of_handled);
    let is_offload = is_offload(measured, pair, route)
        .and(packets[0].is_below(SINGLE))
        .and(ours.is_within(AT_ONCE));
    let beyond = measured.of(route, ways[1], acks_beyond_rule_of_linux);
    let is_window = follows_rule(measured, route, ways[0]).and(beyond.is_within(RULE));
    let reason = either(is_offload, is_window);
    acks_within(measured, pair, route, ways, "as it is").or(
        format!(
            "Each sends one acknowledgement for what comes at once, but for those that the reads of iperf3 save. This stack gets 100 packets by {} system calls, and sends {ours} \
                acknowledgements for each; GRO makes {} packets of 100 for the kernel's TCP, which sends {theirs} for each, and {seldom} to a \
                program that reads every 20 ms, those that compression of SACKs saves included. {} against \
                {} % of the packets are out of order or fill a hole, {COUNTED}. The kernel answers {} % of the packets alone while its receive window \
                grows, and compression of SACKs saves it {} acknowledgements for 100 packets. By these rules it would be {} against {} \
                acknowledgements for each packet.",
            packets[0].times(100.0),
            packets[1].times(100.0),
            measured.percent(route, ways[0], value::DISORDERED),
            measured.percent(route, ways[1], value::DISORDERED),
            measured.percent(route, ways[1], value::TCP_WIDENING),
            measured.percent(route, ways[1], value::TCP_COMPRESSED),
            measured.of(route, ways[0], acks_by_rule),
            measured.of(route, ways[1], acks_by_rule_of_linux),
        ),
        measured.judged(&[route], &[ways[0], ways[1], pair.seldom], reason),
    )
}

/// Linux with GRO and SACK compression sends as many acknowledgements as its rules say.
fn rules_of_linux(measured: &Measured<'_>, pair: &Pair, route: Route) -> Claim {
    let way = pair.joined[1];
    let beyond = measured.of(route, way, acks_beyond_rule_of_linux);
    let handled = measured.of(route, way, acks_of_handled);
    let packets = measured.get(route, way, value::TCP_PACKETS);
    let seldom = measured.of(route, pair.seldom, acks_of_handled);
    Claim::new(
        format!(
            "{}, {}: the kernel as it is acknowledges by these rules: every second packet in order, at once each other packet and each that makes its \
                receive window grow, less what compression of SACKs saves (to 5 acknowledgements in 100 packets)",
            route.name, pair.name
        ),
        "–",
        format!(
            "{} for each packet, {} by the rules; {} % of the packets are out of order or fill a hole, {} % are answered alone while the window grows, \
                and compression saves {} acknowledgements for 100 packets",
            measured.get(route, way, value::ACKS),
            measured.of(route, way, acks_by_rule_of_linux),
            measured.percent(route, way, value::DISORDERED),
            measured.percent(route, way, value::TCP_WIDENING),
            measured.percent(route, way, value::TCP_COMPRESSED),
        ),
        measured.judged(&[route], &[way], beyond.is_within(RULE)),
    )
    .or(
        format!(
            "GRO makes {} packets of 100 for the kernel's TCP, which sends {handled} acknowledgements for each, and {seldom} to a program that reads \
                every 20 ms, those that compression of SACKs saves included.",
            packets.times(100.0)
        ),
        measured.judged(&[route], &[way, pair.seldom], is_offload(measured, pair, route)),
    )
}

/// What the reads of a program save.
fn reads(measured: &Measured<'_>, route: Route, ways: [usize; 2]) -> Claim {
    let counts = |way| {
        format!(
            "{} for each packet, {} by the rule",
            measured.get(route, way, value::ACKS),
            measured.of(route, way, acks_by_rule)
        )
    };
    let [joined, joined_plain] = ways.map(|way| measured.percent(route, way, value::TCP_MERGED));
    let finding =
        ways.map(|way| measured.judged(&[route], &ways, follows_rule(measured, route, way)));
    Claim::new(
        format!(
            "{}: the kernel's TCP (BBR, no GRO) acknowledges every second packet in order, and each other one, also when iperf3 reads (to 5 \
                acknowledgements in 100 packets)",
            route.name
        ),
        "–",
        format!(
            "{}; its timer sends {} for 100 packets",
            counts(ways[0]),
            measured.percent(route, ways[0], value::TCP_DELAYED)
        ),
        finding[0],
    )
    .or(
        format!(
            "The kernel leaves an acknowledgement to the program's next read where the window does not move before it. To a program whose reads \
                do not matter (it reads every 20 ms, with a low-water mark that is not reached) it sends {}. Segments that the kernel joined while the \
                program held the socket are {joined} % of the packets (against {joined_plain} %), and save at most half as many acknowledgements.",
            counts(ways[1])
        ),
        finding[1],
    )
}
