//! What was measured of each way on each path.

use tack_stats::{Estimate, Finding};

use super::ways::{self, Route, cell, seeds};
use crate::claim::Claim;
use crate::figure::Depth;
use crate::measure::Values;
use crate::point::Point;
use crate::results::Results;

/// The names of values that the program that runs a point keeps.
pub(super) mod value {
    /// Goodput, bits a second.
    pub(in super::super) const GOODPUT: &str = "goodput_bps";
    /// Acknowledgements for each data packet that arrived.
    pub(in super::super) const ACKS: &str = "acks_per_data";
    /// Payload for each data packet that arrived, bytes.
    pub(in super::super) const PAYLOAD: &str = "bytes_per_packet";
    /// For each data packet that arrived, those that were acknowledged at once because segments
    /// were missing before them, or were missing themselves. Of the kernel a count of arrivals, of
    /// this stack the share of them in its own count of why it acknowledged.
    pub(in super::super) const DISORDERED: &str = "disordered";
    /// For each data packet that arrived: packets that the receiving kernel's TCP got, those of
    /// them that it joined with others while the program held the socket, acknowledgements of its
    /// timer.
    pub(in super::super) const TCP_PACKETS: &str = "tcp.packets";
    pub(in super::super) const TCP_MERGED: &str = "tcp.merged";
    pub(in super::super) const TCP_DELAYED: &str = "tcp.delayed";
    /// The same of acknowledgements that compression of SACKs saved the receiving kernel, and of
    /// those that answer one packet and announce a larger window than the one before.
    pub(in super::super) const TCP_COMPRESSED: &str = "tcp.compressed";
    pub(in super::super) const TCP_WIDENING: &str = "tcp.widening";
    /// For each datagram that this stack's receiver got: the system calls that delivered them.
    pub(in super::super) const BATCHES: &str = "batches";
    /// What the path delivered to the sender: bytes a second, and bytes for each packet, with the
    /// headers of IP.
    pub(in super::super) const BACK: &str = "back.bytes_per_s";
    pub(in super::super) const BACK_SIZE: &str = "back.bytes_per_packet";
    /// The sender's smoothed round-trip time, milliseconds; its congestion window over that, bits a
    /// second.
    pub(in super::super) const RTT: &str = "sender.rtt_ms";
    pub(in super::super) const WINDOW_RATE: &str = "sender.window_bps";
    /// The median of its congestion window, bytes; RTTmin as its BBR had it, milliseconds, from
    /// the tenth percentile to the ninetieth.
    pub(in super::super) const WINDOW: &str = "sender.window_bytes";
    pub(in super::super) const BBR_RTT_LOW: &str = "sender.cc_min_rtt_p10_ms";
    pub(in super::super) const BBR_RTT_HIGH: &str = "sender.cc_min_rtt_p90_ms";
    /// What the sender sent again, as a share of what it sent; how often flow control stopped it.
    pub(in super::super) const LOST: &str = "sender.lost_share";
    pub(in super::super) const BLOCKED: &str = "sender.blocked";
    /// Shares of the time on the air.
    pub(in super::super) const AIR_ACK: &str = "air.ack";
    pub(in super::super) const AIR_DATA: &str = "air.data";
    pub(in super::super) const AIR_CONTROL: &str = "air.control";
    pub(in super::super) const AIR_COLLISION: &str = "air.collision";
    pub(in super::super) const AIR_ACCESS: &str = "air.access";
    pub(in super::super) const AIR_IDLE: &str = "air.idle";
    /// 1 when the machine kept up.
    pub(in super::super) const TRUSTED: &str = "trusted";
    /// 1 when the run could not be made here.
    pub(in super::super) const SKIPPED: &str = "skipped";
}

/// A claim, and whether what it needs was measured.
pub(super) struct Stated {
    pub(super) claim: Claim,
    pub(super) is_made: bool,
}

/// What was measured.
pub(super) struct Measured<'a> {
    pub(super) depth: &'a Depth,
    pub(super) results: &'a Results,
}

impl Measured<'_> {
    pub(super) fn get(&self, route: Route, way: usize, name: &str) -> Estimate {
        self.of(route, way, |values| values.get(name))
    }

    pub(super) fn percent(&self, route: Route, way: usize, name: &str) -> Estimate {
        self.get(route, way, name).times(100.0)
    }

    pub(super) fn mbps(&self, route: Route, way: usize) -> Estimate {
        self.get(route, way, value::GOODPUT).times(1e-6)
    }

    /// What `of` says of the runs of a way.
    pub(super) fn of(&self, route: Route, way: usize, of: impl Fn(&Values) -> f64) -> Estimate {
        self.over_seeds([(route, way)], |[values]| of(values))
    }

    /// By how many percent `of` is more for the first way than for the second one, seed by seed.
    pub(super) fn change(
        &self,
        route: Route,
        ways: [usize; 2],
        of: fn(&Values) -> f64,
    ) -> Estimate {
        self.compare(route, ways, |a, b| 100.0 * (of(a) / of(b) - 1.0))
    }

    /// What `of` says of the runs of two ways, seed by seed.
    pub(super) fn compare(
        &self,
        route: Route,
        ways: [usize; 2],
        of: impl Fn(&Values, &Values) -> f64,
    ) -> Estimate {
        self.over_seeds(ways.map(|way| (route, way)), |[a, b]| of(a, b))
    }

    /// The mean over those seeds with which each of `ways` was run: paths may have been measured
    /// with different numbers of them.
    fn over_seeds<const N: usize>(
        &self,
        ways: [(Route, usize); N],
        of: impl Fn([&Values; N]) -> f64,
    ) -> Estimate {
        let cells = ways.map(|(route, way)| cell(self.depth, route, way));
        let values = seeds(self.depth).filter_map(|seed| {
            let found = cells.iter().map(|cell| self.run(&cell.at(seed)));
            let found: Vec<&Values> = found.collect::<Option<_>>()?;
            Some(of(found.try_into().ok()?))
        });
        Estimate::of(&values.collect::<Vec<_>>())
    }

    /// The values of a run that could be made here.
    fn run(&self, point: &Point) -> Option<&Values> {
        let values = self.results.get(point)?;
        (values.get(value::SKIPPED) != 1.0).then_some(values)
    }

    /// Whether a way was run on a path, with any seed.
    pub(super) fn has(&self, route: Route, way: usize) -> bool {
        let cell = cell(self.depth, route, way);
        seeds(self.depth).any(|seed| self.run(&cell.at(seed)).is_some())
    }

    /// Whether a way was run on a path, or was to be and could not.
    pub(super) fn was_tried(&self, route: Route, way: usize) -> bool {
        let cell = cell(self.depth, route, way);
        seeds(self.depth).any(|seed| self.results.has(&cell.at(seed)))
    }

    /// The paths about which claims are made one by one, then all others that have results.
    pub(super) fn routes(&self) -> Vec<Route> {
        let mut routes = ways::routes(self.depth);
        let others = ways::pantheon().chain(ways::settled()).filter(|other| {
            let is_new = routes.iter().all(|route| route.name != other.name);
            is_new && other.ways().any(|way| self.was_tried(*other, way))
        });
        let others: Vec<_> = others.collect();
        routes.extend(others);
        routes
    }

    /// `claim`, which needs these ways on these routes: made if each was run, or if there is no
    /// result at all, so that nothing measured refutes every claim.
    pub(super) fn state(&self, routes: &[Route], ways: &[usize], claim: Claim) -> Stated {
        let each = |route: &Route| ways.iter().all(|way| self.has(*route, *way));
        let nothing =
            || !ways::all().any(|route| route.ways().any(|way| self.was_tried(route, way)));
        Stated {
            is_made: routes.iter().all(each) || nothing(),
            claim,
        }
    }

    /// A claim about these ways on these routes is decided only by runs that can be trusted.
    pub(super) fn judged(&self, routes: &[Route], ways: &[usize], finding: Finding) -> Finding {
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

pub(super) fn goodput(values: &Values) -> f64 {
    values.get(value::GOODPUT)
}

pub(super) fn acks(values: &Values) -> f64 {
    values.get(value::ACKS)
}

/// Segments of the sender's congestion window, on the mean.
pub(super) fn segments_of_window(values: &Values) -> f64 {
    let bytes = values.get(value::WINDOW_RATE) / 8.0 * values.get(value::RTT) / 1e3;
    bytes / values.get(value::PAYLOAD)
}

/// The median of its congestion window, in segments.
pub(super) fn median_window(values: &Values) -> f64 {
    values.get(value::WINDOW) / values.get(value::PAYLOAD)
}

/// Acknowledgements for each data packet that arrived of a receiver that acknowledges every second
/// one in order, and at once each that is not, or that fills a hole.
pub(super) fn acks_by_rule(values: &Values) -> f64 {
    f64::midpoint(1.0, values.get(value::DISORDERED))
}

/// How many more there are than that.
pub(super) fn acks_beyond_rule(values: &Values) -> f64 {
    acks(values) - acks_by_rule(values)
}

/// The same of Linux as it is. It answers a packet alone that makes its window grow
/// (`tcp_grow_window` in net/ipv4/tcp_input.c), and compresses SACKs.
pub(super) fn acks_by_rule_of_linux(values: &Values) -> f64 {
    acks_by_rule(values) + values.get(value::TCP_WIDENING) / 2.0 - values.get(value::TCP_COMPRESSED)
}

/// How many more there are than that.
pub(super) fn acks_beyond_rule_of_linux(values: &Values) -> f64 {
    acks(values) - acks_by_rule_of_linux(values)
}

/// Acknowledgements for each packet that the kernel's TCP handled after it had joined some, those
/// that compression of SACKs saved included.
pub(super) fn acks_of_handled(values: &Values) -> f64 {
    (acks(values) + values.get(value::TCP_COMPRESSED))
        / (values.get(value::TCP_PACKETS) - values.get(value::TCP_MERGED))
}

/// Acknowledgements of this stack for each batch.
pub(super) fn acks_of_batches(values: &Values) -> f64 {
    acks(values) / values.get(value::BATCHES)
}

/// One of two holds. It is decided when one surely does, or both surely do not.
pub(super) fn either(a: Finding, b: Finding) -> Finding {
    Finding {
        holds: a.holds || b.holds,
        is_decided: a.is_sure() || b.is_sure() || (a.is_decided && b.is_decided),
    }
}

pub(super) fn show(estimates: &[(Route, Estimate)], unit: &str) -> String {
    estimates
        .iter()
        .map(|(route, estimate)| format!("{} {estimate}{unit}", route.name))
        .collect::<Vec<_>>()
        .join(", ")
}
