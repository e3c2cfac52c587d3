//! One encrypted connection as a byte stream in each direction.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tack_tcp::{CloseReason, Stats};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::config::Setup;
use super::error::ExportError;
use super::handshake::{Agreed, Unfinished};
use super::key::PublicKey;
use super::session::Session;
use crate::endpoint::Endpoint;

/// An encrypted connection whose both sides have proven their keys (TLS 1.3, RFC 8446): reads and
/// writes like tokio's `TcpStream`.
///
/// * Reading returns 0 bytes at the end of the peer's stream, when the peer said that it is
///   complete (`close_notify`). A stream that ends otherwise was cut off, perhaps by somebody on
///   the path: reading fails with [`SecureError::Truncated`](super::SecureError::Truncated), as the
///   inner error of an `UnexpectedEof`. What arrived before is read first.
/// * Writing takes bytes, encrypts them and puts them into the send buffer; it waits while that is
///   full. Large writes are cheapest: a record has up to 16 KiB and costs 22 bytes. Flushing does
///   nothing.
/// * `shutdown` says that this side's stream is complete (`close_notify`, then a FIN); reading goes
///   on.
/// * Dropping the stream without `shutdown` tells the peer nothing of the kind: its reads fail with
///   [`SecureError::Truncated`](super::SecureError::Truncated) after what was written. To be sure
///   of the writes, call `shutdown` and wait for [`SecureStream::finished`].
/// * Keys are renewed as RFC 8446 §5.5 wants it, without notice.
pub struct SecureStream {
    pub(super) session: Arc<Session>,
}

impl SecureStream {
    /// What a handshake over `stream` that went well makes of it.
    pub(super) fn new(stream: Unfinished, setup: &Setup, agreed: Agreed) -> Self {
        let session = Session::new(
            stream.finish().inner,
            setup.identity.public_key(),
            setup.alpn.clone(),
            agreed,
        );
        Self {
            session: Arc::new(session),
        }
    }

    /// The peer's key, which it has proven to own.
    pub fn peer_key(&self) -> PublicKey {
        self.session.peer
    }

    /// The key that the peer knows this side by.
    pub fn own_key(&self) -> PublicKey {
        self.session.own
    }

    /// The protocol that both sides agreed on (ALPN, RFC 7301).
    pub fn alpn(&self) -> &[u8] {
        &self.session.alpn
    }

    /// The name of the cipher, as `TLS13_AES_128_GCM_SHA256`.
    pub fn cipher(&self) -> String {
        format!("{:?}", self.session.suite.suite())
    }

    /// The name of the key exchange, as `X25519MLKEM768`.
    pub fn key_exchange(&self) -> String {
        format!("{:?}", self.session.group)
    }

    /// Fills `out` with bytes that only the two ends of this connection can compute (RFC 8446
    /// §7.5); with the label `EXPORTER-Channel-Binding`, no context and 32 bytes they are the
    /// channel binding of RFC 9266.
    ///
    /// They do not depend on the client's key: a proof made of them has to name
    /// [`SecureStream::own_key`] and [`SecureStream::peer_key`].
    ///
    /// # Errors
    /// [`ExportError`] for a label of more than 249 bytes, an empty `out`, or one of more than 8160
    /// bytes.
    pub fn export_keying_material(
        &self,
        label: &[u8],
        context: &[u8],
        out: &mut [u8],
    ) -> Result<(), ExportError> {
        self.session.export(label, context, out)
    }

    /// The endpoint this connection belongs to.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            handle: self.session.stream.handle.clone(),
        }
    }

    /// Bytes written to this stream that the peer has acknowledged, and that so have arrived: up to
    /// a record or two fewer, never more.
    pub fn acknowledged(&self) -> u64 {
        self.session.acknowledged()
    }

    /// The local UDP address.
    pub fn local_addr(&self) -> SocketAddr {
        self.session.stream.local()
    }

    /// The peer's UDP address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.session.stream.peer()
    }

    /// Counters and estimates of the transport connection.
    pub fn stats(&self) -> Stats {
        self.session.stream.stats()
    }

    /// Ends the connection at once with a reset; what is under way in either direction is lost.
    pub fn reset(self) {
        self.session.stream.reset();
    }

    /// Waits until the peer has acknowledged everything, the end of the stream included. Call
    /// `shutdown` first.
    ///
    /// # Errors
    /// [`ConnectionEnded`](crate::ConnectionEnded) inside when the connection ends before that.
    pub async fn finished(&self) -> io::Result<()> {
        self.session.stream.finished().await
    }

    /// Waits until reading does not wait: decrypted bytes are here, the peer's stream has ended, or
    /// the connection has. Parts of a record are not enough: a record is read once it is whole and
    /// its authentication tag is right. What follows may still find nothing, when another task
    /// reads too. Cancel safe.
    pub async fn readable(&self) {
        self.session.readable().await;
    }

    /// Waits until writing does not wait: there is room, this side's stream was ended, or the
    /// connection has ended. What follows may still find none, when another task writes too.
    /// Cancel safe.
    pub async fn writable(&self) {
        self.session.writable().await;
    }

    /// Reads what is here and decrypted, as much as fits into `buf`; 0 is the end of the peer's
    /// stream, or an empty `buf`. The rest of `buf` may be overwritten.
    ///
    /// # Errors
    /// `WouldBlock` when no whole record is here yet; otherwise as reading.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.session.try_read(buf)
    }

    /// Encrypts and writes what there is room for, in whole records, and returns how many bytes of
    /// `buf` that was. As all writes of this stream, it may exceed the send buffer by one record.
    ///
    /// # Errors
    /// `WouldBlock` if the send buffer is full. All other errors are those of a write.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.session.try_write(buf)
    }

    /// Waits for bytes as reading does, and copies them, decrypted, without taking them: they are
    /// read again. 0 is the end of the peer's stream, or an empty `buf`. It sees the rest of one
    /// record: 16 KiB at most, and fewer bytes than `buf` has room for although more are here.
    /// Cancel safe.
    ///
    /// # Errors
    /// The errors that reading has.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.session.peek(buf).await
    }

    /// As [`Stream::closed`](crate::Stream::closed): waits until the connection below is over, and
    /// says how. Cancel safe.
    pub async fn closed(&self) -> CloseReason {
        self.session.stream.closed().await
    }
}

impl fmt::Debug for SecureStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecureStream")
            .field("peer", &self.peer_addr())
            .field("peer_key", &self.peer_key())
            .finish_non_exhaustive()
    }
}

impl AsyncRead for SecureStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.session.poll_read(Some(cx), buf)
    }
}

impl AsyncWrite for SecureStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.session.poll_write(Some(cx), &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.session.poll_write(Some(cx), bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: what was written leaves as soon as congestion control lets it.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.session.shutdown())
    }
}
