//! Directories that a transfer made and left: their modes and times are set once everything is in
//! them.

use std::ffi::OsStr;
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use tempfile::SpooledTempFile;

use crate::transfer::protocol::Modified;

/// Bytes kept in memory before the list goes to an unnamed file.
const SPOOL: usize = 64 << 10;

/// A directory whose mode and time are not set yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PendingDirectory {
    pub(super) index: u64,
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) modified: Modified,
}

/// The directories whose modes and times are not set yet, in post-order.
#[derive(Debug)]
pub(super) struct PendingDirectories {
    spool: SpooledTempFile,
    /// Path of the last record: the next one holds only what differs at its end, so that the list
    /// grows by no more than the names that came over the wire.
    last: Vec<u8>,
    count: u64,
}

impl PendingDirectories {
    pub(super) fn new() -> Self {
        Self {
            spool: SpooledTempFile::new(SPOOL),
            last: Vec::new(),
            count: 0,
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn push(&mut self, left: &PendingDirectory) -> io::Result<()> {
        let path = left.path.as_os_str().as_bytes();
        let both = self.last.iter().zip(path);
        let shared = both.take_while(|(a, b)| a == b).count();
        let rest = &path[shared..];
        let mut record = Vec::with_capacity(28 + rest.len());
        record.extend_from_slice(&left.index.to_be_bytes());
        record.extend_from_slice(&left.mode.to_be_bytes());
        record.extend_from_slice(&left.modified.seconds.to_be_bytes());
        record.extend_from_slice(&left.modified.nanos.to_be_bytes());
        // Paths here are within MAX_NAME, so two bytes hold each length.
        record.extend_from_slice(&(shared as u16).to_be_bytes());
        record.extend_from_slice(&(rest.len() as u16).to_be_bytes());
        record.extend_from_slice(rest);
        self.last.truncate(shared);
        self.last.extend_from_slice(rest);
        self.count += 1;
        self.spool.write_all(&record)
    }

    /// Calls `each` with every directory, in post-order.
    pub(super) fn for_each(mut self, mut each: impl FnMut(PendingDirectory)) -> io::Result<()> {
        self.spool.rewind()?;
        let mut path = Vec::new();
        for _ in 0..self.count {
            each(read(&mut self.spool, &mut path)?);
        }
        Ok(())
    }
}

fn read(spool: &mut SpooledTempFile, path: &mut Vec<u8>) -> io::Result<PendingDirectory> {
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
    path.resize(shared + rest, 0);
    spool.read_exact(&mut path[shared..])?;
    Ok(PendingDirectory {
        index,
        path: PathBuf::from(OsStr::from_bytes(path)),
        mode,
        modified: Modified { seconds, nanos },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_directories_grows_by_the_names_only() {
        let mut list = PendingDirectories::new();
        let parent = "d/".repeat(2000);
        let all: Vec<PendingDirectory> = (0..1000)
            .map(|index| PendingDirectory {
                index,
                path: PathBuf::from(format!("{parent}{index}")),
                mode: 0o755,
                modified: Modified::default(),
            })
            .collect();
        for left in &all {
            list.push(left).unwrap();
        }
        assert!(list.spool.stream_position().unwrap() < 4096 + 1000 * 32);
        let mut read = Vec::new();
        list.for_each(|left| read.push(left)).unwrap();
        assert_eq!(read, all);
    }
}
