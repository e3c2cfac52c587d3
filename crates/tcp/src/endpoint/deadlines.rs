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

    /// Puts a key that is not there in the place of another one, or of none.
    #[inline]
    pub(super) fn replace(&mut self, from: Option<Key>, to: Option<Key>) {
        if self.later.is_empty() && self.first == from {
            self.first = to;
        } else {
            self.replace_among_others(from, to);
        }
    }

    fn replace_among_others(&mut self, from: Option<Key>, to: Option<Key>) {
        if let Some(from) = from {
            self.remove(from);
        }
        if let Some(to) = to {
            self.insert(to);
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
            operations in proptest::collection::vec((0..3, 0..6_u64, 0..4_u64, 0..6_u64), 0..80),
        ) {
            let (mut deadlines, mut model) = (Deadlines::default(), BTreeSet::new());
            for (operation, at, id, to) in operations {
                let key = |at| (Instant::from_nanos(at), ConnectionId(id));
                let (from, to) = (key(at), key(to));
                match operation {
                    0 => {
                        deadlines.remove(from);
                        model.remove(&from);
                    }
                    1 => {
                        if model.insert(from) {
                            deadlines.insert(from);
                        }
                    }
                    _ => {
                        let is_there = model.remove(&from);
                        if model.insert(to) {
                            deadlines.replace(is_there.then_some(from), Some(to));
                        } else if is_there {
                            deadlines.replace(Some(from), None);
                        }
                    }
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
