//! The compressed list of options (RFC 6846 §6.3.3) and the irregular chain behind it (§6.2,
//! §6.3.6).

use arrayvec::ArrayVec;

use crate::bits::{BitReader, BitWriter};
use crate::context::{Context, IpIdBehavior, Structure};
use crate::error::DecodeError;
use crate::header::Header;
use crate::item::{self, Irregular, TimestampForm};
use crate::mode::Mode;
use crate::options::{MAX_OPTIONS, Options, TcpOption};

/// How the options of one packet travel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ListPlan {
    /// The index of each option.
    pub(crate) structure: Structure,
    /// For each option how the irregular chain carries it; `None` if an item does.
    irregular: ArrayVec<Option<Irregular>, MAX_OPTIONS>,
    /// Whether the list itself travels: the structure changed, or an item is needed.
    pub(crate) present: bool,
}

impl ListPlan {
    /// For a decompressor that has any of these contexts, the last of which is the newest. `None`
    /// if the options do not fit the tables.
    pub(crate) fn new(header: &Header, mode: Mode, references: &[Context]) -> Option<Self> {
        let newest = references.last()?;
        let mut structure = Structure::new();
        let mut irregular = ArrayVec::new();
        for option in &header.options {
            let index = newest.table.index_of(option, &structure)?;
            structure.try_push(index).ok()?;
            let tables = references.iter().map(|reference| &reference.table);
            irregular
                .try_push(Irregular::plan(option, index, mode.is_lean(), tables))
                .ok()?;
        }
        let present = irregular.contains(&None)
            || references
                .iter()
                .any(|reference| reference.structure != structure);
        Some(Self {
            structure,
            irregular,
            present,
        })
    }

    /// For a dynamic chain: every option is an item.
    pub(crate) fn all_items(context: &Context) -> Self {
        Self {
            structure: context.structure.clone(),
            irregular: context.structure.iter().map(|_| None).collect(),
            present: true,
        }
    }

    /// Whether the irregular chain has timestamps that moved, for the flag of the lean modes.
    pub(crate) fn has_lean_timestamps(&self) -> bool {
        self.irregular
            .iter()
            .any(|plan| matches!(plan, Some(Irregular::LeanTimestamps { .. })))
    }

    /// Writes the list: count, indices, items.
    pub(crate) fn write(&self, options: &Options, ack: u32, out: &mut BitWriter) {
        let wide = self.structure.iter().any(|&index| index > 7);
        out.push(0, 3);
        out.push_bit(wide);
        out.push(self.structure.len() as u32, 4);
        for (&index, irregular) in self.structure.iter().zip(&self.irregular) {
            out.push_bit(irregular.is_none());
            out.push(u32::from(index), if wide { 7 } else { 3 });
        }
        if !wide && self.structure.len() % 2 == 1 {
            out.push(0, 4);
        }
        for (option, _) in options
            .iter()
            .zip(&self.irregular)
            .filter(|(_, irregular)| irregular.is_none())
        {
            item::write_item(option, ack, out);
        }
    }

    /// Writes the irregular chain: IP-ID, ECN bits, checksum, options that no item carried.
    pub(crate) fn write_irregular(
        &self,
        header: &Header,
        behavior: IpIdBehavior,
        ecn_used: bool,
        mode: Mode,
        out: &mut BitWriter,
    ) {
        if let (Some(id), IpIdBehavior::Random) = (header.ip_id(), behavior) {
            out.push(u32::from(id), 16);
        }
        if ecn_used {
            out.push(u32::from(header.ip_ecn), 2);
            out.push(u32::from(header.reserved), 4);
            out.push(u32::from(header.tcp_ecn), 2);
        }
        if mode.carries_checksum() {
            out.push(u32::from(header.checksum), 16);
        }
        for (option, irregular) in header.options.iter().zip(&self.irregular) {
            if let Some(irregular) = irregular {
                irregular.write(option, header.ack, out);
            }
        }
    }
}

/// A list as it was read: for each option its index and, if an item came, its content.
pub(crate) type ReadList = ArrayVec<(u8, Option<TcpOption>), MAX_OPTIONS>;

/// Reads a list. Contents of items go to the context's table, and its structure becomes the list's.
pub(crate) fn read(
    ack: u32,
    context: &mut Context,
    bits: &mut BitReader<'_>,
) -> Result<ReadList, DecodeError> {
    if bits.take(3)? != 0 {
        return Err(DecodeError::Malformed(
            "the reserved bits of an option list",
        ));
    }
    let wide = bits.take_bit()?;
    let count = bits.take(4)?;
    let mut fields: ArrayVec<(bool, u8), MAX_OPTIONS> = ArrayVec::new();
    for _ in 0..count {
        let present = bits.take_bit()?;
        let index = bits.take(if wide { 7 } else { 3 })?;
        if index > 15 {
            return Err(DecodeError::Malformed("an index of an option list"));
        }
        fields.push((present, index as u8));
    }
    if !wide && count % 2 == 1 && bits.take(4)? != 0 {
        return Err(DecodeError::Malformed("the padding of an option list"));
    }
    let mut list = ReadList::new();
    context.structure.clear();
    for (present, index) in fields {
        let content = if present {
            let (option, fixed) = item::read_item(index, ack, bits)?;
            context.table.set(index, &option);
            context.table.set_fixed(index, fixed);
            Some(option)
        } else {
            None
        };
        context.structure.push(index);
        list.push((index, content));
    }
    Ok(list)
}

/// The list of a packet that has none: the structure that is known, without items.
pub(crate) fn unchanged(context: &Context) -> ReadList {
    context
        .structure
        .iter()
        .map(|&index| (index, None))
        .collect()
}

/// Reads the irregular chain into `header`, and the options that no item carried into the context's
/// table.
pub(crate) fn read_irregular(
    list: ReadList,
    header: &mut Header,
    context: &mut Context,
    form: TimestampForm,
    mode: Mode,
    bits: &mut BitReader<'_>,
) -> Result<(), DecodeError> {
    if header.ip_id().is_some() && context.ip_id_behavior == IpIdBehavior::Random {
        header.set_ip_id(bits.take_u16()?);
    }
    if context.ecn_used {
        header.ip_ecn = bits.take(2)? as u8;
        header.reserved = bits.take(4)? as u8;
        header.tcp_ecn = bits.take(2)? as u8;
    }
    if mode.carries_checksum() {
        header.checksum = bits.take_u16()?;
    }
    header.options.clear();
    for (index, content) in list {
        let option = match content {
            Some(option) => option,
            None => {
                let option = item::read_irregular(index, header.ack, form, &context.table, bits)?;
                context.table.set(index, &option);
                option
            }
        };
        header.options.push(option);
    }
    Ok(())
}
