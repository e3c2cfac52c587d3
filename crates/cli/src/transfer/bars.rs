//! The bars that both sides of a transfer show.

use std::time::Duration;

/// The progress of a transfer whose size is known.
pub(super) const KNOWN: &str =
    "{bar:24} {bytes}/{total_bytes} {bytes_per_sec} ETA {eta}  {wide_msg}";
/// The progress of a transfer whose size is not known.
pub(super) const UNKNOWN: &str = "{spinner} {bytes} {bytes_per_sec} {elapsed}  {wide_msg}";

/// Each side sends something once a second. After this time without anything from the other side,
/// the progress line says so.
const QUIET: Duration = Duration::from_secs(3);

/// What a side does about a connection that was lost, in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recovery {
    /// It connects again.
    Reconnecting,
    /// It waits for the receiver, which connects again.
    WaitingForReceiver,
}

impl Recovery {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Reconnecting => "reconnecting",
            Self::WaitingForReceiver => "waiting for the receiver to come back",
        }
    }
}

/// What a progress line says while the other side is silent, or the connection is lost; `None`
/// while all is well.
pub(super) fn stalled(silent: Duration, recovery: Option<Recovery>) -> Option<String> {
    let seconds = silent.as_secs();
    match recovery {
        Some(recovery) => Some(format!("stalled for {seconds} s, {}", recovery.words())),
        None => (silent >= QUIET).then(|| format!("stalled for {seconds} s")),
    }
}

/// What helps after a transfer that can go on ended before its end.
pub(super) const SAME_AGAIN: &str = "the same command given again goes on where this one was";
