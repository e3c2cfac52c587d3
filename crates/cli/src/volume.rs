//! How much a command says on standard error.

/// How many messages to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Volume {
    /// Print errors only.
    Quiet,
    #[default]
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
