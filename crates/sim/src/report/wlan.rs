//! Figures of the wireless network.

use serde::Serialize;
use tack_base::time::nanos;
use tack_wlan::world::Airtime;
use tack_wlan::{NodeId, World};

use super::hack::HackReport;

/// Figures of the wireless network; the warm-up is left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WlanReport {
    /// PPDUs on the air, of all radios.
    pub ppdus: u64,
    /// PPDUs that wanted a response and were spoilt at their receiver by another transmission.
    pub collisions: u64,
    /// Those among all PPDUs that wanted a response.
    pub collision_probability: f64,
    /// The same for the first PPDU of each channel access that wanted a response: with RTS that is
    /// the RTS, while the data behind a CTS, which other radios leave alone, counts in
    /// `collision_probability` too.
    pub access_collision_probability: f64,
    /// PPDUs without response, for whatever reason, among all that wanted one.
    pub unanswered_probability: f64,
    /// Shares of the time.
    pub airtime: AirtimeReport,
    /// Median over time of the access point's queue, packets.
    pub ap_queue_p50: u64,
    /// The longest it was.
    pub ap_queue_max: u64,
    /// Packets dropped because a MAC queue was full, of all radios.
    pub queue_drops: u64,
    /// Data frames sent again, of all radios.
    pub retries: u64,
    /// Data frames given up after the last attempt, of all radios.
    pub retry_drops: u64,
    /// How often receivers released frames because a frame before them had not come in time, of
    /// all radios.
    pub reorder_timeouts: u64,
    /// Data frames in a PPDU, on average.
    pub mpdus_per_ppdu: f64,
    /// Transport acknowledgements that a filter took out of a MAC queue for a newer one, of all
    /// radios.
    pub acks_filtered: u64,
    /// Transport acknowledgements that travelled inside link acknowledgements and were rebuilt.
    pub acks_in_link_acks: u64,
    /// TCP/HACK, where it is on: all radios together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hack: Option<HackReport>,
    /// Each radio: the access point, its stations, then those of a neighbouring network.
    pub stations: Vec<StationReport>,
}

/// Shares of the time, 0 to 1. Those up to `idle` add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AirtimeReport {
    /// Data frames.
    pub data: f64,
    /// Data frames with transport acknowledgements.
    pub tcp_ack: f64,
    /// ACK, Block ACK and their requests, RTS, CTS, beacons.
    pub control: f64,
    /// Transmissions that spoil each other.
    pub collision: f64,
    /// Interframe spaces, backoff and timeouts of radios that have something to send.
    pub access: f64,
    /// Nothing to send.
    pub idle: f64,
    /// What of `data` and `control` a neighbouring network sent.
    pub neighbour: f64,
}

/// Counters of one radio.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationReport {
    /// `ap`, `sta0`, …, `neighbour_ap`, `contender0`, …
    pub name: String,
    /// PPDUs sent, responses and beacons included.
    pub ppdus: u64,
    /// PPDUs sent that wanted a response.
    pub attempts: u64,
    /// Those spoilt by another transmission.
    pub collisions: u64,
    /// Channel accesses: the first PPDU of each that wanted a response.
    pub accesses: u64,
    /// Those spoilt by another transmission.
    pub access_collisions: u64,
    /// Those without response, for whatever reason.
    pub unanswered: u64,
    /// Data frames sent.
    pub mpdus: u64,
    /// Data frames sent again.
    pub retries: u64,
    /// Data frames given up.
    pub retry_drops: u64,
    /// Data frames received, each counted once.
    pub received: u64,
    /// Bytes of the packets in them.
    pub received_bytes: u64,
    /// Data frames received again, or after the reordering window had passed them.
    pub duplicates: u64,
    /// How often frames were released because a frame before them had not come in time.
    pub reorder_timeouts: u64,
    /// Packets dropped because the queue was full.
    pub queue_drops: u64,
    /// Transport acknowledgements that a filter took out of the queue for a newer one.
    pub acks_filtered: u64,
    /// Median over time of the queue, packets.
    pub queue_p50: u64,
    /// 99th percentile over time.
    pub queue_p99: u64,
    /// The longest it was.
    pub queue_max: u64,
    /// TCP/HACK, where it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hack: Option<HackReport>,
}

impl From<Airtime> for AirtimeReport {
    fn from(airtime: Airtime) -> Self {
        let total = nanos(airtime.total()).max(1) as f64;
        let share = |part| nanos(part) as f64 / total;
        Self {
            data: share(airtime.data),
            tcp_ack: share(airtime.transport_ack),
            control: share(airtime.control),
            collision: share(airtime.collision),
            access: share(airtime.access),
            idle: share(airtime.idle),
            neighbour: share(airtime.neighbour),
        }
    }
}

impl WlanReport {
    pub(crate) fn new<M: Clone>(world: &mut World<M>) -> Self {
        let airtime = world.airtime().into();
        let stations: Vec<_> = (0..world.radios())
            .map(|node| StationReport::new(world, NodeId(node)))
            .collect();
        let sum = |field: fn(&StationReport) -> u64| stations.iter().map(field).sum::<u64>();
        let attempts = sum(|station| station.attempts).max(1) as f64;
        let collisions = sum(|station| station.collisions);
        let data_ppdus: u64 = (0..world.radios())
            .map(|node| world.stats(NodeId(node)).data_ppdus)
            .sum();
        let hack = stations.iter().filter_map(|station| station.hack);
        let hack = hack.reduce(HackReport::plus);
        Self {
            ppdus: sum(|station| station.ppdus),
            collisions,
            collision_probability: collisions as f64 / attempts,
            access_collision_probability: sum(|station| station.access_collisions) as f64
                / sum(|station| station.accesses).max(1) as f64,
            unanswered_probability: sum(|station| station.unanswered) as f64 / attempts,
            airtime,
            ap_queue_p50: stations[0].queue_p50,
            ap_queue_max: stations[0].queue_max,
            queue_drops: sum(|station| station.queue_drops),
            retries: sum(|station| station.retries),
            retry_drops: sum(|station| station.retry_drops),
            reorder_timeouts: sum(|station| station.reorder_timeouts),
            mpdus_per_ppdu: sum(|station| station.mpdus) as f64 / data_ppdus.max(1) as f64,
            acks_filtered: sum(|station| station.acks_filtered),
            acks_in_link_acks: hack.map_or(0, |hack| hack.rebuilt),
            hack,
            stations,
        }
    }
}

impl StationReport {
    fn new<M: Clone>(world: &World<M>, node: NodeId) -> Self {
        let stats = world.stats(node);
        let queue = world.queue_stats(node);
        let members = world.members();
        let name = match node.0 {
            0 => "ap".into(),
            number if number < members => format!("sta{}", number - 1),
            number if number == members => "neighbour_ap".into(),
            number => format!("contender{}", number - members - 1),
        };
        Self {
            name,
            ppdus: stats.ppdus,
            attempts: stats.attempts,
            collisions: stats.collisions,
            accesses: stats.accesses,
            access_collisions: stats.access_collisions,
            unanswered: stats.unanswered,
            mpdus: stats.mpdus,
            retries: stats.retries,
            retry_drops: stats.retry_drops,
            received: stats.received,
            received_bytes: stats.received_bytes,
            duplicates: stats.duplicates,
            reorder_timeouts: stats.reorder_timeouts,
            queue_drops: stats.queue_drops,
            acks_filtered: stats.superseded,
            queue_p50: queue.p50,
            queue_p99: queue.p99,
            queue_max: stats.queue_max,
            hack: world.hack_stats(node).map(HackReport::new),
        }
    }
}
