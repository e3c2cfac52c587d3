//! Waiting for what happens to an endpoint and its connections.

use std::future::poll_fn;
use std::task::{Context, Poll};

use tack_base::Instant;
use tack_tcp::{ConnectionId, Tuple};

use crate::shared::Handle;
use crate::state::State;
use crate::waiters::{Ticket, Waiters};

/// What a task waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queue {
    /// Bytes of this connection.
    Readers(ConnectionId),
    /// Room in the send buffer of this connection.
    Writers(ConnectionId),
    /// The handshake of this connection, its last acknowledgement, or its end.
    Watchers(ConnectionId),
    /// A connection to this port.
    Acceptors(u16),
    /// The last connection of the endpoint.
    Closers,
    /// An attempt of the client to connect.
    Attempts,
    /// A datagram of the client.
    Datagrams,
    /// The connection of this name, which was admitted.
    Admitted(Tuple),
}

impl Queue {
    /// Where those are that wait for the same, unless that cannot happen any more.
    fn of(self, state: &mut State) -> Option<&mut Waiters> {
        match self {
            Self::Readers(id) => Some(&mut state.slots.get_mut(&id)?.readers),
            Self::Writers(id) => Some(&mut state.slots.get_mut(&id)?.writers),
            Self::Watchers(id) => Some(&mut state.slots.get_mut(&id)?.watchers),
            Self::Acceptors(port) => Some(&mut state.acceptors.get_mut(&port)?.waiters),
            Self::Closers => Some(&mut state.closers),
            Self::Attempts => Some(&mut state.intercepted.as_mut()?.attempts),
            Self::Datagrams => Some(&mut state.intercepted.as_mut()?.readers),
            Self::Admitted(name) => state.intercepted.as_mut()?.waiters_of(&name),
        }
    }
}

/// A task among the waiters of a queue; it leaves them when it stops waiting.
pub(crate) struct Registration<'a> {
    handle: &'a Handle,
    queue: Queue,
    ticket: Option<Ticket>,
}

impl<'a> Registration<'a> {
    pub(crate) fn new(handle: &'a Handle, queue: Queue) -> Self {
        Self {
            handle,
            queue,
            ticket: None,
        }
    }

    /// Asks `check`. Where it has no answer, the task of `cx` waits to ask again.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &Context<'_>,
        check: impl FnOnce(&mut State, Instant) -> Poll<T>,
    ) -> Poll<T> {
        self.handle.run(|state, now| {
            let answer = check(state, now);
            if answer.is_pending()
                && let Some(waiters) = self.queue.of(state)
                && let Some(replaced) = waiters.wait(&mut self.ticket, cx)
            {
                state.wakers.drop_later(replaced);
            }
            answer
        })
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        // The waker may hold the last reference to a task that owns a stream: it goes without the
        // lock.
        let _waker = self
            .handle
            .change(|state| self.queue.of(state)?.leave(ticket));
    }
}

/// Asks `check` until it has an answer: now, and whenever the waiters are woken.
pub(crate) async fn wait_until<T>(
    handle: &Handle,
    queue: Queue,
    mut check: impl FnMut(&mut State, Instant) -> Poll<T>,
) -> T {
    let mut registration = Registration::new(handle, queue);
    poll_fn(|cx| registration.poll(cx, &mut check)).await
}
