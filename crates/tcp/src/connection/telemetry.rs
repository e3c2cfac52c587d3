//! What a connection shows of itself: counters, what limited it, and its trace. Nothing depends on
//! it.

use tack_base::Instant;

use super::limits::Limits;
use crate::stats::Stats;
use crate::trace::Trace;

/// For statistics and traces.
#[derive(Debug)]
pub(super) struct Telemetry {
    pub(super) counters: Stats,
    pub(super) limits: Limits,
    pub(super) trace: Trace,
}

impl Telemetry {
    /// Nothing happened before `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            counters: Stats::default(),
            limits: Limits::new(now),
            trace: Trace::default(),
        }
    }
}
