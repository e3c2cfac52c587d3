//! The paths that the Pantheon calibrated, together: each is one sample, so that few runs of each
//! decide the mean over them. The paths that are outside of a bound by themselves are named.

use std::ops::RangeInclusive;

use tack_stats::{Estimate, Finding};

use super::bbr_window::by_window;
use super::legacy::{ACKS, GOODPUT, PAIRS, Pair, RULE, SINGLE, same_goodput};
use super::measured::{
    Measured, Stated, acks, acks_beyond_rule, acks_beyond_rule_of_linux, either, goodput,
    segments_of_window, value,
};
use super::ways::{
    KERNEL_BBR, KERNEL_CUBIC_PACED, LINUX_CUBIC, QUINN_BBR, QUINN_CUBIC, QUINN_FEWER,
    QUINN_FEWER_BBR, Route, TACK, WAYS, Why, pantheon, settled,
};
use crate::claim::Claim;
use crate::measure::Values;

/// With fewer paths nothing is claimed about them together.
const LEAST: usize = 6;

pub(super) fn claims(measured: &Measured<'_>) -> Vec<Stated> {
    let mut claims = Vec::new();
    for pair in &PAIRS {
        for ways in [pair.joined, pair.single] {
            let queues = Compared::new(measured, ways, false);
            claims.push(queues.same_goodput());
            claims.extend(queues.acknowledgements(None));
            claims.push(Compared::new(measured, ways, true).no_slower(GOODPUT));
        }
        let has_both = |route: &Route| pair.joined.iter().all(|way| route.has(*way));
        // Policers are compared together.
        for route in settled().filter(|route| has_both(route) && !route.is_policer()) {
            let claim = same_goodput(measured, pair, pair.joined, "as it is", route);
            let claim = match route.settled.map(|settled| settled.why) {
                Some(Why::FullWayBack(most)) => full_way_back(measured, pair, route, most, claim),
                Some(Why::FewSegments) => {
                    let alike = [LINUX_CUBIC, KERNEL_CUBIC_PACED];
                    let same = same_goodput(measured, pair, alike, "as it is, paced", route);
                    claims.push(measured.state(&[route], &alike, same));
                    few_segments(measured, pair.joined, alike, route, claim)
                }
                Some(Why::Window) => {
                    let by_window = by_window(measured, pair, route);
                    let finding = by_window.finding();
                    let reason = format!("{}: {}.", by_window.words, by_window.ours);
                    let mut stated = measured.state(&[route], &pair.joined, by_window);
                    // Where the kernel cannot be asked for RTTmin nothing is known.
                    let unknown = pair.joined.iter().any(|way| {
                        let rtt_min = measured.get(route, *way, value::BBR_RTT_LOW);
                        measured.has(route, *way) && rtt_min.mean.is_nan()
                    });
                    stated.is_made &= !unknown;
                    claims.push(stated);
                    claim.or(reason, finding)
                }
                Some(Why::Nothing) | None => claim,
            };
            claims.push(measured.state(&[route], &pair.joined, claim));
        }
        let policers = |ways| Compared::new(measured, ways, true);
        let [ours, kernel] = pair.joined;
        let mut same = policers([ours, kernel]).same_goodput();
        same.claim = bursts(measured, pair, same.claim);
        claims.push(same);
        let uncompressed = Some(pair.single[1]);
        claims.extend(policers([ours, kernel]).acknowledgements(uncompressed));
        let mut plain = policers([ours, pair.without_gso]).same_goodput();
        if let Some(singly) = pair.ours_without_gso {
            let singly = [singly, pair.without_gso];
            claims.push(policers(singly).same_goodput());
            plain.claim = pairs_of_segments(measured, ours, singly, plain.claim);
        }
        claims.push(plain);
        claims.push(policers([pair.without_gso, kernel]).faster(GOODPUT));
    }
    for ways in [
        [TACK, KERNEL_BBR],
        [TACK, QUINN_BBR],
        [QUINN_FEWER, QUINN_CUBIC],
        [QUINN_FEWER_BBR, QUINN_BBR],
    ] {
        for is_policer in [false, true] {
            let compared = Compared::new(measured, ways, is_policer);
            claims.extend([compared.no_slower(2.0), compared.half_the_acks()]);
        }
    }
    claims
}

/// Excuses a difference of goodput where acknowledgements come in bunches. What is delivered at
/// once has a size: where acknowledgements fill that, longer ones are fewer, and so is what they
/// let go.
fn full_way_back(
    measured: &Measured<'_>,
    pair: &Pair,
    route: Route,
    most: f64,
    claim: Claim,
) -> Claim {
    /// Share that is delivered of what can be while BBR does not drain the path.
    const FULL: f64 = 0.95;
    /// Most points by which the change of goodput may differ from that of the sizes.
    const POINTS: f64 = 3.0;
    let ways = pair.joined;
    let of = |way, name| measured.get(route, way, name);
    // PROBE_RTT: for 0.2 s and a round trip of every ten seconds.
    let busy = |values: &Values| 1.0 - (0.2 + values.get(value::RTT) / 1e3) / 10.0;
    let delivered = |values: &Values| values.get(value::BACK) / busy(values);
    let full = ways.map(|way| measured.of(route, way, delivered).is_at_least(FULL * most));
    let fewer = |ours: &Values, theirs: &Values| {
        100.0 * (theirs.get(value::BACK_SIZE) / ours.get(value::BACK_SIZE) - 1.0)
    };
    let apart = measured.compare(route, ways, |ours, theirs| {
        100.0 * (goodput(ours) / goodput(theirs) - 1.0) - fewer(ours, theirs)
    });
    // Packets that have the length of the kernel's explain nothing.
    let sizes = measured.compare(route, ways, |ours, theirs| fewer(ours, theirs).abs());
    let reason = Finding::all(full)
        .and(sizes.is_at_least(POINTS))
        .and(apart.is_within(-POINTS..=POINTS));
    claim.or(
        format!(
            "Acknowledgements fill the way back: it delivers {} against {} bytes a second (at least {:.0} while BBR does not drain the path), in \
                packets of {} against {} bytes, as UDP makes them longer. That would be {} % of the goodput, and {apart} points are left.",
            of(ways[0], value::BACK),
            of(ways[1], value::BACK),
            FULL * most,
            of(ways[0], value::BACK_SIZE),
            of(ways[1], value::BACK_SIZE),
            measured.compare(route, ways, fewer),
        ),
        measured.judged(&[route], &ways, reason),
    )
}

/// Excuses a difference where the window has a few segments by the rules of CUBIC, and by pacing.
/// Linux counts whole segments, and rounds down what is left of the window after a loss; this stack
/// follows RFC 9438 in bytes, and paces. The ways `alike`, this stack with Linux' rules and the
/// kernel paced, must have the same goodput; the rules must slow this stack down, and by no more
/// than a segment of the window they make; and pacing alone must not make the kernel's goodput.
fn few_segments(
    measured: &Measured<'_>,
    ways: [usize; 2],
    alike: [usize; 2],
    route: Route,
    claim: Claim,
) -> Claim {
    let ([ours, kernel], [linux, paced]) = (ways, alike);
    let all = [ours, linux, paced, kernel];
    let window = all.map(|way| measured.of(route, way, segments_of_window));
    let more = |ways| measured.change(route, ways, goodput);
    let left = more(alike);
    let beyond = measured.compare(route, [ours, linux], |ours, linux| {
        100.0 * (goodput(ours) / goodput(linux) - 1.0 - 1.0 / segments_of_window(linux))
    });
    let reason = left
        .is_within(-GOODPUT..=GOODPUT)
        .and(more([ours, linux]).is_at_least(0.0))
        .and(beyond.is_at_most(0.0))
        .and(more([kernel, paced]).is_within(-GOODPUT..=GOODPUT));
    claim.or(
        format!(
            "The window has a few segments. Linux counts whole ones, and rounds 0.7 of the window down after a loss; this stack follows RFC 9438 in \
                bytes, and so has {} % more goodput than by Linux' rules. It paces, and the kernel, which does not, has {} % more so than paced. With both \
                alike {left} % is the difference. The windows have {} segments, {} by Linux' rules, {} with the kernel paced, and {} as it is.",
            more([ours, linux]),
            more([kernel, paced]),
            window[0],
            window[1],
            window[2],
            window[3],
        ),
        measured.judged(&[route], &all, reason),
    )
}

/// Excuses a difference on policers by the kernel's bursts: without GSO, and paced, it is nearer to
/// this stack than as it is, on the mean over the paths of how much of the difference is left.
fn bursts(measured: &Measured<'_>, pair: &Pair, claim: Claim) -> Claim {
    let [ours, kernel] = pair.joined;
    let ways = [ours, kernel, pair.without_gso];
    let paths = pantheon().filter(Route::is_policer);
    let paths: Vec<_> = paths
        .map(|path| once_settled(measured, path, &ways))
        .collect();
    let each = paths.iter().map(|path| {
        let ratio = |way| {
            let ratio = |a: &Values, b: &Values| (goodput(a) / goodput(b)).ln().abs();
            measured.compare(*path, [ours, way], ratio).mean
        };
        ratio(pair.without_gso) / ratio(kernel)
    });
    let left = Estimate::of(&each.collect::<Vec<_>>());
    let slowed = [ours, pair.without_gso].map(|way| {
        let faster = log_ratio(measured, &paths, [way, kernel]);
        faster.is_at_least(0.0)
    });
    let slowed = Finding::all(slowed);
    claim.or(
        format!(
            "The kernel sends several segments at once: by GSO, and with CUBIC, which it does not pace, also those that one acknowledgement \
                releases. A policer drops the second. Beside the kernel without GSO and with pacing {} % of the difference is left (of the \
                logarithm of the ratio, on the mean; at most 50).",
            left.times(100.0)
        ),
        measured.judged(&paths, &ways, slowed.and(left.is_below(0.5))),
    )
}

/// Excuses a difference to the kernel without GSO on policers by segments that this stack sends two
/// by two where a pacing quantum holds so many. The ways `singly`, this stack and the kernel both
/// without GSO, must have the same goodput.
fn pairs_of_segments(
    measured: &Measured<'_>,
    ours: usize,
    singly: [usize; 2],
    claim: Claim,
) -> Claim {
    let gained = Compared::new(measured, [singly[0], ours], true).change(goodput);
    let singly = Compared::new(measured, singly, true);
    let left = singly.change(goodput);
    let finding = left.is_within(-GOODPUT..=GOODPUT);
    claim.or(
        format!(
            "At high rates this stack sends two segments or more together, and a policer drops the second. Without GSO, which sends each by itself, it has \
                {gained} % more goodput, and {left} % is the difference to the kernel's without GSO, on the mean over the paths."
        ),
        measured.judged(&singly.paths, &singly.ways, finding),
    )
}

/// Logarithm of how many times as much goodput the first way has as the second, path by path: its
/// mean is that of factors, which differ by a hundred over policers.
fn log_ratio(measured: &Measured<'_>, paths: &[Route], ways: [usize; 2]) -> Estimate {
    let ratio = |a: &Values, b: &Values| (goodput(a) / goodput(b)).ln();
    let each = paths.iter();
    let each = each.map(|path| measured.compare(*path, ways, ratio).mean);
    Estimate::of(&each.collect::<Vec<_>>())
}

/// A path once senders have settled on it, where these ways were measured then, or else as it is.
fn once_settled(measured: &Measured<'_>, path: Route, ways: &[usize]) -> Route {
    let same = |late: &Route| late.settled.is_some_and(|it| it.path == path.name);
    let all = |late: &Route| ways.iter().all(|way| measured.has(*late, *way));
    settled()
        .find(|late| same(late) && all(late))
        .unwrap_or(path)
}

/// Two ways on the paths where both were run: on policers, which drop the second of two packets
/// that come together, or on those with a queue. A kernel that sends several packets at once (GSO,
/// no pacing) and a sender that spaces them are alike on the latter alone: beside policers the
/// kernel without GSO, and paced, says how much of the difference that is.
struct Compared<'a> {
    is_policer: bool,
    measured: &'a Measured<'a>,
    ways: [usize; 2],
    paths: Vec<Route>,
}

impl<'a> Compared<'a> {
    fn new(measured: &'a Measured<'a>, ways: [usize; 2], is_policer: bool) -> Self {
        // Some seed of both.
        let has = |path: &Route| {
            let both = measured.compare(*path, ways, |_, _| 1.0);
            path.is_policer() == is_policer && both.mean == 1.0
        };
        Self {
            is_policer,
            measured,
            ways,
            paths: pantheon().filter(has).collect(),
        }
    }

    /// A claim on the mean over the paths.
    fn words(&self, claim: &str) -> String {
        let [first, second] = self.ways.map(|way| WAYS[way].name);
        let paths = match self.is_policer {
            true => "The Pantheon's policers",
            false => "The Pantheon's paths with a queue",
        };
        format!("{paths}, {first} beside {second}: on the mean over them, {claim}")
    }

    /// By how many percent the first way has more, path by path.
    fn change(&self, of: fn(&Values) -> f64) -> Estimate {
        let each = self.paths.iter();
        let each = each.map(|path| self.measured.change(*path, self.ways, of).mean);
        Estimate::of(&each.collect::<Vec<_>>())
    }

    /// That the change of `of`, on the mean over the paths, is within `bounds`, percent. `words`
    /// say that of the first way beside the second one.
    fn claim(&self, words: &str, of: fn(&Values) -> f64, bounds: RangeInclusive<f64>) -> Stated {
        let change = self.change(of);
        let each = self.paths.iter();
        let each = each.map(|path| (path.name, self.measured.change(*path, self.ways, of).mean));
        let outside: Vec<_> = each
            .filter(|(_, change)| !bounds.contains(change))
            .map(|(name, change)| format!("{name} {change:+.1} %"))
            .collect();
        let finding = change.is_within(bounds);
        let claim = Claim::new(
            self.words(words),
            "–",
            format!(
                "{change} % over {} paths; outside by themselves {}: {}",
                self.paths.len(),
                outside.len(),
                outside.join("; ")
            ),
            self.measured.judged(&self.paths, &self.ways, finding),
        );
        Stated {
            claim,
            is_made: self.paths.len() >= LEAST,
        }
    }

    /// The same of goodput: of a path on which ten seconds are too short, once senders have
    /// settled, where that was measured.
    fn once_settled(&self) -> Self {
        let late = |path: &Route| once_settled(self.measured, *path, &self.ways);
        Self {
            paths: self.paths.iter().map(late).collect(),
            ..*self
        }
    }

    fn same_goodput(&self) -> Stated {
        let words = format!("the same goodput, to {GOODPUT} %");
        let bounds = -GOODPUT..=GOODPUT;
        self.once_settled().claim(&words, goodput, bounds)
    }

    fn same_acks(&self) -> Stated {
        let words = format!("as many acknowledgements for each data packet, to {ACKS} %");
        self.claim(&words, acks, -ACKS..=ACKS)
    }

    /// Of acknowledgements: as many, or each side sends what its rules say of the order in which
    /// packets come (see [`RULE`]); and the latter by itself, since what paths differ by may leave
    /// the former undecided. Both on the mean over the paths.
    ///
    /// Compression of SACKs saves more than the kernel's counter of it says. So the kernel may send
    /// less than its rules say if it does compress, GRO joins nothing, and the way `uncompressed`,
    /// the kernel without GRO and compression, follows them.
    fn acknowledgements(&self, uncompressed: Option<usize>) -> [Stated; 2] {
        let [ours, kernel] = self.ways;
        let beyond = |way, of: fn(&Values) -> f64| {
            let each = self.paths.iter();
            let each = each.map(|path| self.measured.of(*path, way, of).mean);
            Estimate::of(&each.collect::<Vec<_>>())
        };
        let mine = beyond(ours, acks_beyond_rule);
        let theirs = beyond(kernel, acks_beyond_rule_of_linux);
        let mut ways = self.ways.to_vec();
        let mut follows = theirs.is_within(RULE);
        let mut without = String::new();
        let has = |way: &usize| {
            let mut paths = self.paths.iter();
            paths.all(|path| self.measured.has(*path, *way))
        };
        if let Some(way) = uncompressed.filter(has) {
            let plain = beyond(way, acks_beyond_rule_of_linux);
            // 1 for each path on which it does.
            let compressed = beyond(kernel, |values| {
                f64::from(values.get(value::TCP_COMPRESSED) > 0.0)
            });
            let packets = beyond(kernel, |values| values.get(value::TCP_PACKETS));
            let saves = Finding::all([
                theirs.is_at_most(*RULE.end()),
                plain.is_within(RULE),
                compressed.is_at_least(1.0),
                packets.is_at_least(SINGLE),
            ]);
            follows = either(follows, saves);
            without = format!(
                ", and {plain} without GRO and compression, to a program that reads every 20 ms"
            );
            ways.push(way);
        }
        let finding = mine.is_within(RULE).and(follows);
        let finding = self.measured.judged(&self.paths, &ways, finding);
        let found = format!("{mine} for each packet more than that, and {theirs}{without}");
        let same = self.same_acks();
        let rules = Claim::new(
            self.words(
                "each acknowledges every second packet in order and at once each other one, and the kernel each that makes its window grow, less \
                    what compression of SACKs saves (to 5 acknowledgements in 100 packets)",
            ),
            "–",
            found.clone(),
            finding,
        );
        let reason = format!(
            "The order of the packets and compression of SACKs make the difference, by the rules of either side: {found}."
        );
        [
            Stated {
                claim: same.claim.or(reason, finding),
                ..same
            },
            Stated {
                claim: rules,
                ..same
            },
        ]
    }

    /// By at least so many percent, on the geometric mean.
    fn faster(&self, least: f64) -> Stated {
        let late = self.once_settled();
        let ratio = log_ratio(self.measured, &late.paths, self.ways);
        let finding = ratio.is_at_least((1.0 + least / 100.0).ln());
        let claim = Claim::new(
            self.words(&format!("at least {least} % more goodput")),
            "–",
            format!(
                "by a factor of {:.3} on the geometric mean over {} paths (its logarithm is {ratio})",
                ratio.mean.exp(),
                late.paths.len()
            ),
            self.measured.judged(&late.paths, &self.ways, finding),
        );
        Stated {
            claim,
            is_made: late.paths.len() >= LEAST,
        }
    }

    /// By at most so many percent.
    fn no_slower(&self, least: f64) -> Stated {
        let words = format!("no less goodput (by at most {least} %)");
        self.once_settled()
            .claim(&words, goodput, -least..=f64::INFINITY)
    }

    fn half_the_acks(&self) -> Stated {
        let words = "at most half as many acknowledgements";
        self.claim(words, acks, f64::NEG_INFINITY..=-50.0)
    }
}
