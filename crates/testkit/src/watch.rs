//! What every TCP owes the wire, whatever happens: checked on each segment that leaves.

use tack_wire::{Segment, SeqNum};

use crate::pair::Side;

/// Both directions of one connection, as seen where segments leave.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    directions: [Direction; 2],
}

#[derive(Debug, Default)]
struct Direction {
    /// Initial sequence number, once the SYN was seen.
    iss: Option<SeqNum>,
    /// Highest acknowledgement number sent.
    ack: Option<SeqNum>,
    /// Right edge of the window offered, and how coarse the window field is.
    edge: Option<SeqNum>,
    shift: u8,
    /// Window scaling was offered.
    scales: bool,
}

impl Watch {
    /// Initial sequence number of a side.
    pub(crate) fn origin(&self, side: Side) -> SeqNum {
        self.directions[side as usize].iss.unwrap_or_default()
    }

    /// A segment leaves `side`: is anything wrong with it?
    pub(crate) fn observe(&mut self, side: Side, segment: &Segment<'_>) -> Result<(), String> {
        let header = &segment.header;
        if header.flags.syn() {
            let own = &mut self.directions[side as usize];
            if own.iss.is_some_and(|iss| iss != header.seq) {
                // The ports are used by a new connection: what was said about the old one's numbers is void.
                *own = Direction::default();
                let other = &mut self.directions[1 - side as usize];
                (other.ack, other.edge) = (None, None);
            }
            let own = &mut self.directions[side as usize];
            own.iss = Some(header.seq);
            own.shift = header.options.window_scale.unwrap_or(0);
            own.scales = header.options.window_scale.is_some();
        }
        if header.flags.rst() {
            return Ok(());
        }
        let scaling = self.directions.iter().all(|direction| direction.scales);
        let offered = self.directions[1 - side as usize].edge;
        let own = &mut self.directions[side as usize];
        if header.flags.ack() {
            // RFC 9293 §3.4: what was acknowledged once stays so.
            if own.ack.is_some_and(|ack| header.ack.before(ack)) {
                return Err(format!(
                    "acknowledgement goes back from {:?} to {:?}",
                    own.ack, header.ack
                ));
            }
            own.ack = Some(header.ack);
            let shift = if scaling && !header.flags.syn() {
                own.shift
            } else {
                0
            };
            let edge = header.ack + (u32::from(header.window) << shift);
            // RFC 9293 §3.8.6 (SHLD-14): a window does not shrink, but for the coarseness of its field.
            let least = own.edge.map(|edge| edge - ((1 << shift) - 1));
            // The field of a SYN is not scaled, and may be unable to say more.
            let cut_off = header.flags.syn() && header.window == u16::MAX;
            if !cut_off && least.is_some_and(|least| edge.before(least)) {
                return Err(format!(
                    "the window shrinks by {}",
                    own.edge.map_or(0, |old| old.distance(edge))
                ));
            }
            own.edge = Some(
                own.edge
                    .map_or(edge, |old| if edge.after(old) { edge } else { old }),
            );
        }
        let end = header.seq + segment.sequence_len();
        if let (false, Some(offered)) = (header.flags.syn(), offered)
            // A zero-window probe may carry one byte more, and a FIN takes no buffer.
            && end.distance(offered) > 1 + i32::from(header.flags.fin())
        {
            return Err(format!(
                "{} bytes beyond the window of the other side",
                end.distance(offered)
            ));
        }
        Ok(())
    }
}
