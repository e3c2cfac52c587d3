//! Receive offload: segments that come to a host at the same instant, as those of an A-MPDU do, are
//! one packet to its kernel, as generic receive offload makes of what a network interface has
//! received by one interrupt. TCP then sees them at once, and acknowledges them once.

use tack_base::Instant;
use tack_io::{SendCause, TunSender};
use tack_wire::checksum::{PROTOCOL_TCP, Sum, internet};
use tack_wire::ip::{self, IPV4_HEADER_LEN, IPV6_HEADER_LEN};

/// Flags of TCP.
const ACK: u8 = 0x10;
const PUSH: u8 = 0x08;

/// Most bytes of an IP packet.
const MAX_PACKET: usize = 65_535;

/// Where in an IPv4 header the total length, the identification and the checksum are; where in an
/// IPv6 header the length of the payload is.
const V4_VOLATILE: &[(usize, usize)] = &[(2, 4), (4, 6), (10, 12)];
const V6_VOLATILE: &[(usize, usize)] = &[(4, 6)];

/// Packets on their way to one host.
#[derive(Debug, Default)]
pub(super) struct Train {
    /// The first packet, and the payloads of those that follow it.
    bytes: Vec<u8>,
    ip_len: usize,
    tcp_len: usize,
    segment_size: usize,
    next_seq: u32,
    at: Instant,
    segments: usize,
    /// Nothing may follow.
    is_closed: bool,
}

/// What a packet is to receive offload.
struct Segment {
    ip_len: usize,
    tcp_len: usize,
    seq: u32,
    payload: usize,
    has_push: bool,
}

impl Train {
    /// How many packets of the model it has.
    pub(super) fn segments(&self) -> usize {
        self.segments
    }

    /// When they came.
    pub(super) fn at(&self) -> Instant {
        self.at
    }

    /// Takes `packet`, which came `at`, if it is the next segment; otherwise [`Train::send`] what
    /// there is first.
    pub(super) fn add(&mut self, at: Instant, packet: &[u8], is_on: bool) -> bool {
        let segment = is_on.then(|| segment(packet)).flatten();
        if self.segments == 0 {
            self.bytes.clear();
            self.bytes.extend_from_slice(packet);
            self.segments = 1;
            self.at = at;
            self.is_closed = segment.as_ref().is_none_or(|segment| segment.has_push);
            if let Some(segment) = segment {
                self.ip_len = segment.ip_len;
                self.tcp_len = segment.tcp_len;
                self.segment_size = segment.payload;
                self.next_seq = segment.seq.wrapping_add(segment.payload as u32);
            }
            return true;
        }
        let Some(segment) = segment.filter(|segment| self.takes(at, packet, segment)) else {
            return false;
        };
        let headers = self.ip_len + self.tcp_len;
        self.bytes.extend_from_slice(&packet[headers..]);
        self.segments += 1;
        self.next_seq = self.next_seq.wrapping_add(segment.payload as u32);
        self.is_closed = segment.has_push || segment.payload < self.segment_size;
        if segment.has_push {
            self.bytes[self.ip_len + 13] |= PUSH;
        }
        true
    }

    fn takes(&self, at: Instant, packet: &[u8], segment: &Segment) -> bool {
        // Also where the first packet is none of plain data, and may be short.
        if self.is_closed {
            return false;
        }
        let headers = self.ip_len + self.tcp_len;
        let is_alike = |from: usize, to: usize| self.bytes[from..to] == packet[from..to];
        let volatile = match self.ip_len {
            IPV4_HEADER_LEN => V4_VOLATILE,
            _ => V6_VOLATILE,
        };
        let mut start = 0;
        let is_same_ip = volatile.iter().all(|(from, to)| {
            let same = is_alike(start, *from);
            start = *to;
            same
        });
        let tcp = self.ip_len;
        self.at == at
            && (segment.ip_len, segment.tcp_len) == (self.ip_len, self.tcp_len)
            && segment.seq == self.next_seq
            && segment.payload <= self.segment_size
            && self.bytes.len() + segment.payload <= MAX_PACKET
            && is_same_ip
            && is_alike(start, tcp + 4)
            // Acknowledgement number and data offset; window and urgent pointer; options.
            && is_alike(tcp + 8, tcp + 13)
            && is_alike(tcp + 14, tcp + 16)
            && is_alike(tcp + 18, headers)
    }

    /// Sends what there is to the kernel, and is empty afterwards.
    ///
    /// # Errors
    /// Why the kernel did not take it.
    pub(super) fn send(&mut self, sender: &mut TunSender) -> Result<(), SendCause> {
        let segments = std::mem::take(&mut self.segments);
        match segments {
            0 => Ok(()),
            1 => sender.send_packet(&self.bytes),
            _ => {
                self.finish();
                let headers = self.ip_len + self.tcp_len;
                sender.send_train(&self.bytes, self.ip_len, headers, self.segment_size)
            }
        }
    }

    /// Writes lengths and checksums of the whole.
    fn finish(&mut self) {
        let total = self.bytes.len();
        if self.ip_len == IPV4_HEADER_LEN {
            self.bytes[2..4].copy_from_slice(&(total as u16).to_be_bytes());
            self.bytes[10..12].fill(0);
            let sum = internet(&self.bytes[..IPV4_HEADER_LEN]);
            self.bytes[10..12].copy_from_slice(&sum);
        } else {
            let len = (total - IPV6_HEADER_LEN) as u16;
            self.bytes[4..6].copy_from_slice(&len.to_be_bytes());
        }
        let tcp = self.ip_len;
        let Ok(parsed) = ip::parse(&self.bytes) else {
            return;
        };
        let sum = Sum::pseudo_header(parsed.src, parsed.dst, PROTOCOL_TCP, total - tcp).finish();
        self.bytes[tcp + 16..tcp + 18].copy_from_slice(&sum.map(|byte| !byte));
    }
}

/// A segment that receive offload may put together with others: plain data.
fn segment(packet: &[u8]) -> Option<Segment> {
    let (ip_len, protocol) = match packet.first()? >> 4 {
        4 => (IPV4_HEADER_LEN, *packet.get(9)?),
        _ => (IPV6_HEADER_LEN, *packet.get(6)?),
    };
    let is_fragment =
        ip_len == IPV4_HEADER_LEN && u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
    let tcp = packet.get(ip_len..)?;
    let flags = *tcp.get(13)?;
    if protocol != PROTOCOL_TCP || is_fragment || flags & !PUSH != ACK {
        return None;
    }
    let tcp_len = usize::from(tcp[12] >> 4) * 4;
    // Bits beside the data offset that are no plain acknowledgement's, such as AccECN's.
    let payload = tcp.len().checked_sub(tcp_len).filter(|len| *len > 0)?;
    (tcp_len >= 20 && tcp[12] & 0x0f == 0).then_some(Segment {
        ip_len,
        tcp_len,
        seq: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
        payload,
        has_push: flags & PUSH != 0,
    })
}

#[cfg(test)]
mod tests {
    use tack_wire::checksum::{fill_tcp, verify_tcp};
    use tack_wire::ip::{Emit, emit_header};

    use super::*;
    use crate::hosts::settings::{ipv4, ipv6};

    fn packet(is_v6: bool, seq: u32, flags: u8, payload: usize) -> Vec<u8> {
        let (src, dst) = match is_v6 {
            true => (ipv6(0).into(), ipv6(1).into()),
            false => (ipv4(0).into(), ipv4(1).into()),
        };
        let mut bytes = vec![0; IPV6_HEADER_LEN];
        let len = emit_header(&mut bytes, &Emit::new(src, dst, PROTOCOL_TCP, 32 + payload));
        bytes.truncate(len);
        let mut segment = vec![seq as u8; 32 + payload];
        segment[4..8].copy_from_slice(&seq.to_be_bytes());
        segment[..4].fill(1);
        segment[8..12].fill(1);
        segment[12] = 8 << 4;
        segment[13] = flags;
        segment[14..32].fill(1);
        segment[16..18].fill(0);
        fill_tcp(src, dst, &mut segment);
        bytes.extend_from_slice(&segment);
        bytes
    }

    fn added(train: &mut Train, packet: &[u8]) -> bool {
        train.add(Instant::ZERO, packet, true)
    }

    #[test]
    fn segments_that_follow_each_other_are_one_packet() {
        for is_v6 in [false, true] {
            let mut train = Train::default();
            for seq in [0, 100, 200] {
                assert!(added(&mut train, &packet(is_v6, seq, 0x10, 100)));
            }
            assert!(!added(&mut train, &packet(is_v6, 400, 0x10, 100)), "a hole");
            assert!(!added(&mut train, &packet(!is_v6, 300, 0x10, 100)));
            assert!(!added(&mut train, &packet(is_v6, 300, 0x11, 100)), "FIN");
            let later = Instant::from_millis(1);
            assert!(!train.add(later, &packet(is_v6, 300, 0x10, 100), true));
            assert!(!train.add(Instant::ZERO, &packet(is_v6, 300, 0x10, 100), false));
            assert!(
                added(&mut train, &packet(is_v6, 300, 0x18, 40)),
                "PSH, shorter"
            );
            assert!(!added(&mut train, &packet(is_v6, 340, 0x10, 40)), "closed");
            assert_eq!(train.segments(), 4);
            train.finish();
            let mut bytes = train.bytes.clone();
            let ip_len = train.ip_len;
            let parsed = ip::parse(&bytes).unwrap();
            assert_eq!(parsed.payload.len(), 32 + 340);
            let (src, dst) = (parsed.src, parsed.dst);
            assert_eq!(bytes[ip_len + 13], 0x18);
            // What the kernel does to finish the checksum.
            let sum = internet(&bytes[ip_len..]);
            bytes[ip_len + 16..ip_len + 18].copy_from_slice(&sum);
            assert!(verify_tcp(src, dst, &bytes[ip_len..]));
        }
    }

    #[test]
    fn what_is_no_plain_data_goes_alone() {
        for alone in [
            packet(false, 0, 0x10, 0),
            packet(false, 0, 0x02, 10),
            packet(false, 0, 0x50, 10),
            vec![0x45; 10],
            Vec::new(),
        ] {
            let mut train = Train::default();
            assert!(added(&mut train, &alone));
            assert!(!added(&mut train, &packet(false, 10, 0x10, 10)));
        }
    }
}
