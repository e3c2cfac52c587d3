//! Reads the two files of a vector: packets, and what a compressor made of each.

use anyhow::{Context, Result, bail, ensure};

/// One packet of a vector.
pub(crate) struct Vector {
    /// Number in the file, from 0.
    pub(crate) number: usize,
    /// The packet as it was.
    pub(crate) packet: Vec<u8>,
    /// The compressed packet.
    pub(crate) compressed: Vec<u8>,
    /// The name of the format, as the compressor that wrote the file has it.
    pub(crate) format: String,
}

impl Vector {
    /// Whether the compressed packet is one of the CO formats; else it initialises or refreshes.
    pub(crate) fn is_co(&self) -> bool {
        !self.format.starts_with("IR")
    }
}

/// Reads both files: `packets` has one packet in hex on each line, `compressed` one line for each
/// of them, which ends in the compressed packet in hex and names its format as `type=…`.
pub(crate) fn read(packets: &str, compressed: &str) -> Result<Vec<Vector>> {
    let lines = |text: &str| -> Vec<(usize, String)> {
        (1..)
            .zip(text.lines().map(str::to_owned))
            .filter(|(_, line)| !line.trim().is_empty())
            .collect()
    };
    let (packets, compressed) = (lines(packets), lines(compressed));
    ensure!(
        packets.len() == compressed.len(),
        "expected as many compressed packets as packets, got {} for {}",
        compressed.len(),
        packets.len()
    );
    ensure!(!packets.is_empty(), "expected packets, got an empty file");
    let mut vectors = Vec::new();
    for (number, ((at, packet), (line, output))) in packets.iter().zip(&compressed).enumerate() {
        let mut words = output.split_whitespace();
        let bytes = words.next_back().unwrap_or_default();
        let format = words
            .find_map(|word| word.strip_prefix("type="))
            .with_context(|| format!("expected type=FORMAT in line {line}, got {output:?}"))?;
        vectors.push(Vector {
            number,
            packet: bytes_of(packet.trim()).with_context(|| format!("packet in line {at}"))?,
            compressed: bytes_of(bytes).with_context(|| format!("output in line {line}"))?,
            format: format.rsplit('/').next().unwrap_or(format).to_owned(),
        });
    }
    Ok(vectors)
}

fn bytes_of(hex: &str) -> Result<Vec<u8>> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        bail!("expected pairs of hexadecimal digits, got {hex:?}");
    }
    (0..hex.len())
        .step_by(2)
        .map(|at| {
            u8::from_str_radix(&hex[at..at + 2], 16)
                .with_context(|| format!("expected a hexadecimal byte, got {:?}", &hex[at..at + 2]))
        })
        .collect()
}
