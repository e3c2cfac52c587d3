//! Sending: one batch at a time from the core to the socket; what a short send leaves over is kept.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use tack_base::Instant;
use tack_io::QuotedSegment;
use tack_io::udp::SendCause;
use tack_tcp::{Batch, Endpoint as Core};
use tack_wire::checksum::PROTOCOL_UDP;
use tack_wire::{Ecn, icmp, ip, udp};

use crate::carrier::Sender;

/// Most datagrams of one batch: what the kernel's segmentation offload takes.
const MAX_BATCH: usize = 64;
/// Most answers to echo requests that wait to leave, and errors.
const MAX_REPLIES: usize = 32;
/// Most packets without a connection that wait to leave, datagrams among them.
const MAX_LOOSE: usize = 256;

/// The transmitting side of an endpoint.
///
/// There is no queue here. The core makes a batch only when the previous one is in the kernel, so
/// what waits is at most one batch, and back-pressure reaches the connections at once.
#[derive(Debug)]
pub(crate) struct Outgoing {
    sender: Sender,
    buffer: Vec<u8>,
    pending: Option<Pending>,
    /// Whole packets that answer echo requests.
    replies: VecDeque<Vec<u8>>,
    pub(crate) datagrams: u64,
    pub(crate) batches: u64,
    pub(crate) failures: u64,
}

/// A batch in `buffer`, of which the bytes from `sent` on have not been sent.
#[derive(Clone, Copy, Debug)]
struct Pending {
    peer: SocketAddr,
    ecn: Ecn,
    segment_size: usize,
    sent: usize,
}

/// Where a flush ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flushed {
    /// The core has nothing more to send for now.
    Idle,
    /// The socket is full; to be continued when it is writable.
    Blocked,
    /// A datagram of this many bytes does not fit the path to `peer`. Flush again.
    TooLong {
        /// The peer.
        peer: SocketAddr,
        /// Bytes of the segment.
        len: usize,
    },
    /// The system has no route to `peer`: `segment` and those behind it in the batch are lost.
    /// Flush again.
    NoRoute {
        /// The peer.
        peer: SocketAddr,
        /// How the segment began.
        segment: QuotedSegment,
    },
}

impl Outgoing {
    pub(crate) fn new(sender: Sender) -> Self {
        let room = MAX_BATCH * sender.prefix();
        let buffer = Vec::with_capacity(tack_io::udp::MAX_BATCH_BYTES + room);
        Self {
            sender,
            buffer,
            pending: None,
            replies: VecDeque::new(),
            datagrams: 0,
            batches: 0,
            failures: 0,
        }
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Has a datagram leave; it is lost where too many wait, or where no packet can hold it.
    pub(crate) fn send_datagram(&mut self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        let (src, dst) = (from.ip(), to.ip());
        let ip_len = ip::header_len(src);
        let len = udp::HEADER_LEN + payload.len();
        let Sender::Tun(sender) = &self.sender else {
            return;
        };
        let fits = ip_len + len <= usize::from(sender.mtu()) && src.is_ipv4() == dst.is_ipv4();
        if !fits || self.replies.len() >= MAX_LOOSE {
            return;
        }
        let mut packet = vec![0; ip_len + len];
        let head = ip::Emit::new(src, dst, PROTOCOL_UDP, len);
        ip::emit_header(&mut packet, &head);
        let datagram = udp::Datagram {
            src_port: from.port(),
            dst_port: to.port(),
            payload,
        };
        udp::emit(&mut packet[ip_len..], src, dst, &datagram);
        self.replies.push_back(packet);
    }

    /// Has an error about the packet `quoted` leave, from where that was sent to.
    pub(crate) fn send_unreachable(&mut self, quoted: &[u8], reason: icmp::Unreachable) {
        let Ok(outer) = ip::parse(quoted) else {
            return;
        };
        let (src, dst) = (outer.dst, outer.src);
        let protocol = match src {
            IpAddr::V4(_) => icmp::PROTOCOL_ICMP,
            IpAddr::V6(_) => icmp::PROTOCOL_ICMPV6,
        };
        let mut message = vec![0; 8 + icmp::MAX_QUOTE];
        let len = icmp::emit_unreachable(&mut message, src, dst, reason, quoted);
        let mut packet = vec![0; ip::header_len(src)];
        ip::emit_header(&mut packet, &ip::Emit::new(src, dst, protocol, len));
        packet.extend(&message[..len]);
        self.reply(packet);
    }

    /// Has an answer to an echo request leave; none where too many wait.
    pub(crate) fn reply(&mut self, packet: Vec<u8>) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back(packet);
        }
    }

    /// Sends the answers that wait. One that the device does not take is lost, as pings may be.
    fn send_replies(&mut self) {
        while let Some(packet) = self.replies.pop_front() {
            if let Sender::Tun(sender) = &mut self.sender
                && sender.send_packet(&packet).is_err()
            {
                self.failures += 1;
            }
        }
    }

    /// Sends what the core wants to send until it has nothing more or the socket is full.
    pub(crate) fn flush(&mut self, core: &mut Core, now: Instant) -> Flushed {
        if !self.replies.is_empty() {
            self.send_replies();
        }
        loop {
            if let Some(pending) = self.pending {
                match self.send(pending) {
                    Ok(()) => self.pending = None,
                    Err(stopped) => return stopped,
                }
            }
            self.buffer.clear();
            let max_batch = self.sender.max_batch().min(MAX_BATCH);
            let prefix = self.sender.prefix();
            let Some((peer, transmit)) =
                core.poll_transmit(now, &mut Batch::new(&mut self.buffer, prefix, max_batch))
            else {
                return Flushed::Idle;
            };
            self.batches += 1;
            self.datagrams += transmit.segments as u64;
            let segment_size = transmit.segment_size;
            self.pending = Some(Pending {
                peer,
                ecn: transmit.ecn,
                segment_size,
                sent: 0,
            });
        }
    }

    fn send(&mut self, mut pending: Pending) -> Result<(), Flushed> {
        let contents = &mut self.buffer[pending.sent..];
        let Pending {
            peer,
            ecn,
            segment_size,
            ..
        } = pending;
        let Err(error) = self.sender.send(peer, ecn, contents, segment_size) else {
            return Ok(());
        };
        pending.sent += error.sent;
        match error.cause {
            SendCause::Blocked => {
                self.pending = Some(pending);
                Err(Flushed::Blocked)
            }
            SendCause::TooLong => {
                // The other datagrams of the batch are as long. All are lost; their bytes are
                // retransmitted in shorter segments.
                self.pending = None;
                self.failures += 1;
                Err(Flushed::TooLong {
                    peer,
                    len: segment_size
                        .min(self.buffer.len() - pending.sent)
                        .saturating_sub(self.sender.prefix()),
                })
            }
            SendCause::Failed(error) => {
                // No route, a firewall, no memory: the same would meet the rest. Retransmission is
                // the transport's business.
                self.failures += 1;
                let segment = self.buffer.get(pending.sent + self.sender.prefix()..);
                match segment.and_then(QuotedSegment::parse) {
                    Some(segment) if is_no_route(error.kind()) => {
                        self.pending = None;
                        Err(Flushed::NoRoute { peer, segment })
                    }
                    // Its timers decide when giving up is due.
                    _ => Ok(()),
                }
            }
        }
    }
}

fn is_no_route(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable | ErrorKind::NetworkDown
    )
}
