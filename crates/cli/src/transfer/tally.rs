//! What the sender still waits to hear: shared by the thread that reads files and the task that reads answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use indicatif::ProgressBar;

use super::buffers::Hung;
use super::names::printable;
use super::protocol::{Hash, Refusal};
use super::report::Report;

/// Files that may be unconfirmed: bounds memory against a receiver that never answers.
const MAX_PENDING: usize = 8192;

/// A file whose answer is outstanding.
#[derive(Debug)]
struct Pending {
    path: PathBuf,
    /// Size and hash, once all of it has been read.
    sent: Option<(u64, Hash)>,
}

#[derive(Debug)]
struct State {
    next: u64,
    pending: BTreeMap<u64, Pending>,
    /// Entries being sent: the directories we are in and then the file.
    active: Vec<(u64, PathBuf)>,
    /// Position in `active` of the outermost entry the receiver refused.
    refused: Option<usize>,
    report: Report,
    hung: bool,
}

/// The receiver answered something that makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the receiver broke the protocol: {0}")]
pub(crate) struct BadAnswer(&'static str);

impl BadAnswer {
    pub(crate) fn unexpected() -> Self {
        Self("an answer is out of place")
    }
}

/// The shared state.
#[derive(Debug)]
pub(crate) struct Tally {
    state: Mutex<State>,
    changed: Condvar,
    /// Steps aside for what is said to people.
    bar: ProgressBar,
}

impl Tally {
    pub(crate) fn new(report: Report, bar: ProgressBar) -> Self {
        let state = State {
            next: 0,
            pending: BTreeMap::new(),
            active: Vec::new(),
            refused: None,
            report,
            hung: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            bar,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream is gone: whoever waits for an answer stops waiting.
    pub(crate) fn hang(&self) {
        self.state().hung = true;
        self.changed.notify_all();
    }

    // The reading thread's side.

    /// A file's frame is about to leave. Waits while too many are unconfirmed.
    pub(crate) fn begin_file(&self, path: &Path) -> Result<(), Hung> {
        let mut state = self
            .changed
            .wait_while(self.state(), |state| {
                !state.hung && state.pending.len() >= MAX_PENDING
            })
            .unwrap_or_else(PoisonError::into_inner);
        if state.hung {
            return Err(Hung);
        }
        let index = state.begin(path);
        state.pending.insert(
            index,
            Pending {
                path: path.to_owned(),
                sent: None,
            },
        );
        Ok(())
    }

    /// The file was read completely.
    pub(crate) fn end_file(&self, size: u64, hash: Hash) {
        let mut state = self.state();
        if let Some((index, _)) = state.end()
            && let Some(pending) = state.pending.get_mut(&index)
        {
            pending.sent = Some((size, hash));
        }
    }

    /// The file will not be sent to its end. Without an error the reason is the receiver's, and known.
    pub(crate) fn abort_file(&self, error: Option<&str>) {
        let mut state = self.state();
        if let Some((index, path)) = state.end()
            && state.pending.remove(&index).is_some()
        {
            let error = error.unwrap_or("given up");
            self.failed(&mut state, &path, error);
        }
        self.changed.notify_all();
    }

    /// A directory's frame is about to leave.
    pub(crate) fn enter(&self, path: &Path) {
        let mut state = self.state();
        state.begin(path);
        state.report.directories += 1;
    }

    /// The innermost directory is complete.
    pub(crate) fn leave(&self) {
        self.state().end();
    }

    /// True when the receiver refused what is being sent, or a directory around it.
    pub(crate) fn is_refused(&self) -> bool {
        self.state().refused.is_some()
    }

    /// Something of the source cannot be sent.
    pub(crate) fn fail(&self, path: &Path, error: &str) {
        self.failed(&mut self.state(), path, error);
    }

    fn failed(&self, state: &mut State, path: &Path, error: &str) {
        self.say(path, error);
        state.report.failure(path, error);
    }

    fn say(&self, path: &Path, what: &str) {
        self.bar
            .suspend(|| eprintln!("tack: {}: {what}", printable(&path.to_string_lossy())));
    }

    /// Something of the source is left out on purpose.
    pub(crate) fn skip(&self, path: &Path, why: &str) {
        self.say(path, &format!("skipped: {why}"));
        self.state().report.skipped += 1;
    }

    // The answers' side.

    /// The receiver stored a file.
    pub(crate) fn confirm(&self, index: u64, size: u64, hash: &Hash) -> Result<(), BadAnswer> {
        let mut state = self.state();
        let pending = state
            .pending
            .remove(&index)
            .ok_or(BadAnswer("it confirms what was not sent"))?;
        let Some((sent_size, sent_hash)) = pending.sent else {
            return Err(BadAnswer("it confirms a file before its end"));
        };
        if (size, hash) == (sent_size, &sent_hash) {
            state.report.file(&pending.path, size, hash);
        } else {
            self.failed(
                &mut state,
                &pending.path,
                "the receiver stored different bytes (BLAKE3)",
            );
        }
        self.changed.notify_all();
        Ok(())
    }

    /// The receiver refused an entry.
    pub(crate) fn reject(
        &self,
        index: u64,
        reason: Refusal,
        message: &str,
    ) -> Result<(), BadAnswer> {
        let mut state = self.state();
        if index >= state.next {
            return Err(BadAnswer("it refuses what was not sent"));
        }
        let position = state.active.iter().position(|(active, _)| *active == index);
        let path = match (state.pending.remove(&index), position) {
            (Some(pending), _) => pending.path,
            (None, Some(position)) => state.active[position].1.clone(),
            // A directory left already; the receiver's message names it.
            (None, None) => PathBuf::from("a directory"),
        };
        if let Some(position) = position {
            state.refused = Some(
                state
                    .refused
                    .map_or(position, |refused| refused.min(position)),
            );
        }
        self.failed(
            &mut state,
            &path,
            &format!("refused by the receiver ({reason}): {}", printable(message)),
        );
        self.changed.notify_all();
        Ok(())
    }

    /// The receiver says that this is all. Everything must have been answered.
    pub(crate) fn finish(&self, files: u64, bytes: u64) -> Result<(), BadAnswer> {
        let mut state = self.state();
        while let Some((_, pending)) = state.pending.pop_first() {
            self.failed(&mut state, &pending.path, "not confirmed by the receiver");
        }
        if (files, bytes) < (state.report.files, state.report.bytes) {
            return Err(BadAnswer("it counts fewer files than it confirmed"));
        }
        Ok(())
    }

    /// The report so far; what is unconfirmed counts as failed.
    pub(crate) fn take_report(&self) -> Report {
        let mut state = self.state();
        while let Some((_, pending)) = state.pending.pop_first() {
            // One error message names the reason for all of them.
            state
                .report
                .failure(&pending.path, "not confirmed by the receiver");
        }
        std::mem::replace(
            &mut state.report,
            Report::new(super::report::Listing::CountsOnly),
        )
    }
}

impl State {
    fn begin(&mut self, path: &Path) -> u64 {
        let index = self.next;
        self.next += 1;
        self.active.push((index, path.to_owned()));
        index
    }

    fn end(&mut self) -> Option<(u64, PathBuf)> {
        let ended = self.active.pop();
        if self
            .refused
            .is_some_and(|position| position >= self.active.len())
        {
            self.refused = None;
        }
        ended
    }
}
