//! Header compression: whatever comes is survived, and what was compressed comes back.

use etherparse::{IpSlice, TcpSlice};
use tack_rohc::{
    Compressor, Config, Decompressor, Delivery, Format, MAX_COMPRESSED_LEN, MAX_PACKET_LEN, Mode,
};

const MODES: [Mode; 3] = [Mode::Rfc, Mode::Lean, Mode::LeanNoChecksum];

/// An acknowledgement with timestamps, a SACK block and four bytes of an option of kind 253.
const ACK: [u8; 72] = [
    0x45, 0, 0, 72, 0, 7, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2, // IPv4
    0x9c, 0x40, 0x13, 0x89, 0, 0, 3, 0xe8, 0, 1, 0x86, 0xa0, 0xd0, 0x10, 2, 0, 0, 0, 0,
    0, // TCP
    1, 1, 8, 10, 0, 0, 0x13, 0x88, 0, 0, 0x23, 0x28, // timestamps
    1, 1, 5, 10, 0, 1, 0x90, 0, 0, 1, 0x95, 0xa8, // SACK
    1, 1, 253, 6, 1, 2, 3, 4, // unknown
];

/// A mode in the first byte, then packets, each behind a byte with its length (seven bits) and
/// whether it is a native packet. A native packet establishes the first context.
pub fn rohc_packets(bytes: &[u8]) {
    let Some((mode, mut rest)) = bytes.split_first() else {
        return;
    };
    let mut decompressor = Decompressor::new(MODES[usize::from(*mode) % MODES.len()]);
    if mode & 0x80 == 0 {
        let mut ack = ACK;
        set_ip_checksum(&mut ack);
        assert_eq!(decompressor.handle_native(&ack), Ok(()));
    }
    while let Some((control, tail)) = rest.split_first() {
        let (packet, tail) = tail.split_at(tail.len().min(usize::from(control & 0x7f)));
        rest = tail;
        if control & 0x80 != 0 {
            let _ = decompressor.handle_native(packet);
            continue;
        }
        let before = decompressor.msn();
        match decompressor.decompress(packet) {
            Ok(rebuilt) => {
                assert!(rebuilt.consumed <= packet.len());
                assert!(rebuilt.packet.len() <= MAX_PACKET_LEN);
                assert_eq!(decompressor.msn(), Some(rebuilt.msn));
                let ip = IpSlice::from_slice(&rebuilt.packet).expect("an IP packet is rebuilt");
                let tcp = TcpSlice::from_slice(ip.payload().payload).expect("with TCP in it");
                assert!(tcp.payload().is_empty());
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(decompressor.msn(), before);
            }
        }
    }
}

/// Mode and robustness in the first byte, then edits of a packet, three bytes each: where, what,
/// and whether the packet is compressed then, and lost.
pub fn rohc_streams(bytes: &[u8]) {
    let [first, edits @ ..] = bytes else { return };
    let config = Config {
        mode: MODES[usize::from(first & 0xf) % MODES.len()],
        robustness: first >> 4,
    };
    let robustness = config.robustness.clamp(1, 11);
    let mut compressor = Compressor::new(config);
    let mut decompressor = Decompressor::new(config.mode);
    let mut packet = ACK;
    let mut lost_in_row = 0;
    for edit in edits.chunks_exact(3) {
        // Version, lengths and checksum of the IP header stay right, else nothing would be
        // compressed.
        let at = usize::from(edit[0]) % packet.len();
        if !matches!(at, 0 | 2 | 3 | 9..=11 | 32) {
            packet[at] = edit[1];
        }
        set_ip_checksum(&mut packet);
        if edit[2] & 1 == 0 {
            continue;
        }
        if !edit[2] & 4 == 4 {
            let address = |at: usize| [packet[at], packet[at + 1], packet[at + 2], packet[at + 3]];
            let (src, dst) = (address(12).into(), address(16).into());
            tack_wire::checksum::fill_tcp(src, dst, &mut packet[20..]);
        }
        let sent = if edit[2] & 0xf0 == 0xf0 {
            compressor.compress_ir(&packet)
        } else {
            compressor.compress(&packet)
        };
        let Ok(sent) = sent else {
            let native = compressor.handle_native(&packet, Delivery::Certain);
            assert_eq!(native, decompressor.handle_native(&packet));
            if native.is_ok() {
                lost_in_row = 0;
            }
            continue;
        };
        assert!(sent.bytes.len() <= MAX_COMPRESSED_LEN);
        // An IR packet may start another flow, and then the first must arrive.
        let may_be_lost = sent.format != Format::Ir;
        if edit[2] & 2 != 0 && lost_in_row + 1 < robustness && may_be_lost {
            lost_in_row += 1;
            continue;
        }
        lost_in_row = 0;
        let rebuilt = decompressor
            .decompress(&sent.bytes)
            .expect("what was compressed is understood");
        assert_eq!(rebuilt.packet.as_slice(), packet);
        assert_eq!(rebuilt.consumed, sent.bytes.len());
        assert_eq!((rebuilt.format, rebuilt.msn), (sent.format, sent.msn));
    }
}

fn set_ip_checksum(packet: &mut [u8; 72]) {
    packet[10..12].fill(0);
    let checksum = tack_wire::checksum::internet(&packet[..20]);
    packet[10..12].copy_from_slice(&checksum);
}
