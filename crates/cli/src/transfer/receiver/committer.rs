//! Threads that force complete files to the disk and name them.
//!
//! `fsync` waits for the disk, not for a processor: several at a time let the file system commit
//! them together (10,000 small files take one second instead of seven on the disk this was measured
//! on).

use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use super::existing::Existing;
use super::refused::Refused;
use super::reserved::Reservation;
use super::session::Session;
use super::staged::Staged;
use crate::transfer::protocol::{Hash, Modified};

/// Most threads, and one more for each further caller that meets another here. They share the work
/// of all transfers.
const THREADS: usize = 64;
/// Complete files that wait for a thread, all transfers together. One holds a file descriptor, a
/// resumed one two.
const WAITING: usize = 64;

/// A complete file to commit.
pub(crate) struct Job {
    pub(crate) session: Arc<Session>,
    pub(crate) staged: Staged,
    pub(crate) index: u64,
    pub(crate) path: PathBuf,
    pub(crate) name: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) modified: Modified,
    pub(crate) size: u64,
    pub(crate) hash: Hash,
    pub(crate) existing: Existing,
    /// Given back once the file has its name.
    pub(crate) reservation: Option<Reservation>,
}

/// The threads; they end when the last handle is dropped. Each is started when a file comes and
/// none is free: most transfers need few.
#[derive(Clone, Debug)]
pub(crate) struct Committer {
    jobs: SyncSender<Job>,
    pool: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    queue: Mutex<Receiver<Job>>,
    threads: AtomicUsize,
    /// Files that were queued and are not committed yet.
    open: AtomicUsize,
}

impl Committer {
    pub(crate) fn new() -> Self {
        let (jobs, queue) = sync_channel(WAITING);
        let pool = Pool {
            queue: Mutex::new(queue),
            threads: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        };
        Self {
            jobs,
            pool: Arc::new(pool),
        }
    }

    /// Queues a file; waits while too many are queued.
    pub(crate) fn submit(&self, job: Job) {
        let open = self.pool.open.fetch_add(1, Relaxed) + 1;
        let threads = self.pool.threads.load(Relaxed);
        if open > threads && threads < THREADS {
            self.pool.add_thread();
        }
        if self.pool.threads.load(Relaxed) == 0 {
            // The system gives no thread: this one does the work.
            run(job);
            self.pool.open.fetch_sub(1, Relaxed);
        } else if let Err(error) = self.jobs.send(job) {
            // This handle keeps the queue open, so that does not come.
            run(error.0);
            self.pool.open.fetch_sub(1, Relaxed);
        }
    }
}

impl Pool {
    /// Starts a thread if the system gives one.
    fn add_thread(self: &Arc<Self>) {
        let pool = Arc::clone(self);
        let builder = Builder::new()
            .name("committer".into())
            .stack_size(256 << 10);
        if builder.spawn(move || pool.work()).is_ok() {
            self.threads.fetch_add(1, Relaxed);
        }
    }

    fn work(&self) {
        loop {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let Ok(job) = queue.recv() else { return };
            drop(queue);
            let at_work = AtWork(self);
            run(job);
            drop(at_work);
        }
    }
}

/// A thread that commits a file. One that panics is not counted any more.
struct AtWork<'a>(&'a Pool);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
        if std::thread::panicking() {
            self.0.threads.fetch_sub(1, Relaxed);
        }
    }
}

fn run(job: Job) {
    let result = job
        .staged
        .commit(&job.name, job.size, job.mode, job.modified, job.existing)
        .map_err(|error| Refused::storage(&error));
    drop(job.reservation);
    job.session
        .settle(job.index, &job.path, job.size, &job.hash, result);
}
