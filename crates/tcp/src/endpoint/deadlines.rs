//! The deadlines of connections, the earliest one first.

use alloc::collections::BTreeSet;

use tack_base::Instant;

use super::id::ConnectionId;

/// A deadline and whose it is.
pub(super) type Key = (Instant, ConnectionId);

/// Keys in order. A tree: no peer can degrade it.
///
/// The first key is not in the tree. It is asked for all the time, and the only connection of an
/// endpoint moves its key twice a segment.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    first: Option<Key>,
    /// Later ones; none without a first.
    later: BTreeSet<Key>,
}

impl Deadlines {
    /// The earliest key.
    #[inline]
    pub(super) fn first(&self) -> Option<Key> {
        self.first
    }

    /// Adds a key that is not there.
    #[inline]
    pub(super) fn insert(&mut self, key: Key) {
        match self.first {
            None => self.first = Some(key),
            Some(first) if key < first => {
                self.first = Some(key);
                self.later.insert(first);
            }
            Some(_) => {
                self.later.insert(key);
            }
        }
    }

    /// Removes a key, if it is there.
    #[inline]
    pub(super) fn remove(&mut self, key: Key) {
        if self.first == Some(key) {
            self.first = self.later.pop_first();
        } else {
            self.later.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_come_in_order(
            operations in proptest::collection::vec((any::<bool>(), 0..6_u64, 0..4_u64), 0..80),
        ) {
            let (mut deadlines, mut model) = (Deadlines::default(), BTreeSet::new());
            for (adds, at, id) in operations {
                let key = (Instant::from_nanos(at), ConnectionId(id));
                if !adds {
                    deadlines.remove(key);
                    model.remove(&key);
                } else if model.insert(key) {
                    deadlines.insert(key);
                }
                prop_assert_eq!(deadlines.first(), model.first().copied());
            }
            let mut rest = Vec::new();
            while let Some(key) = deadlines.first() {
                rest.push(key);
                deadlines.remove(key);
            }
            prop_assert_eq!(rest, model.into_iter().collect::<Vec<_>>());
        }
    }
}
