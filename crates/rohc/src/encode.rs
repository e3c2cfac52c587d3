//! From a header to a compressed one, for a decompressor that has any of several contexts.

use crate::bits::BitWriter;
use crate::context::{Context, IpIdBehavior, scale};
use crate::crc::Crc;
use crate::fields::{CO_COMMON, IP_ID_SHORT, RSF, VARIABLE};
use crate::format::{ACK_SCALED, Field, Format, Layout, MSN, RND, SEQ, TTL};
use crate::header::Header;
use crate::list::ListPlan;
use crate::lsb::Lsb;
use crate::mode::Mode;

/// No format but `co_common` carries what it carries in five bytes, so up to here nothing else need
/// be tried.
const SHORTEST_COMMON: usize = 5;

/// One packet on its way.
pub(crate) struct Encoder<'a> {
    pub(crate) header: &'a Header,
    /// The packet, for the CRC.
    pub(crate) packet: &'a [u8],
    /// The contexts that the decompressor may have; not empty.
    pub(crate) references: &'a [Context],
    pub(crate) mode: Mode,
    pub(crate) msn: u16,
    pub(crate) ip_id_behavior: IpIdBehavior,
    pub(crate) ecn_used: bool,
    pub(crate) ack_stride: u16,
    /// Index of RST, SYN or FIN.
    pub(crate) rsf: u32,
    pub(crate) list: &'a ListPlan,
}

impl Encoder<'_> {
    /// The shortest compressed packet. `None` if the MSN is ambiguous for one of the contexts.
    pub(crate) fn encode(&self) -> Option<(Format, BitWriter)> {
        let fits = |old: &Context| MSN.reaches(u32::from(old.msn), u32::from(self.msn));
        if !self.all(fits) {
            return None;
        }
        let family = if self.ip_id_behavior.is_sequential() {
            SEQ
        } else {
            RND
        };
        let short = family
            .iter()
            .find_map(|layout| Some((layout.format, self.layout(layout)?)));
        let (format, mut out) = match short {
            Some((format, out)) if out.len() <= SHORTEST_COMMON => (format, out),
            _ => {
                let common = (Format::CoCommon, self.common());
                match short {
                    Some(short) if short.1.len() <= common.1.len() => short,
                    _ => common,
                }
            }
        };
        if self.list.present {
            self.list
                .write(&self.header.options, self.header.ack, &mut out);
        }
        self.list.write_irregular(
            self.header,
            self.ip_id_behavior,
            self.ecn_used,
            self.mode,
            &mut out,
        );
        Some((format, out))
    }

    fn all(&self, is: impl Fn(&Context) -> bool) -> bool {
        self.references.iter().all(is)
    }

    /// Whether every possible context has this in common with the header.
    fn same<T: PartialEq>(&self, field: impl Fn(&Header) -> T) -> bool {
        self.all(|old| field(&old.header) == field(self.header))
    }

    /// Whether these bits are enough for every possible context.
    fn reaches(&self, lsb: Lsb, field: impl Fn(&Header) -> u32) -> bool {
        let value = field(self.header);
        self.all(|old| lsb.reaches(field(&old.header), value))
    }

    fn ip_id_offset(&self) -> u32 {
        let id = self.header.ip_id().unwrap_or(0);
        u32::from(self.ip_id_behavior.offset(id, self.msn))
    }

    fn ip_id_reaches(&self, lsb: Lsb) -> bool {
        let offset = self.ip_id_offset();
        self.all(|old| lsb.reaches(u32::from(old.ip_id_offset()), offset))
    }

    /// The scaled acknowledgement number, if its low bits are enough.
    fn scaled_ack(&self) -> Option<u32> {
        let (scaled, residue) = scale(self.header.ack, self.ack_stride)?;
        let fits = |old: &Context| {
            old.scaled_ack()
                .is_some_and(|(from, left)| left == residue && ACK_SCALED.reaches(from, scaled))
        };
        self.all(fits).then_some(scaled)
    }

    /// PSH, or in the lean modes whether timestamps follow.
    fn psh(&self) -> bool {
        if self.mode.is_lean() {
            // Deviation: see [`Mode::Lean`].
            self.list.has_lean_timestamps()
        } else {
            self.header.psh
        }
    }

    /// Whether something changed that only `co_common` carries.
    fn needs_common(&self) -> bool {
        !self.same(|header| (header.dscp, header.dont_fragment()))
            || !self.same(|header| (header.ack_flag, header.urg, header.urgent))
            || !self.all(|old| {
                (old.ip_id_behavior, old.ack_stride) == (self.ip_id_behavior, self.ack_stride)
            })
    }

    /// The base header in this layout, if that carries all that changed.
    fn layout(&self, layout: &Layout) -> Option<BitWriter> {
        let carries = |is: fn(&Field) -> bool| layout.fields.iter().any(is);
        let covered = (self.same(|header| header.seq) || carries(|f| matches!(f, Field::Seq(_))))
            && (self.same(|header| header.ack)
                || carries(|f| matches!(f, Field::Ack(_) | Field::AckScaled)))
            && (self.same(|header| header.window)
                || carries(|f| matches!(f, Field::Window(_) | Field::WholeWindow)))
            && (self.same(|header| header.ttl) || carries(|f| matches!(f, Field::Ttl)))
            && (self.all(|old| old.ecn_used == self.ecn_used)
                || carries(|f| matches!(f, Field::EcnUsed)))
            && (self.rsf == 0 || carries(|f| matches!(f, Field::Rsf)))
            && (!self.list.present || carries(|f| matches!(f, Field::ListPresent)))
            && !self.needs_common();
        if !covered {
            return None;
        }
        let mut out = BitWriter::default();
        for &field in layout.fields {
            let value = self.value(field)?;
            out.push(value, field.bits());
        }
        Some(out)
    }

    /// What travels of a field; `None` if its bits are not enough.
    fn value(&self, field: Field) -> Option<u32> {
        let header = self.header;
        let low = |lsb: Lsb, field: fn(&Header) -> u32| {
            self.reaches(lsb, field).then(|| lsb.encode(field(header)))
        };
        match field {
            Field::Tag(tag, _) => Some(tag),
            Field::Msn => Some(MSN.encode(u32::from(self.msn))),
            Field::Psh => Some(u32::from(self.psh())),
            Field::Check(crc) => Some(u32::from(crc.of(self.packet))),
            Field::Ack(lsb) => low(lsb, |header| header.ack),
            Field::AckScaled => self.scaled_ack().map(|scaled| ACK_SCALED.encode(scaled)),
            Field::Seq(lsb) => low(lsb, |header| header.seq),
            Field::IpId(lsb) => self
                .ip_id_reaches(lsb)
                .then(|| lsb.encode(self.ip_id_offset())),
            Field::Window(lsb) => low(lsb, |header| u32::from(header.window)),
            Field::WholeWindow => Some(u32::from(header.window)),
            Field::Rsf => Some(self.rsf),
            Field::ListPresent => Some(u32::from(self.list.present)),
            Field::Ttl => low(TTL, |header| u32::from(header.ttl)),
            Field::EcnUsed => Some(u32::from(self.ecn_used)),
        }
    }

    /// The base header as `co_common` (RFC 6846 §8.2).
    fn common(&self) -> BitWriter {
        let header = self.header;
        let seq = self.variable(|header| header.seq);
        let ack = self.variable(|header| header.ack);
        let stride_same = self.all(|old| old.ack_stride == self.ack_stride);
        let window_same = self.same(|header| header.window);
        let sequential = self.ip_id_behavior.is_sequential();
        let whole_ip_id = sequential && !self.ip_id_reaches(IP_ID_SHORT);
        let urgent_same = self.same(|header| header.urgent);
        let dscp_same = self.same(|header| header.dscp);
        let ttl_same = self.same(|header| header.ttl);

        let mut out = BitWriter::default();
        out.push(u32::from(CO_COMMON), 7);
        out.push_bit(false);
        out.push_bit(header.ack_flag);
        out.push_bit(self.psh());
        out.push(self.rsf, 2);
        out.push(MSN.encode(u32::from(self.msn)), MSN.bits);
        out.push(seq, 2);
        out.push(ack, 2);
        out.push_bit(!stride_same);
        out.push_bit(!window_same);
        out.push_bit(whole_ip_id);
        out.push_bit(!urgent_same);
        out.push_bit(false);
        out.push_bit(self.ecn_used);
        out.push_bit(!dscp_same);
        out.push_bit(!ttl_same);
        out.push_bit(self.list.present);
        out.push(self.ip_id_behavior as u32, 2);
        out.push_bit(header.urg);
        out.push_bit(header.dont_fragment());
        out.push(u32::from(Crc::Seven.of(self.packet)), Crc::Seven.bits());

        push_variable(seq, header.seq, &mut out);
        push_variable(ack, header.ack, &mut out);
        if !stride_same {
            out.push(u32::from(self.ack_stride), 16);
        }
        if !window_same {
            out.push(u32::from(header.window), 16);
        }
        if whole_ip_id {
            out.push(u32::from(header.ip_id().unwrap_or(0)), 16);
        } else if sequential {
            out.push(IP_ID_SHORT.encode(self.ip_id_offset()), IP_ID_SHORT.bits);
        }
        if !urgent_same {
            out.push(u32::from(header.urgent), 16);
        }
        if !dscp_same {
            out.push(u32::from(header.dscp) << 2, 8);
        }
        if !ttl_same {
            out.push(u32::from(header.ttl), 8);
        }
        out
    }

    /// The indicator of `variable_length_32_enc`.
    fn variable(&self, field: impl Fn(&Header) -> u32 + Copy) -> u32 {
        if self.same(field) {
            0
        } else if self.reaches(VARIABLE[0], field) {
            1
        } else if self.reaches(VARIABLE[1], field) {
            2
        } else {
            3
        }
    }
}

fn push_variable(indicator: u32, value: u32, out: &mut BitWriter) {
    match indicator {
        1 => out.push(VARIABLE[0].encode(value), 8),
        2 => out.push(VARIABLE[1].encode(value), 16),
        3 => out.push(value, 32),
        _ => {}
    }
}

/// The index of RST, SYN, FIN; `None` if more than one is set (RFC 6846 §8.2, `rsf_index_enc`).
pub(crate) fn rsf_index(rsf: u8) -> Option<u32> {
    RSF.iter()
        .position(|&flags| flags == rsf)
        .map(|at| at as u32)
}
