//! Many connections behind one carrier: demultiplexing, listeners, initial sequence numbers, strays.

use core::net::SocketAddr;

use tack_base::Instant;
use tack_wire::{Ecn, Segment};

use crate::config::Config;
use crate::connection::Connection;
use crate::transmit::{Batch, Transmit};

/// Names a connection of an [`Endpoint`]. Never reused while the endpoint lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub(crate) u64);

/// Settings of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Secret for initial sequence numbers (RFC 6528) and for choosing ports; must be random in real use.
    pub secret: [u8; 16],
    /// Most connections at a time, all kinds together. Default 65,536.
    pub max_connections: usize,
}

/// Why a connection cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The four-tuple is in use.
    #[error("a connection with these ports exists")]
    InUse,
    /// All local ports towards this peer are in use, or the endpoint holds its maximum of connections.
    #[error("no local port is free")]
    Exhausted,
}

/// Why a port cannot be listened on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody listens on it.
    #[error("the port is in use")]
    InUse,
}

/// Many connections behind one carrier.
///
/// A peer is named by its carrier address: the UDP address, or the IP address with port zero. Together with the two TCP
/// ports it names a connection.
#[derive(Debug)]
pub struct Endpoint {}

#[allow(unused_variables, missing_docs, reason = "being written")]
impl Endpoint {
    pub fn new(config: EndpointConfig) -> Self {
        unimplemented!()
    }
    /// Accepts connections to `port` with `config`; at most `backlog` are half-open or waiting for [`Endpoint::accept`].
    pub fn listen(&mut self, port: u16, config: Config, backlog: usize) -> Result<(), ListenError> {
        unimplemented!()
    }
    /// Stops listening; connections not yet accepted are reset.
    pub fn unlisten(&mut self, now: Instant, port: u16) {
        unimplemented!()
    }
    /// Opens a connection. `local_port` zero picks a free one (RFC 6056).
    pub fn connect(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        remote_port: u16,
        local_port: u16,
        config: &Config,
    ) -> Result<ConnectionId, ConnectError> {
        unimplemented!()
    }
    /// The next established connection of the listener on `port`.
    pub fn accept(&mut self, port: u16) -> Option<ConnectionId> {
        unimplemented!()
    }
    /// A segment arrived from `peer`. Says which connection took it.
    pub fn handle_segment(
        &mut self,
        now: Instant,
        arrived: Instant,
        peer: SocketAddr,
        segment: &Segment<'_>,
        ecn: Ecn,
    ) -> Option<ConnectionId> {
        unimplemented!()
    }
    /// The carrier address and TCP ports of a connection: (peer, local port, remote port).
    pub fn address(&self, id: ConnectionId) -> Option<(SocketAddr, u16, u16)> {
        unimplemented!()
    }
    /// A connection to read its state.
    pub fn get(&self, id: ConnectionId) -> Option<&Connection> {
        unimplemented!()
    }
    /// A connection to use its verbs; it is polled again afterwards.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        unimplemented!()
    }
    /// The application lets go: the connection closes gracefully on its own and is then forgotten.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        unimplemented!()
    }
    /// The next batch to leave, of any connection (fairly in turn), or a reset for a stray.
    pub fn poll_transmit(&mut self, now: Instant, batch: &mut Batch<'_>) -> Option<(SocketAddr, Transmit)> {
        unimplemented!()
    }
    /// A connection that has events; drain it with `get_mut(id).poll_event()`.
    pub fn poll_ready(&mut self) -> Option<ConnectionId> {
        unimplemented!()
    }
    /// When to call `handle_timeout` and then `poll_transmit`.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        unimplemented!()
    }
    pub fn handle_timeout(&mut self, now: Instant) {
        unimplemented!()
    }
}
