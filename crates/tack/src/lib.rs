//! Reliable byte streams over UDP: genuine TCP segments, one in each datagram, with pluggable acknowledgement and
//! congestion control.
//!
//! An [`Endpoint`] is one UDP socket with any number of connections, told apart by the peer's address and their TCP
//! ports. A [`Listener`] accepts connections to one port, a [`Stream`] is one connection and reads and writes like
//! tokio's `TcpStream`. Dropping a stream closes it gracefully in the background.
//!
//! ```
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let mut listener = tack::Listener::bind("127.0.0.1:0".parse().unwrap()).await?;
//! let address = listener.local_addr();
//!
//! let server = tokio::spawn(async move {
//!     let (mut reader, mut writer) = listener.accept().await?.into_split();
//!     tokio::io::copy(&mut reader, &mut writer).await?; // echo until the client is done
//!     writer.shutdown().await
//! });
//!
//! let mut stream = tack::connect(address).await?;
//! stream.write_all(b"hello").await?;
//! stream.shutdown().await?; // no more from us; reading goes on
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer).await?;
//! assert_eq!(answer, "hello");
//! # server.await.unwrap()?;
//! # Ok(())
//! # }
//! ```
//!
//! There is no encryption yet. Addresses beyond loopback are refused until [`Builder::insecure`] is set.
#![forbid(unsafe_code)]

mod address;
mod builder;
mod connection;
mod driver;
mod endpoint;
mod error;
mod listener;
mod outgoing;
mod settings;
mod shared;
mod slot;
mod split;
mod state;
mod stream;
mod wakers;

pub use address::DEFAULT_PORT;
pub use builder::Builder;
pub use endpoint::{AnswersSingly, CarrierStats, Endpoint};
pub use error::{
    ConnectError, ConnectionEnded, EndpointClosed, InsecureAddress, ListenError, ShutdownTimedOut,
};
pub use listener::Listener;
pub use settings::Coalesce;
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use stream::Stream;
pub use tack_io::Segmentation;
pub use tack_tcp::config::{Audits, KeepAlive};
pub use tack_tcp::{AckKind, Algorithm, CloseReason, Config, Stats};

/// Connects to [`DEFAULT_PORT`] of `peer` (its UDP address) from a socket of its own, on loopback.
///
/// # Errors
/// [`ConnectError`]; see [`Endpoint::connect`].
pub async fn connect(peer: std::net::SocketAddr) -> Result<Stream, ConnectError> {
    Endpoint::builder()
        .bind_towards(peer)
        .build()
        .await?
        .connect(peer)
        .await
}
