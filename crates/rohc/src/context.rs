//! Contexts: the state that both ends keep of a flow.

use arrayvec::ArrayVec;

use crate::header::{Header, Ip};
use crate::options::{MAX_OPTIONS, TcpOption, index};

/// How the IPv4 identification moves (RFC 6846 §6.1.2, `ip_id_behavior_choice`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum IpIdBehavior {
    /// By a small step from packet to packet.
    Sequential = 0,
    /// The same, in the other byte order.
    Swapped = 1,
    /// At random; also the value that IPv6 flows have.
    Random = 2,
    /// Not at all: always zero.
    Zero = 3,
}

impl IpIdBehavior {
    /// From its two bits; higher bits are ignored.
    pub(crate) const fn from_bits(bits: u32) -> Self {
        match bits & 3 {
            0 => Self::Sequential,
            1 => Self::Swapped,
            2 => Self::Random,
            _ => Self::Zero,
        }
    }

    /// What a native packet alone says. It must not depend on earlier packets: the two ends may
    /// have seen different ones.
    pub(crate) fn of_native(header: &Header) -> Self {
        match header.ip_id() {
            None => Self::Random,
            Some(0) => Self::Zero,
            Some(_) => Self::Sequential,
        }
    }

    /// Whether the formats of the `seq` family are used; else those of `rnd` are (RFC 6846 §8.2).
    pub(crate) const fn is_sequential(self) -> bool {
        matches!(self, Self::Sequential | Self::Swapped)
    }

    /// The distance of an identification from the MSN, which is what travels (RFC 6846 §8.2,
    /// `ip_id_lsb`).
    pub(crate) const fn offset(self, ip_id: u16, msn: u16) -> u16 {
        self.ordered(ip_id).wrapping_sub(msn)
    }

    /// The identification at this distance.
    pub(crate) const fn at_offset(self, offset: u16, msn: u16) -> u16 {
        self.ordered(offset.wrapping_add(msn))
    }

    const fn ordered(self, ip_id: u16) -> u16 {
        match self {
            Self::Swapped => ip_id.swap_bytes(),
            _ => ip_id,
        }
    }
}

/// The options that a context knows, by index (RFC 6846 §6.3.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct OptionTable {
    entries: [Option<TcpOption>; 16],
    /// A bit for each index whose content was declared never to change (`option_static`).
    fixed: u16,
}

impl OptionTable {
    pub(crate) fn get(&self, index: u8) -> Option<&TcpOption> {
        self.entries.get(usize::from(index))?.as_ref()
    }

    pub(crate) fn is_fixed(&self, index: u8) -> bool {
        self.fixed & 1 << (index & 15) != 0
    }

    pub(crate) fn set(&mut self, index: u8, option: &TcpOption) {
        if let Some(entry) = self.entries.get_mut(usize::from(index)) {
            *entry = Some(option.clone());
        }
    }

    pub(crate) fn set_fixed(&mut self, index: u8, fixed: bool) {
        let bit = 1 << (index & 15);
        self.fixed = if fixed {
            self.fixed | bit
        } else {
            self.fixed & !bit
        };
    }

    /// Forgets what another table does not say, too.
    pub(crate) fn intersect(&mut self, other: &Self) {
        for (entry, theirs) in self.entries.iter_mut().zip(&other.entries) {
            if entry != theirs {
                *entry = None;
            }
        }
        self.fixed &= other.fixed;
    }

    /// The index of an option: the RFC's, or where a generic one of that kind and length stands, or
    /// the first free one, or the first that `taken` does not have.
    pub(crate) fn index_of(&self, option: &TcpOption, taken: &[u8]) -> Option<u8> {
        if let Some(index) = option.well_known() {
            return Some(index);
        }
        let free = || (index::GENERIC..16).filter(|index| !taken.contains(index));
        free()
            .find(|&index| {
                self.get(index)
                    .is_some_and(|known| same_shape(known, option))
            })
            .or_else(|| free().find(|&index| self.get(index).is_none()))
            .or_else(|| free().next())
    }
}

/// Whether two options have the same kind and length, so that the irregular chain can turn one into
/// the other.
pub(crate) fn same_shape(a: &TcpOption, b: &TcpOption) -> bool {
    match (a, b) {
        (
            TcpOption::Generic { kind, body },
            TcpOption::Generic {
                kind: other,
                body: theirs,
            },
        ) => kind == other && body.len() == theirs.len(),
        _ => a.well_known() == b.well_known(),
    }
}

/// The structure of an option list: the index of each option in its order.
pub(crate) type Structure = ArrayVec<u8, MAX_OPTIONS>;

/// The state of one end: the newest header and how the fields have moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Context {
    pub(crate) header: Header,
    /// Master sequence number: counts compressed packets, and nothing else does.
    pub(crate) msn: u16,
    pub(crate) ip_id_behavior: IpIdBehavior,
    /// Whether the irregular chain carries the ECN bits.
    pub(crate) ecn_used: bool,
    /// By how much the acknowledgement number usually moves, bytes; 0 if that is not known.
    pub(crate) ack_stride: u16,
    pub(crate) structure: Structure,
    pub(crate) table: OptionTable,
}

impl Context {
    /// From a packet that was sent as it is. Both ends get the same from the same packet. `None` if
    /// its options do not fit the tables.
    pub(crate) fn of_native(header: Header) -> Option<Self> {
        let ip_id_behavior = IpIdBehavior::of_native(&header);
        let mut context = Self {
            header,
            msn: 0,
            ip_id_behavior,
            ecn_used: false,
            ack_stride: 0,
            structure: Structure::new(),
            table: OptionTable::default(),
        };
        context.ecn_used = context.header.has_ecn_bits();
        context.learn_options()?;
        Some(context)
    }

    /// The same flow after another native packet, which says everything but the stride. So one
    /// native packet brings any two contexts together, but for that.
    pub(crate) fn after_native(&self, header: Header) -> Option<Self> {
        Some(Self {
            ack_stride: self.ack_stride,
            ..Self::of_native(header)?
        })
    }

    /// Takes structure and contents of the option list from the header.
    fn learn_options(&mut self) -> Option<()> {
        self.structure.clear();
        for option in &self.header.options {
            let index = self.table.index_of(option, &self.structure)?;
            self.table.set(index, option);
            self.structure.try_push(index).ok()?;
        }
        Some(())
    }

    /// The acknowledgement number in steps of the stride, and what is left of it; `None` without a
    /// stride.
    pub(crate) fn scaled_ack(&self) -> Option<(u32, u32)> {
        scale(self.header.ack, self.ack_stride)
    }

    /// The distance of the identification from the MSN: the reference for the next one, even if
    /// that has another behaviour.
    pub(crate) fn ip_id_offset(&self) -> u16 {
        self.ip_id_behavior
            .offset(self.header.ip_id().unwrap_or(0), self.msn)
    }
}

/// `field_scaling` of RFC 6846: steps and residue.
pub(crate) fn scale(ack: u32, stride: u16) -> Option<(u32, u32)> {
    let stride = u32::from(stride);
    (stride != 0).then(|| (ack / stride, ack % stride))
}

impl Header {
    /// Sets the identification; an IPv6 header has none.
    pub(crate) fn set_ip_id(&mut self, value: u16) {
        if let Ip::V4 { id, .. } = &mut self.ip {
            *id = value;
        }
    }

    /// Sets don't-fragment; an IPv6 header has none.
    pub(crate) fn set_dont_fragment(&mut self, value: bool) {
        if let Ip::V4 { dont_fragment, .. } = &mut self.ip {
            *dont_fragment = value;
        }
    }
}
