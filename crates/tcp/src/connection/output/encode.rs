//! Segments as bytes, at the end of a batch.

use tack_base::Instant;
use tack_wire::options::TcpOptions;
use tack_wire::segment::MAX_HEADER_LEN;
use tack_wire::{Ecn, Flags, Header, SeqNum};

use super::plan::{Filled, Kind, Plan};
use crate::ack::policy::Carried;
use crate::connection::Connection;
use crate::connection::close_reason::PendingReset;
use crate::transmit::Batch;

impl Connection {
    /// Length of the segment, header included.
    #[inline]
    pub(super) fn encoded_len(&self, plan: &Plan) -> usize {
        let payload = plan
            .range
            .end
            .min(self.queue.end())
            .saturating_since(plan.range.start);
        let stamp = if self.has_room_for_stamp(plan, payload) {
            self.numbering.len()
        } else {
            0
        };
        let options = self.data_options_len() - self.numbering.room() + stamp;
        tack_wire::segment::HEADER_LEN + options as usize + payload as usize
    }

    /// Only what leaves again may be too long for one ([`Self::max_repeated_payload`]).
    #[inline]
    fn has_room_for_stamp(&self, plan: &Plan, payload: u64) -> bool {
        plan.kind == Kind::New || payload <= self.max_payload()
    }

    pub(super) fn encode(&mut self, now: Instant, plan: &Plan, batch: &mut Batch<'_>) {
        let end = self.queue.end();
        let data = plan.range.start..plan.range.end.min(end).max(plan.range.start);
        let fin = plan.range.end > end;
        let mut flags = Flags::ACK.with(self.ecn.flags(plan.kind == Kind::New, true));
        if fin {
            flags = flags.with(Flags::FIN);
        }
        // What empties the queue is pushed (RFC 9293 §3.9.1 SEND). Towards a peer that waits for a
        // count of segments, so is what fills a window of fewer: nothing follows until it answers.
        // A larger one brings the count together by itself; a push would draw an acknowledgement
        // for the segment, which lets out one that fills the window again, and so on.
        if data.start < end && (data.end == end || self.fills_window_below_count()) {
            flags = flags.with(Flags::PSH);
        }
        let mut header = self.header(now, flags);
        header.seq = SeqNum::at(self.identity.iss, plan.range.start);
        if self.has_room_for_stamp(plan, data.end - data.start) {
            header.options.tack = self.numbering.option(now, self.log.newest_number());
        }
        self.on_ack_sent(now, Carried::OnData);
        let (a, b) = self.queue.slices(data);
        append(batch, &header, a, b);
    }

    /// What is in flight fills a window of fewer segments than the peer waits for.
    #[inline]
    fn fills_window_below_count(&self) -> bool {
        let contract = self.feedback.contract();
        if contract.max_segments <= 2 {
            return false;
        }
        let (limit, segment) = (self.flight_limit(), self.max_payload());
        limit < u64::from(contract.least_segments) * segment
            && self.bytes_in_flight() + segment > limit
    }

    /// Header of any segment of a synchronised connection: acknowledges everything, announces the
    /// window.
    pub(in crate::connection) fn header(&mut self, now: Instant, flags: Flags) -> Header {
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

    pub(super) fn reset_header(&mut self, reset: PendingReset) -> Header {
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
pub(in crate::connection) fn single(batch: &mut Batch<'_>, header: &Header, ecn: Ecn) -> Filled {
    let start = batch.buf.len();
    append(batch, header, &[], &[]);
    Filled::one(batch.buf.len() - start, ecn)
}

/// Appends prefix, header and payload.
#[inline]
pub(in crate::connection) fn append(batch: &mut Batch<'_>, header: &Header, a: &[u8], b: &[u8]) {
    let mut bytes = [0; MAX_HEADER_LEN];
    let len = header.emit(&mut bytes);
    batch.buf.resize(batch.buf.len() + batch.prefix, 0);
    batch.buf.extend_from_slice(&bytes[..len]);
    batch.buf.extend_from_slice(a);
    batch.buf.extend_from_slice(b);
}
