//! What an endpoint keeps of a connection that the application holds.

use std::task::{Context, Poll, Waker};

use tack_tcp::{CloseReason, Event};

use crate::wakers::Wakers;

/// Who waits for a connection, and what happened to it.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) reader: Option<Waker>,
    pub(crate) writer: Option<Waker>,
    /// Tasks that wait for the handshake, or for the peer to have everything.
    pub(crate) watchers: Vec<Waker>,
    pub(crate) connected: bool,
    pub(crate) finished: bool,
}

impl Slot {
    pub(crate) fn on_event(&mut self, event: Event, wakers: &mut Wakers) {
        match event {
            Event::Connected => {
                self.connected = true;
                self.wake_watchers(wakers);
            }
            Event::Readable => {
                if let Some(reader) = self.reader.take() {
                    wakers.push(reader);
                }
            }
            Event::Writable => {
                if let Some(writer) = self.writer.take() {
                    wakers.push(writer);
                }
            }
            Event::Finished => {
                self.finished = true;
                self.wake_watchers(wakers);
            }
            Event::Closed(reason) => {
                self.finished |= reason == CloseReason::Graceful;
                self.wake_all(wakers);
            }
        }
    }

    fn wake_watchers(&mut self, wakers: &mut Wakers) {
        for watcher in self.watchers.drain(..) {
            wakers.push(watcher);
        }
    }

    pub(crate) fn wake_all(&mut self, wakers: &mut Wakers) {
        for waker in self.reader.take().into_iter().chain(self.writer.take()) {
            wakers.push(waker);
        }
        self.wake_watchers(wakers);
    }

    /// Waits for the handshake or the end.
    pub(crate) fn watch<T>(&mut self, cx: &Context<'_>) -> Poll<T> {
        if !self
            .watchers
            .iter()
            .any(|waker| waker.will_wake(cx.waker()))
        {
            self.watchers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
