//! A network without time: packets wait, each way, until the test says which one arrives, is lost,
//! repeated or altered.

use std::collections::VecDeque;
use std::time::Duration;

use tack_base::Instant;
use tack_tcp::Transmit;
use tack_wire::{Ecn, Segment};

use crate::hosts::Hosts;
use crate::side::Side;

/// Packets that wait one way; more are lost, as at a full queue.
const QUEUE: usize = 512;

/// A packet on its way.
#[derive(Clone, Debug)]
pub struct Packet {
    /// When it left.
    pub sent: Instant,
    /// The segment.
    pub bytes: Vec<u8>,
    /// Its ECN codepoint.
    pub ecn: Ecn,
}

impl Packet {
    /// It gets a congestion mark, if it can carry one.
    pub fn mark(&mut self) {
        if self.ecn != Ecn::NotEct {
            self.ecn = Ecn::Ce;
        }
    }
}

/// The packets between two hosts.
#[derive(Debug, Default)]
pub struct Wires {
    /// By receiver, in the order in which they left.
    queues: [VecDeque<Packet>; 2],
}

impl Wires {
    /// Everything that `from` sends now enters the network; `see` gets each segment.
    pub fn collect(
        &mut self,
        hosts: &mut Hosts,
        from: Side,
        now: Instant,
        mut see: impl FnMut(&Transmit, &[u8]),
    ) {
        let queue = &mut self.queues[from.other().index()];
        let mut buffer = Vec::new();
        while let Some(transmit) = hosts.poll_transmit(from, now, &mut buffer) {
            for bytes in buffer.chunks(transmit.segment_size) {
                see(&transmit, bytes);
                if queue.len() < QUEUE {
                    queue.push_back(Packet {
                        sent: now,
                        bytes: bytes.to_vec(),
                        ecn: transmit.ecn,
                    });
                }
            }
        }
    }

    /// The packet at this place of the queue to `to`, counted around its end.
    pub fn packet(&mut self, to: Side, at: usize) -> Option<&mut Packet> {
        let queue = &mut self.queues[to.index()];
        queue.get_mut(at % queue.len().max(1))
    }

    /// Takes that packet out.
    pub fn take(&mut self, to: Side, at: usize) -> Option<Packet> {
        let queue = &mut self.queues[to.index()];
        queue.remove(at % queue.len().max(1))
    }

    /// Takes out all packets to `to`, oldest first.
    pub fn take_all(&mut self, to: Side) -> VecDeque<Packet> {
        std::mem::take(&mut self.queues[to.index()])
    }

    /// A packet waits behind all others to `to`.
    pub fn put_back(&mut self, to: Side, packet: Packet) {
        self.queues[to.index()].push_back(packet);
    }

    /// No packet is on its way.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }
}

impl Hosts {
    /// A packet of [`Wires`] is handled at `now`. It arrived `late` before, but not before it left.
    /// Bytes that are not a segment are dropped.
    pub fn handle_packet(&mut self, to: Side, now: Instant, packet: &Packet, late: Duration) {
        let arrived = (now - late).max(packet.sent);
        if let Ok(segment) = Segment::parse(&packet.bytes) {
            self.handle_segment(to, now, arrived, &segment, packet.ecn);
        }
    }
}

#[cfg(test)]
mod tests {
    use tack_tcp::{Config, EndpointConfig};

    use super::*;

    #[test]
    fn packets_wait_until_they_are_taken() {
        let now = Instant::from_millis(1_000);
        let mut hosts = Hosts::new([EndpointConfig::new([1; 16]), EndpointConfig::new([2; 16])]);
        let config = Config::default();
        hosts.listen(&config, 1);
        hosts.connect(now, &config);
        let mut wires = Wires::default();
        let mut seen = 0;
        wires.collect(&mut hosts, Side::Client, now, |_, _| seen += 1);
        assert_eq!(seen, 1, "a SYN");
        assert!(wires.packet(Side::Client, 0).is_none());

        // The second copy of the SYN arrives at the listener as well, and is answered.
        let syn = wires.take(Side::Server, 7).expect("places count around");
        wires.put_back(Side::Server, syn.clone());
        for copy in [syn, wires.take_all(Side::Server).remove(0).expect("a copy")] {
            hosts.handle_packet(Side::Server, now, &copy, Duration::from_secs(10));
            wires.collect(&mut hosts, Side::Server, now, |_, bytes| {
                let answer = Segment::parse(bytes).expect("a segment");
                assert!(answer.header.flags.syn() && answer.header.flags.ack());
            });
        }
        assert!(!wires.is_empty());
        assert!(wires.take(Side::Client, 0).is_some());
    }
}
