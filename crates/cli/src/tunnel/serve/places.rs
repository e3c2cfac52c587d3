//! How much peers have open, in total and each of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tack::secure::PublicKey;

use crate::tunnel::pump::Limits;

/// Places that connections of peers take.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Taken>);

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

/// A place, for as long as it is held.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    peer: [u8; 32],
    /// How fast all that the peer has open may carry.
    pub(super) limits: Arc<Limits>,
}

impl Places {
    fn taken(&self) -> std::sync::MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many places each peer has taken.
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

    /// What limits each peer that has a place.
    pub(super) fn limits(&self) -> Vec<(PublicKey, Arc<Limits>)> {
        let taken = self.taken();
        let of_peer = taken.of_peer.iter();
        of_peer
            .map(|(key, of_peer)| (PublicKey::from(*key), Arc::clone(&of_peer.limits)))
            .collect()
    }

    /// A place for the peer with this key, unless so many are taken in total or by it already.
    pub(super) fn enter(
        self: &Arc<Self>,
        key: &PublicKey,
        max_total: u32,
        max_of_peer: u32,
    ) -> Option<Place> {
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
        Some(Place {
            places: Arc::clone(self),
            peer,
            limits,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
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
        let places = Arc::new(Places::default());
        let keys = [1, 2].map(|_| tack::secure::Identity::generate().unwrap().public_key());
        let first = places.enter(&keys[0], 3, 2).unwrap();
        let _second = places.enter(&keys[0], 3, 2).unwrap();
        assert!(places.enter(&keys[0], 3, 2).is_none());
        let _third = places.enter(&keys[1], 3, 2).unwrap();
        assert!(places.enter(&keys[1], 3, 2).is_none(), "three in total");
        assert!(
            Arc::ptr_eq(&first.limits, &_second.limits),
            "one rate for all of a peer"
        );
        drop(first);
        let _fourth = places.enter(&keys[1], 3, 2).unwrap();
        assert!(places.enter(&keys[0], 3, 2).is_none(), "three in total");
    }
}
