//! Which entries the receiver has not yet answered: shared by the thread that reads files and the
//! task that reads answers. Here is what the thread does; `answers` has what the answers do.

mod answers;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use super::directories::{Directories, MAX_REMEMBERED};
use super::extras::Extras;
use super::monitor::{Guard, Monitor};
use super::progress::Progress;
use crate::printer::counted;
use crate::transfer::buffers::Disconnected;
use crate::transfer::names::printable;
use crate::transfer::protocol::{Hash, MAX_ASKED, Value};
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

/// The receiver's answer to an offered file.
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
    /// Bytes of content that the present connection took.
    taken: u64,
    /// Paths whose confirmation is in the report, and those whose trouble was reported.
    counted: HashSet<u64>,
    reported: HashSet<u64>,
    queued: bool,
}

/// The shared state.
#[derive(Debug)]
pub(crate) struct Confirmations {
    state: Monitor<State>,
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
            reported: HashSet::new(),
            taken: 0,
            queued: false,
        };
        Self {
            state: Monitor::new(state),
            progress,
            hashes: RandomState::new(),
            extras: Extras::default(),
        }
    }

    fn state(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// The stream is gone: waiting for answers ends.
    pub(crate) fn disconnect(&self) {
        self.state.disconnect();
        self.extras.disconnect();
    }

    /// Everything is asked for again, over a new connection. What was confirmed stays counted;
    /// nothing else does.
    pub(crate) fn begin_again(&self, was_lost: bool) {
        self.state.reconnect(|state| {
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
        });
        self.extras.begin_again();
    }

    /// A file is about to be offered. Waits while too many are unconfirmed.
    pub(crate) fn offer(&self, path: &Path) -> Result<u64, Disconnected> {
        let mut state = self
            .state
            .wait_while(|state| state.pending.len() >= MAX_PENDING)?;
        Ok(state.add(path, None, None))
    }

    /// A symbolic link's frame is about to leave; it is complete in itself.
    pub(crate) fn link(&self, path: &Path, target: &[u8], hash: Hash) -> Result<(), Disconnected> {
        let mut state = self
            .state
            .wait_while(|state| state.pending.len() >= MAX_PENDING)?;
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
        let state = self.state.wait_while(unanswered)?;
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
        self.state
            .wait_while(|state| state.pending.contains_key(&index))
            .map(drop)
    }

    /// Waits until every entry is answered, and says whether all went well.
    pub(crate) fn wait_for_all(&self) -> Result<bool, Disconnected> {
        let state = self.state.wait_while(|state| !state.pending.is_empty())?;
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
        self.state.notify();
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
        Ok(self.state.wait_while(waiting)?.values.pop_front())
    }

    /// Waits until no query is open, and forgets the answers: the file ends here.
    pub(crate) fn forget_values(&self) -> Result<(), Disconnected> {
        self.state
            .wait_while(|state| !state.queries.is_empty())?
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

    /// Prints a message about a path once, even if the path is sent again.
    fn say(&self, state: &mut State, path: &Path, what: &str) {
        let hash = self.hashes.hash_one((path, what));
        if remember(&mut state.reported, hash) {
            self.progress
                .say(&format!("{}: {what}", printable(&path.to_string_lossy())));
        }
    }

    /// Something of the source is left out on purpose.
    pub(crate) fn skip(&self, path: &Path, why: &str) {
        let mut state = self.state();
        if !self.progress.is_quiet() {
            self.say(&mut state, path, &format!("skipped: {why}"));
        }
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

    /// Counts of what was left out of the source, by reason.
    pub(crate) fn left_out(&self) -> Vec<(u64, String)> {
        self.state().report.left_out_here()
    }

    /// The stream took bytes of content.
    pub(crate) fn carried(&self, bytes: u64) {
        let mut state = self.state();
        state.report.carried += bytes;
        state.taken += bytes;
    }

    /// The connection is over: how much content its stream took.
    pub(super) fn take_taken(&self) -> u64 {
        std::mem::take(&mut self.state().taken)
    }

    /// Of the bytes that the stream took, these never left: the connection was lost before.
    pub(crate) fn never_left(&self, bytes: u64) {
        let report = &mut self.state().report;
        report.carried = report.carried.saturating_sub(bytes);
    }

    /// The receiver serves its maximum of transfers: reports it once.
    pub(crate) fn queued(&self, ahead: u32) {
        if !std::mem::replace(&mut self.state().queued, true) {
            self.progress.say(&format!(
                "the receiver is busy; waiting ({} ahead)",
                counted(ahead.into(), "sender")
            ));
        }
    }

    /// Lists an entry that a dry run would remove.
    pub(crate) fn would_remove(&self, path: &Path) {
        self.state().report.would_remove += 1;
        let path = printable(&path.to_string_lossy());
        self.progress.list(&format!("{path} (to be removed)"));
    }

    /// A request that is not about a file was not carried out.
    pub(crate) fn note(&self, path: &Path, what: &str) {
        self.say(&mut self.state(), path, what);
    }

    /// Counts a file that a dry run would send.
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

/// Inserts a hash into a bounded set; false if it was there.
fn remember(set: &mut HashSet<u64>, hash: u64) -> bool {
    if set.len() >= MAX_COUNTED {
        return !set.contains(&hash);
    }
    set.insert(hash)
}

impl State {
    /// Adds an entry that awaits its answer.
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
