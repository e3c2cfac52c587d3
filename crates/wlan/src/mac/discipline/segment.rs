//! The fields of a TCP segment that a filter may read. The owner of the queues parses them: this
//! crate has no parser of TCP.

use super::Waiting;
use crate::frame::Msdu;

/// Reads TCP headers of packets. Asked for packets that wait whenever an acknowledgement comes, so
/// [`SegmentReader::flow`] is cheap; the rest is read for packets of one flow only.
pub trait SegmentReader<M>: core::fmt::Debug + Send {
    /// The identifier of the flow: addresses, protocol and ports, in order.
    type Flow: PartialEq;

    /// The flow of a TCP packet. `None` for anything else: packets without a flow are never
    /// touched.
    fn flow(&self, packet: &M) -> Option<Self::Flow>;

    /// The segment. `None` where it cannot be read, although the packet belongs to a flow: such a
    /// packet stays.
    fn segment(&self, packet: &M) -> Option<Segment>;
}

/// A TCP segment, as far as the rules of the filters ask.
///
/// They do not ask for the window: a window update repeats the acknowledgement number, which no
/// rule takes for newer, and with a higher number the newer window is the one that holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Control bits and, above them, AE and the reserved bits: the twelve bits behind the data
    /// offset (RFC 9293 §3.1).
    pub flags: Flags,
    /// Acknowledgement number; meaningful with ACK.
    pub ack: u32,
    /// Payload, bytes.
    pub payload: u32,
    /// The timestamps option (RFC 7323).
    pub timestamps: Option<Timestamps>,
    /// Blocks of the SACK option (RFC 2018).
    pub sack: SackBlocks,
    /// What other options there are.
    pub options: OtherOptions,
    /// The second byte of the IPv4 header: DSCP and ECN.
    pub traffic_class: u8,
}

/// The twelve bits behind the data offset of a TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// FIN.
    pub const FIN: Self = Self(0x001);
    /// SYN.
    pub const SYN: Self = Self(0x002);
    /// RST.
    pub const RST: Self = Self(0x004);
    /// ACK.
    pub const ACK: Self = Self(0x010);
    /// ECE, CWR (RFC 3168) and AE: with AccECN the three are a counter (RFC 9768).
    pub const ECN: Self = Self(0x1c0);
    /// ECE and CWR alone.
    pub const ECE_CWR: Self = Self(0x0c0);

    /// True when one of `other` is set.
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Those of `other` that are set.
    #[must_use]
    pub const fn of(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// These without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The timestamps option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval.
    pub value: u32,
    /// TSecr.
    pub echo: u32,
}

/// A block of sequence numbers: the first, and the one after the last.
pub type Block = (u32, u32);

/// Blocks of a SACK option, in its order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [Block; Self::MOST],
    len: usize,
}

impl SackBlocks {
    /// As many as fit 40 bytes of options (RFC 2018 §3).
    pub const MOST: usize = 4;

    /// Adds a block, if there is room.
    pub fn push(&mut self, block: Block) {
        if let Some(free) = self.blocks.get_mut(self.len) {
            *free = block;
            self.len += 1;
        }
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[Block] {
        &self.blocks[..self.len]
    }

    /// True when there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl FromIterator<Block> for SackBlocks {
    fn from_iter<I: IntoIterator<Item = Block>>(blocks: I) -> Self {
        let mut list = Self::default();
        blocks.into_iter().for_each(|block| list.push(block));
        list
    }
}

/// Options other than NOP, end of list, timestamps and SACK. Of several kinds the last in this
/// order counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum OtherOptions {
    /// None.
    #[default]
    None,
    /// An MD5 signature (RFC 2385).
    Signature,
    /// One that says something that a filter does not understand, or that belongs to a SYN, or that
    /// is malformed.
    Unknown,
    /// TACK's option: its acknowledgements count what they tell, and none is redundant.
    Tack,
}

impl Segment {
    /// True for an acknowledgement and nothing else, as Figure 1 of the paper tests it: ACK and no
    /// payload. A segment that takes sequence space, resets or has TACK's option is not one.
    pub fn is_ack(&self) -> bool {
        const OTHER: Flags = Flags(Flags::FIN.0 | Flags::SYN.0 | Flags::RST.0);
        self.flags.any(Flags::ACK)
            && !self.flags.any(OTHER)
            && self.payload == 0
            && self.options != OtherOptions::Tack
    }

    /// True for an acknowledgement that has no flags but ACK and those of ECN.
    pub fn is_plain_ack(&self) -> bool {
        self.is_ack() && self.flags.without(Flags::ECN) == Flags::ACK
    }

    /// True when the first block says what arrived twice (RFC 2883 §4): it lies below the
    /// acknowledgement number, or within the second block.
    pub fn has_dsack(&self) -> bool {
        match *self.sack.as_slice() {
            [first, ..] if before(first.0, self.ack) => true,
            [first, second, ..] => !before(first.0, second.0) && !before(second.1, first.1),
            _ => false,
        }
    }
}

/// True when `one` comes before `other`, modulo 2^32 (RFC 9293 §3.4).
pub(super) const fn before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

/// The segment of a packet.
pub(super) fn segment<M, R: SegmentReader<M>>(reader: &R, msdu: &Msdu<M>) -> Option<Segment> {
    reader.segment(msdu.payload.as_ref()?)
}

/// The packets of the flow of `msdu` that wait, oldest first, with their positions.
pub(super) fn same_flow<'a, M, R: SegmentReader<M>>(
    reader: &'a R,
    msdu: &Msdu<M>,
    waiting: Waiting<'a, M>,
) -> impl Iterator<Item = (usize, &'a Msdu<M>)> + use<'a, M, R> {
    let flow = msdu.payload.as_ref().and_then(|packet| reader.flow(packet));
    let packets = waiting.iter().enumerate();
    packets.filter(move |(_, other)| {
        let packet = other.payload.as_ref();
        flow.is_some() && packet.and_then(|packet| reader.flow(packet)) == flow
    })
}
