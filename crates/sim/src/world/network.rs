//! What lies between the hosts: the wired path, and behind its near end a client or a wireless network.

use tack_base::Instant;
use tack_wlan::{AccessCategory, Capture, Captured, Class, Msdu, NodeId};

use super::datagram::SATURATION;
use super::host::host_at;
use crate::packet::Packet;
use crate::path::Path;
use crate::scenario::Scenario;

/// The wireless network, whose packets are those of the simulator.
pub(super) type Wireless = tack_wlan::World<Packet>;

/// Packets that saturating senders keep in the queue of a radio, each: two Block ACK windows, and what the wired path
/// brings while one A-MPDU is on the air.
const RADIO_SATURATION: usize = 256;

/// All links of a run.
#[derive(Debug)]
pub(super) struct Network {
    /// From the server, and to it.
    pub(super) paths: [Path; 2],
    pub(super) wireless: Option<Wireless>,
    /// Capacities of the queues of the access point and of a station.
    queues: [usize; 2],
}

impl Network {
    pub(super) fn new(scenario: &Scenario, seed: u64, capture: Capture) -> Self {
        let wired = &scenario.wired;
        let wireless = scenario.wlan.as_ref().map(|wlan| {
            let mut world = Wireless::new(&wlan.world, seed);
            world.set_capture(capture);
            world
        });
        let queues = scenario.wlan.as_ref().map_or([0; 2], |wlan| {
            [wlan.world.ap_queue, wlan.world.station_queue]
        });
        Self {
            paths: [
                Path::new(&wired.forward, seed, 0),
                Path::new(&wired.reverse, seed, 1),
            ],
            wireless,
            queues,
        }
    }

    /// A host sends a packet.
    #[inline]
    pub(super) fn send(&mut self, now: Instant, host: usize, packet: Packet) {
        match &mut self.wireless {
            Some(wireless) if host > 0 => enter(wireless, now, NodeId(host as u16), packet),
            _ => self.paths[host].send(now, packet),
        }
    }

    /// A packet of the server has come to the access point.
    pub(super) fn distribute(&mut self, now: Instant, packet: Packet) {
        if let Some(wireless) = &mut self.wireless {
            enter(wireless, now, NodeId::AP, packet);
        }
    }

    /// The next packet that has come to a host over the air, or to the access point on its way to the server.
    pub(super) fn receive(&mut self) -> Option<(NodeId, Packet)> {
        let delivery = self.wireless.as_mut()?.poll_delivery()?;
        Some((delivery.at, delivery.msdu.payload?))
    }

    pub(super) fn captured(&mut self) -> Option<Captured<Packet>> {
        self.wireless.as_mut()?.poll_capture()
    }

    /// When a saturating sender at `host`, one of `senders` there, sends its next packet of `len` bytes. `None`: when a
    /// radio has room again.
    pub(super) fn room(
        &mut self,
        now: Instant,
        host: usize,
        len: usize,
        senders: usize,
    ) -> Option<Instant> {
        let Some(wireless) = &self.wireless else {
            return Some(self.paths[host].room_at(now, len, SATURATION));
        };
        let (node, capacity) = if host == 0 {
            (NodeId::AP, self.queues[0])
        } else {
            (NodeId(host as u16), self.queues[1])
        };
        let queued = wireless.queue_len(node, AccessCategory::BestEffort);
        let under_way = if host == 0 {
            self.paths[0].under_way()
        } else {
            0
        };
        let most = (RADIO_SATURATION * senders).min(capacity);
        if queued + under_way >= most {
            return None;
        }
        Some(match host {
            0 => self.paths[0].room_at(now, len, SATURATION),
            _ => now,
        })
    }

    /// Packets in front of the bottleneck of what `from` sends: the radio's queue, or the path's.
    pub(super) fn backlog(&mut self, now: Instant, from: usize) -> usize {
        match &self.wireless {
            Some(wireless) if from > 0 => {
                wireless.queue_len(NodeId(from as u16), AccessCategory::BestEffort)
            }
            Some(wireless) => {
                wireless.queue_len(NodeId::AP, AccessCategory::BestEffort)
                    + self.paths[0].backlog(now).0
            }
            None => self.paths[from].backlog(now).0,
        }
    }

    /// Nothing is under way.
    pub(super) fn is_drained(&self) -> bool {
        let is_silent = self.wireless.as_ref().is_none_or(|wireless| {
            (0..wireless.members())
                .all(|node| wireless.queue_len(NodeId(node), AccessCategory::BestEffort) == 0)
        });
        is_silent && self.paths.iter().all(|path| path.next_arrival().is_none())
    }
}

/// A packet enters the wireless network at `node`. A full queue drops it, which the network counts.
fn enter(wireless: &mut Wireless, now: Instant, node: NodeId, packet: Packet) {
    let dst = match host_at(packet.dst()) {
        0 => NodeId::AP,
        host => NodeId(host as u16),
    };
    if dst == node || dst.0 >= wireless.members() {
        return;
    }
    let is_ack = packet.is_pure_ack() || packet.is_datagram_ack();
    let msdu = Msdu {
        src: node,
        dst,
        len: packet.len() as u32,
        class: if is_ack {
            Class::TransportAck
        } else {
            Class::Data
        },
        category: AccessCategory::BestEffort,
        payload: Some(packet),
    };
    let _dropped = wireless.handle_msdu(now, msdu);
}
