//! One UDP socket or TUN device with its connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tack_io::PacingTimer;
use tack_tcp::{ConnectionId, Endpoint as Core, EndpointConfig};

use crate::address::is_loopback;
use crate::carrier;
use crate::driver::Driver;
use crate::error::{InsecureAddress, ListenError, ShutdownTimedOut};
use crate::listen::ListenOptions;
use crate::listener::Listener;
use crate::outgoing::Outgoing;
use crate::settings::Settings;
use crate::shared::{Handle, LastOut, Shared};
use crate::state::{Acceptors, Life};
use crate::stream::Stream;
use crate::wait::{Queue, wait_until};

/// One UDP socket, or one host behind a TUN device ([`Builder::tun`](crate::Builder::tun)), with
/// any number of connections. Cheap to clone: all clones are the same endpoint.
///
/// It lives as long as any clone, listener or stream of it, and then in the background until the
/// dropped streams have delivered what was written to them.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) handle: Handle,
}

/// Counters of an endpoint's socket or device, since it was opened. A packet of a TUN device counts
/// as a datagram, and as one where it carries many segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CarrierStats {
    /// Datagrams handed to the kernel.
    pub datagrams_sent: u64,
    /// Batches that carried the datagrams sent.
    pub batches_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// System calls that delivered datagrams; not counted with [`crate::Coalesce::Off`].
    pub receives: u64,
    /// Datagrams received that are not TCP segments; behind a TUN device also packets that no host
    /// takes: fragments, wrong checksums, impossible sources.
    pub malformed: u64,
    /// Errors about segments (ICMP) that a connection believed; behind a TUN device only.
    pub path_errors: u64,
    /// Errors about segments that were not under way.
    pub path_errors_ignored: u64,
    /// Segments received that belong to no connection and no listener.
    pub strays: u64,
    /// Answers to SYNs that found the backlog full of half-open connections (SYN cookies).
    pub cookies_sent: u64,
    /// Connections that such an answer led to.
    pub cookies_accepted: u64,
    /// Sends that failed for another reason than a full socket; the datagrams were lost.
    pub send_failures: u64,
    /// Batches that the kernel refused to segment; their datagrams were sent one by one.
    pub offload_refused: u64,
    /// Current maximum of datagrams in a batch; 1 without offload.
    pub max_batch: usize,
}

/// A guard: while it lives, an endpoint processes and answers each segment alone. Made by
/// [`Endpoint::suspend_coalescing`].
#[derive(Debug)]
pub struct CoalescingGuard(Endpoint);

impl Drop for CoalescingGuard {
    fn drop(&mut self) {
        self.0.handle.uncoalesced.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Endpoint {
    /// Suspends [`crate::Coalesce::Batches`] on all connections of this endpoint while the returned
    /// guard lives: the number of acknowledgements is then what each connection's policy says.
    /// The guard keeps the endpoint open.
    #[must_use]
    pub fn suspend_coalescing(&self) -> CoalescingGuard {
        self.handle.uncoalesced.fetch_add(1, Ordering::Relaxed);
        CoalescingGuard(self.clone())
    }

    pub(crate) fn open(settings: &Settings) -> io::Result<Self> {
        let (sender, receiver) = carrier::open(settings)?;
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

    /// The UDP address the socket is bound to; behind a TUN device an address of the host, with
    /// port 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.local.address()
    }

    /// Name of the TUN device; `None` for a UDP socket.
    pub fn device(&self) -> Option<&str> {
        match &self.handle.local {
            carrier::Local::Socket(_) => None,
            carrier::Local::Host { device, .. } | carrier::Local::Everywhere { device, .. } => {
                Some(device)
            }
        }
    }

    /// Accepts connections to TCP port `port` with the endpoint's settings.
    ///
    /// # Errors
    /// [`ListenError`] when the port is taken, the endpoint closed, or bound beyond loopback
    /// without [`Builder::insecure`](crate::Builder::insecure).
    pub fn listen(&self, port: u16) -> Result<Listener, ListenError> {
        self.listen_with(port, ListenOptions::default())
    }

    /// Accepts connections to TCP port `port` as `options` say.
    ///
    /// # Errors
    /// As [`Endpoint::listen`].
    pub fn listen_with(&self, port: u16, options: ListenOptions) -> Result<Listener, ListenError> {
        let local = self.handle.local.address();
        if !self.handle.insecure && !is_loopback(local) {
            return Err(InsecureAddress(local).into());
        }
        self.listen_encrypted(port, options)
    }

    /// As [`Endpoint::listen_with`], for connections that will be encrypted: beyond loopback, too.
    pub(crate) fn listen_encrypted(
        &self,
        port: u16,
        options: ListenOptions,
    ) -> Result<Listener, ListenError> {
        let ListenOptions {
            config,
            backlog,
            filter,
        } = options;
        let config = config.as_ref().unwrap_or(&self.handle.config);
        let config = self.handle.prepare(config, None);
        self.handle
            .run(|state, _| {
                state.check_open()?;
                state
                    .core
                    .listen_filtered(port, config, backlog, filter)
                    .map_err(|_| ListenError::InUse(port))?;
                state.acceptors.insert(port, Acceptors::default());
                Ok(())
            })
            .map(|()| Listener::new(self.handle.clone(), port))
    }

    /// Bytes of heap that the connections of this endpoint hold and that count against
    /// [`Builder::memory`](crate::Builder::memory).
    pub fn memory(&self) -> usize {
        self.handle.look(|state, _| state.core.memory())
    }

    /// Counters of the endpoint's socket so far.
    pub fn carrier_stats(&self) -> CarrierStats {
        self.handle.look(|state, _| CarrierStats {
            datagrams_sent: state.outgoing.datagrams,
            batches_sent: state.outgoing.batches,
            datagrams_received: state.received,
            receives: state.receives,
            malformed: state.malformed,
            path_errors: state.core.stats().path_errors,
            path_errors_ignored: state.core.stats().path_errors_ignored,
            strays: state.core.stats().strays,
            cookies_sent: state.core.stats().cookies_sent,
            cookies_accepted: state.core.stats().cookies_accepted,
            send_failures: state.outgoing.failures,
            offload_refused: state.outgoing.sender().refusals(),
            max_batch: state.outgoing.sender().max_batch(),
        })
    }

    /// Refuses new connections and waits, at most `limit`, until every stream has been dropped and
    /// everything written to it has reached its peer. What is left then is reset.
    ///
    /// # Errors
    /// [`ShutdownTimedOut`] with the number of connections that were reset.
    pub async fn shutdown(&self, limit: Duration) -> Result<(), ShutdownTimedOut> {
        self.handle.run(|state, now| {
            state.life = state.life.max(Life::Closing);
            let ports: Vec<u16> = state.acceptors.keys().copied().collect();
            for port in ports {
                if let Some(mut acceptors) = state.acceptors.remove(&port) {
                    acceptors.wake(&mut state.wakers);
                }
                state.core.unlisten(now, port);
            }
            if let Some(intercepted) = &mut state.intercepted {
                intercepted.wake_all(&mut state.wakers);
                state.core.unlisten_everywhere(now);
            }
        });
        let finished = wait_until(&self.handle, Queue::Closers, |state, _| {
            if state.is_wound_up() || state.life == Life::Dead {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
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
