//! The receiving thread: frames in, files out, an answer for each.

use std::io::{self, BufRead};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::committer::{Committer, Job};
use super::refused::Refused;
use super::reserved::Reservation;
use super::session::Session;
use super::staged::Staged;
use super::store::{Cursor, Store};
use crate::transfer::holes::hash_zeros;
use crate::transfer::names::RULES;
use crate::transfer::protocol::{
    Entry, HEAD, Hash, Head, Kind, MAX_CONTROL, MAX_HOLES, Refusal, Reply, Request, Violation,
};

/// Why a transfer ended before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    #[error(transparent)]
    Violation(#[from] Violation),
    #[error("the connection to the sender was lost: {0}")]
    Stream(io::Error),
    #[error("timed out waiting for the sender's greeting")]
    NoGreeting,
    #[error("this receiver was stopped")]
    Stopped,
    #[error("the receiving directory failed: {0}")]
    Storage(io::Error),
}

impl From<io::Error> for ReceiveError {
    fn from(error: io::Error) -> Self {
        Self::Stream(match error.kind() {
            // What `read_exact` says of it is about our buffers.
            io::ErrorKind::UnexpectedEof => {
                io::Error::new(error.kind(), "it was closed before the end of the transfer")
            }
            _ => error,
        })
    }
}

/// A file being received.
struct Open {
    index: u64,
    path: PathBuf,
    name: Vec<u8>,
    mode: u32,
    modified: crate::transfer::protocol::Modified,
    announced: Option<u64>,
    received: u64,
    /// Bytes of holes among them.
    holes: u64,
    hasher: blake3::Hasher,
    staged: Staged,
    reservation: Reservation,
}

/// What data frames are for.
enum Current {
    Nothing,
    File(Box<Open>),
    /// The entry was refused; its data passes unseen.
    Refused,
}

/// Receives one transfer from `input` until its end.
pub(crate) fn receive(
    input: &mut impl BufRead,
    session: &Arc<Session>,
    store: &Store,
    committer: &Committer,
) -> Result<(), ReceiveError> {
    let result = Receiver {
        input,
        session,
        committer,
        cursor: Cursor::new(store),
        next: 0,
        refused_depth: 0,
    }
    .run(store);
    match &result {
        Err(ReceiveError::Violation(violation)) => {
            session.reply(Reply::Fatal {
                reason: Refusal::Protocol,
                message: violation.to_string(),
            });
        }
        Err(ReceiveError::Storage(error)) => {
            session.reply(Reply::Fatal {
                reason: Refusal::Storage,
                message: error.to_string(),
            });
        }
        // The rest is not found here.
        Ok(()) | Err(_) => {}
    }
    // Files that were complete are worth keeping whatever happened after them.
    session.wait_for_files();
    result
}

struct Receiver<'a, R> {
    input: &'a mut R,
    session: &'a Arc<Session>,
    committer: &'a Committer,
    cursor: Cursor<'a>,
    /// Index of the next entry.
    next: u64,
    /// How many directories deep we are below (and including) one that was refused.
    refused_depth: usize,
}

impl<R: BufRead> Receiver<'_, R> {
    fn run(mut self, store: &Store) -> Result<(), ReceiveError> {
        let mut payload = vec![0; MAX_CONTROL];
        self.greet(&mut payload)?;
        let mut current = Current::Nothing;
        loop {
            let head = self.head()?;
            if head.kind == Kind::Data {
                current = self.data(head, current)?;
                continue;
            }
            let payload = &mut payload[..head.len];
            self.input.read_exact(payload)?;
            let request = Request::decode(head.kind, payload)?;
            current = match (current, request) {
                (current, Request::KeepAlive) => current,
                (Current::Nothing, Request::Enter(entry)) => {
                    self.enter(&entry)?;
                    Current::Nothing
                }
                (Current::Nothing, Request::Leave) => {
                    self.leave()?;
                    Current::Nothing
                }
                (Current::Nothing, Request::File(entry)) => self.file(&entry),
                (Current::File(open), Request::End(hash)) => {
                    self.end(*open, hash, store);
                    Current::Nothing
                }
                (Current::Refused, Request::End(_) | Request::Abort(_)) => Current::Nothing,
                (Current::File(open), Request::Abort(message)) => {
                    self.session
                        .report()
                        .failure(&open.path, &format!("the sender gave up: {message}"));
                    Current::Nothing
                }
                (Current::Nothing, Request::Link(entry, target)) => {
                    self.link(&entry, target);
                    Current::Nothing
                }
                (Current::Nothing, Request::Missing { path, message }) => {
                    let path = std::ffi::OsStr::from_bytes(path);
                    self.session.report().failure(
                        path.as_ref(),
                        &format!("the sender cannot send it: {message}"),
                    );
                    Current::Nothing
                }
                (Current::File(open), Request::Hole(len)) => self.hole(open, len),
                (Current::Refused, Request::Hole(_)) => Current::Refused,
                (Current::Nothing, Request::Done) => return self.done(),
                _ => return Err(Violation::Unexpected(head.kind).into()),
            };
        }
    }

    fn head(&mut self) -> Result<Head, ReceiveError> {
        let mut head = [0; HEAD];
        self.input.read_exact(&mut head)?;
        Ok(Head::parse(head)?)
    }

    fn greet(&mut self, payload: &mut [u8]) -> Result<(), ReceiveError> {
        let head = self.head().map_err(|error| match error {
            // Whatever protocol the peer speaks, name the expected one.
            ReceiveError::Violation(_) => ReceiveError::Violation(Violation::Magic),
            other => other,
        })?;
        if head.kind != Kind::Hello {
            return Err(Violation::Magic.into());
        }
        self.input.read_exact(&mut payload[..head.len])?;
        // Its own rules for names do not matter here: ours do, and it learns them.
        Request::decode(head.kind, &payload[..head.len])?;
        self.session.set_greeted();
        self.session.reply(Reply::Welcome(RULES));
        Ok(())
    }

    /// The next entry's index, once there is room for its answer.
    fn index(&mut self) -> u64 {
        self.session.wait_for_room();
        let index = self.next;
        self.next += 1;
        index
    }

    fn enter(&mut self, entry: &Entry<'_>) -> Result<(), ReceiveError> {
        let index = self.index();
        let result = if self.refused_depth > 0 {
            Err(parent_refused())
        } else {
            self.cursor.enter(index, entry)?
        };
        match result {
            Ok(()) => self.session.report().directories += 1,
            Err(refused) => {
                self.refused_depth += 1;
                self.session
                    .reject(index, &self.cursor.path_of(entry.name), refused);
            }
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<(), ReceiveError> {
        if self.refused_depth > 0 {
            self.refused_depth -= 1;
            return Ok(());
        }
        self.cursor.leave()?.map_err(ReceiveError::Storage)
    }

    fn file(&mut self, entry: &Entry<'_>) -> Current {
        let index = self.index();
        let created = if self.refused_depth > 0 {
            Err(parent_refused())
        } else {
            self.cursor.create(entry)
        };
        let path = self.cursor.path_of(entry.name);
        match created {
            Ok((staged, reservation)) => Current::File(Box::new(Open {
                index,
                path,
                name: entry.name.to_vec(),
                mode: entry.mode,
                modified: entry.modified,
                announced: entry.size,
                received: 0,
                holes: 0,
                hasher: blake3::Hasher::new(),
                staged,
                reservation,
            })),
            Err(refused) => {
                self.session.reject(index, &path, refused);
                Current::Refused
            }
        }
    }

    fn link(&mut self, entry: &Entry<'_>, target: &[u8]) {
        let index = self.index();
        let made = if self.refused_depth > 0 {
            Err(parent_refused())
        } else {
            self.cursor.link(entry, target)
        };
        let path = self.cursor.path_of(entry.name);
        match made {
            Ok(()) => {
                let hash = *blake3::hash(target).as_bytes();
                self.session.report().link(&path, target, &hash);
                let size = target.len() as u64;
                self.session.reply(Reply::Confirm { index, size, hash });
            }
            Err(refused) => self.session.reject(index, &path, refused),
        }
    }

    /// Zeros that take no room.
    fn hole(&mut self, mut open: Box<Open>, len: u64) -> Current {
        open.received = open.received.saturating_add(len);
        open.holes = open.holes.saturating_add(len);
        let refused = if open
            .announced
            .is_some_and(|announced| open.received > announced)
        {
            Some(too_many_bytes())
        } else if open.holes > MAX_HOLES {
            Some(Refused::holes())
        } else {
            open.staged
                .skip(len)
                .err()
                .map(|error| Refused::storage(&error))
        };
        match refused {
            Some(refused) => {
                self.session.reject(open.index, &open.path, refused);
                Current::Refused
            }
            None => {
                hash_zeros(&mut open.hasher, len);
                Current::File(open)
            }
        }
    }

    fn data(&mut self, head: Head, mut current: Current) -> Result<Current, ReceiveError> {
        if matches!(current, Current::Nothing) || head.len == 0 {
            return Err(Violation::Unexpected(Kind::Data).into());
        }
        let mut left = head.len;
        while left > 0 {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            let amount = chunk.len().min(left);
            let mut failed = None;
            if let Current::File(open) = &mut current {
                let chunk = &chunk[..amount];
                open.hasher.update(chunk);
                open.received += amount as u64;
                if open
                    .announced
                    .is_some_and(|announced| open.received > announced)
                {
                    failed = Some(too_many_bytes());
                } else if let Err(error) = open.staged.write(chunk) {
                    failed = Some(Refused::storage(&error));
                }
            }
            self.input.consume(amount);
            left -= amount;
            if let (Some(refused), Current::File(open)) = (failed, &current) {
                self.session.reject(open.index, &open.path, refused);
                current = Current::Refused;
            }
        }
        Ok(current)
    }

    fn end(&mut self, open: Open, expected: Hash, store: &Store) {
        let hash = *open.hasher.finalize().as_bytes();
        if open
            .announced
            .is_some_and(|announced| announced != open.received)
            || hash != expected
        {
            let refused = Refused::new(
                Refusal::Corrupt,
                "the received bytes differ from the sent bytes (BLAKE3)",
            );
            return self.session.reject(open.index, &open.path, refused);
        }
        self.session.begin();
        self.committer.submit(Job {
            session: Arc::clone(self.session),
            staged: open.staged,
            index: open.index,
            path: open.path,
            name: open.name,
            mode: open.mode,
            modified: open.modified,
            size: open.received,
            hash,
            existing: store.existing(),
            reservation: open.reservation,
        });
    }

    fn done(self) -> Result<(), ReceiveError> {
        if self.refused_depth > 0 || !self.cursor.is_at_root() {
            return Err(Violation::Unexpected(Kind::Done).into());
        }
        self.session.wait_for_files();
        let session = self.session;
        self.cursor
            .finish(|index, path, error| {
                let refused =
                    Refused::new(Refusal::Storage, format!("{}: {error}", path.display()));
                // As many as there are directories: these wait for their answers to be taken like all others.
                session.wait_for_room();
                session.report().directories -= 1;
                session.reject(index, path, refused);
            })
            .map_err(ReceiveError::Storage)?;
        let (files, bytes) = {
            let report = session.report();
            (report.files, report.bytes)
        };
        session.reply(Reply::Finished { files, bytes });
        Ok(())
    }
}

fn too_many_bytes() -> Refused {
    Refused::new(Refusal::Corrupt, "received more bytes than announced")
}

fn parent_refused() -> Refused {
    Refused::new(Refusal::Parent, "its directory was refused")
}
