//! The bytes that a response carries.
//!
//! ```text
//!  frame     MSN of the first entry : 8 | entries
//!  entry     0 | length : 7             | compressed acknowledgement, flow of the entry before
//!            1 | length : 7 | CID : 8   | compressed acknowledgement
//!            0 | 0 : 7                  nothing: this MSN is not used
//!            1 | 0 : 7 | CID : 8 | name : 32   the CID is that flow's from now on
//! ```
//!
//! The length lets a receiver skip what it has, which it could not parse: its context has moved on.
//! A flow of its own costs one byte, since most responses are about one flow only.

use alloc::vec::Vec;

/// Longest compressed acknowledgement.
pub(super) const MAX_LEN: usize = 0x7f;

/// The entry names its flow.
const NAMED: u8 = 0x80;

/// Writes entries.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    cid: Option<u8>,
}

impl<'a> Writer<'a> {
    /// Entries from master sequence number `msn` on.
    pub(super) fn new(out: &'a mut Vec<u8>, msn: u8) -> Self {
        out.push(msn);
        Self { out, cid: None }
    }

    /// The next entry: an acknowledgement of flow `cid`.
    pub(super) fn push(&mut self, cid: u8, bytes: &[u8]) {
        debug_assert!((1..=MAX_LEN).contains(&bytes.len()));
        let len = bytes.len() as u8;
        if self.cid == Some(cid) {
            self.out.push(len);
        } else {
            self.out.extend([NAMED | len, cid]);
            self.cid = Some(cid);
        }
        self.out.extend_from_slice(bytes);
    }

    /// The next entry: flow `cid` is the one with that name from now on.
    pub(super) fn announce(&mut self, cid: u8, name: u32) {
        self.out.extend([NAMED, cid]);
        self.out.extend(name.to_be_bytes());
        self.cid = Some(cid);
    }

    /// The next master sequence number stands for nothing any more.
    pub(super) fn skip(&mut self) {
        self.out.push(0);
    }
}

/// One entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry<'a> {
    pub(super) msn: u8,
    pub(super) cid: u8,
    pub(super) says: Says<'a>,
}

/// The contents of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Says<'a> {
    /// A compressed acknowledgement.
    Ack(&'a [u8]),
    /// The CID is the flow's with this name from now on.
    Owner(u32),
}

/// Reads entries; ends early where the bytes are malformed.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    msn: u8,
    cid: Option<u8>,
}

impl<'a> Reader<'a> {
    /// `None` when nothing is carried.
    pub(super) fn new(carried: &'a [u8]) -> Option<Self> {
        let (&msn, bytes) = carried.split_first()?;
        Some(Self {
            bytes,
            msn,
            cid: None,
        })
    }

    /// The master sequence number of the next entry.
    pub(super) fn msn(&self) -> u8 {
        self.msn
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let (&head, mut rest) = self.bytes.split_first()?;
            if head & NAMED != 0 {
                let (&cid, after) = rest.split_first()?;
                (self.cid, rest) = (Some(cid), after);
            }
            let (bytes, rest) = rest.split_at_checked(usize::from(head & !NAMED))?;
            self.bytes = rest;
            let msn = self.msn;
            self.msn = msn.wrapping_add(1);
            let says = if head == NAMED {
                let (name, rest) = self.bytes.split_first_chunk()?;
                self.bytes = rest;
                Says::Owner(u32::from_be_bytes(*name))
            } else {
                Says::Ack(bytes)
            };
            if !bytes.is_empty() || head == NAMED {
                let cid = self.cid?;
                return Some(Entry { msn, cid, says });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, 254);
        writer.push(9, &[1, 2, 3]);
        writer.push(9, &[4]);
        writer.skip();
        writer.announce(0, 0x0708_090a);
        writer.push(0, &[5, 6]);
        let announced = [0x80, 0, 7, 8, 9, 10];
        let expected = [
            &[254, 0x83, 9, 1, 2, 3, 1, 4, 0],
            &announced[..],
            &[2, 5, 6],
        ];
        assert_eq!(bytes, expected.concat());
        let mut reader = Reader::new(&bytes).unwrap();
        let entries: Vec<_> = reader
            .by_ref()
            .map(|entry| (entry.msn, entry.cid, entry.says))
            .collect();
        let expected = [
            (254, 9, Says::Ack(&[1, 2, 3])),
            (255, 9, Says::Ack(&[4])),
            (1, 0, Says::Owner(0x0708_090a)),
            (2, 0, Says::Ack(&[5, 6])),
        ];
        assert_eq!((&entries[..], reader.msn()), (&expected[..], 3));
        // Cut off anywhere, it ends early.
        for len in 0..bytes.len() {
            let read = Reader::new(&bytes[..len]).map_or(0, Iterator::count);
            assert!(read < 4, "{len}");
        }
        assert!(Reader::new(&[7, 3, 1, 2, 3]).unwrap().next().is_none());
    }
}
