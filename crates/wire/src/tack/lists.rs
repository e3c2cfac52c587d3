//! The lists in the data field of an acknowledgement.

use core::ops::Range;

/// Why a data field is not a pair of lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedLists;

/// The two lists of a data field. Everything is relative, so that middleboxes that shift sequence
/// numbers do no harm: blocks received are given in bytes above the cumulative acknowledgement,
/// gaps in packet numbers below the largest one received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lists<'a> {
    blocks: &'a [u8],
    gaps: &'a [u8],
}

/// Builds a data field.
#[derive(Debug)]
pub struct ListsWriter<'a> {
    out: &'a mut [u8],
    at: usize,
    blocks: u16,
    gaps: u16,
}

/// Bytes of the two counts at the start.
const COUNTS: usize = 4;

impl<'a> Lists<'a> {
    /// Checks a whole data field: counts, lengths, no empty, overlapping or disordered entries,
    /// nothing left over.
    ///
    /// # Errors
    /// [`MalformedLists`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, MalformedLists> {
        let (counts, rest) = bytes.split_first_chunk::<COUNTS>().ok_or(MalformedLists)?;
        let (blocks, gaps) = (
            u16::from_be_bytes([counts[0], counts[1]]),
            u16::from_be_bytes([counts[2], counts[3]]),
        );
        // Blocks come highest first, gaps lowest number first: both descend in what they are
        // relative to.
        let after_blocks = Self::check(rest, blocks, |entry| entry)?;
        let after_gaps = Self::check(after_blocks, gaps, |entry| {
            // A gap reaches from `distance` below the largest number up: it ends at distance −
            // length.
            entry.start.saturating_sub(entry.end - entry.start)..entry.start
        })?;
        if !after_gaps.is_empty() {
            return Err(MalformedLists);
        }
        let split = rest.len() - after_blocks.len();
        Ok(Self {
            blocks: &rest[..split],
            gaps: after_blocks,
        })
    }

    fn check(
        mut rest: &'a [u8],
        count: u16,
        covered: impl Fn(Range<u64>) -> Range<u64>,
    ) -> Result<&'a [u8], MalformedLists> {
        let mut below = u64::MAX;
        for _ in 0..count {
            let (start, tail) = read_varint(rest).ok_or(MalformedLists)?;
            let (len, tail) = read_varint(tail).ok_or(MalformedLists)?;
            rest = tail;
            if start == 0 || len == 0 {
                return Err(MalformedLists);
            }
            let range = covered(start..start + len);
            if range.is_empty() || range.end > below || range.end - range.start != len {
                return Err(MalformedLists);
            }
            below = range.start;
        }
        Ok(rest)
    }

    /// Blocks received, highest first: byte offsets above the cumulative acknowledgement (at least
    /// 1).
    pub fn blocks(&self) -> impl Iterator<Item = Range<u64>> + 'a {
        entries(self.blocks).map(|(start, len)| start..start + len)
    }

    /// Gaps, lowest number first: (distance of the first missing number below the largest received,
    /// count).
    pub fn gaps(&self) -> impl Iterator<Item = (u64, u64)> + 'a {
        entries(self.gaps)
    }
}

fn entries(mut bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    core::iter::from_fn(move || {
        let (start, rest) = read_varint(bytes)?;
        let (len, rest) = read_varint(rest)?;
        bytes = rest;
        Some((start, len))
    })
}

impl<'a> ListsWriter<'a> {
    /// Writes into `out`, at most to its end. Blocks first, then gaps.
    ///
    /// # Panics
    /// When `out` is shorter than four bytes.
    pub fn new(out: &'a mut [u8]) -> Self {
        out[..COUNTS].fill(0);
        Self {
            out,
            at: COUNTS,
            blocks: 0,
            gaps: 0,
        }
    }

    /// Adds a block received: offsets above the cumulative acknowledgement, below the block before.
    /// False when it does not fit.
    pub fn block(&mut self, offsets: Range<u64>) -> bool {
        debug_assert_eq!(self.gaps, 0, "blocks come before gaps");
        let fits = self.put(offsets.start, offsets.end - offsets.start);
        self.blocks += u16::from(fits);
        fits
    }

    /// Adds a gap: distance of its first number below the largest received, and how many numbers
    /// are missing. False when it does not fit.
    pub fn gap(&mut self, distance: u64, count: u64) -> bool {
        let fits = self.put(distance, count);
        self.gaps += u16::from(fits);
        fits
    }

    /// Bytes of what was added so far, the counts included.
    pub fn written(&self) -> usize {
        self.at
    }

    fn put(&mut self, start: u64, len: u64) -> bool {
        let size = varint_len(start) + varint_len(len);
        if self.at + size > self.out.len() {
            return false;
        }
        for value in [start, len] {
            self.at += write_varint(value, &mut self.out[self.at..]);
        }
        true
    }

    /// Length of the data field; zero when nothing was added.
    pub fn finish(self) -> usize {
        if self.blocks == 0 && self.gaps == 0 {
            return 0;
        }
        self.out[0..2].copy_from_slice(&self.blocks.to_be_bytes());
        self.out[2..4].copy_from_slice(&self.gaps.to_be_bytes());
        self.at
    }
}

/// Largest value in the lists: nothing in a window is farther away.
const MAX_VALUE: u64 = u32::MAX as u64;

/// Seven bits a byte, lowest first, the high bit says that more follow. At most five bytes.
fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return (value <= MAX_VALUE).then(|| (value, &bytes[index + 1..]));
        }
    }
    None
}

fn write_varint(mut value: u64, out: &mut [u8]) -> usize {
    value = value.min(MAX_VALUE);
    let mut at = 0;
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

fn varint_len(value: u64) -> usize {
    let bits = 64 - value.min(MAX_VALUE).leading_zeros() as usize;
    bits.div_ceil(7).max(1)
}
