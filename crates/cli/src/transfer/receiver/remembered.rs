//! What a receiver remembers of a transfer from one connection to the next: whether its user
//! accepted it, and how many bytes came.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::part;
use crate::transfer::channel::PeerKey;
use crate::transfer::groups::GROUP;
use crate::transfer::protocol::Hello;

/// Interrupted transfers that are remembered. Beyond, the one whose time ends first is forgotten.
const MOST: usize = 1024;
/// Longest time that a transfer is remembered; its sender says how long it tries to return.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A transfer is known by the peer's key, and the number that its sender drew for it.
///
/// A connection in clear text has no key. An attacker who reads the number on the path can then
/// continue the transfer, and nobody is asked again. Such an attacker can also write into the
/// accepted connection. Others would have to guess 128 random bits.
type Key = (PeerKey, [u8; 16]);

/// The transfers that are under way or may go on.
#[derive(Debug, Default)]
pub(crate) struct Transfers(Mutex<BTreeMap<Key, Entry>>);

#[derive(Debug)]
struct Entry {
    memory: Arc<Memory>,
    /// Connections that have it: the old one may end after the new one has begun.
    connections: usize,
    /// When it is forgotten, if no connection has it.
    until: Instant,
}

#[derive(Debug, Default)]
struct Memory {
    /// How the sender greeted when the user accepted the transfer.
    accepted: Mutex<Option<Hello>>,
    /// Bytes of files that came and need not come again.
    arrived: AtomicU64,
}

impl Memory {
    fn accepted(&self) -> MutexGuard<'_, Option<Hello>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection of a transfer.
#[derive(Debug)]
pub(super) struct Transfer<'a> {
    transfers: &'a Transfers,
    key: Key,
    memory: Arc<Memory>,
    /// Bytes of the present file that came over this connection.
    of_file: Cell<u64>,
    /// Bytes of the present file that come again if the connection is lost.
    at_stake: Cell<u64>,
    /// How long the transfer is remembered afterwards.
    kept: Cell<Duration>,
}

impl Transfers {
    /// A connection of a transfer begins: the first one, or one that goes on.
    pub(super) fn begin(&self, owner: &PeerKey, hello: &Hello) -> Transfer<'_> {
        let (key, now) = ((*owner, hello.session), Instant::now());
        let mut entries = self.lock();
        entries.retain(|_, entry| entry.connections > 0 || entry.until > now);
        let entry = entries.entry(key).or_insert_with(|| Entry {
            memory: Arc::default(),
            connections: 0,
            until: now,
        });
        entry.connections += 1;
        Transfer {
            transfers: self,
            key,
            memory: Arc::clone(&entry.memory),
            of_file: Cell::default(),
            at_stake: Cell::default(),
            kept: Cell::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transfer<'_> {
    /// True when the user accepted this transfer, as announced here.
    pub(super) fn is_accepted(&self, hello: &Hello) -> bool {
        self.memory.accepted().as_ref() == Some(hello)
    }

    /// The user accepted it.
    pub(super) fn accept(&self, hello: &Hello) {
        *self.memory.accepted() = Some(hello.clone());
    }

    /// The content of a file begins. One that has a part loses less than a group with the
    /// connection, any other one all that came: the receiver keeps none of it.
    pub(super) fn begin_file(&self, has_part: bool) {
        self.of_file.set(0);
        self.at_stake
            .set(if has_part { GROUP } else { part::SMALL });
    }

    /// The content is complete.
    pub(super) fn end_file(&self) {
        self.of_file.set(0);
    }

    /// Bytes of a file came: how many came over all connections.
    pub(super) fn arrive(&self, bytes: u64) -> u64 {
        self.of_file.set(self.of_file.get().saturating_add(bytes));
        let before = self.memory.arrived.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes)
    }

    /// The connection was lost, and the sender tries to return for so long.
    pub(super) fn may_return(&self, within: Duration) {
        self.kept.set(within.min(LONGEST));
    }
}

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        let again = self.of_file.get().min(self.at_stake.get());
        self.memory.arrived.fetch_sub(again, Ordering::Relaxed);
        let mut entries = self.transfers.lock();
        let Some(entry) = entries.get_mut(&self.key) else {
            return;
        };
        entry.connections -= 1;
        let now = Instant::now();
        if self.kept.get().is_zero() {
            // It has ended. A connection that was superseded may still be on its way to its end.
            *self.memory.accepted() = None;
        }
        entry.until = now + self.kept.get();
        entries.retain(|_, entry| entry.connections > 0 || entry.until > now);
        let idle = entries.iter().filter(|(_, entry)| entry.connections == 0);
        if idle.clone().count() > MOST
            && let Some((key, _)) = idle.min_by_key(|(_, entry)| entry.until)
        {
            let key = *key;
            entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::names::RULES;
    use crate::transfer::protocol::Taken;

    const RETURN: Duration = Duration::from_secs(600);

    fn hello(number: u64) -> Hello {
        let mut session = [0; 16];
        session[..8].copy_from_slice(&number.to_be_bytes());
        Hello {
            names: RULES,
            session,
            returns: 600,
            taken: Taken::AsReceiver,
            dry_run: false,
            delete: false,
            files: 1,
            bytes: 2,
        }
    }

    #[test]
    fn what_was_accepted_is_the_same_transfer_of_the_same_peer() {
        let (transfers, hello) = (Transfers::default(), hello(1));
        let first = transfers.begin(&[1; 32], &hello);
        assert!(!first.is_accepted(&hello));
        first.accept(&hello);
        first.may_return(RETURN);
        drop(first);
        let more = Hello {
            bytes: 3,
            ..hello.clone()
        };
        let again = transfers.begin(&[1; 32], &hello);
        assert!(again.is_accepted(&hello) && !again.is_accepted(&more));
        assert!(!transfers.begin(&[2; 32], &hello).is_accepted(&hello));
        assert!(
            !transfers
                .begin(&[1; 32], &self::hello(2))
                .is_accepted(&hello)
        );
        // The old connection notices its end after the new one has begun.
        let old = transfers.begin(&[1; 32], &hello);
        old.may_return(RETURN);
        drop(old);
        assert!(again.is_accepted(&hello));
        // It is complete.
        drop(again);
        assert!(!transfers.begin(&[1; 32], &hello).is_accepted(&hello));
        assert!(transfers.lock().is_empty());
    }

    #[test]
    fn bytes_that_come_again_count_once() {
        let (transfers, hello) = (Transfers::default(), hello(1));
        let connection = || {
            let connection = transfers.begin(&[1; 32], &hello);
            connection.may_return(RETURN);
            connection
        };
        let first = connection();
        first.begin_file(false);
        assert_eq!(first.arrive(10), 10);
        first.end_file();
        first.begin_file(false);
        assert_eq!(first.arrive(7), 17);
        drop(first);
        let second = connection();
        second.begin_file(true);
        assert_eq!(second.arrive(3 * GROUP), 10 + 3 * GROUP);
        drop(second);
        assert_eq!(connection().arrive(1), 10 + 2 * GROUP + 1);
    }

    #[test]
    fn interrupted_transfers_are_bounded() {
        let transfers = Transfers::default();
        let under_way = transfers.begin(&[1; 32], &hello(0));
        for number in 1..=MOST as u64 + 10 {
            let transfer = transfers.begin(&[1; 32], &hello(number));
            transfer.accept(&hello(number));
            transfer.may_return(RETURN);
        }
        drop(transfers.begin(&[1; 32], &hello(0)));
        assert_eq!(transfers.lock().len(), MOST + 1);
        let newest = hello(MOST as u64 + 10);
        assert!(transfers.begin(&[1; 32], &newest).is_accepted(&newest));
        drop(under_way);
    }
}
