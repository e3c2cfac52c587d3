//! The two directions of an encrypted stream, for two tasks.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tack_tcp::{CloseReason, Stats};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::key::PublicKey;
use super::session::Session;
use super::stream::SecureStream;

/// The reading direction of a [`SecureStream`].
pub struct SecureReadHalf {
    session: Arc<Session>,
}

/// The writing direction of a [`SecureStream`].
///
/// Dropping it ends this side's stream without `close_notify`: unless `shutdown` was called before,
/// the peer's reads fail with [`SecureError::Truncated`](super::SecureError::Truncated) after what
/// was written.
pub struct SecureWriteHalf {
    /// Taken only when the halves are put together again.
    session: Option<Arc<Session>>,
}

/// Halves of two different streams, which cannot be put together.
#[derive(Debug, thiserror::Error)]
#[error("the halves belong to different streams")]
pub struct SecureReuniteError(
    /// The reading half.
    pub SecureReadHalf,
    /// The writing half.
    pub SecureWriteHalf,
);

impl SecureStream {
    /// Splits into halves that different tasks may own. They wait for each other only while a few
    /// records are encrypted or decrypted.
    pub fn into_split(self) -> (SecureReadHalf, SecureWriteHalf) {
        let session = Arc::clone(&self.session);
        (
            SecureReadHalf { session },
            SecureWriteHalf {
                session: Some(self.session),
            },
        )
    }
}

impl SecureReadHalf {
    /// Puts the halves together again.
    ///
    /// # Errors
    /// [`SecureReuniteError`], with the halves inside, when they belong to different streams.
    pub fn reunite(self, mut other: SecureWriteHalf) -> Result<SecureStream, SecureReuniteError> {
        match other.session.take() {
            Some(session) if Arc::ptr_eq(&self.session, &session) => Ok(SecureStream { session }),
            session => Err(SecureReuniteError(self, SecureWriteHalf { session })),
        }
    }

    /// Waits until reading does not wait, as [`SecureStream::readable`].
    pub async fn readable(&self) {
        self.session.readable().await;
    }

    /// Reads without waiting, as [`SecureStream::try_read`].
    ///
    /// # Errors
    /// As [`SecureStream::try_read`].
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.session.try_read(buf)
    }

    /// Copies bytes without taking them, as [`SecureStream::peek`].
    ///
    /// # Errors
    /// As [`SecureStream::peek`].
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.session.peek(buf).await
    }

    /// The peer's proven key, as [`SecureStream::peer_key`].
    pub fn peer_key(&self) -> PublicKey {
        self.session.peer
    }

    /// The peer's UDP address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.session.stream.peer()
    }

    /// Counters and estimates of the transport connection.
    pub fn stats(&self) -> Stats {
        self.session.stream.stats()
    }

    /// Waits until the connection is over, as [`SecureStream::closed`].
    pub async fn closed(&self) -> CloseReason {
        self.session.stream.closed().await
    }
}

impl SecureWriteHalf {
    fn session(&self) -> &Session {
        self.session
            .as_ref()
            .expect("only `reunite` takes it, and consumes the half")
    }

    /// Waits until writing does not wait, as [`SecureStream::writable`].
    pub async fn writable(&self) {
        self.session().writable().await;
    }

    /// Writes without waiting, as [`SecureStream::try_write`].
    ///
    /// # Errors
    /// As [`SecureStream::try_write`].
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.session().try_write(buf)
    }

    /// The peer's proven key, as [`SecureStream::peer_key`].
    pub fn peer_key(&self) -> PublicKey {
        self.session().peer
    }

    /// The peer's UDP address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.session().stream.peer()
    }

    /// Counters and estimates of the transport connection.
    pub fn stats(&self) -> Stats {
        self.session().stream.stats()
    }

    /// Bytes that the peer has acknowledged, as [`SecureStream::acknowledged`].
    pub fn acknowledged(&self) -> u64 {
        self.session().acknowledged()
    }

    /// Ends the connection at once with a reset; what is under way in either direction is lost.
    pub fn reset(self) {
        self.session().stream.reset();
    }

    /// Waits until the connection is over, as [`SecureStream::closed`].
    pub async fn closed(&self) -> CloseReason {
        self.session().stream.closed().await
    }

    /// Waits until the peer has acknowledged everything, as [`SecureStream::finished`].
    ///
    /// # Errors
    /// [`crate::ConnectionEnded`] inside when the connection ends before that.
    pub async fn finished(&self) -> io::Result<()> {
        self.session().stream.finished().await
    }
}

impl Drop for SecureWriteHalf {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            // A closed endpoint has nothing to finish.
            let _ = session.stream.finish();
        }
    }
}

impl fmt::Debug for SecureReadHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecureReadHalf").finish_non_exhaustive()
    }
}

impl fmt::Debug for SecureWriteHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecureWriteHalf").finish_non_exhaustive()
    }
}

impl AsyncRead for SecureReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.session.poll_read(Some(cx), buf)
    }
}

impl AsyncWrite for SecureWriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.session().poll_write(Some(cx), &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.session().poll_write(Some(cx), bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: what was written leaves as soon as congestion control lets it.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.session().shutdown())
    }
}
