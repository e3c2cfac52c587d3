//! Systems on which the carrier does not exist: opening a device says so.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::task::{Context, Poll};

use tack_base::Instant;

use super::Packets;
use super::options::TunOptions;
use crate::clock::Clock;
use crate::udp::{SendCause, SendError};

/// The sending half of a TUN device; there is none on this system.
#[derive(Debug)]
pub struct TunSender(Infallible);

/// The receiving half of a TUN device; there is none on this system.
#[derive(Debug)]
pub struct TunReceiver(Infallible);

/// One IP packet from the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TunPacket<'a> {
    /// When it was read.
    pub arrived: Instant,
    /// IP header and payload.
    pub bytes: &'a [u8],
    /// The kernel vouches for the checksum of the transport.
    pub verified: bool,
    /// Payload bytes of each segment that the packet stands for.
    pub segment_size: Option<u16>,
}

impl TunOptions {
    /// # Errors
    /// Always `Unsupported` on this system.
    pub fn open(&self) -> io::Result<(TunSender, TunReceiver)> {
        self.check()?;
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "TUN devices are supported on Linux only",
        ))
    }
}

impl TunSender {
    /// Name of the device.
    pub fn name(&self) -> &str {
        match self.0 {}
    }

    /// The stack's addresses.
    pub fn addresses(&self) -> &[IpAddr] {
        match self.0 {}
    }

    /// The kernel's addresses, where the stack stands for every host.
    pub fn clients(&self) -> Option<&[IpAddr]> {
        match self.0 {}
    }

    /// MTU of the device, bytes.
    pub fn mtu(&self) -> u16 {
        match self.0 {}
    }

    /// Maximum number of segments of a batch.
    pub fn max_batch(&self) -> usize {
        match self.0 {}
    }

    /// Number of writes that carried more than one segment.
    pub fn trains(&self) -> u64 {
        match self.0 {}
    }

    /// # Errors
    /// None: there is no sender.
    pub fn send(&mut self, _packets: &mut Packets<'_>) -> Result<(), SendError> {
        match self.0 {}
    }

    /// # Errors
    /// None: there is no sender.
    pub fn send_packet(&mut self, _packet: &[u8]) -> Result<(), SendCause> {
        match self.0 {}
    }

    /// # Errors
    /// None: there is no sender.
    pub fn send_train(
        &mut self,
        _packet: &[u8],
        _ip_len: usize,
        _headers: usize,
        _segment_size: usize,
    ) -> Result<(), SendCause> {
        match self.0 {}
    }

    /// # Errors
    /// None: there is no sender.
    pub fn refuse_trains(&self) -> io::Result<()> {
        match self.0 {}
    }

    /// # Errors
    /// None: there is no sender.
    pub fn poll_writable(&self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}

impl TunReceiver {
    /// # Errors
    /// None: there is no receiver.
    pub fn poll_readable(&self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }

    /// # Errors
    /// None: there is no receiver.
    pub fn receive(&mut self, _clock: &Clock) -> io::Result<std::iter::Empty<TunPacket<'_>>> {
        match self.0 {}
    }
}
