//! The sending thread: walks what was named on the command line, reads, hashes, and fills buffers.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use walkdir::WalkDir;

use super::confirmations::Confirmations;
use crate::transfer::buffers::{Disconnected, Outgoing};
use crate::transfer::holes::{allocated, hash_zeros, next_extent};
use crate::transfer::names;
use crate::transfer::protocol::{
    Entry, MAX_DEPTH, MAX_HOLE, MAX_TARGET, Modified, NameRules, Request,
};

/// What to do about symbolic links below the paths named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Links {
    Skip,
    Follow,
    Keep,
}

/// One thing named on the command line, and the name it gets at the receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Path { path: PathBuf, name: OsString },
    StandardInput { name: OsString },
}

impl Source {
    /// The name at the receiver.
    pub(crate) fn name(&self) -> &OsStr {
        match self {
            Self::Path { name, .. } | Self::StandardInput { name } => name,
        }
    }
}

/// Bytes below the sources, for the progress bar: what cannot be read now counts as nothing.
pub(crate) fn total_size(sources: &[Source], links: Links) -> Option<u64> {
    let mut total = 0;
    for source in sources {
        let Source::Path { path, .. } = source else {
            return None;
        };
        for entry in WalkDir::new(path)
            .follow_links(links == Links::Follow)
            .into_iter()
            .flatten()
        {
            total += entry
                .metadata()
                .ok()
                .filter(Metadata::is_file)
                .map_or(0, |metadata| allocated(&metadata));
        }
    }
    Some(total)
}

/// Sends everything; what cannot be read is reported and left out.
pub(crate) fn send_all(
    sources: &[Source],
    links: Links,
    rules: NameRules,
    out: &mut Outgoing,
    confirmations: &Confirmations,
) -> Result<(), Disconnected> {
    let mut walker = Walker {
        links,
        rules,
        out,
        confirmations,
    };
    for source in sources {
        match source {
            Source::Path { path, name } => walker.path(path, name)?,
            Source::StandardInput { name } => walker.standard_input(name)?,
        }
    }
    out.frame(|bytes| Request::Done.encode(bytes))?;
    out.flush()
}

struct Walker<'a> {
    links: Links,
    /// What names may be like at the receiver.
    rules: NameRules,
    out: &'a mut Outgoing,
    confirmations: &'a Confirmations,
}

impl Walker<'_> {
    /// Something that was asked for cannot be sent: both sides must know.
    fn missing(&mut self, sent_as: &Path, path: &Path, why: &str) -> Result<(), Disconnected> {
        self.confirmations.fail(path, why);
        self.out.frame(|bytes| {
            Request::Missing {
                path: sent_as.as_os_str().as_bytes(),
                message: why,
            }
            .encode(bytes);
        })
    }

    fn path(&mut self, root: &Path, name: &OsStr) -> Result<(), Disconnected> {
        let top = name;
        // The path of an entry at the receiver.
        let sent_as = |path: &Path| match path.strip_prefix(root) {
            Ok(below) if !below.as_os_str().is_empty() => Path::new(top).join(below),
            _ => PathBuf::from(top),
        };
        // Lists of a directory are read as they are needed: memory does not grow with the number of files.
        let mut walk = WalkDir::new(root)
            .follow_links(self.links == Links::Follow)
            .into_iter();
        let mut depth = 0;
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let path = error.path().unwrap_or(root).to_owned();
                    let reason = match (error.loop_ancestor(), error.io_error()) {
                        (Some(ancestor), _) => format!("leads back to {}", ancestor.display()),
                        (None, Some(error)) => format!("cannot be read: {error}"),
                        (None, None) => "cannot be read".into(),
                    };
                    self.missing(&sent_as(&path), &path, &reason)?;
                    continue;
                }
            };
            while depth > entry.depth() {
                self.leave()?;
                depth -= 1;
            }
            let path = entry.path();
            // The names above an entry are those of the walk; only the first is chosen by the command line.
            let name = if entry.depth() == 0 {
                name
            } else {
                entry.file_name()
            };
            // What is in a refused directory is not sent, only counted: the counts must not depend on when the refusal arrives.
            let refused = self.confirmations.is_refused();
            if let Err(why) = names::check(name.as_bytes(), self.rules) {
                let why = format!("cannot be stored there: {why}");
                self.missing(&sent_as(path), path, &why)?;
                if entry.file_type().is_dir() {
                    walk.skip_current_dir();
                }
                continue;
            }
            let file_type = entry.file_type();
            if file_type.is_symlink() && self.links == Links::Keep {
                if refused {
                    self.confirmations.leave_out();
                } else {
                    self.link(path, &sent_as(path), name)?;
                }
            } else if file_type.is_symlink() {
                self.confirmations.skip_link(path);
            } else if file_type.is_dir() {
                if entry.depth() + 1 > MAX_DEPTH {
                    let why = format!("directories are nested deeper than {MAX_DEPTH}");
                    self.missing(&sent_as(path), path, &why)?;
                    walk.skip_current_dir();
                    continue;
                }
                if refused {
                    self.confirmations.leave_out();
                    continue;
                }
                match entry.metadata() {
                    Ok(metadata) => {
                        self.enter(path, name, &metadata)?;
                        depth += 1;
                    }
                    Err(error) => {
                        let why = format!("cannot be read: {error}");
                        self.missing(&sent_as(path), path, &why)?;
                        walk.skip_current_dir();
                    }
                }
            } else if file_type.is_file() && refused {
                self.confirmations.leave_out();
            } else if file_type.is_file() {
                self.file(path, &sent_as(path), name)?;
            } else {
                self.confirmations.skip(path, "neither file nor directory");
            }
        }
        for _ in 0..depth {
            self.leave()?;
        }
        Ok(())
    }

    fn enter(
        &mut self,
        path: &Path,
        name: &OsStr,
        metadata: &Metadata,
    ) -> Result<(), Disconnected> {
        self.confirmations.enter(path);
        self.out
            .frame(|bytes| Request::Enter(describe(name, metadata, None)).encode(bytes))
    }

    fn leave(&mut self) -> Result<(), Disconnected> {
        self.confirmations.leave();
        self.out.frame(|bytes| Request::Leave.encode(bytes))
    }

    fn link(&mut self, path: &Path, sent_as: &Path, name: &OsStr) -> Result<(), Disconnected> {
        let read = || Ok((std::fs::read_link(path)?, path.symlink_metadata()?));
        let (target, metadata) = match read() {
            Ok(read) => read,
            Err(error) => {
                let error: io::Error = error;
                return self.missing(sent_as, path, &format!("cannot be read: {error}"));
            }
        };
        let target = target.as_os_str().as_bytes();
        if target.len() > MAX_TARGET {
            let why = format!("points to a path longer than {MAX_TARGET} bytes");
            return self.missing(sent_as, path, &why);
        }
        self.confirmations
            .link(path, target, *blake3::hash(target).as_bytes())?;
        self.out
            .frame(|bytes| Request::Link(describe(name, &metadata, None), target).encode(bytes))
    }

    fn file(&mut self, path: &Path, sent_as: &Path, name: &OsStr) -> Result<(), Disconnected> {
        let (mut file, metadata) = match open(path, self.links) {
            Ok(opened) => opened,
            Err(error) => {
                return self.missing(sent_as, path, &format!("cannot be read: {error}"));
            }
        };
        let size = metadata.len();
        // Data up to the next hole; a file without holes is not searched for them.
        let mut run = if allocated(&metadata) < size { 0 } else { size };
        self.confirmations.begin_file(path)?;
        self.out
            .frame(|bytes| Request::File(describe(name, &metadata, Some(size))).encode(bytes))?;
        let mut hasher = blake3::Hasher::new();
        let mut left = size;
        while left > 0 {
            if self.confirmations.is_refused() {
                return self.abort(None);
            }
            if run == 0 {
                match next_extent(&file, size - left, left) {
                    Ok((0, 0)) => run = left,
                    Ok((hole, data)) => {
                        run = data;
                        left -= hole;
                        self.hole(hole, &mut hasher)?;
                    }
                    Err(error) => return self.abort(Some(&format!("cannot be read: {error}"))),
                }
                continue;
            }
            match self.out.data(run, |buffer| file.read(buffer))? {
                Ok([]) => {
                    let message = format!(
                        "it was truncated while it was sent: {} of {size} bytes",
                        size - left
                    );
                    return self.abort(Some(&message));
                }
                Ok(chunk) => {
                    hasher.update(chunk);
                    left -= chunk.len() as u64;
                    run -= chunk.len() as u64;
                }
                Err(error) => return self.abort(Some(&format!("cannot be read: {error}"))),
            }
        }
        // A file written to meanwhile may be a mixture of old and new that never existed.
        let changed = match file.metadata() {
            Ok(after) if after.len() != size => Some(format!(
                "its size changed from {size} to {} bytes while it was sent",
                after.len()
            )),
            Ok(after)
                if (after.mtime(), after.mtime_nsec())
                    != (metadata.mtime(), metadata.mtime_nsec()) =>
            {
                Some("it was modified while it was sent".to_owned())
            }
            Ok(_) => None,
            Err(error) => Some(format!("cannot be read: {error}")),
        };
        match changed {
            Some(message) => self.abort(Some(&message)),
            None => self.end(size, &hasher),
        }
    }

    fn hole(&mut self, mut len: u64, hasher: &mut blake3::Hasher) -> Result<(), Disconnected> {
        while len > 0 && !self.confirmations.is_refused() {
            let part = len.min(MAX_HOLE);
            self.out.frame(|bytes| Request::Hole(part).encode(bytes))?;
            // The receiver hashes as long as we do: it may begin now.
            self.out.flush()?;
            hash_zeros(hasher, part);
            len -= part;
        }
        Ok(())
    }

    fn standard_input(&mut self, name: &OsStr) -> Result<(), Disconnected> {
        self.confirmations.begin_file(Path::new("-"))?;
        let entry = Entry {
            name: name.as_bytes(),
            mode: 0o644,
            modified: now(),
            size: None,
            data: 0,
        };
        self.out.frame(|bytes| Request::File(entry).encode(bytes))?;
        let mut hasher = blake3::Hasher::new();
        let mut size = 0;
        let mut input = io::stdin().lock();
        loop {
            if self.confirmations.is_refused() {
                return self.abort(None);
            }
            // What is there goes out before we wait for more.
            self.out.flush()?;
            match self.out.data(u64::MAX, |buffer| input.read(buffer))? {
                Ok([]) => return self.end(size, &hasher),
                Ok(chunk) => {
                    hasher.update(chunk);
                    size += chunk.len() as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.abort(Some(&format!("cannot be read: {error}"))),
            }
        }
    }

    fn end(&mut self, size: u64, hasher: &blake3::Hasher) -> Result<(), Disconnected> {
        let hash = *hasher.finalize().as_bytes();
        self.confirmations.end_file(size, hash);
        self.out.frame(|bytes| Request::End(hash).encode(bytes))
    }

    fn abort(&mut self, error: Option<&str>) -> Result<(), Disconnected> {
        self.confirmations.abort_file(error);
        self.out
            .frame(|bytes| Request::Abort(error.unwrap_or("refused")).encode(bytes))
    }
}

/// Opens a regular file, without waiting on a pipe that took its place and without following a link that did.
fn open(path: &Path, links: Links) -> io::Result<(File, Metadata)> {
    let mut flags = OFlags::NONBLOCK;
    if links != Links::Follow {
        flags |= OFlags::NOFOLLOW;
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok((file, metadata))
}

fn describe<'a>(name: &'a OsStr, metadata: &Metadata, size: Option<u64>) -> Entry<'a> {
    let nanos = u32::try_from(metadata.mtime_nsec()).unwrap_or(0);
    Entry {
        name: name.as_bytes(),
        mode: metadata.mode() & 0o777,
        modified: Modified {
            seconds: metadata.mtime(),
            nanos,
        },
        size,
        data: allocated(metadata),
    }
}

fn now() -> Modified {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Modified {
        seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        nanos: since.subsec_nanos(),
    }
}
