//! Tail loss probe (RFC 8985 §7): when acknowledgements stop, one segment asks for another.

use core::ops::Range;
use core::time::Duration;

use tack_base::{Instant, StreamOffset};

/// PTO before there is an RTT sample.
const INITIAL: Duration = Duration::from_secs(1);

/// A probe in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    /// Where its segment starts.
    start: StreamOffset,
    /// SND.NXT when the probe left: an acknowledgement of it ends the probe.
    pub(crate) end: StreamOffset,
    /// When it left, if it repeated the last segment instead of sending new data.
    pub(crate) repeated_at: Option<Instant>,
}

/// Tail loss probing of one connection: at most one probe at a time.
#[derive(Debug, Default)]
pub(crate) struct TailLossProbe {
    probe: Option<Probe>,
}

/// What an acknowledgement means for the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProbeOutcome {
    /// Nothing to conclude.
    None,
    /// The probe repaired a loss that must be answered for (RFC 8985 §7.4).
    RepairedLoss,
}

impl TailLossProbe {
    /// The probe timeout from now (RFC 8985 §7.2). A lone segment may have its acknowledgement held
    /// back for `peer_delay` (WCDelAckT).
    pub(crate) fn timeout(
        smoothed: Option<Duration>,
        single_segment: bool,
        peer_delay: Duration,
    ) -> Duration {
        match smoothed {
            None => INITIAL,
            Some(smoothed) if single_segment => smoothed * 2 + peer_delay,
            Some(smoothed) => smoothed * 2,
        }
    }

    /// True while a probe is unanswered: the next step is the retransmission timer's.
    pub(crate) fn is_outstanding(&self) -> bool {
        self.probe.is_some()
    }

    /// A probe left, up to SND.NXT; `repeated_at` when it is not new data.
    pub(crate) fn on_probe(&mut self, range: Range<StreamOffset>, repeated_at: Option<Instant>) {
        self.probe = Some(Probe {
            start: range.start,
            end: range.end,
            repeated_at,
        });
    }

    /// When the unanswered probe left, if it is a retransmission.
    pub(crate) fn repeated_at(&self) -> Option<Instant> {
        self.probe.and_then(|probe| probe.repeated_at)
    }

    /// An acknowledgement up to `ack` arrived (RFC 8985 §7.4.2); `duplicate` where something starts
    /// that it reports to have arrived twice (DSACK), `plain` that it is a duplicate
    /// acknowledgement without any block.
    pub(crate) fn on_ack(
        &mut self,
        ack: StreamOffset,
        duplicate: Option<StreamOffset>,
        plain: bool,
    ) -> ProbeOutcome {
        let Some(probe) = self.probe else {
            return ProbeOutcome::None;
        };
        if ack < probe.end {
            return ProbeOutcome::None;
        }
        if probe.repeated_at.is_none() || duplicate.is_some_and(|start| start >= probe.start) {
            // New data, or original and probe both arrived: nothing was lost.
            self.probe = None;
            return ProbeOutcome::None;
        }
        if ack > probe.end {
            // What followed the probe arrived, and no duplicate was reported on the way: one copy
            // was lost.
            self.probe = None;
            return ProbeOutcome::RepairedLoss;
        }
        if plain {
            // Both copies arrived, and the peer knows no DSACK.
            self.probe = None;
        }
        ProbeOutcome::None
    }

    /// The retransmission timer took over, or the connection moved on.
    pub(crate) fn cancel(&mut self) {
        self.probe = None;
    }
}
