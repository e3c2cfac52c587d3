//! UDP datagrams (RFC 768) in IP packets, as a host that carries those of others reads and writes
//! them. How our own segments travel in UDP is in [`crate::encapsulation`].

use core::net::IpAddr;

use etherparse::{UdpHeader, UdpSlice};

use crate::checksum::{PROTOCOL_UDP, Sum};
use crate::ip::Packet;

/// Bytes of a UDP header.
pub const HEADER_LEN: usize = UdpHeader::LEN;

/// A datagram, payload borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// Source port; 0 where the sender wants no answer.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// The payload.
    pub payload: &'a [u8],
}

/// Whether the checksum of a datagram has to be looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// It has to be right.
    Verify,
    /// Somebody vouches for it; it may be unfinished.
    Vouched,
}

/// Reads the datagram in `packet`: `None` for other protocols, lengths that do not fit, and wrong
/// checksums. IPv6 has no datagrams without a checksum (RFC 8200 §8.1), IPv4 has.
pub fn parse<'a>(packet: &Packet<'a>, checksum: Checksum) -> Option<Datagram<'a>> {
    if packet.protocol != PROTOCOL_UDP {
        return None;
    }
    let udp = UdpSlice::from_slice(packet.payload).ok()?;
    let absent = udp.checksum() == 0;
    if checksum == Checksum::Verify && !(absent && packet.src.is_ipv4()) {
        let len = udp.slice().len();
        let mut sum = Sum::pseudo_header(packet.src, packet.dst, PROTOCOL_UDP, len);
        sum.add(udp.slice());
        if absent || sum.finish() != [0, 0] {
            return None;
        }
    }
    Some(Datagram {
        src_port: udp.source_port(),
        dst_port: udp.destination_port(),
        payload: udp.payload(),
    })
}

/// Writes header and payload to the start of `out`, checksum included, and returns their length.
///
/// # Panics
/// When they are longer than 65,535 bytes, or than `out`.
pub fn emit(out: &mut [u8], src: IpAddr, dst: IpAddr, datagram: &Datagram<'_>) -> usize {
    let len = HEADER_LEN + datagram.payload.len();
    let header = UdpHeader {
        source_port: datagram.src_port,
        destination_port: datagram.dst_port,
        length: u16::try_from(len).expect("a datagram has at most 65,535 bytes"),
        checksum: 0,
    };
    let out = &mut out[..len];
    out[..HEADER_LEN].copy_from_slice(&header.to_bytes());
    out[HEADER_LEN..].copy_from_slice(datagram.payload);
    let mut sum = Sum::pseudo_header(src, dst, PROTOCOL_UDP, len);
    sum.add(out);
    // Zero would say that there is none.
    let checksum = match sum.finish() {
        [0, 0] => [0xff, 0xff],
        checksum => checksum,
    };
    out[6..HEADER_LEN].copy_from_slice(&checksum);
    len
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;
    use crate::ip;

    #[test]
    fn datagrams_are_those_of_another_implementation() {
        for len in [0, 1, 2, 999] {
            let payload = vec![7; len];
            let mut v4 = Vec::new();
            PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
                .udp(1000, 53)
                .write(&mut v4, &payload)
                .unwrap();
            let mut v6 = Vec::new();
            PacketBuilder::ipv6([0x20; 16], [0x21; 16], 64)
                .udp(1000, 53)
                .write(&mut v6, &payload)
                .unwrap();
            for bytes in [v4, v6] {
                let packet = ip::parse(&bytes).unwrap();
                let datagram = parse(&packet, Checksum::Verify).unwrap();
                assert_eq!((datagram.src_port, datagram.dst_port), (1000, 53));
                assert_eq!(datagram.payload, payload);
                let mut out = vec![0; HEADER_LEN + len];
                assert_eq!(emit(&mut out, packet.src, packet.dst, &datagram), out.len());
                assert_eq!(out, packet.payload);
            }
        }
    }

    #[test]
    fn a_wrong_checksum_is_refused_unless_somebody_vouches() {
        let (src, dst) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let whole = Datagram {
            src_port: 1,
            dst_port: 2,
            payload: b"payload",
        };
        let mut bytes = vec![0; HEADER_LEN + 7];
        emit(&mut bytes, src, dst, &whole);
        let read = |bytes: &[u8], checksum| {
            let packet = Packet {
                src,
                dst,
                ecn: crate::Ecn::NotEct,
                protocol: PROTOCOL_UDP,
                payload: bytes,
            };
            parse(&packet, checksum).is_some()
        };
        assert!(read(&bytes, Checksum::Verify));
        bytes[HEADER_LEN] ^= 1;
        assert!(!read(&bytes, Checksum::Verify) && read(&bytes, Checksum::Vouched));
        bytes[6..8].fill(0);
        assert!(read(&bytes, Checksum::Verify), "IPv4 has datagrams without");
        assert!(!read(&bytes[..7], Checksum::Vouched), "cut off");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_datagram_or_none(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            for src in [IpAddr::from([192, 0, 2, 1]), IpAddr::from([0x20; 16])] {
                let packet = Packet {
                    src,
                    dst: src,
                    ecn: crate::Ecn::NotEct,
                    protocol: PROTOCOL_UDP,
                    payload: &bytes,
                };
                if let Some(datagram) = parse(&packet, Checksum::Vouched) {
                    prop_assert!(datagram.payload.len() + HEADER_LEN <= bytes.len());
                }
            }
        }
    }
}
