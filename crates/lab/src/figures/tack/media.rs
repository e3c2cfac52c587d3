//! The air of the wireless figures: ideal, or with neighbours in it.

use crate::figure::Depth;
use crate::figures::readings::{mbps, seconds};
use crate::figures::tack::links::Link;
use crate::measure::Values;
use crate::point::Cell;
use crate::results::Results;
use tack_stats::Estimate;

/// Neighbours that have a load of their own.
const NEIGHBOURS: u32 = 10;
/// Payload of their packets, as scenarios have it, and the packets, bytes.
const PAYLOAD: f64 = 1_472.0;
const PACKET: f64 = 1_500.0;

/// Who else is on the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::figures) enum Medium {
    /// Nobody else is on the air.
    Ideal,
    /// Ten neighbours whose packets, each sent alone, would take so many percent of the air.
    Load(u32),
    /// So many neighbours that always have something to send.
    Saturated(u32),
}

impl Medium {
    /// How plots and claims call it.
    pub(in crate::figures) fn name(self) -> String {
        match self {
            Self::Ideal => "ideal medium".into(),
            Self::Load(percent) => format!("{NEIGHBOURS} neighbours with {percent} % load"),
            Self::Saturated(count) => format!("{count} saturated neighbours"),
        }
    }

    /// The keys of a scenario for it.
    pub(in crate::figures) fn settings(self, link: Link) -> Vec<String> {
        match self {
            Self::Ideal => vec!["wlan.contenders=0".into()],
            Self::Load(percent) => vec![
                format!("wlan.contenders={NEIGHBOURS}"),
                format!("wlan.contender_rate={}kbps", rate_kbps(link, percent)),
            ],
            Self::Saturated(count) => vec![format!("wlan.contenders={count}")],
        }
    }

    /// `cell` on this medium.
    pub(in crate::figures) fn of(self, cell: Cell, link: Link) -> Cell {
        self.settings(link).into_iter().fold(cell, Cell::set)
    }

    /// What part of their load the neighbours get carried; not a number where there is none.
    pub(in crate::figures) fn carried(self, link: Link, values: &Values) -> f64 {
        let Self::Load(percent) = self else {
            return f64::NAN;
        };
        let offered = rate_kbps(link, percent) * 1e3 * f64::from(NEIGHBOURS) * PACKET / PAYLOAD;
        values.get("wlan.neighbour_ap.received_bytes") * 8.0 / seconds(values) / offered
    }
}

/// Payload that each neighbour offers, kbit/s, for all of them to take `percent` of the air.
fn rate_kbps(link: Link, percent: u32) -> f64 {
    let packets = f64::from(percent) / 100.0 / f64::from(NEIGHBOURS) / (link.exchange_us / 1e6);
    (packets * PAYLOAD * 8.0 / 1e3).round()
}

/// A pair of runs over one medium, with delayed ACK and with TACK, compared with UDP without
/// acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(in crate::figures) struct Bookkeeping {
    /// Goodput, Mbit/s: delayed ACK, TACK, and UDP's as far as segments of TCP would carry it.
    pub(in crate::figures) goodput: [Estimate; 3],
    /// Accesses of the access point, a second: delayed ACK, TACK.
    pub(in crate::figures) sender: [f64; 2],
    /// Accesses of the receiver, a second.
    pub(in crate::figures) receiver: [f64; 2],
    /// Share of all accesses that the receiver makes, neighbours' included.
    pub(in crate::figures) receiver_share: [f64; 2],
    /// Share of the time that the neighbours' frames take.
    pub(in crate::figures) neighbours: [f64; 2],
    /// Share of the time with nothing to send.
    pub(in crate::figures) idle: [f64; 2],
    /// Share of the time that acknowledgements take: their frames, collisions, and of waiting and
    /// link control as large a part as the receiver has of our accesses. Without neighbours.
    pub(in crate::figures) acks: [f64; 2],
}

impl Bookkeeping {
    /// From the cells of delayed ACK, TACK and UDP without acknowledgements.
    pub(in crate::figures) fn new(
        depth: &Depth,
        results: &Results,
        ways: &[Cell; 2],
        udp: &Cell,
        seeds: [(u64, u64); 2],
    ) -> Self {
        let [tcp_seeds, udp_seeds] = seeds.map(|(quick, full)| depth.seeds(quick, full));
        let both = |read: fn(&Values) -> f64| {
            ways.each_ref()
                .map(|cell| results.estimate(cell, tcp_seeds.clone(), read))
        };
        let [delayed, tack] = both(mbps);
        let both = |read: fn(&Values) -> f64| both(read).map(|one| one.mean);
        // Of packets of 1,500 bytes, segments of TCP carry 1,448.
        let udp = results
            .estimate(udp, udp_seeds, mbps)
            .times(1_448.0 / PAYLOAD);
        Self {
            goodput: [delayed, tack, udp],
            sender: both(|values| values.get("wlan.ap.attempts") / seconds(values)),
            receiver: both(|values| values.get("wlan.sta0.attempts") / seconds(values)),
            receiver_share: both(|values| values.get("wlan.sta0.attempts") / accesses(values)),
            neighbours: both(|values| values.get("wlan.airtime.neighbour")),
            idle: both(|values| values.get("wlan.airtime.idle")),
            acks: both(|values| {
                let air = |part: &str| values.get(&format!("wlan.airtime.{part}"));
                let receiver = values.get("wlan.sta0.attempts");
                let part = receiver / (receiver + values.get("wlan.ap.attempts"));
                air("tcp_ack") + air("collision") + part * (air("control") + air("access"))
            }),
        }
    }

    /// How much more than delayed ACK there is to have without any acknowledgements, percent.
    pub(in crate::figures) fn ceiling(&self) -> f64 {
        100.0 * (self.goodput[2].mean / self.goodput[0].mean - 1.0)
    }

    /// What part of UDP's goodput TACK has, percent.
    pub(in crate::figures) fn share(&self) -> Estimate {
        part(self.goodput[1], self.goodput[2])
    }

    /// What part of UDP's goodput a gain of `percent` over delayed ACK would take, percent.
    pub(in crate::figures) fn needed(&self, percent: f64) -> Estimate {
        part(self.goodput[0], self.goodput[2]).times(1.0 + percent / 100.0)
    }
}

/// One quantity as a part of an independent one, percent: to the first order in their spread.
fn part(one: Estimate, whole: Estimate) -> Estimate {
    let share = one.mean / whole.mean;
    let off = one.less(whole.times(share)).times(100.0 / whole.mean);
    Estimate {
        mean: 100.0 * share,
        ..off
    }
}

/// Accesses of all radios that wanted a response.
fn accesses(values: &Values) -> f64 {
    values.get("wlan.collisions") / values.get("wlan.collision_probability")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tack::links::LINKS;

    #[test]
    fn a_load_is_the_air_that_its_packets_take_alone() {
        for link in LINKS {
            let [half, tenth] = [50, 10].map(|percent| {
                let packets = rate_kbps(link, percent) * 1e3 / 8.0 / PAYLOAD;
                packets * f64::from(NEIGHBOURS) * link.exchange_us / 1e6
            });
            assert!((half - 0.5).abs() < 0.01 && (tenth - 0.1).abs() < 0.005);
        }
        let settings = Medium::Load(50).settings(LINKS[0]);
        assert_eq!(
            settings,
            ["wlan.contenders=10", "wlan.contender_rate=446kbps"]
        );
    }
}
