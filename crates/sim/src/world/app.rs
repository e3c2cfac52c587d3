//! Applications on a TCP connection: what each end writes, reads and waits for.

use std::time::Duration;

use tack_base::Instant;
use tack_tcp::Connection;

use super::stream::Pattern;

/// Bytes that an end may still write, and that it has read.
#[derive(Clone, Debug)]
pub(super) struct End {
    outgoing: Pattern,
    incoming: Pattern,
    /// Bytes written.
    pub(super) written: u64,
    /// Bytes that may be written in all, so far.
    pub(super) allowance: u64,
    /// The stream ends when the allowance is used up.
    pub(super) ending: bool,
    finished: bool,
    /// Bytes read and checked.
    pub(super) read: u64,
    /// The application is not reading now.
    pub(super) paused: bool,
    /// The peer's stream ended and was read to its end.
    pub(super) ended: bool,
}

/// Bytes that came are not the bytes that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrongBytes {
    /// Position in the stream of the read in which they were.
    pub(super) position: u64,
}

impl End {
    /// The end of `flow` on `side`: 0 connects, 1 accepts.
    pub(super) fn new(pattern: &Pattern, flow: usize, side: usize) -> Self {
        Self {
            outgoing: pattern.stream(flow, side),
            incoming: pattern.stream(flow, 1 - side),
            written: 0,
            allowance: 0,
            ending: false,
            finished: false,
            read: 0,
            paused: false,
            ended: false,
        }
    }

    /// Reads and checks all that can be read. Returns how many bytes that were.
    pub(super) fn read(
        &mut self,
        now: Instant,
        connection: &mut Connection,
    ) -> Result<u64, WrongBytes> {
        if self.paused || self.ended {
            return Ok(0);
        }
        let before = self.read;
        while connection.readable() > 0 {
            let (first, second) = connection.peek();
            let len = first.len() + second.len();
            let right = self.incoming.matches(self.read, first)
                && self
                    .incoming
                    .matches(self.read + first.len() as u64, second);
            if !right {
                return Err(WrongBytes {
                    position: self.read,
                });
            }
            connection.consume(now, len);
            self.read += len as u64;
        }
        self.ended = connection.is_read_finished();
        Ok(self.read - before)
    }

    /// Writes what may be written and fits, and ends the stream when it is time to.
    pub(super) fn write(&mut self, now: Instant, connection: &mut Connection) {
        while self.written < self.allowance {
            let len = (self.allowance - self.written).min(1 << 16) as usize;
            match connection.write(now, self.outgoing.at(self.written, len)) {
                Ok(taken) => self.written += taken as u64,
                // Blocked, finished or closed: the connection tells when there is more to do.
                Err(_) => return,
            }
        }
        if self.ending && !self.finished && self.written == self.allowance {
            self.finished = true;
            connection.finish(now);
        }
    }
}

/// The exchanges of a request app.
#[derive(Clone, Debug)]
pub(super) struct Exchanges {
    request: u64,
    response: u64,
    gap: Duration,
    /// Requests begun, and responses begun.
    asked: u64,
    answered: u64,
    asked_at: Instant,
    /// No request follows the one that is open.
    stopping: bool,
}

impl Exchanges {
    pub(super) fn new(request: u64, response: u64, gap: Duration) -> Self {
        Self {
            request,
            response,
            gap,
            asked: 0,
            answered: 0,
            asked_at: Instant::ZERO,
            stopping: false,
        }
    }

    /// The asking end sends its next request.
    pub(super) fn ask(&mut self, now: Instant, end: &mut End) {
        if self.stopping || self.is_open(end) {
            return;
        }
        self.asked += 1;
        self.asked_at = now;
        end.allowance += self.request;
    }

    /// Nothing was asked yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.asked == 0
    }

    /// A request is out whose response has not been read to its end.
    fn is_open(&self, end: &End) -> bool {
        end.read < self.asked * self.response
    }

    /// The asking end read something. When that completed an exchange: its latency, and when to ask
    /// again.
    pub(super) fn on_response(
        &mut self,
        now: Instant,
        end: &mut End,
        read: u64,
    ) -> Option<(Duration, Instant)> {
        if read == 0 || self.is_open(end) {
            return None;
        }
        end.ending |= self.stopping;
        Some((now.saturating_since(self.asked_at), now + self.gap))
    }

    /// The answering end read something: it may write the response to each request that it has in
    /// full.
    pub(super) fn on_request(&mut self, end: &mut End) {
        let complete = end.read / self.request;
        end.allowance += (complete - self.answered) * self.response;
        self.answered = complete;
    }

    /// No more requests: the asking end closes after the open exchange.
    pub(super) fn stop(&mut self, end: &mut End) {
        self.stopping = true;
        end.ending |= !self.is_open(end);
    }
}
