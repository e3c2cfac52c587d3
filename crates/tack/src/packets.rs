//! IP packets from a TUN device: segments for the core, errors of the path, echo requests.

use std::net::{IpAddr, SocketAddr};

use tack_base::Instant;
use tack_io::tun::TunPacket;
use tack_tcp::{PathError, Tuple};
use tack_wire::checksum::{self, PROTOCOL_TCP, PROTOCOL_UDP};
use tack_wire::icmp::{self, Message, Problem};
use tack_wire::ip::{self, Emit, Packet};
use tack_wire::{Segment, train, udp};

use crate::carrier::Local;
use crate::held::{Datagram, Held, LONGEST_SYN};
use crate::state::State;

/// The least MTU that a router is believed. IPv6 links take 1280 bytes (RFC 8201 §4); IPv4 ones may
/// take less, but who says so mostly wants small segments (as Linux, `min_pmtu`).
const LEAST_MTU: (u16, u16) = (552, 1280);

/// A packet that no host takes.
struct Malformed;

impl State {
    /// Takes a packet that arrived for this host.
    pub(crate) fn take_packet(&mut self, now: Instant, local: &Local, packet: &TunPacket<'_>) {
        self.received += 1;
        if let Err(Malformed) = self.hear(now, local, packet) {
            self.malformed += 1;
        }
    }

    fn hear(
        &mut self,
        now: Instant,
        local: &Local,
        packet: &TunPacket<'_>,
    ) -> Result<(), Malformed> {
        let arrived = packet.arrived;
        let outer = ip::parse(packet.bytes).map_err(|_| Malformed)?;
        // What the kernel sends to whole links, such as router solicitations, is not for TCP.
        if !local.is(outer.dst) {
            return Ok(());
        }
        if let Some(client) = local.client(outer.dst) {
            return self.hear_client(now, client, packet, &outer);
        }
        if !is_possible(outer.src) || local.is(outer.src) {
            return Err(Malformed);
        }
        if outer.protocol != PROTOCOL_TCP {
            self.hear_icmp(now, local, &outer);
            return Ok(());
        }
        if !packet.verified && !checksum::verify_tcp(outer.src, outer.dst, outer.payload) {
            return Err(Malformed);
        }
        let joined = Segment::parse(outer.payload).map_err(|_| Malformed)?;
        let peer = SocketAddr::new(outer.src, 0);
        for segment in train::cut(joined, packet.segment_size.unwrap_or_default().into()) {
            self.core
                .handle_segment(now, arrived, peer, &segment, outer.ecn);
        }
        Ok(())
    }

    /// Takes a packet of the client, where this endpoint stands for every host.
    fn hear_client(
        &mut self,
        now: Instant,
        client: IpAddr,
        packet: &TunPacket<'_>,
        outer: &Packet<'_>,
    ) -> Result<(), Malformed> {
        // Nobody there is one host: what is sent to a group gets no answer.
        if !is_possible(outer.dst) {
            return Ok(());
        }
        if outer.src != client {
            return Err(Malformed);
        }
        match outer.protocol {
            PROTOCOL_TCP => self.hear_client_tcp(now, packet, outer),
            PROTOCOL_UDP => {
                let checksum = match packet.verified {
                    true => udp::Checksum::Vouched,
                    false => udp::Checksum::Verify,
                };
                let datagram = udp::parse(outer, checksum).ok_or(Malformed)?;
                if datagram.dst_port == 0 {
                    return Err(Malformed);
                }
                let Some(intercepted) = &mut self.intercepted else {
                    return Ok(());
                };
                // One of no bytes is a datagram, too.
                let size = packet.segment_size.map_or(usize::MAX, usize::from);
                let mut rest = datagram.payload;
                loop {
                    let (payload, more) = rest.split_at(rest.len().min(size));
                    let datagram = Datagram {
                        from: SocketAddr::new(outer.src, datagram.src_port),
                        to: SocketAddr::new(outer.dst, datagram.dst_port),
                        payload: payload.to_vec(),
                    };
                    intercepted.push_datagram(datagram, &mut self.wakers);
                    if more.is_empty() {
                        return Ok(());
                    }
                    rest = more;
                }
            }
            // Only TCP and UDP are carried.
            _ => Ok(()),
        }
    }

    fn hear_client_tcp(
        &mut self,
        now: Instant,
        packet: &TunPacket<'_>,
        outer: &Packet<'_>,
    ) -> Result<(), Malformed> {
        if !packet.verified && !checksum::verify_tcp(outer.src, outer.dst, outer.payload) {
            return Err(Malformed);
        }
        let joined = Segment::parse(outer.payload).map_err(|_| Malformed)?;
        let header = &joined.header;
        if header.src_port == 0 || header.dst_port == 0 {
            return Err(Malformed);
        }
        let name = Tuple {
            local_port: header.dst_port,
            remote_port: header.src_port,
            peer: SocketAddr::new(outer.dst, 0),
        };
        for segment in train::cut(joined, packet.segment_size.unwrap_or_default().into()) {
            self.core
                .handle_segment(now, packet.arrived, name.peer, &segment, outer.ecn);
        }
        let asked = self
            .intercepted
            .as_ref()
            .is_some_and(|intercepted| intercepted.gate().take_asked());
        if asked && packet.bytes.len() <= LONGEST_SYN {
            let held = Held {
                packet: packet.bytes.into(),
                arrived: packet.arrived,
            };
            self.hold(now, name, held);
        }
        Ok(())
    }

    fn hear_icmp(&mut self, now: Instant, local: &Local, outer: &Packet<'_>) {
        match icmp::parse(outer) {
            Some(Message::Error(icmp::Error { problem, quoted })) if local.is(quoted.src) => {
                let tuple = Tuple {
                    local_port: quoted.src_port,
                    remote_port: quoted.dst_port,
                    peer: SocketAddr::new(quoted.dst, 0),
                };
                let error = match problem {
                    Problem::Unreachable => PathError::Unreachable,
                    Problem::TimeExceeded => PathError::TimeExceeded,
                    Problem::TooBig { mtu } => {
                        let least = if quoted.dst.is_ipv4() {
                            LEAST_MTU.0
                        } else {
                            LEAST_MTU.1
                        };
                        PathError::TooBig {
                            mtu: mtu.max(least),
                        }
                    }
                };
                self.core.handle_path_error(now, &tuple, quoted.seq, error);
            }
            Some(Message::EchoRequest(request)) => {
                let head = Emit::new(outer.dst, outer.src, outer.protocol, request.len());
                let header_len = ip::header_len(outer.dst);
                let mut reply = vec![0; header_len + request.len()];
                ip::emit_header(&mut reply, &head);
                icmp::emit_echo_reply(&mut reply[header_len..], outer.dst, outer.src, request);
                self.outgoing.reply(reply);
            }
            _ => {}
        }
    }
}

/// Whether one host can have this address (RFC 1122 §4.2.3.10 has segments from others ignored).
fn is_possible(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || is_broadcast)
}
