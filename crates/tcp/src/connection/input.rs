//! SEGMENT ARRIVES (RFC 9293 §3.10.7): ordered checks that call rooms.

mod payload;

use core::time::Duration;

use tack_base::{Instant, StreamOffset};
use tack_wire::tack::Lists;
use tack_wire::{Ecn, Segment, SeqNum, TackOption};

use super::due::Due;
use super::state::State;
use super::{CloseReason, Connection};
use crate::ack::policy::{AckReason, SegmentOrder};

impl Connection {
    /// A segment for this connection arrived at `arrived` (a kernel timestamp, say) and is
    /// processed `now`.
    ///
    /// Round trips and rates are measured with `arrived`, timers run from `now`.
    pub fn handle_segment(
        &mut self,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
        ecn: Ecn,
    ) {
        match self.state {
            State::Closed => self.telemetry.counters.dropped_segments += 1,
            State::SynSent => self.on_segment_in_syn_sent(now, arrived, segment, ecn),
            _ => self.on_segment(now, arrived, segment, ecn),
        }
    }

    /// All other states (RFC 9293 §3.10.7.4).
    fn on_segment(&mut self, now: Instant, arrived: Instant, segment: &Segment<'_>, ecn: Ecn) {
        // The data field of a report is outside the sequence space: taken off before anything looks
        // at it.
        let report = self.feedback.separates_lists()
            && segment
                .header
                .options
                .tack
                .as_ref()
                .is_some_and(TackOption::is_feedback);
        if !report {
            self.on_plain_segment(now, arrived, segment, &[], ecn);
            return;
        }
        let flags = segment.header.flags;
        let announced = segment
            .header
            .options
            .tack
            .as_ref()
            .is_some_and(TackOption::has_lists);
        if flags.syn() || flags.fin() || announced == segment.payload.is_empty() {
            self.telemetry.counters.dropped_segments += 1;
            self.telemetry.counters.invalid_reports += 1;
            return;
        }
        let mut header = segment.header.clone();
        header.seq = header.seq + segment.payload.len() as u32;
        let bare = Segment {
            header,
            payload: &[],
        };
        self.on_plain_segment(now, arrived, &bare, segment.payload, ecn);
    }

    fn on_plain_segment(
        &mut self,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
        lists: &[u8],
        ecn: Ecn,
    ) {
        self.acking.on_segment(segment.payload.len());
        let flags = segment.header.flags;
        // A duplicate SYN of the handshake: the peer did not hear our answer.
        if flags.syn()
            && segment.header.seq == self.receiver.irs
            && self.state == State::SynReceived
            && !flags.rst()
        {
            if flags.ack() {
                // Simultaneous open: the peer's SYN-ACK acknowledges our SYN.
                self.on_acknowledgement_of_syn(now, arrived, segment);
            } else {
                if let Some(timestamps) = segment.header.options.timestamps {
                    self.timestamps.renew(now, timestamps);
                }
                self.due.add(Due::Syn);
            }
            return;
        }
        // First: protection against wrapped sequence numbers (RFC 7323 §5.3), then the window.
        // Deviation: a segment without the option is taken, as by other large stacks, though
        // RFC 7323 §3.2 would drop it: middleboxes that strip options from data would stall the
        // connection.
        let timestamps = segment
            .header
            .options
            .timestamps
            .filter(|_| self.timestamps.is_known());
        if let Some(timestamps) = timestamps
            && !flags.rst()
            && self.timestamps.is_old(now, timestamps)
        {
            self.reject(now, segment);
            return;
        }
        if flags.syn() {
            self.on_repeated_answer(now, arrived, segment);
        }
        let Some(start) = self.acceptable_position(segment) else {
            let bare = self.bare_acknowledgement(segment);
            if let Some(bare) = &bare {
                self.on_plain_segment(now, arrived, bare, lists, ecn);
            }
            if bare.is_some() && self.is_like_lists(segment) {
                self.acking.answer_lists(now);
                return;
            }
            // It may be data that came before all the same, whose acknowledgement was lost.
            let is_data = self.receiver.position(segment.header.seq).is_some();
            if bare.is_some() && !is_data {
                return;
            }
            if let Some(ack) = self.acknowledged_by_duplicate(segment) {
                self.on_acknowledgement(now, arrived, segment, lists, ack);
                if self.state == State::Closed {
                    return;
                }
            }
            if !flags.rst() {
                self.reject(now, segment);
            } else {
                self.telemetry.counters.dropped_segments += 1;
            }
            return;
        };
        // Where segments are numbered instead, their numbers protect. Only a segment within the
        // window can make the numbers start anew.
        if let Some(TackOption::Data(stamp)) = &segment.header.options.tack
            && !flags.rst()
            && self.acking.is_outdated(arrived, stamp)
        {
            self.reject(now, segment);
            return;
        }
        // Second: RST (RFC 5961 §3.2): only the exact sequence number resets.
        if flags.rst() {
            if start == self.rcv_nxt() {
                self.on_reset();
            } else {
                self.challenge(now);
            }
            return;
        }
        // Fourth: SYN in the window (RFC 5961 §4.2).
        if flags.syn() {
            self.challenge(now);
            return;
        }
        // Fifth: ACK.
        if !flags.ack() {
            self.telemetry.counters.dropped_segments += 1;
            return;
        }
        if self.state == State::SynReceived {
            if !self.on_acknowledgement_of_syn(now, arrived, segment) {
                return;
            }
            self.ecn
                .on_handshake_ack(flags, !segment.payload.is_empty());
        }
        let Some(ack) = segment.header.ack.position(self.identity.iss, self.snd.una) else {
            self.challenge(now);
            return;
        };
        // RFC 5961 §5.2: neither for data never sent, nor impossibly old.
        if ack > self.persist.highest_sent(self.snd.nxt)
            || ack + self.window.largest().max(1) < self.snd.una
        {
            self.challenge(now);
            return;
        }
        // A peer that did not receive our TACK option sends them, as both SYNs did.
        if segment.header.options.timestamps.is_some() {
            self.take_up_timestamps();
        }
        if let Some(timestamps) = timestamps {
            let last_ack_sent = SeqNum::at(self.receiver.irs, self.acking.last_sent());
            self.timestamps
                .accept(now, timestamps, segment.header.seq, last_ack_sent);
        }
        self.keep_alive.on_segment(now);
        let has_payload = !segment.payload.is_empty();
        let tell = self.ecn.on_segment(ecn, flags, has_payload);
        if ecn == Ecn::Ce {
            self.telemetry.counters.ce_received += 1;
        }
        self.on_acknowledgement(now, arrived, segment, lists, ack);
        if !self.feedback.stamps() {
            self.take_up_timestamps();
        }
        if let Some(TackOption::Sync(sync)) = &segment.header.options.tack
            && self.acking.on_sync(now, sync, &mut self.timers)
        {
            let round_trip = Duration::from_micros(sync.rtt.into());
            let shortest = Duration::from_micros(sync.rtt_min.into());
            self.peer_segments
                .round_trip
                .on_stated(arrived, round_trip, shortest);
            if !round_trip.is_zero() {
                self.rtt.on_stated(round_trip);
                self.hasten_retransmission(now);
            }
        }
        if self.state == State::Closed {
            return;
        }
        // Sixth, URG: RFC 6093 has new applications not use it; the bytes stay in the stream.
        // Seventh: the payload. Eighth: FIN.
        if !segment.payload.is_empty() {
            self.on_payload(now, arrived, segment, start, tell);
        } else if segment.header.flags.fin() {
            self.on_fin_segment(now, arrived, segment, start);
        } else if tell {
            self.acking.request(AckReason::Event);
        }
    }

    /// TACK's option does not get through: timestamps take its place where both SYNs had them
    /// (RFC 7323).
    fn take_up_timestamps(&mut self) {
        if self.timestamps.take_up() {
            self.on_segment_size_changed();
        }
    }

    /// Where an acceptable segment starts (RFC 9293 §3.4, table 6), `None` for an unacceptable one.
    ///
    /// Deviation: an empty segment right at the window's edge is acceptable (a peer that filled the
    /// window sends its acknowledgements from there), and so is one that starts below but not
    /// before the last acknowledgement.
    fn acceptable_position(&self, segment: &Segment<'_>) -> Option<StreamOffset> {
        let rcv_nxt = self.rcv_nxt();
        let start = self.receiver.position(segment.header.seq)?;
        let end = start + u64::from(segment.sequence_len());
        let edge = self.receiver.window.edge().max(rcv_nxt);
        let oldest = if segment
            .header
            .options
            .tack
            .as_ref()
            .is_some_and(TackOption::is_feedback)
            && segment.payload.is_empty()
        {
            // A report starts where the peer's unacknowledged data does: up to a window ago.
            rcv_nxt.saturating_sub(self.config.receive_buffer as u64)
        } else {
            self.acking.last_sent().min(rcv_nxt)
        };
        // A report whose option was taken off ends where the peer stands, as its lists do.
        let is_report = end == oldest && self.is_like_lists(segment);
        (end >= oldest && start <= edge && !is_report).then_some(start)
    }

    /// The payload may be the lists of a report whose option was taken off on the way.
    fn is_like_lists(&self, segment: &Segment<'_>) -> bool {
        let flags = segment.header.flags;
        !segment.payload.is_empty()
            && segment.header.options.tack.is_none()
            && !(flags.syn() || flags.fin() || flags.rst())
            && self.feedback.separates_lists()
            && Lists::parse(segment.payload).is_ok()
    }

    /// The acknowledgement of a segment whose payload came before. A report whose option was taken
    /// off on the way looks so: its lists are not data, and the peer's acknowledgements must be
    /// heard all the same. It is judged from where the peer stands, like the report that it was;
    /// but as it may be an old segment too, its window only opens.
    fn bare_acknowledgement<'a>(&self, segment: &Segment<'a>) -> Option<Segment<'a>> {
        let (header, rcv_nxt) = (&segment.header, self.rcv_nxt());
        let special = header.flags.syn() || header.flags.fin() || header.flags.rst();
        let numbered = matches!(header.options.tack, Some(TackOption::Data(_)));
        if segment.payload.is_empty() || special || numbered {
            return None;
        }
        let end = header.seq + segment.payload.len() as u32;
        let end = self.receiver.position(end)?;
        let before = self.receiver.position(header.seq).is_none() && end == rcv_nxt;
        let oldest = rcv_nxt.saturating_sub(self.config.receive_buffer as u64);
        let recent = self.feedback.separates_lists() && (oldest..=rcv_nxt).contains(&end);
        (before || recent).then(|| {
            let mut header = header.clone();
            header.seq = self.receiver.next_seq();
            // The original was judged by them; in this one they would count as new.
            header.options.timestamps = None;
            if let Some(ack) = header.ack.position(self.identity.iss, self.snd.una) {
                header.window = self.window.opening(ack, header.window);
            }
            Segment {
                header,
                payload: &[],
            }
        })
    }

    /// What a duplicate data segment acknowledges, if that is more than SND.UNA.
    ///
    /// Deviation: RFC 9293 §3.10.7.4 drops a duplicate segment with its acknowledgement. Two ends
    /// that both retransmit data whose acknowledgements were lost would then wait until a pure
    /// acknowledgement arrives. Duplicates that acknowledge nothing new are still dropped: they
    /// would count as duplicate acknowledgements.
    ///
    /// A blind attacker may also use sequence numbers up to the largest receive buffer below the
    /// window. The acknowledgement must still be of data in flight (RFC 5961 §5.2).
    fn acknowledged_by_duplicate(&self, segment: &Segment<'_>) -> Option<StreamOffset> {
        let header = &segment.header;
        let special = header.flags.syn() || header.flags.rst();
        if special || segment.payload.is_empty() || self.state == State::SynReceived {
            return None;
        }
        if let Some(TackOption::Data(stamp)) = &header.options.tack
            && self.acking.is_behind(stamp)
        {
            return None;
        }
        let (_, ack) = self.recent_repetition(segment)?;
        (ack > self.snd.una).then_some(ack)
    }

    /// An unacceptable segment: dropped, and answered with where we stand.
    fn reject(&mut self, now: Instant, segment: &Segment<'_>) {
        if self.state == State::TimeWait && segment.header.flags.fin() {
            self.restart_time_wait(now);
            return;
        }
        if segment.payload.is_empty() && !segment.header.flags.fin() {
            self.challenge(now);
            return;
        }
        // Data that came before: its acknowledgement was lost. The answer is as large as the data
        // at most.
        self.telemetry.counters.dropped_segments += 1;
        if self.handshake.sack
            && let Some(start) = self.receiver.position(segment.header.seq)
            && start < self.receiver.reassembly.next()
        {
            let end = (start + segment.payload.len() as u64).min(self.receiver.reassembly.next());
            self.telemetry.counters.duplicate_segments += 1;
            self.acking.on_duplicate(start..end);
        }
        // Its packet number counts, or that it has none, where it is one of the connection: of
        // bytes received within a window, acknowledging what may be acknowledged (RFC 5961 §5.2).
        // Numbers made up elsewhere would make copies of all genuine ones.
        if let Some(start) = self.recent_copy(segment)
            && self.state.may_receive_data()
        {
            let arrival = self.arrival(now, now, segment, start, SegmentOrder::Duplicate);
            self.acking.on_answered_data(&arrival, &mut self.timers);
        }
        self.acking
            .answer_repetition(now, AckReason::Loss, &mut self.timers);
    }

    /// Where a segment starts that repeats what was received lately, where segments have packet
    /// numbers.
    fn recent_copy(&self, segment: &Segment<'_>) -> Option<StreamOffset> {
        if !self.feedback.separates_lists() {
            return None;
        }
        let (start, _) = self.recent_repetition(segment)?;
        Some(start)
    }

    /// Where a duplicate segment starts, and what it acknowledges. It must start at most the
    /// largest receive buffer below RCV.NXT, and its acknowledgement must be acceptable (RFC 5961
    /// §5.2).
    fn recent_repetition(&self, segment: &Segment<'_>) -> Option<(StreamOffset, StreamOffset)> {
        let header = &segment.header;
        let rcv_nxt = self.rcv_nxt();
        let start = self.receiver.position(header.seq)?;
        let oldest = rcv_nxt.saturating_sub(self.receiver.window.largest_buffer() as u64);
        let ack = header.ack.position(self.identity.iss, self.snd.una)?;
        let acknowledges = ack <= self.persist.highest_sent(self.snd.nxt)
            && ack + self.window.largest().max(1) >= self.snd.una;
        ((oldest..rcv_nxt).contains(&start) && header.flags.ack() && acknowledges)
            .then_some((start, ack))
    }

    /// A reset at exactly the expected sequence number.
    fn on_reset(&mut self) {
        let reason = match self.state {
            State::SynReceived if !self.handshake.passive => CloseReason::Refused,
            // Deviation: TIME-WAIT goes on (RFC 1337 §3, F1); `time_wait.rs` has the reason.
            State::TimeWait => return,
            _ => CloseReason::Reset,
        };
        self.end(reason);
    }

    /// SYN-RECEIVED: does this segment acknowledge our SYN? If not, it is answered with a reset.
    fn on_acknowledgement_of_syn(
        &mut self,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
    ) -> bool {
        let acknowledged = segment
            .header
            .ack
            .position(self.identity.iss, StreamOffset::FIRST_BYTE)
            .is_some_and(|ack| ack == StreamOffset::FIRST_BYTE);
        if !acknowledged {
            self.telemetry.counters.dropped_segments += 1;
            self.reply_with_reset(segment.header.ack);
            return false;
        }
        let syn = segment.header.flags.syn();
        self.window.update(
            segment.header.seq,
            StreamOffset::FIRST_BYTE,
            segment.header.window,
            syn,
        );
        self.keep_alive.on_segment(now);
        if !syn {
            self.confirm_mechanism(segment);
        }
        self.on_handshake_complete(now, arrived, segment);
        if syn {
            self.acking.request(AckReason::Event);
        }
        true
    }
    /// Answers a suspicious segment with an acknowledgement, which a real peer can set right, but
    /// not without limit: two confused peers would otherwise answer each other forever.
    pub(super) fn challenge(&mut self, now: Instant) {
        self.telemetry.counters.dropped_segments += 1;
        self.acking.challenge(now);
    }
}
