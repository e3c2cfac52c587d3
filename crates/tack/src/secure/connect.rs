//! Opening encrypted connections.

use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use tack_tcp::Config;
use tokio::net::ToSocketAddrs;

use super::config::{Setup, protocol};
use super::error::SecureError;
use super::handshake::{self, Unfinished};
use super::identity::Identity;
use super::key::PublicKey;
use super::limits::HANDSHAKE_DEADLINE;
use super::stream::SecureStream;
use super::verify::{RawKeys, Wanted};
use crate::connect::Connect;

/// An encrypted connection to be opened: set its options, then await it.
///
/// Made by [`Connect::expecting`] and [`Connect::any_key`]. Nothing happens before it is awaited;
/// dropping the future gives the attempt up.
///
/// When it is there, the peer has proven its key, but it has not judged this side's yet. A peer
/// that does not want it says so with an alert: the first read fails with
/// [`SecureError::RefusedByPeer`].
#[must_use = "nothing happens before a connection is awaited"]
pub struct SecureConnect<'a, A> {
    connect: Connect<'a, A>,
    expected: Option<PublicKey>,
    alpn: Vec<u8>,
    identity: Option<Identity>,
    deadline: Duration,
}

impl<A> fmt::Debug for SecureConnect<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecureConnect")
            .field("connect", &self.connect)
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}

impl<'a, A> Connect<'a, A> {
    /// Encrypts the connection, and accepts no peer but the owner of `key`; both sides speak `alpn`
    /// inside (RFC 7301).
    ///
    /// # Panics
    /// If `alpn` has not 1 to 255 bytes.
    pub fn expecting(self, key: PublicKey, alpn: &[u8]) -> SecureConnect<'a, A> {
        SecureConnect::new(self, Some(key), alpn)
    }

    /// Encrypts the connection to any peer that answers, for a first meeting: the program judges
    /// [`SecureStream::peer_key`] before it trusts the peer with anything. Until then somebody on
    /// the path may be the peer.
    ///
    /// # Panics
    /// If `alpn` has not 1 to 255 bytes.
    pub fn any_key(self, alpn: &[u8]) -> SecureConnect<'a, A> {
        SecureConnect::new(self, None, alpn)
    }
}

impl<'a, A> SecureConnect<'a, A> {
    fn new(connect: Connect<'a, A>, expected: Option<PublicKey>, alpn: &[u8]) -> Self {
        Self {
            connect,
            expected,
            alpn: protocol(alpn),
            identity: None,
            deadline: HANDSHAKE_DEADLINE,
        }
    }

    /// The identity that this side proves. Default: that of the endpoint. One made for a single
    /// connection tells the peer nothing about who it is.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// The TCP port to connect to, as in [`Connect::port`].
    pub fn port(mut self, port: u16) -> Self {
        self.connect = self.connect.port(port);
        self
    }

    /// Settings of this connection, as in [`Connect::config`].
    pub fn config(mut self, config: Config) -> Self {
        self.connect = self.connect.config(config);
        self
    }

    /// How long the TLS handshake may take once the transport is connected. Default 10 s.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }
}

impl<'a, A: ToSocketAddrs + Send + 'a> IntoFuture for SecureConnect<'a, A> {
    type Output = Result<SecureStream, SecureError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let identity = self
                .identity
                .or_else(|| self.connect.identity().cloned())
                .ok_or(SecureError::NoIdentity)?;
            let keys = RawKeys::new(self.expected.map_or(Wanted::Anybody, Wanted::Owner));
            let setup = Setup::new(identity.clone(), self.alpn, keys);
            let stream = self.connect.encrypted(identity).await?;
            let mut stream = Unfinished::new(stream);
            let negotiating = handshake::connect(stream.stream(), &setup);
            let agreed = tokio::time::timeout(self.deadline, negotiating)
                .await
                .map_err(|_| SecureError::TimedOut(self.deadline))??;
            Ok(SecureStream::new(stream, &setup, agreed))
        })
    }
}
