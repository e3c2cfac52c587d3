//! Accepting connections.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use crate::error::{ConnectError, EndpointClosed};
use crate::shared::Handle;
use crate::slot::Slot;
use crate::state::Life;
use crate::stream::Stream;
use crate::wakers::keep;

/// Accepts the connections to one TCP port of an endpoint. Dropping it resets those not yet accepted.
#[derive(Debug)]
pub struct Listener {
    handle: Handle,
    port: u16,
}

impl Listener {
    pub(crate) fn new(handle: Handle, port: u16) -> Self {
        Self { handle, port }
    }

    /// The UDP address that peers connect to.
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.local
    }

    /// The TCP port that peers connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The next established connection.
    ///
    /// # Errors
    /// [`ConnectError::Endpoint`] once the endpoint shuts down.
    pub async fn accept(&mut self) -> Result<Stream, ConnectError> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// The next established connection, if there is one.
    ///
    /// # Errors
    /// As [`Listener::accept`].
    pub fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Result<Stream, ConnectError>> {
        let accepted = self.handle.run(|state, _| {
            if let Some(id) = state.core.accept(self.port) {
                state.slots.insert(
                    id,
                    Slot {
                        connected: true,
                        ..Slot::default()
                    },
                );
                return Some(Ok(id));
            }
            match state.acceptors.get_mut(&self.port) {
                Some(waiting) if state.life == Life::Open => {
                    keep(waiting, cx, &mut state.wakers);
                    None
                }
                _ => Some(Err(EndpointClosed)),
            }
        });
        match accepted {
            Some(Ok(id)) => Poll::Ready(Ok(Stream::new(self.handle.clone(), id))),
            Some(Err(closed)) => Poll::Ready(Err(closed.into())),
            None => Poll::Pending,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The waker may hold the last reference to a task that owns a stream: it goes without the lock.
        let _waiting = self.handle.run(|state, now| {
            // A shutdown may have given the port away already.
            let acceptor = state.acceptors.remove(&self.port)?;
            state.core.unlisten(now, self.port);
            acceptor
        });
    }
}
