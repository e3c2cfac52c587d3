//! What the receiver says.

use super::fields::{Fields, clip, push};
use super::frame::{
    Hash, Kind, MAGIC, MAX_ASKED, MAX_NAME, NameRules, Refusal, VERSION, Value, Violation,
};
use super::request::greeting;

/// Why a file need not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kept {
    /// An identical file exists, by size and time, or by the hash if one was sent.
    Unchanged = 1,
    /// A different entry exists, and is left alone.
    Skipped = 2,
    /// The existing file is not older.
    Newer = 3,
    /// The hard link was made.
    Linked = 4,
}

impl Kept {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Unchanged),
            2 => Some(Self::Skipped),
            3 => Some(Self::Newer),
            4 => Some(Self::Linked),
            _ => None,
        }
    }
}

/// A frame from receiver to sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    KeepAlive,
    Welcome(NameRules),
    /// All places are taken. This many senders are served before this one; the transfer begins with
    /// the welcome.
    Queued {
        ahead: u32,
    },
    /// The content of offered file `index` is to be sent. Of the first `listed` bytes something is
    /// here: the sender may ask for the values of their groups. 0: all is to be sent.
    Want {
        index: u64,
        listed: u64,
    },
    /// Offered file `index` need not be sent.
    Have {
        index: u64,
        kept: Kept,
    },
    /// Values of groups from `first` on, as many as were asked for or as there are.
    Groups {
        first: u64,
        values: Vec<Value>,
    },
    /// Entry `index` is stored, with these bytes. `name` is the one it got, where that is not its
    /// own.
    Confirm {
        index: u64,
        size: u64,
        hash: Hash,
        name: Vec<u8>,
    },
    /// Entry `index` is not stored.
    Reject {
        index: u64,
        reason: Refusal,
        message: String,
    },
    /// An entry of the folders sent that the sender does not have: its path below the receiving
    /// directory.
    Extra {
        number: u64,
        is_dir: bool,
        path: Vec<u8>,
    },
    /// The report of extras ends; with `more` the sender may ask again.
    ExtrasEnd {
        more: bool,
    },
    /// The entry of this number is removed; with a message it is not.
    Removed {
        number: u64,
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

impl Reply {
    /// Reads the payload of a receiver's frame.
    pub(crate) fn decode(kind: Kind, payload: &[u8]) -> Result<Self, Violation> {
        let mut fields = Fields(payload);
        if kind == Kind::Welcome {
            greeting(&mut fields)?;
        }
        if (kind as u8) < 0x80 && kind != Kind::KeepAlive {
            return Err(Violation::Unexpected(kind));
        }
        read(kind, fields).ok_or(Violation::Malformed(kind))
    }

    /// Appends the frame to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let number = |number: &u64| number.to_be_bytes();
        match self {
            Self::KeepAlive => push(out, Kind::KeepAlive, &[]),
            Self::Welcome(names) => push(
                out,
                Kind::Welcome,
                &[&MAGIC, &VERSION.to_be_bytes(), &[*names as u8]],
            ),
            Self::Queued { ahead } => push(out, Kind::Queued, &[&ahead.to_be_bytes()]),
            Self::Want { index, listed } => {
                push(out, Kind::Want, &[&number(index), &number(listed)]);
            }
            Self::Have { index, kept } => {
                push(out, Kind::Have, &[&number(index), &[*kept as u8]]);
            }
            Self::Groups { first, values } => {
                debug_assert!(values.len() <= usize::from(MAX_ASKED));
                push(out, Kind::Groups, &[&number(first), values.as_flattened()]);
            }
            Self::Confirm {
                index,
                size,
                hash,
                name,
            } => push(
                out,
                Kind::Confirm,
                &[&number(index), &number(size), hash, name],
            ),
            Self::Reject {
                index,
                reason,
                message,
            } => push(
                out,
                Kind::Reject,
                &[&number(index), &[*reason as u8], clip(message).as_bytes()],
            ),
            Self::Extra {
                number,
                is_dir,
                path,
            } => push(
                out,
                Kind::Extra,
                &[&number.to_be_bytes(), &[u8::from(*is_dir)], path],
            ),
            Self::ExtrasEnd { more } => push(out, Kind::ExtrasEnd, &[&[u8::from(*more)]]),
            Self::Removed { number, message } => push(
                out,
                Kind::Removed,
                &[&number.to_be_bytes(), clip(message).as_bytes()],
            ),
            Self::Finished { files, bytes } => {
                push(out, Kind::Finished, &[&number(files), &number(bytes)]);
            }
            Self::Fatal { reason, message } => push(
                out,
                Kind::Fatal,
                &[&[*reason as u8], clip(message).as_bytes()],
            ),
        }
    }
}

/// The payload's fields; `None` where they are malformed.
fn read(kind: Kind, mut fields: Fields<'_>) -> Option<Reply> {
    match kind {
        Kind::KeepAlive => fields.end(Reply::KeepAlive),
        Kind::Welcome => NameRules::from_byte(fields.u8()?).map(Reply::Welcome),
        Kind::Queued => {
            let ahead = fields.u32()?;
            fields.end(Reply::Queued { ahead })
        }
        Kind::Want => {
            let (index, listed) = (fields.u64()?, fields.u64()?);
            fields.end(Reply::Want { index, listed })
        }
        Kind::Have => {
            let (index, kept) = (fields.u64()?, Kept::from_byte(fields.u8()?)?);
            fields.end(Reply::Have { index, kept })
        }
        Kind::Groups => {
            let first = fields.u64()?;
            let (values, rest) = fields.0.as_chunks();
            (rest.is_empty() && values.len() <= usize::from(MAX_ASKED)).then(|| Reply::Groups {
                first,
                values: values.to_vec(),
            })
        }
        Kind::Confirm => {
            let (index, size, hash) = (fields.u64()?, fields.u64()?, fields.take()?);
            let name = fields.0.to_vec();
            (name.len() <= MAX_NAME).then_some(Reply::Confirm {
                index,
                size,
                hash,
                name,
            })
        }
        Kind::Reject => {
            let (index, reason) = (fields.u64()?, Refusal::from_byte(fields.u8()?)?);
            let message = fields.message()?.to_owned();
            Some(Reply::Reject {
                index,
                reason,
                message,
            })
        }
        Kind::Extra => {
            let (number, is_dir) = (fields.u64()?, flag(&mut fields)?);
            let path = fields.0.to_vec();
            (path.len() <= MAX_NAME).then_some(Reply::Extra {
                number,
                is_dir,
                path,
            })
        }
        Kind::ExtrasEnd => {
            let more = flag(&mut fields)?;
            fields.end(Reply::ExtrasEnd { more })
        }
        Kind::Removed => {
            let number = fields.u64()?;
            let message = fields.message()?.to_owned();
            Some(Reply::Removed { number, message })
        }
        Kind::Finished => {
            let (files, bytes) = (fields.u64()?, fields.u64()?);
            fields.end(Reply::Finished { files, bytes })
        }
        Kind::Fatal => {
            let reason = Refusal::from_byte(fields.u8()?)?;
            let message = fields.message()?.to_owned();
            Some(Reply::Fatal { reason, message })
        }
        _ => None,
    }
}

fn flag(fields: &mut Fields<'_>) -> Option<bool> {
    match fields.u8()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
