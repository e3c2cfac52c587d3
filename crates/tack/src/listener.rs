//! Accepting connections.

use std::net::SocketAddr;
use std::task::{Context, Poll};

use tack_tcp::ConnectionId;

use crate::error::{AcceptError, EndpointClosed};
use crate::shared::Handle;
use crate::slot::Slot;
use crate::state::{Life, State};
use crate::stream::Stream;
use crate::wait::{Queue, wait_until};
use crate::wakers::keep;

/// Accepts the connections to one TCP port of an endpoint. Dropping it resets those not yet
/// accepted.
#[derive(Debug)]
pub struct Listener {
    handle: Handle,
    port: u16,
}

impl Listener {
    pub(crate) fn new(handle: Handle, port: u16) -> Self {
        Self { handle, port }
    }

    /// The UDP address that peers connect to; behind a TUN device the address of the host, with the
    /// TCP port.
    pub fn local_addr(&self) -> SocketAddr {
        let local = &self.handle.local;
        local.shown(local.address(), self.port)
    }

    /// The TCP port that peers connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The next established connection, and the UDP address of its peer.
    ///
    /// Any number of tasks may wait at a time. Cancel safe: dropping the future loses no
    /// connection.
    ///
    /// # Errors
    /// [`AcceptError::Endpoint`] once the endpoint shuts down.
    pub async fn accept(&self) -> Result<(Stream, SocketAddr), AcceptError> {
        let queue = Queue::Acceptors(self.port);
        let id = wait_until(&self.handle, queue, |state, _| self.take(state)).await?;
        Ok(self.stream(id))
    }

    /// The next established connection, if there is one. Of the tasks that poll, the last one is
    /// woken.
    ///
    /// # Errors
    /// As [`Listener::accept`].
    pub fn poll_accept(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(Stream, SocketAddr), AcceptError>> {
        let accepted = self.handle.run(|state, _| {
            let accepted = self.take(state);
            if accepted.is_pending()
                && let Some(acceptors) = state.acceptors.get_mut(&self.port)
            {
                keep(&mut acceptors.polled, cx, &mut state.wakers);
            }
            accepted
        });
        accepted.map_ok(|id| self.stream(id))
    }

    /// Takes a connection over from the core.
    fn take(&self, state: &mut State) -> Poll<Result<ConnectionId, AcceptError>> {
        if let Some(id) = state.core.accept(self.port) {
            state.slots.insert(id, Slot::of_accepted());
            state.watch(id);
            return Poll::Ready(Ok(id));
        }
        if state.life == Life::Open && state.acceptors.contains_key(&self.port) {
            return Poll::Pending;
        }
        Poll::Ready(Err(EndpointClosed.into()))
    }

    fn stream(&self, id: ConnectionId) -> (Stream, SocketAddr) {
        let stream = Stream::new(self.handle.clone(), id);
        let peer = stream.peer_addr();
        (stream, peer)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The waker may hold the last reference to a task that owns a stream: it goes without the
        // lock.
        let _waiting = self.handle.run(|state, now| {
            // A shutdown may have given the port away already.
            let acceptors = state.acceptors.remove(&self.port)?;
            state.core.unlisten(now, self.port);
            Some(acceptors)
        });
    }
}
