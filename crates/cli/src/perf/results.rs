//! What one connection of a test counted.

use serde::{Deserialize, Serialize};
use tack::Stats;

use super::latency::{Latency, Times};
use crate::net::TransportFigures;

/// The state of a connection at one moment, counted from its beginning.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) stream: usize,
    pub(crate) received: u64,
    /// Bytes received before the results begin, once that is known.
    pub(crate) received_before: Option<u64>,
    pub(crate) stats: Stats,
    /// In a UDP test.
    pub(crate) datagrams: Option<Datagrams>,
    /// Of transactions so far, where this side is the one that asks.
    pub(crate) times: Option<Times>,
}

/// One side of a finished connection, without what was omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FlowResult {
    pub(crate) stream: usize,
    /// Bytes given to the connection.
    pub(crate) sent: u64,
    /// Seconds that took.
    pub(crate) send_seconds: f64,
    /// Bytes read.
    pub(crate) received: u64,
    /// Seconds from the test's beginning to the end of the peer's data.
    pub(crate) receive_seconds: f64,
    pub(crate) transport: TransportFigures,
    /// In a UDP test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) datagrams: Option<Datagrams>,
    /// Where this side sent requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
    #[serde(skip)]
    pub(crate) times: Option<Times>,
}

/// Datagrams of one stream at one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Datagrams {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Gaps in the sequence of those received.
    pub(crate) lost: u64,
    /// Those that came after a later one.
    pub(crate) out_of_order: u64,
    /// Smoothed variation of the transit time (RFC 3550 §6.4.1), microseconds.
    pub(crate) jitter_us: f64,
}

impl Datagrams {
    /// What was added after `before`; the jitter is the present one.
    pub(crate) fn since(self, before: &Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(before.sent),
            received: self.received.saturating_sub(before.received),
            lost: self.lost.saturating_sub(before.lost),
            out_of_order: self.out_of_order.saturating_sub(before.out_of_order),
            jitter_us: self.jitter_us,
        }
    }
}
