//! The header of a pure acknowledgement, IP and TCP, as fields.
//!
//! Reading is strict: a packet is taken only if the same fields, written again, are the same bytes.
//! So whatever this codec has no field for (fragments, IP options, a wrong IPv4 checksum) is
//! refused here and travels natively.

use core::net::{Ipv4Addr, Ipv6Addr};

use arrayvec::ArrayVec;
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header};
use tack_wire::checksum::Sum;

use crate::error::Refusal;
use crate::options::{self, Options};

/// Longest header that is compressed, bytes: IPv6 without extensions (40) and a TCP header with 40
/// bytes of options (60).
pub const MAX_PACKET_LEN: usize = 100;

/// Bytes of one uncompressed packet.
pub type PacketBytes = ArrayVec<u8, MAX_PACKET_LEN>;

const TCP: u8 = 6;
const TCP_FIXED_LEN: usize = 20;

/// The fields that differ between the IP versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ip {
    V4 {
        src: Ipv4Addr,
        dst: Ipv4Addr,
        id: u16,
        dont_fragment: bool,
    },
    V6 {
        src: Ipv6Addr,
        dst: Ipv6Addr,
        flow_label: u32,
    },
}

/// The fields of a pure acknowledgement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) ip: Ip,
    /// Differentiated services codepoint, six bits.
    pub(crate) dscp: u8,
    /// ECN field of the IP header, two bits.
    pub(crate) ip_ecn: u8,
    /// TTL or hop limit.
    pub(crate) ttl: u8,
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    /// The four bits behind the data offset; AccECN's AE is the last.
    pub(crate) reserved: u8,
    /// CWR and ECE.
    pub(crate) tcp_ecn: u8,
    pub(crate) urg: bool,
    pub(crate) ack_flag: bool,
    pub(crate) psh: bool,
    /// RST, SYN and FIN.
    pub(crate) rsf: u8,
    pub(crate) window: u16,
    pub(crate) checksum: u16,
    pub(crate) urgent: u16,
    pub(crate) options: Options,
}

impl Header {
    /// Reads a packet that is nothing but headers.
    pub(crate) fn read(packet: &[u8]) -> Result<Self, Refusal> {
        let Network {
            ip,
            dscp,
            ecn: ip_ecn,
            ttl,
            payload: tcp,
        } = match packet.first().map(|byte| byte >> 4) {
            Some(4) => read_v4(packet)?,
            Some(6) => read_v6(packet)?,
            _ => return Err(Refusal::NotIp),
        };
        let fixed: &[u8; TCP_FIXED_LEN] = tcp.first_chunk().ok_or(Refusal::TcpHeader)?;
        let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let len = usize::from(fixed[12] >> 4) * 4;
        if len < TCP_FIXED_LEN || len > tcp.len() {
            return Err(Refusal::TcpHeader);
        }
        if len < tcp.len() {
            return Err(Refusal::Data);
        }
        let flags = fixed[13];
        let header = Self {
            ip,
            dscp,
            ip_ecn,
            ttl,
            src_port: half(0),
            dst_port: half(2),
            seq: word(4),
            ack: word(8),
            reserved: fixed[12] & 0xf,
            tcp_ecn: flags >> 6,
            urg: flags & 0x20 != 0,
            ack_flag: flags & 0x10 != 0,
            psh: flags & 0x08 != 0,
            rsf: (flags & 0x04) | (flags & 0x02) | (flags & 0x01),
            window: half(14),
            checksum: half(16),
            urgent: half(18),
            options: options::read(&tcp[TCP_FIXED_LEN..]).ok_or(Refusal::Options)?,
        };
        match header.write() {
            Some(written) if written.as_slice() == packet => Ok(header),
            _ => Err(Refusal::IpHeader),
        }
    }

    /// The packet. `None` if no packet has these fields: options that are not whole words or too
    /// long.
    pub(crate) fn write(&self) -> Option<PacketBytes> {
        let area = options::write(&self.options)?;
        let tcp_len = TCP_FIXED_LEN + area.len();
        let mut packet = self.write_ip(tcp_len as u16)?;
        let flags = self.tcp_ecn << 6
            | u8::from(self.urg) << 5
            | u8::from(self.ack_flag) << 4
            | u8::from(self.psh) << 3
            | self.rsf;
        packet.extend(self.src_port.to_be_bytes());
        packet.extend(self.dst_port.to_be_bytes());
        packet.extend(self.seq.to_be_bytes());
        packet.extend(self.ack.to_be_bytes());
        packet.extend([(tcp_len as u8 / 4) << 4 | self.reserved, flags]);
        packet.extend(self.window.to_be_bytes());
        packet.extend(self.checksum.to_be_bytes());
        packet.extend(self.urgent.to_be_bytes());
        packet.extend(area);
        Some(packet)
    }

    fn write_ip(&self, payload_len: u16) -> Option<PacketBytes> {
        let dscp = IpDscp::try_new(self.dscp).ok()?;
        let ecn = IpEcn::try_new(self.ip_ecn).ok()?;
        let mut packet = PacketBytes::new();
        match self.ip {
            Ip::V4 {
                src,
                dst,
                id,
                dont_fragment,
            } => {
                let mut header = Ipv4Header::new(
                    payload_len,
                    self.ttl,
                    IpNumber::TCP,
                    src.octets(),
                    dst.octets(),
                )
                .ok()?;
                header.dscp = dscp;
                header.ecn = ecn;
                header.identification = id;
                header.dont_fragment = dont_fragment;
                header.header_checksum = header.calc_header_checksum();
                packet.extend(header.to_bytes());
            }
            Ip::V6 {
                src,
                dst,
                flow_label,
            } => {
                let header = Ipv6Header {
                    traffic_class: self.dscp << 2 | self.ip_ecn,
                    flow_label: Ipv6FlowLabel::try_new(flow_label).ok()?,
                    payload_length: payload_len,
                    next_header: IpNumber::TCP,
                    hop_limit: self.ttl,
                    source: src.octets(),
                    destination: dst.octets(),
                };
                packet.extend(header.to_bytes());
            }
        }
        Some(packet)
    }

    /// The checksum that the TCP header of this packet should have (RFC 9293 §3.1).
    pub(crate) fn right_checksum(&self) -> Option<u16> {
        let mut cleared = self.clone();
        cleared.checksum = 0;
        let packet = cleared.write()?;
        let (mut checksum, at) = match self.ip {
            Ip::V4 { src, dst, .. } => {
                let len = packet.len() - Ipv4Header::MIN_LEN;
                (
                    Sum::pseudo_header(src.into(), dst.into(), TCP, len),
                    Ipv4Header::MIN_LEN,
                )
            }
            Ip::V6 { src, dst, .. } => {
                let len = packet.len() - Ipv6Header::LEN;
                (
                    Sum::pseudo_header(src.into(), dst.into(), TCP, len),
                    Ipv6Header::LEN,
                )
            }
        };
        checksum.add(packet.get(at..)?);
        Some(u16::from_be_bytes(checksum.finish()))
    }

    /// Whether a packet with that header belongs to the same flow: what RFC 6846 calls the static
    /// chain.
    pub(crate) fn same_flow(&self, other: &Self) -> bool {
        let same_ip = match (self.ip, other.ip) {
            (Ip::V4 { src, dst, .. }, Ip::V4 { src: s, dst: d, .. }) => (src, dst) == (s, d),
            (Ip::V6 { .. }, Ip::V6 { .. }) => self.ip == other.ip,
            _ => false,
        };
        same_ip && (self.src_port, self.dst_port) == (other.src_port, other.dst_port)
    }

    /// The identification of an IPv4 header.
    pub(crate) fn ip_id(&self) -> Option<u16> {
        match self.ip {
            Ip::V4 { id, .. } => Some(id),
            Ip::V6 { .. } => None,
        }
    }

    /// Don't-fragment; an IPv6 packet has the value 0 there.
    pub(crate) fn dont_fragment(&self) -> bool {
        matches!(
            self.ip,
            Ip::V4 {
                dont_fragment: true,
                ..
            }
        )
    }

    /// Whether any bit is set that only the irregular chain of a context with `ecn_used` carries.
    pub(crate) fn has_ecn_bits(&self) -> bool {
        self.ip_ecn != 0 || self.reserved != 0 || self.tcp_ecn != 0
    }
}

/// An IP header.
struct Network<'a> {
    ip: Ip,
    dscp: u8,
    ecn: u8,
    ttl: u8,
    /// What follows it.
    payload: &'a [u8],
}

fn read_v4(packet: &[u8]) -> Result<Network<'_>, Refusal> {
    let (header, payload) = Ipv4Header::from_slice(packet).map_err(|_| Refusal::NotIp)?;
    if usize::from(header.total_len) != packet.len() {
        return Err(Refusal::NotIp);
    }
    if !header.options.is_empty() || header.is_fragmenting_payload() {
        return Err(Refusal::IpHeader);
    }
    if header.protocol != IpNumber::TCP {
        return Err(Refusal::NotTcp);
    }
    let ip = Ip::V4 {
        src: header.source.into(),
        dst: header.destination.into(),
        id: header.identification,
        dont_fragment: header.dont_fragment,
    };
    Ok(Network {
        ip,
        dscp: header.dscp.value(),
        ecn: header.ecn.value(),
        ttl: header.time_to_live,
        payload,
    })
}

fn read_v6(packet: &[u8]) -> Result<Network<'_>, Refusal> {
    let (header, payload) = Ipv6Header::from_slice(packet).map_err(|_| Refusal::NotIp)?;
    if usize::from(header.payload_length) != payload.len() {
        return Err(Refusal::NotIp);
    }
    if header.next_header != IpNumber::TCP {
        return Err(Refusal::NotTcp);
    }
    let ip = Ip::V6 {
        src: header.source.into(),
        dst: header.destination.into(),
        flow_label: header.flow_label.value(),
    };
    let class = header.traffic_class;
    Ok(Network {
        ip,
        dscp: class >> 2,
        ecn: class & 3,
        ttl: header.hop_limit,
        payload,
    })
}
