//! The fields of a compressed base header as they travel, and what they mean in a context.

use crate::bits::BitReader;
use crate::context::{Context, IpIdBehavior, scale};
use crate::crc::Crc;
use crate::error::DecodeError;
use crate::format::{ACK_SCALED, Field, Format, Layout, MSN, TTL, layout_of};
use crate::header::Header;
use crate::lsb::Lsb;

/// Low bits of a value, and how they were chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bits {
    pub(crate) lsb: Lsb,
    pub(crate) value: u32,
}

impl Bits {
    fn decode(self, reference: u32) -> u32 {
        self.lsb.decode(reference, self.value)
    }
}

/// A number that travels in part or whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Number {
    Low(Bits),
    Whole(u32),
}

impl Number {
    fn decode(self, reference: u32) -> u32 {
        match self {
            Self::Low(bits) => bits.decode(reference),
            Self::Whole(value) => value,
        }
    }
}

/// The fields of a base header. `None` is a field that only the context has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) msn: u32,
    pub(crate) psh: bool,
    /// Width and value.
    pub(crate) check: Option<(Crc, u8)>,
    pub(crate) list_present: bool,
    /// RST, SYN, FIN as the index of RFC 6846 §8.2; 0, none, where it does not travel.
    pub(crate) rsf: u32,
    pub(crate) seq: Option<Number>,
    pub(crate) ack: Option<Number>,
    pub(crate) ack_scaled: Option<u32>,
    pub(crate) ack_stride: Option<u16>,
    pub(crate) window: Option<Number>,
    /// Low bits of the distance from the MSN, or the whole identification.
    pub(crate) ip_id: Option<Number>,
    pub(crate) ip_id_behavior: Option<IpIdBehavior>,
    pub(crate) ecn_used: Option<bool>,
    pub(crate) ttl: Option<Number>,
    pub(crate) dscp: Option<u8>,
    pub(crate) dont_fragment: Option<bool>,
    pub(crate) ack_flag: Option<bool>,
    pub(crate) urg: Option<bool>,
    pub(crate) urgent: Option<u16>,
}

/// A base header that was read.
pub(crate) struct BaseHeader<'a> {
    pub(crate) format: Format,
    pub(crate) fields: Fields,
    /// What follows it.
    pub(crate) rest: BitReader<'a>,
}

/// RST, SYN and FIN for their index (RFC 6846 §8.2, `rsf_index_enc`).
pub(crate) const RSF: [u8; 4] = [0b000, 0b100, 0b010, 0b001];

impl Fields {
    /// Reads a base header of the family that the context says.
    pub(crate) fn read(bytes: &[u8], sequential: bool) -> Result<BaseHeader<'_>, DecodeError> {
        let mut rest = BitReader::new(bytes);
        if bytes.first().is_some_and(|first| first >> 1 == CO_COMMON) {
            let fields = Self::read_common(&mut rest)?;
            return Ok(BaseHeader {
                format: Format::CoCommon,
                fields,
                rest,
            });
        }
        let layout = layout_of(bytes, sequential)?;
        let fields = Self::read_layout(layout, &mut rest)?;
        Ok(BaseHeader {
            format: layout.format,
            fields,
            rest,
        })
    }

    fn read_layout(layout: &Layout, bits: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        let mut fields = Self::default();
        for &field in layout.fields {
            let value = bits.take(field.bits())?;
            let low = |lsb| Some(Number::Low(Bits { lsb, value }));
            match field {
                Field::Tag(..) => {}
                Field::Msn => fields.msn = value,
                Field::Psh => fields.psh = value == 1,
                Field::Check(crc) => fields.check = Some((crc, value as u8)),
                Field::Ack(lsb) => fields.ack = low(lsb),
                Field::AckScaled => fields.ack_scaled = Some(value),
                Field::Seq(lsb) => fields.seq = low(lsb),
                Field::IpId(lsb) => fields.ip_id = low(lsb),
                Field::Window(lsb) => fields.window = low(lsb),
                Field::WholeWindow => fields.window = Some(Number::Whole(value)),
                Field::Rsf => fields.rsf = value,
                Field::ListPresent => fields.list_present = value == 1,
                Field::Ttl => fields.ttl = low(TTL),
                Field::EcnUsed => fields.ecn_used = Some(value == 1),
            }
        }
        Ok(fields)
    }

    /// Reads `co_common` (RFC 6846 §8.2).
    fn read_common(bits: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        bits.take(7)?;
        if bits.take_bit()? {
            // The TTL of an outer IP header; a context here has one header only.
            return Err(DecodeError::Malformed("the flag for outer TTLs"));
        }
        let mut fields = Self {
            ack_flag: Some(bits.take_bit()?),
            psh: bits.take_bit()?,
            rsf: bits.take(2)?,
            msn: bits.take(4)?,
            ..Self::default()
        };
        let seq_indicator = bits.take(2)?;
        let ack_indicator = bits.take(2)?;
        let has_stride = bits.take_bit()?;
        let has_window = bits.take_bit()?;
        let whole_ip_id = bits.take_bit()?;
        let has_urgent = bits.take_bit()?;
        if bits.take_bit()? {
            return Err(DecodeError::Malformed("the reserved bit of co_common"));
        }
        fields.ecn_used = Some(bits.take_bit()?);
        let has_dscp = bits.take_bit()?;
        let has_ttl = bits.take_bit()?;
        fields.list_present = bits.take_bit()?;
        let behavior = IpIdBehavior::from_bits(bits.take(2)?);
        fields.ip_id_behavior = Some(behavior);
        fields.urg = Some(bits.take_bit()?);
        fields.dont_fragment = Some(bits.take_bit()?);
        fields.check = Some((Crc::Seven, bits.take(Crc::Seven.bits())? as u8));

        fields.seq = read_variable(seq_indicator, bits)?;
        fields.ack = read_variable(ack_indicator, bits)?;
        if has_stride {
            fields.ack_stride = Some(bits.take_u16()?);
        }
        if has_window {
            fields.window = Some(Number::Whole(bits.take(16)?));
        }
        if behavior.is_sequential() {
            fields.ip_id = Some(if whole_ip_id {
                Number::Whole(bits.take(16)?)
            } else {
                let value = bits.take(IP_ID_SHORT.bits)?;
                Number::Low(Bits {
                    lsb: IP_ID_SHORT,
                    value,
                })
            });
        }
        if has_urgent {
            fields.urgent = Some(bits.take_u16()?);
        }
        if has_dscp {
            fields.dscp = Some(bits.take(6)? as u8);
            bits.take(2)?;
        }
        if has_ttl {
            fields.ttl = Some(Number::Whole(bits.take(8)?));
        }
        Ok(fields)
    }

    /// What the fields mean: a header (without the irregular chain) and the context after it.
    pub(crate) fn resolve(&self, context: &Context) -> Result<(Header, Context), DecodeError> {
        let mut next = context.clone();
        let mut header = context.header.clone();
        next.msn = MSN.decode(u32::from(context.msn), self.msn) as u16;
        next.ip_id_behavior = self.ip_id_behavior.unwrap_or(context.ip_id_behavior);
        next.ecn_used = self.ecn_used.unwrap_or(context.ecn_used);
        next.ack_stride = self.ack_stride.unwrap_or(context.ack_stride);
        if let Some(seq) = self.seq {
            header.seq = seq.decode(header.seq);
        }
        if let Some(ack) = self.ack {
            header.ack = ack.decode(header.ack);
        }
        if let Some(low) = self.ack_scaled {
            let stride = next.ack_stride;
            let (scaled, residue) = scale(header.ack, stride)
                .ok_or(DecodeError::Malformed("a scaled number without a stride"))?;
            header.ack = ACK_SCALED
                .decode(scaled, low)
                .wrapping_mul(u32::from(stride))
                .wrapping_add(residue);
        }
        if let Some(window) = self.window {
            header.window = window.decode(u32::from(header.window)) as u16;
        }
        if let Some(ttl) = self.ttl {
            header.ttl = ttl.decode(u32::from(header.ttl)) as u8;
        }
        self.resolve_ip_id(context, &next, &mut header);
        header.psh = self.psh;
        header.rsf = RSF[self.rsf as usize & 3];
        header.ack_flag = self.ack_flag.unwrap_or(header.ack_flag);
        header.urg = self.urg.unwrap_or(header.urg);
        header.urgent = self.urgent.unwrap_or(header.urgent);
        header.dscp = self.dscp.unwrap_or(header.dscp);
        if let Some(dont_fragment) = self.dont_fragment {
            header.set_dont_fragment(dont_fragment);
        }
        Ok((header, next))
    }

    fn resolve_ip_id(&self, context: &Context, next: &Context, header: &mut Header) {
        let behavior = next.ip_id_behavior;
        match self.ip_id {
            Some(Number::Whole(id)) => header.set_ip_id(id as u16),
            Some(Number::Low(bits)) => {
                let offset = bits.decode(u32::from(context.ip_id_offset()));
                header.set_ip_id(behavior.at_offset(offset as u16, next.msn));
            }
            None if behavior == IpIdBehavior::Zero => header.set_ip_id(0),
            None => {}
        }
    }
}

/// The discriminator of `co_common`, seven bits.
pub(crate) const CO_COMMON: u8 = 0b111_1101;
/// The short form of the identification in `co_common` (RFC 6846 §8.2, `optional_ip_id_lsb`).
pub(crate) const IP_ID_SHORT: Lsb = Lsb::of_16(8, 3);
/// The short forms of `variable_length_32_enc` (RFC 6846 §8.2), by indicator less one.
pub(crate) const VARIABLE: [Lsb; 2] = [Lsb::of_32(8, 63), Lsb::of_32(16, 16383)];

fn read_variable(indicator: u32, bits: &mut BitReader<'_>) -> Result<Option<Number>, DecodeError> {
    let lsb = match indicator {
        0 => return Ok(None),
        1 => VARIABLE[0],
        2 => VARIABLE[1],
        _ => return Ok(Some(Number::Whole(bits.take(32)?))),
    };
    let value = bits.take(lsb.bits)?;
    Ok(Some(Number::Low(Bits { lsb, value })))
}
