//! One direction of a link: a bounded queue in front of a server of fixed or recorded rate, then a
//! delay.
//!
//! A first-in first-out server needs no event of its own: when a packet comes, the instant at which
//! its last bit leaves is already certain. [`Bottleneck::enqueue`] computes it, and the queue is
//! kept as the list of packets whose service has not begun.

mod queue;
mod server;
mod trace;

use std::time::Duration;

use tack_base::{Instant, Rate};

pub use queue::{Bound, Full};
pub use server::{RateServer, Service};
pub use trace::{Trace, TraceError, TraceServer};

use queue::Queue;

/// How fast a direction serves.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkRate {
    /// At a constant rate.
    Fixed(Rate),
    /// At the delivery opportunities of a recorded trace.
    Trace(Trace),
}

impl LinkRate {
    /// The rate, averaged over the trace where there is one.
    pub fn average(&self) -> Rate {
        match self {
            Self::Fixed(rate) => *rate,
            Self::Trace(trace) => trace.average_rate(),
        }
    }
}

/// Settings of one direction's bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub struct BottleneckConfig {
    /// Service rate.
    pub rate: LinkRate,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Most that waits; the packet in service does not count.
    pub queue: Bound,
}

/// Queue, server and delay of one direction.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    queue: Queue,
    server: Server,
    delay: Duration,
}

#[derive(Clone, Debug)]
enum Server {
    Rate(RateServer),
    Trace(TraceServer),
}

impl Bottleneck {
    /// An idle bottleneck.
    pub fn new(config: &BottleneckConfig) -> Self {
        let server = match &config.rate {
            LinkRate::Fixed(rate) => Server::Rate(RateServer::new(*rate)),
            LinkRate::Trace(trace) => Server::Trace(TraceServer::new(trace.clone())),
        };
        Self {
            queue: Queue::new(config.queue),
            server,
            delay: config.delay,
        }
    }

    /// A packet of `len` bytes comes at `now` (not before the last call's): when its last bit
    /// arrives at the other end.
    ///
    /// # Errors
    /// [`Full`] when the queue takes no more: the packet is dropped (drop-tail).
    #[inline]
    pub fn enqueue(&mut self, now: Instant, len: usize) -> Result<Instant, Full> {
        self.queue.advance(now);
        let service = match &self.server {
            Server::Rate(server) => server.preview(now, len),
            Server::Trace(server) => server.preview(now, len),
        };
        self.queue.push(now, service.begin, len)?;
        match &mut self.server {
            Server::Rate(server) => server.commit(&service),
            Server::Trace(server) => server.commit(&service),
        }
        Ok(service.end + self.delay)
    }

    /// Packets and bytes that wait at `now`.
    pub fn backlog(&mut self, now: Instant) -> (usize, u64) {
        self.queue.advance(now);
        self.queue.backlog()
    }

    /// The longest the queue has been, packets and bytes.
    pub fn peak(&self) -> (usize, u64) {
        self.queue.peak()
    }

    /// When a packet of `len` bytes would be taken and find fewer than `most` packets waiting:
    /// `now`, or when enough have left.
    pub fn room_at(&mut self, now: Instant, len: usize, most: usize) -> Instant {
        self.queue.advance(now);
        let begin = match &self.server {
            Server::Rate(server) => server.preview(now, len).begin,
            Server::Trace(server) => server.preview(now, len).begin,
        };
        if begin <= now {
            now
        } else {
            self.queue.room_at(now, len, most).unwrap_or(begin)
        }
    }
}

#[cfg(test)]
mod tests;
