//! One connection as a byte stream in each direction.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tack_tcp::{CloseReason, ConnectionId, Stats};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Inner;
use crate::error::{ConnectError, EndpointClosed};
use crate::shared::Handle;
use crate::state::Life;

/// A connection: reads and writes like tokio's `TcpStream`.
///
/// * Reading returns 0 bytes at the end of the peer's stream, and an error when the connection ended before that; the
///   error's kind says how, and a [`ConnectionEnded`] is inside.
/// * Writing takes bytes into the send buffer and waits while that is full.
/// * `shutdown` ends this side's stream (a FIN follows what was written); reading goes on.
/// * Dropping the stream lets the connection finish in the background: what was written still arrives, as long as the
///   runtime runs. But received bytes that were not read by then, or that arrive later, are lost, and the peer is told so
///   by a reset (RFC 2525 §2.17), which discards whatever of the writes has not arrived yet. To be sure of the writes,
///   read until 0 before dropping, or call `shutdown` and wait for [`Stream::finished`].
#[derive(Debug)]
pub struct Stream {
    pub(crate) inner: Arc<Inner>,
}

impl Stream {
    pub(crate) fn new(handle: Handle, id: ConnectionId) -> Self {
        let (peer, local_port, remote_port) = handle
            .look(|state, _| state.core.address(id))
            .unwrap_or((handle.local, 0, 0));
        Self {
            inner: Arc::new(Inner {
                handle,
                id,
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
        let Inner { handle, id, .. } = &*self.inner;
        poll_fn(|cx| {
            handle.run(|state, _| {
                let Some(slot) = state.slots.get_mut(id).filter(|_| state.life != Life::Dead)
                else {
                    return Poll::Ready(Err(EndpointClosed.into()));
                };
                if slot.connected {
                    return Poll::Ready(Ok(()));
                }
                match state
                    .core
                    .get(*id)
                    .map(|connection| connection.close_reason())
                {
                    Some(None) => slot.watch(cx),
                    Some(Some(CloseReason::Refused)) => {
                        Poll::Ready(Err(ConnectError::Refused { peer, port }))
                    }
                    Some(Some(CloseReason::Unreachable)) => {
                        Poll::Ready(Err(ConnectError::Unreachable(peer)))
                    }
                    Some(Some(CloseReason::TimedOut)) => {
                        Poll::Ready(Err(ConnectError::TimedOut(peer)))
                    }
                    Some(Some(reason)) => Poll::Ready(Err(ConnectError::Closed(reason))),
                    None => Poll::Ready(Err(ConnectError::Closed(CloseReason::Aborted))),
                }
            })
        })
        .await
    }

    /// The local UDP address.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.handle.local
    }

    /// The peer's UDP address.
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

    /// Waits until the peer has acknowledged everything, the end of the stream included. Call `shutdown` first.
    ///
    /// # Errors
    /// [`ConnectionEnded`] inside when the connection ends before that.
    pub async fn finished(&self) -> io::Result<()> {
        self.inner.finished().await
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

    /// Nothing to do: what was written is on its way as soon as congestion control lets it.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.inner.finish())
    }
}
