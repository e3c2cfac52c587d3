//! What an endpoint that stands for every host keeps for the application: SYNs without an answer,
//! connections on their way to who admitted them, datagrams.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;

use tack_base::Instant;
use tack_tcp::{ConnectionId, SynFilter, Tuple, Verdict};
use tack_wire::{Ecn, Segment, ip};

use crate::waiters::Waiters;
use crate::wakers::Wakers;

/// The longest packet with a SYN that is kept: both headers at their longest, and extension headers
/// of IPv6. One with data is longer; its sender repeats it without (RFC 7413 §4.1.3).
pub(crate) const LONGEST_SYN: usize = 256;
/// What a datagram in the queue counts besides its payload, bytes.
const DATAGRAM_OVERHEAD: usize = 64;

/// A UDP datagram, on its way from the client to another host or back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Who sent it.
    pub from: SocketAddr,
    /// Whom it is for.
    pub to: SocketAddr,
    /// The payload, at most 65,507 bytes over IPv4 and 65,487 over IPv6: what one packet holds.
    pub payload: Vec<u8>,
}

/// What becomes of SYNs that the core has no place for yet. The core asks for each, under the lock;
/// who hands it a SYN sets the answer before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<AtomicU8>);

/// Values of a [`Gate`].
const HOLD: u8 = 0;
pub(crate) const ADMIT: u8 = 1;
pub(crate) const REFUSE: u8 = 2;
/// The core has asked while the gate was on [`HOLD`].
const ASKED: u8 = 3;

impl Gate {
    pub(crate) fn filter(&self) -> SynFilter {
        let gate = self.clone();
        SynFilter::new(move |_| match gate.0.load(Ordering::Relaxed) {
            ADMIT => Verdict::Accept,
            REFUSE => Verdict::Refuse,
            _ => {
                gate.0.store(ASKED, Ordering::Relaxed);
                Verdict::Ignore
            }
        })
    }

    /// The answer to the next question.
    pub(crate) fn open(&self, answer: u8) {
        self.0.store(answer, Ordering::Relaxed);
    }

    pub(crate) fn close(&self) {
        self.0.store(HOLD, Ordering::Relaxed);
    }

    /// Whether the core has asked since the gate was closed last; closes it.
    pub(crate) fn take_asked(&self) -> bool {
        self.0.swap(HOLD, Ordering::Relaxed) == ASKED
    }
}

/// A SYN that waits for the application's answer.
#[derive(Debug)]
pub(crate) struct Held {
    /// The whole IP packet.
    pub(crate) packet: Box<[u8]>,
    pub(crate) arrived: Instant,
}

impl Held {
    /// Calls `take` with what the core wants of a segment.
    pub(crate) fn with_segment(&self, take: impl FnOnce(SocketAddr, &Segment<'_>, Ecn)) {
        // It was read before.
        if let Ok(outer) = ip::parse(&self.packet)
            && let Ok(segment) = Segment::parse(outer.payload)
        {
            take(SocketAddr::new(outer.dst, 0), &segment, outer.ecn);
        }
    }
}

/// A SYN that the core has.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    pub(crate) connected: Option<ConnectionId>,
    pub(crate) waiters: Waiters,
}

/// Everything that is kept.
#[derive(Debug)]
pub(crate) struct Intercepted {
    gate: Gate,
    /// With the number under which each was kept first.
    held: BTreeMap<Tuple, (u64, Held)>,
    /// Those of `held` that the application has not been told of; some may be gone.
    untold: VecDeque<(u64, Tuple)>,
    next_number: u64,
    max_held: usize,
    admitted: BTreeMap<Tuple, Admitted>,
    datagrams: VecDeque<Datagram>,
    datagram_bytes: usize,
    max_datagram_bytes: usize,
    /// Tasks that wait for an attempt.
    pub(crate) attempts: Waiters,
    /// Tasks that wait for a datagram.
    pub(crate) readers: Waiters,
}

impl Intercepted {
    pub(crate) fn new(gate: Gate, max_held: usize, max_datagram_bytes: usize) -> Self {
        Self {
            gate,
            held: BTreeMap::new(),
            untold: VecDeque::new(),
            next_number: 0,
            max_held: max_held.max(1),
            admitted: BTreeMap::new(),
            datagrams: VecDeque::new(),
            datagram_bytes: 0,
            max_datagram_bytes,
            attempts: Waiters::default(),
            readers: Waiters::default(),
        }
    }

    pub(crate) fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// Keeps a SYN. A repeated one takes the place of the earlier one, whose timestamp is older.
    pub(crate) fn hold(&mut self, name: Tuple, held: Held, wakers: &mut Wakers) {
        if let Some((_, earlier)) = self.held.get_mut(&name) {
            *earlier = held;
        } else if self.held.len() < self.max_held {
            let number = self.next_number;
            self.next_number += 1;
            self.held.insert(name, (number, held));
            // Those that are gone do not gather.
            if self.untold.len() >= 2 * self.max_held {
                let mut untold = std::mem::take(&mut self.untold);
                untold.retain(|entry| self.is_held(entry));
                self.untold = untold;
            }
            self.untold.push_back((number, name));
            self.attempts.wake(wakers);
        }
    }

    fn is_held(&self, (number, name): &(u64, Tuple)) -> bool {
        self.held.get(name).is_some_and(|(it, _)| it == number)
    }

    /// One that the application is told of now.
    pub(crate) fn next(&mut self) -> Option<Tuple> {
        loop {
            let entry = self.untold.pop_front()?;
            if self.is_held(&entry) {
                return Some(entry.1);
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &Tuple) -> Option<Held> {
        self.held.remove(name).map(|(_, held)| held)
    }

    /// The SYN, which the core gets now.
    pub(crate) fn admit(&mut self, name: Tuple) -> Option<Held> {
        let held = self.remove(&name)?;
        self.admitted.insert(name, Admitted::default());
        Some(held)
    }

    pub(crate) fn is_admitted(&self, name: &Tuple) -> bool {
        self.admitted.contains_key(name)
    }

    /// Its connection is established; false where nobody waits for it.
    pub(crate) fn connected(
        &mut self,
        name: &Tuple,
        id: ConnectionId,
        wakers: &mut Wakers,
    ) -> bool {
        let Some(admitted) = self.admitted.get_mut(name) else {
            return false;
        };
        if admitted.connected.is_some() {
            return false;
        }
        admitted.connected = Some(id);
        admitted.waiters.wake(wakers);
        true
    }

    /// The connection that was admitted, once it is established.
    pub(crate) fn take_connected(&mut self, name: &Tuple) -> Poll<ConnectionId> {
        match self.admitted.get(name).and_then(|it| it.connected) {
            Some(id) => {
                self.admitted.remove(name);
                Poll::Ready(id)
            }
            None => Poll::Pending,
        }
    }

    pub(crate) fn forget(&mut self, name: &Tuple) -> Option<Admitted> {
        self.admitted.remove(name)
    }

    /// Where the task waits that has admitted it.
    pub(crate) fn waiters_of(&mut self, name: &Tuple) -> Option<&mut Waiters> {
        self.admitted
            .get_mut(name)
            .map(|admitted| &mut admitted.waiters)
    }

    /// Keeps a datagram, if there is room for it.
    pub(crate) fn push_datagram(&mut self, datagram: Datagram, wakers: &mut Wakers) {
        let size = datagram.payload.len() + DATAGRAM_OVERHEAD;
        if self.datagram_bytes + size <= self.max_datagram_bytes {
            self.datagram_bytes += size;
            self.datagrams.push_back(datagram);
            self.readers.wake(wakers);
        }
    }

    pub(crate) fn next_datagram(&mut self) -> Option<Datagram> {
        let datagram = self.datagrams.pop_front()?;
        self.datagram_bytes -= datagram.payload.len() + DATAGRAM_OVERHEAD;
        Some(datagram)
    }

    /// Wakes all that wait, because nothing more comes.
    pub(crate) fn wake_all(&mut self, wakers: &mut Wakers) {
        self.attempts.wake(wakers);
        self.readers.wake(wakers);
        for admitted in self.admitted.values_mut() {
            admitted.waiters.wake(wakers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(port: u16) -> Tuple {
        Tuple {
            local_port: 80,
            remote_port: port,
            peer: SocketAddr::from(([192, 0, 2, 1], 0)),
        }
    }

    fn syn(byte: u8) -> Held {
        Held {
            packet: Box::new([byte]),
            arrived: Instant::ZERO,
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut wakers = Wakers::default();
        let mut kept = Intercepted::new(Gate::default(), 3, 1000);
        for port in 1..=100 {
            kept.hold(name(port), syn(0), &mut wakers);
            // The second of all comes again and again, and the newest counts.
            kept.hold(name(2), syn(port as u8), &mut wakers);
        }
        assert_eq!(kept.held.len(), 3);
        assert_eq!(kept.held[&name(2)].1.packet[0], 100);
        assert_eq!(kept.next(), Some(name(1)));
        // It was told, and goes without an answer: its name may come again.
        for _ in 0..100 {
            kept.remove(&name(1));
            kept.hold(name(1), syn(0), &mut wakers);
        }
        assert!(kept.untold.len() <= 6, "{}", kept.untold.len());
        kept.remove(&name(2));
        assert_eq!(kept.next(), Some(name(3)));
        assert_eq!(kept.next(), Some(name(1)), "once");
        assert_eq!(kept.next(), None);

        for _ in 0..100 {
            let (from, to) = (name(1).peer, name(2).peer);
            let payload = vec![0; 100];
            kept.push_datagram(Datagram { from, to, payload }, &mut wakers);
        }
        assert_eq!(kept.datagrams.len(), 6);
        while kept.next_datagram().is_some() {}
        assert_eq!(kept.datagram_bytes, 0);
    }

    #[test]
    fn a_connection_goes_to_who_admitted_it() {
        let mut wakers = Wakers::default();
        let mut kept = Intercepted::new(Gate::default(), 3, 0);
        let id = tack_tcp::Endpoint::new(tack_tcp::EndpointConfig::new([0; 16]))
            .connect(
                Instant::ZERO,
                name(1).peer,
                1,
                0,
                &tack_tcp::Config::default(),
            )
            .unwrap();
        assert!(!kept.connected(&name(1), id, &mut wakers));
        kept.hold(name(1), syn(0), &mut wakers);
        assert!(kept.admit(name(1)).is_some() && kept.admit(name(1)).is_none());
        assert!(kept.take_connected(&name(1)).is_pending());
        assert!(kept.connected(&name(1), id, &mut wakers));
        assert!(!kept.connected(&name(1), id, &mut wakers), "once");
        assert_eq!(kept.take_connected(&name(1)), Poll::Ready(id));
        assert!(!kept.is_admitted(&name(1)));
    }
}
