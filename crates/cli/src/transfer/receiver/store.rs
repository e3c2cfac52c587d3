//! Where received files go: one directory that nothing received can get out of.
//!
//! Names arrive one component at a time and are checked; directories are opened through a handle of
//! the receiving directory that refuses every path leading out of it, symbolic links that were
//! there before included.

use std::ffi::OsStr;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use tempfile::SpooledTempFile;

use super::existing::Existing;
use super::refused::Refused;
use super::reserved::{Names, Reservation};
use super::staged::{Staged, permitted, set_modified, symlink};
use crate::transfer::names;
use crate::transfer::protocol::{
    Entry, MAX_DEPTH, MAX_HOLES, MAX_NAME, Modified, Refusal, Violation,
};

/// The receiving directory.
#[derive(Debug)]
pub(crate) struct Store {
    root: Arc<Dir>,
    existing: Existing,
    /// What the transfers under way are about to name.
    names: Arc<Names>,
}

impl Store {
    /// Opens (and creates, where missing) the receiving directory.
    pub(crate) fn open(path: &Path, existing: Existing) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let root = Arc::new(Dir::open_ambient_dir(path, ambient_authority())?);
        // A directory that cannot be written to is reported now, not after a transfer.
        drop(Staged::create(&root)?);
        Ok(Self {
            root,
            existing,
            names: Arc::default(),
        })
    }

    pub(crate) fn existing(&self) -> Existing {
        self.existing
    }
}

/// Where one transfer currently is within the store.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    store: &'a Store,
    dir: Arc<Dir>,
    path: PathBuf,
    levels: Vec<Level>,
    /// Directories that this transfer created and left, in post-order: their modes and times are set once everything is
    /// in them.
    left: SpooledTempFile,
    /// Path of the last record in `left`: the next one holds only what differs at its end, so that the list grows by
    /// no more than the names that came over the wire.
    last_left: Vec<u8>,
    left_count: u64,
    /// A directory that was here before was entered: new names in it are forced to the disk, too.
    entered_existing: bool,
}

#[derive(Debug)]
struct Level {
    index: u64,
    /// Whether this transfer made the directory; one that was here before keeps its mode and time.
    origin: Origin,
}

/// Where a directory comes from.
#[derive(Debug)]
enum Origin {
    Created { mode: u32, modified: Modified },
    Found,
}

/// Directories kept in memory before the list goes to an unnamed file.
const SPOOL: usize = 64 << 10;
/// Up to this many directories are forced to disk one by one; beyond, the file system as a whole is.
const FEW_DIRECTORIES: u64 = 16;

impl<'a> Cursor<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self {
            store,
            dir: Arc::clone(&store.root),
            path: PathBuf::new(),
            levels: Vec::new(),
            left: SpooledTempFile::new(SPOOL),
            last_left: Vec::new(),
            left_count: 0,
            entered_existing: false,
        }
    }

    /// The path of `name` here, for people.
    pub(crate) fn path_of(&self, name: &[u8]) -> PathBuf {
        self.path.join(OsStr::from_bytes(name))
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
        // A file of this name may be on its way; a directory has its name at once.
        let _reserved = self.reserve(entry.name)?;
        // Owner access while files arrive; the sender's mode follows when they are complete.
        let mode = Mode::from_raw_mode(entry.mode & 0o777 | 0o700);
        let created = match rustix::fs::mkdirat(self.dir.as_fd(), entry.name, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) if self.store.existing == Existing::Overwrite => false,
            Err(Errno::EXIST) => return Err(Refused::exists()),
            Err(error) => return Err(Refused::storage(&error.into())),
        };
        let path = self.path_of(entry.name);
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
        self.dir = Arc::new(dir);
        self.path = path;
        let origin = if created {
            let (mode, modified) = (entry.mode, entry.modified);
            Origin::Created { mode, modified }
        } else {
            self.entered_existing = true;
            Origin::Found
        };
        self.levels.push(Level { index, origin });
        Ok(())
    }

    /// Goes back up.
    pub(crate) fn leave(&mut self) -> Result<io::Result<()>, Violation> {
        let level = self.levels.pop().ok_or(Violation::Unexpected(
            crate::transfer::protocol::Kind::Leave,
        ))?;
        Ok(self.leave_level(&level))
    }

    fn leave_level(&mut self, level: &Level) -> io::Result<()> {
        if let Origin::Created { mode, modified } = level.origin {
            let path = self.path.as_os_str().as_bytes();
            let head = (level.index, mode, modified);
            write_left(&mut self.left, &mut self.last_left, path, head)?;
            self.left_count += 1;
        }
        self.path.pop();
        self.dir = if self.path.as_os_str().is_empty() {
            Arc::clone(&self.store.root)
        } else {
            Arc::new(self.store.root.open_dir(&self.path)?)
        };
        Ok(())
    }

    /// Begins a file here, and has its name reserved.
    pub(crate) fn create(&self, entry: &Entry<'_>) -> Result<(Staged, Reservation), Refused> {
        self.check_name(entry.name)?;
        let reservation = self.reserve(entry.name)?;
        self.check_free(entry.name)?;
        let size = entry.size.unwrap_or(0);
        if size.saturating_sub(entry.data) > MAX_HOLES {
            return Err(Refused::holes());
        }
        if let (Some(_), Ok(disk)) = (entry.size, rustix::fs::fstatvfs(self.dir.as_fd())) {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let needed = entry.data;
            if needed > free {
                let message = format!(
                    "the receiver's disk has room for {free} bytes, the file needs {needed}"
                );
                return Err(Refused::new(Refusal::NoSpace, message));
            }
        }
        let staged = Staged::create(&self.dir).map_err(|error| Refused::storage(&error))?;
        Ok((staged, reservation))
    }

    /// Makes a symbolic link here, unless it leads out of the receiving directory.
    pub(crate) fn link(&self, entry: &Entry<'_>, target: &[u8]) -> Result<(), Refused> {
        self.check_name(entry.name)?;
        if !self.stays_inside(target) {
            return Err(Refused::new(
                Refusal::Name,
                "the symbolic link leads out of the receiving directory",
            ));
        }
        let _reserved = self.reserve(entry.name)?;
        self.check_free(entry.name)?;
        let (dir, existing) = (&self.dir, self.store.existing);
        symlink(dir, entry.name, target, entry.modified, existing)
            .map_err(|error| Refused::storage(&error))
    }

    /// Whether a link made here leads somewhere below the receiving directory: a relative path that goes up only at its
    /// beginning, and only through directories that this transfer made, whose parents are known.
    fn stays_inside(&self, target: &[u8]) -> bool {
        let made = self.levels.iter().rev();
        let made = made
            .take_while(|level| matches!(level.origin, Origin::Created { .. }))
            .count();
        let parts = target
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty() && *part != b".");
        let ups = parts.clone().take_while(|part| *part == b"..").count();
        let goes_back = parts.skip(ups).any(|part| part == b"..");
        !target.is_empty() && !target.starts_with(b"/") && !goes_back && ups <= made
    }

    /// No other transfer is about to take the name.
    fn reserve(&self, name: &[u8]) -> Result<Reservation, Refused> {
        let dir = self
            .dir
            .dir_metadata()
            .map_err(|error| Refused::storage(&error))?;
        self.store
            .names
            .reserve((dir.dev(), dir.ino()), name)
            .ok_or_else(|| {
                Refused::new(
                    Refusal::Exists,
                    "another transfer, which began before, is storing something of this name",
                )
            })
    }

    /// The name is not taken, or may be taken over.
    fn check_free(&self, name: &[u8]) -> Result<(), Refused> {
        match rustix::fs::statat(self.dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => {
                if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                    return Err(Refused::new(Refusal::Exists, "a directory has its name"));
                }
                if self.store.existing == Existing::Refuse {
                    return Err(Refused::exists());
                }
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(Refused::storage(&error.into())),
        }
        Ok(())
    }

    fn check_name(&self, name: &[u8]) -> Result<(), Refused> {
        names::check(name, names::RULES)
            .map_err(|why| Refused::new(Refusal::Name, why.to_string()))?;
        // A receiver started in a home directory must not be talked into new start-up files.
        if self.levels.is_empty()
            && name.starts_with(b".")
            && self.store.existing == Existing::Refuse
        {
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

    /// Gives the directories their modes and times and forces all names to the disk. Everything must be committed by
    /// now. `failed` is called for each directory whose metadata cannot be set.
    pub(crate) fn finish(
        mut self,
        mut failed: impl FnMut(u64, &Path, io::Error),
    ) -> io::Result<()> {
        self.left.rewind()?;
        let few = self.left_count <= FEW_DIRECTORIES && !self.entered_existing;
        let mut last = Vec::new();
        for _ in 0..self.left_count {
            let left = read_left(&mut self.left, &mut last)?;
            let result = (|| {
                let dir = readable(&self.store.root.open_dir(&left.path)?)?;
                if few {
                    rustix::fs::fsync(&dir)?;
                }
                set_modified(&dir, left.modified);
                rustix::fs::fchmod(&dir, permitted(left.mode))?;
                io::Result::Ok(())
            })();
            if let Err(error) = result {
                failed(left.index, &left.path, error);
            }
        }
        let root = match readable(&self.store.root) {
            // A drop box, which may be written but not read: its names reach the disk in the system's own time.
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

/// Opens a directory once more: the sandbox's handles are for paths only (`O_PATH`) and cannot be synchronised.
fn readable(dir: &Dir) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir.as_fd(), ".", flags, Mode::empty())?)
}

/// A directory that this transfer created, as it is kept until the end.
struct Left {
    index: u64,
    path: PathBuf,
    mode: u32,
    modified: Modified,
}

fn write_left(
    spool: &mut SpooledTempFile,
    last: &mut Vec<u8>,
    path: &[u8],
    (index, mode, modified): (u64, u32, Modified),
) -> io::Result<()> {
    let shared = last.iter().zip(path).take_while(|(a, b)| a == b).count();
    let rest = &path[shared..];
    let mut record = Vec::with_capacity(28 + rest.len());
    record.extend_from_slice(&index.to_be_bytes());
    record.extend_from_slice(&mode.to_be_bytes());
    record.extend_from_slice(&modified.seconds.to_be_bytes());
    record.extend_from_slice(&modified.nanos.to_be_bytes());
    // check_name() keeps paths within MAX_NAME, so two bytes hold each length.
    record.extend_from_slice(&(shared as u16).to_be_bytes());
    record.extend_from_slice(&(rest.len() as u16).to_be_bytes());
    record.extend_from_slice(rest);
    last.truncate(shared);
    last.extend_from_slice(rest);
    spool.write_all(&record)
}

fn read_left(spool: &mut SpooledTempFile, last: &mut Vec<u8>) -> io::Result<Left> {
    fn take<const N: usize>(spool: &mut SpooledTempFile) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        spool.read_exact(&mut bytes)?;
        Ok(bytes)
    }
    let index = u64::from_be_bytes(take(spool)?);
    let mode = u32::from_be_bytes(take(spool)?);
    let seconds = i64::from_be_bytes(take(spool)?);
    let nanos = u32::from_be_bytes(take(spool)?);
    let shared = usize::from(u16::from_be_bytes(take(spool)?));
    let rest = usize::from(u16::from_be_bytes(take(spool)?));
    last.resize(shared + rest, 0);
    spool.read_exact(&mut last[shared..])?;
    Ok(Left {
        index,
        path: PathBuf::from(OsStr::from_bytes(last)),
        mode,
        modified: Modified { seconds, nanos },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_directories_grows_by_the_names_only() {
        let mut spool = SpooledTempFile::new(SPOOL);
        let parent = "d/".repeat(2000);
        let paths: Vec<String> = (0..1000).map(|n| format!("{parent}{n}")).collect();
        let mut last = Vec::new();
        for (index, path) in (0..).zip(&paths) {
            let head = (index, 0o755, Modified::default());
            write_left(&mut spool, &mut last, path.as_bytes(), head).unwrap();
        }
        assert!(spool.stream_position().unwrap() < 4096 + 1000 * 32);
        spool.rewind().unwrap();
        last.clear();
        for (index, path) in (0..).zip(&paths) {
            let left = read_left(&mut spool, &mut last).unwrap();
            assert_eq!((left.index, left.path), (index, PathBuf::from(path)));
        }
    }

    #[test]
    fn directories_that_were_there_are_not_listed() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir(scratch.path().join("old")).unwrap();
        let store = Store::open(scratch.path(), Existing::Overwrite).unwrap();
        let mut cursor = Cursor::new(&store);
        let entry = |name| Entry {
            name,
            mode: 0o755,
            modified: Modified::default(),
            size: None,
            data: 0,
        };
        for index in 0..100 {
            for name in [&b"old"[..], b"new"] {
                cursor.enter(index, &entry(name)).unwrap().unwrap();
                cursor.leave().unwrap().unwrap();
            }
        }
        assert_eq!(cursor.left_count, 1);
        cursor
            .finish(|_, path, error| panic!("{path:?}: {error}"))
            .unwrap();
    }

    #[test]
    fn links_stay_below_the_receiving_directory() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir(scratch.path().join("old")).unwrap();
        let store = Store::open(scratch.path(), Existing::Overwrite).unwrap();
        let mut cursor = Cursor::new(&store);
        let entry = |name| Entry {
            name,
            mode: 0o755,
            modified: Modified::default(),
            size: None,
            data: 0,
        };
        assert!(cursor.stays_inside(b"file") && cursor.stays_inside(b"a//./b/"));
        for out in [&b""[..], b"..", b"../x", b"/etc", b"a/../../x", b"a/.."] {
            assert!(!cursor.stays_inside(out), "{out:?}");
        }
        cursor.enter(0, &entry(b"new")).unwrap().unwrap();
        cursor.enter(1, &entry(b"deeper")).unwrap().unwrap();
        assert!(cursor.stays_inside(b"../../file") && cursor.stays_inside(b".."));
        assert!(!cursor.stays_inside(b"../../../file"));
        cursor.leave().unwrap().unwrap();
        cursor.leave().unwrap().unwrap();
        // What was there may itself be a link, so that its parent is anywhere.
        cursor.enter(2, &entry(b"old")).unwrap().unwrap();
        assert!(!cursor.stays_inside(b"../file"));
        cursor.link(&entry(b"link"), b"file").unwrap();
        let found = std::fs::read_link(scratch.path().join("old/link")).unwrap();
        assert_eq!(found, Path::new("file"));
    }

    #[test]
    fn a_name_belongs_to_the_transfer_that_began_first() {
        let scratch = tempfile::tempdir().unwrap();
        let store = Store::open(scratch.path(), Existing::Refuse).unwrap();
        let (mut first, second) = (Cursor::new(&store), Cursor::new(&store));
        let entry = |name| Entry {
            name,
            mode: 0o755,
            modified: Modified::default(),
            size: Some(1),
            data: 1,
        };
        let staged = first.create(&entry(b"wanted")).unwrap();
        let refused = second.create(&entry(b"wanted")).unwrap_err();
        assert_eq!(refused.reason, Refusal::Exists);
        assert!(
            refused.message.contains("began before"),
            "{}",
            refused.message
        );
        assert!(second.link(&entry(b"wanted"), b"x").is_err());
        assert!(first.enter(0, &entry(b"wanted")).unwrap().is_err());
        drop(staged);
        assert!(second.create(&entry(b"wanted")).is_ok());
    }
}
