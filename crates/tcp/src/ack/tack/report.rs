//! What a report says: number, timing, delivery rate, and why it leaves.

use core::time::Duration;

use tack_base::{Instant, Rate, StreamOffset};
use tack_wire::TackOption;
use tack_wire::tack::{LossReport, Report, ReportKind};

use super::TackPolicy;
use crate::ack::policy::{AckReason, ReportContext};
use crate::send::packet_number::PacketNumber;

impl TackPolicy {
    /// The report for an acknowledgement that leaves now, and how many bytes of `lists` it filled.
    pub(super) fn write_report(
        &mut self,
        context: &ReportContext<'_>,
        lists: &mut [u8],
    ) -> Option<(TackOption, usize)> {
        if self.fallback.is_some() {
            return None;
        }
        let now = context.now;
        if self.unnumbered_to > StreamOffset::SYN {
            // A report says under which numbers arrived what it acknowledges. Of this it is not
            // known.
            self.note_report(now);
            return None;
        }
        let len = self.write_lists(context, lists);
        let number = self.next_report;
        self.next_report = number.wrapping_add(1);
        let micros = |duration: Duration| u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
        let loss_rate = (self.gaps.loss_rate() * 65_535.0) as u16;
        let largest = self.gaps.largest().map_or(u32::MAX, PacketNumber::low);
        let largest_delay = micros(now.saturating_since(self.gaps.largest_at()));
        let above = u32::try_from(context.ahead.positions()).unwrap_or(u32::MAX);
        let newest_gap = self.gaps.newest_lost();
        if context.reason == AckReason::Loss
            && core::mem::take(&mut self.loss_due)
            && let Some((before, after)) = newest_gap
        {
            self.schedule.on_loss_report(now);
            // What arrived since the last periodic one stays pending: the loss report carries no
            // timing and no rate.
            return Some((
                TackOption::Loss(LossReport {
                    lists: len > 0,
                    loss_rate,
                    number,
                    largest,
                    largest_delay,
                    above,
                    before_gap: before.low(),
                    after_gap: after.low(),
                }),
                len,
            ));
        }
        self.note_report(now);
        let measured = self.meter.on_report(self.schedule.rtt_min());
        let sustained = measured.map(|rate| rate.sustained);
        let measured = measured.map(|rate| rate.arrived);
        self.schedule.on_rate(now, measured, sustained);
        let period = self.schedule.announce_period(&self.gaps);
        let report = Report {
            kind: match context.reason {
                AckReason::Threshold | AckReason::Timer | AckReason::Loss => ReportKind::Tack,
                AckReason::Window => ReportKind::Window,
                AckReason::Event => ReportKind::Event,
                AckReason::Frequency => ReportKind::Frequency,
            },
            lists: len > 0,
            repeated: self.repeated,
            sync_echo: self.sync_number.unwrap_or(0) as u8 & 0xf,
            loss_rate,
            number,
            largest,
            largest_delay,
            timing: self.delays.take_echo(now),
            rate: measured.map(Rate::bytes_per_sec),
            above,
            period: micros(period),
        };
        Some((TackOption::Report(report), len))
    }

    /// An acknowledgement of all that is pending leaves, as a report or without one.
    fn note_report(&mut self, now: Instant) {
        self.loss_due = false;
        self.schedule.on_report(now, &self.gaps);
    }
}
