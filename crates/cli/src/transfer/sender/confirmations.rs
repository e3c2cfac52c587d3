//! Which entries the receiver has not yet confirmed: shared by the thread that reads files and the task that reads answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use indicatif::ProgressBar;

use crate::transfer::buffers::Disconnected;
use crate::transfer::names::printable;
use crate::transfer::protocol::{Hash, Refusal};
use crate::transfer::report::Report;

/// Files that may be unconfirmed: bounds memory against a receiver that never answers.
const MAX_PENDING: usize = 8192;

/// Directories sent that the receiver may still refuse, and files given up before their answer came: as many of each are
/// remembered. Waiting would not do, because a directory that is stored gets no answer.
const MAX_REMEMBERED: usize = 8192;

/// A file whose answer is outstanding.
#[derive(Debug)]
struct Pending {
    path: PathBuf,
    /// Of a symbolic link.
    target: Option<Vec<u8>>,
    /// Size and hash, once all of it has been read.
    sent: Option<(u64, Hash)>,
}

#[derive(Debug)]
struct State {
    next: u64,
    pending: BTreeMap<u64, Pending>,
    directories: Directories,
    /// Files given up; a refusal may still come for them, and counts nothing.
    aborted: BTreeSet<u64>,
    /// Entries being sent: the directories we are in and then the file.
    active: Vec<(u64, PathBuf)>,
    /// Position in `active` of the outermost entry the receiver refused.
    refused: Option<usize>,
    report: Report,
    queued: bool,
    hung: bool,
}

/// Directories sent. They are stored unless the receiver refuses them before it is finished.
#[derive(Debug, Default)]
struct Directories {
    /// Those not refused so far.
    sent: u64,
    paths: BTreeMap<u64, PathBuf>,
    /// How many of `sent` are no longer in `paths`.
    forgotten: u64,
}

impl Directories {
    fn enter(&mut self, index: u64, path: &Path, active: &[(u64, PathBuf)]) {
        self.sent += 1;
        self.paths.insert(index, path.to_owned());
        if self.paths.len() > MAX_REMEMBERED {
            // The oldest that we are not in: of those, `active` knows the path.
            let in_it = |index: &u64| active.iter().any(|(active, _)| active == index);
            let oldest = self.paths.keys().copied().find(|index| !in_it(index));
            if let Some(oldest) = oldest {
                self.paths.remove(&oldest);
                self.forgotten += 1;
            }
        }
    }

    /// The path of one that is refused, as far as it is known; `None` when it is not a directory, or was refused before.
    fn refuse(&mut self, index: u64) -> Option<PathBuf> {
        let path = match self.paths.remove(&index) {
            Some(path) => path,
            None => {
                self.forgotten = self.forgotten.checked_sub(1)?;
                let before = self.paths.range(index..).next();
                let before =
                    before.map_or_else(String::new, |(_, path)| path.display().to_string());
                PathBuf::from(format!("(a directory sent before {before})"))
            }
        };
        self.sent -= 1;
        Some(path)
    }
}

/// The receiver answered something that makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the receiver broke the protocol: {0}")]
pub(crate) struct BadAnswer(&'static str);

impl BadAnswer {
    pub(crate) fn unexpected() -> Self {
        Self("unexpected answer")
    }
}

/// The shared state.
#[derive(Debug)]
pub(crate) struct Confirmations {
    state: Mutex<State>,
    changed: Condvar,
    /// Steps aside for what is said to people.
    bar: ProgressBar,
}

impl Confirmations {
    pub(crate) fn new(report: Report, bar: ProgressBar) -> Self {
        let state = State {
            next: 0,
            pending: BTreeMap::new(),
            directories: Directories::default(),
            aborted: BTreeSet::new(),
            active: Vec::new(),
            refused: None,
            report,
            queued: false,
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

    /// The stream is gone: waiting for answers ends.
    pub(crate) fn hang(&self) {
        self.state().hung = true;
        self.changed.notify_all();
    }

    // The reading thread's side.

    /// A file's frame is about to leave. Waits while too many are unconfirmed.
    pub(crate) fn begin_file(&self, path: &Path) -> Result<(), Disconnected> {
        let mut state = self
            .changed
            .wait_while(self.state(), |state| {
                !state.hung && state.pending.len() >= MAX_PENDING
            })
            .unwrap_or_else(PoisonError::into_inner);
        if state.hung {
            return Err(Disconnected);
        }
        let index = state.begin(path);
        state.pending.insert(
            index,
            Pending {
                path: path.to_owned(),
                target: None,
                sent: None,
            },
        );
        Ok(())
    }

    /// A symbolic link's frame is about to leave; it is complete in itself.
    pub(crate) fn link(&self, path: &Path, target: &[u8], hash: Hash) -> Result<(), Disconnected> {
        self.begin_file(path)?;
        let mut state = self.state();
        if let Some((index, _)) = state.end()
            && let Some(pending) = state.pending.get_mut(&index)
        {
            pending.target = Some(target.to_owned());
            pending.sent = Some((target.len() as u64, hash));
        }
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

    /// The file will not be sent to its end. Without an error the receiver refused it, or a directory around it.
    pub(crate) fn abort_file(&self, error: Option<&str>) {
        let mut state = self.state();
        if let Some((index, path)) = state.end()
            && state.pending.remove(&index).is_some()
        {
            state.aborted.insert(index);
            if state.aborted.len() > MAX_REMEMBERED {
                state.aborted.pop_first();
            }
            match error {
                Some(error) => self.failed(&mut state, &path, error),
                None => state.report.within_refused(),
            }
        }
        self.changed.notify_all();
    }

    /// A directory's frame is about to leave.
    pub(crate) fn enter(&self, path: &Path) {
        let mut state = self.state();
        let index = state.begin(path);
        let State {
            directories,
            active,
            ..
        } = &mut *state;
        directories.enter(index, path, active);
    }

    /// The innermost directory is complete.
    pub(crate) fn leave(&self) {
        self.state().end();
    }

    /// True when the receiver refused what is being sent, or a directory around it.
    pub(crate) fn is_refused(&self) -> bool {
        self.state().refused.is_some()
    }

    /// An entry is not sent because a directory around it is refused.
    pub(crate) fn leave_out(&self) {
        self.state().report.within_refused();
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

    /// A symbolic link is left out because nobody said what to do with it.
    pub(crate) fn skip_link(&self, path: &Path) {
        self.skip(
            path,
            "a symbolic link (--keep-links sends it as a link, --follow sends what it points to)",
        );
        self.state().report.skipped_links += 1;
    }

    /// All places of the receiver are taken: said once.
    pub(crate) fn queued(&self, ahead: u32) {
        if !std::mem::replace(&mut self.state().queued, true) {
            self.bar.suspend(|| {
                eprintln!("tack: the receiver is busy; waiting ({ahead} senders ahead)");
            });
        }
    }

    // The answers' side.

    /// The receiver stored a file.
    pub(crate) fn confirm(&self, index: u64, size: u64, hash: &Hash) -> Result<(), BadAnswer> {
        let mut state = self.state();
        let pending = state
            .pending
            .remove(&index)
            .ok_or(BadAnswer("it confirms an entry that was not sent"))?;
        let Some((sent_size, sent_hash)) = pending.sent else {
            return Err(BadAnswer("it confirms a file before its end"));
        };
        if (size, hash) == (sent_size, &sent_hash) {
            match &pending.target {
                Some(target) => state.report.link(&pending.path, target, hash),
                None => state.report.file(&pending.path, size, hash),
            }
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
            return Err(BadAnswer("it refuses an entry that was not sent"));
        }
        let position = state.active.iter().position(|(active, _)| *active == index);
        if state.aborted.remove(&index) {
            return Ok(());
        }
        let path = match state.pending.remove(&index) {
            Some(pending) => Some(pending.path),
            None => state.directories.refuse(index),
        };
        let path = path.ok_or(BadAnswer("it refuses an entry twice"))?;
        if let Some(position) = position {
            state.refused = Some(
                state
                    .refused
                    .map_or(position, |refused| refused.min(position)),
            );
        }
        if reason == Refusal::Parent {
            // That directory is named.
            state.report.within_refused();
        } else {
            let why = format!("refused by the receiver ({reason}): {}", printable(message));
            self.failed(&mut state, &path, &why);
        }
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
            return Err(BadAnswer(
                "its file count is lower than the number of files it confirmed",
            ));
        }
        state.report.directories = state.directories.sent;
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
            Report::new(crate::transfer::report::Listing::CountsOnly),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::report::Listing;

    fn confirmations() -> Confirmations {
        Confirmations::new(Report::new(Listing::Files), ProgressBar::hidden())
    }

    fn failures(report: &mut Report) -> serde_json::Value {
        let mut out = Vec::new();
        let summary = serde_json::json!({"failed": report.failed});
        report.write_json(&summary, &mut out).unwrap();
        serde_json::from_slice::<serde_json::Value>(&out).unwrap()["failures"].take()
    }

    #[test]
    fn a_directory_left_long_ago_is_refused_by_its_name_and_is_not_stored() {
        let confirmations = confirmations();
        for name in ["a", "b", "c"] {
            confirmations.enter(Path::new(name));
            confirmations.leave();
        }
        confirmations
            .reject(1, Refusal::Exists, "it is there")
            .unwrap();
        assert!(confirmations.reject(1, Refusal::Exists, "again").is_err());
        confirmations.finish(0, 0).unwrap();
        let mut report = confirmations.take_report();
        assert_eq!((report.directories, report.failed), (2, 1));
        assert_eq!(failures(&mut report)[0]["path"], "b");
    }

    #[test]
    fn what_falls_with_a_directory_is_counted_once_however_soon_we_hear() {
        // Heard before the file was sent, while it was sent, and after.
        for heard in 0..3 {
            let confirmations = confirmations();
            let refuse = |index, reason| confirmations.reject(index, reason, "").unwrap();
            confirmations.enter(Path::new("dir"));
            if heard == 0 {
                refuse(0, Refusal::Exists);
                assert!(confirmations.is_refused());
                confirmations.leave_out();
            } else {
                confirmations.begin_file(Path::new("dir/file")).unwrap();
                if heard == 1 {
                    refuse(0, Refusal::Exists);
                    confirmations.abort_file(None);
                } else {
                    confirmations.end_file(1, [0; 32]);
                }
            }
            confirmations.leave();
            if heard == 2 {
                refuse(0, Refusal::Exists);
            }
            if heard > 0 {
                refuse(1, Refusal::Parent);
            }
            confirmations.finish(0, 0).unwrap();
            let mut report = confirmations.take_report();
            let counts = (report.directories, report.failed, report.within_refused);
            assert_eq!(counts, (0, 2, 1), "{heard}");
            assert_eq!(failures(&mut report).as_array().unwrap().len(), 1);
        }
    }

    #[test]
    fn more_directories_than_are_remembered() {
        let confirmations = confirmations();
        confirmations.enter(Path::new("root"));
        for number in 0..MAX_REMEMBERED + 10 {
            confirmations.enter(Path::new(&format!("root/{number}")));
            confirmations.leave();
        }
        confirmations.reject(2, Refusal::Name, "").unwrap();
        confirmations.reject(0, Refusal::Storage, "").unwrap();
        confirmations.leave();
        confirmations.finish(0, 0).unwrap();
        let mut report = confirmations.take_report();
        assert_eq!(report.directories, MAX_REMEMBERED as u64 + 9);
        let failures = failures(&mut report);
        let path = failures[0]["path"].as_str().unwrap();
        assert_eq!(path, "(a directory sent before root/11)");
        assert_eq!(failures[1]["path"], "root");
    }
}
