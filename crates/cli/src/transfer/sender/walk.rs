//! The sending thread: walks what was named on the command line, offers what it finds, and sends
//! what is wanted.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::confirmations::{Confirmations, Verdict};
use super::content::{Contents, Offered, modified_of};
use super::mirror::remove_extras;
use super::options::{Links, Options, Source};
use super::progress::Progress;
use crate::transfer::buffers::{Disconnected, Outgoing};
use crate::transfer::groups::hash_of;
use crate::transfer::holes::allocated;
use crate::transfer::names;
use crate::transfer::protocol::{
    Entry, MAX_DEPTH, MAX_OFFERED, MAX_TARGET, Modified, NameRules, Request,
};

/// Files that are offered before the first of them is answered: no round trip a file. The protocol
/// allows twice as many.
const AHEAD: usize = MAX_OFFERED / 2;

/// Files with several names that are remembered; the names of others are sent as files.
const MAX_NAMED: usize = 1 << 18;

/// Sends everything; what cannot be read is reported and left out.
pub(crate) fn send_all(
    sources: &[Source],
    options: &Options,
    rules: NameRules,
    out: &mut Outgoing,
    confirmations: &Confirmations,
    progress: &Progress,
) -> Result<(), Disconnected> {
    let mut walker = Walker {
        options,
        rules,
        contents: Contents {
            links: options.links,
            out,
            confirmations,
            progress,
        },
        offered: VecDeque::new(),
        named: HashMap::new(),
    };
    for source in sources {
        match source {
            Source::Path { path, name } => walker.path(path, name)?,
            Source::StandardInput { name } => walker.standard_input(name)?,
        }
    }
    walker.settle(0)?;
    for (count, why) in confirmations.left_out() {
        let why = &why;
        walker.frame(&Request::LeftOut { count, why })?;
    }
    if options.delete {
        remove_extras(sources, options, &mut walker.contents)?;
    }
    out.frame(|bytes| Request::Done.encode(bytes))?;
    out.flush()
}

struct Walker<'a> {
    options: &'a Options,
    /// The receiver's rules for names.
    rules: NameRules,
    contents: Contents<'a>,
    /// Files whose content was not sent yet, in order.
    offered: VecDeque<Offered>,
    /// Files with several names, by device and inode: the entry that was the first of them.
    named: HashMap<(u64, u64), u64>,
}

impl Walker<'_> {
    fn confirmations(&self) -> &Confirmations {
        self.contents.confirmations
    }

    fn frame(&mut self, request: &Request<'_>) -> Result<(), Disconnected> {
        self.contents.out.frame(|bytes| request.encode(bytes))
    }

    /// Reports to both sides something named that cannot be sent.
    fn missing(&mut self, sent_as: &Path, path: &Path, why: &str) -> Result<(), Disconnected> {
        self.confirmations().fail(path, why);
        self.frame(&Request::Missing {
            path: sent_as.as_os_str().as_bytes(),
            message: why,
        })
    }

    fn path(&mut self, root: &Path, name: &OsStr) -> Result<(), Disconnected> {
        let top = name;
        let mut exclude = self.options.exclude.below(root);
        let links = self.options.links;
        // The path of an entry at the receiver.
        let sent_as = |path: &Path| match path.strip_prefix(root) {
            Ok(below) if !below.as_os_str().is_empty() => Path::new(top).join(below),
            _ => PathBuf::from(top),
        };
        // Lists of a directory are read as they are needed: memory does not grow with the number of
        // files.
        let mut walk = WalkDir::new(root)
            .follow_links(links == Links::Follow)
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
            let file_type = entry.file_type();
            let is_excluded = entry.depth() > 0 && exclude.leaves_out(path, file_type.is_dir());
            while let Some((path, why)) = exclude.next_fault() {
                self.confirmations().note(&path, &why);
            }
            if is_excluded {
                self.confirmations().exclude();
                if file_type.is_dir() {
                    walk.skip_current_dir();
                }
                continue;
            }
            // The names above an entry are those of the walk; only the first is chosen by the
            // command line.
            let name = if entry.depth() == 0 {
                name
            } else {
                entry.file_name()
            };
            // What is in a refused directory is not sent, only counted: the counts must not depend
            // on when the refusal arrives.
            let refused = self.confirmations().is_refused();
            if let Err(why) = names::check(name.as_bytes(), self.rules) {
                let why = format!("cannot be stored there: {why}");
                self.missing(&sent_as(path), path, &why)?;
                if file_type.is_dir() {
                    walk.skip_current_dir();
                }
                continue;
            }
            if file_type.is_symlink() && links == Links::Keep {
                if refused {
                    self.confirmations().leave_out();
                } else {
                    self.link(path, &sent_as(path), name)?;
                }
            } else if file_type.is_symlink() {
                self.confirmations().skip_link(path);
            } else if file_type.is_dir() {
                if entry.depth() + 1 > MAX_DEPTH {
                    let why = format!("directories are nested deeper than {MAX_DEPTH}");
                    self.missing(&sent_as(path), path, &why)?;
                    walk.skip_current_dir();
                    continue;
                }
                if refused {
                    self.confirmations().leave_out();
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
                self.confirmations().leave_out();
            } else if file_type.is_file() {
                match entry.metadata() {
                    Ok(metadata) => self.file(path, &sent_as(path), name, &metadata)?,
                    Err(error) => {
                        let why = format!("cannot be read: {error}");
                        self.missing(&sent_as(path), path, &why)?;
                    }
                }
            } else {
                self.confirmations()
                    .skip(path, "neither file nor directory");
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
        self.confirmations().enter(path);
        self.frame(&Request::Enter(describe(name, metadata, None)))
    }

    fn leave(&mut self) -> Result<(), Disconnected> {
        self.confirmations().leave();
        self.frame(&Request::Leave)
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
        self.confirmations()
            .link(path, target, *blake3::hash(target).as_bytes())?;
        self.frame(&Request::Link(describe(name, &metadata, None), target))
    }

    fn file(
        &mut self,
        path: &Path,
        sent_as: &Path,
        name: &OsStr,
        metadata: &Metadata,
    ) -> Result<(), Disconnected> {
        let size = metadata.len();
        let has_names = metadata.nlink() > 1;
        let key = (metadata.dev(), metadata.ino());
        if has_names && let Some(first) = self.named.get(&key).copied() {
            return self.further_name(first, path, name, metadata);
        }
        let hash = match self
            .options
            .checksum
            .then(|| File::open(path).and_then(hash_of))
        {
            None => None,
            Some(Ok(hash)) => Some(hash),
            Some(Err(error)) => {
                return self.missing(sent_as, path, &format!("cannot be read: {error}"));
            }
        };
        let index = self.confirmations().offer(path)?;
        self.frame(&Request::File {
            entry: describe(name, metadata, Some(size)),
            hash,
            has_names,
        })?;
        if has_names && self.named.len() < MAX_NAMED {
            self.named.insert(key, index);
        }
        self.offered.push_back(Offered {
            index,
            path: path.to_owned(),
            size,
            modified: modified_of(metadata),
        });
        self.settle(AHEAD)
    }

    /// A file that was offered before, under another name.
    fn further_name(
        &mut self,
        first: u64,
        path: &Path,
        name: &OsStr,
        metadata: &Metadata,
    ) -> Result<(), Disconnected> {
        // The receiver can make it a name of that file only once the file is there.
        if !self.options.dry_run && !self.confirmations().is_settled(first) {
            self.settle(0)?;
            self.contents.out.flush()?;
            self.confirmations().wait_for(first)?;
        }
        let size = metadata.len();
        let index = self.confirmations().offer(path)?;
        let entry = describe(name, metadata, Some(size));
        self.frame(&Request::Same { first, entry })?;
        self.offered.push_back(Offered {
            index,
            path: path.to_owned(),
            size,
            modified: modified_of(metadata),
        });
        self.settle(AHEAD)
    }

    /// Sends the contents that are known to be wanted, and waits for answers while more than `most`
    /// files have none.
    fn settle(&mut self, most: usize) -> Result<(), Disconnected> {
        while let Some(first) = self.offered.front() {
            if !self.confirmations().is_answered(first.index) {
                if self.offered.len() <= most {
                    break;
                }
                self.contents.out.flush()?;
            }
            let verdict = self.confirmations().verdict(first.index)?;
            let Some(first) = self.offered.pop_front() else {
                break;
            };
            match verdict {
                Verdict::Settled => self.contents.progress.add_whole(first.size),
                Verdict::Wanted(_) if self.options.dry_run => {
                    self.confirmations().would_send(first.index, first.size);
                }
                Verdict::Wanted(listed) => self.contents.send(&first, listed)?,
            }
        }
        Ok(())
    }

    fn standard_input(&mut self, name: &OsStr) -> Result<(), Disconnected> {
        self.settle(0)?;
        let index = self.confirmations().offer(Path::new("-"))?;
        let entry = Entry {
            name: name.as_bytes(),
            mode: 0o644,
            modified: now(),
            size: None,
            data: 0,
        };
        self.frame(&Request::File {
            entry,
            hash: None,
            has_names: false,
        })?;
        self.contents.out.flush()?;
        match self.confirmations().verdict(index)? {
            Verdict::Settled => Ok(()),
            Verdict::Wanted(_) if self.options.dry_run => {
                self.confirmations().would_send(index, 0);
                Ok(())
            }
            Verdict::Wanted(_) => self.contents.standard_input(index),
        }
    }
}

fn describe<'a>(name: &'a OsStr, metadata: &Metadata, size: Option<u64>) -> Entry<'a> {
    Entry {
        name: name.as_bytes(),
        mode: metadata.mode() & 0o777,
        modified: modified_of(metadata),
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
