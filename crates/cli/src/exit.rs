//! Exit codes: part of the interface, documented in `docs/cli.md` and in the long help.

use std::fmt;
use std::process::ExitCode;

/// How the program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// Everything asked for is done; for a transfer: stored and confirmed.
    Done = 0,
    /// The transfer, test or run failed.
    Failed = 1,
    /// The command line, an address, a path named on it or a scenario file is wrong: nothing was attempted.
    Usage = 2,
    /// The address cannot be listened on, the name has no address, or nobody answers there.
    Network = 3,
    /// Some files were stored and confirmed, others not; each of the others was named.
    Partial = 4,
    /// SIGINT cut the work off.
    Interrupted = 130,
    /// SIGTERM cut the work off.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error on its way to `main`, with the exit code it means.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    /// A wrong command line or input, in words.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Usage,
            error: anyhow::anyhow!("{message}"),
        }
    }

    /// The network does not play along.
    pub(crate) fn network(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Network,
            error: anyhow::anyhow!("{message}"),
        }
    }

    /// What was attempted failed because of `error`.
    pub(crate) fn failed(what: impl fmt::Display, error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit: Exit::Failed,
            error: error.into().context(what.to_string()),
        }
    }

    /// What was attempted failed.
    pub(crate) fn plain(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Failed,
            error: anyhow::anyhow!("{message}"),
        }
    }

    /// True when whoever read our standard output has seen enough: that is no failure.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.error
            .chain()
            .any(|cause| cause.is::<crate::printer::OutputClosed>())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}
