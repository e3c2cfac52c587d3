//! IR and IR-DYN packets (RFC 6846 §7.1): whole fields, in a static and a dynamic chain (§8.2).

use crate::bits::{BitReader, BitWriter, CompressedBytes, MAX_COMPRESSED_LEN};
use crate::context::{Context, IpIdBehavior, OptionTable, Structure};
use crate::crc::Crc;
use crate::error::DecodeError;
use crate::format::Format;
use crate::header::{Header, Ip};
use crate::list::{self, ListPlan};
use crate::options::Options;

const IR: u8 = 0b1111_1101;
const IR_DYN: u8 = 0b1111_1000;
/// The profile number of ROHC-TCP, low octet (RFC 6846 §8).
const PROFILE: u8 = 0x06;
/// Where the CRC stands, counted from the type.
const CRC_AT: usize = 2;
const TCP: u8 = 6;

/// Whether the first octet starts an IR or IR-DYN packet.
pub(crate) const fn is_ir(first: u8) -> bool {
    matches!(first, IR | IR_DYN)
}

/// The contents of an IR packet.
pub(crate) struct Read {
    pub(crate) format: Format,
    pub(crate) header: Header,
    pub(crate) context: Context,
    pub(crate) consumed: usize,
}

/// Reads an IR or IR-DYN packet behind `prefix` octets of CID; `known` is the context so far, which
/// IR-DYN needs.
pub(crate) fn read(
    bytes: &[u8],
    prefix: usize,
    known: Option<&Context>,
) -> Result<Read, DecodeError> {
    let mut bits = BitReader::new(bytes);
    for _ in 0..prefix {
        bits.take_u8()?;
    }
    let first = bits.take_u8()?;
    let profile = bits.take_u8()?;
    if profile != PROFILE {
        return Err(DecodeError::Profile(profile));
    }
    let expected = bits.take_u8()?;
    let (format, mut context) = if first == IR {
        (Format::Ir, read_static(&mut bits)?)
    } else {
        let context = known.cloned().ok_or(DecodeError::NoContext)?;
        (Format::IrDyn, context)
    };
    // A stride that does not travel stays.
    if let Some(known) = known
        && known.header.same_flow(&context.header)
    {
        context.ack_stride = known.ack_stride;
    }
    let header = read_dynamic(&mut context, &mut bits)?;
    let consumed = bits.consumed();
    let rebuilt = check(&bytes[..consumed], prefix + CRC_AT);
    if rebuilt != expected {
        return Err(DecodeError::Crc { expected, rebuilt });
    }
    Ok(Read {
        format,
        header,
        context,
        consumed,
    })
}

/// CRC-8 over the packet, with zero where the CRC stands (RFC 5795 §5.3.1.1).
fn check(packet: &[u8], crc_at: usize) -> u8 {
    // No packet is longer whose header could be written again.
    let mut cleared: CompressedBytes = packet.iter().copied().take(MAX_COMPRESSED_LEN).collect();
    if let Some(crc) = cleared.get_mut(crc_at) {
        *crc = 0;
    }
    Crc::Eight.of(&cleared)
}

fn address<const N: usize>(bits: &mut BitReader<'_>) -> Result<[u8; N], DecodeError> {
    let mut octets = [0; N];
    for octet in &mut octets {
        *octet = bits.take_u8()?;
    }
    Ok(octets)
}

fn read_static(bits: &mut BitReader<'_>) -> Result<Context, DecodeError> {
    let is_v6 = bits.take_bit()?;
    let mut flow_label = 0;
    if is_v6 {
        bits.take(2)?;
        if bits.take_bit()? {
            flow_label = bits.take(20)?;
        } else {
            bits.take(4)?;
        }
    } else {
        bits.take(7)?;
    }
    if bits.take_u8()? != TCP {
        return Err(DecodeError::Malformed("the protocol behind the IP header"));
    }
    let ip = if is_v6 {
        Ip::V6 {
            src: address::<16>(bits)?.into(),
            dst: address::<16>(bits)?.into(),
            flow_label,
        }
    } else {
        Ip::V4 {
            src: address::<4>(bits)?.into(),
            dst: address::<4>(bits)?.into(),
            id: 0,
            dont_fragment: false,
        }
    };
    let header = Header {
        ip,
        dscp: 0,
        ip_ecn: 0,
        ttl: 0,
        src_port: bits.take_u16()?,
        dst_port: bits.take_u16()?,
        seq: 0,
        ack: 0,
        reserved: 0,
        tcp_ecn: 0,
        urg: false,
        ack_flag: true,
        psh: false,
        rsf: 0,
        window: 0,
        checksum: 0,
        urgent: 0,
        options: Options::new(),
    };
    Ok(Context {
        header,
        msn: 0,
        ip_id_behavior: IpIdBehavior::Random,
        ecn_used: false,
        ack_stride: 0,
        structure: Structure::new(),
        table: OptionTable::default(),
    })
}

fn read_dynamic(context: &mut Context, bits: &mut BitReader<'_>) -> Result<Header, DecodeError> {
    let mut header = context.header.clone();
    if header.ip_id().is_some() {
        bits.take(5)?;
        header.set_dont_fragment(bits.take_bit()?);
        context.ip_id_behavior = IpIdBehavior::from_bits(bits.take(2)?);
    } else {
        context.ip_id_behavior = IpIdBehavior::Random;
    }
    header.dscp = bits.take(6)? as u8;
    header.ip_ecn = bits.take(2)? as u8;
    header.ttl = bits.take_u8()?;
    if header.ip_id().is_some() {
        let id = match context.ip_id_behavior {
            IpIdBehavior::Zero => 0,
            _ => bits.take_u16()?,
        };
        header.set_ip_id(id);
    }
    context.ecn_used = bits.take_bit()?;
    let has_stride = bits.take_bit()?;
    let ack_is_zero = bits.take_bit()?;
    let urgent_is_zero = bits.take_bit()?;
    header.reserved = bits.take(4)? as u8;
    header.tcp_ecn = bits.take(2)? as u8;
    header.urg = bits.take_bit()?;
    header.ack_flag = bits.take_bit()?;
    header.psh = bits.take_bit()?;
    header.rsf = bits.take(3)? as u8;
    context.msn = bits.take_u16()?;
    header.seq = bits.take(32)?;
    header.ack = if ack_is_zero { 0 } else { bits.take(32)? };
    header.window = bits.take_u16()?;
    header.checksum = bits.take_u16()?;
    header.urgent = if urgent_is_zero { 0 } else { bits.take_u16()? };
    if has_stride {
        context.ack_stride = bits.take_u16()?;
    }
    let list = list::read(header.ack, context, bits)?;
    header.options.clear();
    for (_, content) in list {
        let option = content.ok_or(DecodeError::Malformed("an index without its item"))?;
        header.options.push(option);
    }
    Ok(header)
}

/// Writes an IR packet that establishes `context`, whose newest packet is that context's header.
pub(crate) fn write(context: &Context) -> CompressedBytes {
    let header = &context.header;
    let mut out = BitWriter::default();
    out.push_bytes(&[IR, PROFILE, 0]);
    write_static(header, &mut out);
    write_dynamic(context, &mut out);
    let mut packet = out.finish();
    let crc = check(&packet, CRC_AT);
    if let Some(place) = packet.get_mut(CRC_AT) {
        *place = crc;
    }
    packet
}

fn write_static(header: &Header, out: &mut BitWriter) {
    match header.ip {
        Ip::V4 { src, dst, .. } => {
            out.push_bytes(&[0, TCP]);
            out.push_bytes(&src.octets());
            out.push_bytes(&dst.octets());
        }
        Ip::V6 {
            src,
            dst,
            flow_label,
        } => {
            out.push(0b100, 3);
            out.push_bit(flow_label != 0);
            out.push(flow_label, if flow_label == 0 { 4 } else { 20 });
            out.push_bytes(&[TCP]);
            out.push_bytes(&src.octets());
            out.push_bytes(&dst.octets());
        }
    }
    out.push(u32::from(header.src_port), 16);
    out.push(u32::from(header.dst_port), 16);
}

fn write_dynamic(context: &Context, out: &mut BitWriter) {
    let header = &context.header;
    if header.ip_id().is_some() {
        out.push(0, 5);
        out.push_bit(header.dont_fragment());
        out.push(context.ip_id_behavior as u32, 2);
    }
    out.push(u32::from(header.dscp), 6);
    out.push(u32::from(header.ip_ecn), 2);
    out.push(u32::from(header.ttl), 8);
    if let Some(id) = header.ip_id()
        && context.ip_id_behavior != IpIdBehavior::Zero
    {
        out.push(u32::from(id), 16);
    }
    out.push_bit(context.ecn_used);
    out.push_bit(context.ack_stride != 0);
    out.push_bit(header.ack == 0);
    out.push_bit(header.urgent == 0);
    out.push(u32::from(header.reserved), 4);
    out.push(u32::from(header.tcp_ecn), 2);
    out.push_bit(header.urg);
    out.push_bit(header.ack_flag);
    out.push_bit(header.psh);
    out.push(u32::from(header.rsf), 3);
    out.push(u32::from(context.msn), 16);
    out.push(header.seq, 32);
    if header.ack != 0 {
        out.push(header.ack, 32);
    }
    out.push(u32::from(header.window), 16);
    out.push(u32::from(header.checksum), 16);
    if header.urgent != 0 {
        out.push(u32::from(header.urgent), 16);
    }
    if context.ack_stride != 0 {
        out.push(u32::from(context.ack_stride), 16);
    }
    ListPlan::all_items(context).write(&header.options, header.ack, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IPv4 without options, as in the first packet of `tests/vectors/in.ts_zero`.
    const PACKET: [u8; 52] = [
        0x45, 0, 0, 0x34, 0, 0, 0x40, 0, 0x40, 6, 0x6f, 0x19, 0xc0, 0xa8, 1, 2, 0x0a, 0, 0, 1,
        0x9c, 0x40, 0x13, 0x89, 0, 0, 3, 0xe8, 0, 1, 0x86, 0xa0, 0x80, 0x10, 2, 0, 0x38, 0x0f, 0,
        0, 1, 1, 8, 10, 0, 0, 0x13, 0x88, 0, 0, 0x23, 0x28,
    ];
    /// Type, profile and CRC; then version, protocol, addresses and ports.
    const STATIC: core::ops::Range<usize> = 3..3 + 1 + 1 + 8 + 4;

    fn context() -> Context {
        let mut context = Context::of_native(Header::read(&PACKET).unwrap()).unwrap();
        context.ack_stride = 2896;
        context.msn = 77;
        context
    }

    #[test]
    fn what_is_written_is_read() {
        let context = context();
        let packet = write(&context);
        let read = read(&packet, 0, None).unwrap();
        assert_eq!(read.consumed, packet.len());
        assert_eq!(read.header, context.header);
        assert_eq!((read.context.msn, read.context.ack_stride), (77, 2896));
        assert_eq!(read.context.table, context.table);
    }

    #[test]
    fn a_refresh_of_the_dynamic_chain_needs_a_context() {
        let context = context();
        let mut packet = write(&context);
        packet.drain(STATIC);
        packet[0] = IR_DYN;
        packet[CRC_AT] = check(&packet, CRC_AT);
        assert_eq!(read(&packet, 0, None).err(), Some(DecodeError::NoContext));
        let mut other = context.clone();
        other.header.ack = 9;
        other.header.options.clear();
        let read = read(&packet, 0, Some(&other)).unwrap();
        assert_eq!(read.format, Format::IrDyn);
        assert_eq!(read.header, context.header);
    }

    #[test]
    fn a_flipped_bit_is_noticed_behind_an_identifier_too() {
        let mut packet = write(&context());
        packet.insert(0, 0xe3);
        packet[1 + CRC_AT] = check(&packet, 1 + CRC_AT);
        assert!(read(&packet, 1, None).is_ok());
        for bit in 16..packet.len() * 8 {
            let mut flipped = packet.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&flipped, 1, None).is_err(), "bit {bit}");
        }
    }
}
