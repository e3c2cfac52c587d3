//! Packets of another ROHC-TCP compressor (`tests/vectors/README.md`): ours decompresses them bit
//! for bit.

#[path = "../../examples/vectors/files.rs"]
mod files;

use std::fs;
use std::path::Path;

use files::Vector;
use tack_rohc::{Compressor, Config, Decompressor, Delivery, Mode};

const NAMES: [&str; 10] = [
    "dup",
    "dup_plain",
    "ece",
    "plain_rand",
    "plain_seq",
    "plain_v6",
    "plain_zero",
    "ts_seq",
    "ts_zero",
    "window",
];

fn vectors(name: &str) -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let text = |side: &str| fs::read_to_string(folder.join(format!("{side}.{name}"))).unwrap();
    files::read(&text("in"), &text("out")).unwrap()
}

#[test]
fn every_packet_of_the_other_compressor_is_rebuilt() {
    for name in NAMES {
        let mut decompressor = Decompressor::new(Mode::Rfc);
        for vector in vectors(name) {
            let rebuilt = decompressor
                .decompress(&vector.compressed)
                .unwrap_or_else(|error| panic!("{name} {}: {error}", vector.number));
            assert_eq!(
                rebuilt.packet.as_slice(),
                vector.packet,
                "{name} {}",
                vector.number
            );
            assert_eq!(rebuilt.consumed, vector.compressed.len());
            assert_eq!(rebuilt.format.name(), vector.format);
        }
    }
}

/// Where the other compressor has found its stride and sent its repetitions.
const STEADY: usize = 14;

#[test]
fn our_packets_are_as_short_within_one_byte() {
    for name in NAMES {
        let vectors = vectors(name);
        let mut compressor = Compressor::new(Config::default());
        let mut decompressor = Decompressor::new(Mode::Rfc);
        compressor
            .handle_native(&vectors[0].packet, Delivery::Certain)
            .unwrap();
        decompressor.handle_native(&vectors[0].packet).unwrap();
        let (mut ours, mut theirs) = (0, 0);
        for vector in &vectors[1..] {
            let sent = compressor.compress(&vector.packet).unwrap();
            let rebuilt = decompressor.decompress(&sent.bytes).unwrap();
            assert_eq!(rebuilt.packet.as_slice(), vector.packet);
            if vector.number >= STEADY {
                assert!(vector.is_co());
                let (our, their) = (sent.bytes.len(), vector.compressed.len());
                assert!(our <= their + 1, "{name} {}: {our} {their}", vector.number);
                ours += our;
                theirs += their;
            }
        }
        assert!(theirs <= ours + vectors.len(), "{name}: {ours} {theirs}");
    }
}
