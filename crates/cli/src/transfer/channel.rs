//! The byte stream under a transfer: plain, encrypted, or in tests a pipe in memory.

use std::io;
use std::net::SocketAddr;

use tack::{OwnedReadHalf, OwnedWriteHalf, Stats, Stream};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::net::TransportFigures;

/// The public key that a peer proved to have.
pub(crate) type PeerKey = [u8; 32];

/// One connection, reliable and in order in both directions.
pub(crate) trait Channel: Send + 'static {
    /// The reading half.
    type Reader: AsyncRead + Unpin + Send + 'static;
    /// The writing half, which also knows the connection.
    type Writer: Writer;

    /// Two halves for two tasks.
    fn into_split(self) -> (Self::Reader, Self::Writer);
}

/// The writing half of a [`Channel`]. `shutdown` ends this side's stream; reading goes on.
pub(crate) trait Writer: AsyncWrite + Unpin + Send + 'static {
    /// Who the peer is; `None` where nothing was proved (plain streams).
    fn peer_key(&self) -> Option<PeerKey>;

    /// Where the peer is.
    fn peer_addr(&self) -> SocketAddr;

    /// Counters of the transport.
    fn figures(&self) -> Option<TransportFigures>;

    /// Bytes of our stream that were sent, each counted once; `None` where nobody counts.
    fn sent_bytes(&self) -> Option<u64>;

    /// Waits until the peer has everything, the end of our stream included. Call `shutdown` first.
    fn finished(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits until the streams of both sides have ended, or the connection broke off.
    fn closed(&self) -> impl Future<Output = ()> + Send;

    /// Ends the connection at once; what is under way in either direction is lost.
    fn abort(self);
}

impl Channel for Stream {
    type Reader = OwnedReadHalf;
    type Writer = OwnedWriteHalf;

    fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        Stream::into_split(self)
    }
}

impl Writer for OwnedWriteHalf {
    fn peer_key(&self) -> Option<PeerKey> {
        None
    }

    fn peer_addr(&self) -> SocketAddr {
        OwnedWriteHalf::peer_addr(self)
    }

    fn figures(&self) -> Option<TransportFigures> {
        Some(TransportFigures::from(&self.stats()))
    }

    fn sent_bytes(&self) -> Option<u64> {
        Some(first_sent(&self.stats()))
    }

    async fn finished(&self) -> io::Result<()> {
        OwnedWriteHalf::finished(self).await
    }

    async fn closed(&self) {
        OwnedWriteHalf::closed(self).await;
    }

    fn abort(self) {
        self.reset();
    }
}

/// Bytes that a transport sent, without those that it sent again.
pub(crate) fn first_sent(stats: &Stats) -> u64 {
    stats.data_bytes.saturating_sub(stats.retransmitted_bytes)
}

/// Pipes in memory, for tests.
#[cfg(test)]
pub(crate) mod pipe {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{DuplexStream, ReadHalf, WriteHalf};

    use super::*;

    /// One end of a pipe, and whom the other end belongs to.
    #[derive(Debug)]
    pub(crate) struct Pipe {
        pub(crate) stream: DuplexStream,
        pub(crate) peer: Option<PeerKey>,
    }

    /// The writing half of a [`Pipe`].
    #[derive(Debug)]
    pub(crate) struct PipeWriter {
        half: WriteHalf<DuplexStream>,
        peer: Option<PeerKey>,
    }

    impl Channel for Pipe {
        type Reader = ReadHalf<DuplexStream>;
        type Writer = PipeWriter;

        fn into_split(self) -> (Self::Reader, PipeWriter) {
            let (reader, half) = tokio::io::split(self.stream);
            let peer = self.peer;
            (reader, PipeWriter { half, peer })
        }
    }

    impl Channel for DuplexStream {
        type Reader = ReadHalf<DuplexStream>;
        type Writer = PipeWriter;

        fn into_split(self) -> (Self::Reader, PipeWriter) {
            let (stream, peer) = (self, None);
            Pipe { stream, peer }.into_split()
        }
    }

    impl AsyncWrite for PipeWriter {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.half).poll_write(cx, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.half).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.half).poll_shutdown(cx)
        }
    }

    impl Writer for PipeWriter {
        fn peer_key(&self) -> Option<PeerKey> {
            self.peer
        }

        fn peer_addr(&self) -> SocketAddr {
            ([127, 0, 0, 1], 0).into()
        }

        fn figures(&self) -> Option<TransportFigures> {
            None
        }

        fn sent_bytes(&self) -> Option<u64> {
            None
        }

        async fn finished(&self) -> io::Result<()> {
            Ok(())
        }

        async fn closed(&self) {}

        fn abort(self) {}
    }
}
