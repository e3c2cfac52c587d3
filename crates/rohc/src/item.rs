//! The contents of options: as items of a list (RFC 6846 §6.3.4) and in the irregular chain
//! (§6.3.6).

use tack_wire::{SackBlock, SackBlocks, SeqNum, Timestamps};

use crate::bits::{BitReader, BitWriter};
use crate::context::OptionTable;
use crate::error::DecodeError;
use crate::lsb::Lsb;
use crate::options::{Body, MAX_OPTIONS_LEN, TcpOption, index};

/// A form of `ts_lsb` (RFC 6846 §8.2).
struct TsLsb {
    discriminator: u32,
    /// Bits of the discriminator.
    width: u8,
    /// Bits of the timestamp.
    lsb: Lsb,
}

const fn ts_lsb(discriminator: u32, width: u8, lsb: Lsb) -> TsLsb {
    TsLsb {
        discriminator,
        width,
        lsb,
    }
}

/// All forms. With `p` = -1 the short ones cannot say "unchanged", so an unchanged timestamp takes
/// three bytes.
const TS_LSB: [TsLsb; 4] = [
    ts_lsb(0b0, 1, Lsb::of_32(7, -1)),
    ts_lsb(0b10, 2, Lsb::of_32(14, -1)),
    ts_lsb(0b110, 3, Lsb::of_32(21, 0x4_0000)),
    ts_lsb(0b111, 3, Lsb::of_32(29, 0x400_0000)),
];

/// The lean forms of one timestamp, in place of `ts_lsb`: in its half of the byte that both share,
/// and with one more byte.
const LEAN_SHORT: Lsb = Lsb::of_32(3, 0);
const LEAN_LONG: Lsb = Lsb::of_32(11, 0);

/// How an option travels in the irregular chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Irregular {
    /// Not at all: it never changes, or did not.
    Nothing,
    /// Timestamps, each in the form of [`TS_LSB`] with that number.
    TsLsb { value: u8, echo: u8 },
    /// Timestamps in the lean form; whether each takes the longer one.
    LeanTimestamps { value_long: bool, echo_long: bool },
    /// SACK blocks as they were: one zero byte.
    SackUnchanged,
    /// SACK blocks relative to the acknowledgement number.
    Sack,
    /// An unknown option as it was: one byte.
    GenericUnchanged,
    /// An unknown option's body.
    Generic,
}

impl Irregular {
    /// How `option` can travel to a decompressor that has any of these tables; `None` if only an
    /// item will do. `lean` is for the timestamps.
    pub(crate) fn plan<'a>(
        option: &TcpOption,
        index: u8,
        lean: bool,
        tables: impl Iterator<Item = &'a OptionTable> + Clone,
    ) -> Option<Self> {
        if matches!(option, TcpOption::Nop | TcpOption::SackPermitted) {
            return Some(Self::Nothing);
        }
        if tables.clone().any(|table| table.get(index).is_none()) {
            return None;
        }
        let known = tables.clone().filter_map(|table| table.get(index));
        let unchanged = known.clone().all(|known| known == option);
        match option {
            TcpOption::Timestamps(timestamps) => {
                let references = known.filter_map(|known| match known {
                    TcpOption::Timestamps(timestamps) => Some(*timestamps),
                    _ => None,
                });
                if lean {
                    Self::plan_lean(*timestamps, unchanged, references)
                } else {
                    Self::plan_ts_lsb(*timestamps, references)
                }
            }
            TcpOption::Sack(_) if unchanged => Some(Self::SackUnchanged),
            TcpOption::Sack(_) => Some(Self::Sack),
            TcpOption::Generic { .. } => {
                if tables.clone().any(|table| table.is_fixed(index)) {
                    let all_fixed = tables.clone().all(|table| table.is_fixed(index));
                    return (unchanged && all_fixed).then_some(Self::Nothing);
                }
                if unchanged {
                    return Some(Self::GenericUnchanged);
                }
                known
                    .clone()
                    .all(|known| crate::context::same_shape(known, option))
                    .then_some(Self::Generic)
            }
            _ => unchanged.then_some(Self::Nothing),
        }
    }

    fn plan_ts_lsb(
        now: Timestamps,
        references: impl Iterator<Item = Timestamps> + Clone,
    ) -> Option<Self> {
        let form = |new: u32, of: fn(&Timestamps) -> u32| {
            (0..4_u8).find(|&form| {
                let lsb = &TS_LSB[usize::from(form)].lsb;
                references.clone().all(|old| lsb.reaches(of(&old), new))
            })
        };
        Some(Self::TsLsb {
            value: form(now.value, |old| old.value)?,
            echo: form(now.echo, |old| old.echo)?,
        })
    }

    fn plan_lean(
        now: Timestamps,
        unchanged: bool,
        references: impl Iterator<Item = Timestamps> + Clone,
    ) -> Option<Self> {
        if unchanged {
            return Some(Self::Nothing);
        }
        let long = |new: u32, of: fn(&Timestamps) -> u32| {
            let reaches = |lsb: Lsb| references.clone().all(|old| lsb.reaches(of(&old), new));
            if reaches(LEAN_SHORT) {
                Some(false)
            } else {
                reaches(LEAN_LONG).then_some(true)
            }
        };
        Some(Self::LeanTimestamps {
            value_long: long(now.value, |old| old.value)?,
            echo_long: long(now.echo, |old| old.echo)?,
        })
    }

    /// Writes what `option` needs.
    pub(crate) fn write(self, option: &TcpOption, ack: u32, out: &mut BitWriter) {
        match (self, option) {
            (Self::TsLsb { value, echo }, TcpOption::Timestamps(now)) => {
                for (timestamp, form) in [(now.value, value), (now.echo, echo)] {
                    let form = &TS_LSB[usize::from(form & 3)];
                    out.push(form.discriminator, form.width);
                    out.push(form.lsb.encode(timestamp), form.lsb.bits);
                }
            }
            (
                Self::LeanTimestamps {
                    value_long,
                    echo_long,
                },
                TcpOption::Timestamps(now),
            ) => {
                let halves = [(now.value, value_long), (now.echo, echo_long)];
                for (timestamp, long) in halves {
                    out.push_bit(long);
                    // The high bits of the 11, or all of the 3.
                    let high = if long { timestamp >> 8 } else { timestamp };
                    out.push(LEAN_SHORT.encode(high), LEAN_SHORT.bits);
                }
                for (timestamp, _) in halves.into_iter().filter(|(_, long)| *long) {
                    out.push(timestamp & 0xff, 8);
                }
            }
            (Self::SackUnchanged, _) => out.push(0, 8),
            (Self::Sack, option) => write_item(option, ack, out),
            (Self::GenericUnchanged, _) => out.push(0xff, 8),
            (Self::Generic, TcpOption::Generic { body, .. }) => {
                out.push(0, 8);
                out.push_bytes(body);
            }
            _ => {}
        }
    }
}

/// Writes an option as an item of a list.
pub(crate) fn write_item(option: &TcpOption, ack: u32, out: &mut BitWriter) {
    match option {
        TcpOption::Nop | TcpOption::SackPermitted => {}
        // In bits, and without the option's own byte.
        TcpOption::End { padding } => out.push(u32::from(*padding) * 8, 8),
        TcpOption::Mss(mss) => out.push(u32::from(*mss), 16),
        TcpOption::WindowScale(shift) => out.push(u32::from(*shift), 8),
        TcpOption::Timestamps(timestamps) => {
            out.push(timestamps.value, 32);
            out.push(timestamps.echo, 32);
        }
        TcpOption::Sack(blocks) => {
            out.push(blocks.len() as u32, 8);
            let mut reference = ack;
            for block in blocks {
                write_sack_field(block.start.0.wrapping_sub(reference), out);
                write_sack_field(block.end.0.wrapping_sub(block.start.0), out);
                reference = block.end.0;
            }
        }
        TcpOption::Generic { kind, body } => {
            out.push(u32::from(*kind), 8);
            // `option_static` is zero: this codec never promises that an unknown option stays.
            out.push(2 + body.len() as u32, 8);
            out.push_bytes(body);
        }
    }
}

/// `sack_var_length_enc` of RFC 6846 §8.2.
fn write_sack_field(distance: u32, out: &mut BitWriter) {
    match distance {
        0..0x8000 => out.push(distance, 16),
        0x8000..0x40_0000 => {
            out.push(0b10, 2);
            out.push(distance, 22);
        }
        0x40_0000..0x2000_0000 => {
            out.push(0b110, 3);
            out.push(distance, 29);
        }
        _ => {
            out.push(0xff, 8);
            out.push(distance, 32);
        }
    }
}

/// Reads the item with that index. The flag is `option_static`.
pub(crate) fn read_item(
    index: u8,
    ack: u32,
    bits: &mut BitReader<'_>,
) -> Result<(TcpOption, bool), DecodeError> {
    let option = match index {
        index::NOP => TcpOption::Nop,
        index::END => {
            let padding = bits.take_u8()?;
            if !padding.is_multiple_of(8) || usize::from(padding / 8) >= MAX_OPTIONS_LEN {
                return Err(DecodeError::Malformed("the padding of the option list"));
            }
            TcpOption::End {
                padding: padding / 8,
            }
        }
        index::MSS => TcpOption::Mss(bits.take_u16()?),
        index::WINDOW_SCALE => TcpOption::WindowScale(bits.take_u8()?),
        index::TIMESTAMPS => TcpOption::Timestamps(Timestamps {
            value: bits.take(32)?,
            echo: bits.take(32)?,
        }),
        index::SACK_PERMITTED => TcpOption::SackPermitted,
        index::SACK => {
            let count = bits.take_u8()?;
            if count == 0 {
                return Err(DecodeError::Malformed("the number of SACK blocks"));
            }
            TcpOption::Sack(read_sack(count, ack, bits)?)
        }
        _ => {
            let kind = bits.take_u8()?;
            let fixed = bits.take_bit()?;
            let len = bits.take(7)?;
            let option = TcpOption::Generic {
                kind,
                body: read_body(len.wrapping_sub(2) as usize, bits)?,
            };
            // Kinds 0 and 1 have no length, so no such option could be written.
            if kind < 2 {
                return Err(DecodeError::Malformed("the kind of an option"));
            }
            return Ok((option, fixed));
        }
    };
    Ok((option, false))
}

fn read_body(len: usize, bits: &mut BitReader<'_>) -> Result<Body, DecodeError> {
    let mut body = Body::new();
    for _ in 0..len {
        body.try_push(bits.take_u8()?)
            .map_err(|_| DecodeError::Malformed("the length of an option"))?;
    }
    Ok(body)
}

fn read_sack(count: u8, ack: u32, bits: &mut BitReader<'_>) -> Result<SackBlocks, DecodeError> {
    let mut blocks = SackBlocks::new();
    let mut reference = ack;
    for _ in 0..count {
        let start = reference.wrapping_add(read_sack_field(bits)?);
        let end = start.wrapping_add(read_sack_field(bits)?);
        reference = end;
        let block = SackBlock {
            start: SeqNum(start),
            end: SeqNum(end),
        };
        blocks
            .try_push(block)
            .map_err(|_| DecodeError::Malformed("the number of SACK blocks"))?;
    }
    Ok(blocks)
}

fn read_sack_field(bits: &mut BitReader<'_>) -> Result<u32, DecodeError> {
    if !bits.take_bit()? {
        return bits.take(15);
    }
    if !bits.take_bit()? {
        return bits.take(22);
    }
    if !bits.take_bit()? {
        return bits.take(29);
    }
    if bits.take(5)? != 0b1_1111 {
        return Err(DecodeError::Malformed("the discriminator of a SACK block"));
    }
    bits.take(32)
}

/// What the base header says of the timestamps in the irregular chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimestampForm {
    /// As RFC 6846 has them.
    Rfc,
    /// Lean, and as they were.
    LeanUnchanged,
    /// Lean, and moved.
    LeanMoved,
}

/// Reads the option with that index from the irregular chain.
pub(crate) fn read_irregular(
    index: u8,
    ack: u32,
    form: TimestampForm,
    table: &OptionTable,
    bits: &mut BitReader<'_>,
) -> Result<TcpOption, DecodeError> {
    if index == index::NOP {
        return Ok(TcpOption::Nop);
    }
    if index == index::SACK_PERMITTED {
        return Ok(TcpOption::SackPermitted);
    }
    let known = table.get(index);
    if index == index::SACK {
        let count = bits.take_u8()?;
        if count != 0 {
            return Ok(TcpOption::Sack(read_sack(count, ack, bits)?));
        }
    }
    let known = known.ok_or(DecodeError::Malformed("an option that no item established"))?;
    match known {
        TcpOption::Timestamps(old) => {
            let (value, echo) = match form {
                TimestampForm::Rfc => (read_ts_lsb(old.value, bits)?, read_ts_lsb(old.echo, bits)?),
                TimestampForm::LeanUnchanged => (old.value, old.echo),
                TimestampForm::LeanMoved => read_lean_timestamps(*old, bits)?,
            };
            Ok(TcpOption::Timestamps(Timestamps { value, echo }))
        }
        TcpOption::Generic { kind, body } if !table.is_fixed(index) => match bits.take_u8()? {
            0xff => Ok(known.clone()),
            0 => Ok(TcpOption::Generic {
                kind: *kind,
                body: read_body(body.len(), bits)?,
            }),
            _ => Err(DecodeError::Malformed("the discriminator of an option")),
        },
        _ => Ok(known.clone()),
    }
}

fn read_ts_lsb(reference: u32, bits: &mut BitReader<'_>) -> Result<u32, DecodeError> {
    let form = if !bits.take_bit()? {
        0
    } else if !bits.take_bit()? {
        1
    } else {
        2 + usize::from(bits.take_bit()?)
    };
    let lsb = &TS_LSB[form].lsb;
    Ok(lsb.decode(reference, bits.take(lsb.bits)?))
}

fn read_lean_timestamps(
    old: Timestamps,
    bits: &mut BitReader<'_>,
) -> Result<(u32, u32), DecodeError> {
    let mut halves = [(false, 0); 2];
    for half in &mut halves {
        *half = (bits.take_bit()?, bits.take(LEAN_SHORT.bits)?);
    }
    let mut moved = [old.value, old.echo];
    for (timestamp, (long, high)) in moved.iter_mut().zip(halves) {
        *timestamp = if long {
            LEAN_LONG.decode(*timestamp, high << 8 | bits.take(8)?)
        } else {
            LEAN_SHORT.decode(*timestamp, high)
        };
    }
    Ok((moved[0], moved[1]))
}
