//! Reading and writing payloads.

use super::frame::{
    ENTRY_FIXED, Entry, HEAD, Kind, MAX_CONTROL, MAX_MESSAGE, MAX_NAME, MAX_TARGET, Modified,
    SIZE_UNKNOWN,
};

/// Cursor over a payload; every read says `None` at the end.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|byte| byte[0])
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    /// A text behind its length in two bytes.
    pub(super) fn prefixed(&mut self, max: usize) -> Option<&'a [u8]> {
        let len = usize::from(self.u16()?);
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        (len <= max).then_some(text)
    }

    pub(super) fn entry(mut self) -> Option<Entry<'a>> {
        let mode = self.u32()?;
        let seconds = i64::from_be_bytes(self.take()?);
        let nanos = self.u32()?;
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

    pub(super) fn message(self) -> Option<&'a str> {
        std::str::from_utf8(self.0)
            .ok()
            .filter(|text| text.len() <= MAX_MESSAGE)
    }

    /// The payload must end here.
    pub(super) fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

pub(super) fn push(out: &mut Vec<u8>, kind: Kind, parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    debug_assert!(len <= MAX_CONTROL);
    out.push(kind as u8);
    out.extend_from_slice(&(len as u32).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// An entry frame; `before` stands before the entry.
pub(super) fn push_entry(out: &mut Vec<u8>, kind: Kind, before: &[&[u8]], entry: &Entry<'_>) {
    let (mode, modified) = (entry.mode.to_be_bytes(), entry.modified);
    let (seconds, nanos) = (modified.seconds.to_be_bytes(), modified.nanos.to_be_bytes());
    let size = entry.size.unwrap_or(SIZE_UNKNOWN).to_be_bytes();
    let data = entry.data.to_be_bytes();
    let parts: [&[u8]; 6] = [&mode, &seconds, &nanos, &size, &data, entry.name];
    push(out, kind, &[before, &parts].concat());
}

/// Cuts a message to its bound, at a character.
pub(super) fn clip(message: &str) -> &str {
    &message[..message.floor_char_boundary(MAX_MESSAGE)]
}

const _: () = assert!(
    HEAD == 5
        && 2 + MAX_TARGET + ENTRY_FIXED + MAX_NAME <= MAX_CONTROL
        && 33 + ENTRY_FIXED + MAX_NAME <= MAX_CONTROL
        && 2 + MAX_NAME + MAX_MESSAGE <= MAX_CONTROL
        && MAX_MESSAGE + 9 <= MAX_CONTROL
);
