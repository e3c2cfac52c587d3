//! Requests between contents of files: directories, offers of files, links.

use std::os::unix::ffi::OsStrExt;

use super::{Current, Receiver};
use crate::transfer::protocol::{
    Entry, Hash, Kept, MAX_OFFERED, Refusal, Reply, Request, Violation,
};
use crate::transfer::receiver::offer::Answer;
use crate::transfer::receiver::receive_error::ReceiveError;
use crate::transfer::receiver::refused::Refused;

impl Receiver<'_> {
    /// Handles a request between contents of files.
    pub(super) fn entry(&mut self, request: Request<'_>) -> Result<Current, ReceiveError> {
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

    /// The next entry's index, once there is room for its answer.
    fn index(&mut self) -> u64 {
        self.session.wait_for_room();
        let index = self.next;
        self.next += 1;
        index
    }

    /// One more file is offered.
    fn count_file(&mut self) -> Result<(), ReceiveError> {
        self.files += 1;
        self.admission
            .check_files(self.files, &self.hello)
            .map_err(ReceiveError::Declined)
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

    /// Notes for `--delete` that the sender has this entry.
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
        self.count_file()?;
        let index = self.index();
        self.see(entry);
        let answer = if self.refused_depth > 0 {
            Err(parent_refused())
        } else {
            self.cursor.offer(entry, hash)
        };
        if has_names && let Ok(answer) = &answer {
            let (path, is_here) = match answer {
                Answer::Have(kept, path) => (path, *kept == Kept::Unchanged),
                Answer::Want(wanted) => (&wanted.path, false),
            };
            self.session.first_names().expect(index, path, is_here);
        }
        self.answer(index, entry, answer)
    }

    /// Handles a hard link to an earlier file.
    fn same(&mut self, first: u64, entry: &Entry<'_>) -> Result<(), ReceiveError> {
        self.count_file()?;
        let index = self.index();
        self.see(entry);
        let answer = if self.refused_depth > 0 {
            Err(parent_refused())
        } else {
            let first = self.session.first_names().path(first);
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
            Ok(Answer::Have(kept, path)) => {
                self.session.pass_whole(entry.data);
                self.session.kept(&path, kept);
                self.session.reply(Reply::Have { index, kept });
            }
            Err(refused) => {
                let path = self.cursor.path_of(entry.name);
                self.session.reject(index, &path, refused);
            }
        }
        Ok(())
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
                self.session.link(&path, target, &hash);
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
                self.session.kept(&path, kept);
                self.session.reply(Reply::Have { index, kept });
            }
            Err(refused) => self.session.reject(index, &path, refused),
        }
    }
}

fn parent_refused() -> Refused {
    Refused::new(Refusal::Parent, "its directory was refused")
}
