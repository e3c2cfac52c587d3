//! One connection as a byte stream in each direction.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tack_tcp::{CloseReason, ConnectionId, Stats, Tuple};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Inner;
use crate::error::{ConnectError, EndpointClosed};
use crate::shared::Handle;
use crate::state::Life;
use crate::wait::{Queue, wait_until};

/// A connection: reads and writes like tokio's `TcpStream`.
///
/// * Reading returns 0 bytes at the end of the peer's stream, and an error when the connection
///   ended before that; the error's kind says how, and a
///   [`ConnectionEnded`](crate::ConnectionEnded) is inside. What arrived before is read first.
/// * Writing takes bytes into the send buffer and waits while that is full. A write that returned
///   has been taken, not yet delivered. Flushing does nothing: what was written leaves as soon as
///   congestion control lets it.
/// * `shutdown` ends this side's stream (a FIN follows what was written); reading goes on.
/// * Dropping the stream lets the connection finish in the background: what was written still
///   arrives, as long as the runtime runs. But received bytes that were not read by then, or that
///   arrive later, are lost, and a reset tells the peer so (RFC 2525 §2.17), which discards
///   whatever of the writes has not arrived yet. To be sure of the writes, read until 0 before
///   dropping, or call `shutdown` and wait for [`Stream::finished`].
#[derive(Debug)]
pub struct Stream {
    pub(crate) inner: Arc<Inner>,
}

impl Stream {
    pub(crate) fn new(handle: Handle, id: ConnectionId) -> Self {
        let Tuple {
            peer,
            local_port,
            remote_port,
        } = handle
            .look(|state, _| state.core.tuple(id))
            .unwrap_or(Tuple {
                peer: handle.local.address(),
                local_port: 0,
                remote_port: 0,
            });
        let local = handle.local.address_towards(peer, local_port);
        let peer = handle.local.shown(peer, remote_port);
        Self {
            inner: Arc::new(Inner {
                handle,
                id,
                local,
                peer,
                local_port,
                remote_port,
            }),
        }
    }

    /// Waits for the handshake.
    pub(crate) async fn established(
        &self,
        peer: SocketAddr,
        port: u16,
    ) -> Result<(), ConnectError> {
        let id = self.inner.id;
        wait_until(self.handle(), Queue::Watchers(id), |state, _| {
            let Some(slot) = state.slots.get(&id).filter(|_| state.life != Life::Dead) else {
                return Poll::Ready(Err(EndpointClosed.into()));
            };
            if slot.connected {
                return Poll::Ready(Ok(()));
            }
            let Some(connection) = state.core.get(id) else {
                return Poll::Ready(Err(ConnectError::Closed(CloseReason::Aborted)));
            };
            let Some(reason) = connection.close_reason() else {
                return Poll::Pending;
            };
            Poll::Ready(Err(match reason {
                CloseReason::Refused => ConnectError::Refused { peer, port },
                CloseReason::Unreachable => ConnectError::Unreachable(peer),
                CloseReason::TimedOut => ConnectError::TimedOut(peer),
                CloseReason::NoRoute => ConnectError::NoRoute(peer),
                reason => ConnectError::Closed(reason),
            }))
        })
        .await
    }

    /// The local UDP address; behind a TUN device this side's address and TCP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local()
    }

    /// The peer's UDP address; behind a TUN device its address and TCP port.
    pub fn peer_addr(&self) -> SocketAddr {
        self.inner.peer
    }

    /// The TCP ports: this side's and the peer's.
    pub fn ports(&self) -> (u16, u16) {
        (self.inner.local_port, self.inner.remote_port)
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.inner.handle
    }

    /// Counters and estimates of this connection.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Ends the connection at once with a reset; what is under way in either direction is lost.
    pub fn reset(self) {
        self.inner.reset();
    }

    /// Waits until the peer has acknowledged everything, the end of the stream included. Call
    /// `shutdown` first.
    ///
    /// # Errors
    /// [`ConnectionEnded`](crate::ConnectionEnded) inside when the connection ends before that.
    pub async fn finished(&self) -> io::Result<()> {
        self.inner.finished().await
    }

    /// Waits until reading does not wait: bytes are here, the peer's stream has ended, or the
    /// connection has. What follows may still find nothing, when another task reads too. Cancel
    /// safe.
    pub async fn readable(&self) {
        self.inner.readable().await;
    }

    /// Waits until writing does not wait: there is room, or the connection has ended. What follows
    /// may still find none, when another task writes too. Cancel safe.
    pub async fn writable(&self) {
        self.inner.writable().await;
    }

    /// Reads what is here, as much as fits into `buf`; 0 is the end of the peer's stream, or an
    /// empty `buf`.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is here yet; otherwise as reading.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.inner.try_read(buf)
    }

    /// Writes what there is room for, and returns how much that was.
    ///
    /// # Errors
    /// `WouldBlock` if the send buffer is full. All other errors are those of a write.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.inner.try_write(buf)
    }

    /// Waits for bytes as reading does, and copies them without taking them: they are read again. 0
    /// is the end of the peer's stream, or an empty `buf`. Not all that could be read need be
    /// seen. Cancel safe.
    ///
    /// # Errors
    /// The errors that reading has.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.inner.peek(buf).await
    }

    /// Waits until the connection is over: both streams have ended and what this side wrote is
    /// acknowledged, or the connection broke off. Says how. [`CloseReason::Aborted`] also
    /// stands for a runtime that has ended. Cancel safe.
    pub async fn closed(&self) -> CloseReason {
        self.inner.closed().await
    }

    pub(crate) fn from_inner(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner.poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: what was written leaves as soon as congestion control lets it.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.inner.finish())
    }
}
