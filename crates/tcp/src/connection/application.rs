//! The application's verbs: write, read, finish.

use tack_base::Instant;

use super::state::{State, Transition};
use super::timers::Timer;
use super::{CloseReason, Connection, Event};

/// Least that may be written ahead of what was sent, bytes, however small the congestion window.
const MIN_AHEAD: usize = 256 << 10;
/// Most that may be written ahead of what was sent: what fits a processor's cache. The writer is
/// told in time to keep up with any window, and bytes that wait longer are fetched from memory when
/// they leave.
const MAX_AHEAD: usize = 1 << 20;

/// Why bytes cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// The send buffer is full, or the handshake is not complete; [`Event::Writable`] will tell.
    #[error("the send buffer is full")]
    Blocked,
    /// `finish` was called: no more bytes can follow.
    #[error("the sending side is finished")]
    Finished,
    /// The connection ended.
    #[error("{0}")]
    Closed(CloseReason),
}

/// Why bytes cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing here yet; [`Event::Readable`] will tell.
    #[error("nothing to read yet")]
    Blocked,
    /// The connection ended before the peer's FIN.
    #[error("{0}")]
    Closed(CloseReason),
}

impl Connection {
    /// Queues bytes; returns how many were taken: at least one, unless `data` is empty.
    ///
    /// # Errors
    /// [`WriteError`]. Before the handshake is complete every write is blocked.
    pub fn write(&mut self, _now: Instant, data: &[u8]) -> Result<usize, WriteError> {
        if let Some(reason) = self.ending.reason {
            return Err(WriteError::Closed(reason));
        }
        if self.queue.is_finished() {
            return Err(WriteError::Finished);
        }
        if !matches!(self.state, State::Established | State::CloseWait) {
            self.events.write_blocked = true;
            return Err(WriteError::Blocked);
        }
        let taken = self.queue.push(data, self.send_limit());
        if taken < data.len() {
            self.events.write_blocked = true;
        }
        if taken == 0 && !data.is_empty() {
            return Err(WriteError::Blocked);
        }
        Ok(taken)
    }

    /// Queues all of `parts`, one after the other, whether or not the send buffer has room: for
    /// records, which are useless in pieces. The caller waits for [`Connection::writable`]
    /// before, and keeps what may be too much small.
    ///
    /// # Errors
    /// As [`Connection::write`]; then nothing was taken.
    pub fn write_whole(&mut self, now: Instant, parts: &[&[u8]]) -> Result<(), WriteError> {
        // Says why nothing can be written.
        self.write(now, &[])?;
        for part in parts {
            self.queue.push(part, usize::MAX);
        }
        Ok(())
    }

    /// Free space of the send buffer, bytes.
    pub fn writable(&self) -> usize {
        if self.queue.is_finished() || !matches!(self.state, State::Established | State::CloseWait)
        {
            return 0;
        }
        self.send_limit().saturating_sub(self.queue.len())
    }

    /// Bytes written that the peer has not acknowledged, whether sent or not.
    pub fn unacknowledged(&self) -> usize {
        self.queue.len()
    }

    /// True when a write would not be blocked: it takes a byte at least, or fails for good.
    /// Otherwise [`Event::Writable`] will tell.
    pub fn is_write_ready(&mut self) -> bool {
        let ready = self.ending.reason.is_some() || self.queue.is_finished() || self.writable() > 0;
        self.events.write_blocked |= !ready;
        ready
    }

    /// How much may be queued: what was sent and is kept for retransmission, and what may wait to
    /// be sent.
    fn send_limit(&self) -> usize {
        let unsent = self.queue.end().saturating_since(self.snd.nxt) as usize;
        let sent = self.queue.len().saturating_sub(unsent);
        (sent + self.send_ahead()).min(self.send_buffer())
    }

    /// How much may wait to be sent: a congestion window, for when all of it opens at once.
    fn send_ahead(&self) -> usize {
        usize::try_from(self.cc.cwnd())
            .unwrap_or(usize::MAX)
            .clamp(MIN_AHEAD, MAX_AHEAD)
    }

    /// Tells a blocked writer that there is room, once there is a worthwhile amount of it.
    pub(super) fn offer_writable(&mut self) {
        if self.events.write_blocked
            && self.writable() > self.send_ahead().min(self.send_buffer()) / 4
        {
            self.events.write_blocked = false;
            self.events.raise(Event::Writable);
        }
    }

    /// Moves received bytes into `buf`; `Ok(0)` is the end of the peer's stream (or an empty
    /// `buf`).
    ///
    /// # Errors
    /// [`ReadError`]. What arrived before a reset can still be read.
    pub fn read(&mut self, now: Instant, buf: &mut [u8]) -> Result<usize, ReadError> {
        let mut len = 0;
        while len < buf.len() {
            let (a, _) = self.receiver.reassembly.peek();
            let piece = a.len().min(buf.len() - len);
            if piece == 0 {
                break;
            }
            buf[len..len + piece].copy_from_slice(&a[..piece]);
            self.receiver.reassembly.consume(piece);
            len += piece;
        }
        if len > 0 {
            self.on_read(now);
            return Ok(len);
        }
        if buf.is_empty() || self.is_read_finished() {
            return Ok(0);
        }
        match self.ending.reason {
            Some(reason) => Err(ReadError::Closed(reason)),
            None => Err(ReadError::Blocked),
        }
    }

    /// Readable bytes in place, in at most two slices; pair with [`Connection::consume`]. There may
    /// be more behind them (see [`Connection::readable`]).
    pub fn peek(&self) -> (&[u8], &[u8]) {
        self.receiver.reassembly.peek()
    }

    /// Drops `len` bytes (at most what [`Connection::peek`] showed) from the front of what can be
    /// read.
    pub fn consume(&mut self, now: Instant, len: usize) {
        self.receiver.reassembly.consume(len);
        self.on_read(now);
    }

    fn on_read(&mut self, now: Instant) {
        let round_trip = self.peer_segments.round_trip.estimate(self.rtt.smoothed());
        let (read, next) = (self.receiver.reassembly.read_position(), self.rcv_nxt());
        if self.receiver.window.on_read(now, read, next, round_trip)
            && self.state.may_receive_data()
        {
            let left = self.receiver.window_left();
            let has_room = left >= self.peer_segments.window_step();
            self.acking.request_for_read(has_room);
        }
    }

    /// Bytes that can be read now.
    pub fn readable(&self) -> usize {
        self.receiver.reassembly.readable()
    }

    /// True when the peer's stream ended and all of it was read.
    pub fn is_read_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Ends our stream: a FIN follows what was written. Reading goes on (half-close). Idempotent.
    pub fn finish(&mut self, _now: Instant) {
        if self.state == State::Closed || self.queue.is_finished() {
            return;
        }
        self.queue.finish();
        self.state = self.state.after(Transition::Finish);
    }

    /// The application will not read any more: data that still arrives is answered with a reset
    /// (RFC 9293 §3.6.1), and FIN-WAIT-2 lasts only as long as configured.
    pub fn stop_reading(&mut self, now: Instant) {
        if !self.receiver.reading {
            return;
        }
        self.receiver.reading = false;
        let unread =
            self.receiver.reassembly.readable() > 0 || self.receiver.reassembly.blocked() > 0;
        self.receiver.reassembly.discard();
        if unread && self.state.is_synchronized() && self.state != State::TimeWait {
            // Data that will never be read: the peer must know that it was lost (RFC 2525 §2.17).
            self.end_with_reset(CloseReason::Aborted);
        } else if self.state == State::FinWait2 {
            self.timers.set(Timer::Lifetime, now + self.config.fin_wait);
        }
    }

    /// Ends the connection because the peer cannot be reached: a hard error of RFC 1122 §4.2.3.9.
    ///
    /// Deviation: nothing is checked here, since a carrier sees no more of the segment than its
    /// addresses. It is for the carrier to say this only where nobody can forge it, or where a
    /// forged reset would do as much: before the handshake (RFC 5927 §4.1).
    pub fn handle_unreachable(&mut self, _now: Instant) {
        match self.state {
            State::Closed | State::TimeWait => {}
            _ => self.end(CloseReason::Unreachable),
        }
    }

    /// Ends the connection with a reset.
    pub fn abort(&mut self, _now: Instant) {
        match self.state {
            State::Closed => {}
            State::SynSent | State::TimeWait => self.end(CloseReason::Aborted),
            _ => self.end_with_reset(CloseReason::Aborted),
        }
    }
}
