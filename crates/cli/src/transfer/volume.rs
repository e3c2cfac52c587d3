//! How much `tack send` and `tack recv` say on standard error.

/// How many messages to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Volume {
    /// Print errors only.
    Quiet,
    Normal,
    /// Print each file as well.
    Verbose,
}

impl Volume {
    /// From `--quiet` and `--verbose`, which exclude each other.
    pub(crate) fn from_flags(quiet: bool, verbose: bool) -> Self {
        match (quiet, verbose) {
            (true, _) => Self::Quiet,
            (_, true) => Self::Verbose,
            _ => Self::Normal,
        }
    }
}
