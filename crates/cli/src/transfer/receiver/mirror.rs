//! What is in the folders that a transfer entered and its sender does not have: found when a
//! directory is left, told at the end, and removed where the sender says so.
//!
//! The directory that is received into is not one of them, nor is one that was entered through a
//! symbolic link.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, ReadDir};
use tempfile::SpooledTempFile;

use super::part;
use crate::transfer::protocol::{MAX_EXTRAS, MAX_NAME};

/// Bytes of the list that stay in memory before it goes to an unnamed file.
const SPOOL: usize = 64 << 10;
/// Names of the open directories that are remembered, 8 bytes each; with more, nothing is removed.
const MAX_SEEN: usize = 1 << 22;
/// Directories inside one another that are looked into. What is deeper stays.
const MAX_DEPTH: usize = 256;

/// The names that the sender sent, and the entries that it did not send.
#[derive(Debug)]
pub(super) struct Mirror {
    /// Of each directory that we are in: hashes of the names that came. Two names with one hash
    /// leave something there that might go.
    levels: Vec<Option<HashSet<u64>>>,
    seen: usize,
    hashes: RandomState,
    /// Records of entries: a byte (directory or not), two bytes of length, the path.
    spool: SpooledTempFile,
    found: u64,
    too_many: bool,
}

impl Mirror {
    pub(super) fn new() -> Self {
        Self {
            levels: Vec::new(),
            seen: 0,
            hashes: RandomState::new(),
            spool: SpooledTempFile::new(SPOOL),
            found: 0,
            too_many: false,
        }
    }

    /// A directory is entered; `is_real` when that is not through a link and it is there.
    pub(super) fn enter(&mut self, is_real: bool) {
        let around = self.levels.last().is_none_or(Option::is_some);
        self.levels.push((is_real && around).then(HashSet::new));
    }

    /// Notes an entry of the current directory that the sender sent.
    pub(super) fn see(&mut self, name: &[u8]) {
        if self.seen >= MAX_SEEN {
            self.too_many = true;
        } else if let Some(Some(level)) = self.levels.last_mut() {
            let is_new = level.insert(self.hashes.hash_one(name));
            self.seen += usize::from(is_new);
        }
    }

    /// All of the present directory came; it is `dir`, at `path`.
    pub(super) fn leave(&mut self, dir: &Dir, path: &Path) -> io::Result<()> {
        let Some(level) = self.levels.pop().flatten() else {
            return Ok(());
        };
        self.seen -= level.len();
        if self.too_many {
            return Ok(());
        }
        for entry in dir.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.as_bytes();
            if part::is_ours(name) || level.contains(&self.hashes.hash_one(name)) {
                continue;
            }
            let path = path.join(OsStr::from_bytes(name));
            let path = path.as_os_str().as_bytes();
            if path.len() <= MAX_NAME {
                let len = (path.len() as u16).to_be_bytes();
                let kind = u8::from(entry.file_type()?.is_dir());
                let record = [&[kind][..], &len, path].concat();
                self.spool.write_all(&record)?;
                self.found += 1;
            }
        }
        Ok(())
    }

    /// The entries to report.
    ///
    /// # Errors
    /// The list cannot be read, or more names came than are remembered.
    pub(super) fn extras(mut self) -> io::Result<Extras> {
        if self.too_many {
            return Err(io::Error::other(format!(
                "nothing is removed: directories of more than {MAX_SEEN} entries came"
            )));
        }
        self.spool.rewind()?;
        Ok(Extras {
            spool: self.spool,
            left: self.found,
            open: Vec::new(),
            told: BTreeMap::new(),
            next: 0,
        })
    }
}

/// An entry that the sender does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Extra {
    /// Path below the receiving directory.
    pub(super) path: PathBuf,
    pub(super) is_dir: bool,
}

/// The entries to report, each directory after its contents.
#[derive(Debug)]
pub(super) struct Extras {
    spool: SpooledTempFile,
    /// Entries in `spool` that were not read.
    left: u64,
    /// Directories that are being listed, each in the one before it.
    open: Vec<(PathBuf, ReadDir)>,
    /// Entries of the last answer that were not removed.
    told: BTreeMap<u64, Extra>,
    next: u64,
}

impl Extras {
    /// The next ones with their numbers, and whether there are more. Those told before are no
    /// longer removed.
    pub(super) fn tell(&mut self, root: &Dir) -> io::Result<(Vec<(u64, Extra)>, bool)> {
        self.told.clear();
        while (self.told.len() as u64) < MAX_EXTRAS {
            let Some(extra) = self.next(root)? else {
                break;
            };
            self.told.insert(self.next, extra);
            self.next += 1;
        }
        let told: Vec<_> = self.told.clone().into_iter().collect();
        let more = told.len() as u64 == MAX_EXTRAS;
        Ok((told, more))
    }

    /// Takes a reported entry that is to be removed.
    pub(super) fn take(&mut self, number: u64) -> Option<Extra> {
        self.told.remove(&number)
    }

    fn next(&mut self, root: &Dir) -> io::Result<Option<Extra>> {
        loop {
            let extra = if let Some((path, entries)) = self.open.last_mut() {
                let Some(entry) = entries.next() else {
                    let path = std::mem::take(path);
                    self.open.pop();
                    return Ok(Some(Extra { path, is_dir: true }));
                };
                let entry = entry?;
                let path = path.join(entry.file_name());
                if part::is_ours(entry.file_name().as_bytes()) || path.as_os_str().len() > MAX_NAME
                {
                    continue;
                }
                let is_dir = entry.file_type()?.is_dir();
                Extra { path, is_dir }
            } else if let Some(extra) = self.read()? {
                extra
            } else {
                return Ok(None);
            };
            if extra.is_dir && self.open.len() < MAX_DEPTH {
                // One that cannot be read can still be removed if it is empty.
                if let Ok(entries) = root.read_dir(&extra.path) {
                    self.open.push((extra.path, entries));
                    continue;
                }
            }
            return Ok(Some(extra));
        }
    }

    fn read(&mut self) -> io::Result<Option<Extra>> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        let mut head = [0; 3];
        self.spool.read_exact(&mut head)?;
        let mut path = vec![0; u16::from_be_bytes([head[1], head[2]]).into()];
        self.spool.read_exact(&mut path)?;
        Ok(Some(Extra {
            path: PathBuf::from(OsStr::from_bytes(&path)),
            is_dir: head[0] == 1,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;

    #[test]
    fn nothing_is_found_through_a_link_or_at_the_top() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir(scratch.path().join("inner")).unwrap();
        std::fs::write(scratch.path().join("inner/file"), "x").unwrap();
        let root = Dir::open_ambient_dir(scratch.path(), ambient_authority()).unwrap();
        let mut mirror = Mirror::new();
        mirror.see(b"at the top");
        mirror.enter(false);
        mirror.enter(true);
        mirror.leave(&root, Path::new("link/inner")).unwrap();
        mirror.leave(&root, Path::new("link")).unwrap();
        assert_eq!(mirror.found, 0);
        mirror.too_many = true;
        assert!(mirror.extras().is_err());
    }
}
