//! Frames of the file-transfer protocol: bytes to values and back, every length bounded.
//!
//! The text for implementers of other programs is `docs/transfer-protocol.md`. A frame is one byte
//! of kind, four bytes of payload length (big-endian, as every number here) and the payload.

use std::fmt;

/// First bytes of a transfer, by which other protocols are recognised at once.
pub(crate) const MAGIC: [u8; 8] = *b"tackfile";
/// The version spoken here. Version 2 added what the sender cannot send, symbolic links, holes, waiting for one's turn, and
/// the rules for names.
pub(crate) const VERSION: u16 = 2;
/// Bytes of a frame's head.
pub(crate) const HEAD: usize = 5;
/// Largest payload of a data frame.
pub(crate) const MAX_DATA: usize = 256 << 10;
/// Largest payload of any other frame.
pub(crate) const MAX_CONTROL: usize = 8 << 10;
/// Longest name of one entry, bytes.
pub(crate) const MAX_NAME: usize = 4096;
/// Longest message for people, bytes.
pub(crate) const MAX_MESSAGE: usize = 1024;
/// Most directories inside one another.
pub(crate) const MAX_DEPTH: usize = 1024;
/// Longest target of a symbolic link, bytes.
pub(crate) const MAX_TARGET: usize = 2048;
/// Longest hole that one frame describes, bytes: both sides hash its zeros, and look up in between.
pub(crate) const MAX_HOLE: u64 = 64 << 20;
/// Most bytes of holes in one file. They cost nothing on the wire and on the disk, but both sides hash their zeros.
pub(crate) const MAX_HOLES: u64 = 4 << 40;
/// Bytes of an entry frame before the name: mode, mtime, size, data.
const ENTRY_FIXED: usize = 4 + 8 + 4 + 8 + 8;
/// A size not known beforehand (standard input).
const SIZE_UNKNOWN: u64 = u64::MAX;

/// A BLAKE3 hash.
pub(crate) type Hash = [u8; 32];

/// Kinds of frames. The sender's are below 0x80, the receiver's above; keep-alives go both ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    KeepAlive = 0x00,
    Hello = 0x01,
    Enter = 0x02,
    Leave = 0x03,
    File = 0x04,
    Data = 0x05,
    End = 0x06,
    Abort = 0x07,
    Done = 0x08,
    Missing = 0x09,
    Link = 0x0a,
    Hole = 0x0b,
    Welcome = 0x81,
    Confirm = 0x82,
    Reject = 0x83,
    Finished = 0x84,
    Fatal = 0x85,
    Queued = 0x86,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0x00 => Self::KeepAlive,
            0x01 => Self::Hello,
            0x02 => Self::Enter,
            0x03 => Self::Leave,
            0x04 => Self::File,
            0x05 => Self::Data,
            0x06 => Self::End,
            0x07 => Self::Abort,
            0x08 => Self::Done,
            0x09 => Self::Missing,
            0x0a => Self::Link,
            0x0b => Self::Hole,
            0x81 => Self::Welcome,
            0x82 => Self::Confirm,
            0x83 => Self::Reject,
            0x84 => Self::Finished,
            0x85 => Self::Fatal,
            0x86 => Self::Queued,
            _ => return None,
        })
    }
}

/// What a peer sent that no peer following the protocol would.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Violation {
    #[error("unknown frame kind 0x{0:02x}")]
    UnknownKind(u8),
    #[error("a frame of kind {kind:?} announces {len} bytes, expected at most {max}")]
    TooLong { kind: Kind, len: u32, max: usize },
    #[error("a frame of kind {0:?} has a malformed payload")]
    Malformed(Kind),
    #[error("the peer does not speak the tack file protocol")]
    Magic,
    #[error("expected version {VERSION} of the file protocol, got {0}")]
    Version(u16),
    #[error("unexpected frame of kind {0:?}")]
    Unexpected(Kind),
    #[error("directories are nested deeper than {MAX_DEPTH}")]
    TooDeep,
}

/// A checked frame head: the length is within the bounds of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) len: usize,
}

impl Head {
    pub(crate) fn parse(bytes: [u8; HEAD]) -> Result<Self, Violation> {
        let kind = Kind::from_byte(bytes[0]).ok_or(Violation::UnknownKind(bytes[0]))?;
        let len = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        let max = if kind == Kind::Data {
            MAX_DATA
        } else {
            MAX_CONTROL
        };
        if len as usize > max {
            return Err(Violation::TooLong { kind, len, max });
        }
        Ok(Self {
            kind,
            len: len as usize,
        })
    }
}

/// A directory or file as its sender describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry<'a> {
    /// One path component, as raw bytes. Not checked here: see `names`.
    pub(crate) name: &'a [u8],
    /// Permission bits; only 0o777 is looked at.
    pub(crate) mode: u32,
    pub(crate) modified: Modified,
    /// Bytes of a file if known beforehand; `None` for directories and standard input.
    pub(crate) size: Option<u64>,
    /// Bytes of them outside holes: what the file takes on a disk.
    pub(crate) data: u64,
}

/// Which names are legal on a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum NameRules {
    /// Unix: every byte but `/` and NUL.
    #[default]
    Unix = 0,
    /// Windows: no `\`, no drive, no stream behind `:`, and none of the characters and devices that it reserves.
    Windows = 1,
}

impl NameRules {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Unix),
            1 => Some(Self::Windows),
            _ => None,
        }
    }
}

/// A modification time: seconds since 1970 (negative before) and nanoseconds below a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Modified {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// A frame from sender to receiver, but for data, whose payload is streamed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Request<'a> {
    KeepAlive,
    Hello(NameRules),
    Enter(Entry<'a>),
    Leave,
    File(Entry<'a>),
    End(Hash),
    Abort(&'a str),
    Done,
    /// The sender cannot read something that it was asked to send: its path there, for people, and why.
    Missing {
        path: &'a [u8],
        message: &'a str,
    },
    /// A symbolic link and what it points to.
    Link(Entry<'a>, &'a [u8]),
    /// This many zeros of the file, which take no room on a disk.
    Hole(u64),
}

/// Why an entry was not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Refusal {
    /// Something of that name is there.
    Exists = 1,
    /// The name could leave the receiving directory, or does.
    Name = 2,
    /// No room on the receiver's disk.
    NoSpace = 3,
    /// The bytes that arrived do not hash to what the sender says.
    Corrupt = 4,
    /// The directory above was refused.
    Parent = 5,
    /// Any other error of the receiver's file system.
    Storage = 6,
    /// The receiver serves as many transfers as it may.
    Busy = 7,
    /// The peer broke the protocol.
    Protocol = 8,
    /// The receiver is being stopped.
    Stopping = 9,
}

impl Refusal {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Exists,
            2 => Self::Name,
            3 => Self::NoSpace,
            4 => Self::Corrupt,
            5 => Self::Parent,
            6 => Self::Storage,
            7 => Self::Busy,
            8 => Self::Protocol,
            9 => Self::Stopping,
            _ => return None,
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exists => "exists",
            Self::Name => "name",
            Self::NoSpace => "no_space",
            Self::Corrupt => "corrupt",
            Self::Parent => "parent",
            Self::Storage => "storage",
            Self::Busy => "busy",
            Self::Protocol => "protocol",
            Self::Stopping => "stopping",
        })
    }
}

/// A frame from receiver to sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    KeepAlive,
    Welcome(NameRules),
    /// All places are taken. This many senders are served before this one; the transfer begins with the welcome.
    Queued {
        ahead: u32,
    },
    /// Entry `index` is under its final name, with these bytes.
    Confirm {
        index: u64,
        size: u64,
        hash: Hash,
    },
    /// Entry `index` is not and will not be.
    Reject {
        index: u64,
        reason: Refusal,
        message: String,
    },
    /// Everything was answered and is on disk.
    Finished {
        files: u64,
        bytes: u64,
    },
    /// The whole transfer ends here.
    Fatal {
        reason: Refusal,
        message: String,
    },
}

/// Cursor over a payload; every read says `None` at the end.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    /// A text behind its length in two bytes.
    fn prefixed(&mut self, max: usize) -> Option<&'a [u8]> {
        let len = usize::from(u16::from_be_bytes(self.take()?));
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        (len <= max).then_some(text)
    }

    fn link(mut self) -> Option<Request<'a>> {
        let target = self.prefixed(MAX_TARGET)?;
        Some(Request::Link(self.entry()?, target))
    }

    fn missing(mut self) -> Option<Request<'a>> {
        let path = self.prefixed(MAX_NAME)?;
        let message = self.message()?;
        Some(Request::Missing { path, message })
    }

    fn hole(mut self) -> Option<Request<'a>> {
        let len = self.u64().filter(|len| (1..=MAX_HOLE).contains(len))?;
        self.end(Request::Hole(len))
    }

    fn entry(mut self) -> Option<Entry<'a>> {
        let mode = u32::from_be_bytes(self.take()?);
        let seconds = i64::from_be_bytes(self.take()?);
        let nanos = u32::from_be_bytes(self.take()?);
        let size = self.u64()?;
        let data = self.u64()?;
        if nanos >= 1_000_000_000 || self.0.len() > MAX_NAME {
            return None;
        }
        let size = (size != SIZE_UNKNOWN).then_some(size);
        Some(Entry {
            name: self.0,
            mode,
            modified: Modified { seconds, nanos },
            size,
            data,
        })
    }

    fn message(self) -> Option<&'a str> {
        std::str::from_utf8(self.0)
            .ok()
            .filter(|text| text.len() <= MAX_MESSAGE)
    }

    /// The payload must end here.
    fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
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
            Kind::File => fields.entry().map(Self::File),
            Kind::End => fields.take().and_then(|hash| fields.end(Self::End(hash))),
            Kind::Abort => fields.message().map(Self::Abort),
            Kind::Done => fields.end(Self::Done),
            Kind::Missing => fields.missing(),
            Kind::Link => fields.link(),
            Kind::Hole => fields.hole(),
            Kind::Data
            | Kind::Welcome
            | Kind::Confirm
            | Kind::Reject
            | Kind::Finished
            | Kind::Fatal
            | Kind::Queued => {
                return Err(Violation::Unexpected(kind));
            }
        };
        decoded.ok_or(Violation::Malformed(kind))
    }

    /// Appends the frame to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let frame = |out: &mut Vec<u8>, kind, parts: &[&[u8]]| push(out, kind, parts);
        match self {
            Self::KeepAlive => frame(out, Kind::KeepAlive, &[]),
            Self::Hello(names) => frame(out, Kind::Hello, &greeting(*names)),
            Self::Enter(entry) => push_entry(out, Kind::Enter, &[], entry),
            Self::Leave => frame(out, Kind::Leave, &[]),
            Self::File(entry) => push_entry(out, Kind::File, &[], entry),
            Self::End(hash) => frame(out, Kind::End, &[hash]),
            Self::Abort(message) => frame(out, Kind::Abort, &[clip(message).as_bytes()]),
            Self::Done => frame(out, Kind::Done, &[]),
            Self::Missing { path, message } => {
                let path = &path[..path.len().min(MAX_NAME)];
                let len = (path.len() as u16).to_be_bytes();
                frame(out, Kind::Missing, &[&len, path, clip(message).as_bytes()]);
            }
            Self::Link(entry, target) => {
                debug_assert!(target.len() <= MAX_TARGET);
                let len = (target.len() as u16).to_be_bytes();
                push_entry(out, Kind::Link, &[&len, target], entry);
            }
            Self::Hole(len) => frame(out, Kind::Hole, &[&len.to_be_bytes()]),
        }
    }
}

/// The head of a data frame of `len` bytes.
pub(crate) fn data_head(len: usize) -> [u8; HEAD] {
    debug_assert!(0 < len && len <= MAX_DATA);
    let len = (len as u32).to_be_bytes();
    [Kind::Data as u8, len[0], len[1], len[2], len[3]]
}

impl Reply {
    /// Reads the payload of a receiver's frame.
    pub(crate) fn decode(kind: Kind, payload: &[u8]) -> Result<Self, Violation> {
        let mut fields = Fields(payload);
        let decoded = match kind {
            Kind::KeepAlive => fields.end(Self::KeepAlive),
            Kind::Welcome => return hello(fields).map(Self::Welcome),
            Kind::Queued => (|| {
                let ahead = u32::from_be_bytes(fields.take()?);
                fields.end(Self::Queued { ahead })
            })(),
            Kind::Confirm => (|| {
                let (index, size, hash) = (fields.u64()?, fields.u64()?, fields.take()?);
                fields.end(Self::Confirm { index, size, hash })
            })(),
            Kind::Reject => (|| {
                let index = fields.u64()?;
                let reason = Refusal::from_byte(fields.take::<1>()?[0])?;
                Some(Self::Reject {
                    index,
                    reason,
                    message: fields.message()?.to_owned(),
                })
            })(),
            Kind::Finished => (|| {
                let (files, bytes) = (fields.u64()?, fields.u64()?);
                fields.end(Self::Finished { files, bytes })
            })(),
            Kind::Fatal => (|| {
                let reason = Refusal::from_byte(fields.take::<1>()?[0])?;
                Some(Self::Fatal {
                    reason,
                    message: fields.message()?.to_owned(),
                })
            })(),
            Kind::Hello
            | Kind::Enter
            | Kind::Leave
            | Kind::File
            | Kind::Data
            | Kind::End
            | Kind::Abort
            | Kind::Done
            | Kind::Missing
            | Kind::Link
            | Kind::Hole => {
                return Err(Violation::Unexpected(kind));
            }
        };
        decoded.ok_or(Violation::Malformed(kind))
    }

    /// Appends the frame to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::KeepAlive => push(out, Kind::KeepAlive, &[]),
            Self::Welcome(names) => push(out, Kind::Welcome, &greeting(*names)),
            Self::Queued { ahead } => push(out, Kind::Queued, &[&ahead.to_be_bytes()]),
            Self::Confirm { index, size, hash } => {
                push(
                    out,
                    Kind::Confirm,
                    &[&index.to_be_bytes(), &size.to_be_bytes(), hash],
                );
            }
            Self::Reject {
                index,
                reason,
                message,
            } => {
                push(
                    out,
                    Kind::Reject,
                    &[
                        &index.to_be_bytes(),
                        &[*reason as u8],
                        clip(message).as_bytes(),
                    ],
                );
            }
            Self::Finished { files, bytes } => {
                push(
                    out,
                    Kind::Finished,
                    &[&files.to_be_bytes(), &bytes.to_be_bytes()],
                );
            }
            Self::Fatal { reason, message } => {
                push(
                    out,
                    Kind::Fatal,
                    &[&[*reason as u8], clip(message).as_bytes()],
                );
            }
        }
    }
}

/// The content of a greeting: the protocol, its version, and the rules for names.
fn greeting(names: NameRules) -> [&'static [u8]; 3] {
    const VERSION_BYTES: [u8; 2] = VERSION.to_be_bytes();
    let names: &'static [u8] = match names {
        NameRules::Unix => &[NameRules::Unix as u8],
        NameRules::Windows => &[NameRules::Windows as u8],
    };
    [&MAGIC, &VERSION_BYTES, names]
}

/// Checks a greeting. A later version may append fields, so bytes after the rules for names are let pass.
fn hello(mut fields: Fields<'_>) -> Result<NameRules, Violation> {
    if fields.take() != Some(MAGIC) {
        return Err(Violation::Magic);
    }
    match fields.take().map(u16::from_be_bytes) {
        Some(VERSION) => fields
            .take::<1>()
            .and_then(|byte| NameRules::from_byte(byte[0]))
            .ok_or(Violation::Magic),
        Some(other) => Err(Violation::Version(other)),
        None => Err(Violation::Magic),
    }
}

fn push(out: &mut Vec<u8>, kind: Kind, parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    debug_assert!(len <= MAX_CONTROL);
    out.push(kind as u8);
    out.extend_from_slice(&(len as u32).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// An entry frame; `before` stands before the entry.
fn push_entry(out: &mut Vec<u8>, kind: Kind, before: &[&[u8]], entry: &Entry<'_>) {
    let (mode, modified) = (entry.mode.to_be_bytes(), entry.modified);
    let (seconds, nanos) = (modified.seconds.to_be_bytes(), modified.nanos.to_be_bytes());
    let size = entry.size.unwrap_or(SIZE_UNKNOWN).to_be_bytes();
    let data = entry.data.to_be_bytes();
    let parts: [&[u8]; 6] = [&mode, &seconds, &nanos, &size, &data, entry.name];
    push(out, kind, &[before, &parts].concat());
}

/// Cuts a message to its bound, at a character.
fn clip(message: &str) -> &str {
    &message[..message.floor_char_boundary(MAX_MESSAGE)]
}

const _: () = assert!(
    2 + MAX_TARGET + ENTRY_FIXED + MAX_NAME <= MAX_CONTROL
        && 2 + MAX_NAME + MAX_MESSAGE <= MAX_CONTROL
        && MAX_MESSAGE + 9 <= MAX_CONTROL
);

#[cfg(test)]
mod tests;
