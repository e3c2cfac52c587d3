//! Packets on their way: real IP and transport headers, a payload that is shared and never copied.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use tack_base::Instant;
use tack_wire::checksum::{self, PROTOCOL_TCP, PROTOCOL_UDP};
use tack_wire::segment::HEADER_LEN;
use tack_wire::tack::FEEDBACK_LEN;
use tack_wire::{Ecn, Segment, ip};
use tack_wlan::{AccessCategory, Class};

mod head;

pub use head::{Head, MAX_HEAD};

/// Bytes of a UDP header.
pub const UDP_HEADER_LEN: usize = 8;

/// Whether the checksums of a packet are written or verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksums {
    /// Left blank, as with checksum offload: nothing on the way has touched a bit that was not
    /// meant to change, so computing and checking them would only prove that addition works.
    Blank,
    /// Written into the headers; the receiving host verifies them.
    Written,
}

/// The payload of a datagram, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Inner {
    /// Nothing: the packet is what its headers say.
    #[default]
    Unknown,
    /// One TCP segment, as this project's UDP carrier sends it.
    Segment,
}

/// One IPv4 packet.
#[derive(Clone, Debug)]
pub struct Packet {
    /// IP and transport header, options included.
    pub head: Head,
    /// What follows the transport header.
    pub payload: Bytes,
    /// State of the checksums.
    pub checksums: Checksums,
    /// The kind of packet, where its maker knows more than its headers say:
    /// [`Packet::class`].
    pub declared: Option<Class>,
    /// The payload of a datagram, as far as its maker knows.
    pub inner: Inner,
    /// When the sending host handed it to the link.
    pub sent: Instant,
}

impl Packet {
    /// A packet whose transport header is `transport`, checksums blank.
    ///
    /// # Panics
    /// When the transport header is longer than 60 bytes or the packet longer than 65,535.
    pub fn new(
        addresses: (Ipv4Addr, Ipv4Addr),
        protocol: u8,
        ecn: Ecn,
        transport: &[u8],
        payload: Bytes,
        sent: Instant,
    ) -> Self {
        let total = ip::IPV4_HEADER_LEN + transport.len() + payload.len();
        let total = u16::try_from(total).expect("an IPv4 packet has at most 65,535 bytes");
        let mut head = Head::new();
        // RFC 791 §3.1: version and length, DSCP and ECN, total length; identification zero is
        // right for packets that are never fragmented (RFC 6864 §4.1); don't fragment; hop
        // limit; protocol; checksum blank.
        let [high, low] = total.to_be_bytes();
        let [s0, s1, s2, s3] = addresses.0.octets();
        let [d0, d1, d2, d3] = addresses.1.octets();
        let fixed = [
            0x45,
            ecn as u8,
            high,
            low,
            0,
            0,
            0x40,
            0,
            ip::DEFAULT_HOP_LIMIT,
            protocol,
            0,
            0,
            s0,
            s1,
            s2,
            s3,
            d0,
            d1,
            d2,
            d3,
        ];
        let fits = head.append(&fixed) && head.append(transport);
        assert!(fits, "a transport header has at most 60 bytes");
        Self {
            head,
            payload,
            checksums: Checksums::Blank,
            declared: None,
            inner: Inner::Unknown,
            sent,
        }
    }

    /// A packet without payload from its headers as they were on the wire; `None` when they are too
    /// long.
    pub(crate) fn from_head(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            head: Head::from_slice(bytes)?,
            payload: Bytes::new(),
            checksums: Checksums::Written,
            declared: None,
            inner: Inner::Unknown,
            sent: Instant::ZERO,
        })
    }

    /// Length of the IP packet, bytes.
    #[inline]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a packet has at least a header"
    )]
    pub fn len(&self) -> usize {
        self.head.len() + self.payload.len()
    }

    /// Transport protocol number.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.head[9]
    }

    /// The transport header with its options.
    #[inline]
    pub fn transport(&self) -> &[u8] {
        &self.head[ip::IPV4_HEADER_LEN..]
    }

    /// The transport header, to be changed by something on the way.
    ///
    /// The checksums must still be [`Checksums::Blank`]: a step that changes a header on
    /// purpose comes before a step that damages it.
    #[inline]
    pub fn transport_mut(&mut self) -> &mut [u8] {
        debug_assert_eq!(self.checksums, Checksums::Blank);
        &mut self.head[ip::IPV4_HEADER_LEN..]
    }

    /// Source and destination port: TCP and UDP begin with them.
    #[inline]
    pub fn ports(&self) -> (u16, u16) {
        let transport = self.transport();
        let half = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
        (half(0), half(2))
    }

    /// Source address.
    pub fn src(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.head[12], self.head[13], self.head[14], self.head[15])
    }

    /// Destination address.
    pub fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.head[16], self.head[17], self.head[18], self.head[19])
    }

    /// ECN codepoint.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.head[1])
    }

    /// Marks congestion experienced, when the transport takes part (RFC 3168 §5). Says whether it
    /// did.
    pub fn mark_congestion(&mut self) -> bool {
        debug_assert_eq!(self.checksums, Checksums::Blank);
        let capable = self.ecn() != Ecn::NotEct;
        if capable {
            self.head[1] |= Ecn::Ce as u8;
        }
        capable
    }

    /// Overwrites the ECN codepoint, as something on the way may do that should not.
    pub fn set_ecn(&mut self, ecn: Ecn) {
        debug_assert_eq!(self.checksums, Checksums::Blank);
        self.head[1] = self.head[1] & !0b11 | ecn as u8;
    }

    /// Marks the packet for an access category of 802.11, by the usual code point of it.
    pub fn set_access_category(&mut self, category: AccessCategory) {
        debug_assert_eq!(self.checksums, Checksums::Blank);
        let code_point = match category {
            AccessCategory::Background => 8,
            AccessCategory::BestEffort => 0,
            AccessCategory::Video => 34,
            AccessCategory::Voice => 46,
        };
        self.head[1] = code_point << 2 | self.head[1] & 0b11;
    }

    /// The access category in which 802.11 carries the packet, by its differentiated services code
    /// point (RFC 8325 §4.3).
    #[inline]
    pub fn access_category(&self) -> AccessCategory {
        match self.head[1] >> 2 {
            // Lower effort and CS1.
            1 | 8 => AccessCategory::Background,
            // CS3 to CS5, AF3x, AF4x.
            24 | 26 | 28 | 30 | 32 | 34 | 36 | 38 | 40 => AccessCategory::Video,
            // Voice admit, expedited forwarding, CS6, CS7.
            44 | 46 | 48 | 56 => AccessCategory::Voice,
            _ => AccessCategory::BestEffort,
        }
    }

    /// What the packet is, for accounts of airtime and loss of acknowledgements: as declared, else
    /// what its headers say.
    #[inline]
    pub fn class(&self) -> Class {
        let by_headers = || {
            if self.is_pure_ack() || self.is_datagram_ack() {
                Class::TransportAck
            } else {
                Class::Data
            }
        };
        self.declared.unwrap_or_else(by_headers)
    }

    /// True for a TCP segment without payload, SYN, FIN or RST, or for a packet declared to be as
    /// much: an acknowledgement and nothing else.
    #[inline]
    pub fn is_pure_ack(&self) -> bool {
        const SYN_FIN_RST: u8 = 0x07;
        if let Some(declared) = self.declared {
            return declared == Class::TransportAck;
        }
        self.protocol() == PROTOCOL_TCP
            && self.transport()[13] & SYN_FIN_RST == 0
            && (self.payload.is_empty() || self.is_tack_feedback())
    }

    /// True for a segment whose payload, if any, is the lists of a TACK report: outside the
    /// sequence space.
    #[inline]
    pub fn is_tack_feedback(&self) -> bool {
        // Such an option is longer than those of data: only what may have it is parsed.
        self.transport().len() >= HEADER_LEN + FEEDBACK_LEN
            && Segment::parse(self.transport()).is_ok_and(|segment| {
                let tack = segment.header.options.tack;
                tack.is_some_and(|option| option.is_feedback())
            })
    }

    /// True for an acknowledgement of a UDP flow: it comes from the port that the flow's datagrams
    /// go to.
    #[inline]
    pub fn is_datagram_ack(&self) -> bool {
        let ports = &self.head[ip::IPV4_HEADER_LEN..];
        self.protocol() == PROTOCOL_UDP && ports[0..2] < ports[2..4]
    }

    /// The TCP header with its options, and the bytes of payload behind it: of a TCP packet, or of
    /// a segment in UDP. `None` for everything else, for fragments, and where the header does
    /// not fit.
    pub fn tcp(&self) -> Option<(&[u8], usize)> {
        let (bytes, more) = match (self.protocol(), self.inner) {
            (PROTOCOL_TCP, _) if !self.is_fragment() => (self.transport(), self.payload.len()),
            (PROTOCOL_UDP, Inner::Segment) => (&self.payload[..], 0),
            _ => return None,
        };
        let len = usize::from(*bytes.get(12)? >> 4) * 4;
        let header = bytes
            .get(..len)
            .filter(|header| header.len() >= tack_wire::segment::HEADER_LEN)?;
        Some((header, bytes.len() - len + more))
    }

    /// True for any fragment of an IP packet: more fragments follow, or the offset is not zero (RFC
    /// 791 §3.1).
    pub fn is_fragment(&self) -> bool {
        u16::from_be_bytes([self.head[6], self.head[7]]) & 0x3fff != 0
    }

    /// Rewrites the length fields after the transport header grew or shrank.
    pub fn update_length(&mut self) {
        let total = (self.len() as u16).to_be_bytes();
        self.head[2..4].copy_from_slice(&total);
    }

    /// Writes IP and transport checksums. Does nothing when they are there. Packets of other
    /// protocols than TCP and UDP, and fragments, keep what is behind the IP header.
    pub fn write_checksums(&mut self) {
        if self.checksums == Checksums::Written {
            return;
        }
        let sum = checksum::internet(&self.head[..ip::IPV4_HEADER_LEN]);
        self.head[10..12].copy_from_slice(&sum);
        if let Some(at) = self.checksum_place() {
            let sum = self.transport_sum();
            // A UDP checksum of zero would mean "none" (RFC 768).
            let sum = if self.protocol() == PROTOCOL_UDP && sum == [0, 0] {
                [0xff, 0xff]
            } else {
                sum
            };
            self.head[at..at + 2].copy_from_slice(&sum);
        }
        self.checksums = Checksums::Written;
    }

    /// True when a host would take the packet: the checksums are right, and the IP header makes
    /// sense.
    pub fn verify_checksums(&self) -> bool {
        match self.checksums {
            Checksums::Blank => true,
            Checksums::Written => {
                checksum::internet(&self.head[..ip::IPV4_HEADER_LEN]) == [0, 0]
                    && (self.checksum_place().is_none() || self.transport_sum() == [0, 0])
            }
        }
    }

    /// Where in the head the checksum of TCP or UDP is; `None` for other protocols, fragments, and
    /// heads that end before it.
    fn checksum_place(&self) -> Option<usize> {
        let at = match self.protocol() {
            PROTOCOL_UDP => 6,
            PROTOCOL_TCP => 16,
            _ => return None,
        };
        let at = ip::IPV4_HEADER_LEN + at;
        (at + 2 <= self.head.len() && !self.is_fragment()).then_some(at)
    }

    /// Sets the checksums that are computed anew to zero: for a packet that comes from elsewhere.
    pub fn blank_checksums(&mut self) {
        self.head[10..12].fill(0);
        if let Some(at) = self.checksum_place() {
            self.head[at..at + 2].fill(0);
        }
        self.checksums = Checksums::Blank;
    }

    fn transport_sum(&self) -> [u8; 2] {
        let transport = self.transport();
        let len = transport.len() + self.payload.len();
        let (src, dst) = (IpAddr::V4(self.src()), IpAddr::V4(self.dst()));
        let mut sum = checksum::Sum::pseudo_header(src, dst, self.protocol(), len);
        sum.add(transport);
        sum.add(&self.payload);
        sum.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(payload: &'static [u8]) -> Packet {
        let addresses = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mut transport = [0; 24];
        transport[12] = 6 << 4;
        transport[13] = 0x10;
        Packet::new(
            addresses,
            PROTOCOL_TCP,
            Ecn::Ect0,
            &transport,
            Bytes::from_static(payload),
            Instant::ZERO,
        )
    }

    #[test]
    fn headers_are_what_a_parser_of_ip_expects() {
        let mut packet = packet(b"hello");
        packet.write_checksums();
        let mut bytes = packet.head.to_vec();
        bytes.extend_from_slice(&packet.payload);
        let parsed = ip::parse(&bytes).unwrap();
        assert_eq!(
            (parsed.src, parsed.dst),
            (packet.src().into(), packet.dst().into())
        );
        assert_eq!((parsed.ecn, parsed.protocol), (Ecn::Ect0, PROTOCOL_TCP));
        assert_eq!(parsed.payload.len(), 24 + 5);
        assert!(checksum::verify_tcp(parsed.src, parsed.dst, parsed.payload));
    }

    #[test]
    fn marks_for_access_categories_leave_ecn_alone() {
        for category in AccessCategory::ALL {
            let mut packet = packet(b"hello");
            packet.set_access_category(category);
            assert_eq!(packet.access_category(), category);
            assert_eq!(packet.ecn(), Ecn::Ect0);
            assert!(packet.mark_congestion());
            assert_eq!(packet.access_category(), category);
        }
    }

    #[test]
    fn a_changed_bit_is_noticed() {
        let mut packet = packet(b"hello");
        packet.write_checksums();
        assert!(packet.verify_checksums());
        for at in 0..packet.head.len() {
            let mut damaged = packet.clone();
            damaged.head[at] ^= 0x04;
            assert!(!damaged.verify_checksums(), "byte {at}");
        }
    }

    #[test]
    fn marks_need_a_capable_transport() {
        let mut capable = packet(b"");
        assert!(capable.mark_congestion());
        assert_eq!(capable.ecn(), Ecn::Ce);
        let mut other = packet(b"");
        other.head[1] = 0;
        assert!(!other.mark_congestion());
        assert_eq!(other.ecn(), Ecn::NotEct);
        assert!(other.is_pure_ack());
    }
}
