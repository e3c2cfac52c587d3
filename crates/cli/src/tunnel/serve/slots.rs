//! How much peers have open, in total and each of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tack::secure::PublicKey;

use crate::tunnel::pump::Limits;

/// Slots that connections of peers take.
#[derive(Debug, Default)]
pub(super) struct Slots(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    total: u32,
    of_peer: HashMap<[u8; 32], TakenByPeer>,
}

#[derive(Debug, Default)]
struct TakenByPeer {
    count: u32,
    limits: Arc<Limits>,
}

/// A slot, for as long as it is held.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    peer: [u8; 32],
    /// How fast all that the peer has open may carry.
    pub(super) limits: Arc<Limits>,
}

impl Slots {
    fn taken(&self) -> std::sync::MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many slots each peer has taken.
    pub(super) fn of_peers(&self) -> Vec<([u8; 32], u32)> {
        let taken = self.taken();
        let mut counts: Vec<_> = taken
            .of_peer
            .keys()
            .map(|key| (*key, taken.of_peer[key].count))
            .collect();
        counts.sort_unstable();
        counts
    }

    /// What limits each peer that has a slot.
    pub(super) fn limits(&self) -> Vec<(PublicKey, Arc<Limits>)> {
        let taken = self.taken();
        let of_peer = taken.of_peer.iter();
        of_peer
            .map(|(key, of_peer)| (PublicKey::from(*key), Arc::clone(&of_peer.limits)))
            .collect()
    }

    /// A slot for the peer with this key, unless so many are taken in total or by it already.
    pub(super) fn enter(
        self: &Arc<Self>,
        key: &PublicKey,
        max_total: u32,
        max_of_peer: u32,
    ) -> Option<Slot> {
        let peer = *key.as_bytes();
        let mut taken = self.taken();
        if taken.total >= max_total {
            return None;
        }
        let of_peer = taken.of_peer.entry(peer).or_default();
        if of_peer.count >= max_of_peer {
            if of_peer.count == 0 {
                taken.of_peer.remove(&peer);
            }
            return None;
        }
        of_peer.count += 1;
        let limits = Arc::clone(&of_peer.limits);
        taken.total += 1;
        Some(Slot {
            slots: Arc::clone(self),
            peer,
            limits,
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        taken.total -= 1;
        if let Some(of_peer) = taken.of_peer.get_mut(&self.peer) {
            of_peer.count -= 1;
            if of_peer.count == 0 {
                taken.of_peer.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_for_each_peer_and_given_back() {
        let slots = Arc::new(Slots::default());
        let keys = [1, 2].map(|_| tack::secure::Identity::generate().unwrap().public_key());
        let first = slots.enter(&keys[0], 3, 2).unwrap();
        let _second = slots.enter(&keys[0], 3, 2).unwrap();
        assert!(slots.enter(&keys[0], 3, 2).is_none());
        let _third = slots.enter(&keys[1], 3, 2).unwrap();
        assert!(slots.enter(&keys[1], 3, 2).is_none(), "three in total");
        assert!(
            Arc::ptr_eq(&first.limits, &_second.limits),
            "one rate for all of a peer"
        );
        drop(first);
        let _fourth = slots.enter(&keys[1], 3, 2).unwrap();
        assert!(slots.enter(&keys[0], 3, 2).is_none(), "three in total");
    }
}
