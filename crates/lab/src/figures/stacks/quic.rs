//! TCP-TACK against the kernel's TCP and QUIC, and why QUIC is slower where it is.

use tack_stats::{Estimate, Finding};

use super::measured::{Measured, Stated, acks, either, goodput, show, value};
use super::ways::{
    AC, KERNEL_BBR, N, QUINN_BBR, QUINN_CUBIC, QUINN_DEFAULT, QUINN_FEWER, QUINN_FEWER_BBR,
    QUINN_RARE, RADIOS, Route, TACK, TACK_CUBIC, WAYS,
};
use crate::claim::Claim;

/// quinn's window for a stream, bytes, and the path's round-trip time, seconds.
const DEFAULT_WINDOW: f64 = 1_250_000.0;
const ROUND_TRIP: f64 = 0.08;

pub(super) fn claims(measured: &Measured<'_>) -> Vec<Stated> {
    let state = |routes: &[Route], ways: [usize; 2], claim| measured.state(routes, &ways, claim);
    let [faster, as_fast, fewer] = ahead(measured);
    let [rare, some, rest] = rare_acks(measured);
    let mut claims = vec![
        state(&RADIOS, [TACK, KERNEL_BBR], faster),
        state(&RADIOS, [TACK, QUINN_CUBIC], as_fast),
        state(&RADIOS, [TACK, KERNEL_BBR], fewer),
        state(
            &[N],
            [QUINN_DEFAULT, QUINN_CUBIC],
            default_windows(measured),
        ),
        state(&[N], [QUINN_RARE, TACK_CUBIC], packet_size(measured)),
        state(&RADIOS, [QUINN_BBR, KERNEL_BBR], losses_of_bbr(measured)),
        state(&[N], [QUINN_RARE, QUINN_CUBIC], rare),
        state(&[N], [QUINN_FEWER, QUINN_CUBIC], some),
        state(&[N], [QUINN_RARE, TACK_CUBIC], rest),
    ];
    for route in RADIOS {
        for (controller, ways) in [
            ("CUBIC", [QUINN_FEWER, QUINN_CUBIC]),
            ("BBR", [QUINN_FEWER_BBR, QUINN_BBR]),
        ] {
            for claim in ack_frequency(measured, route, controller, ways) {
                claims.push(state(&[route], ways, claim));
            }
        }
    }
    for route in [N, AC] {
        claims.push(state(
            &[route],
            [QUINN_CUBIC, TACK],
            window_or_air(measured, route),
        ));
    }
    claims
}

fn over_radios(
    measured: &Measured<'_>,
    other: usize,
    of: fn(&crate::measure::Values) -> f64,
) -> Vec<(Route, Estimate)> {
    RADIOS
        .into_iter()
        .map(|route| (route, measured.change(route, [TACK, other], of)))
        .collect()
}

fn ahead(measured: &Measured<'_>) -> [Claim; 3] {
    let no_slower = |other: usize| {
        let gains = over_radios(measured, other, goodput);
        let finding = Finding::all(gains.iter().map(|(_, gain)| gain.is_at_least(-2.0)));
        Claim::new(
            format!(
                "TCP-TACK is no slower than {} over 802.11g, n and ac at 80 ms (by at most 2 %)",
                WAYS[other].name
            ),
            "–",
            show(&gains, " %"),
            measured.judged(&RADIOS, &[TACK, other], finding),
        )
    };
    let fewer = over_radios(measured, KERNEL_BBR, acks);
    let finding = Finding::all(fewer.iter().map(|(_, change)| change.is_at_most(-50.0)));
    let fewer = Claim::new(
        "TCP-TACK sends at most half as many acknowledgements for each data packet as the kernel with GRO",
        "–",
        show(&fewer, " %"),
        measured.judged(&RADIOS, &[TACK, KERNEL_BBR], finding),
    );
    [no_slower(KERNEL_BBR), no_slower(QUINN_CUBIC), fewer]
}

/// The window that quinn has by default holds less than the path.
fn default_windows(measured: &Measured<'_>) -> Claim {
    let most = DEFAULT_WINDOW * 8.0 / ROUND_TRIP / 1e6;
    let own = measured.mbps(N, QUINN_DEFAULT);
    let gain = measured.change(N, [QUINN_CUBIC, QUINN_DEFAULT], goodput);
    let finding = Finding::all([
        own.is_at_most(most),
        own.is_at_least(0.7 * most),
        gain.is_at_least(10.0),
    ]);
    Claim::new(
        format!(
            "802.11n: the windows that quinn has by default limit it, to at most 1.25 MB for a round trip of 80 ms ({most} Mbit/s) and to no less \
                than 70 % of that; wider ones give at least 10 % more"
        ),
        "–",
        format!(
            "{own} Mbit/s, the channel idle for {} %, stopped by flow control {} times; with 16 MiB {} Mbit/s: {gain} % more",
            measured.percent(N, QUINN_DEFAULT, value::AIR_IDLE),
            measured.get(N, QUINN_DEFAULT, value::BLOCKED),
            measured.mbps(N, QUINN_CUBIC),
        ),
        measured.judged(&[N], &[QUINN_DEFAULT, QUINN_CUBIC], finding),
    )
}

fn packet_size(measured: &Measured<'_>) -> Claim {
    let change = measured.change(N, [QUINN_RARE, TACK_CUBIC], |values| {
        values.get(value::PAYLOAD)
    });
    Claim::new(
        "802.11n: the size of packets is not the reason: quinn's carry as much payload as TCP-TACK's, to 3 %",
        "–",
        format!(
            "{} against {} bytes: {change} %",
            measured.get(N, QUINN_RARE, value::PAYLOAD),
            measured.get(N, TACK_CUBIC, value::PAYLOAD),
        ),
        measured.judged(
            &[N],
            &[QUINN_RARE, TACK_CUBIC],
            change.is_within(-3.0..=3.0),
        ),
    )
}

/// quinn's BBR is not the kernel's.
fn losses_of_bbr(measured: &Measured<'_>) -> Claim {
    let ways = [QUINN_BBR, KERNEL_BBR];
    let more = RADIOS.map(|route| points(measured, route, ways, value::LOST));
    let lost = |way| {
        let each = RADIOS.map(|route| (route, measured.percent(route, way, value::LOST)));
        show(&each, " %")
    };
    Claim::new(
        "quinn's BBR sends more than the path holds: over 802.11g, n and ac it loses at least 5 points more of its packets than the kernel's",
        "–",
        format!("{} against {}", lost(ways[0]), lost(ways[1])),
        measured.judged(
            &RADIOS,
            &ways,
            Finding::all(more.map(|more| more.is_at_least(5.0))),
        ),
    )
}

/// Acknowledgements are a reason if QUIC without them is faster.
fn rare_acks(measured: &Measured<'_>) -> [Claim; 3] {
    let gain = measured.change(N, [QUINN_RARE, QUINN_CUBIC], goodput);
    let some = measured.change(N, [QUINN_FEWER, QUINN_CUBIC], goodput);
    let rest = measured.change(N, [QUINN_RARE, TACK_CUBIC], goodput);
    let air = |way, name| measured.percent(N, way, name);
    let counts = |way| measured.percent(N, way, value::ACKS);
    let ways = [QUINN_RARE, QUINN_CUBIC];
    let first = Claim::new(
        "802.11n: its acknowledgements slow quinn down: with one every 20 ms, as TACK has, its goodput with CUBIC is at least 10 % higher",
        "–",
        format!(
            "{gain} %: {} against {} acknowledgements in 100 packets, which take {} against {} % of the airtime, and collisions {} against {} %",
            counts(ways[0]),
            counts(ways[1]),
            air(ways[0], value::AIR_ACK),
            air(ways[1], value::AIR_ACK),
            air(ways[0], value::AIR_COLLISION),
            air(ways[1], value::AIR_COLLISION),
        ),
        measured.judged(&[N], &ways, gain.is_at_least(10.0)),
    );
    let second = Claim::new(
        "802.11n: an acknowledgement for every eleventh packet, by the ACK-frequency extension, gives quinn with CUBIC more goodput",
        "–",
        format!(
            "{some} %: {} acknowledgements in 100 packets",
            counts(QUINN_FEWER)
        ),
        measured.judged(&[N], &[QUINN_FEWER, QUINN_CUBIC], some.is_above(0.0)),
    );
    let idle = air(QUINN_RARE, value::AIR_IDLE).less(air(TACK_CUBIC, value::AIR_IDLE));
    let third = Claim::new(
        "802.11n: with as few acknowledgements, quinn with CUBIC has the goodput of TCP-TACK with CUBIC, to 5 %",
        "–",
        format!(
            "{rest} %: {} against {} Mbit/s",
            measured.mbps(N, QUINN_RARE),
            measured.mbps(N, TACK_CUBIC)
        ),
        measured.judged(&[N], &[QUINN_RARE, TACK_CUBIC], rest.is_within(-5.0..=5.0)),
    )
    .or(
        format!(
            "The controllers differ: quinn leaves the channel idle for {idle} points more of the time. Its congestion window over its round-trip \
                time is {} Mbit/s, TCP-TACK's {}; it loses {} % of its packets, TCP-TACK {} %.",
            measured.get(N, QUINN_RARE, value::WINDOW_RATE).times(1e-6),
            measured.get(N, TACK_CUBIC, value::WINDOW_RATE).times(1e-6),
            measured.percent(N, QUINN_RARE, value::LOST),
            measured.percent(N, TACK_CUBIC, value::LOST),
        ),
        measured.judged(
            &[N],
            &[QUINN_RARE, TACK_CUBIC],
            idle.is_above(0.0).and(rest.is_below(0.0)),
        ),
    );
    [first, second, third]
}

/// What the ACK-frequency extension does for quinn.
fn ack_frequency(
    measured: &Measured<'_>,
    route: Route,
    controller: &str,
    ways: [usize; 2],
) -> [Claim; 2] {
    let fewer = measured.change(route, ways, acks);
    let faster = measured.change(route, ways, goodput);
    let counts = ways.map(|way| measured.percent(route, way, value::ACKS));
    let rates = ways.map(|way| measured.mbps(route, way));
    let head = format!(
        "{}, quinn with {controller} and the ACK-frequency extension",
        route.name
    );
    [
        Claim::new(
            format!("{head}: at most a third of the acknowledgements"),
            "–",
            format!(
                "{fewer} %: {} against {} for 100 packets",
                counts[0], counts[1]
            ),
            measured.judged(&[route], &ways, fewer.is_at_most(-66.7)),
        ),
        Claim::new(
            format!("{head}: no less goodput than without (by at most 5 %)"),
            "–",
            format!("{faster} %: {} against {} Mbit/s", rates[0], rates[1]),
            measured.judged(&[route], &ways, faster.is_at_least(-5.0)),
        ),
    ]
}

/// With windows that do not limit, what is left is the congestion window, which leaves the channel
/// idle, and the air that acknowledgements take. All shares of the time together are all of it: how
/// they differ is no cause.
fn window_or_air(measured: &Measured<'_>, route: Route) -> Claim {
    let ways = [QUINN_CUBIC, TACK];
    let change = measured.change(route, ways, goodput);
    let idle = points(measured, route, ways, value::AIR_IDLE);
    let overhead = points(measured, route, ways, value::AIR_ACK);
    let collisions = points(measured, route, ways, value::AIR_COLLISION);
    let access = points(measured, route, ways, value::AIR_ACCESS);
    let control = points(measured, route, ways, value::AIR_CONTROL);
    let rate = measured
        .get(route, QUINN_CUBIC, value::WINDOW_RATE)
        .times(1e-6);
    // What the goodput differs by that the airtime of data does not.
    let apart = measured.compare(route, ways, |quinn, tack| {
        let change = |name| 100.0 * (quinn.get(name) / tack.get(name) - 1.0);
        change(value::GOODPUT) - change(value::AIR_DATA)
    });
    Claim::new(
        format!(
            "{}: a breakdown by airtime, no reason: as far as quinn with CUBIC and wide windows is slower than TCP-TACK, the channel carries its \
                data for less of the time, to 5 points, and is idle, or carries acknowledgements, for longer",
            route.name
        ),
        "–",
        format!(
            "{change} %, of which {apart} points are not in the airtime of data; idle {idle} points of the time more, acknowledgements {overhead}, their \
                collisions {collisions}, link control {control}, access {access}; its congestion window permits {rate} Mbit/s, of which it has {}",
            measured.mbps(route, QUINN_CUBIC)
        ),
        measured.judged(
            &[route],
            &ways,
            apart.is_within(-5.0..=5.0).and(either(
                change.is_at_least(0.0),
                either(idle.is_above(0.0), overhead.is_above(0.0)),
            )),
        ),
    )
}

/// By how many points of the time the first way has more of a share of the air.
fn points(measured: &Measured<'_>, route: Route, ways: [usize; 2], name: &str) -> Estimate {
    measured.compare(route, ways, |a, b| 100.0 * (a.get(name) - b.get(name)))
}
