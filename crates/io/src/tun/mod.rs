//! A TUN device as a carrier: one IP packet is one TCP segment, to and from any TCP host.
//!
//! The device is a point-to-point link between this machine's kernel and the stack that reads and
//! writes its packets: to the kernel the stack is another host, which it routes to.
//!
//! tun-rs opens and configures the device. The packets themselves are read and written here:
//! tun-rs copies each segment of a super-packet into a buffer of its own and computes its checksum
//! anew, only for us to verify it, and has no way to write one from parts. It sets no routes
//! either.

#[cfg(target_os = "linux")]
mod device;
#[cfg(target_os = "linux")]
mod open;
mod options;
#[cfg(target_os = "linux")]
mod others;
#[cfg(target_os = "linux")]
mod receive;
#[cfg(target_os = "linux")]
mod route;
#[cfg(target_os = "linux")]
mod send;
#[cfg(target_os = "linux")]
mod vnet;

#[cfg(not(target_os = "linux"))]
mod absent;

#[cfg(not(target_os = "linux"))]
pub use absent::{TunPacket, TunReceiver, TunSender};
pub use options::{TunNetwork, TunOptions};
#[cfg(target_os = "linux")]
pub use receive::{TunPacket, TunReceiver};
#[cfg(target_os = "linux")]
pub use send::TunSender;

use std::net::IpAddr;

use tack_wire::Ecn;

/// Bytes that stay free in front of each segment of [`Packets`]: for the longest IP header, and the
/// ten bytes that tell the kernel of offloads.
pub const PREFIX: usize = 10 + tack_wire::ip::IPV6_HEADER_LEN;

/// Equally sized segments to one host, each behind [`PREFIX`] bytes of room; the last one may be
/// shorter.
#[derive(Debug)]
pub struct Packets<'a> {
    /// Where they go.
    pub peer: IpAddr,
    /// ECN codepoint of all the packets.
    pub ecn: Ecn,
    /// Room and segment, back to back. Headers and checksums are written into it.
    pub contents: &'a mut [u8],
    /// Length of each segment with its room but the last one.
    pub packet_size: usize,
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
