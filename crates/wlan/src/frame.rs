//! Frames: what is in a PPDU, and how long its parts are (§9).

use alloc::vec::Vec;

use tack_base::Duration;

use crate::phy::Mode;

/// A radio: the access point is 0, its stations follow, then those of a neighbouring network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The access point. As source or destination of an MSDU: the wired network behind it.
    pub const AP: Self = Self(0);

    /// Position in tables of nodes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an MSDU is, for the accounts of airtime.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Class {
    /// Payload of some kind.
    #[default]
    Data,
    /// An acknowledgement of the transport layer and nothing else.
    TransportAck,
}

/// Access categories of EDCA, lowest priority first (§10.2.3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum AccessCategory {
    /// AC_BK.
    Background,
    /// AC_BE.
    #[default]
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO.
    Voice,
}

impl AccessCategory {
    /// All categories, lowest priority first.
    pub const ALL: [Self; 4] = [Self::Background, Self::BestEffort, Self::Video, Self::Voice];

    /// The traffic identifier that stands for the category in frames (Table 10-1: one of its two
    /// user priorities).
    pub const fn tid(self) -> u8 {
        match self {
            Self::Background => 1,
            Self::BestEffort => 0,
            Self::Video => 5,
            Self::Voice => 6,
        }
    }
}

/// A packet on its way through the network. The payload is opaque; contenders' packets have none.
#[derive(Clone, Debug)]
pub struct Msdu<M> {
    /// Where it entered.
    pub src: NodeId,
    /// Where it shall leave.
    pub dst: NodeId,
    /// Length of the packet, bytes, without LLC/SNAP header.
    pub len: u32,
    /// What it is.
    pub class: Class,
    /// How urgent it is.
    pub category: AccessCategory,
    /// Whatever the caller wants to have again at the other end.
    pub payload: Option<M>,
}

impl<M> Msdu<M> {
    /// Takes the packet and leaves its description behind.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            src: self.src,
            dst: self.dst,
            len: self.len,
            class: self.class,
            category: self.category,
            payload: self.payload.take(),
        }
    }
}

/// A data frame.
#[derive(Clone, Debug)]
pub struct Mpdu<M> {
    /// Sequence number, modulo 4096.
    pub seq: u16,
    /// Sent before.
    pub retry: bool,
    /// What it carries.
    pub msdu: Msdu<M>,
}

/// How the receiver of data answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AckPolicy {
    /// With an ACK.
    Normal,
    /// With a compressed Block ACK, as an A-MPDU asks for by itself.
    BlockAck,
}

/// Data frames of one PPDU: one, or an A-MPDU to one receiver in one category.
#[derive(Clone, Debug)]
pub struct Data<M> {
    /// In the order of sending.
    pub mpdus: Vec<Mpdu<M>>,
    /// Their category.
    pub category: AccessCategory,
    /// How the receiver answers.
    pub ack: AckPolicy,
    /// MORE DATA (§9.2.4.1.8): the transmitter has more for this receiver.
    pub more_data: bool,
    /// SYNC of TCP/HACK (section 3.4): what the receiver's last response carried did not arrive.
    pub sync: bool,
}

/// What an ADDBA frame says (§9.6.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddbaKind {
    /// The originator asks for an agreement.
    Request {
        /// Block ACK Starting Sequence Control: the first sequence number under the agreement.
        start: u16,
    },
    /// The recipient agrees.
    Response,
}

/// An ADDBA frame: an action frame about the Block ACK agreement of one category.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addba {
    /// Sequence number, modulo 4096, of the transmitter's management frames.
    pub seq: u16,
    /// Sent before.
    pub retry: bool,
    /// Dialog Token: a response has that of its request.
    pub token: u8,
    /// Category that it is about.
    pub category: AccessCategory,
    /// What it says.
    pub kind: AddbaKind,
}

/// What a PPDU carries.
#[derive(Clone, Debug)]
pub enum Frame<M> {
    /// Data frames.
    Data(Data<M>),
    /// Acknowledgement of one frame.
    Ack {
        /// Opaque bytes behind the fields of the standard, which the receiver's host had to send
        /// (TCP/HACK); mostly none.
        carried: Vec<u8>,
    },
    /// Compressed Block ACK.
    BlockAck {
        /// Category that it is about.
        category: AccessCategory,
        /// First sequence number of the bitmap.
        start: u16,
        /// Bit n stands for sequence number start + n.
        bitmap: u64,
        /// As those of an ACK.
        carried: Vec<u8>,
    },
    /// Block ACK request: the receiver moves its window and says what it has.
    BlockAckReq {
        /// Category that it is about.
        category: AccessCategory,
        /// First sequence number that the sender still wants.
        start: u16,
    },
    /// ADDBA request or response.
    Addba(Addba),
    /// Request to send.
    Rts,
    /// Clear to send: the answer to RTS, or to oneself as protection.
    Cts,
    /// Beacon.
    Beacon,
}

impl<M> Frame<M> {
    /// An ACK that carries nothing.
    pub const ACK: Self = Self::Ack {
        carried: Vec::new(),
    };

    /// Length of a control or action frame, bytes, FCS included. Zero for data frames and beacons,
    /// whose lengths follow from their contents.
    pub fn control_len(&self) -> u32 {
        match self {
            Self::Ack { carried } => len::ACK + carried.len() as u32,
            Self::BlockAck { carried, .. } => len::BLOCK_ACK + carried.len() as u32,
            Self::BlockAckReq { .. } => len::BLOCK_ACK_REQ,
            Self::Addba(_) => len::ADDBA,
            Self::Rts => len::RTS,
            Self::Cts => len::ACK,
            Self::Data(_) | Self::Beacon => 0,
        }
    }

    /// What an ACK or Block ACK carries; nothing in other frames.
    pub fn carried(&self) -> &[u8] {
        match self {
            Self::Ack { carried } | Self::BlockAck { carried, .. } => carried,
            _ => &[],
        }
    }
}

/// A transmission.
#[derive(Clone, Debug)]
pub struct Ppdu<M> {
    /// The sender.
    pub from: NodeId,
    /// Who shall receive; `None` for everyone.
    pub to: Option<NodeId>,
    /// How it is sent.
    pub mode: Mode,
    /// Length of the PSDU, bytes.
    pub psdu: u32,
    /// Time on the air.
    pub airtime: Duration,
    /// Duration field: how long the medium stays reserved after the end.
    pub reserves: Duration,
    /// What is in it.
    pub frame: Frame<M>,
}

impl<M> Ppdu<M> {
    /// True when the sender waits for an answer.
    pub fn wants_response(&self) -> bool {
        match self.frame {
            Frame::Data(_) | Frame::BlockAckReq { .. } | Frame::Addba(_) | Frame::Rts => true,
            Frame::Ack { .. } | Frame::BlockAck { .. } | Frame::Cts | Frame::Beacon => false,
        }
    }
}

/// Lengths, bytes, FCS included.
pub mod len {
    /// Data header of three addresses, and FCS.
    pub const DATA: u32 = 24 + FCS;
    /// QoS Control.
    pub const QOS: u32 = 2;
    /// LLC/SNAP header in front of an IP packet.
    pub const LLC_SNAP: u32 = 8;
    /// Frame check sequence.
    pub const FCS: u32 = 4;
    /// ACK and CTS.
    pub const ACK: u32 = 14;
    /// RTS.
    pub const RTS: u32 = 20;
    /// Block ACK request.
    pub const BLOCK_ACK_REQ: u32 = 24;
    /// Compressed Block ACK.
    pub const BLOCK_ACK: u32 = 32;
    /// ADDBA request or response: header, category and action, seven bytes each way (§9.6.4.2,
    /// §9.6.4.3), and FCS.
    pub const ADDBA: u32 = 24 + 2 + 7 + FCS;
    /// Delimiter of an A-MPDU subframe.
    pub const DELIMITER: u32 = 4;

    /// The data frame around a packet of `packet` bytes.
    pub const fn mpdu(packet: u32, is_qos: bool) -> u32 {
        DATA + if is_qos { QOS } else { 0 } + LLC_SNAP + packet
    }

    /// An A-MPDU of `before` bytes with a frame of `mpdu` bytes added: padding goes before every
    /// subframe but the first.
    pub const fn ampdu(before: u32, mpdu: u32) -> u32 {
        before.next_multiple_of(4) + DELIMITER + mpdu
    }
}

/// Distance from `from` to `to` in sequence number space, 0 to 4095.
pub const fn seq_distance(from: u16, to: u16) -> u16 {
    to.wrapping_sub(from) & SEQ_MASK
}

/// The sequence number `by` after `seq`.
pub const fn seq_add(seq: u16, by: u16) -> u16 {
    seq.wrapping_add(by) & SEQ_MASK
}

/// True when `a` comes before `b` on the circle of 4096.
pub const fn seq_before(a: u16, b: u16) -> bool {
    a != b && seq_distance(a, b) < 2_048
}

const SEQ_MASK: u16 = 0xfff;
