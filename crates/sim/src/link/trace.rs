//! Links that replay a recorded trace of delivery opportunities, in Mahimahi's file format.
//!
//! Each line of a trace is a whole number of milliseconds; at that instant the link can deliver
//! 1,500 bytes. Equal lines add up. After the last line the trace begins again, the last instant
//! being the new zero. An opportunity that finds nothing waiting is lost, and so is what a last
//! packet leaves of one; a packet may take what is left of one opportunity and be finished by later
//! ones. A packet that comes exactly at an opportunity is too late for it.

use std::fmt;
use std::sync::Arc;

use tack_base::{Instant, Rate};

use super::server::Service;

/// Bytes of one delivery opportunity.
const OPPORTUNITY: u64 = 1_500;

/// Delivery opportunities, in milliseconds, ascending; shared between runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace(Arc<[u64]>);

/// Why a text is not a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// No opportunity at all.
    Empty,
    /// A line that is not a whole number.
    Number {
        /// Line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A line smaller than the one before it.
    Order {
        /// Line, from 1.
        line: usize,
    },
    /// Every opportunity is at zero: the trace would never end.
    Zero,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "the trace has no line; expected a whole number of milliseconds in each line",
            ),
            Self::Number { line, text } => {
                write!(
                    f,
                    "line {line} of the trace: {text:?} is not a whole number of milliseconds"
                )
            }
            Self::Order { line } => {
                write!(
                    f,
                    "line {line} of the trace is earlier than the line before it; they must not go back"
                )
            }
            Self::Zero => f.write_str(
                "the last line of the trace must be above zero: it is the trace's length",
            ),
        }
    }
}

impl std::error::Error for TraceError {}

impl Trace {
    /// Reads a trace file's text. Empty lines are skipped.
    ///
    /// # Errors
    /// [`TraceError`] names the line.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = line.trim();
            if number.is_empty() {
                continue;
            }
            let at: u64 = number
                .parse()
                // A million years is enough; the bound keeps nanoseconds within 64 bits.
                .ok()
                .filter(|at| *at < u64::MAX / 2_000_000_000)
                .ok_or_else(|| TraceError::Number {
                    line: index + 1,
                    text: number.into(),
                })?;
            if times.last().is_some_and(|last| *last > at) {
                return Err(TraceError::Order { line: index + 1 });
            }
            times.push(at);
        }
        match times.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::Zero),
            Some(_) => Ok(Self(times.into())),
        }
    }

    /// Milliseconds after which the trace begins again.
    pub fn period_ms(&self) -> u64 {
        self.0[self.0.len() - 1]
    }

    /// Bytes of all opportunities over the length of the trace.
    pub fn average_rate(&self) -> Rate {
        let bits = self.0.len() as u128 * u128::from(OPPORTUNITY) * 8 * 1_000;
        Rate::from_bits_per_sec((bits / u128::from(self.period_ms())) as u64)
    }

    /// Instant of opportunity `index`, counted over all repetitions.
    fn time_of(&self, index: u64) -> Instant {
        let len = self.0.len() as u64;
        let ms = index / len * self.period_ms() + self.0[(index % len) as usize];
        Instant::from_millis(ms)
    }

    /// The first opportunity after `now`.
    fn first_after(&self, now: Instant) -> u64 {
        let ms = now.as_millis();
        let round = ms / self.period_ms();
        let within = ms % self.period_ms();
        let len = self.0.len() as u64;
        // Opportunities at the trace's last instant belong to the end of their own round.
        let mut index = round * len + self.0.partition_point(|at| *at <= within) as u64;
        // Opportunities of the previous round at this very instant, or of time zero of this one,
        // are behind by now.
        while self.time_of(index) <= now {
            index += 1;
        }
        index
    }
}

/// A server that delivers at a trace's opportunities.
#[derive(Clone, Debug)]
pub struct TraceServer {
    trace: Trace,
    /// The opportunity in use, and what is left of it.
    index: u64,
    left: u64,
}

impl TraceServer {
    /// An idle server.
    pub fn new(trace: Trace) -> Self {
        Self {
            trace,
            index: 0,
            left: OPPORTUNITY,
        }
    }

    /// The turn of a packet of `len` bytes that comes at `now`.
    pub fn preview(&self, now: Instant, len: usize) -> Service {
        // The opportunity in use is still to come while packets wait for it: then this one waits as
        // well.
        let (mut index, mut left) = if self.trace.time_of(self.index) > now {
            (self.index, self.left)
        } else {
            (self.trace.first_after(now), OPPORTUNITY)
        };
        if left == 0 {
            (index, left) = (index + 1, OPPORTUNITY);
        }
        let begin = self.trace.time_of(index);
        let mut rest = len as u64;
        loop {
            let part = rest.min(left);
            (rest, left) = (rest - part, left - part);
            if rest == 0 {
                break;
            }
            (index, left) = (index + 1, OPPORTUNITY);
        }
        Service {
            begin,
            end: self.trace.time_of(index),
            state: (index, left),
        }
    }

    /// The previewed packet is served.
    pub fn commit(&mut self, service: &Service) {
        (self.index, self.left) = service.state;
    }
}
