//! Opening: what is offered, what is agreed, and the answer to the peer's SYN.

use core::time::Duration;

use tack_base::{Instant, StreamOffset};
use tack_wire::options::TcpOptions;
use tack_wire::{Ecn, Flags, Header, Segment, SeqNum, TackOption};

use alloc::boxed::Box;

use super::due::Due;
use super::feedback::PeerFeedback;
use super::state::{State, Transition};
use super::timers::Timer;
use super::{CloseReason, Connection, Event};
use crate::ack::feedback::SackReader;
use crate::ack::policy::AckReason;
use crate::cc;
use crate::config::AccurateEcn;
use crate::ecn::handshake::{Agreement, Request, agreed};
use crate::recovery::episodes::LossRecovery;
use crate::recv::window::ReceiveWindow;
use crate::send::numbering::Numbering;

/// So many SYNs offer a mechanism; the ones after them do not.
const OFFERS: u32 = 2;
/// So many SYNs ask for accurate ECN feedback.
const ACCURATE_OFFERS: u32 = 2;

impl Connection {
    /// The path to the peer drops SYNs that offer an acknowledgement mechanism: do not offer it.
    pub(crate) fn withhold_offer(&mut self) {
        self.handshake.offer_withheld = true;
    }

    /// A peer that announces no segment size takes segments of `mss` bytes (RFC 9293 MUST-15).
    pub(crate) fn assume_mss(&mut self, mss: u16) {
        self.mtu.assume_peer_mss(mss);
    }

    /// True once the connection is open, and only a SYN without the offer was answered: the path
    /// seems to drop those with it. The last one is what was answered, as those before it left a
    /// second or more earlier.
    pub(crate) fn opened_without_offer(&self) -> bool {
        self.state.is_synchronized()
            && !self.handshake.passive
            && !self.handshake.offer_withheld
            && !self.handshake.mechanism_agreed
            && self.handshake.transmissions > OFFERS
            && self.config.sack
            && self.config.offer().is_some()
    }

    /// Takes what the peer's SYN (or SYN-ACK) says.
    pub(super) fn learn_from_syn(&mut self, now: Instant, segment: &Segment<'_>, ecn: Ecn) {
        let options = &segment.header.options;
        self.receiver.irs = segment.header.seq;
        self.mtu.on_peer_mss(options.mss);
        self.handshake.sack = self.config.sack && options.sack_permitted;
        self.handshake.peer_scale = options.window_scale.filter(|_| self.config.window_scaling);
        self.agree_on_mechanism(segment);
        if let Some(timestamps) = options.timestamps.filter(|_| self.config.timestamps) {
            if self.handshake.mechanism_agreed {
                self.timestamps.reserve(now, timestamps);
            } else {
                self.timestamps.agree(now, timestamps);
            }
        }
        if let Some(shift) = self.handshake.peer_scale {
            self.window.set_scale(shift);
            self.receiver
                .window
                .set_scale(ReceiveWindow::scale_for(self.config.receive_buffer));
        }
        self.agree_on_ecn(segment.header.flags, ecn);
    }

    fn agree_on_ecn(&mut self, flags: Flags, ecn: Ecn) {
        if !flags.ack() {
            let request = Request::of(flags, ecn, &self.config);
            let agreement = request.agreement(&self.config, self.handshake.mechanism_agreed);
            self.handshake.ecn_answer = request.answer(agreement);
            self.ecn.agree(agreement);
            if request.arrived_as() == Some(Ecn::Ce) {
                self.ecn.on_marked_syn();
            }
        } else if self.config.ecn {
            let accurate = self.config.accurate_ecn == AccurateEcn::Offer;
            let agreement = match agreed(flags, accurate) {
                // A peer with an acknowledgement mechanism sends SYN-ACKs as not capable, so the
                // path marks everything. Others may send them as capable (RFC 5562).
                Agreement::Classic if self.handshake.mechanism_agreed && ecn == Ecn::Ce => {
                    Agreement::None
                }
                agreement => agreement,
            };
            self.ecn.agree(agreement);
            let is_sure = self.handshake.transmissions <= ACCURATE_OFFERS;
            self.ecn.on_syn_ack(flags, ecn, is_sure);
        }
    }

    /// What our next SYN asks for. A path that drops those that ask gets a plain one: the second
    /// one (RFC 3168 §6.1.1.1), or the third where it is accurate feedback (RFC 9768 §3.1.4).
    fn ecn_request(&self) -> Request {
        let left = self.handshake.transmissions;
        match self.config.accurate_ecn {
            _ if !self.config.ecn => Request::None,
            AccurateEcn::Offer if left < ACCURATE_OFFERS => Request::Accurate(Ecn::NotEct),
            AccurateEcn::Off | AccurateEcn::Accept if left == 0 => Request::Classic,
            _ => Request::None,
        }
    }

    /// Takes up the mechanism that both sides want, or the common one.
    fn agree_on_mechanism(&mut self, segment: &Segment<'_>) {
        let sack = self.handshake.sack;
        self.feedback = PeerFeedback::new(Box::new(SackReader::new(sack)));
        // What it would fall back to on a path that strips its option must be there.
        let Some(TackOption::Syn(offer)) = segment.header.options.tack.filter(|_| sack) else {
            return;
        };
        let Some(mechanism) = self.config.agree(offer, sack) else {
            return;
        };
        self.handshake.mechanism_agreed = true;
        self.acking.set_policy(mechanism.policy);
        self.recovery.set_detector(mechanism.detector);
        self.numbering = mechanism.numbering;
        self.feedback = PeerFeedback::new(mechanism.reader);
        self.rtt.follow_closely();
    }

    /// The segment that completes the handshake shows whether our SYN-ACK agreed to the mechanism
    /// in the eyes of the peer: where it did, both sides leave timestamps out from there on. One
    /// that has them, and nothing of the mechanism, did not get our option, or not the SACK
    /// permission that belongs to it.
    pub(super) fn confirm_mechanism(&mut self, segment: &Segment<'_>) {
        let options = &segment.header.options;
        let is_plain = options.timestamps.is_some() && options.tack.is_none();
        if !self.handshake.mechanism_agreed || !is_plain || !self.timestamps.take_up() {
            return;
        }
        self.handshake.mechanism_agreed = false;
        self.acking.set_policy(self.config.build_policy());
        self.recovery = LossRecovery::new();
        self.numbering = Numbering::default();
        self.feedback = PeerFeedback::new(Box::new(SackReader::new(self.handshake.sack)));
    }

    /// What our SYN offers, or our SYN-ACK accepts. After two SYNs without an answer a path that
    /// drops unknown options gets one without.
    fn mechanism_offer(&self, answer: bool) -> Option<TackOption> {
        let offer = if answer {
            self.handshake.mechanism_agreed
        } else {
            self.handshake.transmissions < OFFERS && !self.handshake.offer_withheld
        };
        self.config.offer().filter(|_| offer && self.config.sack)
    }

    /// Header of our SYN or SYN-ACK.
    pub(super) fn syn_header(&mut self, now: Instant) -> Header {
        let answer = self.state == State::SynReceived;
        let mut flags = Flags::SYN;
        if answer {
            flags = flags.with(Flags::ACK);
            flags = flags.with(self.handshake.ecn_answer);
        } else {
            flags = flags.with(self.ecn_request().flags());
        }
        let window = self.receiver.announce(true);
        let timestamps = if answer {
            self.timestamps.answer(now)
        } else {
            self.config.timestamps.then(|| tack_wire::Timestamps {
                value: self.timestamps.value(now),
                echo: 0,
            })
        };
        let scale = ReceiveWindow::scale_for(self.config.receive_buffer);
        Header {
            src_port: self.identity.local_port,
            dst_port: self.identity.remote_port,
            seq: self.identity.iss,
            ack: if answer {
                SeqNum::at(self.receiver.irs, StreamOffset::FIRST_BYTE)
            } else {
                SeqNum(0)
            },
            flags,
            window,
            urgent: 0,
            options: TcpOptions {
                mss: Some(self.config.mss),
                window_scale: (self.config.window_scaling
                    && (!answer || self.handshake.peer_scale.is_some()))
                .then_some(scale),
                sack_permitted: if answer {
                    self.handshake.sack
                } else {
                    self.config.sack
                },
                timestamps,
                tack: self.mechanism_offer(answer),
                ..TcpOptions::default()
            },
        }
    }

    /// A SYN or SYN-ACK left.
    pub(super) fn on_syn_sent(&mut self, now: Instant) {
        self.due.set(Due::Syn, false);
        self.handshake.transmissions += 1;
        self.handshake.sent_at.get_or_insert(now);
        self.handshake.newest_at = Some(now);
        if self.state == State::SynReceived {
            self.acking.on_syn_ack_sent();
        }
        if !self.timers.is_armed(Timer::Retransmit) {
            self.timers.set(Timer::Retransmit, now + self.rtt.rto());
        }
    }

    /// SYN-SENT (RFC 9293 §3.10.7.3).
    pub(super) fn on_segment_in_syn_sent(
        &mut self,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
        ecn: Ecn,
    ) {
        let flags = segment.header.flags;
        let acceptable = flags
            .ack()
            .then(|| segment.header.ack == SeqNum::at(self.identity.iss, StreamOffset::FIRST_BYTE));
        if acceptable == Some(false) {
            self.telemetry.counters.dropped_segments += 1;
            if !flags.rst() {
                self.reply_with_reset(segment.header.ack);
            }
            return;
        }
        if flags.rst() {
            // RFC 5961: only a reset that acknowledges our SYN counts.
            if acceptable == Some(true) {
                self.end(CloseReason::Refused);
            } else {
                self.telemetry.counters.dropped_segments += 1;
            }
            return;
        }
        if !flags.syn() {
            self.telemetry.counters.dropped_segments += 1;
            return;
        }
        self.learn_from_syn(now, segment, ecn);
        if acceptable == Some(true) {
            self.window.update(
                segment.header.seq,
                StreamOffset::FIRST_BYTE,
                segment.header.window,
                true,
            );
            self.on_handshake_complete(now, arrived, segment);
            self.acking.request(AckReason::Event);
            if self.handshake.transmissions > 1 {
                // The peer's answer left more than once as well: the acknowledgement does not say
                // which of them it answers.
                self.state_round_trip(now, None);
            }
        } else {
            // Simultaneous open: answer with SYN-ACK.
            self.window.update(
                segment.header.seq,
                StreamOffset::SYN,
                segment.header.window,
                true,
            );
            self.state = self.state.after(Transition::SynArrived);
            self.due.add(Due::Syn);
        }
    }

    /// A SYN-ACK came again. The one that opened the connection may have answered an older SYN than
    /// the newest and told no round trip; this one does, where it names the newest.
    pub(super) fn on_repeated_answer(
        &mut self,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
    ) {
        let answers = segment.header.flags.ack()
            && segment.header.seq == self.receiver.irs
            && segment.header.ack == SeqNum::at(self.identity.iss, StreamOffset::FIRST_BYTE);
        if !answers || self.state == State::SynReceived || self.rtt.smoothed().is_some() {
            return;
        }
        if let Some(rtt) = self.echoed_syn(arrived, segment) {
            self.on_first_round_trip(now, rtt);
            self.state_round_trip(now, None);
        }
    }

    /// Age of our newest SYN, if `segment` echoes it. Karn: a SYN sent twice gives no sample unless
    /// the echo says which of them was answered (RFC 7323 §4). Where it names another than the
    /// newest, the answer to that one may have got lost, and its age would be a timeout and a
    /// round trip.
    fn echoed_syn(&self, arrived: Instant, segment: &Segment<'_>) -> Option<Duration> {
        let echo = segment.header.options.timestamps?.echo;
        let is_newest = match self.handshake.newest_at {
            Some(newest) => self.timestamps.value(newest) == echo,
            None => true,
        };
        (self.timestamps.is_known() && is_newest)
            .then(|| self.timestamps.age(arrived, echo))
            .flatten()
    }

    fn on_first_round_trip(&mut self, now: Instant, rtt: Duration) {
        let first = StreamOffset::FIRST_BYTE;
        self.rtt.sample(now, rtt, rtt, first, first);
        self.peer_segments.round_trip.on_handshake(rtt);
        self.acking.on_handshake(rtt);
    }

    /// Our SYN is acknowledged: the connection is open.
    pub(super) fn on_handshake_complete(
        &mut self,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
    ) {
        self.state = self.state.after(Transition::HandshakeComplete);
        self.snd.una = StreamOffset::FIRST_BYTE;
        self.timers.stop(Timer::Retransmit);
        self.due.set(Due::Syn, false);
        self.rtt.end_back_off();
        let round_trip = match self.handshake.sent_at {
            Some(sent_at) if self.handshake.transmissions == 1 => {
                Some(arrived.saturating_since(sent_at))
            }
            _ => self.echoed_syn(arrived, segment),
        };
        if let Some(rtt) = round_trip {
            self.on_first_round_trip(now, rtt);
            if !segment.header.flags.syn() && !segment.payload.is_empty() {
                // The answer to our SYN carries no data, as a rule. It may have got lost, and this
                // one left after a timeout.
                self.rtt.doubt();
            }
        }
        // A SYN of ours that timed out makes the start cautious; one that left again because the
        // peer repeated its own does not (RFC 6298 §5.7, RFC 5681 §3.1).
        let lost = self.handshake.timeouts > 0;
        if lost {
            self.rtt.on_syn_timeout();
        }
        if let Some(base) = self.config.base_mss {
            self.mtu.begin_with(now, base);
        }
        let mss = u64::from(self.mtu.mss()) - self.data_options_len();
        let usual = mss * u64::from(self.config.initial_window_segments.max(1));
        self.cc = self.config.build_controller(&cc::Init {
            now,
            mss,
            initial_window: if lost { mss } else { usual },
            restart_window: usual,
            rtt: self.rtt.smoothed(),
            seed: self.identity.seed,
            counting: self.config.counting,
        });
        self.update_pacing();
        if let Some(keep_alive) = self.config.keep_alive {
            self.timers.set(Timer::KeepAlive, now + keep_alive.idle);
        }
        self.events.raise(Event::Connected);
        self.events.write_blocked = true;
        self.offer_writable();
        if self.queue.is_finished() {
            self.state = self.state.after(Transition::Finish);
        }
    }
}
