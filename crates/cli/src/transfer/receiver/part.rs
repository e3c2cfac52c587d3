//! Parts: what arrived of large files before a transfer was cut off, to go on from there.
//!
//! A part lies in the directory of its file, under a name that follows from the peer's key and the
//! file's path: a file name may have 255 bytes already, and only the peer that began a part learns
//! what is in it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, MetadataExt};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::staged::Staged;
use crate::transfer::channel::PeerKey;
use crate::transfer::groups::GROUP;

/// How long a part waits for its sender.
pub(crate) const KEPT: Duration = Duration::from_secs(14 * 24 * 3600);

/// Files of at most so many bytes have no part: they are sent again as a whole.
pub(crate) const SMALL: u64 = 1 << 20;

const PREFIX: &str = ".tack-";
const SUFFIX: &str = ".part";

/// The name of the part of the file at `path`, which the peer with the key `owner` sends.
pub(crate) fn name(owner: &PeerKey, path: &Path) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("tack 2026 part of a received file");
    hasher.update(owner);
    hasher.update(path.as_os_str().as_bytes());
    let hash = hasher.finalize().to_hex();
    format!("{PREFIX}{}{SUFFIX}", &hash[..32])
}

/// Whether a name is one of ours, which no peer may give to its files.
pub(crate) fn is_ours(name: &[u8]) -> bool {
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

/// Bytes in the part of this name; 0 where there is none that is worth anything.
pub(crate) fn len(dir: &Dir, name: &str) -> u64 {
    match rustix::fs::statat(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if is_fit(found.st_mode, found.st_nlink) => u64::try_from(found.st_size)
            .ok()
            .filter(|size| *size >= GROUP)
            .unwrap_or(0),
        _ => 0,
    }
}

/// A regular file with no second name, through which something else would be changed.
fn is_fit(mode: u32, links: impl Into<u64>) -> bool {
    FileType::from_raw_mode(mode) == FileType::RegularFile && links.into() == 1
}

/// Opens the part of this name, or begins it. `None` when another receiver is writing it.
pub(crate) fn open(dir: &Arc<Dir>, name: &str) -> io::Result<Option<Staged>> {
    let flags =
        OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for _ in 0..3 {
        let file = match rustix::fs::openat(dir.as_fd(), name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => std::fs::File::from(fd),
            // A link, a directory, somebody else's: not a part.
            Err(Errno::LOOP) => {
                rustix::fs::unlinkat(dir.as_fd(), name, AtFlags::empty())?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let found = rustix::fs::fstat(&file)?;
        if !is_fit(found.st_mode, found.st_nlink) {
            rustix::fs::unlinkat(dir.as_fd(), name, AtFlags::empty())?;
            continue;
        }
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // A file system without locks.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOLCK) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        return Staged::resume(file, dir, name.to_owned()).map(Some);
    }
    Err(io::Error::other("the place of its part is taken"))
}

/// Removes the parts in `dir` that nobody came back for.
pub(crate) fn clean(dir: &Dir, now: SystemTime) -> io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        if !is_ours(entry.file_name().as_bytes()) {
            continue;
        }
        let metadata = entry.metadata()?;
        let modified = u64::try_from(metadata.mtime()).unwrap_or(0);
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(modified);
        let age = now.duration_since(modified).unwrap_or_default();
        if metadata.is_file() && age > KEPT {
            entry.remove_file()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use std::os::unix::fs::symlink;

    fn scratch() -> (tempfile::TempDir, Arc<Dir>) {
        let scratch = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(scratch.path(), ambient_authority()).unwrap();
        (scratch, Arc::new(dir))
    }

    #[test]
    fn a_part_belongs_to_a_peer_and_a_path() {
        let long = "n".repeat(255);
        let names = [
            name(&[0; 32], Path::new("a/b")),
            name(&[1; 32], Path::new("a/b")),
            name(&[0; 32], Path::new(&long)),
        ];
        assert!(names.iter().all(|name| is_ours(name.as_bytes())));
        assert!(names.iter().all(|name| name.len() < 50));
        assert!(names[0] != names[1] && names[0] != names[2]);
    }

    #[test]
    fn a_part_stays_when_it_is_worth_it_and_is_locked_meanwhile() {
        let (scratch, dir) = scratch();
        let path = scratch.path().join(".tack-x.part");
        let mut small = open(&dir, ".tack-x.part").unwrap().unwrap();
        small.write(&mut &[1; 1000][..]).unwrap();
        drop(small);
        assert!(!path.exists());
        let mut part = open(&dir, ".tack-x.part").unwrap().unwrap();
        part.write(&mut &vec![1; GROUP as usize][..]).unwrap();
        assert!(open(&dir, ".tack-x.part").unwrap().is_none(), "in use");
        drop(part);
        assert_eq!(len(&dir, ".tack-x.part"), GROUP);
        let mut part = open(&dir, ".tack-x.part").unwrap().unwrap();
        assert_eq!(part.old(), GROUP);
        part.discard();
        drop(part);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_part_is_not_written_to() {
        let (scratch, dir) = scratch();
        let (precious, name) = (scratch.path().join("precious"), ".tack-x.part");
        let path = scratch.path().join(name);
        let content = vec![7; 2 << 20];
        std::fs::write(&precious, &content).unwrap();
        for plant in [
            |from: &Path, to: &Path| std::fs::hard_link(from, to).unwrap(),
            |from: &Path, to: &Path| symlink(from, to).unwrap(),
        ] {
            plant(&precious, &path);
            assert_eq!(len(&dir, name), 0, "its content is not told");
            let mut part = open(&dir, name).unwrap().unwrap();
            assert_eq!(part.old(), 0);
            part.write(&mut &[1; 100][..]).unwrap();
            drop(part);
            assert!(std::fs::read(&precious).unwrap() == content);
        }
    }

    #[test]
    fn old_parts_go_and_nothing_else() {
        let (scratch, dir) = scratch();
        for name in [".tack-x.part", "file", ".tack-x"] {
            std::fs::write(scratch.path().join(name), "x").unwrap();
        }
        let now = SystemTime::now();
        clean(&dir, now + KEPT / 2).unwrap();
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 3);
        clean(&dir, now + 2 * KEPT).unwrap();
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 2);
        assert!(!scratch.path().join(".tack-x.part").exists());
    }
}
