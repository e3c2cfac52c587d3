//! A file on its way: bytes first, its name last.
//!
//! A small file has no name at all on Linux until it is complete (`O_TMPFILE`), so that even a
//! killed process leaves nothing behind. Where the file system cannot do that, it has a temporary
//! name in the same directory, removed on every way out. A large file is a [part](super::part),
//! which stays when a transfer is cut off.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::beside::{MOST_BESIDE, beside, note_renamed_from};
use super::direct::Direct;
use super::existing::Existing;
use super::flusher::Flusher;
use crate::transfer::arrived::Arrived;
use crate::transfer::groups::GROUP;
use crate::transfer::protocol::Modified;

/// A file that is being received into a directory.
#[derive(Debug)]
pub(crate) struct Staged {
    file: File,
    dir: Arc<Dir>,
    /// The temporary name; `None` while the file has no name at all.
    temporary: Option<String>,
    /// Where the next bytes go.
    position: u64,
    /// It ends with a hole, or had bytes before: its length is still to be set.
    length_unknown: bool,
    /// Bytes in it that are older than this transfer.
    old: u64,
    /// What is in it is worth keeping for the next attempt.
    keep: bool,
    /// It is a part that was there before this attempt.
    is_resumed: bool,
    /// Writes what is added to a resumed part, where that is possible and worth it.
    direct: Option<Box<Direct>>,
    /// Of a part: forces its old bytes to the disk, and the new ones that `direct` does not write.
    flusher: Option<Flusher>,
    /// It goes out as it comes, and gets no name.
    is_stream: bool,
}

impl Staged {
    /// Opens a new file in `dir` that nobody sees under a final name.
    pub(crate) fn create(dir: &Arc<Dir>) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if Path::new("/proc/self/fd").exists() {
            let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
            match rustix::fs::openat(dir.as_fd(), ".", flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => return Ok(Self::new(fd.into(), dir, None)),
                // What file systems without it answer.
                Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Self::create_named(dir)
    }

    fn create_named(dir: &Arc<Dir>) -> io::Result<Self> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let name = temporary_name();
            match rustix::fs::openat(dir.as_fd(), &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => return Ok(Self::new(fd.into(), dir, Some(name))),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn new(file: File, dir: &Arc<Dir>, temporary: Option<String>) -> Self {
        Self {
            file,
            dir: Arc::clone(dir),
            temporary,
            position: 0,
            length_unknown: false,
            old: 0,
            keep: false,
            is_resumed: false,
            direct: None,
            flusher: None,
            is_stream: false,
        }
    }

    /// A pipe, a terminal, or whatever else standard output is.
    pub(super) fn streaming(file: File, dir: &Arc<Dir>) -> Self {
        let mut staged = Self::new(file, dir, None);
        staged.is_stream = true;
        staged
    }

    /// Goes on with a part, which is open as `file` and has this name.
    pub(super) fn resume(file: File, dir: &Arc<Dir>, name: String) -> io::Result<Self> {
        let old = file.metadata()?.len();
        let direct = (old >= GROUP).then(|| past_memory(&file, dir, &name));
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let again = rustix::fs::openat(dir.as_fd(), &name, flags, Mode::empty());
        let mut staged = Self::new(file, dir, Some(name));
        staged.direct = direct.flatten().map(Box::new);
        staged.flusher = again.ok().and_then(|fd| Flusher::start(fd.into(), old));
        staged.length_unknown = true;
        staged.old = old;
        staged.keep = true;
        staged.is_resumed = old > 0;
        Ok(staged)
    }

    /// Bytes in it before this transfer.
    pub(crate) fn old(&self) -> u64 {
        self.old
    }

    /// On a full disk a part that this attempt began is not kept: the disk would stay full.
    fn noted<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        if let Err(error) = &result
            && matches!(error.kind(), StorageFull | QuotaExceeded)
        {
            self.keep &= self.is_resumed;
        }
        result
    }

    /// Fills it with the first `len` bytes of `basis`.
    pub(crate) fn copy_from(&mut self, basis: &File, len: u64) -> io::Result<()> {
        let copied = self.try_copy_from(basis, len);
        self.noted(copied)
    }

    fn try_copy_from(&mut self, basis: &File, len: u64) -> io::Result<()> {
        let mut from = basis;
        from.seek(io::SeekFrom::Start(0))?;
        (&self.file).seek(io::SeekFrom::Start(0))?;
        io::copy(&mut from.take(len), &mut &self.file)?;
        self.old = self.old.max(len);
        self.length_unknown = true;
        Ok(())
    }

    /// What is in it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The next bytes go to this position.
    pub(crate) fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// Writes the next bytes.
    pub(crate) fn write(&mut self, arrived: &mut impl Arrived) -> io::Result<()> {
        let written = self.try_write(arrived);
        self.noted(written)
    }

    fn try_write(&mut self, arrived: &mut impl Arrived) -> io::Result<()> {
        if self.is_stream {
            return (&self.file).write_all(arrived.bytes());
        }
        let len = arrived.bytes().len() as u64;
        let is_direct = match &mut self.direct {
            Some(direct) => direct.write(arrived, self.position)?,
            None => {
                self.file.write_all_at(arrived.bytes(), self.position)?;
                false
            }
        };
        if let (false, Some(flusher)) = (is_direct, &mut self.flusher) {
            flusher.wrote(len);
        }
        self.position += len;
        Ok(())
    }

    /// Leaves a hole of `len` bytes.
    pub(crate) fn skip(&mut self, len: u64) -> io::Result<()> {
        if self.is_stream {
            return io::copy(&mut io::repeat(0).take(len), &mut &self.file).map(drop);
        }
        let end = self.position.checked_add(len);
        let end = end.filter(|end| i64::try_from(*end).is_ok());
        let end = end.ok_or(Errno::FBIG)?;
        let old = self.old.min(end).saturating_sub(self.position);
        if old > 0 {
            let cleared = self.clear(old);
            self.noted(cleared)?;
        }
        self.position = end;
        self.length_unknown = true;
        Ok(())
    }

    /// Makes zeros of bytes that are here.
    fn clear(&self, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, self.position, len) {
            Ok(()) => return Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        let zeros = [0; 64 << 10];
        let mut done = 0;
        while done < len {
            let amount = (len - done).min(zeros.len() as u64);
            self.file
                .write_all_at(&zeros[..amount as usize], self.position + done)?;
            done += amount;
        }
        Ok(())
    }

    /// What is in it is of no use: it goes when this is dropped.
    pub(crate) fn discard(&mut self) {
        self.keep = false;
    }

    /// Sets length, permissions and time, forces everything to the disk, and gives the file its
    /// name; the name, where it is another one than asked for.
    ///
    /// Unless something may be replaced, the last step fails with `AlreadyExists` when the name is
    /// taken, however late.
    pub(crate) fn commit(
        mut self,
        name: &[u8],
        size: u64,
        mode: u32,
        modified: Modified,
        existing: Existing,
    ) -> io::Result<Option<Vec<u8>>> {
        if self.is_stream {
            return Ok(None);
        }
        let committed = self.try_commit(name, size, mode, modified, existing);
        self.noted(committed)
    }

    fn try_commit(
        &mut self,
        name: &[u8],
        size: u64,
        mode: u32,
        modified: Modified,
        existing: Existing,
    ) -> io::Result<Option<Vec<u8>>> {
        // Its thread and blocks are not needed while the file waits for the disk.
        if let Some(mut direct) = self.direct.take() {
            direct.finish()?;
        }
        if self.length_unknown {
            self.file.set_len(size)?;
        }
        if existing == Existing::Rename && self.is_taken(name) {
            // The mode of the file may not permit it later.
            note_renamed_from(&self.file, name);
        }
        rustix::fs::fchmod(&self.file, permitted(mode))?;
        set_modified(&self.file, modified);
        self.file.sync_all()?;
        match existing {
            Existing::Refuse | Existing::Skip => self.link(name).map(|()| None),
            Existing::Update | Existing::Overwrite => self.replace(name).map(|()| None),
            Existing::Rename => self.link_beside(name),
        }
    }

    fn is_taken(&self, name: &[u8]) -> bool {
        rustix::fs::statat(self.dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Takes the name, or the first free one beside it.
    fn link_beside(&mut self, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        match self.link(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|()| None),
        }
        for number in 1..=MOST_BESIDE {
            let other = beside(name, number);
            match self.link(&other) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                result => return result.map(|()| Some(other)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn link(&mut self, name: &[u8]) -> io::Result<()> {
        let Some(temporary) = &self.temporary else {
            return self.name_as(name);
        };
        match rustix::fs::renameat_with(
            self.dir.as_fd(),
            temporary,
            self.dir.as_fd(),
            name,
            RenameFlags::NOREPLACE,
        ) {
            Ok(()) => {
                self.temporary = None;
                Ok(())
            }
            // A file system without it: a hard link refuses taken names, too.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::linkat(
                    self.dir.as_fd(),
                    temporary,
                    self.dir.as_fd(),
                    name,
                    AtFlags::empty(),
                )?;
                // The temporary name goes with this value.
                self.keep = false;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn replace(&mut self, name: &[u8]) -> io::Result<()> {
        // A nameless file cannot be renamed over another one; it takes a temporary name for a
        // moment.
        while self.temporary.is_none() {
            let temporary = temporary_name();
            match self.name_as(temporary.as_bytes()) {
                Ok(()) => self.temporary = Some(temporary),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(temporary) = &self.temporary {
            rustix::fs::renameat(self.dir.as_fd(), temporary, self.dir.as_fd(), name)?;
            self.temporary = None;
        }
        Ok(())
    }

    /// Links the nameless file into its directory (open(2), O_TMPFILE).
    fn name_as(&self, name: &[u8]) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(rustix::fs::linkat(
            CWD,
            path,
            self.dir.as_fd(),
            name,
            AtFlags::SYMLINK_FOLLOW,
        )?)
    }
}

/// A writer past the page cache for a part that is open as `file`. `None` where that may be
/// slower: on a network, and where each change of a file makes a copy.
#[cfg(target_os = "linux")]
fn past_memory(file: &File, dir: &Dir, name: &str) -> Option<Direct> {
    const EXT4: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    let kind = rustix::fs::fstatfs(file).ok()?.f_type as u64;
    let flags = OFlags::WRONLY | OFlags::DIRECT;
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let direct = rustix::fs::openat(dir.as_fd(), name, flags, Mode::empty()).ok()?;
    let (one, other) = (
        rustix::fs::fstat(file).ok()?,
        rustix::fs::fstat(&direct).ok()?,
    );
    let is_same = (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino);
    let plain = file.try_clone().ok()?;
    if !is_same || ![EXT4, XFS].contains(&kind) {
        return None;
    }
    Direct::start(direct.into(), plain)
}

#[cfg(not(target_os = "linux"))]
fn past_memory(_file: &File, _dir: &Dir, _name: &str) -> Option<Direct> {
    None
}

impl Drop for Staged {
    fn drop(&mut self) {
        // What it still writes counts.
        self.direct = None;
        if let Some(temporary) = &self.temporary {
            // Less than a group is sent again anyway.
            let is_worth = self.file.metadata().is_ok_and(|found| found.len() >= GROUP);
            if self.keep && is_worth {
                return;
            }
            // Nothing more can be done about a file that cannot be removed either.
            let _ = rustix::fs::unlinkat(self.dir.as_fd(), temporary, AtFlags::empty());
        }
    }
}

/// Makes a symbolic link in `dir`. With [`Existing::Overwrite`] it replaces a file or link of its
/// name.
pub(crate) fn symlink(
    dir: &Dir,
    name: &[u8],
    target: &[u8],
    modified: Modified,
    existing: Existing,
) -> io::Result<()> {
    let fd = dir.as_fd();
    match rustix::fs::symlinkat(target, fd, name) {
        Ok(()) => {}
        Err(Errno::EXIST) if existing == Existing::Overwrite => {
            let temporary = loop {
                let temporary = temporary_name();
                match rustix::fs::symlinkat(target, fd, &temporary) {
                    Ok(()) => break temporary,
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            };
            if let Err(error) = rustix::fs::renameat(fd, &temporary, fd, name) {
                // Nothing more can be done about a link that cannot be removed either.
                let _ = rustix::fs::unlinkat(fd, &temporary, AtFlags::empty());
                return Err(error.into());
            }
        }
        Err(error) => return Err(error.into()),
    }
    let times = timestamps(modified);
    // A file system that keeps no times for links loses nothing that matters.
    let _ = rustix::fs::utimensat(fd, name, &times, AtFlags::SYMLINK_NOFOLLOW);
    Ok(())
}

/// What a sender's mode may become here: permission bits only, so that no set-user-ID program comes
/// into being by a transfer, and of these none that the receiver's own umask withholds.
pub(crate) fn permitted(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777 & !umask())
}

/// The process's umask. It can be asked for only by setting it, so on Linux it is read from proc(5)
/// instead, which disturbs no other thread; where that is not possible, nobody but the owner may
/// write.
fn umask() -> u32 {
    static UMASK: LazyLock<u32> = LazyLock::new(|| {
        std::fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| umask_in(&status))
            .unwrap_or(0o022)
    });
    *UMASK
}

fn umask_in(status: &str) -> Option<u32> {
    let digits = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(digits.trim(), 8).ok()
}

/// Sets the modification time; a time that the file system cannot hold is left as it is.
pub(crate) fn set_modified(file: impl AsFd, modified: Modified) {
    let _ = rustix::fs::futimens(file, &timestamps(modified));
}

fn timestamps(modified: Modified) -> Timestamps {
    let time = Timespec {
        tv_sec: modified.seconds,
        tv_nsec: modified.nanos.into(),
    };
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_OMIT,
    };
    Timestamps {
        last_access: now,
        last_modification: time,
    }
}

/// Hidden, recognisable, and not to be guessed.
pub(super) fn temporary_name() -> String {
    format!(
        ".tack-{:016x}.part",
        RandomState::new().hash_one(std::process::id())
    )
}

#[cfg(test)]
mod tests;
