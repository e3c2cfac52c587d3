//! Threads that force complete files to the disk and name them.
//!
//! `fsync` waits for the disk, not for a processor: several at a time let the file system commit
//! them together (10,000 small files take one second instead of seven on the disk this was measured
//! on).

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::existing::Existing;
use super::refused::Refused;
use super::reserved::Reservation;
use super::session::Session;
use super::staged::Staged;
use crate::transfer::protocol::{Hash, Modified};

/// Threads; they share the work of all transfers.
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

/// The threads; they end when the last handle is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Committer {
    jobs: SyncSender<Job>,
}

impl Committer {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (jobs, queue) = sync_channel(WAITING);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..THREADS {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new()
                .name("committer".into())
                .stack_size(256 << 10)
                .spawn(move || work(&queue))?;
        }
        Ok(Self { jobs })
    }

    /// Queues a file; waits while too many are queued.
    pub(crate) fn submit(&self, job: Job) {
        if let Err(error) = self.jobs.send(job) {
            // Only after every thread has died, which nothing here does; then the caller's thread
            // does the work.
            run(error.0);
        }
    }
}

fn work(queue: &Mutex<Receiver<Job>>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => run(job),
            Err(_) => return,
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
