//! Whatever bytes come: no panic, and a refused packet leaves no trace.

use crate::acks::{Ack, Version};
use proptest::prelude::*;
use tack_rohc::{
    Compressor, Config, Decompressor, Delivery, MAX_COMPRESSED_LEN, MAX_PACKET_LEN, Mode,
};

fn first(version: Version, ip_id: u16) -> Ack {
    Ack {
        version,
        ip_id,
        timestamps: Some((5000, 9000)),
        sack: vec![(200_000, 201_000)],
        unknown: Some((253, vec![1, 2, 3, 4])),
        ..Ack::default()
    }
}

fn mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![Mode::Rfc, Mode::Lean, Mode::LeanNoChecksum])
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        mode in mode(),
        v6: bool,
        ip_id: u16,
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..250), 1..20),
        formats in prop::collection::vec(
            prop::sample::select(vec![0xfd_u8, 0xf8, 0xfa, 0xb0, 0xb1, 0xd0, 0x00, 0xe1]), 20),
    ) {
        let version = if v6 { Version::V6 } else { Version::V4 };
        let mut decompressor = Decompressor::new(mode);
        for (packet, format) in packets.iter().zip(formats) {
            let _ = decompressor.decompress(packet);
            let _ = decompressor.handle_native(packet);
            decompressor.handle_native(&first(version, ip_id).bytes()).unwrap();
            // Nearly a packet of one of the formats.
            let mut packet = packet.clone();
            packet.insert(0, format);
            if let Ok(rebuilt) = decompressor.decompress(&packet) {
                prop_assert!(rebuilt.packet.len() <= MAX_PACKET_LEN);
                prop_assert!(rebuilt.consumed <= packet.len());
            }
        }
    }

    #[test]
    fn a_refused_packet_leaves_no_trace(
        mode in mode(),
        ip_id: u16,
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let config = Config { mode, ..Config::default() };
        let mut compressor = Compressor::new(config);
        let mut decompressor = Decompressor::new(mode);
        let mut ack = first(Version::V4, ip_id);
        compressor.handle_native(&ack.bytes(), Delivery::Certain).unwrap();
        decompressor.handle_native(&ack.bytes()).unwrap();
        for (at, bit) in flips {
            ack.ack = ack.ack.wrapping_add(1448);
            ack.ip_id = ack.ip_id.wrapping_add(1);
            let sent = compressor.compress(&ack.bytes()).unwrap();
            prop_assert!(sent.bytes.len() <= MAX_COMPRESSED_LEN);
            let mut flipped = sent.bytes.to_vec();
            flipped[at.index(sent.bytes.len())] ^= 1 << bit;
            let mut other = decompressor.clone();
            let _ = other.decompress(&flipped);
            let mut cut_short = decompressor.clone();
            prop_assert!(cut_short.decompress(&sent.bytes[..cut.index(sent.bytes.len())]).is_err());
            let rebuilt = cut_short.decompress(&sent.bytes).unwrap();
            prop_assert_eq!(rebuilt.packet.as_slice(), &ack.bytes()[..]);
            prop_assert_eq!(decompressor.decompress(&sent.bytes).unwrap(), rebuilt);
        }
    }

    #[test]
    fn any_bytes_are_a_packet_that_comes_back_or_are_refused(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..10),
        mode in mode(),
    ) {
        let mut compressor = Compressor::new(Config { mode, robustness: 1 });
        let mut decompressor = Decompressor::new(mode);
        for tail in packets {
            // The fixed headers are right; from the TCP flags on the bytes are any.
            let mut packet = Ack::default().bytes();
            packet.truncate(33);
            packet.extend(tail);
            packet.resize(packet.len().clamp(40, 80).next_multiple_of(4), 0);
            let len = packet.len() as u8;
            packet[3] = len;
            packet[32] = ((len - 20) / 4) << 4;
            packet[10..12].fill(0);
            let checksum = tack_wire::checksum::internet(&packet[..20]);
            packet[10..12].copy_from_slice(&checksum);
            match compressor.compress(&packet) {
                Ok(sent) => {
                    let rebuilt = decompressor.decompress(&sent.bytes).unwrap();
                    prop_assert_eq!(rebuilt.packet.as_slice(), &packet[..]);
                }
                Err(_) => {
                    let native = compressor.handle_native(&packet, Delivery::Certain);
                    prop_assert_eq!(native, decompressor.handle_native(&packet));
                }
            }
        }
    }
}
