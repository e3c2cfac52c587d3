//! How many connections each peer has that was let in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tack_pairing::PublicKey;

/// The connections of the peers that were let in, so that none of them takes the room of others.
#[derive(Debug)]
pub(super) struct Places {
    most_of_peer: usize,
    taken: Mutex<BTreeMap<[u8; 32], usize>>,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    peer: [u8; 32],
}

impl Places {
    pub(super) fn new(most_of_peer: usize) -> Arc<Self> {
        Arc::new(Self {
            most_of_peer,
            taken: Mutex::default(),
        })
    }

    /// A place for one more connection of this peer; `None` where it has as many as it may have.
    pub(super) fn take(self: &Arc<Self>, peer: &PublicKey) -> Option<Place> {
        let peer = *peer.as_bytes();
        let mut taken = self.taken();
        let of_peer = taken.entry(peer).or_default();
        if *of_peer >= self.most_of_peer {
            return None;
        }
        *of_peer += 1;
        Some(Place {
            places: Arc::clone(self),
            peer,
        })
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        if let Some(of_peer) = taken.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                taken.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_takes_its_own_places_only() {
        let places = Places::new(2);
        let (one, other) = (PublicKey::from([1; 32]), PublicKey::from([2; 32]));
        let (first, second) = (places.take(&one), places.take(&one));
        assert!(first.is_some() && second.is_some());
        assert!(places.take(&one).is_none());
        let others = places.take(&other);
        assert!(others.is_some());
        drop(first);
        assert!(places.take(&one).is_some());
        drop((second, others));
        assert!(places.taken().is_empty(), "nobody is remembered");
    }
}
