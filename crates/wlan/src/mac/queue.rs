//! The transmit queue of one access category: limited by packets over all receivers, in the order
//! of its discipline.

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::discipline::{Admission, BoxedDiscipline, Fifo};
use super::originator::Originator;
use crate::frame::{Addba, AddbaKind, Msdu, NodeId};

/// An ADDBA frame that waits.
#[derive(Clone, Debug)]
pub struct QueuedAddba {
    /// Its receiver.
    pub to: NodeId,
    /// The frame.
    pub addba: Addba,
    /// How often it was sent.
    pub attempts: u8,
}

/// Packets of one category. Those that are on the air, or wait to be repeated, keep their place
/// until they are settled.
#[derive(Debug)]
pub struct TransmitQueue<M> {
    originators: Vec<Originator<M>>,
    /// The receivers with something to send, by whose turn it is.
    turns: BTreeSet<(u64, NodeId)>,
    len: usize,
    capacity: usize,
    arrivals: u64,
    discipline: BoxedDiscipline<M>,
    /// Links keep what becomes of acknowledgements of the transport.
    watches: bool,
    /// Links need an agreement.
    negotiates: bool,
    /// They go before packets.
    addbas: VecDeque<QueuedAddba>,
}

impl<M: Clone> TransmitQueue<M> {
    /// An empty queue for at most `capacity` packets.
    pub fn new(capacity: usize) -> Self {
        Self {
            originators: Vec::new(),
            turns: BTreeSet::new(),
            len: 0,
            capacity,
            arrivals: 0,
            discipline: Box::new(Fifo),
            watches: false,
            negotiates: false,
            addbas: VecDeque::new(),
        }
    }

    /// Lets originators ask for Block ACK agreements. Before anything is queued.
    pub fn negotiate(&mut self) {
        self.negotiates = true;
    }

    /// Adds an ADDBA frame. It takes the place of one of the same kind for the same receiver.
    pub fn push_addba(&mut self, to: NodeId, addba: Addba) {
        self.withdraw_addba(to, addba.kind);
        self.addbas.push_back(QueuedAddba {
            to,
            addba,
            attempts: 0,
        });
    }

    /// Takes out the ADDBA frame of this kind for `to`, if there is one.
    pub fn withdraw_addba(&mut self, to: NodeId, kind: AddbaKind) {
        let kind = core::mem::discriminant(&kind);
        let is_it = |queued: &QueuedAddba| {
            queued.to == to && core::mem::discriminant(&queued.addba.kind) == kind
        };
        self.addbas.retain(|queued| !is_it(queued));
    }

    /// The ADDBA frame that goes next: Block ACK requests go before it, packets after it.
    pub fn next_addba(&mut self) -> Option<&mut QueuedAddba> {
        let has_request = self.turns.first().is_some_and(|(turn, _)| *turn == 0);
        self.addbas.front_mut().filter(|_| !has_request)
    }

    /// The ADDBA frame with this sequence number was acknowledged, or sent as often as it may be.
    /// An earlier one stays when `is_over` says that it is not over.
    pub fn settle_addba(
        &mut self,
        seq: u16,
        is_over: impl FnOnce(&QueuedAddba) -> bool,
    ) -> Option<QueuedAddba> {
        let position = self
            .addbas
            .iter()
            .position(|queued| queued.addba.seq == seq)?;
        if !is_over(&self.addbas[position]) {
            return None;
        }
        self.addbas.remove(position)
    }

    /// Lets `discipline` decide about the packets that come from now on.
    pub fn set_discipline(&mut self, discipline: BoxedDiscipline<M>) {
        self.discipline = discipline;
    }

    /// Lets originators keep what becomes of acknowledgements of the transport.
    pub fn watch_acks(&mut self) {
        self.watches = true;
        self.originators.iter_mut().for_each(Originator::watch_acks);
    }

    /// Adds a packet for receiver `to`. Returns the packet that had to go for it, if the discipline
    /// says so.
    ///
    /// # Errors
    /// The packet, when the queue is full and nothing goes for it.
    pub fn push(&mut self, to: NodeId, mut msdu: Msdu<M>) -> Result<Option<Msdu<M>>, Msdu<M>> {
        let admission = match self.originators.get(to.index()) {
            Some(originator) => self.discipline.admit(&msdu, originator.waiting()),
            None => Admission::Append,
        };
        let mut gone = None;
        match admission {
            Admission::Append => {}
            Admission::Replace(position) => {
                match self.change(to, |originator| originator.replace(position, msdu)) {
                    Ok(old) => {
                        self.arrivals += 1;
                        return Ok(Some(old));
                    }
                    Err(back) => msdu = back,
                }
            }
            Admission::Supersede(position) => gone = self.remove(to, position),
        }
        if self.len >= self.capacity {
            return Err(msdu);
        }
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.change(to, |originator| originator.push(msdu, arrival));
        Ok(gone)
    }

    /// Takes out the packet at `position` of those that wait for `to` and were never sent.
    pub fn remove(&mut self, to: NodeId, position: usize) -> Option<Msdu<M>> {
        self.originator(to)?;
        self.change(to, |originator| originator.remove(position))
    }

    /// Lets something happen to the originator for `to`. Whatever enters it, leaves it or changes
    /// its turn does so in here, and the queue's length and order follow.
    pub fn change<R>(&mut self, to: NodeId, act: impl FnOnce(&mut Originator<M>) -> R) -> R {
        if self.originators.len() <= to.index() {
            let make = if self.negotiates {
                Originator::without_agreement
            } else {
                Originator::default
            };
            self.originators.resize_with(to.index() + 1, make);
            if self.watches {
                self.originators.iter_mut().for_each(Originator::watch_acks);
            }
        }
        let originator = &mut self.originators[to.index()];
        let (len, turn) = (originator.len(), originator.turn());
        let result = act(originator);
        self.len = self.len + originator.len() - len;
        let now = originator.turn();
        if now != turn {
            if let Some(turn) = turn {
                self.turns.remove(&(turn, to));
            }
            if let Some(turn) = now {
                self.turns.insert((turn, to));
            }
        }
        result
    }

    /// The originator for `to`, if there ever was something for it.
    pub fn originator(&self, to: NodeId) -> Option<&Originator<M>> {
        self.originators.get(to.index())
    }

    /// Whose turn it is: a request that is due, else the receiver of the packet that came first.
    #[inline]
    pub fn next_receiver(&self) -> Option<NodeId> {
        self.turns.first().map(|(_, to)| *to)
    }

    /// Packets, those on the air included.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when a packet can join only if another one goes for it.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    /// How many packets have left so far, for whatever reason.
    pub fn departures(&self) -> u64 {
        self.arrivals - self.len as u64
    }

    /// Nothing to send, no request either.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.addbas.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{AccessCategory, Class};
    use crate::mac::discipline::{Discipline, Waiting};

    fn msdu(to: u16) -> Msdu<()> {
        Msdu {
            src: NodeId::AP,
            dst: NodeId(to),
            len: 1_500,
            class: Class::Data,
            category: AccessCategory::BestEffort,
            payload: None,
        }
    }

    #[test]
    fn the_tail_is_dropped_over_all_receivers() {
        let mut queue = TransmitQueue::new(2);
        assert!(queue.push(NodeId(2), msdu(2)).is_ok());
        assert!(queue.push(NodeId(1), msdu(1)).is_ok());
        assert!(queue.push(NodeId(3), msdu(3)).is_err());
        assert_eq!(queue.next_receiver(), Some(NodeId(2)));
        let config = crate::mac::originator::tests::a54();
        queue.change(NodeId(2), |originator| {
            originator.prepare(&config, tack_base::Duration::ZERO, Vec::new())
        });
        assert_eq!((queue.len(), queue.departures()), (2, 0), "on the air");
        queue.change(NodeId(2), Originator::on_ack);
        assert_eq!((queue.len(), queue.departures()), (1, 1));
        assert_eq!(queue.next_receiver(), Some(NodeId(1)));
        assert!(queue.push(NodeId(3), msdu(3)).is_ok());
    }

    /// Says the same of every packet.
    #[derive(Debug)]
    struct Always(Admission);

    impl Discipline<()> for Always {
        fn admit(&mut self, _msdu: &Msdu<()>, _waiting: Waiting<'_, ()>) -> Admission {
            self.0
        }
    }

    #[test]
    fn a_replacement_needs_no_room_and_leaves_the_turn() {
        let mut queue = TransmitQueue::new(2);
        for (to, len) in [(1, 100), (2, 200)] {
            assert!(queue.push(NodeId(to), Msdu { len, ..msdu(to) }).is_ok());
        }
        queue.set_discipline(Box::new(Always(Admission::Replace(0))));
        let old = queue.push(
            NodeId(1),
            Msdu {
                len: 101,
                ..msdu(1)
            },
        );
        assert_eq!(old.unwrap().unwrap().len, 100);
        assert_eq!((queue.len(), queue.departures()), (2, 1));
        assert_eq!(queue.next_receiver(), Some(NodeId(1)), "its turn stays");
        // What was sent once is not offered for replacement; nothing else waits there, so the queue
        // is full.
        let config = crate::mac::originator::tests::a54();
        queue.change(NodeId(1), |originator| {
            originator.prepare(&config, tack_base::Duration::ZERO, Vec::new())
        });
        assert!(queue.push(NodeId(1), msdu(1)).is_err());
    }

    #[test]
    fn what_supersedes_goes_to_the_tail() {
        let mut queue = TransmitQueue::new(2);
        for (to, len) in [(1, 100), (2, 200)] {
            assert!(queue.push(NodeId(to), Msdu { len, ..msdu(to) }).is_ok());
        }
        queue.set_discipline(Box::new(Always(Admission::Supersede(0))));
        let old = queue.push(
            NodeId(1),
            Msdu {
                len: 101,
                ..msdu(1)
            },
        );
        assert_eq!(old.unwrap().unwrap().len, 100);
        assert_eq!((queue.len(), queue.departures()), (2, 1));
        assert_eq!(queue.next_receiver(), Some(NodeId(2)));
        let mut lens = |to| queue.remove(NodeId(to), 0).map(|msdu| msdu.len);
        assert_eq!((lens(2), lens(1), lens(1)), (Some(200), Some(101), None));
        assert!(queue.is_empty());
    }
}
