//! Names that transfers are about to take: the transfer that began first gets them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A name in a directory: its device and inode, so that two paths to it are one.
type Key = (u64, u64, Vec<u8>);

/// The names of all transfers of one receiver.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<BTreeSet<Key>>);

/// A name that no other transfer gets while this lives.
#[derive(Debug)]
pub(crate) struct Reservation {
    names: Arc<Names>,
    key: Key,
}

impl Names {
    /// Reserves `name` in the directory with this device and inode; `None` when another transfer has it.
    pub(crate) fn reserve(self: &Arc<Self>, dir: (u64, u64), name: &[u8]) -> Option<Reservation> {
        let key = (dir.0, dir.1, name.to_vec());
        self.lock().insert(key.clone()).then(|| Reservation {
            names: Arc::clone(self),
            key,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.names.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_free_again_when_its_transfer_lets_go() {
        let names = Arc::new(Names::default());
        let first = names.reserve((1, 2), b"a").unwrap();
        assert!(names.reserve((1, 2), b"a").is_none());
        assert!(names.reserve((1, 3), b"a").is_some(), "another directory");
        drop(first);
        assert!(names.reserve((1, 2), b"a").is_some());
    }
}
