//! Where one transfer is within the receiving directory, and what it may do there.
//!
//! Names arrive one component at a time and are checked; directories are opened through a handle of
//! the receiving directory that refuses every path leading out of it, symbolic links that were
//! there before included.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use cap_std::fs::{Dir, MetadataExt};
use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::existing::Existing;
use super::holder::{Claim, Holder};
use super::mirror::Mirror;
use super::part;
use super::pending_directories::{PendingDirectories, PendingDirectory};
use super::refused::Refused;
use super::reserved::Reservation;
use super::staged::{permitted, set_modified, symlink};
use super::store::{Store, note_made_for, readable, was_made_for};
use crate::transfer::names;
use crate::transfer::protocol::{Entry, Kind, MAX_DEPTH, MAX_NAME, Modified, Refusal, Violation};

/// Where one transfer currently is within the store.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    pub(super) store: &'a Store,
    pub(super) holder: Arc<Holder>,
    /// What is done about names that are taken.
    pub(super) existing: Existing,
    /// Nothing is changed.
    dry: bool,
    pub(super) dir: Arc<Dir>,
    pub(super) path: PathBuf,
    levels: Vec<Level>,
    left: PendingDirectories,
    /// A directory that was here before was entered: new names in it are forced to the disk, too.
    entered_existing: bool,
    /// Something was made or named.
    pub(super) changed: bool,
    /// Where what the sender does not have is to be found.
    pub(super) mirror: Option<Mirror>,
}

#[derive(Debug)]
struct Level {
    index: u64,
    origin: Origin,
}

/// Where a directory comes from.
#[derive(Debug)]
enum Origin {
    /// This transfer made it, or an earlier one of the same peer did: it gets the sender's mode and
    /// time at the end.
    Ours { mode: u32, modified: Modified },
    /// It was here before, and keeps its mode and time.
    Found,
    /// It is not there, because nothing is changed.
    Missing,
}

/// Up to this many directories are forced to disk one by one; beyond, the file system as a whole
/// is.
const FEW_DIRECTORIES: u64 = 16;

/// How long a transfer that was ended in favour of another one may take to let go of its names: a
/// slow disk takes that long to store what it was given.
const LETTING_GO: Duration = Duration::from_secs(60);

impl<'a> Cursor<'a> {
    pub(crate) fn new(
        store: &'a Store,
        holder: Arc<Holder>,
        existing: Existing,
        dry: bool,
    ) -> Self {
        Self {
            store,
            holder,
            existing,
            dry,
            dir: Arc::clone(&store.root),
            path: PathBuf::new(),
            levels: Vec::new(),
            left: PendingDirectories::new(),
            entered_existing: false,
            changed: false,
            mirror: None,
        }
    }

    /// The path of `name` here, for people.
    pub(crate) fn path_of(&self, name: &[u8]) -> PathBuf {
        self.path.join(OsStr::from_bytes(name))
    }

    /// True where nothing can be, because a directory around is not there.
    pub(super) fn is_nowhere(&self) -> bool {
        self.levels
            .iter()
            .any(|level| matches!(level.origin, Origin::Missing))
    }

    /// Nothing is changed.
    pub(super) fn is_dry(&self) -> bool {
        self.dry
    }

    /// Goes into a directory, creating it where it is missing.
    pub(crate) fn enter(
        &mut self,
        index: u64,
        entry: &Entry<'_>,
    ) -> Result<Result<(), Refused>, Violation> {
        if self.levels.len() >= MAX_DEPTH {
            return Err(Violation::TooDeep);
        }
        Ok(self.enter_checked(index, entry))
    }

    fn enter_checked(&mut self, index: u64, entry: &Entry<'_>) -> Result<(), Refused> {
        self.check_name(entry.name)?;
        if let Some(output) = &self.store.output {
            return output.refuse();
        }
        let path = self.path_of(entry.name);
        let made = if self.dry {
            self.would_make(entry.name)?
        } else {
            // A file of this name may be on its way; a directory has its name at once.
            let _reserved = self.reserve(entry.name)?;
            self.make(entry)?
        };
        let is_missing = made && self.dry;
        let is_real = !is_missing && self.mirror.is_some() && self.is_directory(entry.name);
        if is_missing {
            if let Some(mirror) = &mut self.mirror {
                mirror.enter(false);
            }
            self.path = path;
            let origin = Origin::Missing;
            self.levels.push(Level { index, origin });
            return Ok(());
        }
        let dir = self
            .store
            .root
            .open_dir(&path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotADirectory => {
                    Refused::new(Refusal::Exists, "the name is taken, but not by a directory")
                }
                // What the sandbox says about links that lead out of it.
                io::ErrorKind::PermissionDenied => Refused::new(
                    Refusal::Name,
                    format!(
                        "it leads out of the receiving directory or cannot be entered: {error}"
                    ),
                ),
                _ => Refused::storage(&error),
            })?;
        let owner = self.holder.owner();
        let is_ours = if made {
            note_made_for(&dir, owner);
            true
        } else {
            was_made_for(&dir, owner) && self.is_directory(entry.name)
        };
        // At the top only what is the sender's; it may add to what it made itself.
        let is_permitted =
            is_ours || !self.levels.is_empty() || self.store.existing != Existing::Refuse;
        if !is_permitted {
            return Err(Refused::exists());
        }
        self.changed |= made;
        self.entered_existing |= !made;
        if !made && !self.dry {
            // What cannot be cleaned stays until the next time.
            let _ = part::clean(&dir, SystemTime::now());
            if is_ours && let Ok(dir) = readable(&dir) {
                // It may have its final mode already. Where this fails, so does what follows, and
                // says why.
                let mode = Mode::from_raw_mode(entry.mode & 0o777 | 0o700);
                let _ = rustix::fs::fchmod(&dir, mode);
            }
        }
        self.dir = Arc::new(dir);
        self.path = path;
        if let Some(mirror) = &mut self.mirror {
            mirror.enter(is_real);
        }
        let origin = if is_ours {
            let (mode, modified) = (entry.mode, entry.modified);
            Origin::Ours { mode, modified }
        } else {
            Origin::Found
        };
        self.levels.push(Level { index, origin });
        Ok(())
    }

    /// Makes a directory; false when something of the name is there.
    fn make(&self, entry: &Entry<'_>) -> Result<bool, Refused> {
        // Owner access while files arrive; the sender's mode follows when they are complete.
        let mode = Mode::from_raw_mode(entry.mode & 0o777 | 0o700);
        match rustix::fs::mkdirat(self.dir.as_fd(), entry.name, mode) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(Refused::storage(&error.into())),
        }
    }

    fn would_make(&self, name: &[u8]) -> Result<bool, Refused> {
        if self.is_nowhere() {
            return Ok(true);
        }
        match rustix::fs::statat(self.dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(false),
            Err(Errno::NOENT) => Ok(true),
            Err(error) => Err(Refused::storage(&error.into())),
        }
    }

    /// Not a link to one, whose parent might be anywhere.
    fn is_directory(&self, name: &[u8]) -> bool {
        rustix::fs::statat(self.dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    }

    /// Goes back up.
    pub(crate) fn leave(&mut self) -> Result<io::Result<()>, Violation> {
        let level = self
            .levels
            .pop()
            .ok_or(Violation::Unexpected(Kind::Leave))?;
        if let Some(mirror) = &mut self.mirror
            && let Err(error) = mirror.leave(&self.dir, &self.path)
        {
            return Ok(Err(error));
        }
        Ok(self.leave_level(&level))
    }

    fn leave_level(&mut self, level: &Level) -> io::Result<()> {
        if let Origin::Ours { mode, modified } = level.origin
            && !self.dry
        {
            self.left.push(&PendingDirectory {
                index: level.index,
                path: self.path.clone(),
                mode,
                modified,
            })?;
        }
        self.path.pop();
        if !matches!(level.origin, Origin::Missing) {
            self.dir = self.store.dir(&self.path)?;
        }
        Ok(())
    }

    /// Makes a symbolic link here, unless it leads out of the receiving directory. False when the
    /// same one is there.
    pub(crate) fn link(&mut self, entry: &Entry<'_>, target: &[u8]) -> Result<bool, Refused> {
        self.check_name(entry.name)?;
        if let Some(output) = &self.store.output {
            return output.refuse();
        }
        let is_nowhere = self.is_nowhere();
        let _reserved = match is_nowhere {
            true => None,
            false => Some(self.reserve(entry.name)?),
        };
        // The same link makes nothing new, wherever it leads: it is not followed.
        if !is_nowhere
            && let Ok(found) = rustix::fs::readlinkat(self.dir.as_fd(), entry.name, Vec::new())
            && found.as_bytes() == target
        {
            return Ok(false);
        }
        if !self.stays_inside(target) {
            return Err(Refused::new(
                Refusal::Name,
                "the symbolic link leads out of the receiving directory, or up through a folder that this peer's transfers did not make",
            ));
        }
        if is_nowhere {
            return Ok(true);
        }
        self.check_free(entry.name)?;
        if self.dry {
            return Ok(true);
        }
        let (dir, existing) = (&self.dir, self.existing);
        symlink(dir, entry.name, target, entry.modified, existing)
            .map_err(|error| Refused::storage(&error))?;
        self.changed = true;
        Ok(true)
    }

    /// Whether a link made here leads somewhere below the receiving directory: a relative path that
    /// goes up only at its beginning, and only through directories that transfers of this peer
    /// made, whose parents are known.
    fn stays_inside(&self, target: &[u8]) -> bool {
        let made = self.levels.iter().rev();
        let made = made
            .take_while(|level| !matches!(level.origin, Origin::Found))
            .count();
        let parts = target
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty() && *part != b".");
        let ups = parts.clone().take_while(|part| *part == b"..").count();
        let goes_back = parts.skip(ups).any(|part| part == b"..");
        !target.is_empty() && !target.starts_with(b"/") && !goes_back && ups <= made
    }

    /// No other transfer is about to take the name. One of the same peer that is no longer heard
    /// gives it up.
    pub(super) fn reserve(&self, name: &[u8]) -> Result<Reservation, Refused> {
        self.reserve_in(&self.dir, name)
    }

    /// The same in another directory than the present one.
    pub(super) fn reserve_in(&self, dir: &Dir, name: &[u8]) -> Result<Reservation, Refused> {
        let dir = dir
            .dir_metadata()
            .map_err(|error| Refused::storage(&error))?;
        let dir = (dir.dev(), dir.ino());
        let since = Instant::now();
        let mut told = false;
        loop {
            let other = match self.store.names.reserve(dir, name, &self.holder) {
                Ok(reservation) => return Ok(reservation),
                Err(other) => other,
            };
            let is_same_peer =
                other.owner() == self.holder.owner() && !Arc::ptr_eq(&other, &self.holder);
            let claim = other.claim(since);
            if !is_same_peer || claim == Claim::Alive || since.elapsed() > LETTING_GO {
                return Err(Refused::new(
                    Refusal::Exists,
                    "another transfer, which began before, is storing something of this name",
                ));
            }
            if claim == Claim::Gone && !std::mem::replace(&mut told, true) {
                other.cut_off();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The name is not taken, or may be taken over.
    fn check_free(&self, name: &[u8]) -> Result<(), Refused> {
        match rustix::fs::statat(self.dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => {
                if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                    return Err(Refused::new(Refusal::Exists, "a directory has its name"));
                }
                if !self.existing.may_replace() {
                    return Err(Refused::exists());
                }
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(Refused::storage(&error.into())),
        }
        Ok(())
    }

    pub(super) fn check_name(&self, name: &[u8]) -> Result<(), Refused> {
        names::check(name, names::RULES)
            .map_err(|why| Refused::new(Refusal::Name, why.to_string()))?;
        if part::is_ours(name) {
            return Err(Refused::new(
                Refusal::Name,
                "the receiver uses names of this form for unfinished files",
            ));
        }
        // A receiver started in a home directory must not be talked into new start-up files.
        if self.levels.is_empty() && name.starts_with(b".") && !self.store.existing.may_replace() {
            return Err(Refused::hidden());
        }
        if self.path.as_os_str().len() + 1 + name.len() > MAX_NAME {
            return Err(Refused::new(
                Refusal::Name,
                format!("its path is longer than {MAX_NAME} bytes"),
            ));
        }
        Ok(())
    }

    /// True when every directory entered has been left.
    pub(crate) fn is_at_root(&self) -> bool {
        self.levels.is_empty()
    }

    /// Gives the directories their modes and times and forces all names to the disk. Everything
    /// must be committed by now. `failed` is called for each directory whose metadata cannot be
    /// set.
    pub(crate) fn finish(
        self,
        stored_any: bool,
        mut failed: impl FnMut(u64, &Path, io::Error),
    ) -> io::Result<()> {
        let (changed, root) = (self.changed || stored_any, &self.store.root);
        let few = self.left.count() <= FEW_DIRECTORIES && !self.entered_existing;
        self.left.for_each(|left| {
            let result = (|| {
                let dir = readable(&root.open_dir(&left.path)?)?;
                if few && changed {
                    rustix::fs::fsync(&dir)?;
                }
                set_modified(&dir, left.modified);
                rustix::fs::fchmod(&dir, permitted(left.mode))?;
                io::Result::Ok(())
            })();
            if let Err(error) = result {
                failed(left.index, &left.path, error);
            }
        })?;
        if !changed {
            return Ok(());
        }
        let root = match readable(root) {
            // A drop box, which may be written but not read: its names reach the disk in the
            // system's own time.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            root => root?,
        };
        #[cfg(target_os = "linux")]
        if !few {
            return Ok(rustix::fs::syncfs(&root)?);
        }
        Ok(rustix::fs::fsync(&root)?)
    }
}

#[cfg(test)]
mod tests;
