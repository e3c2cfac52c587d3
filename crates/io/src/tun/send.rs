//! The sending half: puts IP headers and checksums around segments, and writes packets.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::task::{Context, Poll};

use arrayvec::ArrayVec;
use rustix::io::Errno;
use tack_wire::checksum::{self, PROTOCOL_TCP, Sum};
use tack_wire::ip::{self, Emit};
use tack_wire::{Flags, Segment};
use tokio::io::Interest;

use super::device::Device;
use super::options::TunOptions;
use super::{PREFIX, Packets, vnet};
use crate::udp::{SendCause, SendError};

/// Most segments that one write takes together.
const MAX_TRAIN: usize = 64;
/// Most bytes of an IP packet.
const MAX_PACKET: usize = 65_535;

/// The sending half of a TUN device.
#[derive(Debug)]
pub struct TunSender {
    device: Device,
    name: String,
    stacks: ArrayVec<IpAddr, 2>,
    /// The kernel's addresses, where the stack stands for every host.
    clients: Option<ArrayVec<IpAddr, 2>>,
    mtu: u16,
    offload: bool,
    trains: u64,
}

impl TunSender {
    pub(super) fn new(device: Device, options: &TunOptions, name: String) -> Self {
        let kernels = options.networks.iter().map(|network| network.kernel);
        let clients = options.everywhere.then(|| kernels.take(2).collect());
        Self {
            clients,
            device,
            name,
            stacks: options
                .networks
                .iter()
                .map(|network| network.stack)
                .take(2)
                .collect(),
            mtu: options.mtu,
            offload: options.offload,
            trains: 0,
        }
    }

    /// Name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The stack's addresses.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.stacks
    }

    /// The kernel's addresses, where the stack stands for every host: who its peers are.
    pub fn clients(&self) -> Option<&[IpAddr]> {
        self.clients.as_deref()
    }

    /// MTU of the device, bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Maximum number of segments of a batch; 1 without offload.
    pub fn max_batch(&self) -> usize {
        if self.offload { MAX_TRAIN } else { 1 }
    }

    /// Number of writes that carried more than one segment.
    pub fn trains(&self) -> u64 {
        self.trains
    }

    /// Sends `packets`, in as few writes as their contents allow.
    ///
    /// # Errors
    /// [`SendError`] when not all of it was taken; what it says was sent must not be sent again.
    pub fn send(&mut self, packets: &mut Packets<'_>) -> Result<(), SendError> {
        let size = packets.packet_size.max(PREFIX + 1);
        let Some((src, dst)) = self.ends(packets.peer) else {
            let cause = io::Error::new(
                io::ErrorKind::AddrNotAvailable,
                "the stack has no address of the family of the peer",
            );
            return Err(SendError {
                sent: 0,
                cause: SendCause::Failed(cause),
            });
        };
        let mut sent = 0;
        while sent < packets.contents.len() {
            let rest = &mut packets.contents[sent..];
            let count = if self.offload { train(rest, size) } else { 1 };
            let taken = (count * size).min(rest.len());
            let head = Emit {
                ecn: packets.ecn,
                ..Emit::new(src, dst, PROTOCOL_TCP, 0)
            };
            let outcome = if count > 1 {
                self.trains += 1;
                self.write_train(&mut rest[..taken], size, head)
            } else {
                self.write_single(&mut rest[..taken], head)
            };
            if let Err(cause) = outcome {
                return Err(SendError { sent, cause });
            }
            sent += taken;
        }
        Ok(())
    }

    /// Sends one packet that has its IP header, such as an answer to an echo request.
    ///
    /// # Errors
    /// Why the kernel did not take it.
    pub fn send_packet(&mut self, packet: &[u8]) -> Result<(), SendCause> {
        let plain = [0; vnet::LEN];
        let mut parts = ArrayVec::<IoSlice<'_>, 2>::new();
        if self.offload {
            parts.push(IoSlice::new(&plain));
        }
        parts.push(IoSlice::new(packet));
        self.write(&parts)
    }

    /// Sends one packet of TCP, with its IP header of `ip_len` bytes, that stands for a train of
    /// segments with `segment_size` bytes of payload each behind `headers` bytes: to the kernel it
    /// is what its receive offload makes of them. The device must have offload, and the checksum
    /// of TCP must be the sum over the pseudo header, which the kernel finishes.
    ///
    /// # Errors
    /// Why the kernel did not take it.
    pub fn send_train(
        &mut self,
        packet: &[u8],
        ip_len: usize,
        headers: usize,
        segment_size: usize,
    ) -> Result<(), SendCause> {
        let mut offload = [0; vnet::LEN];
        vnet::emit(&mut offload, ip_len, Some((headers, segment_size)));
        self.trains += 1;
        self.write(&[IoSlice::new(&offload), IoSlice::new(packet)])
    }

    /// Has the kernel cut trains before it passes them on, and complete their checksums; the device
    /// may still take trains. For a device with offload.
    ///
    /// # Errors
    /// What the system says.
    pub fn refuse_trains(&self) -> io::Result<()> {
        vnet::receive_segments(self.device.get_ref())
    }

    /// Ready when the device may take more after [`SendCause::Blocked`]. One task at a time may
    /// wait.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.device
            .poll_write_ready(cx)
            .map(|ready| ready.map(|mut guard| guard.retain_ready()))
    }

    /// Source and destination of packets of a connection that the core names by `peer`.
    fn ends(&self, peer: IpAddr) -> Option<(IpAddr, IpAddr)> {
        let alike = |address: &&IpAddr| address.is_ipv4() == peer.is_ipv4();
        match &self.clients {
            Some(clients) => clients.iter().find(alike).map(|client| (peer, *client)),
            None => self.stacks.iter().find(alike).map(|stack| (*stack, peer)),
        }
    }

    fn write_single(&self, packet: &mut [u8], head: Emit) -> Result<(), SendCause> {
        let segment_len = packet.len().saturating_sub(PREFIX);
        if ip::header_len(head.src) + segment_len > usize::from(self.mtu) {
            return Err(SendCause::TooLong);
        }
        let start = self.enclose(packet, head, segment_len, None);
        self.write(&[IoSlice::new(&packet[start..])])
    }

    /// Writes segments as one packet that the kernel cuts, if it has to.
    fn write_train(&self, packets: &mut [u8], size: usize, head: Emit) -> Result<(), SendCause> {
        let ip_len = ip::header_len(head.src);
        if ip_len + size - PREFIX > usize::from(self.mtu) {
            return Err(SendCause::TooLong);
        }
        let (first, others) = packets.split_at_mut(size);
        let tcp_len = usize::from(first[PREFIX + 12] >> 4) * 4;
        let mut payload = 0;
        let mut last_flags = 0;
        for other in others.chunks(size) {
            payload += other.len() - PREFIX - tcp_len;
            last_flags = other[PREFIX + 13];
        }
        let flags = first[PREFIX + 13];
        first[PREFIX + 13] |= last_flags;
        let segment_size = size - PREFIX - tcp_len;
        let start = self.enclose(
            first,
            head,
            size - PREFIX + payload,
            Some((ip_len + tcp_len, segment_size)),
        );
        let mut parts = ArrayVec::<IoSlice<'_>, MAX_TRAIN>::new();
        parts.push(IoSlice::new(&first[start..]));
        parts.extend(
            others
                .chunks(size)
                .map(|other| IoSlice::new(&other[PREFIX + tcp_len..])),
        );
        let outcome = self.write(&parts);
        drop(parts);
        // What is not taken leaves again, perhaps alone.
        first[PREFIX + 13] = flags;
        outcome
    }

    /// Writes what goes in front of the segment into its room, and its checksum, or what the kernel
    /// needs to compute that. Returns where the packet begins.
    fn enclose(
        &self,
        packet: &mut [u8],
        head: Emit,
        segment_len: usize,
        segments: Option<(usize, usize)>,
    ) -> usize {
        let ip_len = ip::header_len(head.src);
        let (room, segment) = packet.split_at_mut(PREFIX);
        let head = Emit {
            payload_len: segment_len,
            ..head
        };
        ip::emit_header(&mut room[PREFIX - ip_len..], &head);
        if !self.offload {
            checksum::fill_tcp(head.src, head.dst, segment);
            return PREFIX - ip_len;
        }
        let start = PREFIX - ip_len - vnet::LEN;
        vnet::emit(&mut room[start..], ip_len, segments);
        // The kernel adds the rest.
        let sum = Sum::pseudo_header(head.src, head.dst, PROTOCOL_TCP, segment_len).finish();
        segment[16..18].copy_from_slice(&sum.map(|byte| !byte));
        start
    }

    fn write(&self, parts: &[IoSlice<'_>]) -> Result<(), SendCause> {
        let outcome = self.device.try_io(Interest::WRITABLE, |device| {
            loop {
                match rustix::io::writev(device, parts) {
                    Ok(_) => return Ok(()),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        });
        outcome.map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => SendCause::Blocked,
            _ => SendCause::Failed(error),
        })
    }
}

/// How many segments at the front can leave as one: their headers differ only in what the kernel
/// derives when it cuts them. A packet number or a report makes each its own.
fn train(contents: &[u8], size: usize) -> usize {
    let mut segments = contents.chunks(size);
    let Some(first) = segments.next().and_then(|first| first.get(PREFIX..)) else {
        return 1;
    };
    let Some(flags) = Segment::flags(first) else {
        return 1;
    };
    let special = Flags::SYN
        .with(Flags::RST)
        .with(Flags::URG)
        .with(Flags::CWR);
    // The kernel leaves PSH and FIN to the last segment.
    let last_only = Flags::PSH.with(Flags::FIN);
    let tcp_len = usize::from(first[12] >> 4) * 4;
    if flags.0 & (special.0 | last_only.0) != 0 || first.len() <= tcp_len {
        return 1;
    }
    let seq = |segment: &[u8]| u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
    let segment_size = first.len() - tcp_len;
    let mut count = 1;
    let mut bytes = ip::IPV6_HEADER_LEN + first.len();
    let mut next = seq(first).wrapping_add(segment_size as u32);
    for other in segments.take(MAX_TRAIN - 1) {
        let Some(other) = other.get(PREFIX..).filter(|other| other.len() > tcp_len) else {
            break;
        };
        let payload = other.len() - tcp_len;
        bytes += payload;
        let alike = other[..4] == first[..4]
            && seq(other) == next
            && other[8..13] == first[8..13]
            && u16::from(other[13]) & !last_only.0 == flags.0 & 0xff
            && other[14..16] == first[14..16]
            && other[18..tcp_len] == first[18..tcp_len];
        if !alike || bytes > MAX_PACKET {
            break;
        }
        count += 1;
        next = next.wrapping_add(payload as u32);
        if u16::from(other[13]) & last_only.0 != 0 {
            break;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use tack_wire::{Header, SeqNum, TcpOptions, Timestamps};

    fn push(contents: &mut Vec<u8>, seq: u32, flags: Flags, stamp: u32, payload: usize) {
        let header = Header {
            src_port: 1,
            dst_port: 2,
            seq: SeqNum(seq),
            flags,
            options: TcpOptions {
                timestamps: Some(Timestamps {
                    value: stamp,
                    echo: 3,
                }),
                ..TcpOptions::default()
            },
            ..Header::default()
        };
        let at = contents.len() + PREFIX;
        contents.resize(at + header.encoded_len() + payload, 7);
        header.emit(&mut contents[at..]);
    }

    #[test]
    fn equal_headers_make_a_train_and_unequal_ones_do_not() {
        let size = PREFIX + 32 + 100;
        let mut all = Vec::new();
        for index in 0..5 {
            push(&mut all, index * 100, Flags::ACK, 9, 100);
        }
        assert_eq!(train(&all, size), 5);
        assert_eq!(train(&all[..size], size), 1);
        assert_eq!(train(&all[..3 * size - 60], size), 3, "a shorter last one");

        let mut pushed = all[..2 * size].to_vec();
        push(&mut pushed, 200, Flags::ACK.with(Flags::PSH), 9, 100);
        push(&mut pushed, 300, Flags::ACK, 9, 100);
        assert_eq!(train(&pushed, size), 3, "PSH ends a train");

        let mut stamped = all[..2 * size].to_vec();
        push(&mut stamped, 200, Flags::ACK, 10, 100);
        assert_eq!(train(&stamped, size), 2, "another timestamp");

        let mut apart = all[..size].to_vec();
        push(&mut apart, 101, Flags::ACK, 9, 100);
        assert_eq!(train(&apart, size), 1, "a hole");
        assert_eq!(train(&[0; 10], size), 1);
    }

    #[test]
    fn a_train_fits_one_packet() {
        let size = PREFIX + 32 + 1400;
        let mut all = Vec::new();
        for index in 0..64 {
            push(&mut all, index * 1400, Flags::ACK, 9, 1400);
        }
        let count = train(&all, size);
        assert!(count * 1400 + 32 + 40 <= MAX_PACKET && (count + 1) * 1400 + 72 > MAX_PACKET);
    }
}
