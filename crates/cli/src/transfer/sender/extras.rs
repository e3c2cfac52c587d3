//! What the receiver has in the folders sent and the sender does not: told a few at a time, and
//! removed where the sender says so.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::bad_answer::BadAnswer;
use crate::transfer::buffers::Disconnected;
use crate::transfer::protocol::MAX_EXTRAS;

/// An entry that is at the receiver and did not come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Extra {
    pub(crate) number: u64,
    pub(crate) is_dir: bool,
    /// Below the receiving directory, as the receiver says.
    pub(crate) path: Vec<u8>,
}

#[derive(Debug, Default)]
struct State {
    /// An answer is under way.
    asked: bool,
    told: VecDeque<Extra>,
    /// The answer is complete; whether there are more.
    end: Option<bool>,
    /// Those that are being removed.
    removing: BTreeMap<u64, PathBuf>,
    hung: bool,
}

/// Shared by the thread that asks and the task that reads answers.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    state: Mutex<State>,
    changed: Condvar,
}

impl Extras {
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

    pub(super) fn hang(&self) {
        self.state().hung = true;
        self.changed.notify_all();
    }

    pub(super) fn begin_again(&self) {
        *self.state() = State::default();
    }

    /// The question is about to leave.
    pub(crate) fn ask(&self) {
        self.state().asked = true;
    }

    /// Waits for the answer: the next ones, and whether there are more.
    pub(crate) fn told(&self) -> Result<(VecDeque<Extra>, bool), Disconnected> {
        let mut state = self.wait_while(|state| state.end.is_none())?;
        let more = state.end.take().unwrap_or(false);
        Ok((std::mem::take(&mut state.told), more))
    }

    /// One of them is to be removed; at `path` here, for people.
    pub(crate) fn remove(&self, number: u64, path: PathBuf) {
        self.state().removing.insert(number, path);
    }

    /// Waits until all that were to be removed are, or are not.
    pub(crate) fn wait_for_removals(&self) -> Result<(), Disconnected> {
        self.wait_while(|state| !state.removing.is_empty())
            .map(drop)
    }

    /// The receiver tells one.
    pub(super) fn tell(&self, extra: Extra) -> Result<(), BadAnswer> {
        let mut state = self.state();
        if !state.asked || state.told.len() as u64 >= MAX_EXTRAS {
            return Err(BadAnswer::unexpected());
        }
        state.told.push_back(extra);
        Ok(())
    }

    /// The receiver told all for now.
    pub(super) fn end(&self, more: bool) -> Result<(), BadAnswer> {
        let mut state = self.state();
        if !std::mem::take(&mut state.asked) {
            return Err(BadAnswer::unexpected());
        }
        state.end = Some(more);
        self.changed.notify_all();
        Ok(())
    }

    /// One was removed, or was not: what it was.
    pub(super) fn removed(&self, number: u64) -> Result<PathBuf, BadAnswer> {
        let path = self.state().removing.remove(&number);
        self.changed.notify_all();
        path.ok_or(BadAnswer::unexpected())
    }
}
