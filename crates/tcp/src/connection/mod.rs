//! One TCP connection.

use core::time::Duration;

use tack_base::Instant;
use tack_wire::{Ecn, Segment, SeqNum};

use crate::config::Config;
use crate::stats::Stats;
use crate::transmit::{Batch, Transmit};

/// Connection states (RFC 9293 §3.3.2). LISTEN lives in the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum State {
    /// No connection.
    Closed,
    /// Our SYN is out.
    SynSent,
    /// A SYN came, ours is out, its acknowledgement is awaited.
    SynReceived,
    /// Data flows both ways.
    Established,
    /// Our FIN is out, not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged, the peer's is awaited.
    FinWait2,
    /// The peer's FIN came, ours is still to be sent.
    CloseWait,
    /// Both FINs crossed, ours is not acknowledged.
    Closing,
    /// The peer's FIN came first, ours awaits its acknowledgement.
    LastAck,
    /// Both sides are done; late segments die here.
    TimeWait,
}

/// Something the application may want to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// Bytes (or the end of the stream) can be read. Told when that becomes true.
    Readable,
    /// Bytes can be written again after a write took less than was offered.
    Writable,
    /// Everything written before `finish`, and the FIN, was acknowledged.
    Finished,
    /// The connection ended. The last event.
    Closed(CloseReason),
}

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum CloseReason {
    /// Both streams ended and were acknowledged.
    Graceful,
    /// The peer reset it.
    Reset,
    /// The peer answered the SYN with a reset.
    Refused,
    /// No acknowledgement within the user timeout, the SYN retries, or the keep-alive probes.
    TimedOut,
    /// This side aborted it.
    Aborted,
}

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
    #[error("the connection ended: {0:?}")]
    Closed(CloseReason),
}

/// Why bytes cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing here yet; [`Event::Readable`] will tell.
    #[error("nothing to read yet")]
    Blocked,
    /// The connection ended before the peer's FIN.
    #[error("the connection ended: {0:?}")]
    Closed(CloseReason),
}

/// One TCP connection: a state machine without clock or socket.
#[derive(Debug)]
pub struct Connection {}

#[allow(unused_variables, missing_docs, reason = "being written")]
impl Connection {
    /// Opens a connection actively: a SYN will leave at the next `poll_transmit`.
    pub fn connect(config: &Config, local_port: u16, remote_port: u16, iss: SeqNum, seed: u64, now: Instant) -> Self {
        unimplemented!()
    }
    /// Answers a SYN that arrived for a listener: a SYN-ACK will leave.
    pub fn accept(config: &Config, syn: &Segment<'_>, ecn: Ecn, iss: SeqNum, seed: u64, now: Instant) -> Self {
        unimplemented!()
    }
    /// A segment for this connection arrived at `arrived` (a kernel timestamp, say) and is processed `now`.
    pub fn handle_segment(&mut self, now: Instant, arrived: Instant, segment: &Segment<'_>, ecn: Ecn) {
        unimplemented!()
    }
    /// Runs every timer whose deadline is not after `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        unimplemented!()
    }
    /// The path reported (ICMP "packet too big") that IP packets longer than `mtu` bytes do not fit.
    pub fn handle_path_mtu(&mut self, now: Instant, mtu: u16) {
        unimplemented!()
    }
    /// Writes the next segments to leave into `batch`, if there are any. Call until it says `None`.
    pub fn poll_transmit(&mut self, now: Instant, batch: &mut Batch<'_>) -> Option<Transmit> {
        unimplemented!()
    }
    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        unimplemented!()
    }
    /// When to call next: `handle_timeout`, then `poll_transmit` (a pacing deadline counts too).
    pub fn poll_timeout(&self) -> Option<Instant> {
        unimplemented!()
    }
    /// Queues bytes; returns how many were taken (at least one).
    pub fn write(&mut self, now: Instant, data: &[u8]) -> Result<usize, WriteError> {
        unimplemented!()
    }
    /// Moves received bytes into `buf`; `Ok(0)` is the end of the peer's stream.
    pub fn read(&mut self, now: Instant, buf: &mut [u8]) -> Result<usize, ReadError> {
        unimplemented!()
    }
    /// The readable bytes in place, in at most two slices; pair with [`Connection::consume`].
    pub fn peek(&self) -> (&[u8], &[u8]) {
        unimplemented!()
    }
    /// Drops `len` bytes (not more than [`Connection::peek`] showed) from the front of what can be read.
    pub fn consume(&mut self, now: Instant, len: usize) {
        unimplemented!()
    }
    /// Bytes that can be read now.
    pub fn readable(&self) -> usize {
        unimplemented!()
    }
    /// True when the peer's stream ended and all of it was read.
    pub fn is_read_finished(&self) -> bool {
        unimplemented!()
    }
    /// Free space of the send buffer, bytes.
    pub fn writable(&self) -> usize {
        unimplemented!()
    }
    /// Ends our stream: a FIN follows what was written. Reading goes on (half-close). Idempotent.
    pub fn finish(&mut self, now: Instant) {
        unimplemented!()
    }
    /// The application will not read any more: data that still arrives is answered with a reset (RFC 9293 §3.6.1).
    pub fn stop_reading(&mut self, now: Instant) {
        unimplemented!()
    }
    /// Ends the connection with a reset.
    pub fn abort(&mut self, now: Instant) {
        unimplemented!()
    }
    pub fn state(&self) -> State {
        unimplemented!()
    }
    /// How the connection ended, once it has.
    pub fn close_reason(&self) -> Option<CloseReason> {
        unimplemented!()
    }
    /// Counters and estimates.
    pub fn stats(&self, now: Instant) -> Stats {
        unimplemented!()
    }
    /// Bytes received above a hole: here, but not yet deliverable.
    pub fn blocked_bytes(&self) -> u64 {
        unimplemented!()
    }
    /// Bytes of heap that this connection's buffers hold.
    pub fn buffer_memory(&self) -> usize {
        unimplemented!()
    }
    /// Smallest and latest RTT, for reports.
    pub fn min_rtt(&self) -> Option<Duration> {
        unimplemented!()
    }
    /// True when [`Connection::poll_event`] has something to say.
    pub fn has_events(&self) -> bool {
        unimplemented!()
    }
    /// May this SYN open a new incarnation of the connection, which is in TIME-WAIT (RFC 9293 §3.10.7.4, RFC 6191)? If so,
    /// the initial sequence number of the new incarnation must not come before the one returned.
    pub fn reopen(&self, syn: &Segment<'_>) -> Option<SeqNum> {
        unimplemented!()
    }
}
