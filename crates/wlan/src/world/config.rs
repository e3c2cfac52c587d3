//! Settings of a network.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use crate::frame::NodeId;
use crate::mac::MacConfig;
use crate::mac::hack::HackConfig;
use crate::mac::station::Beacons;
use crate::phy::ErrorModel;

/// Stations of a neighbouring network on the same channel, with the same PHY and MAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contenders {
    /// How many stations; their access point comes on top when there are any.
    pub stations: u16,
    /// Length of their packets, bytes.
    pub packet: u32,
    /// How much each of them has to send.
    pub offer: Offer,
}

/// How much a station of the neighbouring network has to send to its access point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Offer {
    /// More than the air carries: its queue never runs dry.
    #[default]
    Saturated,
    /// A load of its own, as a Poisson process.
    Poisson {
        /// Mean time between packets. Shorter ones than a microsecond make for very long runs.
        interval: Duration,
    },
}

impl Contenders {
    /// Whether they always have something to send.
    pub fn are_saturated(&self) -> bool {
        self.offer == Offer::Saturated
    }

    pub(super) fn radios(self) -> usize {
        if self.stations == 0 {
            0
        } else {
            usize::from(self.stations) + 1
        }
    }
}

/// When the host hears of the frames of an A-MPDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HostInterrupt {
    /// Of each as it ends, while the rest is still on the air, as in ns-3.
    #[default]
    Frame,
    /// Of all when the PPDU has ended, as radios do that moderate their interrupts (ath9k).
    Ppdu,
}

/// How long a packet takes between a radio and its host: the driver, the bus and the interrupt.
/// Zero for a host that is instantaneous.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostDelays {
    /// From the end of a received frame, or its release from the reordering buffer, to the host.
    pub receive: Duration,
    /// From the host to the queue of the radio.
    pub transmit: Duration,
}

/// Settings of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct WorldConfig {
    /// Settings of every radio.
    pub mac: MacConfig,
    /// Stations of the access point: nodes 1 to this.
    pub stations: u16,
    /// Packets that each queue of the access point holds.
    pub ap_queue: usize,
    /// Packets that each queue of a station holds.
    pub station_queue: usize,
    /// How long packets take between each radio and its host; the access point bridges by its
    /// host.
    pub host: HostDelays,
    /// When a host hears of the frames of an A-MPDU.
    pub interrupt: HostInterrupt,
    /// TCP/HACK, if [`World::set_codec`](super::World::set_codec) gives it a codec.
    pub hack: HackConfig,
    /// Beacons of the access point.
    pub beacons: Option<Beacons>,
    /// A neighbouring network.
    pub contenders: Contenders,
    /// Pairs of radios that do not hear each other.
    pub hidden: Vec<(NodeId, NodeId)>,
    /// Noise, unless a station has its own.
    pub error: ErrorModel,
    /// Noise between single stations and everyone else.
    pub station_errors: Vec<(NodeId, ErrorModel)>,
}

impl WorldConfig {
    /// A network of `stations` with queues of 1000 packets and instantaneous hosts, without
    /// beacons, noise, neighbours or hidden stations.
    pub fn new(mac: MacConfig, stations: u16) -> Self {
        Self {
            mac,
            stations,
            ap_queue: 1_000,
            station_queue: 1_000,
            host: HostDelays::default(),
            interrupt: HostInterrupt::default(),
            hack: HackConfig::default(),
            beacons: None,
            contenders: Contenders::default(),
            hidden: Vec::new(),
            error: ErrorModel::Perfect,
            station_errors: Vec::new(),
        }
    }

    /// Who hears each of `count` radios.
    pub(super) fn audience(&self, count: usize) -> Vec<Vec<u16>> {
        let hidden: BTreeSet<(u16, u16)> = self
            .hidden
            .iter()
            .flat_map(|(one, other)| [(one.0, other.0), (other.0, one.0)])
            .collect();
        (0..count as u16)
            .map(|from| {
                (0..count as u16)
                    .filter(|to| *to != from && !hidden.contains(&(from, *to)))
                    .collect()
            })
            .collect()
    }

    pub(super) fn errors(&self, count: usize) -> Vec<ErrorModel> {
        let mut errors: Vec<ErrorModel> = (0..count).map(|_| self.error.clone()).collect();
        for (node, error) in &self.station_errors {
            if let Some(slot) = errors.get_mut(node.index()) {
                *slot = error.clone();
            }
        }
        errors
    }
}
