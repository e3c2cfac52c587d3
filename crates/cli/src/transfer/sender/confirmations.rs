//! Which entries the receiver has not yet answered: shared by the thread that reads files and the
//! task that reads answers.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::bad_answer::BadAnswer;
use super::directories::{Directories, MAX_REMEMBERED};
use super::extras::{Extra, Extras};
use super::progress::Progress;
use crate::transfer::buffers::Disconnected;
use crate::transfer::names::printable;
use crate::transfer::protocol::{Hash, Kept, MAX_ASKED, Refusal, Value};
use crate::transfer::report::Report;

/// Files that may be unconfirmed: bounds memory against a receiver that never answers.
const MAX_PENDING: usize = 8192;

/// Queries for values of groups that may be without an answer.
const MAX_QUERIES: usize = 3;

/// Paths that are remembered as counted, so that what is asked for again after a reconnection is
/// not counted again.
const MAX_COUNTED: usize = 1 << 20;

/// An entry whose answer is outstanding.
#[derive(Debug)]
struct Pending {
    path: PathBuf,
    /// Of a symbolic link.
    target: Option<Vec<u8>>,
    /// The receiver wants the content; it may have this many bytes of it.
    wanted: Option<u64>,
    /// Size and hash, once all of it has been read.
    sent: Option<(u64, Hash)>,
}

/// What the receiver said of an offered file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Its content is wanted. Of so many bytes at its beginning the receiver may have something.
    Wanted(u64),
    /// It is not to be sent: the receiver has it, or refused it.
    Settled,
}

#[derive(Debug)]
struct State {
    next: u64,
    pending: BTreeMap<u64, Pending>,
    directories: Directories,
    /// Files given up; a refusal may still come for them, and counts nothing.
    aborted: BTreeSet<u64>,
    /// Directories we are in.
    active: Vec<(u64, PathBuf)>,
    /// Position in `active` of the outermost directory that the receiver refused.
    refused: Option<usize>,
    /// Groups asked for: from where, how many.
    queries: VecDeque<(u64, u16)>,
    /// Answers to them that are not taken yet.
    values: VecDeque<(u64, Vec<Value>)>,
    report: Report,
    /// Paths whose confirmation is in the report, and those whose trouble was told.
    counted: HashSet<u64>,
    told: HashSet<u64>,
    queued: bool,
    hung: bool,
}

/// The shared state.
#[derive(Debug)]
pub(crate) struct Confirmations {
    state: Mutex<State>,
    changed: Condvar,
    /// Steps aside for what is said to people.
    progress: Progress,
    hashes: RandomState,
    /// What the receiver has and we do not.
    pub(crate) extras: Extras,
}

impl Confirmations {
    pub(crate) fn new(report: Report, progress: Progress) -> Self {
        let state = State {
            next: 0,
            pending: BTreeMap::new(),
            directories: Directories::default(),
            aborted: BTreeSet::new(),
            active: Vec::new(),
            refused: None,
            queries: VecDeque::new(),
            values: VecDeque::new(),
            report,
            counted: HashSet::new(),
            told: HashSet::new(),
            queued: false,
            hung: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            progress,
            hashes: RandomState::new(),
            extras: Extras::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(
        &self,
        busy: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'_, State>, Disconnected> {
        let state = self
            .changed
            .wait_while(self.state(), |state| !state.hung && busy(state))
            .unwrap_or_else(PoisonError::into_inner);
        if state.hung {
            Err(Disconnected)
        } else {
            Ok(state)
        }
    }

    /// The stream is gone: waiting for answers ends.
    pub(crate) fn hang(&self) {
        self.state().hung = true;
        self.changed.notify_all();
        self.extras.hang();
    }

    /// Everything is asked for again, over a new connection. What was confirmed stays counted;
    /// nothing else does.
    pub(crate) fn begin_again(&self, was_lost: bool) {
        let mut state = self.state();
        let state = &mut *state;
        state.next = 0;
        state.pending.clear();
        state.directories = Directories::default();
        state.aborted.clear();
        state.active.clear();
        state.refused = None;
        state.queries.clear();
        state.values.clear();
        state.report.begin_again(was_lost);
        state.queued = false;
        state.hung = false;
        self.extras.begin_again();
    }

    // The reading thread's side.

    /// A file is about to be offered. Waits while too many are unconfirmed.
    pub(crate) fn offer(&self, path: &Path) -> Result<u64, Disconnected> {
        let mut state = self.wait_while(|state| state.pending.len() >= MAX_PENDING)?;
        Ok(state.add(path, None, None))
    }

    /// A symbolic link's frame is about to leave; it is complete in itself.
    pub(crate) fn link(&self, path: &Path, target: &[u8], hash: Hash) -> Result<(), Disconnected> {
        let mut state = self.wait_while(|state| state.pending.len() >= MAX_PENDING)?;
        let sent = (target.len() as u64, hash);
        state.add(path, Some(target.to_owned()), Some(sent));
        Ok(())
    }

    /// Waits for what the receiver says of an offered file.
    pub(crate) fn verdict(&self, index: u64) -> Result<Verdict, Disconnected> {
        let unanswered = |state: &State| {
            let pending = state.pending.get(&index);
            pending.is_some_and(|pending| pending.wanted.is_none())
        };
        let state = self.wait_while(unanswered)?;
        Ok(match state.pending.get(&index) {
            Some(Pending {
                wanted: Some(listed),
                ..
            }) => Verdict::Wanted(*listed),
            _ => Verdict::Settled,
        })
    }

    /// True when what the receiver says of the file is known.
    pub(crate) fn is_answered(&self, index: u64) -> bool {
        let state = self.state();
        let pending = state.pending.get(&index);
        pending.is_none_or(|pending| pending.wanted.is_some())
    }

    /// Waits until the receiver has said all about an entry; all of it must have been sent.
    pub(crate) fn wait_for(&self, index: u64) -> Result<(), Disconnected> {
        self.wait_while(|state| state.pending.contains_key(&index))
            .map(drop)
    }

    /// Waits until every entry is answered, and says whether all went well.
    pub(crate) fn wait_for_all(&self) -> Result<bool, Disconnected> {
        let state = self.wait_while(|state| !state.pending.is_empty())?;
        Ok(state.report.failed == 0)
    }

    /// The file was read completely.
    pub(crate) fn end_file(&self, index: u64, size: u64, hash: Hash) {
        if let Some(pending) = self.state().pending.get_mut(&index) {
            pending.sent = Some((size, hash));
        }
    }

    /// The file will not be sent to its end. Without an error the receiver refused it.
    pub(crate) fn abort_file(&self, index: u64, error: Option<&str>) {
        let mut state = self.state();
        if let Some(pending) = state.pending.remove(&index) {
            state.aborted.insert(index);
            if state.aborted.len() > MAX_REMEMBERED {
                state.aborted.pop_first();
            }
            match error {
                Some(error) => self.failed(&mut state, &pending.path, error),
                None => state.report.within_refused(),
            }
        }
        self.changed.notify_all();
    }

    /// True when the receiver refused the file, so that no more of it need be sent.
    pub(crate) fn is_settled(&self, index: u64) -> bool {
        !self.state().pending.contains_key(&index)
    }

    /// Values of groups are about to be asked for.
    pub(crate) fn ask(&self, first: u64, count: u16) {
        let mut state = self.state();
        debug_assert!(state.queries.len() < MAX_QUERIES && count <= MAX_ASKED);
        state.queries.push_back((first, count));
    }

    /// Waits for the answer to the oldest query: the group it begins with, and the values. `None`
    /// when the file was refused.
    pub(crate) fn values(&self, index: u64) -> Result<Option<(u64, Vec<Value>)>, Disconnected> {
        let waiting = |state: &State| {
            state.values.is_empty()
                && !state.queries.is_empty()
                && state.pending.contains_key(&index)
        };
        Ok(self.wait_while(waiting)?.values.pop_front())
    }

    /// Waits until no query is open, and forgets the answers: the file ends here.
    pub(crate) fn forget_values(&self) -> Result<(), Disconnected> {
        self.wait_while(|state| !state.queries.is_empty())?
            .values
            .clear();
        Ok(())
    }

    /// A directory's frame is about to leave.
    pub(crate) fn enter(&self, path: &Path) {
        let mut state = self.state();
        let index = state.next;
        state.next += 1;
        state.active.push((index, path.to_owned()));
        let State {
            directories,
            active,
            ..
        } = &mut *state;
        directories.enter(index, path, active);
    }

    /// The innermost directory is complete.
    pub(crate) fn leave(&self) {
        let mut state = self.state();
        state.active.pop();
        if state
            .refused
            .is_some_and(|position| position >= state.active.len())
        {
            state.refused = None;
        }
    }

    /// True when the receiver refused a directory that we are in.
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
        self.say(state, path, error);
        state.report.failure(path, error);
    }

    /// Says something of a path once, however often it is asked for.
    fn say(&self, state: &mut State, path: &Path, what: &str) {
        let hash = self.hashes.hash_one((path, what));
        if remember(&mut state.told, hash) {
            self.progress
                .say(&format!("{}: {what}", printable(&path.to_string_lossy())));
        }
    }

    /// Something of the source is left out on purpose.
    pub(crate) fn skip(&self, path: &Path, why: &str) {
        let mut state = self.state();
        self.say(&mut state, path, &format!("skipped: {why}"));
        state.report.skipped += 1;
    }

    /// A symbolic link is left out because nobody said what to do with it.
    pub(crate) fn skip_link(&self, path: &Path) {
        self.skip(path, "a symbolic link");
        self.state().report.skipped_links += 1;
    }

    /// Something is left out because of --exclude or an ignore file.
    pub(crate) fn exclude(&self) {
        self.state().report.excluded += 1;
    }

    /// What was left out of the source, by reasons.
    pub(crate) fn left_out(&self) -> Vec<(u64, String)> {
        self.state().report.left_out_here()
    }

    /// Bytes of content went to the stream.
    pub(crate) fn carried(&self, bytes: u64) {
        self.state().report.carried += bytes;
    }

    /// All places of the receiver are taken: said once.
    pub(crate) fn queued(&self, ahead: u32) {
        if !std::mem::replace(&mut self.state().queued, true) {
            self.progress.say(&format!(
                "the receiver is busy; waiting ({ahead} senders ahead)"
            ));
        }
    }

    // The answers' side.

    /// The receiver wants the content of an offered file.
    pub(crate) fn want(&self, index: u64, listed: u64) -> Result<(), BadAnswer> {
        let mut state = self.state();
        if state.aborted.contains(&index) {
            return Ok(());
        }
        let pending = state.pending.get_mut(&index);
        let pending =
            pending.filter(|pending| pending.target.is_none() && pending.wanted.is_none());
        let pending = pending.ok_or(BadAnswer("it wants a file that was not offered"))?;
        pending.wanted = Some(listed);
        self.changed.notify_all();
        Ok(())
    }

    /// The receiver has an offered file already.
    pub(crate) fn have(&self, index: u64, kept: Kept) -> Result<(), BadAnswer> {
        let mut state = self.state();
        let pending = state.pending.remove(&index);
        let pending = pending.filter(|pending| pending.wanted.is_none());
        let pending = pending.ok_or(BadAnswer("it has a file that was not offered"))?;
        // Perhaps it was stored over an earlier connection.
        if remember(&mut state.counted, self.hashes.hash_one(&pending.path)) {
            state.report.kept(kept);
        }
        self.progress.done(&pending.path);
        self.changed.notify_all();
        Ok(())
    }

    /// Values of groups came.
    pub(crate) fn groups(&self, first: u64, values: Vec<Value>) -> Result<(), BadAnswer> {
        let mut state = self.state();
        match state.queries.pop_front() {
            Some((asked, count)) if asked == first && values.len() <= usize::from(count) => {
                state.values.push_back((first, values));
                self.changed.notify_all();
                Ok(())
            }
            _ => Err(BadAnswer("it lists groups that were not asked for")),
        }
    }

    /// The receiver stored a file, under this name where it is not its own.
    pub(crate) fn confirm(
        &self,
        index: u64,
        size: u64,
        hash: &Hash,
        name: &[u8],
    ) -> Result<(), BadAnswer> {
        let mut state = self.state();
        let pending = state
            .pending
            .remove(&index)
            .ok_or(BadAnswer("it confirms an entry that was not sent"))?;
        let Some((sent_size, sent_hash)) = pending.sent else {
            return Err(BadAnswer("it confirms a file before its end"));
        };
        let is_new = remember(&mut state.counted, self.hashes.hash_one(&pending.path));
        if (size, hash) != (sent_size, &sent_hash) {
            self.failed(
                &mut state,
                &pending.path,
                "the receiver stored different bytes (BLAKE3)",
            );
        } else if is_new {
            match &pending.target {
                Some(target) => state.report.link(&pending.path, target, hash),
                None => state.report.file(&pending.path, size, hash),
            }
        }
        if !name.is_empty() {
            let name = printable(&String::from_utf8_lossy(name));
            self.say(&mut state, &pending.path, &format!("stored as {name}"));
        }
        self.progress.done(&pending.path);
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

    /// The receiver has something that we do not.
    pub(crate) fn extra(&self, extra: Extra) -> Result<(), BadAnswer> {
        self.extras.tell(extra)
    }

    /// The receiver removed something, or says why not.
    pub(crate) fn removed(&self, number: u64, message: &str) -> Result<(), BadAnswer> {
        let path = self.extras.removed(number)?;
        let mut state = self.state();
        if message.is_empty() {
            state.report.removed += 1;
            self.progress.removed(&path);
        } else {
            let why = format!("not removed by the receiver: {}", printable(message));
            self.failed(&mut state, &path, &why);
        }
        Ok(())
    }

    /// Of a dry run: this would be removed.
    pub(crate) fn would_remove(&self, path: &Path) {
        self.state().report.would_remove += 1;
        let path = printable(&path.to_string_lossy());
        self.progress.list(&format!("{path} (to be removed)"));
    }

    /// A request that is not about a file was not carried out.
    pub(crate) fn note(&self, path: &Path, what: &str) {
        self.say(&mut self.state(), path, what);
    }

    /// The receiver says that this is all. Everything must have been answered.
    pub(crate) fn finish(&self, files: u64, bytes: u64) -> Result<(), BadAnswer> {
        let mut state = self.state();
        while let Some((_, pending)) = state.pending.pop_first() {
            self.failed(&mut state, &pending.path, "not confirmed by the receiver");
        }
        // It counts what this connection stored.
        let is_first = state.report.reconnects == 0;
        if is_first && (files, bytes) < (state.report.files, state.report.bytes) {
            return Err(BadAnswer(
                "its file count is lower than the number of files it confirmed",
            ));
        }
        state.report.directories = state.directories.sent;
        Ok(())
    }

    /// Of a dry run: everything was answered that will be.
    pub(crate) fn finish_dry(&self) {
        let mut state = self.state();
        while let Some((_, pending)) = state.pending.pop_first() {
            if pending.wanted.is_none() && pending.target.is_none() {
                self.failed(&mut state, &pending.path, "not answered by the receiver");
            }
        }
    }

    /// A file of a dry run would be sent.
    pub(crate) fn would_send(&self, index: u64, size: u64) {
        let mut state = self.state();
        if let Some(pending) = state.pending.remove(&index) {
            state.report.would_store(size);
            self.progress
                .list(&printable(&pending.path.to_string_lossy()));
        }
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

/// Adds to a set, within its bound; false when it was there.
fn remember(set: &mut HashSet<u64>, hash: u64) -> bool {
    if set.len() >= MAX_COUNTED {
        return !set.contains(&hash);
    }
    set.insert(hash)
}

impl State {
    /// An entry that will be answered.
    fn add(&mut self, path: &Path, target: Option<Vec<u8>>, sent: Option<(u64, Hash)>) -> u64 {
        let index = self.next;
        self.next += 1;
        self.pending.insert(
            index,
            Pending {
                path: path.to_owned(),
                target,
                wanted: None,
                sent,
            },
        );
        index
    }
}

#[cfg(test)]
mod tests;
