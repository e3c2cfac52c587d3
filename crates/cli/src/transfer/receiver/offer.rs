//! Whether an offered file is wanted: what is there, and what may be done about it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::beside::{MOST_BESIDE, beside, may_be_ours, was_renamed_from};
use super::cursor::Cursor;
use super::existing::Existing;
use super::part;
use super::refused::Refused;
use super::reserved::Reservation;
use super::staged::{permitted, set_modified};
use crate::transfer::groups::{GROUP, hash_of};
use crate::transfer::protocol::{Entry, Hash, Kept, MAX_HOLES, Modified, Refusal};

/// A file whose content the sender is to send.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Path below the receiving directory.
    pub(crate) path: PathBuf,
    pub(crate) mode: u32,
    pub(crate) modified: Modified,
    /// Bytes of the file, where the sender knows.
    pub(crate) size: Option<u64>,
    /// Bytes of it outside holes: the room that it takes.
    pub(crate) data: u64,
    /// The policy for an existing entry of that name.
    pub(crate) existing: Existing,
    /// Bytes of the file that the receiver may have.
    pub(crate) listed: u64,
    /// Where the receiver has these bytes.
    pub(crate) here: LocalCopy,
    /// The name of the part; `None` for a file too small for one.
    pub(crate) part: Option<String>,
    /// The reservation of the name, until the file has it.
    pub(crate) reservation: Option<Reservation>,
}

/// What the receiver has of an offered file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LocalCopy {
    Nothing,
    /// The part of an interrupted transfer.
    Part,
    /// Another version of the file.
    Old,
}

/// The answer to an offer.
#[derive(Debug)]
pub(crate) enum Answer {
    Want(Box<Wanted>),
    /// It need not be sent: this path is here.
    Have(Kept, PathBuf),
}

/// Files beside a taken name that are read to compare their contents with one offer: a peer that
/// stored many makes the receiver read no more. The newest are the likeliest.
const MOST_READ: usize = 16;

impl Cursor<'_> {
    /// Whether a file is wanted here. `hash` is that of its content, if contents are to be
    /// compared.
    pub(crate) fn offer(
        &mut self,
        entry: &Entry<'_>,
        hash: Option<&Hash>,
    ) -> Result<Answer, Refused> {
        self.check_name(entry.name)?;
        let mut wanted = Wanted {
            path: self.path_of(entry.name),
            mode: entry.mode,
            modified: entry.modified,
            size: entry.size,
            data: entry.data,
            existing: self.existing,
            listed: 0,
            here: LocalCopy::Nothing,
            part: None,
            reservation: None,
        };
        if self.is_nowhere() || self.store.output.is_some() {
            return Ok(Answer::Want(Box::new(wanted)));
        }
        wanted.reservation = Some(self.reserve(entry.name)?);
        // What of it is on the disk, where it stays.
        let mut room = 0;
        let found =
            match rustix::fs::statat(self.dir.as_fd(), entry.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => Some(found),
                Err(Errno::NOENT) => None,
                Err(error) => return Err(Refused::storage(&error.into())),
            };
        if let Some(found) = &found {
            if let Some(kept) = self.compare(entry, hash, found)? {
                return Ok(Answer::Have(kept, wanted.path));
            }
            if self.existing == Existing::Rename
                && let Some(name) = self.find_beside(entry, hash)?
            {
                return Ok(Answer::Have(Kept::Unchanged, self.path_of(&name)));
            }
            let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
            // A peer learns what is in a file only where it may replace it.
            if is_file && wanted.existing.may_replace() {
                wanted.here = LocalCopy::Old;
                wanted.listed = u64::try_from(found.st_size).unwrap_or(0);
            }
        }
        if let Some(size) = entry.size.filter(|size| *size > part::SMALL) {
            let name = part::name(self.holder.owner(), &wanted.path);
            let held = part::held(&self.dir, &name);
            if held.len > 0 {
                (wanted.here, wanted.listed) = (LocalCopy::Part, held.len);
                room = held.room;
            }
            wanted.listed = wanted.listed.min(size);
            wanted.part = Some(name);
        }
        if wanted.part.is_none() || wanted.listed < GROUP {
            (wanted.here, wanted.listed) = (LocalCopy::Nothing, 0);
        }
        // Where only its time may differ, nothing may have to be written: that is looked at once
        // something differs.
        let may_stay = wanted.here == LocalCopy::Old
            && found
                .as_ref()
                .is_some_and(|found| is_same_size(entry, found));
        self.check_room(entry, if may_stay { entry.data } else { room })?;
        Ok(Answer::Want(Box::new(wanted)))
    }

    /// What is there against what is offered: kept, or to be replaced or joined (`None`), or a
    /// reason to refuse.
    fn compare(
        &mut self,
        entry: &Entry<'_>,
        hash: Option<&Hash>,
        found: &Stat,
    ) -> Result<Option<Kept>, Refused> {
        let kind = FileType::from_raw_mode(found.st_mode);
        let modified = modified_of(found);
        let is_same = is_same_size(entry, found)
            && match hash {
                Some(hash) => hash_in(&self.dir, entry.name)
                    .map_err(|error| Refused::storage(&error))?
                    .is_some_and(|found| found == *hash),
                None => is_same_time(entry.modified, modified),
            };
        if is_same {
            self.adjust(entry, found);
            return Ok(Some(Kept::Unchanged));
        }
        if kind == FileType::Directory && self.existing != Existing::Rename {
            return match self.existing {
                Existing::Skip => Ok(Some(Kept::Skipped)),
                _ => Err(Refused::new(Refusal::Exists, "a directory has its name")),
            };
        }
        match self.existing {
            Existing::Refuse => Err(Refused::differs()),
            Existing::Skip => Ok(Some(Kept::Skipped)),
            Existing::Update if modified >= entry.modified => Ok(Some(Kept::Newer)),
            Existing::Rename | Existing::Update | Existing::Overwrite => Ok(None),
        }
    }

    /// The name of the file beside a taken name that is the offered one: an earlier connection or
    /// an earlier transfer renamed it. The search ends where a new file would be stored.
    fn find_beside(
        &self,
        entry: &Entry<'_>,
        hash: Option<&Hash>,
    ) -> Result<Option<Vec<u8>>, Refused> {
        let mut to_read = Vec::new();
        for number in 1..=MOST_BESIDE {
            let name = beside(entry.name, number);
            let found =
                match rustix::fs::statat(self.dir.as_fd(), &*name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(found) => found,
                    Err(Errno::NOENT) => break,
                    Err(error) => return Err(Refused::storage(&error.into())),
                };
            if !is_same_size(entry, &found) {
                continue;
            }
            if hash.is_some() {
                to_read.push(name);
            } else if is_same_time(entry.modified, modified_of(&found))
                && self.was_renamed(&name, &found, entry.name)
            {
                return Ok(Some(name));
            }
        }
        let Some(hash) = hash else { return Ok(None) };
        let is_same = |name: &Vec<u8>| {
            // One that cannot be read is not known to be the same.
            let found = hash_in(&self.dir, name).ok().flatten();
            found.is_some_and(|found| found == *hash)
        };
        Ok(to_read.into_iter().rev().take(MOST_READ).find(is_same))
    }

    /// Whether the file called `name` was to be called `own`.
    fn was_renamed(&self, name: &[u8], found: &Stat, own: &[u8]) -> bool {
        match open_here(&self.dir, name) {
            Ok(Some(file)) => was_renamed_from(&file, own),
            Ok(None) => false,
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied && may_be_ours(found),
        }
    }

    /// Gives an unchanged file the sender's mode and time, where files may be replaced.
    fn adjust(&mut self, entry: &Entry<'_>, found: &Stat) {
        let mode = permitted(entry.mode);
        let is_same = mode.as_raw_mode() == found.st_mode & 0o7777
            && is_same_time(entry.modified, modified_of(found));
        if is_same || self.is_dry() || !self.existing.may_replace() {
            return;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        // Its content is right, so this is not a reason to refuse it.
        if let Ok(file) = rustix::fs::openat(self.dir.as_fd(), entry.name, flags, Mode::empty()) {
            let _ = rustix::fs::fchmod(&file, mode);
            set_modified(&file, entry.modified);
            self.changed = true;
        }
    }

    fn check_room(&self, entry: &Entry<'_>, here: u64) -> Result<(), Refused> {
        let size = entry.size.unwrap_or(0);
        if size.saturating_sub(entry.data) > MAX_HOLES {
            return Err(Refused::holes());
        }
        match entry.size {
            Some(_) => find_room(&self.dir, entry.data.saturating_sub(here)),
            None => Ok(()),
        }
    }
}

/// Whether the disk of `dir` has room for so many bytes, as far as it tells.
pub(super) fn find_room(dir: &Dir, needed: u64) -> Result<(), Refused> {
    let Ok(disk) = rustix::fs::fstatvfs(dir.as_fd()) else {
        return Ok(());
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if needed > free {
        let message =
            format!("the receiver's disk has room for {free} bytes, the file needs {needed}");
        return Err(Refused::new(Refusal::NoSpace, message));
    }
    Ok(())
}

fn is_same_size(entry: &Entry<'_>, found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && entry.size.is_some()
        && entry.size == u64::try_from(found.st_size).ok()
}

pub(super) fn modified_of(found: &Stat) -> Modified {
    Modified {
        seconds: found.st_mtime,
        nanos: u32::try_from(found.st_mtime_nsec).unwrap_or(0),
    }
}

/// A file system that keeps whole seconds says nothing about their parts.
pub(super) fn is_same_time(offered: Modified, found: Modified) -> bool {
    offered.seconds == found.seconds && (offered.nanos == found.nanos || found.nanos == 0)
}

/// Opens a file that is here, if it is a regular one, without following a link or waiting for a
/// pipe.
pub(super) fn open_here(dir: &Dir, name: impl rustix::path::Arg) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(dir.as_fd(), name, flags, Mode::empty())?);
    Ok(file.metadata()?.is_file().then_some(file))
}

fn hash_in(dir: &Arc<Dir>, name: &[u8]) -> io::Result<Option<Hash>> {
    open_here(dir, name)?.map(hash_of).transpose()
}
