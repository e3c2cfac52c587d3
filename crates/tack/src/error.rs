//! Errors, one type for each operation. Each converts to an [`io::Error`] of the matching kind.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tack_tcp::CloseReason;

/// An address beyond loopback for clear text, where [`Builder::insecure`](crate::Builder::insecure)
/// is not set: anyone on the path could read and change what passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0} is not a loopback address, and the connection would not be encrypted: anyone on the path could read and \
     change the data; encrypted connections need an identity"
)]
pub struct InsecureAddress(
    /// The address beyond loopback.
    pub SocketAddr,
);

impl From<InsecureAddress> for io::Error {
    fn from(error: InsecureAddress) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, error)
    }
}

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The peer's host name could not be resolved.
    #[error("the peer's address cannot be found: {0}")]
    Resolve(#[source] io::Error),
    /// The peer is beyond loopback, the connection in clear text, and `insecure` not set.
    #[error(transparent)]
    Insecure(#[from] InsecureAddress),
    /// The endpoint has no address of the peer's family: its socket is bound to an IPv4 address
    /// and the peer has an IPv6 one, or its TUN device has no such network.
    #[error("{0} cannot be reached from an endpoint without an address of its family, {family}", family = family(.0))]
    AddressFamily(SocketAddr),
    /// The connection's ports are in use, or none is free: see [`PortError`](crate::PortError).
    #[error(transparent)]
    Ports(#[from] tack_tcp::ConnectError),
    /// The peer refused the connection: nothing listens on the port.
    #[error("nobody listens on port {port} of {peer}")]
    Refused {
        /// The peer.
        peer: SocketAddr,
        /// The TCP port asked for.
        port: u16,
    },
    /// ICMP reported a closed UDP port of the peer's host, or, behind a TUN device, that the host
    /// cannot be reached.
    #[error("nobody listens at {0}, or it cannot be reached (an ICMP error)")]
    Unreachable(SocketAddr),
    /// This machine's system has no route to the peer: no network, or not its own.
    #[error("this machine has no route to {0}")]
    NoRoute(SocketAddr),
    /// The peer did not answer in time.
    #[error("{0} does not answer")]
    TimedOut(SocketAddr),
    /// The connection ended before it was established.
    #[error("{}", describe(*.0))]
    Closed(CloseReason),
    /// The endpoint is shutting down, or the runtime it lived in has ended.
    #[error(transparent)]
    Endpoint(#[from] EndpointClosed),
    /// No socket could be opened.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ConnectError {
    /// The peer's name has no address at all.
    pub(crate) fn no_address() -> Self {
        Self::Resolve(io::Error::new(
            io::ErrorKind::NotFound,
            "the name has no address",
        ))
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        let kind = match &error {
            ConnectError::Insecure(_) => io::ErrorKind::PermissionDenied,
            ConnectError::AddressFamily(_) => io::ErrorKind::InvalidInput,
            ConnectError::Ports(_) => io::ErrorKind::AddrInUse,
            ConnectError::Refused { .. } => io::ErrorKind::ConnectionRefused,
            ConnectError::Unreachable(_) => io::ErrorKind::ConnectionRefused,
            ConnectError::TimedOut(_) => io::ErrorKind::TimedOut,
            ConnectError::NoRoute(_) => io::ErrorKind::NetworkUnreachable,
            ConnectError::Closed(reason) => kind(*reason),
            ConnectError::Endpoint(_) => io::ErrorKind::NotConnected,
            ConnectError::Resolve(inner) | ConnectError::Io(inner) => inner.kind(),
        };
        match error {
            ConnectError::Io(inner) => inner,
            other => Self::new(kind, other),
        }
    }
}

/// Why no connection can be accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The endpoint is shutting down, or the runtime it lived in has ended.
    #[error(transparent)]
    Endpoint(#[from] EndpointClosed),
}

impl From<AcceptError> for io::Error {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Endpoint(closed) => closed.into(),
        }
    }
}

/// Why a port cannot be listened on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The port has a listener already.
    #[error("port {0} is in use")]
    InUse(u16),
    /// The endpoint is bound beyond loopback, the connections would be in clear text, and
    /// `insecure` is not set.
    #[error(transparent)]
    Insecure(#[from] InsecureAddress),
    /// Encrypted connections need an identity, of the endpoint or of the listener.
    #[error("encrypted connections need an identity, but none was given")]
    NoIdentity,
    /// The endpoint is one host, and cannot stand for others.
    #[error("only an endpoint behind a TUN device with `everywhere` stands for every host")]
    NotEverywhere,
    /// The endpoint is shutting down, or the runtime it lived in has ended.
    #[error(transparent)]
    Endpoint(#[from] EndpointClosed),
}

impl From<ListenError> for io::Error {
    fn from(error: ListenError) -> Self {
        let kind = match error {
            ListenError::InUse(_) => io::ErrorKind::AddrInUse,
            ListenError::Insecure(_) => io::ErrorKind::PermissionDenied,
            ListenError::NoIdentity | ListenError::NotEverywhere => io::ErrorKind::InvalidInput,
            ListenError::Endpoint(_) => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

/// The endpoint is shutting down, or the runtime it lived in has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the endpoint is closed")]
pub struct EndpointClosed;

impl From<EndpointClosed> for io::Error {
    fn from(error: EndpointClosed) -> Self {
        Self::new(io::ErrorKind::NotConnected, error)
    }
}

/// A shutdown reached its time limit: it reset the connections that were not finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{connections} connections were not finished after {limit:?}")]
#[non_exhaustive]
pub struct ShutdownTimedOut {
    /// Number of connections that were reset.
    pub connections: usize,
    /// The time limit of the shutdown.
    pub limit: Duration,
}

impl From<ShutdownTimedOut> for io::Error {
    fn from(error: ShutdownTimedOut) -> Self {
        Self::new(io::ErrorKind::TimedOut, error)
    }
}

/// A connection ended before its streams did; the inner error of the [`io::Error`] of reads
/// and writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", describe(*.0))]
pub struct ConnectionEnded(
    /// Why the connection ended.
    pub CloseReason,
);

impl From<ConnectionEnded> for io::Error {
    fn from(error: ConnectionEnded) -> Self {
        Self::new(kind(error.0), error)
    }
}

fn family(address: &SocketAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn kind(reason: CloseReason) -> io::ErrorKind {
    match reason {
        CloseReason::Graceful => io::ErrorKind::BrokenPipe,
        CloseReason::Reset => io::ErrorKind::ConnectionReset,
        CloseReason::Refused => io::ErrorKind::ConnectionRefused,
        CloseReason::Unreachable => io::ErrorKind::HostUnreachable,
        CloseReason::TimedOut => io::ErrorKind::TimedOut,
        CloseReason::NoRoute => io::ErrorKind::NetworkUnreachable,
        CloseReason::Aborted => io::ErrorKind::ConnectionAborted,
        CloseReason::Dishonest => io::ErrorKind::InvalidData,
        CloseReason::NoMemory => io::ErrorKind::OutOfMemory,
        _ => io::ErrorKind::Other,
    }
}

fn describe(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Graceful => "the connection is closed",
        CloseReason::Reset => "the peer reset the connection",
        CloseReason::Refused => "the peer refused the connection",
        CloseReason::Unreachable => {
            "the peer is gone: it cannot be reached, or its UDP port is closed"
        }
        CloseReason::TimedOut => "the peer stopped answering",
        CloseReason::NoRoute => "this machine has no route to the peer",
        CloseReason::Aborted => "the connection was aborted on this side",
        CloseReason::Dishonest => "the peer acknowledged what it was not sent",
        CloseReason::NoMemory => "no memory is left for a peer that takes nothing",
        _ => "the connection ended",
    }
}
