//! The groups of a file, read and hashed by several threads ahead of the one that compares them.
//!
//! A thread reads and hashes 2 GB/s or so, a network can do more, and the side that is slower
//! decides how long the comparison of a large file takes.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope};

use super::groups::{GROUP, value};
use super::pages::Pages;
use super::protocol::Value;

/// Most threads of a comparison, its own included. They read the file in turn: what a disk reads is
/// nearly in order.
const MOST: usize = 4;
/// So many groups a thread are worth starting it.
const LEAST: u64 = 8;
/// Most helpers of all transfers together: they have 512 KiB each.
const MOST_HELPERS: usize = 16;
/// Groups of a thread: one is being read, one is taken or waits.
const BUFFERS: usize = 2;

/// A group and its chaining value.
pub(super) struct Group {
    pages: Pages,
    len: usize,
    pub(super) value: Value,
}

impl Group {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.pages[..self.len]
    }
}

/// The groups of a file in their order.
pub(super) struct Ahead<'a> {
    source: Source<'a>,
    next: u64,
    helpers: Vec<Helper>,
    /// Whose group was taken last: this thread's, or that of a helper, counted from one.
    turn: usize,
    /// This thread's memory.
    own: Option<Pages>,
    /// The group that was taken last.
    taken: Option<Group>,
}

#[derive(Clone, Copy)]
struct Source<'a> {
    file: &'a File,
    size: u64,
    end: u64,
}

/// A thread that reads groups in turn with others.
struct Helper {
    full: Receiver<io::Result<Group>>,
    spent: SyncSender<Pages>,
}

/// Lets `compare` take the `groups` of `file`, which has `size` bytes. The last one may be shorter
/// than the others. Returns once the threads have ended.
pub(super) fn read_ahead<T>(
    file: &File,
    size: u64,
    groups: Range<u64>,
    compare: impl FnOnce(Ahead<'_>) -> T,
) -> T {
    static PROCESSORS: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    let count = groups.end.saturating_sub(groups.start);
    let worthwhile = usize::try_from(count / LEAST).unwrap_or(MOST);
    let wanted = worthwhile.min(*PROCESSORS).min(MOST);
    let places = Places::take(wanted.saturating_sub(1));
    by_threads(1 + places.0, file, size, groups, compare)
}

/// How many helpers a comparison may have.
struct Places(usize);

static TAKEN: AtomicUsize = AtomicUsize::new(0);

impl Places {
    /// As many as are free, at most `wanted`.
    fn take(wanted: usize) -> Self {
        let mut got = 0;
        let take = |taken: usize| {
            got = wanted.min(MOST_HELPERS.saturating_sub(taken));
            Some(taken + got)
        };
        let _ = TAKEN.fetch_update(Relaxed, Relaxed, take);
        Self(got)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.0, Relaxed);
    }
}

fn by_threads<T>(
    threads: usize,
    file: &File,
    size: u64,
    groups: Range<u64>,
    compare: impl FnOnce(Ahead<'_>) -> T,
) -> T {
    let source = Source {
        file,
        size,
        end: groups.end,
    };
    std::thread::scope(|scope| {
        // This thread reads its share itself.
        let mut helpers = Vec::new();
        for first in (groups.start..groups.end).take(threads).skip(1) {
            helpers.push(Helper::start(scope, source, first, threads));
        }
        // Without all of them it reads everything: the others end as their helpers are dropped.
        let helpers: Option<Vec<_>> = helpers.into_iter().collect();
        compare(Ahead {
            source,
            next: groups.start,
            helpers: helpers.unwrap_or_default(),
            turn: 0,
            own: None,
            taken: None,
        })
    })
}

impl Helper {
    /// A thread for the group `first` and each `step`th after it.
    fn start<'scope, 'a: 'scope>(
        scope: &'scope Scope<'scope, '_>,
        source: Source<'a>,
        first: u64,
        step: usize,
    ) -> Option<Self> {
        let (full_in, full) = sync_channel(BUFFERS);
        let (spent, spent_out) = sync_channel(BUFFERS);
        for _ in 0..BUFFERS {
            // The channel holds exactly as many as there are.
            let _ = spent.try_send(Pages::new(GROUP as usize));
        }
        let work = move || {
            for number in (first..source.end).step_by(step) {
                let Ok(pages) = spent_out.recv() else {
                    return;
                };
                let group = source.read(number, pages);
                let failed = group.is_err();
                if full_in.send(group).is_err() || failed {
                    return;
                }
            }
        };
        let builder = Builder::new().name("hasher".into()).stack_size(128 << 10);
        builder.spawn_scoped(scope, work).ok()?;
        Some(Self { full, spent })
    }
}

impl Source<'_> {
    fn read(&self, number: u64, mut pages: Pages) -> io::Result<Group> {
        let at = number * GROUP;
        let len = self.size.saturating_sub(at).min(GROUP) as usize;
        self.file.read_exact_at(&mut pages[..len], at)?;
        let value = value(number, &pages[..len]);
        Ok(Group { pages, len, value })
    }
}

impl Ahead<'_> {
    /// The next group; `None` after the last one.
    ///
    /// # Errors
    /// When it cannot be read. Then nothing follows.
    pub(super) fn next(&mut self) -> io::Result<Option<&Group>> {
        let number = self.next;
        if number >= self.source.end {
            return Ok(None);
        }
        self.next += 1;
        if let Some(group) = self.taken.take() {
            match self.turn.checked_sub(1) {
                None => self.own = Some(group.pages),
                Some(helper) => {
                    // Cannot be full; a thread that is done needs none.
                    let _ = self.helpers[helper].spent.try_send(group.pages);
                }
            }
            self.turn = (self.turn + 1) % (self.helpers.len() + 1);
        }
        let group = match self.turn.checked_sub(1) {
            None => {
                let pages = self.own.take();
                let pages = pages.unwrap_or_else(|| Pages::new(GROUP as usize));
                self.source.read(number, pages)?
            }
            Some(helper) => {
                let gone = |_| io::Error::other("the thread that reads the file is gone");
                self.helpers[helper].full.recv().map_err(gone)??
            }
        };
        Ok(Some(self.taken.insert(group)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SIZE: u64 = 40 * GROUP + 1_234;

    fn file() -> File {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..SIZE as u32)
            .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
            .collect();
        file.write_all(&bytes).unwrap();
        file
    }

    fn values(
        threads: usize,
        file: &File,
        size: u64,
        groups: Range<u64>,
    ) -> io::Result<Vec<Value>> {
        by_threads(threads, file, size, groups, |mut ahead| {
            let mut values = Vec::new();
            while let Some(group) = ahead.next()? {
                values.push(group.value);
            }
            Ok(values)
        })
    }

    #[test]
    fn groups_come_in_order_whatever_reads_them() {
        let file = file();
        for groups in [0..41, 3..41, 3..17, 5..6, 7..7] {
            let one = values(1, &file, SIZE, groups.clone()).unwrap();
            assert_eq!(one.len() as u64, groups.end - groups.start);
            for threads in [0, 2, 3, 4] {
                let same = values(threads, &file, SIZE, groups.clone()).unwrap();
                assert_eq!(same, one, "{threads} threads, {groups:?}");
            }
        }
        let mut bytes = vec![0; 1_234];
        file.read_exact_at(&mut bytes, 40 * GROUP).unwrap();
        let last = by_threads(2, &file, SIZE, 30..41, |mut ahead| {
            let mut last = Vec::new();
            while let Some(group) = ahead.next().unwrap() {
                last = group.bytes().to_vec();
            }
            last
        });
        assert!(last == bytes);
    }

    #[test]
    fn a_file_that_shrank_is_an_error_where_it_ends() {
        let file = file();
        for threads in [1, 2, 4] {
            let mut good = 0;
            let error = by_threads(threads, &file, 2 * SIZE, 0..80, |mut ahead| {
                loop {
                    match ahead.next() {
                        Ok(Some(_)) => good += 1,
                        Ok(None) => panic!("there are not that many"),
                        Err(error) => return error,
                    }
                }
            });
            assert_eq!((error.kind(), good), (io::ErrorKind::UnexpectedEof, 40));
        }
    }

    #[test]
    fn whoever_needs_no_more_groups_ends_the_threads() {
        let file = file();
        for taken in [0, 1, 7] {
            let next = by_threads(4, &file, SIZE, 0..41, |mut ahead| {
                for _ in 0..taken {
                    ahead.next().unwrap();
                }
                ahead.next
            });
            assert_eq!(next, taken);
        }
    }
}
