//! Segments without payload: acknowledgements, and what the peer has to know about our sending.
//! Each is counted and traced.

use core::time::Duration;

use tack_base::{Instant, Rate};
use tack_wire::tack::{Lists, ReportKind, Sync};
use tack_wire::{Ecn, Flags, Header, SeqNum, TackOption};

use super::Connection;
use super::acking::Received;
use super::output::{Filled, append, single};
use crate::ack::feedback::SenderState;
use crate::ack::policy::{AckReason, Carried};
use crate::stats::Stats;
use crate::trace::{AckSent, Traced};
use crate::transmit::Batch;

/// Longest data field of a report, bytes.
const MAX_LISTS: usize = 1400;

impl Connection {
    /// A segment left that acknowledges everything received in order.
    pub(super) fn on_ack_sent(&mut self, now: Instant, carried: Carried) {
        let rcv_nxt = self.rcv_nxt();
        self.acking.on_sent(now, carried, rcv_nxt, &mut self.timers);
    }

    /// Appends the acknowledgement that is pending, without payload.
    pub(super) fn emit_pure_ack(&mut self, now: Instant, batch: &mut Batch<'_>) -> Filled {
        let flags = Flags::ACK.with(self.ecn.flags(false, false));
        let mut header = self.header(now, flags);
        // Most acknowledgements have no lists: clearing room for them would take longer than the
        // rest.
        let mut cleared;
        let lists: &mut [u8] = if self.acking.has_lists() {
            // The option may take all of the option area: the rest of a full segment is for the
            // lists.
            let room = usize::from(self.mtu.mss()).saturating_sub(40);
            cleared = [0; MAX_LISTS];
            &mut cleared[..room.clamp(4, MAX_LISTS)]
        } else {
            &mut []
        };
        let received = Received {
            next: self.receiver.reassembly.next(),
            ahead: self.receiver.reassembly.ahead(),
            irs: self.receiver.irs,
            sack: self.handshake.sack,
        };
        let reason = self.acking.reason();
        let len = self.acking.write(now, &received, &mut header, lists);
        if len > 0 {
            // Should the option get lost on the way, the lists must not pass for data: they come in
            // the place of bytes that the peer has acknowledged.
            header.seq = SeqNum::at(self.identity.iss, self.snd.una) - len as u32;
        }
        self.on_ack_sent(now, Carried::Alone);
        count(&mut self.telemetry.counters, &header, reason, len);
        self.trace_ack(now, &header, reason, &lists[..len]);
        let start = batch.buf.len();
        append(batch, &header, &lists[..len], &[]);
        Filled::one(batch.buf.len() - start, Ecn::NotEct)
    }

    /// States to the peer the round trip and what belongs to it, if it needs to know. `newest`: the
    /// round trip measured now, if any.
    pub(super) fn state_round_trip(&mut self, now: Instant, newest: Option<Duration>) {
        let (Some(min_rtt), Some(smoothed_rtt)) = (self.rtt.min(), self.rtt.smoothed()) else {
            return;
        };
        let state = SenderState {
            now,
            min_rtt,
            smoothed_rtt,
            round_trip: self.rtt.current(newest).unwrap_or(smoothed_rtt),
            newest,
            startup: self.cc.in_slow_start(),
        };
        self.feedback.poll_sync(&state);
    }

    /// Appends what the peer has to know about our sending.
    pub(super) fn emit_sync(&mut self, now: Instant, sync: Sync, batch: &mut Batch<'_>) -> Filled {
        let flags = Flags::ACK.with(self.ecn.flags(false, false));
        let mut header = self.header(now, flags);
        header.options.tack = Some(TackOption::Sync(sync));
        self.on_ack_sent(now, Carried::OnSync);
        self.telemetry.counters.syncs += 1;
        self.telemetry.trace.add(now, || Traced::SyncSent {
            min_rtt: Duration::from_micros(sync.rtt_min.into()),
            ack_loss_rate: f64::from(sync.ack_loss_rate) / 65_536.0,
            startup: sync.startup,
        });
        single(batch, &header, Ecn::NotEct)
    }

    fn trace_ack(&mut self, now: Instant, header: &Header, reason: AckReason, lists: &[u8]) {
        let (ack, above) = (self.rcv_nxt(), self.receiver.reassembly.ahead().positions());
        let window = u64::from(header.window) << self.receiver.window.shift();
        self.telemetry.trace.add(now, || {
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
}

/// Counts a pure acknowledgement with `listed` bytes of lists.
fn count(counters: &mut Stats, header: &Header, reason: AckReason, listed: usize) {
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
