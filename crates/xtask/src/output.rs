//! What a command prints. A reader may leave early, as `head` does.

use std::io::{self, Write};

/// Writes a line or more to standard output. A closed pipe is not an error: nobody reads on, and
/// the command still says by its exit code what it found.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
