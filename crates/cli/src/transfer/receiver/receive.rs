//! The receiving thread: frames in, files out, an answer for each.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

use super::admission::Admission;
use super::committer::{Committer, Job};
use super::content::{Complete, Content};
use super::cursor::Cursor;
use super::mirror::{Extras, Mirror};
use super::offer::{Answer, Wanted};
use super::refused::Refused;
use super::session::Session;
use super::store::Store;
use crate::transfer::names::RULES;
use crate::transfer::protocol::{
    Entry, HEAD, Hash, Head, Hello, Kept, Kind, MAX_CONTROL, MAX_OFFERED, Refusal, Reply, Request,
    Violation,
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
    #[error("the sender goes on over another connection")]
    Superseded,
    #[error("the transfer is not taken: {0}")]
    Declined(String),
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

/// What data frames are for.
enum Current {
    Nothing,
    File(Box<Content>),
    /// The file was refused; its content passes unseen.
    Refused,
}

/// Receives one transfer from `input` until its end.
pub(crate) fn receive(
    input: &mut impl BufRead,
    session: &Arc<Session>,
    store: &Store,
    admission: &Admission,
    committer: &Committer,
) -> Result<(), ReceiveError> {
    let result = greet(input, session, store, admission).and_then(|hello| {
        let existing = store.existing.for_sender(hello.taken);
        let mut cursor = Cursor::new(store, Arc::clone(&session.holder), existing, hello.dry_run);
        if hello.delete && existing.may_replace() {
            cursor.mirror = Some(Mirror::new());
        }
        session.report().dry_run = hello.dry_run;
        Receiver {
            input,
            session,
            store,
            committer,
            admission,
            hello,
            cursor,
            offered: BTreeMap::new(),
            extras: None,
            next: 0,
            refused_depth: 0,
            carried: 0,
        }
        .run()
    });
    let fatal = match &result {
        Err(ReceiveError::Violation(violation)) => Some((Refusal::Protocol, violation.to_string())),
        Err(ReceiveError::Storage(error)) => Some((Refusal::Storage, error.to_string())),
        Err(ReceiveError::Declined(why)) => Some((Refusal::Declined, why.clone())),
        // The rest is not found here.
        Ok(()) | Err(_) => None,
    };
    if let Some((reason, message)) = fatal {
        session.reply(Reply::Fatal { reason, message });
    }
    // Files that were complete are worth keeping whatever happened after them.
    session.wait_for_files();
    result
}

fn head(input: &mut impl BufRead) -> Result<Head, ReceiveError> {
    let mut head = [0; HEAD];
    input.read_exact(&mut head)?;
    Ok(Head::parse(head)?)
}

fn greet(
    input: &mut impl BufRead,
    session: &Session,
    store: &Store,
    admission: &Admission,
) -> Result<Hello, ReceiveError> {
    let head = head(input).map_err(|error| match error {
        // Whatever protocol the peer speaks, name the expected one.
        ReceiveError::Violation(_) => ReceiveError::Violation(Violation::Magic),
        other => other,
    })?;
    if head.kind != Kind::Hello {
        return Err(Violation::Magic.into());
    }
    let mut payload = vec![0; head.len];
    input.read_exact(&mut payload)?;
    // Its own rules for names do not matter here: ours do, and it learns them.
    let Request::Hello(hello) = Request::decode(head.kind, &payload)? else {
        return Err(Violation::Magic.into());
    };
    session.set_greeted(hello.clone());
    admission
        .admit(session.peer, &hello, store)
        .map_err(ReceiveError::Declined)?;
    session.reply(Reply::Welcome(RULES));
    Ok(hello)
}

struct Receiver<'a, R> {
    input: &'a mut R,
    session: &'a Arc<Session>,
    store: &'a Store,
    committer: &'a Committer,
    admission: &'a Admission,
    hello: Hello,
    cursor: Cursor<'a>,
    /// Files that the sender was told to send, by their indices.
    offered: BTreeMap<u64, Box<Wanted>>,
    /// What the sender does not have; once it asked for that, no entry follows.
    extras: Option<Extras>,
    /// Index of the next entry.
    next: u64,
    /// How many directories deep we are below (and including) one that was refused.
    refused_depth: usize,
    /// Bytes of files that came over the wire.
    carried: u64,
}

impl<R: BufRead> Receiver<'_, R> {
    fn run(mut self) -> Result<(), ReceiveError> {
        let mut payload = vec![0; MAX_CONTROL];
        let mut current = Current::Nothing;
        loop {
            let head = head(self.input)?;
            if head.kind == Kind::Data {
                current = self.data(head, current)?;
                continue;
            }
            let payload = &mut payload[..head.len];
            self.input.read_exact(payload)?;
            let request = Request::decode(head.kind, payload)?;
            current = match (current, request) {
                (current, Request::KeepAlive) => current,
                (Current::Nothing, Request::Done) => return self.done(),
                (Current::Nothing, Request::Extras) => {
                    self.tell_extras()?;
                    Current::Nothing
                }
                (Current::Nothing, Request::Remove(number)) => {
                    self.remove(number)?;
                    Current::Nothing
                }
                (Current::Nothing, request) if self.extras.is_none() => self.entry(request)?,
                (Current::File(content), request) => self.content(content, request)?,
                (Current::Refused, Request::End(_) | Request::Abort(_)) => Current::Nothing,
                (Current::Refused, Request::Query { first, .. }) => {
                    // Whoever asks waits for an answer.
                    self.session.wait_for_room();
                    let values = Vec::new();
                    self.session.reply(Reply::Groups { first, values });
                    Current::Refused
                }
                (Current::Refused, Request::Hole(_) | Request::Seek(_)) => Current::Refused,
                _ => return Err(Violation::Unexpected(head.kind).into()),
            };
        }
    }

    /// What stands between contents of files.
    fn entry(&mut self, request: Request<'_>) -> Result<Current, ReceiveError> {
        match request {
            Request::Enter(entry) => self.enter(&entry)?,
            Request::Leave => self.leave()?,
            Request::File {
                entry,
                hash,
                has_names,
            } => self.offer(&entry, hash.as_ref(), has_names)?,
            Request::Same { first, entry } => self.same(first, &entry)?,
            Request::Content(index) => return self.begin(index),
            Request::Link(entry, target) => self.link(&entry, target),
            Request::Missing { path, message } => {
                let path = std::ffi::OsStr::from_bytes(path);
                let why = format!("the sender cannot send it: {message}");
                self.session.report().failure(path.as_ref(), &why);
            }
            Request::LeftOut { count, why } => {
                self.session.report().sender_left_out(count, why);
            }
            other => return Err(Violation::Unexpected(other.kind()).into()),
        }
        Ok(Current::Nothing)
    }

    /// What stands within the content of a file.
    fn content(
        &mut self,
        mut content: Box<Content>,
        request: Request<'_>,
    ) -> Result<Current, ReceiveError> {
        let before = content.position();
        let refused = match request {
            Request::Hole(len) => content.hole(len).err(),
            Request::Seek(group) => {
                content.seek(group)?;
                None
            }
            Request::Query { first, count } => {
                self.session.wait_for_room();
                let values = content.query(first, count)?;
                let (values, refused) = match values {
                    Ok(values) => (values, None),
                    Err(refused) => (Vec::new(), Some(refused)),
                };
                self.session.reply(Reply::Groups { first, values });
                refused
            }
            Request::End(hash) => {
                self.end(*content, hash);
                return Ok(Current::Nothing);
            }
            Request::Abort(message) => {
                let why = format!("the sender gave up: {message}");
                self.session.report().failure(&content.wanted.path, &why);
                return Ok(Current::Nothing);
            }
            other => return Err(Violation::Unexpected(other.kind()).into()),
        };
        self.session.pass(content.position() - before);
        match refused {
            Some(refused) => {
                self.session
                    .reject(content.index, &content.wanted.path, refused);
                Ok(Current::Refused)
            }
            None => Ok(Current::File(content)),
        }
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
        self.see(entry);
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

    /// What came stays where what did not come is removed.
    fn see(&mut self, entry: &Entry<'_>) {
        if let Some(mirror) = &mut self.cursor.mirror {
            mirror.see(entry.name);
        }
    }

    fn offer(
        &mut self,
        entry: &Entry<'_>,
        hash: Option<&Hash>,
        has_names: bool,
    ) -> Result<(), ReceiveError> {
        let index = self.index();
        self.see(entry);
        let answer = if self.refused_depth > 0 {
            Err(parent_refused())
        } else {
            self.cursor.offer(entry, hash)
        };
        if has_names && let Ok(answer) = &answer {
            let is_here = matches!(answer, Answer::Have(Kept::Unchanged));
            let path = self.cursor.path_of(entry.name);
            self.session.firsts().expect(index, &path, is_here);
        }
        self.answer(index, entry, answer)
    }

    /// A further name of an entry that came before.
    fn same(&mut self, first: u64, entry: &Entry<'_>) -> Result<(), ReceiveError> {
        let index = self.index();
        self.see(entry);
        let answer = if self.refused_depth > 0 {
            Err(parent_refused())
        } else {
            let first = self.session.firsts().path(first);
            self.cursor.same(entry, first.as_deref())
        };
        self.answer(index, entry, answer)
    }

    /// Answers an offer.
    fn answer(
        &mut self,
        index: u64,
        entry: &Entry<'_>,
        answer: Result<Answer, Refused>,
    ) -> Result<(), ReceiveError> {
        match answer {
            Ok(Answer::Want(mut wanted)) => {
                let listed = wanted.listed;
                if self.hello.dry_run {
                    self.session.report().would_store(entry.size.unwrap_or(0));
                    // It is not sent.
                    wanted.reservation = None;
                } else if self.offered.len() >= MAX_OFFERED {
                    return Err(Violation::TooManyOffers.into());
                } else {
                    self.offered.insert(index, wanted);
                }
                self.session.reply(Reply::Want { index, listed });
            }
            Ok(Answer::Have(kept)) => {
                self.session.pass(entry.data);
                self.session.report().kept(kept);
                self.session.reply(Reply::Have { index, kept });
            }
            Err(refused) => {
                let path = self.cursor.path_of(entry.name);
                self.session.reject(index, &path, refused);
            }
        }
        Ok(())
    }

    /// Reports what the sender does not have, one full report at most.
    fn tell_extras(&mut self) -> Result<(), ReceiveError> {
        let unexpected = Violation::Unexpected(Kind::Extras);
        if !self.is_between() {
            return Err(unexpected.into());
        }
        self.session.wait_for_files();
        if let Some(mirror) = self.cursor.mirror.take() {
            self.extras = Some(mirror.extras().map_err(ReceiveError::Storage)?);
        }
        let extras = self.extras.as_mut().ok_or(unexpected)?;
        // Of a source that could not be read, or stored, as a whole nobody knows what it lacks.
        let (told, more) = if self.session.report().failed > 0 {
            (Vec::new(), false)
        } else {
            let told = extras.tell(&self.store.root);
            told.map_err(ReceiveError::Storage)?
        };
        for (number, extra) in told {
            self.session.wait_for_room();
            self.session.reply(Reply::Extra {
                number,
                is_dir: extra.is_dir,
                path: extra.path.into_os_string().into_vec(),
            });
        }
        self.session.wait_for_room();
        self.session.reply(Reply::ExtrasEnd { more });
        Ok(())
    }

    /// Removes one of those that were told last.
    fn remove(&mut self, number: u64) -> Result<(), ReceiveError> {
        let extra = self
            .extras
            .as_mut()
            .filter(|_| !self.hello.dry_run)
            .and_then(|extras| extras.take(number))
            .ok_or(Violation::Unexpected(Kind::Remove))?;
        self.session.wait_for_room();
        let removed = self.cursor.remove(&extra);
        let message = match removed {
            Ok(()) => {
                self.session.report().removed += 1;
                String::new()
            }
            Err(refused) => {
                let why = format!("cannot be removed: {}", refused.message);
                self.session.report().failure(&extra.path, &why);
                refused.message
            }
        };
        self.session.reply(Reply::Removed { number, message });
        Ok(())
    }

    /// True when no directory and no file is open.
    fn is_between(&self) -> bool {
        self.refused_depth == 0 && self.cursor.is_at_root() && self.offered.is_empty()
    }

    fn begin(&mut self, index: u64) -> Result<Current, ReceiveError> {
        let wanted = self
            .offered
            .remove(&index)
            .ok_or(Violation::Unexpected(Kind::Content))?;
        let path = wanted.path.clone();
        self.session.set_current(&path);
        // Its answer, and those to its queries.
        self.session.wait_for_room();
        match Content::begin(index, wanted, self.store) {
            Ok(content) => Ok(Current::File(Box::new(content))),
            Err(refused) => {
                self.session.reject(index, &path, refused);
                Ok(Current::Refused)
            }
        }
    }

    fn link(&mut self, entry: &Entry<'_>, target: &[u8]) {
        let index = self.index();
        self.see(entry);
        let made = if self.refused_depth > 0 {
            Err(parent_refused())
        } else {
            self.cursor.link(entry, target)
        };
        let path = self.cursor.path_of(entry.name);
        match made {
            Ok(true) => {
                let (hash, name) = (*blake3::hash(target).as_bytes(), Vec::new());
                self.session.report().link(&path, target, &hash);
                let size = target.len() as u64;
                self.session.reply(Reply::Confirm {
                    index,
                    size,
                    hash,
                    name,
                });
            }
            Ok(false) => {
                let kept = Kept::Unchanged;
                self.session.report().kept(kept);
                self.session.reply(Reply::Have { index, kept });
            }
            Err(refused) => self.session.reject(index, &path, refused),
        }
    }

    fn data(&mut self, head: Head, mut current: Current) -> Result<Current, ReceiveError> {
        if matches!(current, Current::Nothing) || head.len == 0 {
            return Err(Violation::Unexpected(Kind::Data).into());
        }
        self.carried = self.carried.saturating_add(head.len as u64);
        self.session.report().carried = self.carried;
        self.admission
            .check(self.carried)
            .map_err(ReceiveError::Declined)?;
        let mut left = head.len;
        while left > 0 {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            let amount = chunk.len().min(left);
            self.session.pass(amount as u64);
            let failed = match &mut current {
                Current::File(content) => content.data(&chunk[..amount]).err(),
                _ => None,
            };
            self.input.consume(amount);
            left -= amount;
            if let (Some(refused), Current::File(content)) = (failed, &current) {
                self.session
                    .reject(content.index, &content.wanted.path, refused);
                current = Current::Refused;
            }
        }
        Ok(current)
    }

    fn end(&mut self, mut content: Content, expected: Hash) {
        match content.end(expected) {
            Err(refused) => {
                self.session
                    .reject(content.index, &content.wanted.path, refused);
            }
            Ok((Complete::AsBefore, size)) => {
                self.cursor.changed = true;
                let path = &content.wanted.path;
                self.session
                    .confirm(content.index, path, size, &expected, None);
            }
            Ok((Complete::Stored(staged), size)) => {
                self.session.begin();
                let name = content.name().to_vec();
                let Wanted {
                    path,
                    mode,
                    modified,
                    existing,
                    reservation,
                    ..
                } = *content.wanted;
                self.committer.submit(Job {
                    session: Arc::clone(self.session),
                    staged,
                    index: content.index,
                    path,
                    name,
                    mode,
                    modified,
                    size,
                    hash: expected,
                    existing,
                    reservation,
                });
            }
        }
    }

    fn done(self) -> Result<(), ReceiveError> {
        if !self.is_between() {
            return Err(Violation::Unexpected(Kind::Done).into());
        }
        self.session.wait_for_files();
        let session = self.session;
        let stored_any = session.report().files > 0;
        self.cursor
            .finish(stored_any, |index, path, error| {
                let refused =
                    Refused::new(Refusal::Storage, format!("{}: {error}", path.display()));
                // As many as there are directories: these wait for their answers to be taken like
                // all others.
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

fn parent_refused() -> Refused {
    Refused::new(Refusal::Parent, "its directory was refused")
}
