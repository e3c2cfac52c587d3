//! The bars that both sides of a transfer show.

use std::time::Duration;

/// The progress of a transfer whose size is known.
pub(super) const KNOWN: &str =
    "{bar:24} {bytes}/{total_bytes} {bytes_per_sec} ETA {eta}  {wide_msg}";
/// The progress of a transfer whose size is not known.
pub(super) const UNKNOWN: &str = "{spinner} {bytes} {bytes_per_sec} {elapsed}  {wide_msg}";

/// Each side sends something once a second. After this time without anything from the other side,
/// the progress line says so.
pub(super) const QUIET: Duration = Duration::from_secs(3);
