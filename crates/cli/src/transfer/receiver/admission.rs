//! Whether a transfer is taken at all: decided before its first byte.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use cap_std::fs::{Dir, MetadataExt};
use indicatif::HumanBytes;

use super::receive_error::ReceiveError;
use super::remembered::{Transfer, Transfers};
use super::session::Session;
use super::store::Store;
use crate::keyboard;
use crate::printer::files;
use crate::transfer::protocol::Hello;

/// Limits and permissions that the receiver's user set.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    /// Maximum bytes of one transfer.
    pub(crate) max_bytes: Option<u64>,
    /// Senders may remove what they do not have.
    pub(crate) delete: bool,
    /// Asks on the terminal before each transfer.
    pub(crate) ask: bool,
    /// What was accepted, and what came of it.
    pub(crate) transfers: Transfers,
}

impl Admission {
    /// Accepts or refuses a transfer, from what its sender announces. One that the user accepted
    /// goes on without a question.
    ///
    /// # Errors
    /// Why it is not taken, or that the connection was lost meanwhile.
    pub(super) fn admit(
        &self,
        session: &Session,
        transfer: &Transfer<'_>,
        hello: &Hello,
        store: &Store,
    ) -> Result<(), ReceiveError> {
        let declined = |why: &str| Err(ReceiveError::Declined(why.to_owned()));
        if hello.delete && !(self.delete && store.existing.may_replace()) {
            return declined("this receiver does not permit removal (--delete)");
        }
        self.compare(hello, store).map_err(ReceiveError::Declined)?;
        if !self.ask || hello.dry_run || transfer.is_accepted(hello) {
            return Ok(());
        }
        // Another connection of the transfer may be the one that is asked about.
        let is_over = || session.is_abandoned() || transfer.is_accepted(hello);
        match keyboard::ask(&question(session.peer, hello), is_over) {
            Ok(Some(answer)) if is_yes(&answer) => {
                transfer.accept(hello);
                Ok(())
            }
            Ok(None) if transfer.is_accepted(hello) => Ok(()),
            Ok(None) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            // The end of the input.
            Ok(Some(answer)) if answer.is_empty() => {
                declined("nobody can be asked at the receiver: its standard input has ended")
            }
            Ok(Some(_)) => declined("the receiver's user declined it"),
            Err(error) => declined(&format!("nobody can be asked at the receiver: {error}")),
        }
    }

    fn compare(&self, hello: &Hello, store: &Store) -> Result<(), String> {
        // All ones: the sender does not know.
        if hello.bytes == u64::MAX || hello.dry_run {
            return Ok(());
        }
        if self.max_bytes.is_some_and(|most| hello.bytes > most) {
            return Err(self.too_much());
        }
        // Standard output needs no disk.
        if store.output.is_some() {
            return Ok(());
        }
        let Ok(disk) = rustix::fs::fstatvfs(store.root.as_fd()) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // What is here already may be what is sent, and need not come again. Each file is compared
        // with what is free before it comes, too.
        if hello.bytes > free && !holds(&store.root, hello.bytes - free) {
            return Err(format!(
                "the transfer has {} bytes, the receiver's disk has room for {free}",
                hello.bytes
            ));
        }
        Ok(())
    }

    /// Declines a transfer whose received bytes, those of all its connections, exceed the limit, or
    /// what was announced where the user decided by that.
    ///
    /// # Errors
    /// Why it ends here.
    pub(crate) fn check(&self, arrived: u64, hello: &Hello) -> Result<(), String> {
        match self.max_bytes {
            Some(most) if arrived > most => Err(self.too_much()),
            _ if self.ask && arrived > allowance(hello.bytes, 1 << 20) => Err(format!(
                "it has more than the {} bytes that it announced and the receiver's user accepted",
                hello.bytes
            )),
            _ => Ok(()),
        }
    }

    /// Declines a transfer that offers more files than were announced, where the user decided by
    /// that.
    ///
    /// # Errors
    /// Why it ends here.
    pub(super) fn check_files(&self, offered: u64, hello: &Hello) -> Result<(), String> {
        if self.ask && offered > allowance(hello.files, 16) {
            return Err(format!(
                "it has more than the {} files that it announced and the receiver's user accepted",
                hello.files
            ));
        }
        Ok(())
    }

    fn too_much(&self) -> String {
        let most = self.max_bytes.unwrap_or(u64::MAX);
        format!("it exceeds the receiver's limit of {most} bytes (--max-bytes)")
    }
}

/// Most entries of a folder that are counted: enough for any folder that is kept up to date, and
/// done within seconds.
const MOST_ENTRIES: u32 = 1_000_000;

/// Whether the files below `root` take `bytes` at least. Where that takes too long to find out, or
/// cannot be found out, they may.
fn holds(root: &Dir, bytes: u64) -> bool {
    let (mut found, mut entries) = (0_u64, 0_u32);
    let mut folders = match root.entries() {
        Ok(entries) => vec![entries],
        Err(_) => return true,
    };
    while let Some(folder) = folders.last_mut() {
        let Some(entry) = folder.next() else {
            folders.pop();
            continue;
        };
        entries += 1;
        if found >= bytes || entries > MOST_ENTRIES {
            return true;
        }
        let Ok(entry) = entry else { return true };
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => {
                match entry.open_dir().and_then(|dir| dir.entries()) {
                    Ok(entries) => folders.push(entries),
                    Err(_) => return true,
                }
            }
            Ok(metadata) => found = found.saturating_add(metadata.blocks().saturating_mul(512)),
            // It has gone.
            Err(_) => {}
        }
    }
    found >= bytes
}

/// Most that may come where `announced` was: a folder may grow while it is sent.
fn allowance(announced: u64, slack: u64) -> u64 {
    announced.saturating_add((announced / 8).max(slack))
}

fn question(peer: SocketAddr, hello: &Hello) -> String {
    if hello.files == u64::MAX {
        return format!("{peer} sends something of unknown size; take it? [y/N] ");
    }
    let (files, bytes) = (files(hello.files), HumanBytes(hello.bytes));
    format!("{peer} sends {files}, {bytes}; take it? [y/N] ")
}

/// Only an explicit yes is one.
fn is_yes(answer: &str) -> bool {
    let answer = answer.trim();
    answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_folder_holds_is_counted_with_all_below_it() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(scratch.path().join("one/two")).unwrap();
        for name in ["a", "one/b", "one/two/c"] {
            std::fs::write(scratch.path().join(name), vec![1; 8192]).unwrap();
        }
        std::os::unix::fs::symlink("one", scratch.path().join("link")).unwrap();
        let sparse = std::fs::File::create(scratch.path().join("sparse")).unwrap();
        sparse.set_len(1 << 30).unwrap();
        let root = Dir::open_ambient_dir(scratch.path(), cap_std::ambient_authority()).unwrap();
        assert!(holds(&root, 3 * 8192));
        assert!(
            !holds(&root, 1 << 29),
            "holes take no room, and links are not followed"
        );
    }

    #[test]
    fn only_a_yes_is_one() {
        for (answer, wanted) in [
            ("y\n", true),
            ("YES\n", true),
            ("\n", false),
            ("", false),
            ("yo\n", false),
        ] {
            assert_eq!(is_yes(answer), wanted, "{answer:?}");
        }
    }
}
