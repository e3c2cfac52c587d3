//! How long compressed acknowledgements are on a stream like that of a download over Wi-Fi.

use crate::acks::{Ack, Version};
use tack_rohc::{Compressor, Config, Decompressor, Delivery, Mode};

/// Acknowledgements of two segments each, in batches of 21 (one aggregate of 42 segments), every
/// 2.4 ms: about what 802.11n at 300 Mbit/s delivers. Both clocks tick each `tick_us`, and what is
/// echoed is one batch old.
fn mean(version: Version, mode: Mode, robustness: u8, tick_us: u32) -> f64 {
    const ACKS: u32 = 9060;
    let mut compressor = Compressor::new(Config { mode, robustness });
    let mut decompressor = Decompressor::new(mode);
    let (mut bytes, mut compressed) = (0, 0);
    for number in 0..ACKS {
        let now_us = number / 21 * 2400;
        let ack = Ack {
            version,
            ack: 100_000 + number * 2896,
            timestamps: Some((5000 + now_us / tick_us, 9000 + (now_us + 700) / tick_us)),
            ..Ack::default()
        };
        let packet = ack.bytes();
        if number == 0 {
            compressor
                .handle_native(&packet, Delivery::Certain)
                .unwrap();
            decompressor.handle_native(&packet).unwrap();
            continue;
        }
        let sent = compressor.compress(&packet).unwrap();
        let rebuilt = decompressor.decompress(&sent.bytes).unwrap();
        assert_eq!(rebuilt.packet.as_slice(), packet);
        bytes += sent.bytes.len();
        compressed += 1;
    }
    bytes as f64 / f64::from(compressed)
}

#[test]
fn mean_sizes_are_as_the_page_says() {
    for version in [Version::V4, Version::V6] {
        for (tick_us, robustness) in [(1000, 1), (1000, 4), (4000, 1), (10_000, 4)] {
            let [rfc, lean, bare] = [Mode::Rfc, Mode::Lean, Mode::LeanNoChecksum]
                .map(|mode| mean(version, mode, robustness, tick_us));
            println!("{version:?}, tick {tick_us} us, {robustness}: {rfc:.2} {lean:.2} {bare:.2}");
            // Six bytes with moved timestamps, ten without; the lean form takes one byte or none.
            assert!((9.5..10.1).contains(&rfc), "{rfc}");
            assert!((4.0..4.3).contains(&lean), "{lean}");
            assert!((lean - bare - 2.0).abs() < 0.01, "{lean} {bare}");
        }
    }
}
