//! A UDP socket as a carrier: one datagram is one TCP segment.
//!
//! The socket has two halves with one owner each: [`UdpSender`] for whoever transmits,
//! [`UdpReceiver`] for the one task that receives. Both share the socket and its registration with
//! the runtime.

mod batch;
mod control;
mod errors;
mod receive;
mod route;
mod send;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

pub use batch::{MAX_BATCH_BYTES, Segmentation};
pub use errors::{QuotedSegment, Refused};
pub use receive::{Received, UdpReceiver};
pub use route::route_mtu;
pub use send::{Datagrams, SendCause, SendError, UdpSender};

/// Options for opening a UDP socket.
#[derive(Clone, Debug)]
pub struct UdpOptions {
    /// Local address. An unspecified IPv6 address takes IPv4 peers too.
    pub bind: SocketAddr,
    /// How batches are sent. Default: offload.
    pub segmentation: Segmentation,
    /// Requested socket buffers, bytes, each way; the system may cap them (Linux:
    /// `net.core.rmem_max`, `wmem_max`). Default 4 MiB: the kernel's usual cap, and 30 ms of a
    /// 1 Gbit/s path while the process does not run.
    pub socket_buffer: usize,
    /// Whether [`UdpReceiver::poll_refused`] reports closed ports. Default false: whoever sets it
    /// must poll that method, or the queued errors take room from datagrams.
    pub refusals: bool,
    /// A socket that is bound already, such as one that a service manager has passed on, in place
    /// of a new one. Default none.
    pub adopted: Option<Arc<std::net::UdpSocket>>,
}

impl UdpOptions {
    /// The default options with the local address `bind`.
    pub fn new(bind: SocketAddr) -> Self {
        Self {
            bind,
            segmentation: Segmentation::Offload,
            socket_buffer: 4 << 20,
            refusals: false,
            adopted: None,
        }
    }

    /// Opens the socket. Must be called within a tokio runtime whose I/O is enabled.
    ///
    /// # Errors
    /// What the system says about the address, or about a socket buffer that cannot hold one batch.
    pub fn open(&self) -> io::Result<(UdpSender, UdpReceiver)> {
        let socket = match &self.adopted {
            Some(socket) => Socket::from(socket.try_clone()?),
            None => self.unbound()?,
        };
        // Sizes beyond the system's cap are cut silently on Linux and refused elsewhere: ask for
        // less until it fits.
        let mut wanted = self.socket_buffer.max(2 * MAX_BATCH_BYTES);
        while (socket.set_send_buffer_size(wanted).is_err()
            || socket.set_recv_buffer_size(wanted).is_err())
            && wanted > 2 * MAX_BATCH_BYTES
        {
            wanted /= 2;
        }
        // A buffer smaller than a batch would never take one: send datagram by datagram then.
        let roomy = SockRef::from(&socket).send_buffer_size()? >= 2 * MAX_BATCH_BYTES;
        let segmentation = if roomy {
            self.segmentation
        } else {
            Segmentation::Single
        };
        socket.set_nonblocking(true)?;
        if self.adopted.is_none() {
            socket.bind(&self.bind.into())?;
        }
        let local = socket
            .local_addr()?
            .as_socket()
            .ok_or_else(|| io::Error::other("not an IP socket"))?;
        let socket = Arc::new(tokio::net::UdpSocket::from_std(socket.into())?);
        let sending = control::state(&socket)?;
        let receiving = control::state(&socket)?;
        if self.refusals {
            control::keep_errors(&socket, local);
        }
        Ok((
            UdpSender::new(Arc::clone(&socket), sending, local, segmentation),
            UdpReceiver::new(socket, receiving),
        ))
    }

    fn unbound(&self) -> io::Result<Socket> {
        let domain = Domain::for_address(self.bind);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        if let SocketAddr::V6(v6) = self.bind
            && v6.ip().is_unspecified()
        {
            socket.set_only_v6(false)?;
        }
        Ok(socket)
    }
}

#[cfg(test)]
mod tests;
