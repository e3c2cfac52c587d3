//! A bounded drop-tail queue of packets whose service begins at a known instant.

use std::collections::VecDeque;

use tack_base::Instant;

/// Most that a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// So many packets.
    Packets(usize),
    /// So many bytes of IP packets.
    Bytes(u64),
}

/// The queue takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Packets that wait, by the instant at which each begins to be served.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    bound: Bound,
    waiting: VecDeque<(Instant, u32)>,
    bytes: u64,
    peak: (usize, u64),
}

impl Queue {
    pub(super) fn new(bound: Bound) -> Self {
        Self {
            bound,
            waiting: VecDeque::new(),
            bytes: 0,
            peak: (0, 0),
        }
    }

    /// Lets go of the packets whose service has begun at `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(&(begin, len)) = self.waiting.front() {
            if begin > now {
                break;
            }
            self.bytes -= u64::from(len);
            self.waiting.pop_front();
        }
    }

    /// Takes a packet whose service begins at `begin`; one that is served at once never waits.
    #[inline]
    pub(super) fn push(&mut self, now: Instant, begin: Instant, len: usize) -> Result<(), Full> {
        if begin <= now {
            return Ok(());
        }
        if !self.fits(self.waiting.len(), self.bytes, len) {
            return Err(Full);
        }
        self.waiting.push_back((begin, len as u32));
        self.bytes += len as u64;
        self.peak = (
            self.peak.0.max(self.waiting.len()),
            self.peak.1.max(self.bytes),
        );
        Ok(())
    }

    fn fits(&self, packets: usize, bytes: u64, len: usize) -> bool {
        match self.bound {
            Bound::Packets(most) => packets < most,
            Bound::Bytes(most) => bytes + len as u64 <= most,
        }
    }

    pub(super) fn backlog(&self) -> (usize, u64) {
        (self.waiting.len(), self.bytes)
    }

    pub(super) fn peak(&self) -> (usize, u64) {
        self.peak
    }

    /// When a packet of `len` bytes fits behind fewer than `most` others, if nothing else comes;
    /// `None` when it never fits, being larger than the whole bound.
    pub(super) fn room_at(&self, now: Instant, len: usize, most: usize) -> Option<Instant> {
        let (mut packets, mut bytes, mut at) = (self.waiting.len(), self.bytes, now);
        let mut leaving = self.waiting.iter();
        while packets >= most || !self.fits(packets, bytes, len) {
            let &(begin, len) = leaving.next()?;
            packets -= 1;
            bytes -= u64::from(len);
            at = begin;
        }
        Some(at)
    }
}
