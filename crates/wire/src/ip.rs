//! IP packets around a transport payload: IPv4 (RFC 791) and IPv6 (RFC 8200).
//!
//! The headers themselves are `etherparse`'s; this room adds what a host checks before it believes
//! a packet: the IPv4 header checksum, no fragments (nobody here reassembles), no routing header
//! with hops left to visit, no IPsec.

use core::fmt;
use core::net::IpAddr;

use etherparse::err::ip::{HeaderError, HeadersError, SliceError};
use etherparse::{IpDscp, IpEcn, IpNumber, IpSlice, Ipv4Header, Ipv6ExtensionSlice, Ipv6Header};

use crate::Ecn;
use crate::checksum;

/// Bytes of an IPv4 header without options, which is what [`emit_header`] writes.
pub const IPV4_HEADER_LEN: usize = Ipv4Header::MIN_LEN;
/// Bytes of an IPv6 header without extension headers.
pub const IPV6_HEADER_LEN: usize = Ipv6Header::LEN;
/// The hop limit that hosts commonly start from (RFC 1700, "IP time to live parameter").
pub const DEFAULT_HOP_LIMIT: u8 = 64;

/// What a received IP packet says, payload borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same family.
    pub dst: IpAddr,
    /// Congestion notification codepoint.
    pub ecn: Ecn,
    /// Protocol of the payload, behind any extension headers: 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// The payload, without anything that trailed the packet (link-layer padding).
    pub payload: &'a [u8],
}

/// Why bytes are not an IP packet that this host takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpError {
    /// Something that starts at `offset` needs `needed` bytes and has `available`.
    Truncated {
        /// Where the cut-off header or packet starts.
        offset: usize,
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that are there.
        available: usize,
    },
    /// The version nibble is neither 4 nor 6.
    Version(u8),
    /// The IPv4 header length field (in words of four bytes) is below its minimum of 5.
    HeaderLength(u8),
    /// The IPv4 header checksum is wrong (RFC 1122 §3.2.1.2 has such packets dropped silently).
    Checksum,
    /// A fragment of a larger packet.
    Fragment,
    /// An extension header that this host cannot act on: hop-by-hop options in the wrong place, a
    /// routing header with segments left (RFC 8200 §4.4), or IPsec authentication.
    Extension,
    /// The IPv6 payload length is zero: nothing follows, or a jumbogram does (RFC 2675).
    NoPayload,
}

impl fmt::Display for IpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated {
                offset,
                needed,
                available,
            } => {
                write!(
                    f,
                    "what starts at byte {offset} needs {needed} bytes and has {available}"
                )
            }
            Self::Version(version) => {
                write!(f, "IP version {version} at byte 0 is neither 4 nor 6")
            }
            Self::HeaderLength(words) => {
                write!(
                    f,
                    "header length of {words} words at byte 0 is below the 5 of an IPv4 header"
                )
            }
            Self::Checksum => f.write_str("the IPv4 header checksum at byte 10 is wrong"),
            Self::Fragment => f.write_str("the packet is a fragment"),
            Self::Extension => {
                f.write_str("an extension header asks for what this host does not do")
            }
            Self::NoPayload => f.write_str("the IPv6 payload length at byte 4 is zero"),
        }
    }
}

impl core::error::Error for IpError {}

impl From<SliceError> for IpError {
    fn from(error: SliceError) -> Self {
        match error {
            SliceError::Len(error) => Self::Truncated {
                offset: error.layer_start_offset,
                needed: error.required_len,
                available: error.len,
            },
            SliceError::IpHeaders(HeadersError::Ip(HeaderError::UnsupportedIpVersion {
                version_number,
            })) => Self::Version(version_number),
            SliceError::IpHeaders(HeadersError::Ip(
                HeaderError::Ipv4HeaderLengthSmallerThanHeader { ihl },
            )) => Self::HeaderLength(ihl),
            SliceError::IpHeaders(HeadersError::Ipv4Ext(_) | HeadersError::Ipv6Ext(_)) => {
                Self::Extension
            }
        }
    }
}

/// Reads one IP packet from the start of `bytes`; what follows the packet is ignored.
///
/// IPv6 hop-by-hop, destination and spent routing headers are stepped over, as is a fragment header
/// around a whole packet (RFC 6946). The payload is not looked at.
///
/// # Errors
/// [`IpError`] for anything that a host would drop, and for fragments.
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, IpError> {
    match IpSlice::from_slice(bytes)? {
        IpSlice::Ipv4(packet) => {
            let header = packet.header();
            if checksum::internet(header.slice()) != [0, 0] {
                return Err(IpError::Checksum);
            }
            if packet.is_payload_fragmented() {
                return Err(IpError::Fragment);
            }
            if packet.extensions().auth.is_some() {
                return Err(IpError::Extension);
            }
            Ok(Packet {
                src: header.source_addr().into(),
                dst: header.destination_addr().into(),
                ecn: Ecn::from_bits(header.ecn().value()),
                protocol: packet.payload_ip_number().0,
                payload: packet.payload().payload,
            })
        }
        IpSlice::Ipv6(packet) => {
            let header = packet.header();
            if header.payload_length() == 0 {
                return Err(IpError::NoPayload);
            }
            if packet.is_payload_fragmented() {
                return Err(IpError::Fragment);
            }
            for extension in packet.extensions().clone() {
                match extension {
                    // The fourth byte of every routing header counts the hops still to visit.
                    Ipv6ExtensionSlice::Routing(routing)
                        if routing.payload().get(1) != Some(&0) =>
                    {
                        return Err(IpError::Extension);
                    }
                    Ipv6ExtensionSlice::Authentication(_) => return Err(IpError::Extension),
                    _ => {}
                }
            }
            Ok(Packet {
                src: header.source_addr().into(),
                dst: header.destination_addr().into(),
                ecn: Ecn::from_bits(header.ecn().value()),
                protocol: packet.payload().ip_number.0,
                payload: packet.payload().payload,
            })
        }
    }
}

/// Whether routers may cut an IPv4 packet into fragments. IPv6 never has them do it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fragmenting {
    /// Don't-fragment is set: what a transport that finds the path MTU itself wants (RFC 1191).
    #[default]
    Forbidden,
    /// Don't-fragment is clear.
    Allowed,
}

/// What [`emit_header`] writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emit {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same family.
    pub dst: IpAddr,
    /// Congestion notification codepoint.
    pub ecn: Ecn,
    /// Differentiated services codepoint, 0 to 63 (RFC 2474); higher bits are cut off.
    pub dscp: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Bytes that follow the header: at most 65,515 for IPv4 and 65,535 for IPv6.
    pub payload_len: usize,
    /// IPv4 identification; without meaning for packets that may not be fragmented (RFC 6864
    /// §4.1).
    pub ident: u16,
    /// The IPv4 don't-fragment flag.
    pub fragmenting: Fragmenting,
    /// Time to live or hop limit.
    pub hop_limit: u8,
}

impl Emit {
    /// A header as hosts commonly send it: not ECN-capable, best effort, hop limit 64, not to be
    /// fragmented.
    pub const fn new(src: IpAddr, dst: IpAddr, protocol: u8, payload_len: usize) -> Self {
        Self {
            src,
            dst,
            ecn: Ecn::NotEct,
            dscp: 0,
            protocol,
            payload_len,
            ident: 0,
            fragmenting: Fragmenting::Forbidden,
            hop_limit: DEFAULT_HOP_LIMIT,
        }
    }
}

/// Bytes of the header that [`emit_header`] writes for addresses of this family: 20 or 40.
pub const fn header_len(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => IPV4_HEADER_LEN,
        IpAddr::V6(_) => IPV6_HEADER_LEN,
    }
}

/// Writes the header to the start of `out`, the IPv4 checksum filled in, and returns its length.
///
/// # Panics
/// When the addresses are of different families, the payload is longer than one packet can carry,
/// or `out` is shorter than [`header_len`].
pub fn emit_header(out: &mut [u8], emit: &Emit) -> usize {
    match (emit.src, emit.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let total_len = u16::try_from(IPV4_HEADER_LEN + emit.payload_len)
                .expect("an IPv4 packet has at most 65,535 bytes");
            let mut header = Ipv4Header {
                dscp: dscp(emit.dscp),
                ecn: ecn(emit.ecn),
                total_len,
                identification: emit.ident,
                dont_fragment: emit.fragmenting == Fragmenting::Forbidden,
                time_to_live: emit.hop_limit,
                protocol: IpNumber(emit.protocol),
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv4Header::default()
            };
            header.header_checksum = header.calc_header_checksum();
            out[..IPV4_HEADER_LEN].copy_from_slice(&header.to_bytes());
            IPV4_HEADER_LEN
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let payload_length = u16::try_from(emit.payload_len)
                .expect("an IPv6 packet carries at most 65,535 bytes");
            let mut header = Ipv6Header {
                payload_length,
                next_header: IpNumber(emit.protocol),
                hop_limit: emit.hop_limit,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv6Header::default()
            };
            header.set_dscp(dscp(emit.dscp));
            header.set_ecn(ecn(emit.ecn));
            out[..IPV6_HEADER_LEN].copy_from_slice(&header.to_bytes());
            IPV6_HEADER_LEN
        }
        (src, dst) => panic!("{src} and {dst} are of different families"),
    }
}

/// Overwrites the congestion notification codepoint of the packet at the start of `packet`, as a
/// router that marks it does, and keeps the IPv4 header checksum right.
///
/// # Errors
/// What [`parse`] would return for bytes without a whole IP header; nothing is changed then.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) -> Result<(), IpError> {
    let truncated = |needed: usize, available: usize| IpError::Truncated {
        offset: 0,
        needed,
        available,
    };
    let available = packet.len();
    let Some(first) = packet.first() else {
        return Err(truncated(1, available));
    };
    match first >> 4 {
        4 => {
            let words = first & 0x0f;
            if words < 5 {
                return Err(IpError::HeaderLength(words));
            }
            let header_len = usize::from(words) * 4;
            let header = packet
                .get_mut(..header_len)
                .ok_or(truncated(header_len, available))?;
            header[1] = header[1] & !0b11 | ecn as u8;
            header[10..12].fill(0);
            let checksum = checksum::internet(header);
            header[10..12].copy_from_slice(&checksum);
        }
        6 => {
            let header = packet
                .get_mut(..IPV6_HEADER_LEN)
                .ok_or(truncated(IPV6_HEADER_LEN, available))?;
            // The traffic class straddles bytes 0 and 1; its two lowest bits are these.
            header[1] = header[1] & !0b0011_0000 | (ecn as u8) << 4;
        }
        version => return Err(IpError::Version(version)),
    }
    Ok(())
}

fn dscp(bits: u8) -> IpDscp {
    IpDscp::try_new(bits & IpDscp::MAX_U8).unwrap_or(IpDscp::ZERO)
}

const fn ecn(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotEct => IpEcn::NotEct,
        Ecn::Ect1 => IpEcn::Ect1,
        Ecn::Ect0 => IpEcn::Ect0,
        Ecn::Ce => IpEcn::CongestionExperienced,
    }
}

#[cfg(test)]
mod tests;
