//! Names that transfers are about to take: the transfer that began first gets them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::holder::Holder;

/// A name in a directory: its device and inode, so that two paths to it are one.
type Key = (u64, u64, Vec<u8>);

/// The names that the transfers of a receiver reserve, and their holders.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<BTreeMap<Key, Arc<Holder>>>);

/// A name that no other transfer gets while this lives.
#[derive(Debug)]
pub(crate) struct Reservation {
    names: Arc<Names>,
    key: Key,
}

impl Names {
    /// Reserves `name` in the directory with this device and inode for `holder`.
    ///
    /// # Errors
    /// The transfer that has it.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        dir: (u64, u64),
        name: &[u8],
        holder: &Arc<Holder>,
    ) -> Result<Reservation, Arc<Holder>> {
        let key = (dir.0, dir.1, name.to_vec());
        let mut names = self.lock();
        if let Some(other) = names.get(&key) {
            return Err(Arc::clone(other));
        }
        names.insert(key.clone(), Arc::clone(holder));
        Ok(Reservation {
            names: Arc::clone(self),
            key,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Holder>>> {
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
        let (one, other) = (Holder::new(None), Holder::new(None));
        let first = names.reserve((1, 2), b"a", &one).unwrap();
        let holder = names.reserve((1, 2), b"a", &other).unwrap_err();
        assert!(Arc::ptr_eq(&holder, &one));
        assert!(
            names.reserve((1, 3), b"a", &other).is_ok(),
            "another directory"
        );
        drop(first);
        assert!(names.reserve((1, 2), b"a", &other).is_ok());
    }
}
