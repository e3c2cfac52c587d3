//! What every TCP owes the wire, whatever happens: checked on each segment that leaves.
//!
//! A pair of ports may carry one connection after the other, and a SYN that is replayed after the
//! close opens one at the listener alone. So each side has incarnations, with different initial
//! sequence numbers, and each is checked against what was sent to it, not by what was said to the
//! one before.

use tack_wire::{Segment, SeqNum};

use crate::side::Side;

/// Both directions between two ports, as seen where segments leave.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// By side, oldest first; the last one is the one that speaks.
    incarnations: [Vec<Incarnation>; 2],
}

/// One side of one connection.
#[derive(Debug)]
struct Incarnation {
    /// Initial sequence number.
    iss: SeqNum,
    /// That of the incarnation of the other side which it speaks to, once it acknowledges
    /// anything.
    peer: Option<SeqNum>,
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
        let newest = self.incarnations[side as usize].last();
        newest.map_or(SeqNum::default(), |incarnation| incarnation.iss)
    }

    /// A segment leaves `side`: is anything wrong with it?
    pub(crate) fn observe(&mut self, side: Side, segment: &Segment<'_>) -> Result<(), String> {
        let header = &segment.header;
        let [client, server] = &mut self.incarnations;
        let (own, others) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        if header.flags.syn() {
            if own.last().is_none_or(|newest| newest.iss != header.seq) {
                own.push(Incarnation {
                    iss: header.seq,
                    peer: None,
                    ack: None,
                    edge: None,
                    shift: header.options.window_scale.unwrap_or(0),
                    scales: false,
                });
            }
            if let Some(newest) = own.last_mut() {
                newest.scales = header.options.window_scale.is_some();
            }
        }
        if header.flags.rst() {
            return Ok(());
        }
        let Some(own) = own.last_mut() else {
            return Err("something other than a SYN opens the connection".to_string());
        };
        if own.peer.is_none() && header.flags.ack() {
            own.peer = if header.flags.syn() {
                Some(header.ack - 1)
            } else {
                others.last().map(|newest| newest.iss)
            };
        }
        // Whose SYN it had, and whether that one speaks to it: a replayed SYN comes from who speaks
        // to another.
        let other = others
            .iter()
            .rev()
            .find(|other| own.peer == Some(other.iss));
        if header.flags.ack() {
            let scaling = own.scales && other.is_some_and(|other| other.scales);
            own.announce(segment, scaling)?;
        }
        let other = other.filter(|other| other.peer.is_none_or(|iss| iss == own.iss));
        let end = header.seq + segment.sequence_len();
        if let (false, Some(offered)) = (header.flags.syn(), other.and_then(|other| other.edge))
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

impl Incarnation {
    /// It acknowledges and offers a window. `scaling` says that both sides agreed to scale.
    fn announce(&mut self, segment: &Segment<'_>, scaling: bool) -> Result<(), String> {
        let header = &segment.header;
        // RFC 9293 §3.4: what was acknowledged once stays so.
        if self.ack.is_some_and(|ack| header.ack.before(ack)) {
            return Err(format!(
                "acknowledgement goes back from {:?} to {:?}",
                self.ack, header.ack
            ));
        }
        self.ack = Some(header.ack);
        let shift = if scaling && !header.flags.syn() {
            self.shift
        } else {
            0
        };
        let edge = header.ack + (u32::from(header.window) << shift);
        // RFC 9293 §3.8.6 (SHLD-14): a window does not shrink, but for the coarseness of its field.
        let least = self.edge.map(|edge| edge - ((1 << shift) - 1));
        // The field of a SYN is not scaled, and may be unable to say more.
        let cut_off = header.flags.syn() && header.window == u16::MAX;
        if !cut_off && least.is_some_and(|least| edge.before(least)) {
            return Err(format!(
                "the window shrinks by {}",
                self.edge.map_or(0, |old| old.distance(edge))
            ));
        }
        let old = self.edge.unwrap_or(edge);
        self.edge = Some(if edge.after(old) { edge } else { old });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tack_wire::{Flags, Header};

    use super::*;

    fn observe(
        watch: &mut Watch,
        side: Side,
        flags: Flags,
        seq: u32,
        ack: u32,
        len: usize,
    ) -> Result<(), String> {
        let header = Header {
            seq: SeqNum(seq),
            ack: SeqNum(ack),
            flags,
            window: 1000,
            ..Header::default()
        };
        let payload = vec![0; len];
        let payload = &payload[..];
        watch.observe(side, &Segment { header, payload })
    }

    const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

    /// A connection with 5,000 bytes from the client, up to its end.
    fn over() -> Watch {
        use Side::{Client, Server};
        let mut watch = Watch::default();
        observe(&mut watch, Client, Flags::SYN, 100, 0, 0).expect("a SYN");
        observe(&mut watch, Server, SYN_ACK, 900, 101, 0).expect("its answer");
        for sent in (0..5000).step_by(500) {
            observe(&mut watch, Client, Flags::ACK, 101 + sent, 901, 500).expect("data");
            observe(&mut watch, Server, Flags::ACK, 901, 601 + sent, 0).expect("its answer");
        }
        watch
    }

    /// The listener knows no better than to answer; the client in TIME-WAIT says where it stands,
    /// beyond any window that the answer offers.
    #[test]
    fn a_replayed_syn_after_the_close_is_no_violation() {
        use Side::{Client, Server};
        let mut watch = over();
        for _ in 0..2 {
            observe(&mut watch, Server, SYN_ACK, 70_000, 101, 0).expect("a new connection");
            observe(&mut watch, Client, Flags::ACK, 5101, 901, 0).expect("a challenge");
        }
    }

    /// What a SYN says of window scaling holds when it is replayed, too.
    #[test]
    fn a_replayed_syn_agrees_on_scaling() {
        use Side::{Client, Server};
        let mut watch = Watch::default();
        let mut observe = |side, flags, seq, ack, window| {
            let mut header = Header {
                seq: SeqNum(seq),
                ack: SeqNum(ack),
                flags,
                window,
                ..Header::default()
            };
            header.options.window_scale = flags.syn().then_some(1);
            let payload = &[];
            watch.observe(side, &Segment { header, payload })
        };
        observe(Client, Flags::SYN, 100, 0, 65_535).expect("a SYN");
        for iss in [900, 70_000] {
            observe(Server, SYN_ACK, iss, 101, 65_535).expect("its answer");
            observe(Client, Flags::ACK, 101, 901, 32_768).expect("half as much, twice");
            observe(Server, Flags::ACK, iss + 1, 101, 32_768).expect("half as much, twice");
        }
    }

    #[test]
    fn a_new_connection_on_the_same_ports_starts_afresh() {
        use Side::{Client, Server};
        let mut watch = over();
        observe(&mut watch, Client, Flags::SYN, 80_000, 0, 0).expect("a SYN");
        observe(&mut watch, Server, SYN_ACK, 70_000, 80_001, 0).expect("its answer");
        observe(&mut watch, Client, Flags::ACK, 80_001, 70_001, 500).expect("data");
        observe(&mut watch, Client, Flags::ACK, 80_501, 70_001, 600)
            .expect_err("1,100 bytes do not fit 1,000");
    }

    #[test]
    fn each_connection_is_held_to_its_own_window() {
        use Side::{Client, Server};
        let mut watch = over();
        observe(&mut watch, Client, Flags::ACK, 5101, 901, 1100).expect_err("too much");
        // What the replay draws offers nothing to the connection that is there.
        observe(&mut watch, Server, SYN_ACK, 70_000, 101, 0).expect("a new connection");
        observe(&mut watch, Client, Flags::ACK, 5101, 901, 1100).expect_err("still too much");
        observe(&mut watch, Client, Flags::ACK, 5101, 900, 0).expect_err("it goes back");
    }
}
