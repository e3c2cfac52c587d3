//! Acknowledgements as bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use tack_wire::checksum::{self, Sum};

/// A flow's IP version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    V4,
    V6,
}

/// The fields of one acknowledgement.
#[derive(Clone, Debug)]
pub(crate) struct Ack {
    pub(crate) version: Version,
    pub(crate) ip_id: u16,
    pub(crate) dont_fragment: bool,
    pub(crate) dscp: u8,
    pub(crate) ip_ecn: u8,
    pub(crate) ttl: u8,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    /// Reserved bits, CWR, ECE, URG, ACK, PSH, RST, SYN, FIN.
    pub(crate) flags: u16,
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) sack: Vec<(u32, u32)>,
    /// An option of a kind that no RFC 6846 table knows.
    pub(crate) unknown: Option<(u8, Vec<u8>)>,
}

impl Default for Ack {
    fn default() -> Self {
        Self {
            version: Version::V4,
            ip_id: 0,
            dont_fragment: true,
            dscp: 0,
            ip_ecn: 0,
            ttl: 64,
            seq: 1000,
            ack: 100_000,
            flags: 0x010,
            window: 512,
            urgent: 0,
            timestamps: None,
            sack: Vec::new(),
            unknown: None,
        }
    }
}

impl Ack {
    fn options(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some((value, echo)) = self.timestamps {
            options.extend([1, 1, 8, 10]);
            options.extend(value.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        if !self.sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * self.sack.len() as u8]);
            for (start, end) in &self.sack {
                options.extend(start.to_be_bytes());
                options.extend(end.to_be_bytes());
            }
        }
        if let Some((kind, body)) = &self.unknown {
            options.extend([*kind, 2 + body.len() as u8]);
            options.extend(body);
        }
        // The end of the list where that pads, as stacks do for odd options.
        options.resize(options.len().next_multiple_of(4), 0);
        options
    }

    /// The packet.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let options = self.options();
        let mut tcp = Vec::new();
        tcp.extend(40_000_u16.to_be_bytes());
        tcp.extend(5001_u16.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        let offset = (5 + options.len() as u16 / 4) << 12;
        tcp.extend((offset | self.flags).to_be_bytes());
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0, 0]);
        tcp.extend(self.urgent.to_be_bytes());
        tcp.extend(options);
        let (src, dst) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 2));
        let mut packet = Vec::new();
        let class = self.dscp << 2 | self.ip_ecn;
        let sum = match self.version {
            Version::V4 => {
                packet.extend([0x45, class]);
                packet.extend((20 + tcp.len() as u16).to_be_bytes());
                packet.extend(self.ip_id.to_be_bytes());
                packet.extend([u8::from(self.dont_fragment) << 6, 0, self.ttl, 6, 0, 0]);
                packet.extend(src.octets());
                packet.extend(dst.octets());
                let checksum = checksum::internet(&packet);
                packet[10..12].copy_from_slice(&checksum);
                Sum::pseudo_header(src.into(), dst.into(), 6, tcp.len())
            }
            Version::V6 => {
                let (src, dst) = (
                    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
                    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
                );
                packet.extend([0x60 | class >> 4, class << 4 | 1, 0x23, 0x45]);
                packet.extend((tcp.len() as u16).to_be_bytes());
                packet.extend([6, self.ttl]);
                packet.extend(src.octets());
                packet.extend(dst.octets());
                Sum::pseudo_header(src.into(), dst.into(), 6, tcp.len())
            }
        };
        let mut sum = sum;
        sum.add(&tcp);
        tcp[16..18].copy_from_slice(&sum.finish());
        packet.extend(tcp);
        packet
    }
}
