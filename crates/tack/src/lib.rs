//! Reliable byte streams over UDP: genuine TCP segments, one in each datagram, with pluggable
//! acknowledgement and congestion control.
//!
//! An [`Endpoint`] is one UDP socket with any number of connections, told apart by the peer's
//! address and their TCP ports; or, with [`Builder::tun`], a host behind a TUN device that speaks
//! plain TCP with any other. A [`Listener`] accepts connections to one port. A [`Stream`] is one
//! connection and reads and writes like tokio's `TcpStream`. Dropping a stream closes it gracefully
//! in the background.
//!
//! ```
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let listener = tack::Listener::bind("localhost:0").await?;
//! let address = listener.local_addr();
//!
//! let server = tokio::spawn(async move {
//!     let (stream, _peer) = listener.accept().await?;
//!     let (mut reader, mut writer) = stream.into_split();
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
//! # Encryption
//! A [`Stream`] carries clear text, and is refused beyond loopback unless [`Builder::insecure`] is
//! set. An endpoint with an [`Identity`](secure::Identity) encrypts: [`Connect::expecting`] and
//! [`Endpoint::listen_secure`] give a [`SecureStream`](secure::SecureStream), whose both sides have
//! proven their keys. See [`secure`].
//!
//! ```
//! use tack::Endpoint;
//! use tack::secure::{Admission, Identity, SecureListenOptions};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (alice, bob) = (Identity::generate()?, Identity::generate()?);
//! let (known, expected) = (alice.public_key(), bob.public_key());
//!
//! let server = Endpoint::builder().identity(bob).build()?;
//! let options = SecureListenOptions::new(b"greeting/1", move |key, _address| {
//!     if *key == known { Admission::Admit } else { Admission::Refuse }
//! });
//! let listener = server.listen_secure(tack::DEFAULT_PORT, options)?;
//!
//! let client = Endpoint::builder().identity(alice).build()?;
//! let connecting = client
//!     .connect(server.local_addr())
//!     .expecting(expected, b"greeting/1")
//!     .into_future();
//! let (connected, accepted) = tokio::join!(connecting, listener.accept());
//! let (mut out, mut incoming) = (connected?, accepted?.0);
//! out.write_all(b"hello").await?;
//! out.shutdown().await?;
//! let mut heard = String::new();
//! incoming.read_to_string(&mut heard).await?;
//! assert_eq!(heard, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! # Plugging in
//! When to acknowledge and how much to send are traits, [`AckPolicy`] and [`CongestionController`],
//! which a program can implement and hand to an endpoint by [`Builder::ack_policy`] and
//! [`Builder::controller`], or to a single connection by its [`Config`]. Each trait says what is
//! called when, and what a wrong implementation can break. The examples `policy` and `controller`
//! run one of each in the simulator, which drives the same code in virtual time.
//!
//! # Tasks, threads and the lock
//! Each endpoint has one task, the driver, on the runtime that [`Builder::build`] ran in. It
//! receives datagrams, keeps the timer and waits for a full socket. A read or a write works on the
//! connection at once, on the task that calls it, and sends from there what it caused.
//!
//! All connections of an endpoint share one lock. It is held for one piece of work at a time:
//! copying the bytes of one read or write, or processing the datagrams of one system call.
//! Receiving is done without the lock. Sending is done under it, so that segments leave in order
//! without a queue between: other tasks of the endpoint then wait for one system call for each
//! batch of up to 64 datagrams. A lock that is free during each system call cost one connection 2
//! to 3 % more processor time (`docs/performance.md`), so it is kept. Wakers are woken and dropped
//! without the lock. A program that wants more than one core for sending opens more than one
//! endpoint.
//!
//! # Cancel safety
//! [`Listener::accept`], [`Stream::readable`], [`Stream::writable`], [`Stream::peek`],
//! [`Stream::finished`] and [`Stream::closed`] can be dropped at any time and lose nothing. So can
//! those of [`secure::SecureStream`], and a single `read` or `write` of tokio's extension traits:
//! bytes are moved only when it completes. `read_exact` and `write_all` are not, as with any
//! stream: dropped early, they have moved some of the bytes. Dropping the future of a [`Connect`]
//! gives the attempt up.
//!
//! # What is stable
//! This crate follows semantic versioning; before 1.0 a minor version may break programs, a patch
//! version does not. Within that: enums and structs marked `#[non_exhaustive]` grow without being a
//! break, and so do [`Config`] and [`KeepAlive`], whose literals end in `..Config::default()` and
//! `..KeepAlive::default()`. New methods of [`AckPolicy`] and [`CongestionController`] have default
//! implementations. Not stable are: default values, the names and meanings of the phases in
//! [`cc::Metrics`], the texts of errors, how often a controller's getters are called, and the
//! crates `tack-*` below this one, which are used through what is exported here. What goes over the
//! wire is described in the project's documentation, and agreed in each handshake.
#![forbid(unsafe_code)]

/// The example of the project's README, compiled as one of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod address;
mod builder;
mod carrier;
mod connect;
mod connection;
mod driver;
mod endpoint;
mod error;
mod held;
mod intercept;
mod journal;
mod listen;
mod listener;
mod monitor;
mod outgoing;
mod packets;
pub mod secure;
mod settings;
mod shared;
mod slot;
mod split;
mod state;
mod stream;
mod wait;
mod waiters;
mod wakers;

pub use address::DEFAULT_PORT;
pub use builder::Builder;
pub use connect::{Connect, connect};
pub use endpoint::{CarrierStats, CoalescingGuard, Endpoint};
pub use error::{
    AcceptError, ConnectError, ConnectionEnded, EndpointClosed, InsecureAddress, ListenError,
    ShutdownTimedOut,
};
pub use held::Datagram;
pub use intercept::{Attempt, InterceptOptions, Interceptor, NoConnection};
pub use journal::{ConnectionView, Phase};
pub use listen::ListenOptions;
pub use listener::Listener;
pub use monitor::{Monitor, Watching};
pub use settings::Coalesce;
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use stream::Stream;
pub use tack_base::{Instant, Rate, StreamOffset};
pub use tack_io::{Segmentation, TunNetwork, TunOptions};
pub use tack_tcp::ConnectError as PortError;
pub use tack_tcp::config::{AccurateEcn, Audits, KeepAlive};
pub use tack_tcp::{
    AckKind, AckPolicy, AckPolicyFactory, Algorithm, CloseReason, Config, CongestionController,
    ConnectionId, ControllerFactory, Incoming, LossCounts, LossSign, PacketNumber, Stats, Verdict,
};

/// What connections do and why, event by event, for a [`Monitor`] that wants it.
pub mod trace {
    pub use tack_tcp::trace::{AckReceived, AckSent, TraceDetail, TraceEvent, Traced};
}

/// Acknowledgement policies: the events that an [`AckPolicy`] gets, its decisions and its contract.
pub mod ack {
    pub use tack_tcp::ack::{
        AckContract, AckDecision, AckKind, AckPolicy, AckPolicyFactory, AckReason, Carried,
        DataArrival, SegmentOrder,
    };
}

/// Congestion control: the events that a [`CongestionController`] gets, and its answers.
pub mod cc {
    pub use tack_tcp::cc::{
        Ack, Algorithm, BbrOptions, BbrProfile, Cause, Congestion, CongestionController,
        ControllerFactory, Counting, CubicProfile, Init, Metrics, ProbeRttKind, RateSample,
        RecoveryShaping, SendToken, Sent,
    };
}
