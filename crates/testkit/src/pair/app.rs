//! The application on a connection.

use tack_base::Instant;
use tack_tcp::{CloseReason, Connection, ConnectionId, Event, ReadError, WriteError};

use crate::pattern;

/// An application: it writes a known stream and checks what it reads against the other's.
#[derive(Clone, Debug)]
pub struct App {
    /// Its connection.
    pub id: ConnectionId,
    /// Bytes it wants to have written.
    pub to_write: u64,
    /// Bytes it wrote.
    pub written: u64,
    /// It ends its stream once it wrote everything.
    pub finishing: bool,
    /// It reads what comes.
    pub reading: bool,
    /// Bytes it read.
    pub read: u64,
    /// It read the end of the other's stream.
    pub ended: bool,
    /// Events in the order they came, `Readable` and `Writable` left out.
    pub events: Vec<Event>,
    finish_called: bool,
}

impl App {
    pub(super) fn new(id: ConnectionId) -> Self {
        Self {
            id,
            to_write: 0,
            written: 0,
            finishing: false,
            reading: true,
            read: 0,
            ended: false,
            events: Vec::new(),
            finish_called: false,
        }
    }

    /// How its connection ended, if it did.
    pub fn closed(&self) -> Option<CloseReason> {
        self.events.iter().find_map(|event| {
            if let Event::Closed(reason) = event {
                Some(*reason)
            } else {
                None
            }
        })
    }

    /// Does what it can: takes events, writes, finishes, reads. An error is a broken promise of the
    /// connection. `checks_content`: what it reads must be what the other one writes.
    pub(super) fn work(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        checks_content: bool,
    ) -> Result<(), String> {
        while let Some(event) = connection.poll_event() {
            if self.closed().is_some() {
                return Err(format!("{event:?} after the last event"));
            }
            if !matches!(event, Event::Readable | Event::Writable) {
                self.events.push(event);
            }
        }
        while self.written < self.to_write {
            let len = (self.to_write - self.written).min(16_384) as usize;
            match connection.write(now, &pattern::bytes(self.written, len)) {
                Ok(taken) => self.written += taken as u64,
                Err(WriteError::Blocked | WriteError::Closed(_)) => break,
                Err(WriteError::Finished) => return Err("finish was not called".to_string()),
            }
        }
        if self.finishing && self.written == self.to_write && !self.finish_called {
            self.finish_called = true;
            connection.finish(now);
        }
        let mut buf = [0; 16_384];
        while self.reading && !self.ended {
            match connection.read(now, &mut buf) {
                Ok(0) => self.ended = true,
                Ok(len) => {
                    if checks_content && let Some(at) = pattern::mismatch(self.read, &buf[..len]) {
                        return Err(format!("byte {at} of the stream was read wrong"));
                    }
                    self.read += len as u64;
                }
                Err(ReadError::Blocked | ReadError::Closed(_)) => break,
            }
        }
        Ok(())
    }
}
