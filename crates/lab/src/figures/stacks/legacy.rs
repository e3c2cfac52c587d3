//! This stack without TACK against the kernel's TCP: goodput, acknowledgements, and what makes the
//! difference where there is one.

use tack_stats::Finding;

use super::measured::{Measured, acks, acks_in_order, acks_of_handled, either, goodput, value};
use super::ways::{
    KERNEL_BBR, KERNEL_BBR_PLAIN, KERNEL_BBR_READ, KERNEL_CUBIC, KERNEL_CUBIC_PLAIN, OURS_BBR,
    OURS_CUBIC, Route, routes,
};
use crate::claim::Claim;

/// What this stack is compared with, by congestion control.
struct Pair {
    name: &'static str,
    ours: usize,
    /// The kernel with nothing that saves acknowledgements.
    plain: usize,
    /// The kernel as it is.
    kernel: usize,
}

const PAIRS: [Pair; 2] = [
    Pair {
        name: "BBR",
        ours: OURS_BBR,
        plain: KERNEL_BBR_PLAIN,
        kernel: KERNEL_BBR,
    },
    Pair {
        name: "CUBIC",
        ours: OURS_CUBIC,
        plain: KERNEL_CUBIC_PLAIN,
        kernel: KERNEL_CUBIC,
    },
];

/// Most difference of goodput and of acknowledgements, percent.
const GOODPUT: f64 = 5.0;
const ACKS: f64 = 10.0;

/// Where a receiver that acknowledges every second packet may be: the timer, and the ends of what
/// is measured, add and take a little.
const EVERY_SECOND: std::ops::RangeInclusive<f64> = 0.45..=0.55;

/// Most points by which a change of goodput may differ from that of the airtime of data which
/// explains it.
const AIR_POINTS: f64 = 3.0;

pub(super) fn claims(measured: &Measured<'_>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for pair in &PAIRS {
        for route in routes(measured.depth) {
            claims.push(same_goodput(measured, pair, route));
            claims.push(same_acks(measured, pair, route));
        }
    }
    for pair in &PAIRS {
        for route in routes(measured.depth) {
            claims.push(acks_of_kernel(measured, pair, route));
        }
    }
    claims.extend(
        routes(measured.depth)
            .into_iter()
            .map(|route| joined(measured, route)),
    );
    claims
}

fn same_goodput(measured: &Measured<'_>, pair: &Pair, route: Route) -> Claim {
    let ways = [pair.ours, pair.plain];
    let change = measured.change(route, ways, goodput);
    let finding = measured.judged(&[route], &ways, change.is_within(-GOODPUT..=GOODPUT));
    let claim = Claim::new(
        format!(
            "{}, {} with delayed:2: the goodput of this stack is within {GOODPUT} % of the kernel's without GRO and SACK compression",
            route.name, pair.name
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
    claim.or(
        format!(
            "The channel explains it. It carries data for {data} % more of the time here: {}. Acknowledgements take {}, collisions {}; \
                the channel is idle for {}. Of the packets {} arrive out of order, or fill a hole, and are acknowledged at once. The sender \
                sends {} again, at a mean round-trip time of {} against {} ms.",
            air(value::AIR_DATA),
            air(value::AIR_ACK),
            air(value::AIR_COLLISION),
            air(value::AIR_IDLE),
            air(value::DISORDERED),
            air(value::LOST),
            measured.get(route, ways[0], value::RTT),
            measured.get(route, ways[1], value::RTT),
        ),
        measured.judged(&[route], &ways, apart.is_within(-AIR_POINTS..=AIR_POINTS)),
    )
}

fn same_acks(measured: &Measured<'_>, pair: &Pair, route: Route) -> Claim {
    let ways = [pair.ours, pair.plain];
    let change = measured.change(route, ways, acks);
    let finding = measured.judged(&[route], &ways, change.is_within(-ACKS..=ACKS));
    Claim::new(
        format!(
            "{}, {} with delayed:2: the acknowledgements of this stack for each data packet are within {ACKS} % of the kernel's without GRO and SACK \
                compression, to a program that reads every 20 ms",
            route.name, pair.name
        ),
        "–",
        format!(
            "{change} % ({} against {})",
            measured.get(route, ways[0], value::ACKS),
            measured.get(route, ways[1], value::ACKS)
        ),
        finding,
    )
    .or(
        format!(
            "Both acknowledge every second packet that arrives in order ({} against {} for each), and at once every packet that does not, or \
                that fills a hole: {} against {} % of them.",
            measured.of(route, ways[0], acks_in_order),
            measured.of(route, ways[1], acks_in_order),
            measured.percent(route, ways[0], value::DISORDERED),
            measured.percent(route, ways[1], value::DISORDERED),
        ),
        measured.judged(&[route], &ways, is_disorder(measured, route, ways)),
    )
}

/// Whether both acknowledge every second packet that arrives in order, so that the order makes what
/// difference there is.
fn is_disorder(measured: &Measured<'_>, route: Route, ways: [usize; 2]) -> Finding {
    Finding::all(ways.map(|way| {
        measured
            .of(route, way, acks_in_order)
            .is_within(EVERY_SECOND)
    }))
}

fn acks_of_kernel(measured: &Measured<'_>, pair: &Pair, route: Route) -> Claim {
    let ways = [pair.ours, pair.kernel];
    let change = measured.change(route, ways, acks);
    let finding = measured.judged(&[route], &ways, change.is_within(-ACKS..=ACKS));
    let handled = measured.of(route, pair.kernel, acks_of_handled);
    let packets = measured.get(route, pair.kernel, value::TCP_PACKETS);
    let own = measured.of(route, pair.ours, acks_in_order);
    // One acknowledgement for a packet of two segments or more, and for each second one of one
    // segment.
    let is_offload = packets
        .is_below(0.9)
        .and(handled.is_within(0.45..=1.1))
        .and(own.is_within(EVERY_SECOND));
    let reason = either(is_offload, is_disorder(measured, route, ways));
    Claim::new(
        format!(
            "{}, {} with delayed:2: the acknowledgements of this stack for each data packet are within {ACKS} % of the kernel's as it is",
            route.name, pair.name
        ),
        "–",
        format!(
            "{change} % ({} against {})",
            measured.get(route, ways[0], value::ACKS),
            measured.get(route, ways[1], value::ACKS)
        ),
        finding,
    )
    .or(
        format!(
            "GRO: of 100 data packets the kernel's TCP gets {}, and acknowledges each once or every second one ({handled}). This stack \
                acknowledges every second packet that arrives in order ({own}), and {} against {} % of the packets do not.",
            packets.times(100.0),
            measured.percent(route, pair.ours, value::DISORDERED),
            measured.percent(route, pair.kernel, value::DISORDERED),
        ),
        measured.judged(&[route], &ways, reason),
    )
}

/// What a program that holds the socket while segments come saves.
fn joined(measured: &Measured<'_>, route: Route) -> Claim {
    let ways = [KERNEL_BBR_READ, KERNEL_BBR_PLAIN];
    let joined = measured.percent(route, ways[0], value::TCP_MERGED);
    // One packet of k segments saves at most k / 2 − 1 acknowledgements, with k − 1 joined.
    let unexplained = measured.compare(route, ways, |read, seldom| {
        let saved = acks_in_order(seldom) - acks_in_order(read);
        100.0 * (saved.abs() - read.get(value::TCP_MERGED) / 2.0)
    });
    Claim::new(
        format!(
            "{}: the kernel's acknowledgements for each packet in order (BBR, no GRO) differ between a program that reads at once and one that \
                reads every 20 ms by no more than the packets that the kernel joins while the program holds the socket explain (half of them, and 3 \
                in 100 packets)",
            route.name
        ),
        "–",
        format!(
            "{} against {} for each packet, {joined} % of the packets joined (against {} %), {} acknowledgements of the timer in 100 packets",
            measured.of(route, ways[0], acks_in_order),
            measured.of(route, ways[1], acks_in_order),
            measured.percent(route, ways[1], value::TCP_MERGED),
            measured.percent(route, ways[0], value::TCP_DELAYED),
        ),
        measured.judged(&[route], &ways, unexplained.is_at_most(3.0)),
    )
}
