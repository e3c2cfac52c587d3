//! What a receiver remembers of a transfer from one connection to the next: whether its user
//! accepted it, and how many bytes came.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::part;
use crate::transfer::channel::PeerKey;
use crate::transfer::groups::GROUP;
use crate::transfer::protocol::{Hash, Hello};

/// Interrupted transfers that are remembered. Beyond, one of the peer that has most is forgotten:
/// that whose time ends first.
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
    /// What the last connection began and has to send again.
    unfinished: Mutex<Option<Unfinished>>,
}

/// A file that a connection did not complete.
#[derive(Debug)]
struct Unfinished {
    path: Hash,
    /// Bytes that come again.
    again: u64,
}

/// The file that a connection is sending.
#[derive(Debug)]
struct CurrentFile {
    path: Hash,
    has_part: bool,
    size: Option<u64>,
    /// Bytes of it that came over this connection.
    came: u64,
    /// Where in the file the next byte goes.
    position: u64,
}

impl CurrentFile {
    /// Bytes that come again if the connection is lost now. Whole groups are kept in the part, and
    /// so is a file that only lacks its end. A file without a part is sent again as a whole.
    fn again(&self) -> u64 {
        let lost = match self.size {
            _ if !self.has_part => part::SMALL,
            Some(size) if size == self.position => 0,
            _ => self.position % GROUP,
        };
        self.came.min(lost)
    }
}

impl Memory {
    fn accepted(&self) -> MutexGuard<'_, Option<Hello>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unfinished(&self) -> MutexGuard<'_, Option<Unfinished>> {
        self.unfinished
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection of a transfer.
#[derive(Debug)]
pub(super) struct Transfer<'a> {
    transfers: &'a Transfers,
    key: Key,
    memory: Arc<Memory>,
    file: RefCell<Option<CurrentFile>>,
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
            file: RefCell::default(),
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

    /// The content of a file begins, or goes on where a lost connection left it. Only then are the
    /// bytes not counted that come again.
    pub(super) fn begin_file(&self, path: &Path, size: Option<u64>, has_part: bool) {
        let path = *blake3::hash(path.as_os_str().as_bytes()).as_bytes();
        let mut unfinished = self.memory.unfinished();
        if let Some(file) = unfinished.take_if(|file| file.path == path) {
            self.memory.arrived.fetch_sub(file.again, Ordering::Relaxed);
        }
        *self.file.borrow_mut() = Some(CurrentFile {
            path,
            has_part,
            size,
            came: 0,
            position: 0,
        });
    }

    /// The next byte of the present file goes there.
    pub(super) fn reach(&self, position: u64) {
        if let Some(file) = &mut *self.file.borrow_mut() {
            file.position = position;
        }
    }

    /// The content is complete, or was given up.
    pub(super) fn end_file(&self) {
        *self.file.borrow_mut() = None;
    }

    /// Bytes of a file came.
    pub(super) fn arrive(&self, bytes: u64) {
        if let Some(file) = &mut *self.file.borrow_mut() {
            file.came = file.came.saturating_add(bytes);
        }
        self.memory.arrived.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of files that came over all connections, each once.
    pub(super) fn arrived(&self) -> u64 {
        self.memory.arrived.load(Ordering::Relaxed)
    }

    /// The connection was lost, and the sender tries to return for so long.
    pub(super) fn may_return(&self, within: Duration) {
        self.kept.set(within.min(LONGEST));
    }
}

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let (path, again) = (file.path, file.again());
            *self.memory.unfinished() = Some(Unfinished { path, again });
        }
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
        let idle = || entries.iter().filter(|(_, entry)| entry.connections == 0);
        if idle().count() <= MOST {
            return;
        }
        let mut by_peer = BTreeMap::<&PeerKey, usize>::new();
        for ((peer, _), _) in idle() {
            *by_peer.entry(peer).or_default() += 1;
        }
        let of_peer = |peer: &PeerKey| by_peer.get(peer).copied().unwrap_or(0);
        let forgotten =
            idle().max_by_key(|((peer, _), entry)| (of_peer(peer), Reverse(entry.until)));
        if let Some(key) = forgotten.map(|(key, _)| *key) {
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

    /// Bytes come; how many have come by now.
    fn come(transfer: &Transfer<'_>, bytes: u64) -> u64 {
        transfer.arrive(bytes);
        transfer.arrived()
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
        first.begin_file(Path::new("small"), Some(10), false);
        assert_eq!(come(&first, 10), 10);
        first.end_file();
        first.begin_file(Path::new("small too"), Some(20), false);
        assert_eq!(come(&first, 7), 17);
        drop(first);
        let second = connection();
        second.begin_file(Path::new("small too"), Some(20), false);
        assert_eq!(come(&second, 20), 30);
        second.end_file();
        second.begin_file(Path::new("large"), Some(9 * GROUP), true);
        assert_eq!(come(&second, 3 * GROUP + 5), 35 + 3 * GROUP);
        second.reach(3 * GROUP + 5);
        drop(second);
        let third = connection();
        third.begin_file(Path::new("large"), Some(9 * GROUP), true);
        assert_eq!(come(&third, 5), 35 + 3 * GROUP);
    }

    #[test]
    fn what_is_kept_or_not_sent_again_counts() {
        let (transfers, hello) = (Transfers::default(), hello(1));
        let (large, size) = (Path::new("large"), Some(9 * GROUP - 1));
        // What comes up to `position`, and then the connection is lost.
        let cut_off = |bytes, position| {
            let connection = transfers.begin(&[1; 32], &hello);
            connection.may_return(RETURN);
            connection.begin_file(large, size, true);
            let arrived = come(&connection, bytes);
            connection.reach(position);
            arrived
        };
        // A whole group each time, the last byte of which is a hole.
        for number in 1..=3 {
            let arrived = cut_off(GROUP - 1, number * GROUP);
            assert_eq!(arrived, number * (GROUP - 1));
        }
        // All of the file but its end.
        let before = cut_off(GROUP - 1, 9 * GROUP - 1);
        assert_eq!(cut_off(1, 9 * GROUP - 1), before + 1);
        // Another file than the one that was cut off.
        for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
            let connection = transfers.begin(&[1; 32], &hello);
            connection.may_return(RETURN);
            connection.begin_file(Path::new(name), Some(GROUP), true);
            let arrived = come(&connection, GROUP - 1);
            connection.reach(GROUP - 1);
            assert_eq!(arrived, before + 1 + (number as u64 + 1) * (GROUP - 1));
        }
        // A file that the sender gave up.
        let connection = transfers.begin(&[1; 32], &hello);
        connection.may_return(RETURN);
        connection.begin_file(Path::new("c"), Some(GROUP), true);
        let arrived = come(&connection, 7);
        connection.end_file();
        drop(connection);
        let connection = transfers.begin(&[1; 32], &hello);
        connection.begin_file(Path::new("c"), Some(GROUP), true);
        assert_eq!(come(&connection, 1), arrived + 1);
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
        // Another peer's, whose time ends sooner.
        let own = hello(1);
        let transfer = transfers.begin(&[2; 32], &own);
        transfer.accept(&own);
        transfer.may_return(RETURN / 2);
        drop(transfer);
        for number in 2_000..2_010 {
            let transfer = transfers.begin(&[1; 32], &hello(number));
            transfer.may_return(RETURN);
        }
        assert_eq!(transfers.lock().len(), MOST);
        assert!(transfers.begin(&[2; 32], &own).is_accepted(&own));
    }
}
