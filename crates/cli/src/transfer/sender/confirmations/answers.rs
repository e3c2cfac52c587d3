//! What an answer of the receiver does. An answer that fits nothing that was sent is an error.

use std::hash::BuildHasher;

use super::{Confirmations, remember};
use crate::transfer::names::printable;
use crate::transfer::protocol::{Hash, Kept, Refusal, Value};
use crate::transfer::sender::bad_answer::BadAnswer;
use crate::transfer::sender::extras::Extra;

impl Confirmations {
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
        self.state.notify();
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
        self.state.notify();
        Ok(())
    }

    /// The receiver sent values of groups.
    pub(crate) fn groups(&self, first: u64, values: Vec<Value>) -> Result<(), BadAnswer> {
        let mut state = self.state();
        match state.queries.pop_front() {
            Some((asked, count)) if asked == first && values.len() <= usize::from(count) => {
                state.values.push_back((first, values));
                self.state.notify();
                Ok(())
            }
            _ => Err(BadAnswer("it lists groups that were not asked for")),
        }
    }

    /// The receiver stored a file; `name` is empty unless it chose another name.
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
        self.state.notify();
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
        self.state.notify();
        Ok(())
    }

    /// The receiver reports an entry that the sender does not have.
    pub(crate) fn extra(&self, extra: Extra) -> Result<(), BadAnswer> {
        self.extras.report(extra)
    }

    /// The receiver removed an entry, or reports why not.
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

    /// The receiver ends the transfer: every entry must have its answer.
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

    /// Ends a dry run: offers without an answer failed.
    pub(crate) fn finish_dry(&self) {
        let mut state = self.state();
        while let Some((_, pending)) = state.pending.pop_first() {
            if pending.wanted.is_none() && pending.target.is_none() {
                self.failed(&mut state, &pending.path, "not answered by the receiver");
            }
        }
    }
}
