//! The sending half: hands batches to the kernel, and reports what it did not take.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn_udp::{EcnCodepoint, Transmit, UdpSocketState};
use tack_wire::Ecn;
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::batch::{MAX_BATCH_BYTES, Segmentation};
use super::control;
use crate::address::for_socket;

/// Equally sized datagrams to one peer, back to back; the last one may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct Datagrams<'a> {
    /// The destination address of the datagrams.
    pub peer: SocketAddr,
    /// ECN codepoint of all the datagrams.
    pub ecn: Ecn,
    /// The UDP payloads.
    pub contents: &'a [u8],
    /// Length of each datagram but the last one, at least 1.
    pub segment_size: usize,
}

/// The kernel accepted only part of a batch: how much, and why not the rest.
#[derive(Debug)]
pub struct SendError {
    /// Bytes from the front of the batch that the kernel took, a whole number of datagrams.
    pub sent: usize,
    /// Why the kernel did not accept the rest.
    pub cause: SendCause,
}

/// Why the kernel did not take a datagram.
#[derive(Debug)]
pub enum SendCause {
    /// The socket buffer is full: wait for [`UdpSender::poll_writable`] and send the rest.
    Blocked,
    /// The datagram exceeds the MTU of the device, or (Linux) of the path as far as the kernel
    /// knows it: from the routing table and from ICMP messages about earlier datagrams. Trying
    /// again is pointless until a longer one is known.
    TooLong,
    /// Anything else: no route, a firewall, out of memory. Trying the same datagram again is
    /// pointless for now; the transport treats it as lost.
    Failed(io::Error),
}

/// How the rest of a batch goes after the kernel did not take it whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fallback {
    /// It was never refused.
    None,
    /// One by one; the next batch is tried whole again.
    ThisBatch,
    /// One by one; if the next datagram is taken, the kernel or the device cannot segment batches.
    Suspicion,
}

/// The sending half of a UDP socket.
#[derive(Debug)]
pub struct UdpSender {
    socket: Arc<UdpSocket>,
    state: UdpSocketState,
    local: SocketAddr,
    segmentation: Segmentation,
    /// Batches that the kernel refused to segment.
    refusals: u64,
}

impl UdpSender {
    pub(super) fn new(
        socket: Arc<UdpSocket>,
        state: UdpSocketState,
        local: SocketAddr,
        segmentation: Segmentation,
    ) -> Self {
        Self {
            socket,
            state,
            local,
            segmentation,
            refusals: 0,
        }
    }

    /// The address the socket is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Maximum number of datagrams that the kernel accepts in one call, 1 without offload. May fall
    /// to 1 at any send.
    pub fn max_batch(&self) -> usize {
        match self.segmentation {
            Segmentation::Offload => self.state.max_gso_segments(),
            Segmentation::Single => 1,
        }
    }

    /// Number of batches that the kernel refused to segment; their datagrams were sent one by one.
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Sends `datagrams`; one by one if the kernel refuses the batch.
    ///
    /// # Errors
    /// [`SendError`] when not all of it was taken; what it says was sent must not be sent again.
    pub fn send(&mut self, datagrams: &Datagrams<'_>) -> Result<(), SendError> {
        let size = datagrams.segment_size.max(1);
        let peer = for_socket(datagrams.peer, self.local.is_ipv6());
        let mut sent = 0;
        let mut fallback = Fallback::None;
        let mut again = false;
        while sent < datagrams.contents.len() {
            let rest = &datagrams.contents[sent..];
            let most = match fallback {
                Fallback::None => self.max_batch().min(MAX_BATCH_BYTES / size).max(1),
                Fallback::ThisBatch | Fallback::Suspicion => 1,
            };
            let chunk = &rest[..rest.len().min(most * size)];
            let transmit = Transmit {
                destination: peer,
                ecn: EcnCodepoint::from_bits(datagrams.ecn as u8),
                contents: chunk,
                segment_size: (chunk.len() > size).then_some(size),
                src_ip: None,
            };
            let outcome = self.socket.try_io(Interest::WRITABLE, || {
                self.state.try_send((&*self.socket).into(), &transmit)
            });
            let cause = match outcome {
                Ok(()) => {
                    if fallback == Fallback::Suspicion {
                        fallback = Fallback::ThisBatch;
                        self.segmentation = Segmentation::Single;
                        self.refusals += 1;
                    }
                    sent += chunk.len();
                    again = false;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => SendCause::Blocked,
                // About an earlier datagram, perhaps to another peer: the call reported it and sent
                // nothing.
                Err(error) if !again && is_belated(&error) => {
                    again = true;
                    continue;
                }
                Err(_) if chunk.len() > size => {
                    fallback = self.fall_back();
                    continue;
                }
                Err(error) if quinn_udp::is_msg_size_err(&error) => SendCause::TooLong,
                Err(error) => SendCause::Failed(error),
            };
            return Err(SendError { sent, cause });
        }
        Ok(())
    }

    /// The kernel did not take a batch.
    fn fall_back(&mut self) -> Fallback {
        if self.state.max_gso_segments() > 1 {
            return Fallback::ThisBatch;
        }
        // The error was one by which devices refuse offload, and the state has given offload up,
        // and ECN marks as well. But these errors can mean other things: start over, and
        // let the first datagram sent alone tell.
        if let Ok(fresh) = control::state(&self.socket) {
            self.state = fresh;
        }
        Fallback::Suspicion
    }

    /// Ready when the socket may take more after [`SendCause::Blocked`]. One task at a time may
    /// wait.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_send_ready(cx)
    }
}

/// Whether the error may be what ICMP said of an earlier datagram.
fn is_belated(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    ) || quinn_udp::is_msg_size_err(error)
}

#[cfg(all(test, target_os = "linux"))]
impl UdpSender {
    /// Makes the kernel refuse segmentation offload on this socket.
    pub(super) fn refuse_offload(&self) {
        control::set_option(&self.socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
    }
}
