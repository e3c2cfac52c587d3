//! Room for handshakes: how many may be under way, in all and for each network, and which one goes
//! when there are more.
//!
//! Nobody is turned away for being late. The oldest handshake of the network that has the most goes
//! instead: an honest one takes a round trip or two, and one that a hostile peer leaves open is
//! soon the oldest of its network. So a flood displaces itself, and an honest peer of the same
//! network only if a whole allowance of others arrive while its own is under way.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// A network whose handshakes are counted together: an IPv4 /24 or an IPv6 /64, which one person
/// can have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Network {
    V4([u8; 3]),
    V6([u8; 8]),
}

impl Network {
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => {
                let [a, b, c, _] = v4.octets();
                Self::V4([a, b, c])
            }
            IpAddr::V6(v6) => {
                let octets = v6.octets();
                Self::V6(std::array::from_fn(|at| octets[at]))
            }
        }
    }
}

/// The handshakes under way, each with what ends it.
#[derive(Debug)]
pub(super) struct HandshakeSlots<T> {
    total: usize,
    per_network: usize,
    next: u64,
    taken: BTreeMap<u64, (Network, T)>,
    /// Oldest first.
    networks: BTreeMap<Network, VecDeque<u64>>,
    /// The last one has the most, and among those the oldest.
    crowds: BTreeSet<(usize, Reverse<u64>, Network)>,
}

impl<T> HandshakeSlots<T> {
    /// At most `total` slots, of which one network has `per_network`; both at least 1.
    pub(super) fn new(total: usize, per_network: usize) -> Self {
        Self {
            total: total.max(1),
            per_network: per_network.max(1),
            next: 0,
            taken: BTreeMap::new(),
            networks: BTreeMap::new(),
            crowds: BTreeSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }

    /// A new slot for `network`, and what has to go for it.
    pub(super) fn enter(&mut self, network: Network, ending: T) -> (u64, Option<T>) {
        let own = self.networks.get(&network).map_or(0, VecDeque::len);
        let crowded = if own >= self.per_network {
            Some(network)
        } else if self.taken.len() >= self.total {
            self.crowds.last().map(|(_, _, network)| *network)
        } else {
            None
        };
        let oldest = crowded.and_then(|network| self.networks.get(&network)?.front().copied());
        let displaced = oldest.and_then(|oldest| self.leave(oldest));
        let slot = self.next;
        self.next += 1;
        self.taken.insert(slot, (network, ending));
        self.change(network, |slots| slots.push_back(slot));
        (slot, displaced)
    }

    /// Gives `slot` back; what would have ended it, unless it is gone already.
    pub(super) fn leave(&mut self, slot: u64) -> Option<T> {
        let (network, ending) = self.taken.remove(&slot)?;
        self.change(network, |slots| slots.retain(|other| *other != slot));
        Some(ending)
    }

    fn change(&mut self, network: Network, change: impl FnOnce(&mut VecDeque<u64>)) {
        let rank = |slots: &VecDeque<u64>| {
            let oldest = slots.front()?;
            Some((slots.len(), Reverse(*oldest), network))
        };
        let slots = self.networks.entry(network).or_default();
        if let Some(old) = rank(slots) {
            self.crowds.remove(&old);
        }
        change(slots);
        match rank(slots) {
            Some(new) => _ = self.crowds.insert(new),
            None => _ = self.networks.remove(&network),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::of(text.parse().unwrap())
    }

    #[test]
    fn a_network_is_what_one_person_may_have() {
        assert_eq!(network("192.0.2.1"), network("192.0.2.254"));
        assert_eq!(network("192.0.2.1"), network("::ffff:192.0.2.77"));
        assert_ne!(network("192.0.2.1"), network("192.0.3.1"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1:2:3"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
    }

    #[test]
    fn a_network_displaces_its_own_oldest() {
        let mut slots = HandshakeSlots::new(10, 2);
        let (a, b) = (network("192.0.2.1"), network("198.51.100.1"));
        assert_eq!(slots.enter(b, 'b').1, None);
        assert_eq!(slots.enter(a, '1').1, None);
        let (second, displaced) = slots.enter(a, '2');
        assert_eq!(displaced, None);
        assert_eq!(slots.enter(a, '3').1, Some('1'));
        assert_eq!(slots.leave(second), Some('2'));
        assert_eq!(slots.leave(second), None);
        assert_eq!(slots.enter(a, '4').1, None);
        assert_eq!(slots.len(), 3);
    }

    #[test]
    fn the_largest_crowd_gives_way() {
        let mut slots = HandshakeSlots::new(5, 3);
        let flood = network("192.0.2.1");
        let (honest, _) = slots.enter(network("198.51.100.1"), 0);
        for n in 1..=3 {
            assert_eq!(slots.enter(flood, n).1, None);
        }
        assert_eq!(slots.enter(network("203.0.113.1"), 4).1, None);
        // All five are taken: of the three the oldest goes.
        assert_eq!(slots.enter(network("2001:db8::1"), 5).1, Some(1));
        assert_eq!(slots.enter(network("2001:db8:0:1::1"), 6).1, Some(2));
        // Now all have one each: the oldest of all goes.
        assert_eq!(slots.enter(network("2001:db8:0:2::1"), 7).1, Some(0));
        assert_eq!(slots.leave(honest), None);
        assert_eq!(slots.len(), 5);
    }

    #[test]
    fn places_given_back_leave_nothing_behind() {
        let mut slots = HandshakeSlots::new(64, 16);
        let mut held = VecDeque::new();
        for n in 0..10_000_u32 {
            let network = Network::V4([0, (n % 7) as u8, (n % 3) as u8]);
            held.push_back(slots.enter(network, n).0);
            if n % 3 != 0 {
                held.pop_front().and_then(|slot| slots.leave(slot));
            }
        }
        assert!(slots.len() <= 64);
        held.into_iter().for_each(|slot| _ = slots.leave(slot));
        let left = (slots.len(), slots.networks.len(), slots.crowds.len());
        assert_eq!(left, (0, 0, 0));
    }
}
