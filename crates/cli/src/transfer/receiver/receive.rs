//! The receiving thread: frames in, files out, an answer for each.

mod contents;
mod entries;
mod extras;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use super::admission::Admission;
use super::committer::Committer;
use super::content::Content;
use super::cursor::Cursor;
use super::mirror::{Extras, Mirror};
use super::offer::Wanted;
use super::receive_error::ReceiveError;
use super::refused::Refused;
use super::remembered::Transfer;
use super::session::Session;
use super::store::Store;
use crate::transfer::buffers::Incoming;
use crate::transfer::names::RULES;
use crate::transfer::protocol::{
    HEAD, Head, Hello, Kind, MAX_CONTROL, Refusal, Reply, Request, Violation,
};

/// The destination of data frames.
enum Current {
    Nothing,
    File(Box<Content>),
    /// The file was refused; its content passes unseen.
    Refused,
}

/// Receives one transfer from `input` until its end.
pub(crate) fn receive(
    input: &mut Incoming,
    session: &Arc<Session>,
    store: &Store,
    admission: &Admission,
    committer: &Committer,
) -> Result<(), ReceiveError> {
    let result = greet(input, session).and_then(|hello| {
        let transfer = admission.transfers.begin(session.holder.owner(), &hello);
        let returns = Duration::from_secs(hello.returns.into());
        let result = admission
            .admit(session, &transfer, &hello, store)
            .map_err(|error| match error {
                ReceiveError::Stream(_) => why_abandoned(input),
                other => other,
            })
            .and_then(|()| {
                session.reply(Reply::Welcome(RULES));
                let existing = store.existing.for_sender(hello.taken);
                let holder = Arc::clone(&session.holder);
                let mut cursor = Cursor::new(store, holder, existing, hello.dry_run);
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
                    transfer: &transfer,
                    hello,
                    cursor,
                    offered: BTreeMap::new(),
                    extras: None,
                    next: 0,
                    files: 0,
                    refused_depth: 0,
                    carried: 0,
                }
                .run()
            });
        if matches!(result, Err(ReceiveError::Stream(_))) {
            transfer.may_return(returns);
        }
        result
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

fn head(input: &mut Incoming) -> Result<Head, ReceiveError> {
    let mut head = [0; HEAD];
    input.read_exact(&mut head)?;
    Ok(Head::parse(head)?)
}

/// Why nobody waits for the transfer any more: what ended the input.
fn why_abandoned(input: &mut Incoming) -> ReceiveError {
    let ended = io::copy(input, &mut io::sink());
    let error = ended.err().unwrap_or(io::ErrorKind::UnexpectedEof.into());
    error.into()
}

fn greet(input: &mut Incoming, session: &Session) -> Result<Hello, ReceiveError> {
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
    Ok(hello)
}

struct Receiver<'a> {
    input: &'a mut Incoming,
    session: &'a Arc<Session>,
    store: &'a Store,
    committer: &'a Committer,
    admission: &'a Admission,
    transfer: &'a Transfer<'a>,
    hello: Hello,
    cursor: Cursor<'a>,
    /// Files that the sender was told to send, by their indices.
    offered: BTreeMap<u64, Box<Wanted>>,
    /// Entries that the sender does not have; set once it asked for them.
    extras: Option<Extras>,
    /// Index of the next entry.
    next: u64,
    /// Files that were offered.
    files: u64,
    /// How many directories deep we are below (and including) one that was refused.
    refused_depth: usize,
    /// Bytes of files that came over this connection.
    carried: u64,
}

impl Receiver<'_> {
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
                    // The sender waits for an answer.
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

    /// True when no directory and no file is open.
    fn is_between(&self) -> bool {
        self.refused_depth == 0 && self.cursor.is_at_root() && self.offered.is_empty()
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
