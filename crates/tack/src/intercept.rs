//! Standing for every host: connections to any address and port, held until the application says
//! whether they exist, and UDP datagrams beside them.
//!
//! A SYN that arrives is kept, and told to the application as an [`Attempt`]. Only when the
//! application accepts it, the core sees it and answers. Until then the client waits, as it would
//! for a host far away; so it learns of a refusal by the same means as without anybody between.

use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;
use std::{fmt, io};

use tack_base::Instant;
use tack_tcp::{Config, Tuple};
use tack_wire::icmp;

use crate::carrier::Local;
use crate::endpoint::Endpoint;
use crate::error::{EndpointClosed, ListenError};
use crate::held::{ADMIT, Datagram, Gate, Held, Intercepted, REFUSE};
use crate::shared::Handle;
use crate::state::{Life, State};
use crate::stream::Stream;
use crate::wait::{Queue, wait_until};

/// Connections and datagrams to all hosts, of an endpoint that stands for them
/// (`TunOptions::everywhere`). Made by [`Endpoint::intercept`]; dropping it resets what is not
/// accepted yet.
#[derive(Debug)]
pub struct Interceptor {
    handle: Handle,
}

/// Options of an [`Interceptor`]; see [`Endpoint::intercept`].
#[derive(Clone, Debug)]
pub struct InterceptOptions {
    config: Option<Config>,
    attempts: usize,
    datagram_bytes: usize,
}

impl Default for InterceptOptions {
    fn default() -> Self {
        Self {
            config: None,
            attempts: 256,
            datagram_bytes: 1 << 20,
        }
    }
}

impl InterceptOptions {
    /// The default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Settings of the accepted connections. Default: those of the endpoint.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// Maximum number of attempts to connect that wait for the application's answer. SYNs beyond
    /// that are ignored, and come again. Default 256.
    #[must_use]
    pub fn attempts(mut self, attempts: usize) -> Self {
        self.attempts = attempts;
        self
    }

    /// Maximum size of the datagrams that wait to be read, all together, bytes. More are dropped.
    /// Default 1 MiB.
    #[must_use]
    pub fn datagram_bytes(mut self, bytes: usize) -> Self {
        self.datagram_bytes = bytes;
        self
    }
}

/// Why there is no connection, as the client is to learn it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoConnection {
    /// By a reset: nobody listens at the port (`ECONNREFUSED`).
    Refused,
    /// By ICMP: there is no route (`ENETUNREACH`).
    NetworkUnreachable,
    /// By ICMP: the host does not answer (`EHOSTUNREACH`).
    HostUnreachable,
    /// By ICMP: it is not permitted (Linux: `EHOSTUNREACH` over IPv4, `EACCES` over IPv6).
    Prohibited,
    /// Not at all: it tries again, and gives up in its own time (`ETIMEDOUT`).
    Silence,
}

impl Endpoint {
    /// Takes the connections and datagrams to every address and port. The endpoint is one whose
    /// device was made with `TunOptions::everywhere`.
    ///
    /// # Errors
    /// [`ListenError`] when it is another endpoint, is closed, or has an interceptor.
    pub fn intercept(&self, options: InterceptOptions) -> Result<Interceptor, ListenError> {
        if !matches!(self.handle.local, Local::Everywhere { .. }) {
            return Err(ListenError::NotEverywhere);
        }
        let config = options.config.as_ref().unwrap_or(&self.handle.config);
        let config = self.handle.prepare(config, None);
        self.handle.run(|state, _| {
            state.check_open()?;
            let gate = Gate::default();
            state
                .core
                .listen_everywhere(config, options.attempts, Some(gate.filter()))
                .map_err(|_| ListenError::InUse(0))?;
            state.intercepted = Some(Intercepted::new(
                gate,
                options.attempts,
                options.datagram_bytes,
            ));
            Ok::<(), ListenError>(())
        })?;
        Ok(Interceptor {
            handle: self.handle.clone(),
        })
    }
}

impl Interceptor {
    /// The next attempt of the client to connect. Any number of tasks may wait at a time. Cancel
    /// safe.
    ///
    /// # Errors
    /// [`EndpointClosed`] once the endpoint shuts down.
    pub async fn attempt(&self) -> Result<Attempt, EndpointClosed> {
        let name = wait_until(&self.handle, Queue::Attempts, |state, _| {
            match state.intercepted.as_mut().and_then(Intercepted::next) {
                Some(name) => Poll::Ready(Ok(name)),
                None if state.life == Life::Open => Poll::Pending,
                None => Poll::Ready(Err(EndpointClosed)),
            }
        })
        .await?;
        let local = &self.handle.local;
        Ok(Attempt {
            client: local.shown(name.peer, name.remote_port),
            target: local.address_towards(name.peer, name.local_port),
            handle: self.handle.clone(),
            name,
            stage: Stage::Held,
        })
    }

    /// The next datagram of the client. Cancel safe.
    ///
    /// # Errors
    /// [`EndpointClosed`] once the endpoint shuts down.
    pub async fn datagram(&self) -> Result<Datagram, EndpointClosed> {
        wait_until(&self.handle, Queue::Datagrams, |state, _| {
            match state
                .intercepted
                .as_mut()
                .and_then(Intercepted::next_datagram)
            {
                Some(datagram) => Poll::Ready(Ok(datagram)),
                None if state.life == Life::Open => Poll::Pending,
                None => Poll::Ready(Err(EndpointClosed)),
            }
        })
        .await
    }

    /// Sends the client a datagram, from whatever address it comes. Like any datagram, it may be
    /// lost; one that no packet can hold is.
    pub fn send_datagram(&self, datagram: &Datagram) {
        self.handle.run(|state, _| {
            state
                .outgoing
                .send_datagram(datagram.from, datagram.to, &datagram.payload);
        });
    }
}

impl Drop for Interceptor {
    fn drop(&mut self) {
        // Wakers may hold the last reference to a task that owns a stream: they go without the
        // lock.
        let _waiting = self.handle.run(|state, now| {
            state.core.unlisten_everywhere(now);
            state.intercepted.take()
        });
    }
}

/// The client wants to connect to a host. Dropping it leaves the client without an answer.
pub struct Attempt {
    handle: Handle,
    name: Tuple,
    client: SocketAddr,
    target: SocketAddr,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its SYN is kept.
    Held,
    /// The core has it.
    Admitted,
    /// The application has the connection, or it is refused.
    Over,
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attempt({} to {})", self.client, self.target)
    }
}

impl Attempt {
    /// Where the client connects from.
    pub fn client(&self) -> SocketAddr {
        self.client
    }

    /// Where the client connects to.
    pub fn target(&self) -> SocketAddr {
        self.target
    }

    /// Answers the client, and waits for the connection, at most `limit`.
    ///
    /// # Errors
    /// `TimedOut` when the client does not complete the handshake: it has given up, for example.
    /// [`EndpointClosed`] inside when the endpoint has shut down.
    pub async fn accept(mut self, limit: Duration) -> io::Result<Stream> {
        let name = self.name;
        let admitted = self.handle.run(|state, now| {
            let held = state.intercepted.as_mut()?.admit(name)?;
            state.hand_over(now, &held, ADMIT);
            Some(())
        });
        if admitted.is_none() {
            return Err(EndpointClosed.into());
        }
        self.stage = Stage::Admitted;
        let connected = wait_until(&self.handle, Queue::Admitted(name), |state, _| match state
            .intercepted
            .as_mut()
        {
            Some(intercepted) if state.life == Life::Open => {
                intercepted.take_connected(&name).map(Ok)
            }
            _ => Poll::Ready(Err(EndpointClosed)),
        });
        let id = tokio::time::timeout(limit, connected)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        self.stage = Stage::Over;
        Ok(Stream::new(self.handle.clone(), id))
    }

    /// Tells the client that there is no connection.
    pub fn refuse(mut self, why: NoConnection) {
        let name = self.name;
        self.handle.run(|state, now| {
            let held = state.intercepted.as_mut().and_then(|it| it.remove(&name));
            let Some(held) = held else { return };
            let reason = match why {
                NoConnection::Silence => return,
                NoConnection::Refused => return state.hand_over(now, &held, REFUSE),
                NoConnection::NetworkUnreachable => icmp::Unreachable::Network,
                NoConnection::HostUnreachable => icmp::Unreachable::Host,
                NoConnection::Prohibited => icmp::Unreachable::Prohibited,
            };
            state.outgoing.send_unreachable(&held.packet, reason);
        });
        self.stage = Stage::Over;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        if stage == Stage::Over {
            return;
        }
        let name = self.name;
        let _waiting = self.handle.run(|state, now| {
            let intercepted = state.intercepted.as_mut()?;
            if stage == Stage::Held {
                intercepted.remove(&name);
                return None;
            }
            let admitted = intercepted.forget(&name)?;
            // It came when nobody waited any more.
            if let Some(id) = admitted.connected {
                if let Some(connection) = state.core.get_mut(id) {
                    connection.abort(now);
                }
                state.release(now, id);
            }
            Some(admitted)
        });
    }
}

impl State {
    /// Gives the core a SYN that was kept, with the answer to its question.
    fn hand_over(&mut self, now: Instant, held: &Held, answer: u8) {
        let Some(gate) = self.intercepted.as_ref().map(Intercepted::gate) else {
            return;
        };
        gate.open(answer);
        held.with_segment(|peer, segment, ecn| {
            self.core
                .handle_segment(now, held.arrived, peer, segment, ecn);
        });
        gate.close();
    }

    /// A SYN for which the core has asked: it is kept, or admitted where it was before and the
    /// answer got lost.
    pub(crate) fn hold(&mut self, now: Instant, name: Tuple, held: Held) {
        let Some(intercepted) = &mut self.intercepted else {
            return;
        };
        if intercepted.is_admitted(&name) {
            self.hand_over(now, &held, ADMIT);
        } else {
            intercepted.hold(name, held, &mut self.wakers);
        }
    }

    /// Passes established connections on to the tasks that have admitted them. To be called after
    /// arrivals.
    pub(crate) fn pass_admitted(&mut self, now: Instant) {
        if self.intercepted.is_none() {
            return;
        }
        while let Some(id) = self.core.accept_everywhere() {
            let name = self.core.tuple(id);
            self.slots.insert(id, crate::slot::Slot::of_accepted());
            self.watch(id);
            let taken = match (&mut self.intercepted, name) {
                (Some(intercepted), Some(name)) => {
                    intercepted.connected(&name, id, &mut self.wakers)
                }
                _ => false,
            };
            if !taken {
                if let Some(connection) = self.core.get_mut(id) {
                    connection.abort(now);
                }
                if let Some(slot) = self.release(now, id) {
                    debug_assert!(slot.accepted, "nobody waits for it");
                }
            }
        }
    }
}
