//! Small records in the place of connections, by name and by deadline.

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use tack_base::Instant;

use super::table::Tuple;

/// Records of one kind. Trees: no peer can degrade them, and there is no hash order to depend on.
#[derive(Debug)]
pub(super) struct Records<T> {
    by_name: BTreeMap<Tuple, (Instant, T)>,
    by_deadline: BTreeSet<(Instant, Tuple)>,
}

impl<T> Records<T> {
    /// Bytes of heap that a record takes, with its places in the trees, whose nodes are two thirds
    /// full on average.
    pub(super) const SIZE: usize =
        (size_of::<(Tuple, (Instant, T))>() + size_of::<(Instant, Tuple)>()) * 3 / 2;

    pub(super) const fn new() -> Self {
        Self {
            by_name: BTreeMap::new(),
            by_deadline: BTreeSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Bytes of heap held, about.
    pub(super) fn memory(&self) -> usize {
        self.len() * Self::SIZE
    }

    pub(super) fn contains(&self, name: &Tuple) -> bool {
        self.by_name.contains_key(name)
    }

    pub(super) fn get_mut(&mut self, name: &Tuple) -> Option<&mut T> {
        self.by_name.get_mut(name).map(|(_, record)| record)
    }

    /// The names of all records.
    pub(super) fn names(&self) -> impl Iterator<Item = Tuple> {
        self.by_name.keys().copied()
    }

    /// Adds a record, in the place of any other of this name.
    pub(super) fn insert(&mut self, name: Tuple, deadline: Instant, record: T) {
        if let Some((former, _)) = self.by_name.insert(name, (deadline, record)) {
            self.by_deadline.remove(&(former, name));
        }
        self.by_deadline.insert((deadline, name));
    }

    pub(super) fn remove(&mut self, name: &Tuple) -> Option<T> {
        let (deadline, record) = self.by_name.remove(name)?;
        self.by_deadline.remove(&(deadline, *name));
        Some(record)
    }

    /// Moves the deadline of a record.
    pub(super) fn postpone(&mut self, name: &Tuple, deadline: Instant) {
        if let Some((former, _)) = self.by_name.get_mut(name)
            && *former != deadline
        {
            self.by_deadline.remove(&(*former, *name));
            *former = deadline;
            self.by_deadline.insert((deadline, *name));
        }
    }

    /// The earliest deadline, and whose it is.
    pub(super) fn first(&self) -> Option<(Instant, Tuple)> {
        self.by_deadline.first().copied()
    }

    /// Removes every record of a local port.
    pub(super) fn remove_port(&mut self, local_port: u16) -> impl Iterator<Item = (Tuple, T)> {
        let from = Tuple {
            local_port,
            remote_port: 0,
            peer: SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)),
        };
        core::iter::from_fn(move || {
            let name = *self.by_name.range(from..).next()?.0;
            if name.local_port != local_port {
                return None;
            }
            self.remove(&name).map(|record| (name, record))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(local_port: u16, remote_port: u16) -> Tuple {
        Tuple {
            local_port,
            remote_port,
            peer: SocketAddr::from(([192, 0, 2, 1], 4000)),
        }
    }

    #[test]
    fn names_and_deadlines_stay_in_step() {
        let at = Instant::from_millis;
        let mut records = Records::new();
        records.insert(name(80, 1), at(10), 'a');
        records.insert(name(80, 2), at(20), 'b');
        records.insert(name(81, 1), at(30), 'c');
        records.insert(name(80, 2), at(5), 'd');
        assert_eq!(records.first(), Some((at(5), name(80, 2))));
        records.postpone(&name(80, 2), at(40));
        assert_eq!(records.first(), Some((at(10), name(80, 1))));
        let removed: alloc::vec::Vec<_> = records.remove_port(80).map(|(_, kind)| kind).collect();
        assert_eq!(removed, ['a', 'd']);
        assert_eq!(records.remove(&name(81, 1)), Some('c'));
        assert_eq!((records.len(), records.first()), (0, None));
    }
}
