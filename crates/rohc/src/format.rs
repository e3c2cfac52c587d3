//! The compressed base headers (RFC 6846 §8.2), as tables of their fields.
//!
//! Which table applies follows from the context, not from the packet: a flow whose IPv4
//! identification is sequential uses `seq`, every other one uses `rnd`, and bits that start one
//! format in the first start another in the second. `co_common` is the same in both and has a
//! module of its own.

use crate::bits::BitReader;
use crate::crc::Crc;
use crate::error::DecodeError;
use crate::lsb::Lsb;

/// The name of a packet format of ROHC-TCP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Format {
    /// Initialisation and refresh: static and dynamic chain.
    Ir,
    /// Refresh: dynamic chain.
    IrDyn,
    /// Everything that may change, each field behind a flag.
    CoCommon,
    /// Sequence number, 18 bits.
    Rnd1,
    /// Acknowledgement number, 15 bits.
    Rnd3,
    /// Scaled acknowledgement number, 4 bits.
    Rnd4,
    /// Sequence number, 14 bits, and acknowledgement number, 15 bits.
    Rnd5,
    /// Acknowledgement number, 18 bits, and window.
    Rnd7,
    /// Sequence and acknowledgement number, flags, TTL, ECN behaviour, option list.
    Rnd8,
    /// Sequence number, 16 bits, and IP-ID.
    Seq1,
    /// Acknowledgement number, 16 bits, and IP-ID.
    Seq3,
    /// Scaled acknowledgement number, 4 bits, and IP-ID.
    Seq4,
    /// Sequence and acknowledgement number, 16 bits each, and IP-ID.
    Seq5,
    /// Window, acknowledgement number and IP-ID.
    Seq7,
    /// What `rnd_8` carries, and IP-ID.
    Seq8,
}

impl Format {
    /// The name that the RFC gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ir => "IR",
            Self::IrDyn => "IR-DYN",
            Self::CoCommon => "co_common",
            Self::Rnd1 => "rnd_1",
            Self::Rnd3 => "rnd_3",
            Self::Rnd4 => "rnd_4",
            Self::Rnd5 => "rnd_5",
            Self::Rnd7 => "rnd_7",
            Self::Rnd8 => "rnd_8",
            Self::Seq1 => "seq_1",
            Self::Seq3 => "seq_3",
            Self::Seq4 => "seq_4",
            Self::Seq5 => "seq_5",
            Self::Seq7 => "seq_7",
            Self::Seq8 => "seq_8",
        }
    }
}

/// One field of a base header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field {
    /// The discriminator.
    Tag(u32, u8),
    Msn,
    Psh,
    Check(Crc),
    Ack(Lsb),
    AckScaled,
    Seq(Lsb),
    IpId(Lsb),
    Window(Lsb),
    /// All 16 bits.
    WholeWindow,
    Rsf,
    ListPresent,
    Ttl,
    EcnUsed,
}

/// `lsb(4, 4)`: the MSN in every format.
pub(crate) const MSN: Lsb = Lsb::of_16(4, 4);
/// `lsb(4, 3)` of the scaled acknowledgement number.
pub(crate) const ACK_SCALED: Lsb = Lsb::of_32(4, 3);
/// `lsb(3, 3)` of the TTL.
pub(crate) const TTL: Lsb = Lsb::of_8(3, 3);

/// A base header: its name and its fields in their order.
pub(crate) struct Layout {
    pub(crate) format: Format,
    pub(crate) fields: &'static [Field],
}

use Field::{
    Ack, AckScaled, Check, EcnUsed, IpId, ListPresent, Msn, Psh, Rsf, Seq, Tag, Ttl, WholeWindow,
    Window,
};

const CRC3: Field = Check(Crc::Three);
const CRC7: Field = Check(Crc::Seven);

const fn ack(bits: u8, p: i32) -> Field {
    Ack(Lsb::of_32(bits, p))
}

const fn seq(bits: u8, p: i32) -> Field {
    Seq(Lsb::of_32(bits, p))
}

const fn ip_id(bits: u8, p: i32) -> Field {
    IpId(Lsb::of_16(bits, p))
}

const fn layout(format: Format, fields: &'static [Field]) -> Layout {
    Layout { format, fields }
}

/// For an IP-ID that is random, zero or (IPv6) not there; shortest first. `rnd_2` and `rnd_6` scale
/// the sequence number by the size of the payload, which a pure acknowledgement does not have.
pub(crate) const RND: &[Layout] = &[
    layout(Format::Rnd4, &[Tag(0b1101, 4), AckScaled, Msn, Psh, CRC3]),
    layout(Format::Rnd3, &[Tag(0, 1), ack(15, 8191), Msn, Psh, CRC3]),
    layout(
        Format::Rnd1,
        &[Tag(0b10_1110, 6), seq(18, 65535), Msn, Psh, CRC3],
    ),
    layout(
        Format::Rnd5,
        &[Tag(0b100, 3), Psh, Msn, CRC3, seq(14, 8191), ack(15, 8191)],
    ),
    layout(
        Format::Rnd7,
        &[
            Tag(0b10_1111, 6),
            ack(18, 65535),
            WholeWindow,
            Msn,
            Psh,
            CRC3,
        ],
    ),
    layout(
        Format::Rnd8,
        &[
            Tag(0b1_0110, 5),
            Rsf,
            ListPresent,
            CRC7,
            Msn,
            Psh,
            Ttl,
            EcnUsed,
            seq(16, 65535),
            ack(16, 16383),
        ],
    ),
];

/// For a sequential IP-ID, shortest first; without `seq_2` and `seq_6`, for the same reason.
pub(crate) const SEQ: &[Layout] = &[
    layout(
        Format::Seq4,
        &[Tag(0, 1), AckScaled, ip_id(3, 1), Msn, Psh, CRC3],
    ),
    layout(
        Format::Seq3,
        &[Tag(0b1001, 4), ip_id(4, 3), ack(16, 16383), Msn, Psh, CRC3],
    ),
    layout(
        Format::Seq1,
        &[Tag(0b1010, 4), ip_id(4, 3), seq(16, 32767), Msn, Psh, CRC3],
    ),
    layout(
        Format::Seq5,
        &[
            Tag(0b1000, 4),
            ip_id(4, 3),
            ack(16, 16383),
            seq(16, 32767),
            Msn,
            Psh,
            CRC3,
        ],
    ),
    layout(
        Format::Seq7,
        &[
            Tag(0b1100, 4),
            Window(Lsb::of_16(15, 16383)),
            ip_id(5, 3),
            ack(16, 32767),
            Msn,
            Psh,
            CRC3,
        ],
    ),
    layout(
        Format::Seq8,
        &[
            Tag(0b1011, 4),
            ip_id(4, 3),
            ListPresent,
            CRC7,
            Msn,
            Psh,
            Ttl,
            EcnUsed,
            ack(15, 8191),
            Rsf,
            seq(14, 8191),
        ],
    ),
];

impl Field {
    /// Its width, bits.
    pub(crate) const fn bits(self) -> u8 {
        match self {
            Tag(_, bits) => bits,
            Msn => MSN.bits,
            AckScaled => ACK_SCALED.bits,
            Ttl => TTL.bits,
            Check(crc) => crc.bits(),
            Ack(lsb) | Seq(lsb) | IpId(lsb) | Window(lsb) => lsb.bits,
            WholeWindow => 16,
            Rsf => 2,
            Psh | ListPresent | EcnUsed => 1,
        }
    }
}

/// The layout that a packet starts, in the family that the context says.
pub(crate) fn layout_of(bytes: &[u8], sequential: bool) -> Result<&'static Layout, DecodeError> {
    let family = if sequential { SEQ } else { RND };
    let first = *bytes.first().ok_or(DecodeError::Truncated {
        needed: 1,
        available: 0,
    })?;
    family
        .iter()
        .find(|layout| match layout.fields.first() {
            Some(&Tag(tag, bits)) => BitReader::new(&[first]).take(bits) == Ok(tag),
            _ => false,
        })
        .ok_or(DecodeError::Format(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_is_whole_bytes_and_in_order_of_size() {
        for family in [RND, SEQ] {
            let sizes: std::vec::Vec<u32> = family
                .iter()
                .map(|layout| layout.fields.iter().map(|f| u32::from(f.bits())).sum())
                .collect();
            assert!(sizes.iter().all(|bits| bits % 8 == 0), "{sizes:?}");
            assert!(sizes.is_sorted(), "{sizes:?}");
        }
    }

    #[test]
    fn no_octet_starts_two_layouts_of_a_family() {
        for sequential in [false, true] {
            for first in 0..=255_u8 {
                let family = if sequential { SEQ } else { RND };
                let matching = family.iter().filter(|layout| {
                    let Some(&Tag(tag, bits)) = layout.fields.first() else {
                        unreachable!("a layout starts with its tag")
                    };
                    u32::from(first >> (8 - bits)) == tag
                });
                assert!(matching.count() <= 1, "{first:#x}");
            }
            // Reserved for IR, IR-DYN, IR-CR, co_common, feedback, Add-CID and padding.
            for first in 0xe0..=0xff {
                assert!(layout_of(&[first], sequential).is_err());
            }
        }
    }
}
