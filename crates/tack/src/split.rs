//! The two directions of a stream, for two tasks.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tack_tcp::{CloseReason, Stats};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Inner;
use crate::stream::Stream;

/// The reading direction of a [`Stream`].
#[derive(Debug)]
pub struct OwnedReadHalf {
    inner: Arc<Inner>,
}

/// The writing direction of a [`Stream`]. Dropping it ends this side's stream, as `shutdown` does.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    /// Taken only when the halves are put together again.
    inner: Option<Arc<Inner>>,
}

/// Halves of two different streams, which cannot be put together.
#[derive(Debug, thiserror::Error)]
#[error("the halves belong to different streams")]
pub struct ReuniteError(
    /// The reading half.
    pub OwnedReadHalf,
    /// The writing half.
    pub OwnedWriteHalf,
);

impl Stream {
    /// Splits into halves that different tasks may own. Dropping the write half ends this side's
    /// stream.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        (
            OwnedReadHalf::new(Arc::clone(&self.inner)),
            OwnedWriteHalf::new(self.inner),
        )
    }
}

impl OwnedReadHalf {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// Puts the halves together again.
    ///
    /// # Errors
    /// [`ReuniteError`], with the halves inside, when they belong to different streams.
    pub fn reunite(self, mut other: OwnedWriteHalf) -> Result<Stream, ReuniteError> {
        match other.inner.take() {
            Some(inner) if Arc::ptr_eq(&self.inner, &inner) => Ok(Stream::from_inner(inner)),
            inner => Err(ReuniteError(self, OwnedWriteHalf { inner })),
        }
    }

    /// Waits until reading does not wait, as [`Stream::readable`].
    pub async fn readable(&self) {
        self.inner.readable().await;
    }

    /// Reads without waiting, as [`Stream::try_read`].
    ///
    /// # Errors
    /// Reads without waiting, as [`Stream::try_read`].
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.inner.try_read(buf)
    }

    /// Copies bytes without taking them, as [`Stream::peek`].
    ///
    /// # Errors
    /// Copies bytes without taking them, as [`Stream::peek`].
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.inner.peek(buf).await
    }

    /// Waits until the connection is over, as [`Stream::closed`].
    pub async fn closed(&self) -> CloseReason {
        self.inner.closed().await
    }

    /// The local UDP address.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local()
    }

    /// The peer's UDP address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.inner.peer()
    }

    /// Counters and estimates of the connection.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

impl OwnedWriteHalf {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner: Some(inner) }
    }

    fn inner(&self) -> &Inner {
        self.inner
            .as_ref()
            .expect("only `reunite` takes it, and consumes the half")
    }

    /// Waits until writing does not wait, as [`Stream::writable`].
    pub async fn writable(&self) {
        self.inner().writable().await;
    }

    /// Writes without waiting, as [`Stream::try_write`].
    ///
    /// # Errors
    /// Writes without waiting, as [`Stream::try_write`].
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.inner().try_write(buf)
    }

    /// Waits until the connection is over, as [`Stream::closed`].
    pub async fn closed(&self) -> CloseReason {
        self.inner().closed().await
    }

    /// The local UDP address.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner().local()
    }

    /// The peer's UDP address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.inner().peer()
    }

    /// Counters and estimates of the connection.
    pub fn stats(&self) -> Stats {
        self.inner().stats()
    }

    /// Ends the connection at once with a reset; what is under way in either direction is lost.
    pub fn reset(self) {
        self.inner().reset();
    }

    /// Waits until the peer has acknowledged everything, the end of the stream included. Call
    /// `shutdown` first.
    ///
    /// # Errors
    /// [`crate::ConnectionEnded`] inside when the connection ends before that.
    pub async fn finished(&self) -> io::Result<()> {
        self.inner().finished().await
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if let Some(inner) = &self.inner {
            // A closed endpoint has nothing to finish.
            let _ = inner.finish();
        }
    }
}

impl AsyncRead for OwnedReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner.poll_read(cx, buf)
    }
}

impl AsyncWrite for OwnedWriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: what was written leaves as soon as congestion control lets it.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.inner().finish())
    }
}
