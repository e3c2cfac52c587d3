//! What the threads of one incoming transfer share.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::UnboundedSender;

use super::hard_links::FirstNames;
use super::holder::Holder;
use super::naming::Naming;
use super::refused::Refused;
use crate::transfer::current_file::CurrentFile;
use crate::transfer::protocol::{Hash, Hello, Kept, Refusal, Reply};
use crate::transfer::report::Report;

/// Entries whose answers may be outstanding: bounds what a sender that never reads can pile up.
const MAX_UNANSWERED: usize = 4096;

/// What the threads of one incoming transfer share.
#[derive(Debug)]
pub(crate) struct Session {
    replies: UnboundedSender<Reply>,
    counts: Mutex<Counts>,
    changed: Condvar,
    pub(crate) report: Mutex<Report>,
    greeted: AtomicBool,
    /// Nobody waits for this transfer any more.
    abandoned: AtomicBool,
    /// The holder of the names of this transfer.
    pub(crate) holder: Arc<Holder>,
    /// The address of the sender.
    pub(crate) peer: SocketAddr,
    hello: Mutex<Option<Hello>>,
    first_names: Mutex<FirstNames>,
    /// Bytes of files that were received, or need not be sent.
    passed: AtomicU64,
    /// The file that is being received.
    current: Mutex<CurrentFile>,
    naming: Naming,
}

#[derive(Debug, Default)]
struct Counts {
    /// Files on their way to the disk.
    finishing: usize,
    /// Answers not yet written to the stream.
    unanswered: usize,
    /// The stream is gone; nobody waits for answers.
    closed: bool,
}

impl Session {
    pub(crate) fn new(
        replies: UnboundedSender<Reply>,
        report: Report,
        holder: Arc<Holder>,
        peer: SocketAddr,
        naming: Naming,
    ) -> Self {
        Self {
            replies,
            counts: Mutex::default(),
            changed: Condvar::new(),
            report: Mutex::new(report),
            greeted: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            holder,
            peer,
            hello: Mutex::default(),
            first_names: Mutex::default(),
            passed: AtomicU64::new(0),
            current: Mutex::default(),
            naming,
        }
    }

    /// True once the peer has shown that it speaks the protocol.
    pub(crate) fn is_greeted(&self) -> bool {
        self.greeted.load(Ordering::Relaxed)
    }

    /// The peer has shown that it speaks the protocol.
    pub(super) fn set_greeted(&self, hello: Hello) {
        *self.hello.lock().unwrap_or_else(PoisonError::into_inner) = Some(hello);
        self.greeted.store(true, Ordering::Relaxed);
    }

    /// True when nobody waits for this transfer any more: a question about it is pointless.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// No more of the input is read.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// How the peer greeted.
    pub(crate) fn hello(&self) -> Option<Hello> {
        let hello = self.hello.lock().unwrap_or_else(PoisonError::into_inner);
        hello.clone()
    }

    /// Says something to the sender; a stream that is gone is noticed elsewhere.
    pub(crate) fn reply(&self, reply: Reply) {
        {
            let mut counts = self.counts();
            if counts.closed {
                return;
            }
            counts.unanswered += 1;
        }
        let _ = self.replies.send(reply);
    }

    /// `count` answers were written.
    pub(crate) fn answered(&self, count: usize) {
        let mut counts = self.counts();
        counts.unanswered = counts.unanswered.saturating_sub(count);
        self.changed.notify_all();
    }

    /// The stream is gone.
    pub(crate) fn close(&self) {
        self.counts().closed = true;
        self.changed.notify_all();
    }

    /// So many more bytes of the current file came, or need not come.
    pub(super) fn pass(&self, bytes: u64) {
        self.current_file().bytes += bytes;
        self.pass_whole(bytes);
    }

    /// The bytes of a file need not come.
    pub(super) fn pass_whole(&self, bytes: u64) {
        self.passed.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// The content of this file begins; `size` is `None` where it is not known.
    pub(super) fn set_current(&self, path: &Path, size: Option<u64>) {
        *self.current_file() = CurrentFile::new(path, size);
    }

    pub(super) fn current(&self) -> CurrentFile {
        self.current_file().clone()
    }

    fn current_file(&self) -> MutexGuard<'_, CurrentFile> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files that have several names.
    pub(super) fn first_names(&self) -> MutexGuard<'_, FirstNames> {
        self.first_names
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self) {
        self.counts().finishing += 1;
    }

    /// A file is on the disk under its name, or is not.
    pub(crate) fn settle(
        &self,
        index: u64,
        path: &Path,
        size: u64,
        hash: &Hash,
        result: Result<Option<Vec<u8>>, Refused>,
    ) {
        match result {
            Ok(name) => self.confirm(index, path, size, hash, name),
            Err(refused) => self.reject(index, path, refused),
        }
        self.counts().finishing -= 1;
        self.changed.notify_all();
    }

    /// A file is stored, perhaps under another name than its own.
    pub(super) fn confirm(
        &self,
        index: u64,
        path: &Path,
        size: u64,
        hash: &Hash,
        name: Option<Vec<u8>>,
    ) {
        let other = name.as_ref().map(|name| {
            let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name);
            path.with_file_name(name)
        });
        let path = other.as_deref().unwrap_or(path);
        self.first_names().is_here(index, path);
        self.report().file(path, size, hash);
        self.naming.name(path, None);
        self.reply(Reply::Confirm {
            index,
            size,
            hash: *hash,
            name: name.unwrap_or_default(),
        });
    }

    /// A symbolic link is stored.
    pub(super) fn link(&self, path: &Path, target: &[u8], hash: &Hash) {
        self.report().link(path, target, hash);
        self.naming.name(path, None);
    }

    /// A file or a link need not be sent.
    pub(super) fn kept(&self, path: &Path, kept: Kept) {
        self.report().kept(kept);
        self.naming.name(
            path,
            match kept {
                Kept::Unchanged => Some("unchanged"),
                Kept::Skipped | Kept::Newer => Some("left as it was"),
                Kept::Linked => None,
            },
        );
    }

    /// An entry that the sender does not have was removed.
    pub(super) fn removed(&self, path: &Path) {
        self.report().removed += 1;
        self.naming.name(path, Some("removed"));
    }

    pub(super) fn reject(&self, index: u64, path: &Path, refused: Refused) {
        match refused.reason {
            // That directory is named.
            Refusal::Parent => self.report().within_refused(),
            _ => self.report().failure(path, &refused.message),
        }
        self.reply(Reply::Reject {
            index,
            reason: refused.reason,
            message: refused.message,
        });
    }

    fn wait_until(&self, ready: impl Fn(&Counts) -> bool) {
        let counts = self.counts();
        let _counts = self
            .changed
            .wait_while(counts, |counts| !ready(counts))
            .unwrap_or_else(PoisonError::into_inner);
    }

    /// Waits until every complete file is on the disk under its name, or is not.
    pub(super) fn wait_for_files(&self) {
        self.wait_until(|counts| counts.finishing == 0);
    }

    /// Waits until one more answer may be outstanding, or nobody waits for answers.
    pub(super) fn wait_for_room(&self) {
        self.wait_until(|counts| {
            counts.closed || counts.unanswered + counts.finishing < MAX_UNANSWERED
        });
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
