//! What passes between hosts, counted by connection: of TCP, and of UDP.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use tack_base::Instant;
use tack_sim::packet::{Inner, Packet};
use tack_wire::checksum::{PROTOCOL_TCP, PROTOCOL_UDP};
use tack_wire::{Header, Segment, SeqNum};
use tack_wlan::Class;

use super::packets;
use super::settings::{host_v4, ipv6, name};
use crate::content::{Content, Counting, of_segment};
use crate::figures::{FlowFigures, Totals};

/// A connection: protocol, the end that is called the client, and the other one. The client is the
/// station; between two stations it is the one that was heard of first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Ends {
    protocol: u8,
    client: SocketAddr,
    peer: SocketAddr,
}

#[derive(Debug)]
struct Connection {
    counting: Counting,
    station: usize,
    up: Totals,
    down: Totals,
    /// What the peer and the client have acknowledged, and the window field that came with it.
    answered: [Option<(SeqNum, u16)>; 2],
    /// Longest payload that the peer and the client sent, bytes.
    longest: [usize; 2],
    last_used: Instant,
}

impl Connection {
    /// Takes note of a segment. True if it is an acknowledgement that answers one segment and
    /// announces a larger window than the one before.
    fn widens(&mut self, is_up: bool, content: Content, header: &Header, payload: usize) -> bool {
        let (from, to) = (usize::from(is_up), usize::from(!is_up));
        match content {
            Content::Data => self.longest[from] = self.longest[from].max(payload),
            Content::Ack => {
                let before = self.answered[from].replace((header.ack, header.window));
                return before.is_some_and(|(ack, window)| {
                    let bytes = usize::try_from(header.ack.distance(ack)).unwrap_or(0);
                    let is_one = (1..=self.longest[to]).contains(&bytes);
                    is_one && header.window > window && header.options.sack.is_empty()
                });
            }
            Content::Other | Content::Malformed => {}
        }
        false
    }
}

/// Connections, and totals of all that passed.
#[derive(Debug)]
pub(super) struct Connections {
    table: BTreeMap<Ends, Connection>,
    most: usize,
    /// Longest datagram of an unknown flow that counts as an acknowledgement.
    small: usize,
    /// Connections there ever were.
    pub(super) seen: u64,
    /// From stations, and from the server.
    pub(super) up: Totals,
    pub(super) down: Totals,
}

impl Connections {
    /// Counts at most `most` connections apart. Datagrams of up to `small` bytes count as
    /// acknowledgements where nothing else says what they are.
    pub(super) fn new(most: usize, small: usize) -> Self {
        Self {
            table: BTreeMap::new(),
            most: most.max(1),
            small,
            seen: 0,
            up: Totals::default(),
            down: Totals::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// A packet of host `from` enters the model: it is counted, and told what it is.
    pub(super) fn enter(&mut self, now: Instant, from: usize, packet: &mut Packet) {
        let small = self.small;
        let mut widens = false;
        let (content, counting) = match self.find(now, packet) {
            Some((connection, is_up)) => {
                let counting = connection.counting;
                let content = match segment(packet) {
                    Some((header, payload)) => {
                        let content = of_segment(&header, payload);
                        widens = connection.widens(is_up, content, &header, payload);
                        content
                    }
                    None => content(counting, packet, small),
                };
                let totals = if is_up {
                    &mut connection.up
                } else {
                    &mut connection.down
                };
                totals.count(content, packet.len());
                totals.acks_widening += u64::from(widens);
                (content, counting)
            }
            None => (Content::Other, Counting::Size),
        };
        let totals = if from == 0 {
            &mut self.down
        } else {
            &mut self.up
        };
        totals.count(content, packet.len());
        totals.acks_widening += u64::from(widens);
        packet.declared = Some(match content {
            Content::Ack => Class::TransportAck,
            Content::Data | Content::Other | Content::Malformed => Class::Data,
        });
        // What filters and TCP/HACK may look into, besides plain TCP.
        if counting == Counting::Tcp && content != Content::Malformed {
            packet.inner = Inner::Segment;
        }
    }

    /// A packet has come out of the model for host `to`.
    pub(super) fn deliver(&mut self, packet: &Packet, from: usize) {
        let len = packet.len() as u64;
        let add = |totals: &mut Totals| {
            totals.delivered += 1;
            totals.delivered_bytes += len;
        };
        add(if from == 0 {
            &mut self.down
        } else {
            &mut self.up
        });
        let known = ends(packet).and_then(|(ends, is_up)| {
            let (ends, is_up) = self.oriented(ends, is_up);
            Some((self.table.get_mut(&ends)?, is_up))
        });
        if let Some((connection, is_up)) = known {
            add(if is_up {
                &mut connection.up
            } else {
                &mut connection.down
            });
        }
    }

    /// Figures of the connections in the table.
    pub(super) fn figures(&self) -> Vec<FlowFigures> {
        self.table
            .iter()
            .map(|(ends, connection)| FlowFigures {
                client: ends.client.to_string(),
                peer: Some(ends.peer.to_string()),
                protocol: Some(if ends.protocol == PROTOCOL_TCP {
                    "tcp"
                } else {
                    "udp"
                }),
                station: name(connection.station),
                counted: connection.counting,
                up: connection.up,
                down: connection.down,
            })
            .collect()
    }

    /// The connection of a packet, a new one if need be, and whether it comes from the client.
    fn find(&mut self, now: Instant, packet: &Packet) -> Option<(&mut Connection, bool)> {
        let (ends, is_up) = ends(packet)?;
        let (ends, is_up) = self.oriented(ends, is_up);
        if !self.table.contains_key(&ends) {
            self.make_room();
            self.seen += 1;
            let counting = match ends.protocol {
                PROTOCOL_TCP => Counting::Tcp,
                _ => Counting::of_flow(&packet.payload),
            };
            let station = if is_up { packet.src() } else { packet.dst() };
            let connection = Connection {
                counting,
                station: host_v4(station, usize::from(u16::MAX))?,
                up: Totals::default(),
                down: Totals::default(),
                answered: [None; 2],
                longest: [0; 2],
                last_used: now,
            };
            self.table.insert(ends, connection);
        }
        let connection = self.table.get_mut(&ends)?;
        connection.last_used = now;
        Some((connection, is_up))
    }

    /// Between two stations either may have come first.
    fn oriented(&self, ends: Ends, is_up: bool) -> (Ends, bool) {
        let reverse = Ends {
            client: ends.peer,
            peer: ends.client,
            ..ends
        };
        if self.table.contains_key(&reverse) {
            (reverse, !is_up)
        } else {
            (ends, is_up)
        }
    }

    fn make_room(&mut self) {
        if self.table.len() < self.most {
            return;
        }
        let idle = self.table.iter().min_by_key(|(_, one)| one.last_used);
        if let Some(ends) = idle.map(|(ends, _)| *ends) {
            self.table.remove(&ends);
        }
    }
}

impl Totals {
    fn count(&mut self, content: Content, len: usize) {
        self.datagrams += 1;
        self.bytes += len as u64;
        match content {
            Content::Ack => self.acks += 1,
            Content::Data => self.data += 1,
            Content::Other | Content::Malformed => {}
        }
    }
}

/// The ends of a packet's connection, and whether the packet comes from the client. `None` for
/// other protocols and for fragments.
fn ends(packet: &Packet) -> Option<(Ends, bool)> {
    let protocol = packets::protocol(packet);
    if !matches!(protocol, PROTOCOL_TCP | PROTOCOL_UDP) || packet.is_fragment() {
        return None;
    }
    let (from, to) = packet.ports();
    let host = |address| host_v4(address, usize::from(u16::MAX));
    let (src, dst) = (host(packet.src())?, host(packet.dst())?);
    let address = |host: usize, plain: std::net::Ipv4Addr, port| {
        let ip = match packets::is_v6(packet) {
            true => IpAddr::V6(ipv6(host)),
            false => IpAddr::V4(plain),
        };
        SocketAddr::new(ip, port)
    };
    let (src_end, dst_end) = (
        address(src, packet.src(), from),
        address(dst, packet.dst(), to),
    );
    let is_up = src != 0;
    let (client, peer) = if is_up {
        (src_end, dst_end)
    } else {
        (dst_end, src_end)
    };
    let ends = Ends {
        protocol,
        client,
        peer,
    };
    Some((ends, is_up))
}

/// The header of a packet of TCP that has one, and how much payload is behind it.
fn segment(packet: &Packet) -> Option<(Header, usize)> {
    if packets::protocol(packet) != PROTOCOL_TCP {
        return None;
    }
    let (header, payload) = packet.tcp()?;
    let segment = Segment::parse(header).ok()?;
    Some((segment.header, payload))
}

/// What a packet is that is not a segment of TCP.
fn content(counting: Counting, packet: &Packet, small: usize) -> Content {
    match counting {
        _ if packets::protocol(packet) == PROTOCOL_TCP => Content::Malformed,
        Counting::Size if packet.payload.len() <= small => Content::Ack,
        Counting::Size => Content::Data,
        Counting::Tcp => counting.content(&packet.payload),
    }
}

#[cfg(test)]
mod tests {
    use tack_wire::{Ecn, Flags, SackBlock};

    use super::super::settings::ipv4;
    use super::*;

    /// QUIC's acknowledgements get long when much was lost.
    #[test]
    fn datagrams_of_unknown_flows_count_by_the_length_that_is_set() {
        let datagram = |payload: usize| {
            let mut transport = [0; 8];
            transport[..4].copy_from_slice(&[0, 1, 0, 2]);
            Packet::new(
                (ipv4(1), ipv4(0)),
                PROTOCOL_UDP,
                Ecn::NotEct,
                &transport,
                vec![0x40; payload].into(),
                Instant::ZERO,
            )
        };
        for (small, acks, data) in [(100, 0, 2), (600, 1, 1)] {
            let mut connections = Connections::new(4, small);
            for payload in [300, 1_400] {
                connections.enter(Instant::ZERO, 1, &mut datagram(payload));
            }
            let Totals {
                acks: counted,
                data: rest,
                ..
            } = connections.up;
            assert_eq!((counted, rest), (acks, data), "up to {small} bytes");
        }
    }

    #[test]
    fn an_acknowledgement_of_one_segment_with_a_larger_window_is_counted() {
        let mut connections = Connections::new(4, 100);
        let mut segment = |from: usize, header: Header, payload: usize| {
            let mut bytes = vec![0; header.encoded_len()];
            header.emit(&mut bytes);
            let mut packet = Packet::new(
                (ipv4(from), ipv4(1 - from)),
                PROTOCOL_TCP,
                Ecn::NotEct,
                &bytes,
                vec![0; payload].into(),
                Instant::ZERO,
            );
            connections.enter(Instant::ZERO, from, &mut packet);
            connections.up.acks_widening
        };
        let header = |ack: u32, window: u16| Header {
            ack: SeqNum(ack),
            flags: Flags::ACK,
            window,
            ..Header::default()
        };
        segment(0, header(1, 50), 1_000);
        let mut answer = |ack, window| segment(1, header(ack, window), 0);
        assert_eq!(answer(u32::MAX - 500, 100), 0, "the first one");
        assert_eq!(answer(499, 101), 1, "across the wrap of sequence numbers");
        assert_eq!(answer(1_499, 101), 1, "the same window");
        assert_eq!(answer(3_499, 102), 1, "two segments");
        assert_eq!(answer(3_499, 103), 1, "no segment");
        assert_eq!(answer(2_499, 104), 1, "an old one");
        assert_eq!(answer(3_499, 105), 2);
        let mut disordered = header(4_499, 106);
        disordered.options.sack.push(SackBlock {
            start: SeqNum(6_000),
            end: SeqNum(7_000),
        });
        assert_eq!(segment(1, disordered, 0), 2, "with a SACK block");
    }
}
