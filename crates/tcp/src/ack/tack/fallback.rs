//! The receiver on a path that takes stamps off: plain acknowledgements while they do not come,
//! reports when they do again.

use core::time::Duration;

use tack_base::{Instant, StreamOffset};
use tack_wire::tack::DataStamp;

use super::TackPolicy;
use super::arrival_rate::ArrivalMeter;
use super::blocks::Blocks;
use super::gaps::Arrival;
use super::one_way::OneWayDelays;
use super::path::Return;
use super::report_size::ReportSize;
use crate::ack::delayed::DelayedAck;
use crate::ack::policy::{AckDecision, AckPolicy, AckReason, DataArrival, SegmentOrder};

/// Longest time over which segments without stamps are waited for, whatever RTTmin the peer said.
const LONGEST_SPAN: Duration = Duration::from_secs(1);

impl TackPolicy {
    /// Takes number and departure of a segment.
    pub(super) fn take_stamp(&mut self, arrival: &DataArrival, stamp: DataStamp) -> Arrival {
        self.delays.on_segment(arrival.arrived, stamp.departure);
        if arrival.order != SegmentOrder::Duplicate {
            self.meter
                .on_data(arrival.arrived, stamp.departure, arrival.len);
        }
        self.gaps.on_number(
            arrival.arrived,
            stamp.number,
            arrival.start..arrival.start + arrival.len,
            arrival.peer_mss,
            arrival.window,
        )
    }

    /// A segment came without a stamp.
    pub(super) fn count_undated(&mut self, arrival: &DataArrival) {
        if arrival.order != SegmentOrder::Duplicate {
            self.meter.on_undated(arrival.len);
        }
    }

    /// What arrived last has no number, so no report can leave. Where the path takes stamps off
    /// some segments only, the next one with a stamp is worth half an interval: until then, if that
    /// is later than `now`.
    pub(super) fn number_awaited_until(&self, now: Instant) -> Option<Instant> {
        if self.unnumbered_to == StreamOffset::SYN
            || !self.absence.is_usual()
            || self.window_used.is_some()
        {
            return None;
        }
        let longest = self.schedule.params.timer;
        let wait = self.schedule.time_period().min(longest) / 2;
        // No report comes later than the contract says.
        let latest = self.schedule.pending_since()? + longest;
        let until = (self.unnumbered_since + wait).min(latest);
        (until > now).then_some(until)
    }

    /// Time over which a run shows what the path does.
    pub(super) fn span(&self) -> Duration {
        self.schedule.rtt_min().min(LONGEST_SPAN)
    }

    /// Stamps do not come any more: plain acknowledgements from here on, with SACK, until they do.
    pub(super) fn fall_back(&mut self, arrival: &DataArrival) -> AckDecision {
        let mut fallback = DelayedAck::new(2, self.schedule.params.timer);
        let _ = fallback.on_data(arrival);
        self.fallback = Some(fallback);
        self.again = Return::default();
        self.absence.try_again();
        self.loss_due = false;
        // There will be no report for it to wait for.
        AckDecision::Now(AckReason::Event)
    }

    /// Data within a fallback. Stamps that come again are taken down from the first one on, as if
    /// the connection began with it: what left before may have no numbers, and is the sender's to
    /// repair. `highest` ends the data received before.
    pub(super) fn on_data_in_fallback(
        &mut self,
        arrival: &DataArrival,
        highest: StreamOffset,
    ) -> AckDecision {
        if let Some(stamp) = arrival.stamp {
            if self.again.is_empty() {
                self.gaps.restart(stamp.number, highest);
                self.delays = OneWayDelays::new(self.schedule.params.timing);
                self.meter = ArrivalMeter::default();
            }
            self.take_stamp(arrival, stamp);
            // The row that ended TACK was over with the fallback: only later ones count.
            self.absence.on_option();
            if self.again.on_option(arrival.arrived, self.span()) {
                self.resume(arrival);
                return AckDecision::Now(AckReason::Event);
            }
        } else {
            self.again.on_bare();
            self.absence.on_bare(arrival.arrived, self.span());
            self.count_undated(arrival);
        }
        match &mut self.fallback {
            Some(fallback) => fallback.on_data(arrival),
            None => AckDecision::Nothing,
        }
    }

    /// Reports from here on.
    pub(super) fn resume(&mut self, arrival: &DataArrival) {
        self.fallback = None;
        self.absence.try_again();
        self.unnumbered_to = StreamOffset::SYN;
        self.schedule.restart(arrival);
        self.window_closing = false;
        self.blocks = Blocks::default();
        self.report_size = ReportSize::default();
    }
}
