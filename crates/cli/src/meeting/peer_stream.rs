//! A connection to a peer, encrypted or in clear text.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tack::secure::{SecureReadHalf, SecureStream, SecureWriteHalf};
use tack::{CloseReason, Endpoint, OwnedReadHalf, OwnedWriteHalf, Stats, Stream};
use tack_pairing::PublicKey;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::places::Place;
use crate::net::TransportFigures;
use crate::transfer::channel::{Channel, PeerKey, Writer, first_sent};

/// A connection to a peer.
#[derive(Debug)]
pub(crate) enum PeerStream {
    /// Clear text: only with `--insecure`.
    Clear(Stream),
    /// Encrypted.
    Secure(Box<SecureStream>, Proven),
}

/// Who is at the other end of an encrypted connection.
#[derive(Debug)]
pub(crate) struct Proven {
    /// The peer's long-term key, which is not that of TLS after a code.
    pub(crate) key: PublicKey,
    /// The place of the connection among those of the peer, where they are counted.
    _place: Option<Place>,
}

impl Proven {
    /// A peer whose connections are counted.
    pub(super) fn in_place(key: PublicKey, place: Place) -> Self {
        let _place = Some(place);
        Self { key, _place }
    }
}

impl From<PublicKey> for Proven {
    fn from(key: PublicKey) -> Self {
        Self { key, _place: None }
    }
}

/// The reading half of a [`PeerStream`].
#[derive(Debug)]
pub(crate) enum PeerReader {
    Clear(OwnedReadHalf),
    Secure(SecureReadHalf),
}

/// The writing half of a [`PeerStream`].
#[derive(Debug)]
pub(crate) enum PeerWriter {
    Clear(OwnedWriteHalf),
    Secure(SecureWriteHalf, Proven),
}

impl PeerStream {
    /// Encrypted, with the key that the peer has proven in TLS.
    pub(crate) fn by_tls(stream: SecureStream) -> Self {
        let key = stream.peer_key();
        Self::Secure(Box::new(stream), key.into())
    }

    /// The UDP address of the peer.
    pub(crate) fn peer_addr(&self) -> SocketAddr {
        match self {
            Self::Clear(stream) => stream.peer_addr(),
            Self::Secure(stream, _) => stream.peer_addr(),
        }
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        match self {
            Self::Clear(stream) => stream.local_addr(),
            Self::Secure(stream, _) => stream.local_addr(),
        }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        match self {
            Self::Clear(stream) => stream.endpoint(),
            Self::Secure(stream, _) => stream.endpoint(),
        }
    }

    /// Waits until the peer has everything, the end of the stream included.
    pub(crate) async fn finished(&self) -> io::Result<()> {
        match self {
            Self::Clear(stream) => stream.finished().await,
            Self::Secure(stream, _) => stream.finished().await,
        }
    }

    /// Splits the stream into halves for two tasks.
    pub(crate) fn into_split(self) -> (PeerReader, PeerWriter) {
        match self {
            Self::Clear(stream) => {
                let (reader, writer) = stream.into_split();
                (PeerReader::Clear(reader), PeerWriter::Clear(writer))
            }
            Self::Secure(stream, peer) => {
                let (reader, writer) = stream.into_split();
                (PeerReader::Secure(reader), PeerWriter::Secure(writer, peer))
            }
        }
    }

    /// Ends the connection at once.
    pub(crate) fn reset(self) {
        match self {
            Self::Clear(stream) => stream.reset(),
            Self::Secure(stream, _) => stream.reset(),
        }
    }
}

impl PeerReader {
    /// Waits until the connection is over, and says how.
    pub(crate) async fn closed(&self) -> CloseReason {
        match self {
            Self::Clear(half) => half.closed().await,
            Self::Secure(half) => half.closed().await,
        }
    }
}

impl PeerWriter {
    /// What the transport counted, where the acknowledged bytes are those that were written here.
    pub(crate) fn stats(&self) -> Stats {
        match self {
            Self::Clear(half) => half.stats(),
            Self::Secure(half, _) => {
                let mut stats = half.stats();
                stats.bytes_acked = half.acknowledged();
                stats
            }
        }
    }

    /// Waits until the peer has everything, the end of the stream included.
    pub(crate) async fn finished(&self) -> io::Result<()> {
        match self {
            Self::Clear(half) => half.finished().await,
            Self::Secure(half, _) => half.finished().await,
        }
    }
}

impl Channel for PeerStream {
    type Reader = PeerReader;
    type Writer = PeerWriter;

    fn into_split(self) -> (PeerReader, PeerWriter) {
        Self::into_split(self)
    }
}

impl AsyncRead for PeerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Secure(stream, _) => Pin::new(&mut **stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Secure(stream, _) => Pin::new(&mut **stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_flush(cx),
            Self::Secure(stream, _) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Secure(stream, _) => Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }
}

impl AsyncRead for PeerReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(half) => Pin::new(half).poll_read(cx, buf),
            Self::Secure(half) => Pin::new(half).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for PeerWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(half) => Pin::new(half).poll_write(cx, bytes),
            Self::Secure(half, _) => Pin::new(half).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(half) => Pin::new(half).poll_flush(cx),
            Self::Secure(half, _) => Pin::new(half).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(half) => Pin::new(half).poll_shutdown(cx),
            Self::Secure(half, _) => Pin::new(half).poll_shutdown(cx),
        }
    }
}

impl Writer for PeerWriter {
    fn peer_key(&self) -> Option<PeerKey> {
        match self {
            Self::Clear(_) => None,
            Self::Secure(_, peer) => Some(*peer.key.as_bytes()),
        }
    }

    fn peer_addr(&self) -> SocketAddr {
        match self {
            Self::Clear(half) => half.peer_addr(),
            Self::Secure(half, _) => half.peer_addr(),
        }
    }

    fn figures(&self) -> Option<TransportFigures> {
        Some(TransportFigures::from(&self.stats()))
    }

    fn sent_bytes(&self) -> Option<u64> {
        Some(first_sent(&self.stats()))
    }

    async fn finished(&self) -> io::Result<()> {
        Self::finished(self).await
    }

    async fn closed(&self) {
        match self {
            Self::Clear(half) => _ = half.closed().await,
            Self::Secure(half, _) => _ = half.closed().await,
        }
    }

    fn abort(self) {
        match self {
            Self::Clear(half) => half.reset(),
            Self::Secure(half, _) => half.reset(),
        }
    }
}
