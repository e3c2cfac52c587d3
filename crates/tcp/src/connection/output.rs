//! What leaves: decide → account → encode, one room each step, into the carrier's batch.

use core::ops::Range;

use tack_base::{Instant, StreamOffset};
use tack_wire::options::TcpOptions;
use tack_wire::segment::MAX_HEADER_LEN;
use tack_wire::{Ecn, Flags, Header, SeqNum};

use super::Connection;
use super::close_reason::PendingReset;
use super::due::Due;
use super::limits::Limit;
use super::state::State;
use super::timers::Timer;
use crate::ack::policy::{Carried, LossDetectedBy};
use crate::cc::{SendToken, Sent};
use crate::config::WindowPacing;
use crate::send::sent::FlightStart;
use crate::send::window::Candidate;
use crate::transmit::{Batch, Transmit};

/// Why data leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    New,
    Retransmission,
}

/// One data segment to send.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Plan {
    kind: Kind,
    /// Positions, the FIN's included.
    range: Range<StreamOffset>,
    /// It is a tail loss probe or follows a timeout: windows of ours do not hold it back.
    forced: bool,
}

/// What was appended to a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Filled {
    /// Bytes of each segment but the last, prefix included.
    segment_size: usize,
    segments: usize,
    ecn: Ecn,
}

impl Filled {
    /// One segment of `len` bytes.
    pub(super) fn one(len: usize, ecn: Ecn) -> Self {
        Self {
            segment_size: len,
            segments: 1,
            ecn,
        }
    }
}

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
            let mut header = self.header(now, Flags::ACK);
            header.seq = SeqNum::at(self.identity.iss, self.snd.nxt - 1);
            self.on_ack_sent(now, Carried::Alone);
            return Some(single(batch, &header, Ecn::NotEct));
        }
        if self.acking.is_pending() {
            return Some(self.emit_pure_ack(now, batch));
        }
        None
    }

    // Decide.

    /// The next data segment that may leave now, if there is one. Notes what holds it back
    /// otherwise.
    fn decide(&mut self, now: Instant) -> Option<Plan> {
        if !self.state.may_send_data() {
            return None;
        }
        if self.due.take(Due::Retransmission)
            && let Some(range) = self.log.first_lost().or_else(|| self.log.front())
        {
            return Some(Plan {
                kind: Kind::Retransmission,
                range: self.fit(range),
                forced: true,
            });
        }
        if self.due.take(Due::LossProbe)
            && let Some(plan) = self.decide_probe(now)
        {
            return Some(plan);
        }
        let held = self.recovery.new_data_allowance();
        let lost = if held.is_some() {
            None
        } else {
            self.log
                .first_lost()
                .filter(|range| !self.audit.keeps(range.start))
        };
        let (kind, range) = match lost {
            Some(range) => (Kind::Retransmission, self.fit(range)),
            None => {
                let range = if held == Some(0) {
                    None
                } else {
                    self.next_new_range(now)
                };
                let Some(range) = range else {
                    self.pacer.pause();
                    return None;
                };
                (Kind::New, range)
            }
        };
        let len = range.end - range.start;
        let in_flight = self.bytes_in_flight();
        if in_flight > 0 && in_flight + len > self.flight_limit() {
            self.telemetry.limits.on_cwnd_full(self.snd.nxt);
            self.telemetry.limits.set(now, Limit::Cwnd);
            self.pacer.pause();
            return None;
        }
        if let Some(until) = self.pacer.wait(now) {
            if self.is_paced_below_window(in_flight + len) {
                self.telemetry.limits.on_cwnd_full(self.snd.nxt);
            }
            self.timers.set(Timer::Pacing, until);
            self.telemetry.limits.set(now, Limit::Pacing);
            return None;
        }
        Some(Plan {
            kind,
            range,
            forced: false,
        })
    }

    /// A window that has room for what a sparse peer has not reported leaves more slowly than
    /// within a smoothed round trip. Where the reports come sooner than the room is for, that much
    /// is all that is ever in flight: it is the window that limits.
    fn is_paced_below_window(&self, in_flight: u64) -> bool {
        if self.config.window_pacing == WindowPacing::Off || self.cc.pacing_rate().is_some() {
            return false;
        }
        let gain = self.cc.pacing_gain();
        gain < 1.0 && in_flight as f64 >= gain * self.cc.cwnd() as f64
    }

    /// RFC 8985 §7.3: new data if there is any and the window allows it, else the last segment
    /// again.
    fn decide_probe(&mut self, now: Instant) -> Option<Plan> {
        let fresh = self.snd.nxt
            ..self
                .queue
                .end_with_fin()
                .min(self.window.edge())
                .min(self.snd.nxt + self.max_payload());
        if fresh.start < fresh.end {
            self.recovery.on_probe(fresh.clone(), None);
            return Some(Plan {
                kind: Kind::New,
                range: fresh,
                forced: true,
            });
        }
        // One that left before the options grew does not fit; then it is the timeout's, which cuts
        // it.
        let longest = self.max_payload() + 1;
        let range = self
            .log
            .last_in_flight()
            .filter(|range| range.end - range.start <= longest)?;
        self.recovery.on_probe(range.start..self.snd.nxt, Some(now));
        Some(Plan {
            kind: Kind::Retransmission,
            range,
            forced: true,
        })
    }

    /// The range of the next new segment; `None` when there is nothing to send, or the peer's
    /// window or Nagle holds it back.
    fn next_new_range(&mut self, now: Instant) -> Option<Range<StreamOffset>> {
        let end = self.queue.end();
        let fin = self.queue.end_with_fin();
        if self.snd.nxt >= fin {
            self.on_nothing_to_send(now);
            return None;
        }
        let queued = end.saturating_since(self.snd.nxt);
        let usable = self.window.edge().saturating_since(self.snd.nxt);
        if queued == 0 {
            // The FIN alone. It takes a sequence number, but no buffer: a closed window does not
            // hold it.
            return Some(self.snd.nxt..fin);
        }
        let candidate = Candidate {
            queued,
            usable,
            mss: self.max_payload(),
            idle: self.log.is_empty(),
            nagle: self.config.nagle,
            finished: self.queue.is_finished(),
            largest_window: self.window.largest(),
        };
        let len = candidate.segment_len();
        if len > 0 {
            let stop = self.snd.nxt + len;
            // The FIN travels with the last byte.
            return Some(self.snd.nxt..if stop == end { fin } else { stop });
        }
        if usable > 0 && self.due.has(Due::WindowProbe) {
            // The override timer of RFC 9293 §3.8.6.2.1: what the window still takes leaves after
            // all, in one piece. One octet at a time would be taken and acknowledged each time, for
            // hundreds of round trips.
            return Some(self.snd.nxt..self.snd.nxt + usable.min(queued));
        }
        if usable < queued {
            self.telemetry.limits.set(now, Limit::Rwnd);
            if self.log.is_empty() && !self.timers.is_armed(Timer::Persist) {
                self.persist.begin(now);
                self.arm_persist(now);
            }
        } else {
            self.on_nothing_to_send(now);
        }
        None
    }

    fn on_nothing_to_send(&mut self, now: Instant) {
        self.telemetry.limits.set(now, Limit::App);
        let in_flight = self.bytes_in_flight();
        // A send buffer that is full of what is in flight is not an idle application: the
        // connection never has more than that, and a controller that waits for a sample the
        // application did not limit (BBR in startup) would wait forever.
        let buffer_is_full = self.queue.len() >= self.config.send_buffer / 4 * 3;
        // Draft-ietf-ccwg-bbr §4.1.2.4: idle although window and pacing would allow more.
        if in_flight < self.flight_limit()
            && !buffer_is_full
            && self.log.lost_bytes() == 0
            && self.state == State::Established
        {
            self.rate.on_app_limited(in_flight);
        }
    }

    /// How much may be in flight.
    #[inline]
    fn flight_limit(&self) -> u64 {
        self.recovery.flight_limit(self.cc.cwnd())
    }

    /// Cuts a lost segment that the path no longer takes.
    fn fit(&mut self, range: Range<StreamOffset>) -> Range<StreamOffset> {
        let max = self.max_payload();
        let payload = range.end.min(self.queue.end()) - range.start.min(self.queue.end());
        if payload <= max {
            return range;
        }
        self.log.split_lost(range.start, max);
        range.start..range.start + max
    }

    // Account.

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
        if retransmission && self.audit.keeps(plan.range.start) {
            // It never left before.
            self.audit.end();
            self.log
                .push_retransmission(plan.range.start, now, flight, token);
        } else if retransmission {
            self.log
                .push_retransmission(plan.range.start, now, flight, token);
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
        self.recovery.on_send(len);
        if self.pacer.on_send(now, len, self.max_payload()) {
            // This machine did not keep the rate: what is measured now is no limit of the path.
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
            if plan.kind == Kind::New && self.audit.is_due(self.may_audit(&plan)) {
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
            self.encode(now, &plan, batch);
            if segments == 0 {
                size = len + batch.prefix;
                codepoint = kind_codepoint;
            }
            segments += 1;
            if len + batch.prefix < size {
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
    fn may_audit(&self, plan: &Plan) -> bool {
        let behind = self.queue.end().min(self.window.edge());
        !plan.forced
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
        self.log.mark_lost(number);
        self.snd.nxt = plan.range.end;
        self.persist.on_sent(self.snd.nxt);
        self.audit.keep(plan.range.clone(), number);
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

    /// Length of the segment, header included.
    #[inline]
    fn encoded_len(&self, plan: &Plan) -> usize {
        let payload = plan
            .range
            .end
            .min(self.queue.end())
            .saturating_since(plan.range.start);
        let options = self.data_options_len() - self.numbering.room() + self.numbering.len();
        tack_wire::segment::HEADER_LEN + options as usize + payload as usize
    }

    fn encode(&mut self, now: Instant, plan: &Plan, batch: &mut Batch<'_>) {
        let end = self.queue.end();
        let data = plan.range.start..plan.range.end.min(end).max(plan.range.start);
        let fin = plan.range.end > end;
        let mut flags = Flags::ACK.with(self.ecn.flags(plan.kind == Kind::New));
        if fin {
            flags = flags.with(Flags::FIN);
        }
        // What empties the queue is pushed (RFC 9293 §3.9.1 SEND). Towards a peer that waits for a
        // count of segments, so is what fills a window of fewer: nothing follows until it answers.
        // A larger one brings the count together by itself; a push would draw an acknowledgement
        // for the segment, which lets out one that fills the window again, and so on.
        let limit = self.flight_limit();
        let count = u64::from(self.feedback.contract().least_segments);
        let fills_window = self.feedback.contract().max_segments > 2
            && limit < count * self.max_payload()
            && self.bytes_in_flight() + self.max_payload() > limit;
        if data.start < end && (data.end == end || fills_window) {
            flags = flags.with(Flags::PSH);
        }
        let mut header = self.header(now, flags);
        header.seq = SeqNum::at(self.identity.iss, plan.range.start);
        header.options.tack = self.numbering.option(now, self.log.newest_number());
        self.on_ack_sent(now, Carried::OnData);
        let (a, b) = self.queue.slices(data);
        append(batch, &header, a, b);
    }

    /// Header of any segment of a synchronised connection: acknowledges everything, announces the
    /// window.
    pub(super) fn header(&mut self, now: Instant, flags: Flags) -> Header {
        let window = self.receiver.announce(false);
        Header {
            src_port: self.identity.local_port,
            dst_port: self.identity.remote_port,
            seq: SeqNum::at(self.identity.iss, self.snd.nxt),
            ack: self.receiver.next_seq(),
            flags,
            window,
            urgent: 0,
            options: TcpOptions {
                timestamps: self.timestamps.option(now),
                ..TcpOptions::default()
            },
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
            };
            let len = self.encoded_len(&plan) + batch.prefix;
            self.account(now, &plan);
            self.encode(now, &plan, batch);
            return Some(Filled::one(len, Ecn::NotEct));
        }
        let octet = self.snd.nxt..self.snd.nxt + 1;
        self.persist.on_sent(octet.end);
        let mut header = self.header(now, Flags::ACK.with(Flags::PSH));
        // Not a transmission of its own: it repeats the number of the last one.
        header.options.tack = self.numbering.option(now, self.log.newest_number());
        self.on_ack_sent(now, Carried::OnData);
        let start = batch.buf.len();
        let (a, b) = self.queue.slices(octet);
        append(batch, &header, a, b);
        Some(Filled::one(batch.buf.len() - start, Ecn::NotEct))
    }

    fn reset_header(&mut self, reset: PendingReset) -> Header {
        let mut header = Header {
            src_port: self.identity.local_port,
            dst_port: self.identity.remote_port,
            seq: reset.seq,
            flags: Flags::RST,
            ..Header::default()
        };
        if reset.acknowledges {
            header.flags = header.flags.with(Flags::ACK);
            header.ack = self.receiver.next_seq();
        }
        header
    }
}

/// Appends a segment without payload.
pub(super) fn single(batch: &mut Batch<'_>, header: &Header, ecn: Ecn) -> Filled {
    let start = batch.buf.len();
    append(batch, header, &[], &[]);
    Filled::one(batch.buf.len() - start, ecn)
}

/// Appends prefix, header and payload.
#[inline]
pub(super) fn append(batch: &mut Batch<'_>, header: &Header, a: &[u8], b: &[u8]) {
    let mut bytes = [0; MAX_HEADER_LEN];
    let len = header.emit(&mut bytes);
    batch.buf.resize(batch.buf.len() + batch.prefix, 0);
    batch.buf.extend_from_slice(&bytes[..len]);
    batch.buf.extend_from_slice(a);
    batch.buf.extend_from_slice(b);
}
