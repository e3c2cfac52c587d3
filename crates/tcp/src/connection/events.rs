//! Events for the application.

use super::close_reason::CloseReason;

/// Something the application may want to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// Bytes (or the end of the stream) can be read. Told when more arrived.
    Readable,
    /// Bytes can be written again after a write took less than was offered.
    Writable,
    /// Everything written before `finish`, and the FIN, was acknowledged.
    Finished,
    /// The connection ended. The last event.
    Closed(CloseReason),
}

/// Events not told yet: a flag each, so that they cannot pile up.
#[derive(Debug, Default)]
pub(super) struct Events {
    connected: bool,
    readable: bool,
    writable: bool,
    finished: bool,
    closed: Option<CloseReason>,
    /// Somebody waits for [`Event::Writable`].
    pub(super) write_blocked: bool,
}

impl Events {
    pub(super) fn raise(&mut self, event: Event) {
        match event {
            Event::Connected => self.connected = true,
            Event::Readable => self.readable = true,
            Event::Writable => self.writable = true,
            Event::Finished => self.finished = true,
            Event::Closed(reason) => self.closed = Some(reason),
        }
    }

    pub(super) fn take(&mut self) -> Option<Event> {
        for (flag, event) in [
            (&mut self.connected, Event::Connected),
            (&mut self.readable, Event::Readable),
            (&mut self.writable, Event::Writable),
            (&mut self.finished, Event::Finished),
        ] {
            if core::mem::take(flag) {
                return Some(event);
            }
        }
        self.closed.take().map(Event::Closed)
    }

    pub(super) fn is_empty(&self) -> bool {
        !(self.connected
            || self.readable
            || self.writable
            || self.finished
            || self.closed.is_some())
    }
}
