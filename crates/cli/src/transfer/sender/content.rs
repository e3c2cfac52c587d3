//! The content of files that the receiver wants: whole, or only the groups that differ from what it
//! has.

use std::collections::VecDeque;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::confirmations::Confirmations;
use super::options::Links;
use super::progress::Progress;
use crate::transfer::ahead::{Ahead, read_ahead};
use crate::transfer::buffers::{Disconnected, Outgoing};
use crate::transfer::groups::{FileHasher, GROUP, groups_in};
use crate::transfer::holes::{allocated, next_extent};
use crate::transfer::protocol::{MAX_ASKED, MAX_HOLE, Modified, Request, Value};

/// A file that was offered, and whose content may be asked for.
#[derive(Debug)]
pub(super) struct Offered {
    pub(super) index: u64,
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) modified: Modified,
}

/// Sends the contents of files, and counts their bytes.
pub(super) struct Contents<'a> {
    pub(super) links: Links,
    pub(super) out: &'a mut Outgoing,
    pub(super) confirmations: &'a Confirmations,
    pub(super) progress: &'a Progress,
}

/// Why a content is not sent to its end.
enum Stop {
    Disconnected,
    /// The receiver refused the file.
    Refused,
    /// The file cannot be read, or changed while it was read.
    Source(String),
}

impl From<Disconnected> for Stop {
    fn from(_: Disconnected) -> Self {
        Self::Disconnected
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Source(format!("cannot be read: {error}"))
    }
}

impl Contents<'_> {
    fn frame(&mut self, request: &Request<'_>) -> Result<(), Disconnected> {
        self.out.frame(|bytes| request.encode(bytes))
    }

    /// Sends a file. Of its first `listed` bytes the receiver may have something.
    pub(super) fn send(&mut self, offered: &Offered, listed: u64) -> Result<(), Disconnected> {
        let index = offered.index;
        self.progress.begin(&offered.path, Some(offered.size));
        self.frame(&Request::Content(index))?;
        match self.read(offered, listed) {
            Ok(()) => Ok(()),
            Err(Stop::Disconnected) => Err(Disconnected),
            Err(Stop::Refused) => self.abort(index, None),
            Err(Stop::Source(why)) => self.abort(index, Some(&why)),
        }
    }

    fn read(&mut self, offered: &Offered, listed: u64) -> Result<(), Stop> {
        let (file, metadata) = open(&offered.path, self.links)?;
        let size = offered.size;
        changed(offered, &metadata)?;
        let source = Reading {
            file: &file,
            index: offered.index,
            size,
            // A file without holes is not searched for them.
            is_sparse: allocated(&metadata) < size,
        };
        let mut hasher = FileHasher::new();
        if listed >= GROUP && size > GROUP {
            self.groups(&source, listed, &mut hasher)?;
        } else {
            self.extents(&source, 0, size, Some(&mut hasher))?;
        }
        // A file written to meanwhile may be a mixture of old and new that never existed.
        changed(offered, &file.metadata()?)?;
        self.end(offered.index, size, hasher)
    }

    /// Sends `len` bytes from `at` on, and hashes them where that was not done yet.
    fn extents(
        &mut self,
        source: &Reading<'_>,
        mut at: u64,
        len: u64,
        mut hasher: Option<&mut FileHasher>,
    ) -> Result<(), Stop> {
        let end = at + len;
        self.begin_buffer(len)?;
        // Data up to the next hole.
        let mut run = if source.is_sparse { 0 } else { len };
        while at < end {
            if self.confirmations.is_settled(source.index) {
                return Err(Stop::Refused);
            }
            if run == 0 {
                let (hole, data) = next_extent(source.file, at, end - at)?;
                run = if hole + data == 0 { end - at } else { data };
                at += hole;
                self.hole(source.index, hole, hasher.as_deref_mut())?;
                continue;
            }
            let read = |buffer: &mut [u8]| source.file.read_at(buffer, at);
            let chunk = self.out.data(run, read)??;
            if chunk.is_empty() {
                let size = source.size;
                let why = format!("it was truncated while it was sent: {at} of {size} bytes");
                return Err(Stop::Source(why));
            }
            if let Some(hasher) = hasher.as_deref_mut() {
                hasher.update(chunk);
            }
            let len = chunk.len() as u64;
            (at, run) = (at + len, run - len);
            self.progress.add(len);
        }
        Ok(())
    }

    fn hole(
        &mut self,
        index: u64,
        mut len: u64,
        mut hasher: Option<&mut FileHasher>,
    ) -> Result<(), Stop> {
        while len > 0 {
            if self.confirmations.is_settled(index) {
                return Err(Stop::Refused);
            }
            let part = len.min(MAX_HOLE);
            self.frame(&Request::Hole(part))?;
            // The receiver hashes as long as we do: it may begin now.
            self.out.flush()?;
            if let Some(hasher) = hasher.as_deref_mut() {
                hasher.zeros(part);
            }
            len -= part;
        }
        Ok(())
    }

    /// Sends the groups that differ from those that the receiver has.
    fn groups(
        &mut self,
        source: &Reading<'_>,
        listed: u64,
        hasher: &mut FileHasher,
    ) -> Result<(), Stop> {
        let groups = groups_in(source.size);
        let mut queries = Queries {
            here: if listed >= source.size {
                groups
            } else {
                listed / GROUP
            },
            asked: 0,
            ends: VecDeque::new(),
            known: 0,
            first: 0,
            values: Vec::new(),
        };
        // One is answered while another is on its way.
        self.ask(&mut queries)?;
        self.ask(&mut queries)?;
        let here = queries.here;
        let expected = read_ahead(source.file, source.size, 0..here, |ahead| {
            self.compare(source, &mut queries, ahead, hasher)
        })?;
        if here < groups {
            // Nothing more to compare with.
            if expected != here {
                self.frame(&Request::Seek(here))?;
            }
            let at = here * GROUP;
            self.extents(source, at, source.size - at, Some(hasher))?;
        }
        Ok(())
    }

    /// Sends those of the `ahead` groups whose values are not those of the receiver. Returns where
    /// the receiver expects the next bytes.
    fn compare(
        &mut self,
        source: &Reading<'_>,
        queries: &mut Queries,
        mut ahead: Ahead<'_>,
        hasher: &mut FileHasher,
    ) -> Result<u64, Stop> {
        let mut expected = 0;
        for number in 0..queries.here {
            if number == queries.known {
                self.out.flush()?;
                let answer = self.confirmations.values(source.index)?;
                let (first, values) = answer.ok_or(Stop::Refused)?;
                (queries.first, queries.values) = (first, values);
                queries.known = queries.ends.pop_front().unwrap_or(queries.here);
                self.ask(queries)?;
            }
            let group = ahead.next().map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    Stop::Source("it was truncated while it was sent".into())
                }
                _ => error.into(),
            })?;
            let Some(group) = group else { break };
            hasher.push(&group.value);
            if queries.value_of(number) == Some(&group.value) {
                self.progress.add(group.bytes().len() as u64);
                continue;
            }
            if expected != number {
                self.frame(&Request::Seek(number))?;
            }
            expected = number + 1;
            if source.is_sparse {
                let len = group.bytes().len() as u64;
                self.extents(source, number * GROUP, len, None)?;
            } else {
                self.bytes(source.index, group.bytes())?;
            }
        }
        Ok(expected)
    }

    fn ask(&mut self, queries: &mut Queries) -> Result<(), Disconnected> {
        let count = queries.next_count();
        if count == 0 {
            return Ok(());
        }
        let first = queries.asked;
        self.confirmations.ask(first, count);
        queries.asked += u64::from(count);
        queries.ends.push_back(queries.asked);
        self.frame(&Request::Query { first, count })
    }

    /// `len` bytes of a file follow. A buffer that they fill has nothing before them: they lie in
    /// it as in the file.
    fn begin_buffer(&mut self, len: u64) -> Result<(), Disconnected> {
        if len >= GROUP {
            self.out.flush()
        } else {
            Ok(())
        }
    }

    /// Sends bytes that were read and hashed.
    fn bytes(&mut self, index: u64, mut bytes: &[u8]) -> Result<(), Stop> {
        self.begin_buffer(bytes.len() as u64)?;
        while !bytes.is_empty() {
            if self.confirmations.is_settled(index) {
                return Err(Stop::Refused);
            }
            let copy = |buffer: &mut [u8]| {
                let amount = buffer.len().min(bytes.len());
                buffer[..amount].copy_from_slice(&bytes[..amount]);
                Ok(amount)
            };
            let len = self.out.data(bytes.len() as u64, copy)??.len();
            bytes = &bytes[len..];
            self.progress.add(len as u64);
        }
        Ok(())
    }

    /// Sends standard input up to its end.
    pub(super) fn standard_input(&mut self, index: u64) -> Result<(), Disconnected> {
        self.progress.begin(Path::new("-"), None);
        self.frame(&Request::Content(index))?;
        let mut hasher = FileHasher::new();
        let mut size = 0;
        let mut input = io::stdin().lock();
        loop {
            if self.confirmations.is_settled(index) {
                return self.abort(index, None);
            }
            // What is there goes out before we wait for more.
            self.out.flush()?;
            match self.out.data(u64::MAX, |buffer| input.read(buffer))? {
                Ok([]) => {
                    return match self.end(index, size, hasher) {
                        Ok(()) => Ok(()),
                        Err(_) => Err(Disconnected),
                    };
                }
                Ok(chunk) => {
                    hasher.update(chunk);
                    let len = chunk.len() as u64;
                    size += len;
                    self.progress.add(len);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return self.abort(index, Some(&format!("cannot be read: {error}")));
                }
            }
        }
    }

    fn end(&mut self, index: u64, size: u64, hasher: FileHasher) -> Result<(), Stop> {
        let hash = hasher
            .finish()
            .ok_or_else(|| Stop::Source("it has no hash".into()))?;
        self.confirmations.end_file(index, size, hash);
        Ok(self.frame(&Request::End(hash))?)
    }

    fn abort(&mut self, index: u64, error: Option<&str>) -> Result<(), Disconnected> {
        self.confirmations.abort_file(index, error);
        self.frame(&Request::Abort(error.unwrap_or("refused")))?;
        // Answers that are on their way are not those of the next file.
        self.out.flush()?;
        self.confirmations.forget_values()
    }
}

/// A file that is being read.
struct Reading<'a> {
    file: &'a File,
    index: u64,
    size: u64,
    is_sparse: bool,
}

/// Queries for the groups of a file that the receiver has.
struct Queries {
    /// Number of groups that the receiver may have.
    here: u64,
    /// The next group to ask for.
    asked: u64,
    /// Where the queries end whose answers were not taken yet.
    ends: VecDeque<u64>,
    /// Where the query ends whose answer was taken last.
    known: u64,
    /// The first group of the latest answer.
    first: u64,
    values: Vec<Value>,
}

/// Groups of the first two queries, and of the last one.
const FEW_ASKED: u64 = 32;

impl Queries {
    /// How many groups to ask for. While the receiver hashes the first groups, this side waits, and
    /// while this side hashes the last ones, the receiver does: few there, and many between, so
    /// that few answers have to cross a long path. A query asks for as many as all before it at
    /// most, so that the receiver has groups to hash until the next one comes.
    fn next_count(&self) -> u16 {
        let left = self.here - self.asked;
        let count = left
            .div_ceil(2)
            .min(self.asked)
            .clamp(FEW_ASKED, MAX_ASKED.into())
            .min(left);
        u16::try_from(count).unwrap_or(MAX_ASKED)
    }

    fn value_of(&self, group: u64) -> Option<&Value> {
        let place = group.checked_sub(self.first)?;
        self.values.get(usize::try_from(place).ok()?)
    }
}

/// Opens a regular file, without waiting on a pipe that took its place and without following a link
/// that did.
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

/// Whether a file changed since it was offered: its content would be a mixture.
fn changed(offered: &Offered, now: &Metadata) -> Result<(), Stop> {
    if now.len() != offered.size {
        let (size, len) = (offered.size, now.len());
        return Err(Stop::Source(format!(
            "its size changed from {size} to {len} bytes while it was sent"
        )));
    }
    if modified_of(now) != offered.modified {
        return Err(Stop::Source("it was modified while it was sent".into()));
    }
    Ok(())
}

/// The modification time of a file.
pub(super) fn modified_of(metadata: &Metadata) -> Modified {
    Modified {
        seconds: metadata.mtime(),
        nanos: u32::try_from(metadata.mtime_nsec()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_short_at_both_ends_and_ask_for_everything() {
        for here in [1, 31, 32, 33, 100, 2048, 1 << 20] {
            let mut queries = Queries {
                here,
                asked: 0,
                ends: VecDeque::new(),
                known: 0,
                first: 0,
                values: Vec::new(),
            };
            let mut counts = Vec::new();
            while queries.next_count() > 0 {
                counts.push(u64::from(queries.next_count()));
                queries.asked += u64::from(queries.next_count());
            }
            assert_eq!(counts.iter().sum::<u64>(), here);
            assert!(counts.iter().all(|count| *count <= MAX_ASKED.into()));
            assert!(counts[0] <= FEW_ASKED && *counts.last().unwrap() <= FEW_ASKED);
            if here >= 1024 {
                assert_eq!(counts[..5], [32, 32, 64, 128, 128]);
            }
            let least = here / u64::from(MAX_ASKED);
            assert!(counts.len() as u64 <= least + 12, "{counts:?}");
        }
    }
}
