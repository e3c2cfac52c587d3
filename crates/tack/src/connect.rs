//! Opening connections.

use std::fmt;
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::pin::Pin;

use tack_tcp::Config;
use tokio::net::{ToSocketAddrs, lookup_host};

use crate::address::is_loopback;
use crate::endpoint::Endpoint;
use crate::error::{ConnectError, InsecureAddress};
use crate::secure::Identity;
use crate::slot::Slot;
use crate::stream::Stream;

/// A connection to be opened: set its options, then await it.
///
/// Made by [`Endpoint::connect`] and [`connect`](crate::connect()). Nothing happens before it is
/// awaited; dropping the future gives the attempt up.
///
/// A peer given by name may have several addresses. They are tried one after the other, and the
/// error is that of the last one that could be tried. An address that does not answer takes as long
/// as the SYN retries of [`Config`] last, some minutes by default: use a timeout where that is too
/// long.
#[must_use = "nothing happens before a connection is awaited"]
pub struct Connect<'a, A> {
    peer: A,
    /// `None`: one of its own.
    endpoint: Option<&'a Endpoint>,
    /// `None`: the carrier's.
    port: Option<u16>,
    config: Option<Config>,
}

impl<A> fmt::Debug for Connect<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl<'a, A> Connect<'a, A> {
    pub(crate) fn new(peer: A, endpoint: Option<&'a Endpoint>) -> Self {
        Self {
            peer,
            endpoint,
            port: None,
            config: None,
        }
    }

    /// The TCP port to connect to. Default [`DEFAULT_PORT`](crate::DEFAULT_PORT); behind a TUN
    /// device that of the address.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Settings of this connection. Default: those of the endpoint.
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }
}

impl<'a, A> Connect<'a, A> {
    /// The endpoint's identity.
    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.endpoint?.handle.identity.as_ref()
    }
}

impl<'a, A: ToSocketAddrs + Send + 'a> Connect<'a, A> {
    /// Connects for bytes that `identity` will encrypt: beyond loopback, too.
    pub(crate) async fn encrypted(self, identity: Identity) -> Result<Stream, ConnectError> {
        self.open(Content::Encrypted(identity)).await
    }

    async fn open(self, content: Content) -> Result<Stream, ConnectError> {
        let peers: Vec<SocketAddr> = lookup_host(self.peer)
            .await
            .map_err(ConnectError::Resolve)?
            .collect();
        let config = self.config.as_ref();
        let mut last = None;
        for peer in peers {
            let attempt = match self.endpoint {
                Some(endpoint) => open(endpoint, peer, self.port, config, &content).await,
                None => {
                    let builder = Endpoint::builder().bind_towards(peer);
                    let builder = match &content {
                        Content::Clear => builder,
                        Content::Encrypted(identity) => builder.identity(identity.clone()),
                    };
                    match builder.build() {
                        Ok(own) => open(&own, peer, self.port, config, &content).await,
                        Err(error) => Err(error.into()),
                    }
                }
            };
            match attempt {
                Ok(stream) => return Ok(stream),
                // That the socket is of the other family says less than what another address
                // answered.
                Err(ConnectError::AddressFamily(_)) if last.is_some() => {}
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(ConnectError::no_address))
    }
}

/// What a connection is to carry.
enum Content {
    Clear,
    Encrypted(Identity),
}

impl<'a, A: ToSocketAddrs + Send + 'a> IntoFuture for Connect<'a, A> {
    type Output = Result<Stream, ConnectError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open(Content::Clear))
    }
}

impl Endpoint {
    /// Connects to [`DEFAULT_PORT`](crate::DEFAULT_PORT) of `peer` (its UDP address, or a name and
    /// UDP port such as `localhost:7777`) with the endpoint's settings, unless the returned
    /// [`Connect`] is told otherwise. Behind a TUN device the port of `peer` is its TCP port.
    ///
    /// ```no_run
    /// # async fn example(endpoint: tack::Endpoint) -> Result<(), tack::ConnectError> {
    /// let stream = endpoint.connect("localhost:7777").await?;
    /// let other = endpoint.connect("localhost:7777").port(9000).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] says which of: name unknown, address refused, ports exhausted, peer
    /// refuses, no answer, endpoint closed.
    pub fn connect<'a, A: ToSocketAddrs + Send + 'a>(&'a self, peer: A) -> Connect<'a, A> {
        Connect::new(peer, Some(self))
    }
}

/// Connects to [`DEFAULT_PORT`](crate::DEFAULT_PORT) of `peer` (its UDP address, or a name and UDP
/// port such as `localhost:7777`) from a socket of its own, on loopback.
///
/// # Errors
/// [`ConnectError`]; see [`Endpoint::connect`].
pub fn connect<'a, A: ToSocketAddrs + Send + 'a>(peer: A) -> Connect<'a, A> {
    Connect::new(peer, None)
}

async fn open(
    endpoint: &Endpoint,
    peer: SocketAddr,
    port: Option<u16>,
    config: Option<&Config>,
    content: &Content,
) -> Result<Stream, ConnectError> {
    let handle = &endpoint.handle;
    if matches!(content, Content::Clear) && !handle.insecure && !is_loopback(peer) {
        return Err(InsecureAddress(peer).into());
    }
    if !handle.local.reaches(peer.ip().to_canonical()) {
        return Err(ConnectError::AddressFamily(peer));
    }
    let shown = tack_io::canonical(peer);
    let (peer, port) = handle.local.name(shown, port);
    let config = handle.prepare(config.unwrap_or(&handle.config), Some(peer));
    let id = handle.run(|state, now| {
        state.check_open()?;
        let id = state.core.connect(now, peer, port, 0, &config)?;
        state.slots.insert(id, Slot::default());
        state.watch(id);
        state.dial(id);
        Ok::<_, ConnectError>(id)
    })?;
    // From here on dropping the future drops the stream, which lets go of the connection.
    let stream = Stream::new(handle.clone(), id);
    stream.established(shown, port).await?;
    Ok(stream)
}
