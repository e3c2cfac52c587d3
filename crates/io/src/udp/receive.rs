//! The receiving half: many datagrams a system call, each with its arrival time and ECN codepoint.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrayvec::ArrayVec;
use quinn_udp::{RecvMeta, UdpSocketState};
use tack_base::Instant;
use tack_wire::Ecn;
use tack_wire::encapsulation::{Segments, segments};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::errors::{Errors, Refused};
use crate::address::canonical;
use crate::clock::{Clock, Reading, arrival};

/// Most buffers filled by one system call. With receive offload each holds up to 64 datagrams, and
/// eight of them still fit a core's cache.
const MESSAGES: usize = 8;
/// Bytes of a buffer when the kernel may join datagrams (the largest it ever makes).
const JOINED: usize = 65_535;

/// Whether a call that fills some of its buffers has emptied the socket: where `recvmmsg` is used.
/// Elsewhere a call takes one datagram.
const TAKES_ALL: bool = cfg!(target_os = "linux");

/// The receiving half of a UDP socket.
pub struct UdpReceiver {
    socket: Arc<UdpSocket>,
    state: UdpSocketState,
    storage: Box<[u8]>,
    meta: [RecvMeta; MESSAGES],
    /// Just before the latest system call that found the socket empty, or left it so.
    emptied: Option<Reading>,
    errors: Errors,
}

/// Datagrams of one peer, as the kernel joined them.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The source address of the datagrams, IPv4 always as IPv4.
    pub peer: SocketAddr,
    /// ECN codepoint of all the datagrams.
    pub ecn: Ecn,
    /// When the kernel received the first datagram, on the carrier's clock; the time of the call
    /// where the kernel does not say, or what it says cannot be trusted (over a second ago, or the
    /// wall clock was set meanwhile). Never before the socket was last seen empty.
    pub arrived: Instant,
    contents: &'a [u8],
    stride: usize,
}

impl<'a> Received<'a> {
    /// The TCP segments in the datagrams, in order; an error for each datagram that is not a
    /// segment.
    pub fn segments(&self) -> Segments<'a> {
        segments(self.contents, self.stride)
    }

    /// The payloads of the datagrams, in order, for carriers of other protocols.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let stride = if self.stride == 0 {
            self.contents.len()
        } else {
            self.stride
        };
        self.contents.chunks(stride.max(1))
    }
}

impl UdpReceiver {
    pub(super) fn new(socket: Arc<UdpSocket>, state: UdpSocketState) -> Self {
        Self {
            errors: Errors::new(Arc::clone(&socket)),
            socket,
            state,
            storage: vec![0; MESSAGES * JOINED].into_boxed_slice(),
            meta: [RecvMeta::default(); MESSAGES],
            emptied: None,
        }
    }

    /// Ready when the socket may have datagrams for [`UdpReceiver::receive`]. One task at a time
    /// may wait.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_recv_ready(cx)
    }

    /// Ready when the host of a peer answered that its UDP port is closed (ICMP). On Linux, and
    /// with [`super::UdpOptions::refusals`]; otherwise never.
    ///
    /// Whoever sees what is sent to the peer can forge such an error, and so can others who guess
    /// the UDP ports; what it quotes is harder to guess.
    ///
    /// # Errors
    /// When the runtime is shutting down, or the system does not tell.
    pub fn poll_refused(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Refused>> {
        self.errors.poll(cx)
    }

    /// Receives the waiting datagrams, up to one system call's worth, with arrival times on
    /// `clock`. A call that takes all of them tells the runtime that the socket is empty:
    /// [`UdpReceiver::poll_readable`] then waits for more.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing; other errors tell of some earlier datagram (an ICMP
    /// answer, on some systems) and do not mean that the socket is broken.
    pub fn receive(&mut self, clock: &Clock) -> io::Result<impl Iterator<Item = Received<'_>>> {
        let Self {
            socket,
            state,
            storage,
            meta,
            emptied,
            ..
        } = self;
        let mut before = None;
        let mut received = None;
        let polled = {
            let mut buffers: ArrayVec<IoSliceMut<'_>, MESSAGES> = storage
                .chunks_exact_mut(JOINED)
                .map(IoSliceMut::new)
                .collect();
            // The runtime does not run this when it knows of nothing to read.
            socket.try_io(Interest::READABLE, || {
                before = Some(Reading::take(clock));
                let count = state.recv((&**socket).into(), &mut buffers, meta)?;
                received = Some(count);
                // As the runtime itself has it for streams: what arrives from now on is a new
                // event, and to ask again would cost a system call. (An error that ended the call
                // early is an event as well.)
                if TAKES_ALL && count < MESSAGES {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            })
        };
        let since = *emptied;
        let is_empty = match (received, &polled) {
            (Some(count), _) => count < MESSAGES,
            (None, Ok(())) => false,
            (None, Err(error)) => error.kind() == io::ErrorKind::WouldBlock,
        };
        if is_empty {
            *emptied = before.or(since);
        }
        let count = match received {
            Some(count) => count,
            None => {
                polled?;
                0
            }
        };
        let read = Reading::take(clock);
        Ok(meta[..count]
            .iter()
            .zip(storage.chunks_exact(JOINED))
            .map(move |(meta, buffer)| Received {
                peer: canonical(meta.addr),
                ecn: meta
                    .ecn
                    .map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8)),
                arrived: arrival(&read, since.as_ref(), meta.timestamp),
                contents: &buffer[..meta.len.min(buffer.len())],
                stride: meta.stride,
            }))
    }
}

impl std::fmt::Debug for UdpReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UdpReceiver")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}
