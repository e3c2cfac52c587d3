//! Where received files go: one directory that nothing received can get out of.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags, XattrFlags};

use super::existing::Existing;
use super::output::Output;
use super::part;
use super::reserved::Names;
use super::staged::Staged;
use crate::transfer::channel::PeerKey;

/// The receiving directory.
#[derive(Debug)]
pub(crate) struct Store {
    pub(super) root: Arc<Dir>,
    /// What its owner permits.
    pub(super) existing: Existing,
    /// What the transfers under way are about to name.
    pub(super) names: Arc<Names>,
    /// In place of the directory, which is then an empty one.
    pub(super) output: Option<Output>,
    _empty: Option<tempfile::TempDir>,
}

impl Store {
    /// Opens (and creates, where missing) the receiving directory.
    pub(crate) fn open(path: &Path, existing: Existing) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let root = Arc::new(Dir::open_ambient_dir(path, ambient_authority())?);
        // A directory that cannot be written to is reported now, not after a transfer.
        drop(Staged::create(&root)?);
        // Old parts do not prevent receiving.
        let _ = part::clean(&root, SystemTime::now());
        Ok(Self {
            root,
            existing,
            names: Arc::default(),
            output: None,
            _empty: None,
        })
    }

    /// Takes one file, which goes to standard output.
    pub(crate) fn standard_output() -> io::Result<Self> {
        let empty = tempfile::tempdir()?;
        let root = Dir::open_ambient_dir(empty.path(), ambient_authority())?;
        Ok(Self {
            root: Arc::new(root),
            existing: Existing::Refuse,
            names: Arc::default(),
            output: Some(Output::standard()?),
            _empty: Some(empty),
        })
    }

    /// A directory below.
    pub(super) fn dir(&self, path: &Path) -> io::Result<Arc<Dir>> {
        if path.as_os_str().is_empty() {
            return Ok(Arc::clone(&self.root));
        }
        Ok(Arc::new(self.root.open_dir(path)?))
    }
}

/// Opens a directory once more: the sandbox's handles are for paths only (`O_PATH`) and cannot be
/// synchronised.
pub(super) fn readable(dir: &Dir) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir.as_fd(), ".", flags, Mode::empty())?)
}

/// The extended attribute of a directory that a transfer made: for which peer.
const MADE_FOR: &str = "user.tack.made-for";

/// What the attribute holds: which peer, and not its key.
fn mark(owner: &PeerKey) -> [u8; 16] {
    let mut mark = [0; 16];
    let mut hasher = blake3::Hasher::new_derive_key("tack 2026 directory made for a peer");
    hasher.update(owner).finalize_xof().fill(&mut mark);
    mark
}

/// Notes that the directory was made for this peer, who may then go on in it. A file system that
/// keeps no such notes has only the consequence that it may not.
pub(super) fn note_made_for(dir: &Dir, owner: &PeerKey) {
    if let Ok(dir) = readable(dir) {
        let _ = rustix::fs::fsetxattr(&dir, MADE_FOR, &mark(owner), XattrFlags::empty());
    }
}

/// Whether the directory was made for this peer.
pub(super) fn was_made_for(dir: &Dir, owner: &PeerKey) -> bool {
    let read = || {
        let dir = readable(dir).ok()?;
        let mut found = [0; 17];
        let len = rustix::fs::fgetxattr(&dir, MADE_FOR, &mut found).ok()?;
        Some(found[..len] == mark(owner))
    };
    read().unwrap_or(false)
}
