//! Serving packets at a constant rate, exactly.

use tack_base::{Instant, Rate};

/// One packet's turn at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// When its first bit is served.
    pub begin: Instant,
    /// When its last bit has left, rounded up to a nanosecond.
    pub end: Instant,
    /// What the server must remember: its own meaning for each kind of server.
    pub(super) state: (u64, u64),
}

/// A server of constant rate. The fraction of a nanosecond that a packet ends after is carried to
/// the next one: a link that rounded each packet would be too fast or too slow by up to a
/// nanosecond a packet.
#[derive(Clone, Debug)]
pub struct RateServer {
    /// Bits per second.
    rate: u64,
    /// When the server is free: `busy_until` ns and `fraction / rate` of the next one.
    busy_until: u64,
    fraction: u64,
}

impl RateServer {
    /// An idle server.
    ///
    /// # Panics
    /// At rate zero: nothing would ever leave.
    pub fn new(rate: Rate) -> Self {
        assert!(!rate.is_zero(), "a link needs a rate");
        Self {
            rate: rate.bits_per_sec(),
            busy_until: 0,
            fraction: 0,
        }
    }

    /// The turn of a packet of `len` bytes that comes at `now`.
    #[inline]
    pub fn preview(&self, now: Instant, len: usize) -> Service {
        let now_ns = now.as_nanos();
        let (start, fraction) = if now_ns > self.busy_until {
            (now_ns, 0)
        } else {
            (self.busy_until, self.fraction)
        };
        // bits · 10^9 stays far below 2^64 for an IP packet; the fraction is below the rate.
        let work = len as u128 * 8_000_000_000 + u128::from(fraction);
        let (whole, rest) = match u64::try_from(work) {
            Ok(work) => (work / self.rate, work % self.rate),
            Err(_) => (
                (work / u128::from(self.rate)) as u64,
                (work % u128::from(self.rate)) as u64,
            ),
        };
        let end = start + whole;
        Service {
            // The first bit goes once the fraction is over.
            begin: Instant::from_nanos(start + u64::from(fraction > 0)),
            end: Instant::from_nanos(end + u64::from(rest > 0)),
            state: (end, rest),
        }
    }

    /// The previewed packet is served.
    #[inline]
    pub fn commit(&mut self, service: &Service) {
        (self.busy_until, self.fraction) = service.state;
    }
}
