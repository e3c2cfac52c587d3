//! The stream of a transfer, encrypted or in clear text.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tack::secure::{SecureReadHalf, SecureStream, SecureWriteHalf};
use tack::{OwnedReadHalf, OwnedWriteHalf, Stream};
use tack_pairing::PublicKey;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::net::TransportFigures;
use crate::transfer::channel::{Channel, PeerKey, Writer};

/// One connection.
#[derive(Debug)]
pub(crate) enum Link {
    /// Clear text: only with `--insecure`.
    Clear(Stream),
    /// Encrypted, with the peer's long-term key, which is not that of TLS after a code.
    Secure(Box<SecureStream>, PublicKey),
}

/// Its reading half.
#[derive(Debug)]
pub(crate) enum LinkReader {
    Clear(OwnedReadHalf),
    Secure(SecureReadHalf),
}

/// Its writing half.
#[derive(Debug)]
pub(crate) enum LinkWriter {
    Clear(OwnedWriteHalf),
    Secure(SecureWriteHalf, PublicKey),
}

impl Link {
    /// Where the peer is.
    pub(crate) fn peer_addr(&self) -> SocketAddr {
        match self {
            Self::Clear(stream) => stream.peer_addr(),
            Self::Secure(stream, _) => stream.peer_addr(),
        }
    }
}

impl Channel for Link {
    type Reader = LinkReader;
    type Writer = LinkWriter;

    fn into_split(self) -> (LinkReader, LinkWriter) {
        match self {
            Self::Clear(stream) => {
                let (reader, writer) = stream.into_split();
                (LinkReader::Clear(reader), LinkWriter::Clear(writer))
            }
            Self::Secure(stream, peer) => {
                let (reader, writer) = stream.into_split();
                (LinkReader::Secure(reader), LinkWriter::Secure(writer, peer))
            }
        }
    }
}

impl AsyncRead for LinkReader {
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

impl AsyncWrite for LinkWriter {
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

impl Writer for LinkWriter {
    fn peer_key(&self) -> Option<PeerKey> {
        match self {
            Self::Clear(_) => None,
            Self::Secure(_, key) => Some(*key.as_bytes()),
        }
    }

    fn peer_addr(&self) -> SocketAddr {
        match self {
            Self::Clear(half) => half.peer_addr(),
            Self::Secure(half, _) => half.peer_addr(),
        }
    }

    fn figures(&self) -> Option<TransportFigures> {
        Some(TransportFigures::from(&match self {
            Self::Clear(half) => half.stats(),
            Self::Secure(half, _) => half.stats(),
        }))
    }

    async fn finished(&self) -> io::Result<()> {
        match self {
            Self::Clear(half) => half.finished().await,
            Self::Secure(half, _) => half.finished().await,
        }
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
