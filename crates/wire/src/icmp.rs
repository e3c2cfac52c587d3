//! ICMP (RFC 792) and ICMPv6 (RFC 4443), as far as a TCP host hears and answers them: errors about
//! segments of ours, and echo requests.
//!
//! Anybody can send such an error. What makes it believable is the sequence number that it quotes,
//! which only the connection can check (RFC 5927 §4.1).

use core::net::IpAddr;

use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::icmpv6::DestUnreachableCode;
use etherparse::{
    Icmpv4Slice, Icmpv4Type, Icmpv6Slice, Icmpv6Type, IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice,
};

use crate::checksum::{self, PROTOCOL_TCP, Sum};
use crate::ip::Packet;
use crate::seq::SeqNum;

/// Protocol number of ICMP in an IPv4 header.
pub const PROTOCOL_ICMP: u8 = 1;
/// Protocol number of ICMPv6 in an IPv6 header.
pub const PROTOCOL_ICMPV6: u8 = 58;
/// Bytes of an ICMP header.
const HEADER_LEN: usize = 8;

/// What a message of ICMP says that concerns TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// A TCP segment did not arrive.
    Error(Error),
    /// The sender asks for an echo; the bytes are the whole ICMP message.
    EchoRequest(&'a [u8]),
}

/// A segment did not arrive, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error {
    /// Why.
    pub problem: Problem,
    /// Which segment.
    pub quoted: Quoted,
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// No route, no such host, nothing that takes the protocol, or a filter in between.
    Unreachable,
    /// The packet is longer than a link takes, which takes at most `mtu` bytes. Where a router does
    /// not say how many (RFC 1191 §5), it is the next smaller usual size.
    TooBig {
        /// Bytes of an IP packet, header included.
        mtu: u16,
    },
    /// The hop limit was too small.
    TimeExceeded,
}

/// What an error quotes of the segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quoted {
    /// Source of the segment: the host that gets the error.
    pub src: IpAddr,
    /// Where the segment was sent to.
    pub dst: IpAddr,
    /// Source port of the segment.
    pub src_port: u16,
    /// Destination port of the segment.
    pub dst_port: u16,
    /// Sequence number of the segment.
    pub seq: SeqNum,
}

/// Reads the ICMP message in `packet`: `None` for other protocols, malformed or damaged messages,
/// and messages that do not concern TCP.
pub fn parse<'a>(packet: &Packet<'a>) -> Option<Message<'a>> {
    match packet.protocol {
        PROTOCOL_ICMP if packet.src.is_ipv4() => parse_v4(packet.payload),
        PROTOCOL_ICMPV6 if packet.src.is_ipv6() => parse_v6(packet),
        _ => None,
    }
}

fn parse_v4(message: &[u8]) -> Option<Message<'_>> {
    if checksum::internet(message) != [0, 0] {
        return None;
    }
    let icmp = Icmpv4Slice::from_slice(message).ok()?;
    let problem = match icmp.icmp_type() {
        Icmpv4Type::EchoRequest(_) => return Some(Message::EchoRequest(message)),
        Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::FragmentationNeeded {
            next_hop_mtu,
        }) => Problem::TooBig { mtu: next_hop_mtu },
        Icmpv4Type::DestinationUnreachable(_) => Problem::Unreachable,
        Icmpv4Type::TimeExceeded(_) => Problem::TimeExceeded,
        _ => return None,
    };
    let header = Ipv4HeaderSlice::from_slice(icmp.payload()).ok()?;
    if header.protocol() != IpNumber(PROTOCOL_TCP) || header.fragments_offset().value() != 0 {
        return None;
    }
    let rest = &icmp.payload()[header.slice().len()..];
    let quoted = quote(
        header.source_addr().into(),
        header.destination_addr().into(),
        rest,
    )?;
    let problem = match problem {
        Problem::TooBig { mtu: 0 } => Problem::TooBig {
            mtu: smaller_mtu(usize::from(header.total_len()))?,
        },
        problem => problem,
    };
    Some(Message::Error(Error { problem, quoted }))
}

fn parse_v6<'a>(packet: &Packet<'a>) -> Option<Message<'a>> {
    let message = packet.payload;
    let mut sum = Sum::pseudo_header(packet.src, packet.dst, PROTOCOL_ICMPV6, message.len());
    sum.add(message);
    if sum.finish() != [0, 0] {
        return None;
    }
    let icmp = Icmpv6Slice::from_slice(message).ok()?;
    let problem = match icmp.icmp_type() {
        Icmpv6Type::EchoRequest(_) => return Some(Message::EchoRequest(message)),
        Icmpv6Type::PacketTooBig { mtu } => Problem::TooBig {
            mtu: u16::try_from(mtu).unwrap_or(u16::MAX),
        },
        // RFC 4443 §3.1: what comes back for a segment of another source than ours is not for us.
        Icmpv6Type::DestinationUnreachable(DestUnreachableCode::BeyondScope) => return None,
        Icmpv6Type::DestinationUnreachable(_) => Problem::Unreachable,
        Icmpv6Type::TimeExceeded(_) => Problem::TimeExceeded,
        _ => return None,
    };
    let header = Ipv6HeaderSlice::from_slice(icmp.payload()).ok()?;
    // We send no extension headers, so the quoted segment has none.
    if header.next_header() != IpNumber(PROTOCOL_TCP) {
        return None;
    }
    let rest = &icmp.payload()[header.slice().len()..];
    let quoted = quote(
        header.source_addr().into(),
        header.destination_addr().into(),
        rest,
    )?;
    Some(Message::Error(Error { problem, quoted }))
}

/// What the first eight bytes of a TCP header say (RFC 792 promises no more).
fn quote(src: IpAddr, dst: IpAddr, rest: &[u8]) -> Option<Quoted> {
    let &[a, b, c, d, e, f, g, h, ..] = rest else {
        return None;
    };
    Some(Quoted {
        src,
        dst,
        src_port: u16::from_be_bytes([a, b]),
        dst_port: u16::from_be_bytes([c, d]),
        seq: SeqNum(u32::from_be_bytes([e, f, g, h])),
    })
}

/// The largest usual MTU (RFC 1191 §7, with today's tunnels and the IPv6 minimum) below a packet of
/// `len` bytes; `None` when none is smaller.
pub fn smaller_mtu(len: usize) -> Option<u16> {
    const PLATEAUS: [u16; 12] = [
        32_000, 17_914, 9_000, 8_166, 4_352, 2_002, 1_492, 1_400, 1_280, 1_006, 508, 296,
    ];
    PLATEAUS.into_iter().find(|mtu| usize::from(*mtu) < len)
}

/// Writes the answer to an echo request (a message as [`parse`] returns it) to the start of `out`:
/// the same bytes with another type and checksum (RFC 792, RFC 4443 §4.2). `src` and `dst` are
/// those of the answer.
///
/// # Panics
/// When `out` is shorter than `request`, or that shorter than an ICMP header.
pub fn emit_echo_reply(out: &mut [u8], src: IpAddr, dst: IpAddr, request: &[u8]) {
    assert!(
        request.len() >= HEADER_LEN,
        "an ICMP message has at least 8 bytes"
    );
    let out = &mut out[..request.len()];
    out.copy_from_slice(request);
    out[1..4].fill(0);
    let checksum = if src.is_ipv4() {
        out[0] = 0;
        checksum::internet(out)
    } else {
        out[0] = 129;
        let mut sum = Sum::pseudo_header(src, dst, PROTOCOL_ICMPV6, out.len());
        sum.add(out);
        sum.finish()
    };
    out[2..4].copy_from_slice(&checksum);
}

/// Why a host or a router says that a packet cannot be delivered (RFC 792, RFC 1812 §5.2.7.1,
/// RFC 4443 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreachable {
    /// There is no route.
    Network,
    /// The host does not answer.
    Host,
    /// Nobody is at the port.
    Port,
    /// It is not permitted.
    Prohibited,
}

/// The most bytes that [`emit_unreachable`] quotes: the message fits every link (RFC 1812
/// §4.3.2.3).
pub const MAX_QUOTE: usize = 500;

/// Writes an error about the packet `quoted`, or its beginning, to the start of `out`, and returns
/// its length: 8 bytes more than it quotes, at most [`MAX_QUOTE`]. `src` and `dst` are those of the
/// error.
///
/// # Panics
/// When `out` is shorter than that.
pub fn emit_unreachable(
    out: &mut [u8],
    src: IpAddr,
    dst: IpAddr,
    reason: Unreachable,
    quoted: &[u8],
) -> usize {
    let quoted = &quoted[..quoted.len().min(MAX_QUOTE)];
    let out = &mut out[..HEADER_LEN + quoted.len()];
    let (kind, code) = match (src.is_ipv4(), reason) {
        (true, Unreachable::Network) => (3, 0),
        (true, Unreachable::Host) => (3, 1),
        (true, Unreachable::Port) => (3, 3),
        (true, Unreachable::Prohibited) => (3, 13),
        (false, Unreachable::Network) => (1, 0),
        (false, Unreachable::Prohibited) => (1, 1),
        (false, Unreachable::Host) => (1, 3),
        (false, Unreachable::Port) => (1, 4),
    };
    out[..HEADER_LEN].copy_from_slice(&[kind, code, 0, 0, 0, 0, 0, 0]);
    out[HEADER_LEN..].copy_from_slice(quoted);
    let checksum = if src.is_ipv4() {
        checksum::internet(out)
    } else {
        let mut sum = Sum::pseudo_header(src, dst, PROTOCOL_ICMPV6, out.len());
        sum.add(out);
        sum.finish()
    };
    out[2..4].copy_from_slice(&checksum);
    out.len()
}

#[cfg(test)]
mod tests;
