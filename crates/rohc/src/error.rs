//! Why a packet stays as it is, and why a compressed one is refused.

use core::fmt;

/// Why a packet is not compressed, or does not establish a context. The packet is then sent as it
/// is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Neither a whole IPv4 packet nor a whole IPv6 packet, or bytes follow it.
    NotIp,
    /// IP options, extension headers, a fragment, a set reserved bit, or a wrong IPv4 header
    /// checksum: what this codec could not write again bit for bit.
    IpHeader,
    /// The transport is not TCP.
    NotTcp,
    /// The TCP header is cut off, or its data offset is below 5.
    TcpHeader,
    /// The segment carries data.
    Data,
    /// The acknowledgement flag is clear, or more than one of RST, SYN, FIN is set, or (in the lean
    /// modes) PSH is set.
    Flags,
    /// The option area is malformed, has more than 15 options, or has one option twice.
    Options,
    /// The TCP checksum is wrong; only [`Mode::LeanNoChecksum`](crate::Mode::LeanNoChecksum) looks
    /// at it.
    TcpChecksum,
    /// No packet has established a context yet.
    NoContext,
    /// Addresses, ports or the flow label are not the context's.
    OtherFlow,
    /// The decompressor's context is not known: a native packet may or may not have arrived, or
    /// compressed ones were lost.
    Uncertain,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotIp => "expected exactly one IPv4 or IPv6 packet",
            Self::IpHeader => {
                "the IP header has options, extensions, a fragment, a reserved bit or a wrong checksum"
            }
            Self::NotTcp => "expected TCP above IP",
            Self::TcpHeader => "the TCP header is cut off or its data offset is below 5",
            Self::Data => "expected a segment without data",
            Self::Flags => "expected ACK with at most one of RST, SYN and FIN (lean: and no PSH)",
            Self::Options => "the TCP options are malformed, repeated or more than 15",
            Self::TcpChecksum => "the TCP checksum is wrong, so it cannot be left out",
            Self::NoContext => "expected a native or an IR packet first",
            Self::OtherFlow => "addresses, ports or flow label differ from the context's",
            Self::Uncertain => "expected a native packet whose delivery is certain first",
        })
    }
}

impl core::error::Error for Refusal {}

/// Why a compressed packet is refused. The context is then as it was before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The packet ends inside a field.
    Truncated {
        /// Bytes that the packet needs at least.
        needed: usize,
        /// Bytes that are there.
        available: usize,
    },
    /// The first octet starts no format that this codec reads; `rnd_2`, `rnd_6`, `seq_2`, `seq_6`
    /// (scaled sequence numbers need data), IR-CR, feedback and segments are among them.
    Format(u8),
    /// A compressed packet came before any context was established.
    NoContext,
    /// The ROHC profile of an IR packet is not TCP (0x06).
    Profile(u8),
    /// The rebuilt header does not have the CRC that the packet carries: the contexts differ, or
    /// bits flipped.
    Crc {
        /// The CRC in the packet.
        expected: u8,
        /// The CRC of what was rebuilt.
        rebuilt: u8,
    },
    /// The field has a value that the format does not allow; the text names the field.
    Malformed(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, available } => {
                write!(f, "expected at least {needed} bytes, got {available}")
            }
            Self::Format(octet) => {
                write!(
                    f,
                    "expected a ROHC-TCP format, got first octet {octet:#04x}"
                )
            }
            Self::NoContext => f.write_str("expected an IR packet or a native packet first"),
            Self::Profile(profile) => {
                write!(f, "expected ROHC profile 0x06 (TCP), got {profile:#04x}")
            }
            Self::Crc { expected, rebuilt } => {
                write!(
                    f,
                    "expected CRC {expected:#04x}, the rebuilt header has {rebuilt:#04x}"
                )
            }
            Self::Malformed(field) => {
                write!(f, "{field} has a value that the format does not allow")
            }
        }
    }
}

impl core::error::Error for DecodeError {}
