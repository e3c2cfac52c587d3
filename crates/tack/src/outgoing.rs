//! Sending: one batch at a time from the core to the socket; what a short send leaves over is kept.

use std::net::SocketAddr;

use tack_base::Instant;
use tack_io::{Datagrams, SendCause, UdpSender};
use tack_tcp::{Batch, Endpoint as Core};
use tack_wire::Ecn;

/// Most datagrams of one batch: what the kernel's segmentation offload takes.
const MAX_BATCH: usize = 64;

/// The transmitting side of an endpoint.
///
/// There is no queue here. The core makes a batch only when the previous one is in the kernel, so
/// what waits is at most one batch, and back-pressure reaches the connections at once.
#[derive(Debug)]
pub(crate) struct Outgoing {
    sender: UdpSender,
    buffer: Vec<u8>,
    pending: Option<Pending>,
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
        /// UDP payload bytes.
        len: usize,
    },
}

impl Outgoing {
    pub(crate) fn new(sender: UdpSender) -> Self {
        let buffer = Vec::with_capacity(tack_io::udp::MAX_BATCH_BYTES);
        Self {
            sender,
            buffer,
            pending: None,
            datagrams: 0,
            batches: 0,
            failures: 0,
        }
    }

    pub(crate) fn sender(&self) -> &UdpSender {
        &self.sender
    }

    /// Sends what the core wants to send until it has nothing more or the socket is full.
    pub(crate) fn flush(&mut self, core: &mut Core, now: Instant) -> Flushed {
        loop {
            if let Some(pending) = self.pending {
                match self.send(pending) {
                    Ok(()) => self.pending = None,
                    Err(stopped) => return stopped,
                }
            }
            self.buffer.clear();
            let max_batch = self.sender.max_batch().min(MAX_BATCH);
            let Some((peer, transmit)) =
                core.poll_transmit(now, &mut Batch::new(&mut self.buffer, 0, max_batch))
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
        let contents = &self.buffer[pending.sent..];
        let Pending {
            peer,
            ecn,
            segment_size,
            ..
        } = pending;
        let Err(error) = self.sender.send(&Datagrams {
            peer,
            ecn,
            contents,
            segment_size,
        }) else {
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
                    len: segment_size.min(self.buffer.len() - pending.sent),
                })
            }
            SendCause::Failed(_) => {
                // No route, a firewall, no memory: the same would meet the rest. Retransmission is
                // the transport's business, and its timers decide when giving up is
                // due.
                self.failures += 1;
                Ok(())
            }
        }
    }
}
