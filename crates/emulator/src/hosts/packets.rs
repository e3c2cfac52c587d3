//! IP packets of the kernel as packets of the model, and back.
//!
//! A packet of IPv4 is one of the model as it is: the hosts have the model's addresses. Its
//! checksums are blank on the way, as the path may set a congestion mark. One of IPv6 has the same
//! length in the model: in front of what follows its header are an IPv4 header and, as if they were
//! a UDP header and more, the ports and the fields that the header is made of again.

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use tack_base::Instant;
use tack_sim::packet::{Checksums, Head, Inner, Packet, UDP_HEADER_LEN};
use tack_wire::Ecn;
use tack_wire::checksum::{PROTOCOL_TCP, PROTOCOL_UDP};
use tack_wire::ip::{DEFAULT_HOP_LIMIT, IPV4_HEADER_LEN, IPV6_HEADER_LEN};
use tack_wire::segment::HEADER_LEN;

use super::settings::{host_v4, host_v6, ipv4, ipv6};

/// Bytes between the model's IPv4 header and what follows an IPv6 header.
const SPARE: usize = IPV6_HEADER_LEN - IPV4_HEADER_LEN;
/// Where in the model's transport header the first four bytes of an IPv6 header are, next header,
/// and hop limit.
const FIRST_WORD: std::ops::Range<usize> = UDP_HEADER_LEN..UDP_HEADER_LEN + 4;
const NEXT_HEADER: usize = FIRST_WORD.end;
const HOP_LIMIT: usize = NEXT_HEADER + 1;
/// Where the checksum of UDP waits, whose place in the model's header is blank.
const UDP_CHECKSUM: std::ops::Range<usize> = HOP_LIMIT + 1..HOP_LIMIT + 3;
/// Where it is in a UDP header.
const CHECKSUM_PLACE: std::ops::Range<usize> = 6..8;

/// Why a packet of the kernel is not carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// It is malformed, or has options of IPv4.
    Unfit,
    /// Its source is not the host that it comes from, or no host has its destination.
    NoHost,
}

/// The packet of the model for `bytes`, which host `from` of `hosts` sent `at`, and whether it is
/// of IPv6.
pub(super) fn read(
    bytes: &[u8],
    from: usize,
    hosts: usize,
    at: Instant,
) -> Result<Packet, Refused> {
    match bytes.first().map(|byte| byte >> 4) {
        Some(4) => read_v4(bytes, from, hosts, at),
        Some(6) => read_v6(bytes, from, hosts, at),
        _ => Err(Refused::Unfit),
    }
}

fn read_v4(bytes: &[u8], from: usize, hosts: usize, at: Instant) -> Result<Packet, Refused> {
    let header = bytes
        .first_chunk::<IPV4_HEADER_LEN>()
        .ok_or(Refused::Unfit)?;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let bytes = bytes.get(..total).ok_or(Refused::Unfit)?;
    if header[0] != 0x45 || total < IPV4_HEADER_LEN {
        return Err(Refused::Unfit);
    }
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let is_ours = host_v4(address(12), hosts) == Some(from);
    if !is_ours || host_v4(address(16), hosts).is_none() {
        return Err(Refused::NoHost);
    }
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let rest = &bytes[IPV4_HEADER_LEN..];
    let len = match header[9] {
        PROTOCOL_TCP if !is_fragment => tcp_len(rest).ok_or(Refused::Unfit)?,
        PROTOCOL_UDP if !is_fragment && rest.len() < UDP_HEADER_LEN => return Err(Refused::Unfit),
        _ => rest.len().min(UDP_HEADER_LEN),
    };
    let (head, payload) = bytes.split_at(IPV4_HEADER_LEN + len);
    let mut packet = Packet {
        head: Head::from_slice(head).ok_or(Refused::Unfit)?,
        payload: Bytes::copy_from_slice(payload),
        checksums: Checksums::Written,
        declared: None,
        inner: Inner::Unknown,
        sent: at,
    };
    packet.blank_checksums();
    Ok(packet)
}

fn read_v6(bytes: &[u8], from: usize, hosts: usize, at: Instant) -> Result<Packet, Refused> {
    let header = bytes
        .first_chunk::<IPV6_HEADER_LEN>()
        .ok_or(Refused::Unfit)?;
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let rest = bytes
        .get(IPV6_HEADER_LEN..IPV6_HEADER_LEN + len)
        .ok_or(Refused::Unfit)?;
    let address = |at: usize| {
        let octets: [u8; 16] = std::array::from_fn(|index| header[at + index]);
        Ipv6Addr::from(octets)
    };
    let is_ours = host_v6(address(8), hosts) == Some(from);
    let to = host_v6(address(24), hosts)
        .filter(|_| is_ours)
        .ok_or(Refused::NoHost)?;
    let mut transport = [0; SPARE + UDP_HEADER_LEN];
    let next_header = header[6];
    let (taken, inner) = match next_header {
        PROTOCOL_UDP if rest.len() < UDP_HEADER_LEN => return Err(Refused::Unfit),
        PROTOCOL_UDP => {
            transport[..UDP_HEADER_LEN].copy_from_slice(&rest[..UDP_HEADER_LEN]);
            transport[CHECKSUM_PLACE].fill(0);
            transport[UDP_CHECKSUM].copy_from_slice(&rest[CHECKSUM_PLACE]);
            (UDP_HEADER_LEN, Inner::Unknown)
        }
        PROTOCOL_TCP => {
            tcp_len(rest).ok_or(Refused::Unfit)?;
            transport[..4].copy_from_slice(&rest[..4]);
            (0, Inner::Segment)
        }
        _ => (0, Inner::Unknown),
    };
    transport[FIRST_WORD].copy_from_slice(&header[..4]);
    transport[NEXT_HEADER] = next_header;
    transport[HOP_LIMIT] = header[7];
    let payload = Bytes::copy_from_slice(&rest[taken..]);
    if IPV6_HEADER_LEN + rest.len() > usize::from(u16::MAX) {
        return Err(Refused::Unfit);
    }
    let mut packet = Packet::new(
        (ipv4(from), ipv4(to)),
        PROTOCOL_UDP,
        Ecn::NotEct,
        &transport[..SPARE + taken],
        payload,
        at,
    );
    packet.head[1] = header[0] << 4 | header[1] >> 4;
    packet.inner = inner;
    Ok(packet)
}

/// Length of the TCP header at the front, if it is whole.
fn tcp_len(bytes: &[u8]) -> Option<usize> {
    let len = usize::from(*bytes.get(12)? >> 4) * 4;
    (HEADER_LEN..=bytes.len()).contains(&len).then_some(len)
}

/// Whether a packet of the model stands for one of IPv6.
pub(super) fn is_v6(packet: &Packet) -> bool {
    packet.protocol() == PROTOCOL_UDP && packet.transport().len() >= SPARE
}

/// Transport protocol of the packet of the kernel.
pub(super) fn protocol(packet: &Packet) -> u8 {
    if is_v6(packet) {
        packet.transport()[NEXT_HEADER]
    } else {
        packet.protocol()
    }
}

/// Writes the packet of the kernel behind what `out` has. The packet's checksums must be blank, or
/// right.
pub(super) fn write(mut packet: Packet, out: &mut Vec<u8>) {
    if !is_v6(&packet) {
        packet.write_checksums();
        out.extend_from_slice(&packet.head);
        out.extend_from_slice(&packet.payload);
        return;
    }
    let transport = packet.transport();
    let host = |address: Ipv4Addr| host_v4(address, usize::from(u16::MAX)).unwrap_or_default();
    let class = packet.head[1];
    let word = &transport[FIRST_WORD];
    let udp = &transport[..transport.len() - SPARE];
    let len = (udp.len() + packet.payload.len()) as u16;
    out.extend_from_slice(&[
        0x60 | class >> 4,
        class << 4 | word[1] & 0x0f,
        word[2],
        word[3],
    ]);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&[transport[NEXT_HEADER], transport[HOP_LIMIT]]);
    out.extend_from_slice(&ipv6(host(packet.src())).octets());
    out.extend_from_slice(&ipv6(host(packet.dst())).octets());
    if !udp.is_empty() {
        out.extend_from_slice(&udp[..CHECKSUM_PLACE.start]);
        out.extend_from_slice(&transport[UDP_CHECKSUM]);
    }
    out.extend_from_slice(&packet.payload);
    debug_assert_eq!(DEFAULT_HOP_LIMIT, packet.head[8]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tack_wire::checksum;
    use tack_wire::ip::{Emit, emit_header};

    use super::*;

    /// A packet of IP from host 1 to host 0.
    fn packet(is_v6: bool, protocol: u8, content: &[u8]) -> Vec<u8> {
        let (src, dst) = match is_v6 {
            true => (ipv6(1).into(), ipv6(0).into()),
            false => (ipv4(1).into(), ipv4(0).into()),
        };
        let mut bytes = vec![0; IPV6_HEADER_LEN];
        let emit = Emit {
            ecn: Ecn::Ect0,
            ..Emit::new(src, dst, protocol, content.len())
        };
        let len = emit_header(&mut bytes, &emit);
        bytes.truncate(len);
        bytes.extend_from_slice(content);
        bytes
    }

    fn tcp(is_v6: bool, payload: usize) -> Vec<u8> {
        let mut segment = vec![7; 32 + payload];
        segment[12] = 8 << 4;
        segment[13] = 0x10;
        segment[16..18].fill(0);
        let (src, dst) = match is_v6 {
            true => (ipv6(1).into(), ipv6(0).into()),
            false => (ipv4(1).into(), ipv4(0).into()),
        };
        checksum::fill_tcp(src, dst, &mut segment);
        packet(is_v6, PROTOCOL_TCP, &segment)
    }

    fn carried(bytes: &[u8]) -> Result<Packet, Refused> {
        read(bytes, 1, 3, Instant::ZERO)
    }

    #[test]
    fn what_is_carried_comes_out_as_it_went_in() {
        let mut datagram = vec![9; 100];
        datagram[4..6].copy_from_slice(&100_u16.to_be_bytes());
        for is_v6 in [false, true] {
            let mut udp = datagram.clone();
            udp[6..8].fill(0);
            let (src, dst) = match is_v6 {
                true => (ipv6(1).into(), ipv6(0).into()),
                false => (ipv4(1).into(), ipv4(0).into()),
            };
            let mut sum = checksum::Sum::pseudo_header(src, dst, PROTOCOL_UDP, 100);
            sum.add(&udp);
            udp[6..8].copy_from_slice(&sum.finish());
            for bytes in [
                tcp(is_v6, 0),
                tcp(is_v6, 1_400),
                packet(is_v6, PROTOCOL_UDP, &udp),
                packet(is_v6, 1, &[8, 0, 1, 2, 3, 4, 5, 6, 7]),
                packet(is_v6, 47, &[]),
            ] {
                let inside = carried(&bytes).unwrap();
                assert_eq!(inside.len(), bytes.len(), "the air carries as many bytes");
                assert_eq!((inside.src(), inside.dst()), (ipv4(1), ipv4(0)));
                assert_eq!(inside.ecn(), Ecn::Ect0);
                assert_eq!(is_v6, super::is_v6(&inside));
                let mut out = Vec::new();
                write(inside, &mut out);
                assert_eq!(out, bytes);
            }
        }
    }

    #[test]
    fn a_mark_of_the_path_arrives() {
        for is_v6 in [false, true] {
            let mut inside = carried(&tcp(is_v6, 10)).unwrap();
            assert!(inside.mark_congestion());
            let mut out = Vec::new();
            write(inside, &mut out);
            let parsed = tack_wire::ip::parse(&out).unwrap();
            assert_eq!(parsed.ecn, Ecn::Ce);
            assert!(checksum::verify_tcp(parsed.src, parsed.dst, parsed.payload));
        }
    }

    #[test]
    fn headers_are_known_to_the_model() {
        for is_v6 in [false, true] {
            let inside = carried(&tcp(is_v6, 10)).unwrap();
            let (header, payload) = inside.tcp().unwrap();
            assert_eq!((header.len(), payload), (32, 10));
            assert_eq!(inside.ports(), (0x0707, 0x0707));
            assert_eq!(protocol(&inside), PROTOCOL_TCP);
        }
    }

    #[test]
    fn fragments_keep_their_bytes() {
        let mut bytes = packet(false, PROTOCOL_UDP, &[3; 50]);
        bytes[6..8].copy_from_slice(&0x2010_u16.to_be_bytes());
        bytes[10..12].fill(0);
        let sum = checksum::internet(&bytes[..IPV4_HEADER_LEN]);
        bytes[10..12].copy_from_slice(&sum);
        let mut out = Vec::new();
        write(carried(&bytes).unwrap(), &mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn what_belongs_to_no_host_is_refused() {
        for is_v6 in [false, true] {
            let bytes = tcp(is_v6, 0);
            assert_eq!(
                read(&bytes, 2, 3, Instant::ZERO).unwrap_err(),
                Refused::NoHost
            );
            assert_eq!(
                read(&bytes, 1, 0, Instant::ZERO).unwrap_err(),
                Refused::NoHost
            );
            for len in 0..bytes.len() {
                assert_eq!(carried(&bytes[..len]).unwrap_err(), Refused::Unfit);
            }
        }
        let mut with_options = packet(false, 1, &[0; 20]);
        with_options[0] = 0x46;
        assert_eq!(carried(&with_options).unwrap_err(), Refused::Unfit);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(
            bytes in proptest::collection::vec(any::<u8>(), 0..120),
            version in prop_oneof![Just(0x45_u8), Just(0x60)],
            protocol in prop_oneof![Just(PROTOCOL_TCP), Just(PROTOCOL_UDP), any::<u8>()],
        ) {
            let _ = carried(&bytes);
            let mut bytes = packet(version == 0x60, protocol, &bytes);
            if let Ok(inside) = carried(&bytes) {
                let mut damaged = inside.clone();
                damaged.write_checksums();
                prop_assert!(damaged.verify_checksums());
                let mut out = Vec::new();
                write(inside, &mut out);
                prop_assert_eq!(out.len(), bytes.len());
            }
            bytes[0] = version;
            let _ = carried(&bytes);
        }
    }
}
