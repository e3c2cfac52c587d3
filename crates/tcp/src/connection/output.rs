//! Fills the carrier's batch with segments: decide → account → encode. `decide` and `encode` have
//! their own files.

mod decide;
mod encode;
mod plan;

use tack_base::Instant;
use tack_wire::{Ecn, Flags, SeqNum};

pub(super) use self::encode::{append, single};
pub(super) use self::plan::Filled;
use self::plan::{Kind, Plan};
use super::Connection;
use super::due::Due;
use super::timers::Timer;
use crate::ack::policy::{Carried, LossDetectedBy};
use crate::cc::{SendToken, Sent};
use crate::send::sent::FlightStart;
use crate::trace::Traced;
use crate::transmit::{Batch, Transmit};

impl Connection {
    /// Appends the next segments to leave to `batch`, if there are any. Call until it says `None`.
    pub fn poll_transmit(&mut self, now: Instant, batch: &mut Batch<'_>) -> Option<Transmit> {
        let before = batch.buf.len();
        let filled = self.fill(now, batch)?;
        Some(Transmit {
            len: batch.buf.len() - before,
            segment_size: filled.segment_size,
            segments: filled.segments,
            ecn: filled.ecn,
            departure: now,
        })
    }

    fn fill(&mut self, now: Instant, batch: &mut Batch<'_>) -> Option<Filled> {
        if self.has_nothing_to_send() {
            self.wait_for_data(now);
            return None;
        }
        if let Some(reset) = self.ending.reset.take() {
            let header = self.reset_header(reset);
            return Some(single(batch, &header, Ecn::NotEct));
        }
        if self.due.has(Due::Syn) {
            let header = self.syn_header(now);
            self.on_syn_sent(now);
            return Some(single(batch, &header, Ecn::NotEct));
        }
        // What a report says, and blocks, do not fit beside a full payload: they travel on their
        // own.
        if self
            .acking
            .is_pending_alone(self.receiver.reassembly.ahead())
        {
            return Some(self.emit_pure_ack(now, batch));
        }
        if let Some(sync) = self.feedback.take_sync() {
            return Some(self.emit_sync(now, sync, batch));
        }
        if let Some(sent) = self.fill_with_data(now, batch) {
            return Some(sent);
        }
        if self.due.take(Due::WindowProbe)
            && let Some(sent) = self.emit_window_probe(now, batch)
        {
            return Some(sent);
        }
        if self.due.take(Due::KeepAlive) {
            // RFC 9293 §3.8.4: an old sequence number makes the peer answer. It carries no report,
            // for one is acceptable with an old number, and would stay without an answer.
            let flags = Flags::ACK.with(self.ecn.counter(false));
            let mut header = self.header(now, flags);
            header.seq = SeqNum::at(self.identity.iss, self.snd.nxt - 1);
            self.on_ack_sent(now, Carried::Alone);
            return Some(single(batch, &header, Ecn::NotEct));
        }
        if self.acking.is_pending() {
            return Some(self.emit_pure_ack(now, batch));
        }
        None
    }

    /// Neither data nor anything else waits to leave, as most of the time at a side that only
    /// receives.
    #[inline]
    fn has_nothing_to_send(&self) -> bool {
        self.due.is_empty()
            && !self.acking.is_pending()
            && self.snd.nxt >= self.queue.end_with_fin()
            && self.log.is_empty()
            && self.feedback.sync.is_none()
            && self.ending.reset.is_none()
    }

    fn account(&mut self, now: Instant, plan: &Plan) {
        let len = plan.range.end - plan.range.start;
        let in_flight = self.bytes_in_flight();
        if self.log.is_empty() {
            let idle = now.saturating_since(self.pacer.last_sent_at());
            if idle >= self.rtt.rto() && self.telemetry.counters.data_segments > 0 {
                self.cc.on_idle_restart(now, idle);
                self.update_pacing();
            }
            if let Some(limit) = self.config.user_timeout {
                self.timers.set(Timer::User, now + limit);
            }
        }
        let flight = self.rate.on_send(now, self.log.in_flight());
        let retransmission = plan.kind == Kind::Retransmission;
        let token = self.cc.on_send(&Sent {
            now,
            bytes: len,
            prior_in_flight: in_flight,
            retransmission,
            app_limited: self.rate.is_app_limited(),
        });
        let payload = plan
            .range
            .end
            .min(self.queue.end())
            .saturating_since(plan.range.start);
        if payload > 0 {
            self.telemetry.counters.data_segments += 1;
            self.telemetry.counters.data_bytes += payload;
        }
        let never_left = retransmission && self.audit.keeps(plan.range.start);
        if retransmission && self.audit.overlaps(&plan.range) {
            // Maybe behind what had left, where segments have become longer.
            self.audit.end();
        }
        if never_left {
            self.log
                .push_retransmission(plan.range.clone(), now, flight, token);
        } else if retransmission {
            self.log
                .push_retransmission(plan.range.clone(), now, flight, token);
            self.recovery
                .on_retransmission(now, self.log.newest_number(), plan.range.start);
            self.telemetry.counters.retransmitted_segments += 1;
            self.telemetry.counters.retransmitted_bytes += payload;
        } else {
            self.log.push(plan.range.clone(), now, flight, token);
            self.snd.nxt = plan.range.end;
            self.persist.on_sent(self.snd.nxt);
            self.recovery.on_new_data(len);
        }
        if payload > 0 {
            let (log, range) = (&self.log, &plan.range);
            self.telemetry
                .trace
                .add_segment(now, || Traced::SegmentSent {
                    number: log.newest_number(),
                    start: range.start,
                    end: range.start + payload,
                    again: retransmission,
                });
        }
        self.recovery.on_send(len);
        if self.pacer.on_send(now, len, self.max_payload()) {
            // The timer was too late to keep the rate, so samples do not show the path's limit.
            self.rate.on_app_limited(self.bytes_in_flight());
        }
        let head = retransmission && plan.range.start == self.snd.una;
        let restart = head && self.recovery.grants_head_a_timeout();
        self.arm_retransmission(now, restart);
    }

    // Encode.

    fn fill_with_data(&mut self, now: Instant, batch: &mut Batch<'_>) -> Option<Filled> {
        let mut size = 0;
        let mut segments = 0;
        let mut codepoint = Ecn::NotEct;
        // The first segment says how long all are; the last may be shorter.
        while segments < batch.max_segments {
            let Some(plan) = self.decide(now) else { break };
            let is_probe = plan.probes.is_some();
            if plan.kind == Kind::New
                && !is_probe
                && self.audit.is_due()
                && self.may_audit(now, &plan)
            {
                self.keep_back(now, &plan);
                continue;
            }
            let kind_codepoint = self
                .ecn
                .codepoint(plan.kind == Kind::New && self.cc.responds_to_ecn());
            let len = self.encoded_len(&plan);
            if segments > 0 && (kind_codepoint != codepoint || len + batch.prefix > size) {
                self.put_back(&plan);
                break;
            }
            self.account(now, &plan);
            if let Some(size) = plan.probes {
                self.mtu.on_probe_sent(size, plan.range.clone());
            }
            self.encode(now, &plan, batch);
            if segments == 0 {
                size = len + batch.prefix;
                codepoint = kind_codepoint;
            }
            segments += 1;
            // A probe that the carrier refuses takes no others with it.
            if len + batch.prefix < size || is_probe {
                break;
            }
        }
        if segments > 0 {
            // What left makes room for what may wait.
            self.offer_writable();
        }
        (segments > 0).then_some(Filled {
            segment_size: size,
            segments,
            ecn: codepoint,
        })
    }

    /// The peer will tell of the hole that this segment leaves, and by nothing else: enough follows
    /// it, and all is well.
    ///
    /// A hole holds the window up for a round trip. Where the window has no room for that long, the
    /// sender stands still, and audits are rare.
    fn may_audit(&mut self, now: Instant, plan: &Plan) -> bool {
        let behind = self.queue.end().min(self.window.edge());
        let has_room = self.window.edge() >= plan.range.end + self.bytes_in_flight();
        let min_rtt = self.rtt.min().unwrap_or_default();
        (has_room || self.audit.may_stop(now, min_rtt))
            && !plan.forced
            // Its first octet may have left as a window probe.
            && plan.range.start >= self.persist.highest_sent(self.snd.nxt)
            && self.recovery.is_idle()
            && self.log.lost_bytes() == 0
            && self.feedback.contract().loss_detected_by == LossDetectedBy::Receiver
            && behind >= plan.range.end + 4 * self.max_payload()
            && self.flight_limit() >= self.bytes_in_flight() + 4 * self.max_payload()
    }

    /// The segment takes its place and a number, and does not leave.
    fn keep_back(&mut self, now: Instant, plan: &Plan) {
        let number = self.log.next_number();
        self.log.push(
            plan.range.clone(),
            now,
            FlightStart::default(),
            SendToken::default(),
        );
        self.log.mark_kept_back(number);
        self.snd.nxt = plan.range.end;
        self.persist.on_sent(self.snd.nxt);
        let min_rtt = self.rtt.min().unwrap_or_default();
        self.audit.keep(plan.range.clone(), number, now, min_rtt);
        self.telemetry.counters.audits += 1;
        self.arm_retransmission(now, false);
    }

    /// A plan that does not fit this batch stays due for the next one.
    fn put_back(&mut self, plan: &Plan) {
        if plan.forced {
            if plan.kind == Kind::Retransmission && !self.recovery.is_probing() {
                self.due.add(Due::Retransmission);
            } else {
                self.recovery.cancel_probe();
                self.due.add(Due::LossProbe);
            }
        }
    }

    /// One octet beyond the peer's closed window (RFC 9293 §3.8.6.1). It is not in the log: should
    /// the peer take it, its acknowledgement says so; should it not, nothing is lost.
    fn emit_window_probe(&mut self, now: Instant, batch: &mut Batch<'_>) -> Option<Filled> {
        if !self.state.may_send_data() || self.snd.nxt >= self.queue.end() || !self.log.is_empty() {
            return None;
        }
        if self.window.edge() > self.snd.nxt {
            // The window is open, but so little that silly-window avoidance held back: the override
            // timeout (RFC 9293 §3.8.6.2.1 (4)) sends what fits.
            let usable = (self.window.edge() - self.snd.nxt).min(self.max_payload());
            let range = self.snd.nxt..self.queue.end().min(self.snd.nxt + usable);
            let plan = Plan {
                kind: Kind::New,
                range,
                forced: true,
                probes: None,
            };
            let len = self.encoded_len(&plan) + batch.prefix;
            self.account(now, &plan);
            self.encode(now, &plan, batch);
            return Some(Filled::one(len, Ecn::NotEct));
        }
        let octet = self.snd.nxt..self.snd.nxt + 1;
        self.persist.on_sent(octet.end);
        let flags = Flags::ACK.with(Flags::PSH).with(self.ecn.counter(true));
        let mut header = self.header(now, flags);
        // Not a transmission of its own: it repeats the number of the last one.
        header.options.tack = self.numbering.option(now, self.log.newest_number());
        self.on_ack_sent(now, Carried::OnData);
        let start = batch.buf.len();
        let (a, b) = self.queue.slices(octet);
        append(batch, &header, a, b);
        Some(Filled::one(batch.buf.len() - start, Ecn::NotEct))
    }
}
