//! Further names of a file (hard links): made where the first name is here, and else the file is
//! wanted once more.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::cursor::Cursor;
use super::existing::Existing;
use super::offer::{Answer, is_same_time, modified_of};
use super::refused::Refused;
use super::staged::temporary_name;
use crate::transfer::protocol::{Entry, Kept};

/// Bytes of paths that are remembered because further names may follow. Files beyond are sent once
/// for each name.
const MAX_FIRSTS: usize = 16 << 20;

/// The first names of files that have several, by the index of their entries.
#[derive(Debug, Default)]
pub(super) struct FirstNames {
    /// `None` until the file is here.
    paths: BTreeMap<u64, Option<PathBuf>>,
    bytes: usize,
}

impl FirstNames {
    /// A file is offered that has several names; `path` when it is here.
    pub(super) fn expect(&mut self, index: u64, path: &Path, is_here: bool) {
        let bytes = path.as_os_str().len() + 64;
        if self.bytes + bytes <= MAX_FIRSTS {
            self.bytes += bytes;
            self.paths.insert(index, is_here.then(|| path.to_owned()));
        }
    }

    /// A file is here, at `path`.
    pub(super) fn is_here(&mut self, index: u64, path: &Path) {
        if let Some(first) = self.paths.get_mut(&index) {
            *first = Some(path.to_owned());
        }
    }

    /// Where the file with this entry is.
    pub(super) fn path(&self, index: u64) -> Option<PathBuf> {
        self.paths.get(&index).cloned().flatten()
    }
}

impl Cursor<'_> {
    /// An entry that is a further name of the file at `first`; that is `None` where it is not here.
    pub(super) fn same(
        &mut self,
        entry: &Entry<'_>,
        first: Option<&Path>,
    ) -> Result<Answer, Refused> {
        self.check_name(entry.name)?;
        if let Some(first) = first
            && !self.is_nowhere()
            && !self.is_dry()
        {
            let _reserved = self.reserve(entry.name)?;
            if let Some(kept) = self.link_to(entry, first)? {
                return Ok(Answer::Have(kept, self.path_of(entry.name)));
            }
        }
        self.offer(entry, None)
    }

    /// Makes the further name, unless it is there or something speaks against it.
    fn link_to(&mut self, entry: &Entry<'_>, first: &Path) -> Result<Option<Kept>, Refused> {
        let storage = |error: Errno| Refused::storage(&error.into());
        let above = first.parent().unwrap_or(first);
        let (Ok(above), Some(name)) = (self.store.dir(above), first.file_name()) else {
            return Ok(None);
        };
        let Ok(source) = stat(&above, name) else {
            return Ok(None);
        };
        if !is_same_file(entry, &source) {
            return Ok(None);
        }
        let (above, fd) = (above.as_fd(), self.dir.as_fd());
        let flags = AtFlags::empty();
        let made = match stat(&self.dir, entry.name) {
            Err(Errno::NOENT) => rustix::fs::linkat(above, name, fd, entry.name, flags),
            Err(error) => return Err(storage(error)),
            Ok(found) if (found.st_dev, found.st_ino) == (source.st_dev, source.st_ino) => {
                return Ok(Some(Kept::Unchanged));
            }
            Ok(found) if self.may_become(entry, &found) => {
                let temporary = temporary_name();
                let made = rustix::fs::linkat(above, name, fd, &temporary, flags);
                made.and_then(|()| rustix::fs::renameat(fd, &temporary, fd, entry.name))
                    .inspect_err(|_| {
                        // It may not even be there.
                        let _ = rustix::fs::unlinkat(fd, &temporary, AtFlags::empty());
                    })
            }
            Ok(_) => return Ok(None),
        };
        match made {
            Ok(()) => {
                self.changed = true;
                Ok(Some(Kept::Linked))
            }
            // A file system without hard links, or with too few.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK | Errno::XDEV | Errno::NOSYS) => {
                Ok(None)
            }
            Err(error) => Err(storage(error)),
        }
    }

    /// Whether what is there may give way to a further name of another file.
    fn may_become(&self, entry: &Entry<'_>, found: &Stat) -> bool {
        FileType::from_raw_mode(found.st_mode) != FileType::Directory
            && match self.existing {
                Existing::Overwrite => true,
                Existing::Update => modified_of(found) <= entry.modified,
                Existing::Refuse | Existing::Skip | Existing::Rename => false,
            }
    }
}

fn stat(dir: &Dir, name: impl rustix::path::Arg) -> Result<Stat, Errno> {
    rustix::fs::statat(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Whether the file is still the one that was stored.
fn is_same_file(entry: &Entry<'_>, found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && entry.size == u64::try_from(found.st_size).ok()
        && is_same_time(entry.modified, modified_of(found))
}
