//! Entries that the receiver has in the folders sent and the sender does not: reported a few at a
//! time, and removed where the sender asks for it.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use super::bad_answer::BadAnswer;
use super::monitor::Monitor;
use crate::transfer::buffers::Disconnected;
use crate::transfer::protocol::MAX_EXTRAS;

/// An entry that the receiver has and the sender does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Extra {
    pub(crate) number: u64,
    pub(crate) is_dir: bool,
    /// Path below the receiving directory, as the receiver reports it.
    pub(crate) path: Vec<u8>,
}

#[derive(Debug, Default)]
struct State {
    /// The request was sent, and its answer has not ended.
    asked: bool,
    reported: VecDeque<Extra>,
    /// Set once the answer has ended: whether there are more entries.
    end: Option<bool>,
    /// Entries whose removal was requested, by number.
    removing: BTreeMap<u64, PathBuf>,
}

/// The state of `--delete`, shared by the thread that asks and the task that reads answers.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    state: Monitor<State>,
}

impl Extras {
    pub(super) fn disconnect(&self) {
        self.state.disconnect();
    }

    pub(super) fn begin_again(&self) {
        self.state.reconnect(|state| *state = State::default());
    }

    /// Notes that the request is about to be sent.
    pub(crate) fn ask(&self) {
        self.state.lock().asked = true;
    }

    /// Waits for the answer: the next entries, and whether there are more.
    pub(crate) fn reported(&self) -> Result<(VecDeque<Extra>, bool), Disconnected> {
        let mut state = self.state.wait_while(|state| state.end.is_none())?;
        let more = state.end.take().unwrap_or(false);
        Ok((std::mem::take(&mut state.reported), more))
    }

    /// Notes that an entry is to be removed; `path` is for messages.
    pub(crate) fn remove(&self, number: u64, path: PathBuf) {
        self.state.lock().removing.insert(number, path);
    }

    /// Waits until every requested removal has its answer.
    pub(crate) fn wait_for_removals(&self) -> Result<(), Disconnected> {
        self.state
            .wait_while(|state| !state.removing.is_empty())
            .map(drop)
    }

    /// Handles an entry of the answer.
    pub(super) fn report(&self, extra: Extra) -> Result<(), BadAnswer> {
        let mut state = self.state.lock();
        if !state.asked || state.reported.len() as u64 >= MAX_EXTRAS {
            return Err(BadAnswer::unexpected());
        }
        state.reported.push_back(extra);
        Ok(())
    }

    /// Handles the end of the answer.
    pub(super) fn end(&self, more: bool) -> Result<(), BadAnswer> {
        let mut state = self.state.lock();
        if !std::mem::take(&mut state.asked) {
            return Err(BadAnswer::unexpected());
        }
        state.end = Some(more);
        self.state.notify();
        Ok(())
    }

    /// Handles the answer to a removal; returns the path of the entry.
    pub(super) fn removed(&self, number: u64) -> Result<PathBuf, BadAnswer> {
        let path = self.state.lock().removing.remove(&number);
        self.state.notify();
        path.ok_or(BadAnswer::unexpected())
    }
}
