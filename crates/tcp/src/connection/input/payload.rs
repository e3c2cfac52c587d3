//! Payload and FIN of a segment that passed the checks.

use tack_base::{Instant, StreamOffset};
use tack_wire::{Flags, Segment, TackOption};

use crate::ack::policy::{AckReason, DataArrival, SegmentOrder};
use crate::connection::state::State;
use crate::connection::{CloseReason, Connection, Event};
use crate::recv::reassembly::Arrival;
use crate::trace::Traced;

impl Connection {
    pub(super) fn on_payload(
        &mut self,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
        start: StreamOffset,
        ce_begins: bool,
    ) {
        self.telemetry.counters.segments_received += 1;
        let len = segment.payload.len() as u64;
        self.telemetry
            .trace
            .add_segment(now, || Traced::SegmentReceived {
                number: match segment.header.options.tack {
                    Some(TackOption::Data(stamp)) => Some(stamp.number),
                    _ => None,
                },
                start,
                end: start + len,
            });
        if !self.state.may_receive_data() {
            // CLOSE-WAIT and later: the peer's FIN was seen; what it still sends is a duplicate, or
            // invalid.
            if start + len > self.rcv_nxt() {
                self.telemetry.counters.dropped_segments += 1;
            }
            self.acking
                .answer_repetition(now, AckReason::Loss, &mut self.timers);
            if self.state == State::TimeWait && segment.header.flags.fin() {
                self.restart_time_wait(now);
            }
            return;
        }
        if !self.receiver.reading {
            // Nobody will read it, and the peer must not believe otherwise (RFC 9293 §3.6.1).
            if start + len > self.rcv_nxt() {
                self.end_with_reset(CloseReason::Aborted);
                return;
            }
        }
        self.peer_segments
            .on_segment(arrived, segment, &self.timestamps);
        self.receiver
            .window
            .set_segment(self.peer_segments.window_step());
        // Cut to the window: what is beyond was sent although we did not offer it (or is a window
        // probe).
        let edge = self.receiver.window.edge();
        let fits = edge.saturating_since(start).min(len);
        let limit = self.receiver.fin.limit();
        let fits = limit.saturating_since(start).min(fits) as usize;
        let data = &segment.payload[..fits];
        if data.is_empty() {
            self.telemetry.counters.dropped_segments += 1;
            self.acking
                .answer_repetition(now, AckReason::Window, &mut self.timers);
            return;
        }
        let before = self.receiver.reassembly.next();
        let repeated = self.receiver.reassembly.repeated(start, data.len());
        let arrival = self.receiver.reassembly.insert(start, data);
        let order = match arrival {
            Arrival::InOrder => SegmentOrder::InOrder,
            Arrival::FilledGap => SegmentOrder::FilledGap,
            Arrival::OutOfOrder => {
                self.acking.on_out_of_order(start.max(before));
                self.receiver
                    .window
                    .on_blocked(self.receiver.reassembly.blocked());
                SegmentOrder::OutOfOrder
            }
            Arrival::Duplicate(range) => {
                self.telemetry.counters.duplicate_segments += 1;
                self.acking.on_duplicate(range);
                SegmentOrder::Duplicate
            }
            Arrival::Dropped => {
                // As if it had never come: above all its packet number must not count as received.
                self.telemetry.counters.dropped_segments += 1;
                self.acking
                    .answer_repetition(now, AckReason::Loss, &mut self.timers);
                return;
            }
        };
        if let Some(repeated) = repeated
            && order != SegmentOrder::Duplicate
            && self.handshake.sack
        {
            // Partly old: the first old part is reported (RFC 2883 §4.2).
            self.acking.on_duplicate(repeated);
        }
        if self.receiver.reassembly.next() > before {
            self.peer_segments.round_trip.on_arrival(
                arrived,
                self.receiver.reassembly.next(),
                edge,
            );
            self.events.raise(Event::Readable);
        }
        let fin_here = segment.header.flags.fin() && fits as u64 == len;
        if fin_here {
            self.receiver.note_fin(start + len);
        }
        let fin = self.reach_peer_fin(now);
        let mut arrival = self.arrival(now, arrived, segment, start, order);
        arrival.fin = fin;
        arrival.ce_changed = ce_begins;
        self.acking.on_data(&arrival, &mut self.timers);
        if fits < segment.payload.len() {
            self.acking.request(AckReason::Window);
        }
    }

    /// What the acknowledgement policy sees of a segment that takes sequence space.
    pub(super) fn arrival(
        &self,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
        start: StreamOffset,
        order: SegmentOrder,
    ) -> DataArrival {
        DataArrival {
            now,
            arrived,
            start,
            len: segment.payload.len() as u64,
            order,
            push: segment.header.flags.contains(Flags::PSH),
            fin: false,
            received_to: self.receiver.reassembly.next(),
            unacknowledged: self
                .receiver
                .reassembly
                .next()
                .saturating_since(self.acking.last_sent()),
            peer_mss: self.peer_segments.size(),
            window_left: self.receiver.window_left(),
            window: self
                .receiver
                .window
                .room(self.receiver.reassembly.read_position()),
            ce_changed: false,
            window_moves: self
                .receiver
                .window
                .would_move(self.receiver.reassembly.read_position()),
            stamp: match segment.header.options.tack {
                Some(TackOption::Data(stamp)) => Some(stamp),
                _ => None,
            },
        }
    }

    /// A FIN without payload.
    pub(super) fn on_fin_segment(
        &mut self,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
        start: StreamOffset,
    ) {
        if self.state == State::TimeWait {
            self.restart_time_wait(now);
            return;
        }
        if !self.state.may_receive_data() {
            self.acking
                .answer_repetition(now, AckReason::Event, &mut self.timers);
            return;
        }
        self.receiver.note_fin(start);
        let reached = self.reach_peer_fin(now);
        if !reached {
            self.acking.on_out_of_order(start);
        }
        let order = if reached {
            SegmentOrder::InOrder
        } else {
            SegmentOrder::OutOfOrder
        };
        let mut arrival = self.arrival(now, arrived, segment, start, order);
        arrival.fin = reached;
        if reached {
            self.acking.on_fin(&arrival);
            return;
        }
        self.acking.on_answered_data(&arrival, &mut self.timers);
        self.acking
            .answer_repetition(now, AckReason::Loss, &mut self.timers);
    }

    /// Takes the FIN once everything before it is here. True when that happened.
    pub(in crate::connection) fn reach_peer_fin(&mut self, now: Instant) -> bool {
        let reached = self.receiver.fin.reach(self.receiver.reassembly.next());
        if reached {
            self.on_peer_fin(now);
        }
        reached
    }
}
