//! What the sender says.

use super::fields::{Fields, clip, push, push_entry};
use super::frame::{
    Entry, HEAD, Hash, Kind, MAGIC, MAX_ASKED, MAX_DATA, MAX_HOLE, MAX_NAME, MAX_TARGET, NameRules,
    Taken, VERSION, Violation,
};

/// The sender's greeting: what the transfer is, and what it wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hello {
    pub(crate) names: NameRules,
    /// The same on every connection of one command: by it the receiver knows that a lost one goes
    /// on.
    pub(crate) session: [u8; 16],
    /// For how long the sender tries to return when the connection is lost, seconds.
    pub(crate) returns: u32,
    /// The policy for existing names.
    pub(crate) taken: Taken,
    /// Dry run: change nothing, and answer what would change.
    pub(crate) dry_run: bool,
    /// The sender wants to remove what it does not have from the folders that it sends.
    pub(crate) delete: bool,
    /// Files below what is sent; all ones where that is not known.
    pub(crate) files: u64,
    /// Bytes of them outside holes; all ones where that is not known.
    pub(crate) bytes: u64,
}

const DRY_RUN: u8 = 1;
const DELETE: u8 = 2;

/// Bits of the byte before an offered file.
const HAS_HASH: u8 = 1;
const HAS_NAMES: u8 = 2;

/// A frame from sender to receiver, but for data, whose payload is streamed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Request<'a> {
    KeepAlive,
    Hello(Hello),
    Enter(Entry<'a>),
    Leave,
    /// Offers a file.
    File {
        entry: Entry<'a>,
        /// BLAKE3 hash of the content, if contents are compared.
        hash: Option<Hash>,
        /// The file has more hard links, which may follow.
        has_names: bool,
    },
    /// A further name of the file that was offered as entry `first` (a hard link).
    Same {
        first: u64,
        entry: Entry<'a>,
    },
    /// Asks for entries of the folders sent that the sender does not have.
    Extras,
    /// The entry of this number, told in the answer to the last [`Request::Extras`], is to be
    /// removed.
    Remove(u64),
    /// The content of an offered file that the receiver wants begins.
    Content(u64),
    /// Of the file whose content is being sent: asks for the values of `count` groups.
    Query {
        first: u64,
        count: u16,
    },
    /// What follows belongs to this group of the file, and those after it.
    Seek(u64),
    End(Hash),
    Abort(&'a str),
    Done,
    /// The sender cannot read something that it was asked to send: its path there, for people, and
    /// why.
    Missing {
        path: &'a [u8],
        message: &'a str,
    },
    /// So many entries were left out on purpose, and why, for people.
    LeftOut {
        count: u64,
        why: &'a str,
    },
    /// A symbolic link and what it points to.
    Link(Entry<'a>, &'a [u8]),
    /// This many zeros of the file, which take no room on a disk.
    Hole(u64),
}

impl<'a> Request<'a> {
    /// Reads the payload of a frame that is not data.
    pub(crate) fn decode(kind: Kind, payload: &'a [u8]) -> Result<Self, Violation> {
        let mut fields = Fields(payload);
        let decoded = match kind {
            Kind::KeepAlive => fields.end(Self::KeepAlive),
            Kind::Hello => return hello(fields).map(Self::Hello),
            Kind::Enter => fields.entry().map(Self::Enter),
            Kind::Leave => fields.end(Self::Leave),
            Kind::File => file(fields),
            Kind::Content => one_number(fields, Self::Content),
            Kind::Query => query(fields),
            Kind::Seek => one_number(fields, Self::Seek),
            Kind::End => fields.take().and_then(|hash| fields.end(Self::End(hash))),
            Kind::Abort => fields.message().map(Self::Abort),
            Kind::Done => fields.end(Self::Done),
            Kind::Missing => missing(fields),
            Kind::Link => link(fields),
            Kind::LeftOut => left_out(fields),
            Kind::Hole => hole(fields),
            Kind::Same => same(fields),
            Kind::Extras => fields.end(Self::Extras),
            Kind::Remove => one_number(fields, Self::Remove),
            _ => return Err(Violation::Unexpected(kind)),
        };
        decoded.ok_or(Violation::Malformed(kind))
    }

    /// The kind of the request's frame.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::KeepAlive => Kind::KeepAlive,
            Self::Hello(_) => Kind::Hello,
            Self::Enter(_) => Kind::Enter,
            Self::Leave => Kind::Leave,
            Self::File { .. } => Kind::File,
            Self::Same { .. } => Kind::Same,
            Self::Extras => Kind::Extras,
            Self::Remove(_) => Kind::Remove,
            Self::Content(_) => Kind::Content,
            Self::Query { .. } => Kind::Query,
            Self::Seek(_) => Kind::Seek,
            Self::End(_) => Kind::End,
            Self::Abort(_) => Kind::Abort,
            Self::Done => Kind::Done,
            Self::Missing { .. } => Kind::Missing,
            Self::LeftOut { .. } => Kind::LeftOut,
            Self::Link(..) => Kind::Link,
            Self::Hole(_) => Kind::Hole,
        }
    }

    /// Appends the frame to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::KeepAlive => push(out, Kind::KeepAlive, &[]),
            Self::Hello(hello) => push_hello(out, hello),
            Self::Enter(entry) => push_entry(out, Kind::Enter, &[], entry),
            Self::Leave => push(out, Kind::Leave, &[]),
            Self::File {
                entry,
                hash,
                has_names,
            } => {
                let mut flags = if *has_names { HAS_NAMES } else { 0 };
                flags |= if hash.is_some() { HAS_HASH } else { 0 };
                let hash = hash.as_ref().map_or(&[][..], |hash| hash);
                push_entry(out, Kind::File, &[&[flags], hash], entry);
            }
            Self::Same { first, entry } => {
                push_entry(out, Kind::Same, &[&first.to_be_bytes()], entry);
            }
            Self::Extras => push(out, Kind::Extras, &[]),
            Self::Remove(number) => push(out, Kind::Remove, &[&number.to_be_bytes()]),
            Self::Content(index) => push(out, Kind::Content, &[&index.to_be_bytes()]),
            Self::Query { first, count } => push(
                out,
                Kind::Query,
                &[&first.to_be_bytes(), &count.to_be_bytes()],
            ),
            Self::Seek(group) => push(out, Kind::Seek, &[&group.to_be_bytes()]),
            Self::End(hash) => push(out, Kind::End, &[hash]),
            Self::Abort(message) => push(out, Kind::Abort, &[clip(message).as_bytes()]),
            Self::Done => push(out, Kind::Done, &[]),
            Self::Missing { path, message } => {
                let path = &path[..path.len().min(MAX_NAME)];
                let len = (path.len() as u16).to_be_bytes();
                push(out, Kind::Missing, &[&len, path, clip(message).as_bytes()]);
            }
            Self::LeftOut { count, why } => push(
                out,
                Kind::LeftOut,
                &[&count.to_be_bytes(), clip(why).as_bytes()],
            ),
            Self::Link(entry, target) => {
                debug_assert!(target.len() <= MAX_TARGET);
                let len = (target.len() as u16).to_be_bytes();
                push_entry(out, Kind::Link, &[&len, target], entry);
            }
            Self::Hole(len) => push(out, Kind::Hole, &[&len.to_be_bytes()]),
        }
    }
}

/// The head of a data frame of `len` bytes.
pub(crate) fn data_head(len: usize) -> [u8; HEAD] {
    debug_assert!(0 < len && len <= MAX_DATA);
    let len = (len as u32).to_be_bytes();
    [Kind::Data as u8, len[0], len[1], len[2], len[3]]
}

fn push_hello(out: &mut Vec<u8>, hello: &Hello) {
    let mut flags = if hello.dry_run { DRY_RUN } else { 0 };
    flags |= if hello.delete { DELETE } else { 0 };
    push(
        out,
        Kind::Hello,
        &[
            &MAGIC,
            &VERSION.to_be_bytes(),
            &[hello.names as u8],
            &hello.session,
            &hello.returns.to_be_bytes(),
            &[hello.taken as u8, flags],
            &hello.files.to_be_bytes(),
            &hello.bytes.to_be_bytes(),
        ],
    );
}

/// Checks the greeting. A later version may append fields, so bytes after ours are let pass.
fn hello(mut fields: Fields<'_>) -> Result<Hello, Violation> {
    greeting(&mut fields)?;
    let mut read = || {
        let names = NameRules::from_byte(fields.u8()?)?;
        let (session, returns) = (fields.take()?, fields.u32()?);
        let (taken, flags) = (Taken::from_byte(fields.u8()?)?, fields.u8()?);
        Some(Hello {
            names,
            session,
            returns,
            taken,
            dry_run: flags & DRY_RUN != 0,
            delete: flags & DELETE != 0,
            files: fields.u64()?,
            bytes: fields.u64()?,
        })
    };
    read().ok_or(Violation::Malformed(Kind::Hello))
}

/// Checks the protocol's name and version, which both greetings begin with.
pub(super) fn greeting(fields: &mut Fields<'_>) -> Result<(), Violation> {
    if fields.take() != Some(MAGIC) {
        return Err(Violation::Magic);
    }
    match fields.u16() {
        Some(VERSION) => Ok(()),
        Some(other) => Err(Violation::Version(other)),
        None => Err(Violation::Magic),
    }
}

fn one_number<'a>(
    mut fields: Fields<'a>,
    request: impl FnOnce(u64) -> Request<'a>,
) -> Option<Request<'a>> {
    let number = fields.u64()?;
    fields.end(request(number))
}

fn file(mut fields: Fields<'_>) -> Option<Request<'_>> {
    let flags = fields.u8()?;
    if flags & !(HAS_HASH | HAS_NAMES) != 0 {
        return None;
    }
    let hash = match flags & HAS_HASH {
        0 => None,
        _ => Some(fields.take()?),
    };
    Some(Request::File {
        entry: fields.entry()?,
        hash,
        has_names: flags & HAS_NAMES != 0,
    })
}

fn same(mut fields: Fields<'_>) -> Option<Request<'_>> {
    let first = fields.u64()?;
    let entry = fields.entry()?;
    Some(Request::Same { first, entry })
}

fn query(mut fields: Fields<'_>) -> Option<Request<'_>> {
    let (first, count) = (fields.u64()?, fields.u16()?);
    let count = Some(count).filter(|count| (1..=MAX_ASKED).contains(count))?;
    fields.end(Request::Query { first, count })
}

fn link(mut fields: Fields<'_>) -> Option<Request<'_>> {
    let target = fields.prefixed(MAX_TARGET)?;
    Some(Request::Link(fields.entry()?, target))
}

fn missing(mut fields: Fields<'_>) -> Option<Request<'_>> {
    let path = fields.prefixed(MAX_NAME)?;
    let message = fields.message()?;
    Some(Request::Missing { path, message })
}

fn left_out(mut fields: Fields<'_>) -> Option<Request<'_>> {
    let count = fields.u64()?;
    let why = fields.message()?;
    Some(Request::LeftOut { count, why })
}

fn hole(mut fields: Fields<'_>) -> Option<Request<'_>> {
    let len = fields.u64().filter(|len| (1..=MAX_HOLE).contains(len))?;
    fields.end(Request::Hole(len))
}
