//! What an endpoint keeps of a connection that the application holds.

use std::task::Waker;

use tack_tcp::{CloseReason, Event};

use crate::waiters::Waiters;
use crate::wakers::Wakers;

/// Who waits for a connection, and what happened to it.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The task that polled for reading last.
    pub(crate) reader: Option<Waker>,
    /// The task that polled for writing last.
    pub(crate) writer: Option<Waker>,
    /// Tasks that wait for something to read.
    pub(crate) readers: Waiters,
    /// Tasks that wait for room to write.
    pub(crate) writers: Waiters,
    /// Tasks that wait for the handshake, for the peer to have everything, or for the end.
    pub(crate) watchers: Waiters,
    pub(crate) connected: bool,
    /// The peer opened the connection.
    pub(crate) accepted: bool,
    pub(crate) finished: bool,
}

impl Slot {
    /// That of a connection which the peer opened, and whose handshake is complete.
    pub(crate) fn of_accepted() -> Self {
        Self {
            connected: true,
            accepted: true,
            ..Self::default()
        }
    }

    pub(crate) fn on_event(&mut self, event: Event, wakers: &mut Wakers) {
        match event {
            Event::Connected => {
                self.connected = true;
                self.watchers.wake(wakers);
            }
            Event::Readable => self.wake_readers(wakers),
            Event::Writable => self.wake_writers(wakers),
            Event::Finished => {
                self.finished = true;
                self.watchers.wake(wakers);
            }
            Event::Closed(reason) => {
                self.finished |= reason == CloseReason::Graceful;
                self.wake_all(wakers);
            }
        }
    }

    fn wake_readers(&mut self, wakers: &mut Wakers) {
        self.reader
            .take()
            .into_iter()
            .for_each(|waker| wakers.push(waker));
        self.readers.wake(wakers);
    }

    fn wake_writers(&mut self, wakers: &mut Wakers) {
        self.writer
            .take()
            .into_iter()
            .for_each(|waker| wakers.push(waker));
        self.writers.wake(wakers);
    }

    pub(crate) fn wake_all(&mut self, wakers: &mut Wakers) {
        self.wake_readers(wakers);
        self.wake_writers(wakers);
        self.watchers.wake(wakers);
    }
}
