//! One UDP socket with its connections.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tack_io::{PacingTimer, UdpOptions};
use tack_tcp::{Config, ConnectionId, Endpoint as Core, EndpointConfig};

use crate::address::{DEFAULT_PORT, is_loopback};
use crate::driver::Driver;
use crate::error::{ConnectError, EndpointClosed, InsecureAddress, ListenError, ShutdownTimedOut};
use crate::listener::Listener;
use crate::outgoing::Outgoing;
use crate::settings::Settings;
use crate::shared::{Handle, LastOut, Shared};
use crate::slot::Slot;
use crate::state::{Life, State};
use crate::stream::Stream;

/// One UDP socket with any number of connections. Cheap to clone: all clones are the same endpoint.
///
/// It lives as long as any clone, listener or stream of it, and then in the background until the dropped streams have
/// delivered what was written to them.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) handle: Handle,
}

/// What passed through an endpoint's socket, since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CarrierStats {
    /// Datagrams handed to the kernel.
    pub datagrams_sent: u64,
    /// Batches they left in.
    pub batches_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// System calls that delivered them; not counted with [`crate::Coalesce::Off`].
    pub receives: u64,
    /// Datagrams received that are no TCP segments.
    pub malformed: u64,
    /// Sends that failed for a reason that waiting does not cure; the datagrams were lost.
    pub send_failures: u64,
    /// Batches that the kernel refused to cut and took one by one.
    pub offload_refused: u64,
    /// Most datagrams a batch may have now; 1 without offload.
    pub max_batch: usize,
}

/// While this lives, an endpoint answers each segment by itself; made by [`Endpoint::answer_singly`].
#[derive(Debug)]
pub struct AnswersSingly(Endpoint);

impl Drop for AnswersSingly {
    fn drop(&mut self) {
        self.0.handle.singly.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Endpoint {
    /// Suspends [`crate::Coalesce::Batches`] on all connections of this endpoint while the returned guard lives: the number
    /// of acknowledgements is then what each connection's policy says. The guard keeps the endpoint open.
    #[must_use]
    pub fn answer_singly(&self) -> AnswersSingly {
        self.handle.singly.fetch_add(1, Ordering::Relaxed);
        AnswersSingly(self.clone())
    }

    pub(crate) fn open(settings: &Settings) -> io::Result<Self> {
        let mut options = UdpOptions::new(settings.bind);
        options.segmentation = settings.segmentation;
        options.socket_buffer = settings.socket_buffer;
        options.refusals = true;
        let (sender, receiver) = options.open()?;
        let mut secret = [0; 16];
        getrandom::fill(&mut secret)?;
        let core = Core::new(EndpointConfig {
            max_connections: settings.max_connections,
            memory: settings.memory,
            ..EndpointConfig::new(secret)
        });
        let shared = Arc::new(Shared::new(
            settings,
            PacingTimer::new()?,
            core,
            Outgoing::new(sender),
        ));
        tokio::spawn(Driver::new(Arc::clone(&shared), receiver));
        Ok(Self {
            handle: Handle(Arc::new(LastOut(shared))),
        })
    }

    /// The UDP address the socket is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.local
    }

    /// Connects to [`DEFAULT_PORT`] of `peer` (its UDP address) with the endpoint's settings.
    ///
    /// Dropping the future gives the attempt up.
    ///
    /// # Errors
    /// [`ConnectError`] says which of: address refused, ports exhausted, peer refuses, no answer, endpoint closed.
    pub async fn connect(&self, peer: SocketAddr) -> Result<Stream, ConnectError> {
        self.connect_with(peer, DEFAULT_PORT, &self.handle.config)
            .await
    }

    /// Connects to TCP port `port` of `peer` (its UDP address) with settings of its own.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub async fn connect_with(
        &self,
        peer: SocketAddr,
        port: u16,
        config: &Config,
    ) -> Result<Stream, ConnectError> {
        if !self.handle.insecure && !is_loopback(peer) {
            return Err(InsecureAddress(peer).into());
        }
        if self.handle.local.is_ipv4() && peer.ip().to_canonical().is_ipv6() {
            return Err(ConnectError::AddressFamily(peer));
        }
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let config = self.handle.prepare(config, Some(peer));
        let id = self.handle.run(|state, now| {
            state.check_open()?;
            let id = state.core.connect(now, peer, port, 0, &config)?;
            state.slots.insert(id, Slot::default());
            state.dial(id);
            Ok::<_, ConnectError>(id)
        })?;
        // From here on dropping the future drops the stream, which lets go of the connection.
        let stream = Stream::new(self.handle.clone(), id);
        stream.established(peer, port).await?;
        Ok(stream)
    }

    /// Accepts connections to TCP port `port` with the endpoint's settings.
    ///
    /// # Errors
    /// [`ListenError`] when the port is taken or the endpoint closed.
    pub fn listen(&self, port: u16) -> Result<Listener, ListenError> {
        self.listen_with(port, &self.handle.config, 1024)
    }

    /// Accepts connections to TCP port `port` with settings of their own. At most `backlog` may wait for
    /// [`Listener::accept`]; more are ignored until there is room, and their peers try again. Half-open connections take
    /// none of that room: they are records of some 300 bytes, and beyond `backlog` of them SYN cookies, so that a flood of
    /// forged SYNs neither takes memory nor keeps others out.
    ///
    /// # Errors
    /// As [`Endpoint::listen`].
    pub fn listen_with(
        &self,
        port: u16,
        config: &Config,
        backlog: usize,
    ) -> Result<Listener, ListenError> {
        let config = self.handle.prepare(config, None);
        self.handle
            .run(|state, _| {
                state.check_open()?;
                state
                    .core
                    .listen(port, config, backlog)
                    .map_err(|_| ListenError::InUse(port))?;
                state.acceptors.insert(port, None);
                Ok(())
            })
            .map(|()| Listener::new(self.handle.clone(), port))
    }

    /// Bytes of heap that the connections of this endpoint hold, as far as they count against [`Builder::memory`].
    pub fn memory(&self) -> usize {
        self.handle.look(|state, _| state.core.memory())
    }

    /// What passed through the socket so far.
    pub fn carrier_stats(&self) -> CarrierStats {
        self.handle.look(|state, _| CarrierStats {
            datagrams_sent: state.outgoing.datagrams,
            batches_sent: state.outgoing.batches,
            datagrams_received: state.received,
            receives: state.receives,
            malformed: state.malformed,
            send_failures: state.outgoing.failures,
            offload_refused: state.outgoing.sender().refusals(),
            max_batch: state.outgoing.sender().max_batch(),
        })
    }

    /// Refuses new connections and waits, at most `limit`, until every stream has been dropped and everything written
    /// to it has reached its peer. What is left then is reset.
    ///
    /// # Errors
    /// [`ShutdownTimedOut`] with the number of connections that were reset.
    pub async fn shutdown(&self, limit: Duration) -> Result<(), ShutdownTimedOut> {
        self.handle.run(|state, now| {
            state.life = state.life.max(Life::Closing);
            let ports: Vec<u16> = state.acceptors.keys().copied().collect();
            for port in ports {
                let acceptor = state.acceptors.remove(&port).flatten();
                state.wake(acceptor);
                state.core.unlisten(now, port);
            }
        });
        let finished = poll_fn(|cx| {
            self.handle.run(|state, _| {
                if state.is_wound_up() || state.life == Life::Dead {
                    return Poll::Ready(());
                }
                if !state
                    .closers
                    .iter()
                    .any(|closer| closer.will_wake(cx.waker()))
                {
                    state.closers.push(cx.waker().clone());
                }
                Poll::Pending
            })
        });
        if tokio::time::timeout(limit, finished).await.is_ok() {
            return Ok(());
        }
        let connections = self.handle.run(|state, now| {
            let left: Vec<ConnectionId> =
                state.slots.keys().chain(&state.released).copied().collect();
            for id in &left {
                if let Some(connection) = state.core.get_mut(*id) {
                    connection.abort(now);
                }
            }
            left.len()
        });
        Err(ShutdownTimedOut { connections, limit })
    }
}

impl Stream {
    /// The endpoint this connection belongs to.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            handle: self.handle().clone(),
        }
    }
}

impl Listener {
    /// The endpoint this listener belongs to.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            handle: self.handle().clone(),
        }
    }
}

impl State {
    fn check_open(&self) -> Result<(), EndpointClosed> {
        if self.life == Life::Open {
            Ok(())
        } else {
            Err(EndpointClosed)
        }
    }
}
