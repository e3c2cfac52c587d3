//! The flow of a packet, and the identifier that both radios compute for it.

use std::net::Ipv4Addr;

use arrayvec::ArrayVec;
use tack_wire::checksum::PROTOCOL_TCP;
use tack_wlan::mac::hack::FlowId;

use super::md5;
use crate::packet::Packet;

/// Source and destination port.
pub(super) type Ports = (u16, u16);

/// The common fields of the packets of one direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tuple {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    tcp: Ports,
    /// Where the segment travels in UDP.
    udp: Option<Ports>,
}

impl Tuple {
    pub(super) fn of(packet: &Packet) -> Option<Self> {
        let (header, _) = packet.tcp()?;
        let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        Some(Self {
            src: packet.src(),
            dst: packet.dst(),
            tcp: (port(0), port(2)),
            udp: (packet.protocol() != PROTOCOL_TCP).then(|| packet.ports()),
        })
    }

    /// Of the other direction.
    pub(super) fn reverse(self) -> Self {
        let swap = |(from, to): Ports| (to, from);
        Self {
            src: self.dst,
            dst: self.src,
            tcp: swap(self.tcp),
            udp: self.udp.map(swap),
        }
    }

    /// MD5 over source and destination address, source and destination port and protocol, in
    /// network order; then the ports of UDP, where the segment travels in it. Its last byte is
    /// the CID.
    pub(super) fn flow_id(self) -> FlowId {
        let mut input = ArrayVec::<u8, 17>::new();
        input.extend(self.src.octets());
        input.extend(self.dst.octets());
        input.extend(self.tcp.0.to_be_bytes());
        input.extend(self.tcp.1.to_be_bytes());
        input.push(PROTOCOL_TCP);
        for port in self.udp.into_iter().flat_map(|(from, to)| [from, to]) {
            input.extend(port.to_be_bytes());
        }
        FlowId(u128::from_be_bytes(md5::digest(&input)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_identifier_is_the_last_byte_of_the_hash() {
        let tuple = Tuple {
            src: [192, 168, 1, 2].into(),
            dst: [10, 0, 0, 1].into(),
            tcp: (40_000, 5_001),
            udp: None,
        };
        let flow = tuple.flow_id();
        assert_eq!(flow.0, 0x872e_5d73_e79b_978b_238a_2ffd_6213_8a6f);
        assert_eq!(flow.cid(), 0x6f);
        let within = Tuple {
            udp: Some((1, 2)),
            ..tuple
        };
        assert_ne!(within.flow_id(), flow);
        assert_eq!(within.reverse().reverse(), within);
    }
}
