//! Segments without payload of their own: acknowledgements, reports with their lists, and what the peer is told about
//! our sending; each is accounted for and traced.

use core::time::Duration;

use tack_base::{Instant, Rate};
use tack_wire::tack::{Lists, ReportKind, Sync};
use tack_wire::{Ecn, Flags, Header, SeqNum, TackOption};

use super::Connection;
use super::output::{append, single};
use super::timers::Timer;
use crate::ack::policy::{AckReason, Carried, ReportContext};
use crate::recv::duplicates::Reports;
use crate::trace::{AckSent, Traced};
use crate::transmit::Batch;

/// Longest data field of a report, bytes.
const MAX_LISTS: usize = 1400;

impl Connection {
    /// The acknowledgement policy's report, where it makes one.
    fn report(
        &mut self,
        now: Instant,
        reason: AckReason,
        lists: &mut [u8],
    ) -> Option<(TackOption, usize)> {
        let context = ReportContext {
            now,
            reason,
            received_to: self.reassembly.next(),
            ahead: self.reassembly.ahead(),
        };
        self.policy.report(&context, lists)
    }

    pub(super) fn emit_pure_ack(
        &mut self,
        now: Instant,
        batch: &mut Batch<'_>,
    ) -> (usize, usize, Ecn) {
        let reason = self.ack_pending.unwrap_or(AckReason::Event);
        let flags = Flags::ACK.with(self.ecn.flags(false));
        let mut header = self.header(now, flags);
        let mut lists = [0; MAX_LISTS];
        // The option may take all of the option area: the rest of a full segment is for the lists.
        let room = usize::from(self.mtu.mss())
            .saturating_sub(40)
            .clamp(4, MAX_LISTS);
        // All lists together are not longer than the payload that came: nobody's traffic can be multiplied here.
        let room = room.min(self.unanswered.max(4));
        let mut len = 0;
        if let Some((option, listed)) = self.report(now, reason, &mut lists[..room]) {
            len = listed;
            self.unanswered = self.unanswered.saturating_sub(len);
            header.options.tack = Some(option);
            // They are taken up before the policy gave the peer up: a report leaves no room.
            header.options.timestamps = None;
            if len > 0 {
                // Should the option get lost on the way, the lists must not pass for data: they come in the place of
                // bytes that the peer has acknowledged.
                header.seq = SeqNum::at(self.iss, self.snd_una) - len as u32;
            }
            self.reports = Reports::default();
        } else if self.handshake.sack {
            let capacity = header.options.sack_capacity();
            header.options.sack = self
                .reports
                .take(self.reassembly.ahead(), self.irs, capacity);
        } else {
            self.reports = Reports::default();
        }
        self.on_ack_left(now, Carried::Alone);
        self.count_ack(&header, reason, len);
        self.trace_ack(now, &header, reason, &lists[..len]);
        let start = batch.buf.len();
        append(batch, &header, &lists[..len], &[]);
        (batch.buf.len() - start, 1, Ecn::NotEct)
    }

    fn trace_ack(&mut self, now: Instant, header: &Header, reason: AckReason, lists: &[u8]) {
        let (ack, above) = (self.rcv_nxt(), self.reassembly.ahead().positions());
        let window = u64::from(header.window) << self.receive_window.shift();
        self.trace.add(now, || {
            let (form, number, rate, period) = match &header.options.tack {
                Some(TackOption::Report(report)) => (
                    if report.kind == ReportKind::Tack {
                        "tack"
                    } else {
                        "iack"
                    },
                    Some(report.number),
                    report.rate.map(Rate::from_bytes_per_sec),
                    Some(Duration::from_micros(report.period.into())),
                ),
                Some(TackOption::Loss(report)) => ("iack", Some(report.number), None, None),
                _ if header.options.sack.is_empty() => ("ack", None, None, None),
                _ => ("sack", None, None, None),
            };
            let listed = Lists::parse(lists).ok();
            let sacked = header.options.sack.len();
            Traced::AckSent(AckSent {
                reason: reason.name(),
                form,
                number,
                ack,
                above,
                blocks: listed.map_or(sacked, |lists| lists.blocks().count()) as u16,
                gaps: listed.map_or(0, |lists| lists.gaps().count()) as u16,
                rate,
                period,
                window,
            })
        });
    }

    /// Tells the peer what it needs to know about our sending.
    pub(super) fn emit_sync(
        &mut self,
        now: Instant,
        sync: Sync,
        batch: &mut Batch<'_>,
    ) -> (usize, usize, Ecn) {
        let flags = Flags::ACK.with(self.ecn.flags(false));
        let mut header = self.header(now, flags);
        header.options.tack = Some(TackOption::Sync(sync));
        self.on_ack_left(now, Carried::OnSync);
        self.counters.syncs += 1;
        self.trace.add(now, || Traced::SyncSent {
            min_rtt: Duration::from_micros(sync.rtt_min.into()),
            ack_loss_rate: f64::from(sync.ack_loss_rate) / 65_536.0,
            startup: sync.startup,
        });
        single(batch, &header, Ecn::NotEct)
    }

    fn count_ack(&mut self, header: &Header, reason: AckReason, listed: usize) {
        let counters = &mut self.counters;
        counters.acks += 1;
        counters.ack_bytes += (header.encoded_len() + listed) as u64;
        let periodic = matches!(
            header.options.tack,
            Some(TackOption::Report(report)) if report.kind == ReportKind::Tack
        );
        counters.acks_by_timer += u64::from(reason == AckReason::Timer);
        match reason {
            AckReason::Loss | AckReason::Threshold | AckReason::Timer if periodic => {
                counters.acks_tack += 1
            }
            AckReason::Threshold | AckReason::Timer => counters.acks_delayed += 1,
            AckReason::Loss => counters.acks_loss += 1,
            AckReason::Window => counters.acks_window += 1,
            AckReason::Frequency => counters.acks_sync += 1,
            AckReason::Event => counters.acks_event += 1,
        }
    }

    /// A segment left that acknowledges everything received in order.
    pub(super) fn on_ack_left(&mut self, now: Instant, carried: Carried) {
        self.ack_pending = None;
        self.timers.stop(Timer::DelayedAck);
        self.last_ack_sent = self.rcv_nxt();
        if let Some(at) = self.policy.on_ack_sent(now, carried) {
            self.timers.set(Timer::DelayedAck, at);
        }
    }
}
