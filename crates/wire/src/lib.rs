//! TCP segments on the wire: header and options (RFC 9293, 7323, 2018), checksums, IP headers.
//!
//! Parsing borrows, never allocates and never panics, whatever the bytes; emitting writes into a
//! caller's slice. The checksum belongs to the carrier: only it knows the pseudo-header.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod checksum;
pub mod encapsulation;
pub mod icmp;
pub mod ip;
pub mod options;
pub mod segment;
pub mod seq;
pub mod tack;
pub mod train;
pub mod udp;

pub use options::{SackBlock, SackBlocks, TcpOptions, Timestamps};
pub use segment::{Flags, Header, ParseError, Segment};
pub use seq::SeqNum;
pub use tack::TackOption;

/// Explicit congestion notification codepoint of an IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not take part.
    #[default]
    NotEct = 0,
    /// ECN-capable transport, codepoint 1.
    Ect1 = 1,
    /// ECN-capable transport, codepoint 0: what RFC 3168 senders set.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// From the two low bits of the traffic class; higher bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            1 => Self::Ect1,
            2 => Self::Ect0,
            3 => Self::Ce,
            _ => Self::NotEct,
        }
    }
}
