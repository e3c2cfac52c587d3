//! Checks this codec against packets of another ROHC-TCP compressor.
//!
//! `cargo run -p tack-rohc --example vectors -- IN OUT`: IN has one IP packet in hex on each line,
//! OUT what the other compressor sent for it (see `tests/vectors/README.md`). Each packet of OUT is
//! decompressed and compared with IN, byte for byte, and the packets of IN are compressed by this
//! codec and rebuilt. Prints the sizes of both; fails on a difference.

mod files;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use files::Vector;
use tack_rohc::{Compressed, Compressor, Config, Decompressor, Delivery, Mode};

/// Compresses the packets, the first of which travels as it is, and checks that they come back.
fn compress(vectors: &[Vector], config: Config) -> Result<Vec<Option<Compressed>>> {
    let mut compressor = Compressor::new(config);
    let mut decompressor = Decompressor::new(config.mode);
    let mut all = Vec::new();
    for vector in vectors {
        let compressed = compressor.compress(&vector.packet).ok();
        match &compressed {
            Some(sent) => {
                let rebuilt = decompressor.decompress(&sent.bytes)?;
                if rebuilt.packet.as_slice() != vector.packet {
                    bail!("packet {}: ours comes back changed", vector.number);
                }
            }
            None => {
                compressor.handle_native(&vector.packet, Delivery::Certain)?;
                decompressor.handle_native(&vector.packet)?;
            }
        }
        all.push(compressed);
    }
    Ok(all)
}

fn mean(sizes: impl Iterator<Item = usize>) -> f64 {
    let sizes: Vec<usize> = sizes.collect();
    sizes.iter().sum::<usize>() as f64 / sizes.len().max(1) as f64
}

fn run(packets: &str, compressed: &str) -> Result<bool> {
    let read = |path: &str| std::fs::read_to_string(path).with_context(|| path.to_owned());
    let vectors = files::read(&read(packets)?, &read(compressed)?)?;
    let config = |mode| Config {
        mode,
        ..Config::default()
    };
    let rfc = compress(&vectors, config(Mode::Rfc))?;
    let lean = compress(&vectors, config(Mode::Lean))?;

    println!("packet  native  theirs             ours (rfc)         ours (lean)");
    let mut decompressor = Decompressor::new(Mode::Rfc);
    let mut differences = 0;
    let size = |sent: &Option<Compressed>, vector: &Vector| match sent {
        Some(sent) => (sent.bytes.len(), sent.format.name()),
        None => (vector.packet.len(), "native"),
    };
    for ((vector, rfc), lean) in vectors.iter().zip(&rfc).zip(&lean) {
        let verdict = match decompressor.decompress(&vector.compressed) {
            Ok(rebuilt) if rebuilt.packet.as_slice() != vector.packet => {
                Some("the rebuilt packet differs".to_owned())
            }
            Ok(rebuilt) if rebuilt.consumed != vector.compressed.len() => {
                Some(format!("{} bytes are the packet", rebuilt.consumed))
            }
            Ok(_) => None,
            Err(error) if vector.is_co() => Some(error.to_string()),
            // A kind of IR packet that this codec does not read: the packet itself establishes the
            // context.
            Err(error) => {
                println!(
                    "{:6}  {}: {error}; taken as native",
                    vector.number, vector.format
                );
                decompressor.handle_native(&vector.packet)?;
                None
            }
        };
        let ((rfc, rfc_format), (lean, lean_format)) = (size(rfc, vector), size(lean, vector));
        println!(
            "{:6}  {:6}  {:6}  {:9}  {rfc:6}  {rfc_format:9}  {lean:6}  {lean_format:9}{}",
            vector.number,
            vector.packet.len(),
            vector.compressed.len(),
            vector.format,
            verdict
                .as_deref()
                .map(|why| format!("  DIFFERS: {why}"))
                .unwrap_or_default(),
        );
        differences += usize::from(verdict.is_some());
    }
    let co = |sent: &[Option<Compressed>]| mean(sent.iter().flatten().map(|sent| sent.bytes.len()));
    println!(
        "mean of compressed packets: theirs {:.2} B, ours {:.2} B (rfc), {:.2} B (lean); {} of {} packets decoded",
        mean(
            vectors
                .iter()
                .filter(|v| v.is_co())
                .map(|v| v.compressed.len())
        ),
        co(&rfc),
        co(&lean),
        vectors.len() - differences,
        vectors.len(),
    );
    Ok(differences == 0)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [packets, compressed] = arguments.as_slice() else {
        eprintln!("usage: vectors IN OUT");
        return ExitCode::from(2);
    };
    match run(packets, compressed) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
