//! What a connection holds of the heap, how it gives back what it does not need, and what it
//! forgoes when memory is scarce.

use core::time::Duration;

use tack_base::Instant;

use super::Connection;
use super::pressure::Pressure;
use super::timers::Timer;

/// A buffer, each way, that a connection keeps whatever the pressure: with less it would hardly
/// move.
const LEAST_BUFFER: usize = 16 << 10;
/// Send buffer while memory is scarce: the least that may be written ahead of what was sent.
const SCARCE_SEND_BUFFER: usize = 256 << 10;
/// A connection that neither sent nor received for so long gives back what it does not need.
const IDLE: Duration = Duration::from_secs(1);
/// Less than that is not worth a timer, bytes.
const WORTHWHILE: usize = 8 << 10;

impl Connection {
    /// Bytes of heap that this connection holds, itself included.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.cc)
            + self.recovery.memory()
            + self.acking.memory()
            + self.feedback.memory()
            + self.buffer_memory()
            + self.receiver.reassembly.records_memory()
            + self.log.memory()
    }

    /// Takes notice of how scarce memory is.
    #[inline]
    pub(crate) fn set_pressure(&mut self, pressure: Pressure) {
        if pressure == self.memory.pressure {
            return;
        }
        self.memory.pressure = pressure;
        let cap = match pressure {
            Pressure::None => self.config.receive_buffer,
            Pressure::Scarce => self.receiver.window.buffer(),
            Pressure::Exhausted => LEAST_BUFFER.min(self.config.receive_buffer),
        };
        self.receiver.window.set_cap(cap);
    }

    /// The endpoint's memory was used up when it looked last.
    pub(super) fn is_out_of_memory(&self) -> bool {
        self.memory.pressure == Pressure::Exhausted
    }

    /// Most bytes that may be queued.
    #[inline]
    pub(super) fn send_buffer(&self) -> usize {
        let most = match self.memory.pressure {
            Pressure::None => usize::MAX,
            Pressure::Scarce => SCARCE_SEND_BUFFER,
            Pressure::Exhausted => LEAST_BUFFER,
        };
        self.config.send_buffer.min(most)
    }

    /// Frees what can be freed at once, at the cost of having it sent again (RFC 2018 §8).
    pub(crate) fn prune(&mut self) {
        if self.receiver.reassembly.prune() {
            self.telemetry.counters.pruned += 1;
        }
        self.trim();
    }

    /// Gives back the heap that holds nothing: buffers and logs that grew and drained.
    fn trim(&mut self) {
        self.queue.trim();
        self.receiver.reassembly.trim();
        self.log.free();
        self.feedback.trim();
        self.memory.trimmed_to = self.memory();
    }

    /// Sees to it that memory goes back once the connection is idle; it holds `held` bytes now.
    #[inline]
    pub(crate) fn watch_idleness(&mut self, now: Instant, held: usize) {
        if !self.timers.is_armed(Timer::Idle) && held > self.memory.trimmed_to + WORTHWHILE {
            self.timers.set(Timer::Idle, now + IDLE);
        }
    }

    pub(super) fn on_idle_timeout(&mut self, now: Instant) {
        if now.saturating_since(self.keep_alive.last_heard().max(self.pacer.last_sent_at())) >= IDLE
        {
            self.trim();
        }
    }

    /// Everything was acknowledged, and nothing will be sent any more.
    pub(super) fn free_sender(&mut self) {
        self.queue.clear();
        // The peer's reports go on naming the numbers of what it got.
        self.log.free();
    }
}
