//! What frames are made of: kinds, bounds, and the values in them.

use std::fmt;

/// First bytes of a transfer, by which other protocols are recognised at once.
pub(crate) const MAGIC: [u8; 8] = *b"tackfile";
/// The version spoken here. Version 3 asks before it sends: files are offered, and those that are
/// wanted are sent, whole or by groups.
pub(crate) const VERSION: u16 = 4;
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
/// Most bytes of holes in one file. They cost nothing on the wire and on the disk, but both sides
/// hash their zeros.
pub(crate) const MAX_HOLES: u64 = 4 << 40;
/// Bytes of an entry frame before the name: mode, mtime, size, data.
pub(super) const ENTRY_FIXED: usize = 4 + 8 + 4 + 8 + 8;
/// A size not known beforehand (standard input).
pub(super) const SIZE_UNKNOWN: u64 = u64::MAX;

/// Most groups that one query asks for.
pub(crate) const MAX_ASKED: u16 = 128;
/// Most files that are offered and not yet answered by content, or by a refusal.
pub(crate) const MAX_OFFERED: usize = 1024;

/// Maximum number of entries in one report of what the sender does not have.
pub(crate) const MAX_EXTRAS: u64 = 64;

/// A BLAKE3 hash.
pub(crate) type Hash = [u8; 32];
/// A BLAKE3 chaining value, of a group of a file.
pub(crate) type Value = [u8; 32];

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
    Content = 0x0c,
    Query = 0x0d,
    Seek = 0x0e,
    Same = 0x0f,
    Extras = 0x10,
    Remove = 0x11,
    LeftOut = 0x12,
    Welcome = 0x81,
    Confirm = 0x82,
    Reject = 0x83,
    Finished = 0x84,
    Fatal = 0x85,
    Queued = 0x86,
    Want = 0x87,
    Have = 0x88,
    Groups = 0x89,
    Extra = 0x8a,
    ExtrasEnd = 0x8b,
    Removed = 0x8c,
}

impl Kind {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
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
            0x0c => Self::Content,
            0x0d => Self::Query,
            0x0e => Self::Seek,
            0x0f => Self::Same,
            0x10 => Self::Extras,
            0x11 => Self::Remove,
            0x12 => Self::LeftOut,
            0x81 => Self::Welcome,
            0x82 => Self::Confirm,
            0x83 => Self::Reject,
            0x84 => Self::Finished,
            0x85 => Self::Fatal,
            0x86 => Self::Queued,
            0x87 => Self::Want,
            0x88 => Self::Have,
            0x89 => Self::Groups,
            0x8a => Self::Extra,
            0x8b => Self::ExtrasEnd,
            0x8c => Self::Removed,
            _ => return None,
        })
    }
}

/// A violation of the protocol by the peer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Violation {
    #[error("unknown frame kind 0x{0:02x}")]
    UnknownKind(u8),
    #[error("the other side encrypts, and this side sends clear text")]
    Encrypted,
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
    #[error("more than {MAX_OFFERED} files are offered and not sent")]
    TooManyOffers,
    #[error("unexpected group {0}")]
    Group(u64),
}

/// What a kind violates that the protocol does not have.
fn unknown(kind: u8) -> Violation {
    match kind {
        // An alert or a handshake of TLS (RFC 8446 §5.1). This file needs no library, so that it is
        // fuzzed alone.
        0x15 | 0x16 => Violation::Encrypted,
        _ => Violation::UnknownKind(kind),
    }
}

/// A checked frame head: the length is within the bounds of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) len: usize,
}

impl Head {
    pub(crate) fn parse(bytes: [u8; HEAD]) -> Result<Self, Violation> {
        let kind = Kind::from_byte(bytes[0]).ok_or_else(|| unknown(bytes[0]))?;
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
    /// Bytes of the file outside holes: its size on a disk.
    pub(crate) data: u64,
}

/// Which names are legal on a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum NameRules {
    /// Unix: every byte but `/` and NUL.
    #[default]
    Unix = 0,
    /// Windows: no `\`, no drive, no stream behind `:`, and none of the characters and devices that
    /// it reserves.
    Windows = 1,
}

impl NameRules {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Unix),
            1 => Some(Self::Windows),
            _ => None,
        }
    }
}

/// The sender's policy for existing names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum Taken {
    /// The receiver's own policy.
    #[default]
    AsReceiver = 0,
    /// Refuse the entry.
    Refuse = 1,
    /// Leave the existing entry; not a failure.
    Skip = 2,
    /// Store the new one under another name.
    Rename = 3,
    /// Replace an older entry.
    Update = 4,
    /// Replace an entry that differs.
    Overwrite = 5,
}

impl Taken {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::AsReceiver,
            1 => Self::Refuse,
            2 => Self::Skip,
            3 => Self::Rename,
            4 => Self::Update,
            5 => Self::Overwrite,
            _ => return None,
        })
    }
}

/// A modification time: seconds since 1970 (negative before) and nanoseconds below a second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Modified {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// Why an entry was not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Refusal {
    /// An entry of that name exists.
    Exists = 1,
    /// The name could leave the receiving directory, or does.
    Name = 2,
    /// The receiver's disk is full.
    NoSpace = 3,
    /// The bytes that arrived do not hash to what the sender says.
    Corrupt = 4,
    /// The parent directory was refused.
    Parent = 5,
    /// Any other error of the receiver's file system.
    Storage = 6,
    /// The receiver serves its maximum of transfers.
    Busy = 7,
    /// The peer broke the protocol.
    Protocol = 8,
    /// The receiver is shutting down.
    Stopping = 9,
    /// The receiver does not accept this transfer.
    Declined = 10,
}

impl Refusal {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
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
            10 => Self::Declined,
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
            Self::Declined => "declined",
        })
    }
}
