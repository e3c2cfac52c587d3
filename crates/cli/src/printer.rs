//! Standard output carries results, standard error carries messages.

use std::io::{self, Write};

use indicatif::HumanBytes;
use tack_base::Rate;

use crate::exit::Failure;

/// Writes to standard output at once.
pub(crate) fn write_stdout(bytes: &[u8]) -> Result<(), Failure> {
    with_stdout(|out| out.write_all(bytes))
}

/// Lets `write` write to standard output, and flushes it.
pub(crate) fn with_stdout(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out)
        .and_then(|()| out.flush())
        .map_err(Failure::output)
}

/// Bits per second as a JSON number.
pub(crate) fn bits_per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        bytes as f64 * 8.0 / seconds
    } else {
        0.0
    }
}

/// `1 file`, `3 files`.
pub(crate) fn files(count: u64) -> String {
    counted(count, "file")
}

/// `1 sender`, `3 senders`: a count with its noun, whose plural ends in s.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// `3 files, 1.00 GiB in 2.1 s, 4.09 Gbit/s`; without bytes no rate.
pub(crate) fn transferred(count: u64, bytes: u64, seconds: f64) -> String {
    if bytes == 0 {
        return format!("{}, 0 B in {seconds:.1} s", files(count));
    }
    let rate = Rate::from_bits_per_sec(bits_per_second(bytes, seconds) as u64);
    format!(
        "{}, {} in {seconds:.1} s, {rate}",
        files(count),
        HumanBytes(bytes)
    )
}
