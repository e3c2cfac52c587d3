//! Parts: what arrived of large files before a transfer was cut off, to go on from there.
//!
//! A part lies in the directory of its file, under a name that follows from the peer's key and the
//! file's path: a file name may have 255 bytes already, and only the peer that began a part learns
//! what is in it. Other users of this machine can compute that name. A file that another user owns
//! is not taken for a part.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, MetadataExt};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Uid, geteuid};

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

/// What a part holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Held {
    /// Its length, bytes.
    pub(crate) len: u64,
    /// The room on the disk that it takes, bytes: without its holes.
    pub(crate) room: u64,
}

/// What the part of this name holds; nothing where there is none that is worth anything.
pub(crate) fn held(dir: &Dir, name: &str) -> Held {
    match rustix::fs::statat(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if is_fit(&found, geteuid()) => {
            let len = u64::try_from(found.st_size).unwrap_or(0);
            let blocks = u64::try_from(found.st_blocks).unwrap_or(0);
            let room = blocks.saturating_mul(512);
            if len >= GROUP {
                Held { len, room }
            } else {
                Held::default()
            }
        }
        _ => Held::default(),
    }
}

/// A regular file of this user that others may not write to, and with no second name, through which
/// something else would be changed. Its group may: it has its final mode before its name.
fn is_fit(found: &Stat, user: Uid) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_nlink == 1
        && found.st_uid == user.as_raw()
        && !Mode::from_raw_mode(found.st_mode).contains(Mode::WOTH)
}

/// Removes what has the name of a part and is none.
fn clear(dir: &Dir, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(dir.as_fd(), name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(io::Error::other(format!(
            "{name}, the name of its part, is taken by something else, which cannot be removed: {}",
            io::Error::from(error)
        ))),
    }
}

/// Opens the part of this name, or begins it. `None` when another receiver is writing it.
pub(crate) fn open(dir: &Arc<Dir>, name: &str) -> io::Result<Option<Staged>> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let new = flags | OFlags::CREATE | OFlags::EXCL;
    for _ in 0..3 {
        let file = match rustix::fs::openat(dir.as_fd(), name, new, Mode::RUSR | Mode::WUSR) {
            // Its owner is not looked at: some file systems give all files to one user.
            Ok(fd) => std::fs::File::from(fd),
            Err(Errno::EXIST) => {
                let opened = rustix::fs::openat(dir.as_fd(), name, flags, Mode::empty());
                let file = match opened {
                    Ok(fd) => std::fs::File::from(fd),
                    Err(Errno::NOENT) => continue,
                    // A link, a directory, or somebody else's.
                    Err(Errno::LOOP | Errno::ISDIR | Errno::ACCESS | Errno::PERM) => {
                        clear(dir, name)?;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                if !is_fit(&rustix::fs::fstat(&file)?, geteuid()) {
                    clear(dir, name)?;
                    continue;
                }
                file
            }
            Err(error) => return Err(error.into()),
        };
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
        assert_eq!(held(&dir, ".tack-x.part").len, GROUP);
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
            assert_eq!(held(&dir, name), Held::default(), "its content is not told");
            let mut part = open(&dir, name).unwrap().unwrap();
            assert_eq!(part.old(), 0);
            part.write(&mut &[1; 100][..]).unwrap();
            drop(part);
            assert!(std::fs::read(&precious).unwrap() == content);
        }
    }

    #[test]
    fn what_others_can_write_to_is_no_part() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown};
        let (scratch, dir) = scratch();
        let path = scratch.path().join(".tack-x.part");
        let is_root = geteuid().is_root();
        if !is_root {
            tack_skip::skipped("only root gives a file to another user");
        }
        for (mode, owner) in [(0o602, None), (0o600, Some(4711))] {
            if owner.is_some() && !is_root {
                continue;
            }
            std::fs::write(&path, vec![7; 2 * GROUP as usize]).unwrap();
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, permissions).unwrap();
            if owner.is_some() {
                chown(&path, owner, None).unwrap();
            }
            let theirs = std::fs::File::open(&path).unwrap();
            assert_eq!(held(&dir, ".tack-x.part"), Held::default());
            let mut part = open(&dir, ".tack-x.part").unwrap().unwrap();
            assert_eq!(part.old(), 0);
            part.write(&mut &vec![1; GROUP as usize][..]).unwrap();
            drop(part);
            let ours = std::fs::metadata(&path).unwrap();
            assert_eq!(ours.uid(), geteuid().as_raw());
            assert_eq!(ours.len(), GROUP);
            assert_eq!(theirs.metadata().unwrap().len(), 2 * GROUP, "as it was");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_removed_is_named() {
        let (scratch, dir) = scratch();
        std::fs::create_dir(scratch.path().join(".tack-x.part")).unwrap();
        let words = open(&dir, ".tack-x.part").unwrap_err().to_string();
        assert!(
            words.contains(".tack-x.part") && words.contains("cannot be removed"),
            "{words}"
        );
    }

    #[test]
    fn the_room_of_a_part_is_that_outside_its_holes() {
        let (scratch, dir) = scratch();
        let file = std::fs::File::create(scratch.path().join(".tack-x.part")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![1; GROUP as usize], 0).unwrap();
        file.set_len(64 * GROUP).unwrap();
        file.sync_all().unwrap();
        let held = held(&dir, ".tack-x.part");
        assert_eq!(held.len, 64 * GROUP);
        assert!(held.room >= GROUP && held.room < 8 * GROUP, "{held:?}");
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
