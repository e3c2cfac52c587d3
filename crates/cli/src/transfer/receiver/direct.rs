//! The rest of a resumed part, written past the page cache.
//!
//! It is forced to the disk before it counts anyway. The page cache costs memory that the system
//! has to find and to write out first, which can take longer than the transfer. A first attempt
//! stays in the page cache, where the next one reads it. So does what comes slowly: the page cache
//! takes it at once also while the disk is busy, and keeps it when the program is killed.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::transfer::arrived::Arrived;
use crate::transfer::buffers::{CONTENT, MEMORY};
use crate::transfer::groups::GROUP;
use crate::transfer::pages::{PAGE, Pages};

/// Bytes of a block. A block is one group: a kill loses whole groups, which the sender sends again.
const BLOCK: usize = GROUP as usize;
const _: () = assert!(
    CONTENT + BLOCK == MEMORY,
    "a block has the memory of a buffer"
);
/// One block is being filled, the others are being written or wait. Those that wait are written at
/// once.
const BLOCKS: usize = 3;
/// The rate is measured over so many bytes.
const STRETCH: u64 = 8 << 20;
/// From so many bytes a second on, the page cache costs time: 2 Gbit/s.
const FAST: u64 = 250_000_000;

/// A thread that writes blocks of one file while others are filled.
#[derive(Debug)]
pub(super) struct Direct {
    plain: Arc<File>,
    full: Option<SyncSender<Block>>,
    spent: Receiver<Pages>,
    current: Option<Block>,
    rate: Rate,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Debug)]
struct Block {
    /// Its bytes begin at [`CONTENT`].
    pages: Pages,
    filled: usize,
    /// Where it goes.
    at: u64,
}

impl Block {
    fn bytes(&self) -> &[u8] {
        &self.pages[CONTENT..][..self.filled]
    }

    fn end(&self) -> u64 {
        self.at + self.filled as u64
    }
}

impl Direct {
    /// Writes to the file that is open as `direct`, without the page cache, and as `plain`.
    /// `None` if no thread can be started.
    pub(super) fn start(direct: File, plain: File) -> Option<Self> {
        let (full, queue) = sync_channel(BLOCKS);
        let (spent_in, spent) = sync_channel(BLOCKS);
        for _ in 0..BLOCKS {
            // The channel holds exactly as many as there are.
            let _ = spent_in.try_send(Pages::new(MEMORY));
        }
        let plain = Arc::new(plain);
        let same = Arc::clone(&plain);
        let work = move || work(Some(&direct), &same, &queue, &spent_in);
        let builder = std::thread::Builder::new().name("writer".into());
        let thread = builder.stack_size(128 << 10).spawn(work).ok()?;
        Some(Self {
            plain,
            full: Some(full),
            spent,
            current: None,
            rate: Rate::default(),
            thread: Some(thread),
        })
    }

    /// Writes what `arrived` from `at` on; false where that was through the page cache, since it
    /// comes slowly.
    ///
    /// # Errors
    /// Also those of bytes that were taken before.
    pub(super) fn write(&mut self, arrived: &mut impl Arrived, at: u64) -> io::Result<bool> {
        let began = Instant::now();
        let len = arrived.bytes().len() as u64;
        let is_fast = self.rate.is_fast(len, began);
        if is_fast {
            self.take(arrived, at)?;
        } else {
            self.pass_on()?;
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                self.end()?;
            }
            self.plain.write_all_at(arrived.bytes(), at)?;
        }
        self.rate.leave_out(began.elapsed());
        Ok(is_fast)
    }

    fn take(&mut self, arrived: &mut impl Arrived, mut at: u64) -> io::Result<()> {
        if self.current.as_ref().is_some_and(|block| block.end() != at) {
            self.pass_on()?;
        }
        let is_block = arrived.bytes().len() == BLOCK && at.is_multiple_of(BLOCK as u64);
        if is_block && self.current.is_none() {
            let spare = self.spare()?;
            let (pages, filled) = match arrived.exchange(spare) {
                Ok(pages) => (pages, BLOCK),
                Err(spare) => (spare, 0),
            };
            self.current = Some(Block { pages, filled, at });
            if filled == BLOCK {
                return self.pass_on();
            }
        }
        let mut bytes = arrived.bytes();
        while !bytes.is_empty() {
            let mut block = match self.current.take() {
                Some(block) => block,
                None => Block {
                    pages: self.spare()?,
                    filled: 0,
                    at,
                },
            };
            // Blocks end where groups do.
            let room = BLOCK - (at % BLOCK as u64) as usize;
            let (part, rest) = bytes.split_at(bytes.len().min(room));
            block.pages[CONTENT + block.filled..][..part.len()].copy_from_slice(part);
            block.filled += part.len();
            (bytes, at) = (rest, at + part.len() as u64);
            self.current = Some(block);
            if part.len() == room {
                self.pass_on()?;
            }
        }
        Ok(())
    }

    /// Memory for a block, once there is some.
    fn spare(&mut self) -> io::Result<Pages> {
        match self.spent.recv() {
            Ok(pages) => Ok(pages),
            Err(_) => Err(self.end().err().unwrap_or_else(gone)),
        }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        let Some(block) = self.current.take() else {
            return Ok(());
        };
        match &self.full {
            Some(full) if full.send(block).is_ok() => Ok(()),
            _ => self.end(),
        }
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// The first one of all writes.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.pass_on()?;
        self.end()
    }

    /// The thread's result, once it has written what it was given.
    fn end(&mut self) -> io::Result<()> {
        self.full = None;
        match self.thread.take() {
            Some(thread) => thread.join().map_err(|_| gone())?,
            None => Err(gone()),
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that writes the file is gone")
}

impl Drop for Direct {
    fn drop(&mut self) {
        // What arrived is kept; that it could not be is seen when the part is read again. The file
        // is locked until then.
        if self.thread.is_some() {
            let _ = self.finish();
        }
    }
}

/// Tells whether bytes come fast.
#[derive(Debug, Default)]
struct Rate {
    /// When the stretch began; `None` before the first byte.
    began: Option<Instant>,
    bytes: u64,
    is_fast: bool,
}

impl Rate {
    /// A stretch that is fast is known at its end, one that is slow as soon as it takes too long.
    fn is_fast(&mut self, bytes: u64, now: Instant) -> bool {
        let began = *self.began.get_or_insert(now);
        self.bytes += bytes;
        let enough = FAST as f64 * now.saturating_duration_since(began).as_secs_f64();
        if self.bytes >= STRETCH || enough > STRETCH as f64 {
            self.is_fast = self.bytes as f64 >= enough;
            (self.began, self.bytes) = (Some(now), 0);
        }
        self.is_fast
    }

    /// What the receiver waits for itself says nothing about the rate.
    fn leave_out(&mut self, time: Duration) {
        self.began = self.began.map(|began| began + time);
    }
}

fn work(
    mut direct: Option<&File>,
    plain: &File,
    queue: &Receiver<Block>,
    spent: &SyncSender<Pages>,
) -> io::Result<()> {
    let mut blocks = Vec::with_capacity(BLOCKS);
    while let Ok(block) = queue.recv() {
        blocks.push(block);
        blocks.extend(queue.try_iter());
        while !blocks.is_empty() {
            let run = run_len(&blocks);
            if !direct.is_some_and(|direct| write_directly(direct, &blocks[..run])) {
                // A block that does not fill its last page says nothing about the file system.
                if blocks[..run].iter().all(is_whole) {
                    direct = None;
                }
                for block in &blocks[..run] {
                    plain.write_all_at(block.bytes(), block.at)?;
                }
            }
            for block in blocks.drain(..run) {
                // Cannot be full; who is gone needs no blocks.
                let _ = spent.try_send(block.pages);
            }
        }
    }
    Ok(())
}

/// How many of the blocks can be written at once: those that follow each other, or a single one.
fn run_len(blocks: &[Block]) -> usize {
    let pairs = blocks.iter().zip(&blocks[1..]);
    1 + pairs
        .take_while(|(one, next)| is_whole(one) && is_whole(next) && one.end() == next.at)
        .count()
}

/// It begins and ends with a page.
fn is_whole(block: &Block) -> bool {
    block.at.is_multiple_of(PAGE as u64) && block.filled.is_multiple_of(PAGE)
}

/// False where the file system does not do that, or not all of it.
fn write_directly(direct: &File, blocks: &[Block]) -> bool {
    let slices: Vec<_> = blocks
        .iter()
        .map(|block| IoSlice::new(block.bytes()))
        .collect();
    let len: usize = blocks.iter().map(|block| block.filled).sum();
    blocks.iter().all(is_whole)
        && rustix::io::pwritev(direct, &slices, blocks[0].at).is_ok_and(|written| written == len)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    fn open(path: &std::path::Path) -> File {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        options.open(path).unwrap()
    }

    /// Without the page cache where the file system can do that.
    #[cfg(target_os = "linux")]
    fn open_direct(path: &std::path::Path) -> File {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::WRONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).map_or_else(|_| open(path), File::from)
    }

    #[cfg(not(target_os = "linux"))]
    fn open_direct(path: &std::path::Path) -> File {
        open(path)
    }

    /// A writer of the file, which it makes if there is none.
    fn start(path: &std::path::Path) -> Direct {
        let plain = open(path);
        Direct::start(open_direct(path), plain).unwrap()
    }

    fn content(len: usize) -> Vec<u8> {
        (0..len).map(|place| (place % 251) as u8).collect()
    }

    #[test]
    fn bytes_come_to_their_places_in_whatever_pieces() {
        let scratch = tempfile::tempdir().unwrap();
        let bytes = content(5 * BLOCK + 1_234);
        for piece in [BLOCK, 100_000, BLOCK / 2, 3 * BLOCK] {
            // From a group, from a page within one, and from any byte.
            for from in [BLOCK, BLOCK + PAGE, 77] {
                let path = scratch.path().join(format!("{piece} {from}"));
                let mut direct = start(&path);
                let mut at = from;
                while at < bytes.len() {
                    let end = (at + piece).min(bytes.len());
                    // With a hole.
                    if !(2 * BLOCK..3 * BLOCK).contains(&at) {
                        direct.take(&mut &bytes[at..end], at as u64).unwrap();
                    }
                    at = end;
                }
                direct.finish().unwrap();
                let found = std::fs::read(&path).unwrap();
                assert_eq!(found.len(), bytes.len());
                let is_right = |place: usize| found[place] == bytes[place];
                assert!((3 * BLOCK + piece.min(BLOCK)..bytes.len()).all(is_right));
                assert!((from..2 * BLOCK).all(is_right), "{piece} {from}");
                assert!(found[..from].iter().all(|byte| *byte == 0));
            }
        }
    }

    #[test]
    fn whole_pages_go_to_the_direct_file_and_the_rest_to_the_plain_one() {
        let scratch = tempfile::tempdir().unwrap();
        let [one, other] = ["direct", "plain"].map(|name| scratch.path().join(name));
        let mut direct = Direct::start(open(&one), open(&other)).unwrap();
        let bytes = content(BLOCK + 10);
        direct.take(&mut &bytes[..], 0).unwrap();
        direct.finish().unwrap();
        assert!(std::fs::read(&one).unwrap() == bytes[..BLOCK]);
        assert!(std::fs::read(&other).unwrap()[BLOCK..] == bytes[BLOCK..]);
    }

    /// Content in memory that can be had.
    struct Lent(Pages);

    impl Lent {
        fn new(bytes: &[u8]) -> Self {
            let mut pages = Pages::new(MEMORY);
            pages[CONTENT..].copy_from_slice(bytes);
            Self(pages)
        }
    }

    impl Arrived for Lent {
        fn bytes(&self) -> &[u8] {
            &self.0[CONTENT..]
        }

        fn exchange(&mut self, other: Pages) -> Result<Pages, Pages> {
            Ok(std::mem::replace(&mut self.0, other))
        }
    }

    #[test]
    fn memory_that_holds_a_block_is_exchanged_for_spent_memory() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("part");
        let mut direct = start(&path);
        let bytes = content(20 * BLOCK + 100);
        // Blocks, with one that comes in pieces, and one that begins within a block.
        let mut taken = 0;
        let ends = (1..10).map(|block| block * BLOCK);
        let ends = ends.chain([9 * BLOCK + 77]);
        let ends = ends.chain((10..20).map(|block| block * BLOCK + 77));
        for end in ends.chain([20 * BLOCK, 20 * BLOCK + 100]) {
            let at = taken;
            let piece = &bytes[at..end];
            if piece.len() == BLOCK {
                let mut lent = Lent::new(piece);
                let before = lent.0.as_ptr();
                direct.take(&mut lent, at as u64).unwrap();
                let is_exchanged = lent.0.as_ptr() != before;
                assert_eq!(is_exchanged, at.is_multiple_of(BLOCK), "{at}");
                // What is here now is somebody else's.
                lent.0.fill(0xee);
            } else {
                direct.take(&mut &piece[..], at as u64).unwrap();
            }
            taken = end;
        }
        direct.finish().unwrap();
        assert!(std::fs::read(&path).unwrap() == bytes);
    }

    #[test]
    fn what_cannot_be_written_directly_is_written_plainly() {
        let scratch = tempfile::tempdir().unwrap();
        let [one, other] = ["direct", "plain"].map(|name| scratch.path().join(name));
        std::fs::write(&one, "").unwrap();
        let readable = File::open(&one).unwrap();
        let mut direct = Direct::start(readable, open(&other)).unwrap();
        let bytes = content(3 * BLOCK);
        direct.take(&mut &bytes[..], 0).unwrap();
        direct.finish().unwrap();
        assert!(std::fs::read(&other).unwrap() == bytes);
        assert!(std::fs::read(&one).unwrap().is_empty());
    }

    #[test]
    fn what_was_taken_is_written_when_it_is_dropped() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("part");
        let mut direct = start(&path);
        direct.take(&mut &content(BLOCK + 10)[..], 0).unwrap();
        drop(direct);
        assert!(std::fs::read(&path).unwrap() == content(BLOCK + 10));
    }

    #[test]
    fn a_write_that_fails_is_an_error_of_a_later_one_and_of_the_end() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("part");
        std::fs::write(&path, "").unwrap();
        let readable = || File::open(&path).unwrap();
        let mut direct = Direct::start(readable(), readable()).unwrap();
        let bytes = content(BLOCK);
        let results: Vec<_> = (0..2 * BLOCKS as u64 + 2)
            .map(|block| direct.take(&mut &bytes[..], block * BLOCK as u64))
            .collect();
        let failed = results.iter().position(Result::is_err).unwrap();
        assert!(results[failed..].iter().all(Result::is_err));
        // Also where it comes slowly, and its own write would succeed.
        direct.plain = Arc::new(open(&path));
        assert!(!direct.rate.is_fast);
        assert!(direct.write(&mut &bytes[..], 0).is_err());
        assert!(direct.finish().is_err());
    }

    #[test]
    fn what_comes_slowly_is_left_to_the_page_cache() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("part");
        let mut direct = start(&path);
        // The first bytes say nothing about the rate. What waits in a block is written, too.
        let bytes = content(10 + BLOCK);
        direct.take(&mut &bytes[..10], 0).unwrap();
        assert!(!direct.write(&mut &bytes[10..], 10).unwrap());
        assert!(direct.current.is_none());
        direct.finish().unwrap();
        assert!(std::fs::read(&path).unwrap() == bytes);
    }

    #[test]
    fn fast_and_slow_bytes_of_one_file_come_to_their_places() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("part");
        let mut direct = start(&path);
        let mut bytes = content(30 * BLOCK);
        let (mut at, mut ways) = (0, [0, 0]);
        for piece in [BLOCK / 2, 100, PAGE, 2 * BLOCK + 77, BLOCK, 3 * BLOCK - 1].repeat(3) {
            for is_fast in [true, false, true, true, false, false] {
                // One stretch for all, so that the rate stays as it is set.
                direct.rate.is_fast = is_fast;
                (direct.rate.began, direct.rate.bytes) = (None, 0);
                let end = (at + piece / 6 + 1).min(bytes.len());
                assert_eq!(
                    direct.write(&mut &bytes[at..end], at as u64).unwrap(),
                    is_fast
                );
                ways[usize::from(is_fast)] += 1;
                at = end;
            }
            // With a hole after each of them.
            let end = (at + PAGE + 5).min(bytes.len());
            bytes[at..end].fill(0);
            at = end;
        }
        direct.finish().unwrap();
        assert_eq!(ways, [54, 54]);
        let found = std::fs::read(&path).unwrap();
        assert!(found.len() > 15 * BLOCK / 2 && found.len() < bytes.len());
        assert!(found == bytes[..found.len()]);
        assert!(bytes[found.len()..at].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn the_stretch_before_says_whether_bytes_come_fast() {
        #[expect(clippy::disallowed_methods, reason = "any instant")]
        let mut now = Instant::now();
        let mut rate = Rate::default();
        rate.is_fast(0, now);
        let mut stretch = |rate: u64, of: &mut Rate| {
            let mut answers = Vec::new();
            for _ in 0..STRETCH / GROUP {
                now += Duration::from_secs_f64(GROUP as f64 / rate as f64);
                answers.push(of.is_fast(GROUP, now));
            }
            let last = answers.pop().unwrap();
            assert!(answers.iter().all(|answer| *answer == answers[0]));
            (answers[0], last)
        };
        assert_eq!(stretch(FAST * 2, &mut rate), (false, true));
        assert_eq!(stretch(FAST * 101 / 100, &mut rate), (true, true));
        assert_eq!(stretch(FAST * 99 / 100, &mut rate), (true, false));
        assert_eq!(stretch(FAST * 99 / 100, &mut rate), (false, false));
        assert_eq!(stretch(FAST * 2, &mut rate), (false, true));
        // A standstill is known before the stretch is over, but not one of the receiver's own.
        let second = Duration::from_secs(1);
        rate.leave_out(second);
        assert!(rate.is_fast(GROUP, now + second));
        assert!(!rate.is_fast(GROUP, now + second * 2));
    }

    #[test]
    fn only_what_follows_each_other_is_written_at_once() {
        let block = |at: usize, filled| Block {
            pages: Pages::new(MEMORY),
            filled,
            at: at as u64,
        };
        let blocks = [
            block(0, BLOCK),
            block(BLOCK, BLOCK),
            block(2 * BLOCK, PAGE),
            block(3 * BLOCK, PAGE),
            block(3 * BLOCK + PAGE, 100),
        ];
        let lens: Vec<_> = (0..5).map(|first| run_len(&blocks[first..])).collect();
        assert_eq!(lens, [3, 2, 1, 1, 1]);
    }
}
