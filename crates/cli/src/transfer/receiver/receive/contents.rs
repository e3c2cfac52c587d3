//! Requests about the content of one file, and its data.

use std::io::{self, BufRead};
use std::sync::Arc;

use super::{Current, Receiver};
use crate::transfer::arrived::Arrived;
use crate::transfer::protocol::{Hash, Head, Kind, Reply, Request, Violation};
use crate::transfer::receiver::committer::Job;
use crate::transfer::receiver::content::{Complete, Content};
use crate::transfer::receiver::offer::Wanted;
use crate::transfer::receiver::receive_error::ReceiveError;

impl Receiver<'_> {
    pub(super) fn begin(&mut self, index: u64) -> Result<Current, ReceiveError> {
        let wanted = self
            .offered
            .remove(&index)
            .ok_or(Violation::Unexpected(Kind::Content))?;
        let path = wanted.path.clone();
        self.session.set_current(&path, wanted.size);
        self.transfer
            .begin_file(&path, wanted.size, wanted.part.is_some());
        // Its answer, and those to its queries.
        self.session.wait_for_room();
        match Content::begin(index, wanted, self.store) {
            Ok(content) => Ok(Current::File(Box::new(content))),
            Err(refused) => {
                self.transfer.end_file();
                self.session.reject(index, &path, refused);
                Ok(Current::Refused)
            }
        }
    }

    /// Handles a request within the content of a file.
    pub(super) fn content(
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
                self.transfer.end_file();
                self.end(*content, hash);
                return Ok(Current::Nothing);
            }
            Request::Abort(message) => {
                self.transfer.end_file();
                let why = format!("the sender gave up: {message}");
                self.session.report().failure(&content.wanted.path, &why);
                return Ok(Current::Nothing);
            }
            other => return Err(Violation::Unexpected(other.kind()).into()),
        };
        self.session.pass(content.position() - before);
        self.transfer.reach(content.position());
        match refused {
            Some(refused) => {
                self.transfer.end_file();
                self.session
                    .reject(content.index, &content.wanted.path, refused);
                Ok(Current::Refused)
            }
            None => Ok(Current::File(content)),
        }
    }

    pub(super) fn data(
        &mut self,
        head: Head,
        mut current: Current,
    ) -> Result<Current, ReceiveError> {
        if matches!(current, Current::Nothing) || head.len == 0 {
            return Err(Violation::Unexpected(Kind::Data).into());
        }
        self.carried = self.carried.saturating_add(head.len as u64);
        self.session.report().carried = self.carried;
        let arrived = self.transfer.arrived();
        self.admission
            .check(arrived.saturating_add(head.len as u64), &self.hello)
            .map_err(ReceiveError::Declined)?;
        let mut left = head.len;
        while left > 0 {
            let Some(piece) = self.input.piece(left)? else {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            };
            let amount = piece.bytes().len();
            self.session.pass(amount as u64);
            self.transfer.arrive(amount as u64);
            let failed = match &mut current {
                Current::File(content) => content.data(piece).err(),
                _ => None,
            };
            self.input.consume(amount);
            left -= amount;
            if let Current::File(content) = &current {
                self.transfer.reach(content.position());
            }
            if let (Some(refused), Current::File(content)) = (failed, &current) {
                self.transfer.end_file();
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
}
