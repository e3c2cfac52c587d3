//! The content of one file as it arrives: in order, whole or only the groups that differ from what
//! is here.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;

use cap_std::fs::Dir;

use super::offer::{LocalCopy, Wanted, find_room, open_here};
use super::part;
use super::refused::Refused;
use super::staged::{Staged, permitted, set_modified};
use super::store::Store;
use crate::transfer::ahead::read_ahead;
use crate::transfer::arrived::Arrived;
use crate::transfer::groups::{FileHasher, GROUP, groups_in};
use crate::transfer::protocol::{Hash, MAX_ASKED, MAX_HOLES, Refusal, Value, Violation};

/// Groups behind a query whose values are kept: the sender compares two queries' groups while a
/// third is on its way.
const BEHIND: u64 = 2 * MAX_ASKED as u64;

/// A file that is being received.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) index: u64,
    /// Dropped before the name that `wanted` reserves: whoever gets the name next opens the part.
    staged: Option<Staged>,
    pub(crate) wanted: Box<Wanted>,
    dir: Arc<Dir>,
    name: Vec<u8>,
    hasher: FileHasher,
    /// Values that the sender was told, of the groups after those in `hasher`.
    told: VecDeque<Value>,
    /// The group after the last one of which the sender was told.
    asked: u64,
    /// Whole groups that are here, as far as they are reported.
    here: u64,
    /// The sender was told that groups may be here, and asks for them.
    was_listed: bool,
    /// The old version, as long as nothing differs from it.
    old: Option<File>,
    holes: u64,
}

/// What became of a complete file.
#[derive(Debug)]
pub(crate) enum Complete {
    /// To be committed.
    Stored(Staged),
    /// What was here is the same. Only mode and time are the sender's now.
    AsBefore,
}

impl Content {
    /// Begins with a file that was offered and is wanted.
    pub(crate) fn begin(
        index: u64,
        mut wanted: Box<Wanted>,
        store: &Store,
    ) -> Result<Self, Refused> {
        let storage = |error: io::Error| Refused::storage(&error);
        let parent = wanted.path.parent().unwrap_or(&wanted.path);
        let dir = store.dir(parent).map_err(storage)?;
        let name = wanted.path.file_name().unwrap_or_default();
        let name = name.as_encoded_bytes().to_vec();
        let was_listed = wanted.listed > 0;
        let (mut old, mut staged) = (None, None);
        match (&wanted.part, wanted.here) {
            (Some(_), LocalCopy::Old) => {
                old = match open_here(&dir, &name[..]) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    opened => opened.map_err(storage)?,
                };
                let len = match &old {
                    Some(old) => old.metadata().map_err(storage)?.len(),
                    None => 0,
                };
                // It may have shrunk or gone since the offer. What is not there is not told.
                wanted.listed = wanted.listed.min(len);
            }
            (Some(part), _) => {
                let opened = part::open(&dir, part).map_err(storage)?.ok_or_else(|| {
                    Refused::new(Refusal::Exists, "another receiver is storing this file")
                })?;
                wanted.listed = wanted.listed.min(opened.old());
                staged = Some(opened);
            }
            (None, _) => {
                staged = Some(match &store.output {
                    Some(output) => output.stage(&dir)?,
                    None => Staged::create(&dir).map_err(storage)?,
                });
            }
        }
        let size = wanted.size.unwrap_or(0);
        let here = match wanted.listed {
            listed if listed >= size => groups_in(size),
            listed => listed / GROUP,
        };
        Ok(Self {
            index,
            wanted,
            dir,
            name,
            hasher: FileHasher::new(),
            told: VecDeque::new(),
            asked: 0,
            here,
            was_listed,
            old,
            staged,
            holes: 0,
        })
    }

    /// Bytes of it that came or stay.
    pub(crate) fn position(&self) -> u64 {
        self.hasher.position()
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The group that the next byte belongs to; in the middle of one, the group after it.
    fn next_group(&self) -> u64 {
        groups_in(self.hasher.position())
    }

    /// Values of groups from `first` on. They are asked for in order and at most three queries
    /// ahead.
    pub(crate) fn query(
        &mut self,
        first: u64,
        count: u16,
    ) -> Result<Result<Vec<Value>, Refused>, Violation> {
        if !self.hasher.is_between() || first != self.asked || !self.was_listed {
            return Err(Violation::Group(first));
        }
        while self.next_group() < first.saturating_sub(BEHIND) {
            self.keep_next()?;
        }
        let end = first.saturating_add(count.into()).min(self.here);
        if end - self.next_group().min(end) > BEHIND + u64::from(MAX_ASKED) {
            return Err(Violation::Group(first));
        }
        let values = self.values(first, end.max(first));
        if let Ok(values) = &values {
            self.told.extend(values);
            // Also where fewer are here, so that the next query follows this one.
            self.asked = first.saturating_add(count.into());
        }
        Ok(values.map_err(|error| Refused::storage(&error)))
    }

    fn values(&self, first: u64, end: u64) -> io::Result<Vec<Value>> {
        let size = self.wanted.size.unwrap_or(0);
        let file = match (&self.old, &self.staged) {
            (Some(old), _) => old,
            (None, Some(staged)) => staged.file(),
            (None, None) if first == end => return Ok(Vec::new()),
            (None, None) => return Err(io::ErrorKind::NotFound.into()),
        };
        read_ahead(file, size, first..end, |mut groups| {
            let mut values = Vec::with_capacity((end - first) as usize);
            while let Some(group) = groups.next()? {
                values.push(group.value);
            }
            Ok(values)
        })
    }

    /// The next group stays as it is here.
    fn keep_next(&mut self) -> Result<(), Violation> {
        let group = self.next_group();
        let value = self.told.pop_front().ok_or(Violation::Group(group))?;
        self.hasher.push(&value);
        Ok(())
    }

    /// What follows is for group `group`; those up to it stay as they are here.
    pub(crate) fn seek(&mut self, group: u64) -> Result<(), Violation> {
        let groups = groups_in(self.wanted.size.unwrap_or(0));
        if !self.hasher.is_between() || group < self.next_group() || group >= groups {
            return Err(Violation::Group(group));
        }
        while self.next_group() < group {
            self.keep_next()?;
        }
        Ok(())
    }

    /// Bytes of the file.
    pub(crate) fn data(&mut self, mut arrived: impl Arrived) -> Result<(), Refused> {
        let bytes = arrived.bytes();
        let position = self.advance(bytes.len() as u64, |hasher| hasher.update(bytes))?;
        let staged = self.staged()?;
        staged.seek(position);
        staged
            .write(&mut arrived)
            .map_err(|error| Refused::storage(&error))
    }

    /// Zeros that take no room.
    pub(crate) fn hole(&mut self, len: u64) -> Result<(), Refused> {
        self.holes = self.holes.saturating_add(len);
        if self.holes > MAX_HOLES {
            return Err(Refused::holes());
        }
        let position = self.advance(len, |hasher| hasher.zeros(len))?;
        let staged = self.staged()?;
        staged.seek(position);
        staged.skip(len).map_err(|error| Refused::storage(&error))
    }

    /// Counts `len` bytes, and forgets what was told of the groups that they begin. Returns where
    /// they go.
    fn advance(&mut self, len: u64, hash: impl FnOnce(&mut FileHasher)) -> Result<u64, Refused> {
        let (position, before) = (self.hasher.position(), self.next_group());
        let end = position.saturating_add(len);
        if self.wanted.size.is_some_and(|size| end > size) {
            return Err(Refused::new(
                Refusal::Corrupt,
                "received more bytes than announced",
            ));
        }
        hash(&mut self.hasher);
        let begun = self.next_group() - before;
        self.told.drain(
            ..self
                .told
                .len()
                .min(usize::try_from(begun).unwrap_or(usize::MAX)),
        );
        // A query never goes back.
        self.asked = self.asked.max(self.next_group());
        Ok(position)
    }

    /// The file to write to. Where the old version served so far, it becomes a copy.
    fn staged(&mut self) -> Result<&mut Staged, Refused> {
        let storage = |error: io::Error| Refused::storage(&error);
        if self.staged.is_none() {
            if self.old.is_some() {
                // Both versions are on the disk until the new one is complete.
                find_room(&self.dir, self.wanted.data)?;
            }
            let name = self.wanted.part.as_deref().unwrap_or_default();
            let mut staged = part::open(&self.dir, name)
                .map_err(storage)?
                .ok_or_else(|| {
                    Refused::new(Refusal::Exists, "another receiver is storing this file")
                })?;
            if let Some(old) = self.old.take() {
                let len = self.wanted.listed;
                staged.copy_from(&old, len).map_err(storage)?;
            }
            self.staged = Some(staged);
        }
        self.staged
            .as_mut()
            .ok_or_else(|| Refused::storage(&io::ErrorKind::NotFound.into()))
    }

    /// The file is complete, if it is what the sender says.
    pub(crate) fn end(&mut self, expected: Hash) -> Result<(Complete, u64), Refused> {
        let checked = self.check(expected);
        if checked.is_err()
            && let Some(staged) = &mut self.staged
        {
            // Whatever is in it, it does not lead to this file.
            staged.discard();
        }
        let size = checked?;
        Ok((self.complete(size)?, size))
    }

    fn check(&mut self, expected: Hash) -> Result<u64, Refused> {
        let corrupt = || {
            Refused::new(
                Refusal::Corrupt,
                "the received bytes differ from the sent bytes (BLAKE3)",
            )
        };
        let mut whole = self.wanted.size.is_none();
        if let Some(size) = self.wanted.size {
            let position = self.hasher.position();
            whole = position == size;
            let groups = groups_in(size);
            if !whole && self.hasher.is_between() {
                while self.next_group() < groups {
                    self.keep_next().map_err(|_| corrupt())?;
                    whole = true;
                }
            }
        }
        let size = self.wanted.size.unwrap_or(self.hasher.position());
        let hasher = std::mem::replace(&mut self.hasher, FileHasher::new());
        match hasher.finish() {
            Some(hash) if whole && hash == expected => Ok(size),
            _ => Err(corrupt()),
        }
    }

    fn complete(&mut self, size: u64) -> Result<Complete, Refused> {
        let storage = |error: io::Error| Refused::storage(&error);
        if let Some(old) = &self.old {
            if old.metadata().map_err(storage)?.len() == size {
                rustix::fs::fchmod(old, permitted(self.wanted.mode))
                    .map_err(|error| storage(error.into()))?;
                set_modified(old, self.wanted.modified);
                return Ok(Complete::AsBefore);
            }
            // It was longer, and its beginning is all of the new one.
            self.staged()?;
        }
        let staged = self.staged.take();
        staged
            .map(Complete::Stored)
            .ok_or_else(|| storage(io::ErrorKind::NotFound.into()))
    }
}

#[cfg(test)]
mod tests;
