//! IPv4 packets that stand for IPv6 packets: the simulator's paths know IPv4 alone.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tack_base::Instant;
use tack_sim::packet::Packet;
use tack_wire::checksum::{self, PROTOCOL_TCP, Sum};
use tack_wire::ip;
use tack_wire::segment;

/// Where the addresses of stand-ins come from: the last octet is the number of a host. Nobody uses
/// this network (RFC 1112 §4).
const NETWORK: [u8; 3] = [240, 0, 0];
/// Where the checksum of TCP is in its header.
const CHECKSUM: usize = 16;

/// The hosts of IPv6 that have stand-ins.
#[derive(Default)]
pub(crate) struct StandIns(Vec<Ipv6Addr>);

impl StandIns {
    fn of(&mut self, host: Ipv6Addr) -> Ipv4Addr {
        let known = self.0.iter().position(|it| *it == host);
        let number = known.unwrap_or_else(|| {
            self.0.push(host);
            self.0.len() - 1
        });
        let [a, b, c] = NETWORK;
        Ipv4Addr::new(a, b, c, u8::try_from(number).expect("few hosts"))
    }

    fn host(&self, stand_in: Ipv4Addr) -> Option<Ipv6Addr> {
        let [network @ .., number] = stand_in.octets();
        let host = self.0.get(usize::from(number))?;
        (network == NETWORK).then_some(*host)
    }

    /// Whether a packet stands for one of IPv6.
    pub(crate) fn is_one(packet: &Packet) -> bool {
        packet.src().octets()[..3] == NETWORK
    }

    /// What stands for these bytes, if they are a packet of TCP in IPv6; with its checksums to be
    /// written again.
    pub(crate) fn packet(&mut self, bytes: &[u8], at: Instant) -> Option<Packet> {
        let outer = ip::parse(bytes).ok()?;
        let (IpAddr::V6(src), IpAddr::V6(dst), PROTOCOL_TCP) =
            (outer.src, outer.dst, outer.protocol)
        else {
            return None;
        };
        let (head, payload) = outer.payload.split_at(segment_head(outer.payload)?);
        let addresses = (self.of(src), self.of(dst));
        let payload = payload.to_vec().into();
        let mut packet = Packet::new(addresses, PROTOCOL_TCP, outer.ecn, head, payload, at);
        packet.blank_checksums();
        Some(packet)
    }

    /// The packet of IPv6, with the segment as it is, also where it was damaged. `None` where the
    /// header of IPv4 was: no host would take it.
    pub(crate) fn bytes(&self, packet: &Packet) -> Option<Vec<u8>> {
        if checksum::internet(&packet.head[..ip::IPV4_HEADER_LEN]) != [0, 0] {
            return None;
        }
        let stand_ins = (packet.src(), packet.dst());
        let (src, dst) = (self.host(stand_ins.0)?, self.host(stand_ins.1)?);
        let mut segment = [packet.transport(), &packet.payload].concat();
        // The pseudo header is another one (RFC 1624, as RFC 7915 has it for translators).
        let pseudo = |src: IpAddr, dst: IpAddr| {
            let sum = Sum::pseudo_header(src, dst, PROTOCOL_TCP, segment.len());
            u16::from_be_bytes(sum.finish())
        };
        let old = pseudo(stand_ins.0.into(), stand_ins.1.into());
        let new = pseudo(src.into(), dst.into());
        let field = segment.get_mut(CHECKSUM..CHECKSUM + 2)?;
        let found = u16::from_be_bytes([field[0], field[1]]);
        // Both are complements of sums already.
        let mut sum = u32::from(!found) + u32::from(old) + u32::from(!new);
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        field.copy_from_slice(&(!(sum as u16)).to_be_bytes());
        let mut emit = ip::Emit::new(src.into(), dst.into(), PROTOCOL_TCP, segment.len());
        emit.ecn = packet.ecn();
        let mut bytes = vec![0; ip::header_len(src.into())];
        ip::emit_header(&mut bytes, &emit);
        bytes.extend(segment);
        Some(bytes)
    }
}

/// Length of the header of a segment, options included.
pub(crate) fn segment_head(segment: &[u8]) -> Option<usize> {
    let len = usize::from(*segment.get(12)? >> 4) * 4;
    (segment::HEADER_LEN..=segment.len())
        .contains(&len)
        .then_some(len)
}

/// A packet goes through unchanged, and damage stays damage.
#[test]
fn a_packet_comes_back_as_it_was() {
    let hosts = ["fd77:1::2", "fd80::1"].map(|text| text.parse::<Ipv6Addr>().unwrap());
    let header = tack_wire::Header {
        src_port: 7,
        dst_port: 9,
        ..tack_wire::Header::default()
    };
    let mut segment = vec![0; header.encoded_len()];
    header.emit(&mut segment);
    segment.extend(b"odd number of bytes");
    let [src, dst] = hosts.map(IpAddr::from);
    segment[CHECKSUM..CHECKSUM + 2].fill(0);
    let mut sum = Sum::pseudo_header(src, dst, PROTOCOL_TCP, segment.len());
    sum.add(&segment);
    segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.finish());
    assert!(checksum::verify_tcp(src, dst, &segment));
    let emit = ip::Emit::new(src, dst, PROTOCOL_TCP, segment.len());
    let mut bytes = vec![0; ip::header_len(src)];
    ip::emit_header(&mut bytes, &emit);
    bytes.extend(&segment);

    let mut stand_ins = StandIns::default();
    let mut packet = stand_ins.packet(&bytes, Instant::ZERO).unwrap();
    assert!(StandIns::is_one(&packet) && packet.tcp().is_some());
    packet.write_checksums();
    assert_eq!(stand_ins.bytes(&packet).unwrap(), bytes);
    let at = packet.head.len() - 1;
    packet.head[at] ^= 4;
    let damaged = stand_ins.bytes(&packet).unwrap();
    let outer = ip::parse(&damaged).unwrap();
    assert!(!checksum::verify_tcp(outer.src, outer.dst, outer.payload));
}
