//! Data segments in traces: each transmission has a number, as packets of QUIC have.

use std::collections::BTreeMap;

use tack_base::StreamOffset;
use tack_wire::checksum::PROTOCOL_TCP;
use tack_wire::{Flags, Segment};

use super::super::{PacketEvent, Passing};
use crate::scenario::Party;
use crate::world::flow_of;

/// A data segment that passes an interface.
pub(super) struct Passed {
    pub(super) flow: usize,
    /// Of the transmission, from 0: of the last one of these bytes, where the segment arrives.
    pub(super) number: u64,
    /// Where its payload begins in the stream; the first byte is 1.
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Some of its bytes left before.
    pub(super) is_retransmission: bool,
}

/// What one end of a flow has sent.
#[derive(Debug, Default)]
struct Sent {
    /// Whose it is.
    host: Option<Party>,
    /// Sequence number of its SYN.
    iss: u32,
    /// Segments that left.
    count: u64,
    /// Where what has left ends.
    end: u64,
    /// When a segment left, nanoseconds on the host's clock, and the number of that transmission;
    /// by where the segment begins.
    transmissions: BTreeMap<u64, Vec<(u64, u64)>>,
}

impl Sent {
    /// The position of a sequence number: the one nearest to the end of what was sent.
    fn position(&self, seq: u32) -> u64 {
        let expected = self.iss.wrapping_add(self.end as u32);
        let ahead = i64::from(seq.wrapping_sub(expected).cast_signed());
        self.end.saturating_add_signed(ahead)
    }
}

/// Numbers the data segments of all flows.
#[derive(Debug, Default)]
pub(super) struct Segments(BTreeMap<(usize, bool), Sent>);

impl Segments {
    /// A packet passes an interface when its host's clock shows `now`, nanoseconds: its data
    /// segment, if it has one.
    pub(super) fn on_packet(&mut self, event: &PacketEvent<'_>, now: u64) -> Option<Passed> {
        let ports = event.packet.ports();
        let flow = flow_of(ports).filter(|_| event.packet.protocol() == PROTOCOL_TCP)?;
        let segment = Segment::parse(event.packet.transport()).ok()?;
        // The direction, which both ends see.
        let sent = self.0.entry((flow, ports.0 < ports.1)).or_default();
        let seq = segment.header.seq.0;
        let is_syn = segment.header.flags.contains(Flags::SYN);
        if event.passing == Passing::Out {
            sent.host = Some(event.host);
        }
        if is_syn {
            sent.iss = seq;
            sent.end = sent.end.max(StreamOffset::FIRST_BYTE.0);
        }
        let length = event.packet.payload.len() as u64;
        if length == 0 {
            return None;
        }
        let offset = sent.position(seq.wrapping_add(u32::from(is_syn)));
        let is_retransmission = event.passing == Passing::Out && offset < sent.end;
        if event.passing == Passing::Out {
            let before = sent.transmissions.entry(offset).or_default();
            before.push((now, sent.count));
            sent.count += 1;
            sent.end = sent.end.max(offset + length);
        }
        Some(Passed {
            flow,
            number: sent.transmissions.get(&offset)?.last()?.1,
            offset,
            length,
            is_retransmission,
        })
    }

    /// The number of the last transmission by `host` that begins at `start` and left before its
    /// clock showed `now`, nanoseconds. What is found lost then may have left again at once.
    pub(super) fn lost(
        &self,
        flow: usize,
        host: Party,
        start: StreamOffset,
        now: u64,
    ) -> Option<u64> {
        let ways = [false, true].map(|way| self.0.get(&(flow, way)));
        let mut its = ways.into_iter().flatten();
        let sent = its.find(|sent| sent.host == Some(host))?;
        let left = sent.transmissions.get(&start.0)?.iter().rev();
        left.copied()
            .find(|(at, _)| *at < now)
            .map(|(_, number)| number)
    }
}
