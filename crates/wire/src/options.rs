//! TCP options: MSS, window scale, SACK-permitted, SACK, timestamps; others are skipped unharmed.

use core::fmt;

use arrayvec::ArrayVec;

use crate::seq::SeqNum;
use crate::tack::{self, TackOption};

/// Largest option area of a TCP header, bytes (RFC 9293 §3.1).
pub const MAX_OPTIONS_LEN: usize = 40;
/// Most SACK blocks that fit into 40 option bytes (RFC 2018 §3).
pub const MAX_SACK_BLOCKS: usize = 4;

const KIND_END: u8 = 0;
/// Kind of the padding between options (RFC 9293 §3.1).
pub const KIND_NOP: u8 = 1;
/// Kind of the maximum segment size (RFC 9293 §3.7.1).
pub const KIND_MSS: u8 = 2;
const KIND_WINDOW_SCALE: u8 = 3;
const KIND_SACK_PERMITTED: u8 = 4;
const KIND_SACK: u8 = 5;
const KIND_TIMESTAMPS: u8 = 8;

/// One block of received sequence space: `start` inclusive, `end` exclusive (RFC 2018 §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: SeqNum,
    /// The sequence number after the last one of the block.
    pub end: SeqNum,
}

/// SACK blocks in the order they travel: the most recently changed first.
pub type SackBlocks = ArrayVec<SackBlock, MAX_SACK_BLOCKS>;

/// The timestamps option (RFC 7323 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The newest value received from the other side; meaningful with ACK set.
    pub echo: u32,
}

/// The options of one segment. Absent options are `None`, `false` or empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// Maximum segment size, bytes of payload before options (SYN only).
    pub mss: Option<u16>,
    /// Window scale shift, 0 to 14 after parsing (SYN only; RFC 7323 §2.3 has larger ones read as
    /// 14).
    pub window_scale: Option<u8>,
    /// SACK permitted (SYN only).
    pub sack_permitted: bool,
    /// Blocks of the SACK option.
    pub sack: SackBlocks,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// The TACK option.
    pub tack: Option<TackOption>,
    /// How many options of unknown kind were skipped while parsing. Never emitted.
    pub unknown: u8,
}

impl TcpOptions {
    /// Reads the option area of a header (`bytes` is what lies between the 20 fixed bytes and the
    /// payload).
    ///
    /// Follows RFC 9293 §3.1 and MUST-6/7: unknown options are skipped by their length. An option
    /// whose length is impossible ends the list there; what came before it still counts. A
    /// known option with a wrong length is ignored. Never fails, never panics.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut options = Self::default();
        // The layout nearly every data segment has (RFC 7323 appendix A): two NOPs, timestamps.
        if let [KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10, body @ ..] = bytes
            && body.len() == 8
        {
            options.timestamps = Some(read_timestamps(body));
            return options;
        }
        let mut rest = bytes;
        while let Some((&kind, tail)) = rest.split_first() {
            match kind {
                KIND_END => break,
                KIND_NOP => {
                    rest = tail;
                    continue;
                }
                _ => {}
            }
            let Some(&len) = tail.first() else { break };
            let len = usize::from(len);
            if len < 2 || len > rest.len() {
                break;
            }
            options.read(kind, &rest[2..len]);
            rest = &rest[len..];
        }
        options
    }

    fn read(&mut self, kind: u8, body: &[u8]) {
        match (kind, body.len()) {
            (KIND_MSS, 2) => self.mss = Some(u16::from_be_bytes([body[0], body[1]])),
            (KIND_WINDOW_SCALE, 1) => self.window_scale = Some(body[0].min(14)),
            (KIND_SACK_PERMITTED, 0) => self.sack_permitted = true,
            (KIND_SACK, len) if len >= 8 && len % 8 == 0 => {
                self.sack.clear();
                for block in body.chunks_exact(8).take(MAX_SACK_BLOCKS) {
                    self.sack.push(SackBlock {
                        start: SeqNum(read_u32(block)),
                        end: SeqNum(read_u32(&block[4..])),
                    });
                }
            }
            (KIND_TIMESTAMPS, 8) => self.timestamps = Some(read_timestamps(body)),
            (
                KIND_MSS | KIND_WINDOW_SCALE | KIND_SACK_PERMITTED | KIND_SACK | KIND_TIMESTAMPS,
                _,
            ) => {}
            (tack::OPTION_KIND, _) => match TackOption::parse(body) {
                Some(option) => self.tack = Some(option),
                None => self.unknown = self.unknown.saturating_add(1),
            },
            _ => self.unknown = self.unknown.saturating_add(1),
        }
    }

    /// Bytes that [`TcpOptions::emit`] writes, a multiple of four.
    ///
    /// SACK blocks beyond what fits beside the other options are left out. At most 40, unless the
    /// other options alone are more: a sender does not choose such a set, but padding can make one
    /// of a set that was parsed.
    pub fn encoded_len(&self) -> usize {
        let fixed = self.fixed_len();
        fixed + Self::sack_len(self.sack_room(fixed))
    }

    /// How many SACK blocks fit beside the other options of this segment.
    pub fn sack_capacity(&self) -> usize {
        MAX_OPTIONS_LEN.saturating_sub(self.fixed_len() + 4) / 8
    }

    /// Writes the options to the start of `out` and returns how many bytes that took.
    ///
    /// # Panics
    /// When `out` is shorter than [`TcpOptions::encoded_len`].
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let Some(mss) = self.mss {
            put(&[KIND_MSS, 4]);
            put(&mss.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            put(&[KIND_NOP, KIND_WINDOW_SCALE, 3, shift]);
        }
        if self.sack_permitted {
            put(&[KIND_NOP, KIND_NOP, KIND_SACK_PERMITTED, 2]);
        }
        if let Some(timestamps) = self.timestamps {
            put(&[KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10]);
            put(&timestamps.value.to_be_bytes());
            put(&timestamps.echo.to_be_bytes());
        }
        if let Some(option) = &self.tack {
            let mut bytes = [0; MAX_OPTIONS_LEN];
            let len = option.emit(&mut bytes);
            // Padding first keeps the total a multiple of four.
            put(&[KIND_NOP; 3][..len.next_multiple_of(4) - len]);
            put(&bytes[..len]);
        }
        let blocks = self.sack_room(self.fixed_len());
        if blocks > 0 {
            put(&[KIND_NOP, KIND_NOP, KIND_SACK, 2 + 8 * blocks as u8]);
            for block in &self.sack[..blocks] {
                put(&block.start.0.to_be_bytes());
                put(&block.end.0.to_be_bytes());
            }
        }
        at
    }

    fn fixed_len(&self) -> usize {
        4 * usize::from(self.mss.is_some())
            + 4 * usize::from(self.window_scale.is_some())
            + 4 * usize::from(self.sack_permitted)
            + 12 * usize::from(self.timestamps.is_some())
            + self
                .tack
                .as_ref()
                .map_or(0, |option| option.len().next_multiple_of(4))
    }

    fn sack_room(&self, fixed: usize) -> usize {
        self.sack
            .len()
            .min(MAX_OPTIONS_LEN.saturating_sub(fixed + 4) / 8)
    }

    const fn sack_len(blocks: usize) -> usize {
        if blocks == 0 { 0 } else { 4 + 8 * blocks }
    }
}

fn read_u32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Calls `visit` with kind and body of each option in `options`, what lies between the 20 fixed
/// bytes and the payload, until the list ends or makes no sense. Padding is left out.
pub fn for_each_option_mut(mut options: &mut [u8], mut visit: impl FnMut(u8, &mut [u8])) {
    while let [kind, rest @ ..] = options {
        let (kind, available) = (*kind, rest.len() + 1);
        let len = match (kind, rest.first()) {
            (KIND_END, _) => return,
            (KIND_NOP, _) => 1,
            (_, Some(len)) if (2..=available).contains(&usize::from(*len)) => usize::from(*len),
            _ => return,
        };
        let (option, rest) = core::mem::take(&mut options).split_at_mut(len);
        if kind != KIND_NOP {
            visit(kind, &mut option[2..]);
        }
        options = rest;
    }
}

fn read_timestamps(body: &[u8]) -> Timestamps {
    Timestamps {
        value: read_u32(body),
        echo: read_u32(&body[4..]),
    }
}

impl fmt::Display for TcpOptions {
    /// In tcpdump's words: `mss 1460,wscale 7,sackOK,TS val 5 ecr 0,sack 1 {30:40}`; nothing for
    /// none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut next = || core::mem::replace(&mut separator, ",");
        if let Some(mss) = self.mss {
            write!(f, "{}mss {mss}", next())?;
        }
        if let Some(shift) = self.window_scale {
            write!(f, "{}wscale {shift}", next())?;
        }
        if self.sack_permitted {
            write!(f, "{}sackOK", next())?;
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            write!(f, "{}TS val {value} ecr {echo}", next())?;
        }
        if let Some(option) = &self.tack {
            write!(f, "{}{option}", next())?;
        }
        if !self.sack.is_empty() {
            write!(f, "{}sack {} ", next(), self.sack.len())?;
            for block in &self.sack {
                write!(f, "{{{:?}:{:?}}}", block.start, block.end)?;
            }
        }
        if self.unknown > 0 {
            write!(f, "{}unknown {}", next(), self.unknown)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
