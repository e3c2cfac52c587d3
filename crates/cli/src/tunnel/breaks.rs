//! Learning that a connection broke off without reading from it.

use std::io;

use tack::CloseReason;
use tokio::io::{AsyncRead, Interest};
use tokio::net::tcp::ReadHalf;

use crate::meeting::PeerReader;

/// The reading half of a connection, which tells of a reset also to who does not read. What arrived
/// before the reset and was not read is of no use then, as in the kernel's TCP (RFC 9293 §3.5.3).
pub(super) trait Breaks: AsyncRead {
    /// Waits until the connection is reset or lost. It never returns if both streams end as they
    /// should. Cancel safe.
    fn broken(&self) -> impl Future<Output = io::Error> + Send;
}

impl Breaks for ReadHalf<'_> {
    async fn broken(&self) -> io::Error {
        // The end of the stream is not an error: it does not wake this.
        match self.ready(Interest::ERROR).await {
            Ok(_) => {
                let stream: &tokio::net::TcpStream = self.as_ref();
                let error = stream.take_error().ok().flatten();
                error.unwrap_or_else(|| io::ErrorKind::ConnectionReset.into())
            }
            // The runtime shuts down.
            Err(error) => error,
        }
    }
}

impl Breaks for PeerReader {
    async fn broken(&self) -> io::Error {
        broken(self.closed().await).await
    }
}

impl Breaks for tack::OwnedReadHalf {
    async fn broken(&self) -> io::Error {
        broken(self.closed().await).await
    }
}

/// What such an end of a connection is to its reader.
async fn broken(reason: CloseReason) -> io::Error {
    match reason {
        CloseReason::Graceful => std::future::pending().await,
        reason => tack::ConnectionEnded(reason).into(),
    }
}

#[cfg(test)]
impl Breaks for tokio::io::ReadHalf<tokio::io::DuplexStream> {
    fn broken(&self) -> impl Future<Output = io::Error> + Send {
        std::future::pending()
    }
}
