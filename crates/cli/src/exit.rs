//! Exit codes: part of the interface. The long help lists them from here, and `docs/cli.md` repeats
//! that list.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// What scripts may rely on, in the long help of every command.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    success; for a transfer: every file stored and confirmed with its BLAKE3 hash
  1    the transfer, test or run failed
  2    wrong usage: the command line, an address, a path on it, or the scenario file
  3    network error: cannot listen, unknown host, no answer
  4    some files were stored and confirmed, others not (each is named)
  5    the server is busy; try again later
  6    the run is not reliable: the machine did not keep up (with --require-trust)
  130  interrupted by SIGINT
  143  terminated by SIGTERM

Results go to standard output; with --json, one JSON object per line.
Messages go to standard error.
If the reader of standard output closes it early, this is not an error.";

/// The exit code of commands that run a program, where that was found and cannot be run (env(1)).
const NOT_EXECUTABLE: u8 = 126;
/// The same where it was not found.
const NOT_FOUND: u8 = 127;

/// What a command exits with, and says, that could not run `program`.
pub(crate) fn not_run(program: &OsStr, error: &io::Error) -> (u8, String) {
    let name = program.display();
    match error.kind() {
        io::ErrorKind::NotFound => (NOT_FOUND, format!("{name}: command not found")),
        _ => (NOT_EXECUTABLE, format!("cannot run {name}: {error}")),
    }
}

/// What a command exits with that has run a program, as a shell has it: the program's code, or 128
/// and the number of the signal that ended it.
pub(crate) fn code_of(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        // What a program exits with has 8 bits (wait(2)).
        (Some(code), _) => code as u8,
        (None, signal) => 128 + signal.unwrap_or_default() as u8,
    }
}

/// How the program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// Success; for a transfer: everything is stored and confirmed.
    Done = 0,
    /// The transfer, test or run failed.
    Failed = 1,
    /// The command line, an address, a path named on it or a scenario file is wrong: nothing was
    /// attempted.
    Usage = 2,
    /// A network error: cannot listen on the address, unknown host, or no answer.
    Network = 3,
    /// Some files were stored and confirmed, others not; each of the others was named.
    Partial = 4,
    /// The server has its maximum of clients: another attempt may succeed later.
    Busy = 5,
    /// The machine was late, so that the results are unreliable (with `--require-trust`).
    Untrusted = 6,
    /// Interrupted by SIGINT.
    Interrupted = 130,
    /// Terminated by SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// What the shell sees.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error on its way to `main`, with the exit code it means.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    /// A wrong command line or input, described by `message`.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Usage,
            error: anyhow::anyhow!("{message}"),
        }
    }

    /// The network failed: no address, nothing to listen on, no answer.
    pub(crate) fn network(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Network,
            error: anyhow::anyhow!("{message}"),
        }
    }

    /// A network error: no program listens where one was expected.
    pub(crate) fn closed_port(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Network,
            error: ClosedPort(message.to_string()).into(),
        }
    }

    /// The server is busy.
    pub(crate) fn busy(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Busy,
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

    /// Standard output cannot be written to.
    pub(crate) fn output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::failed("standard output", OutputClosed)
        } else {
            Self::failed("cannot write to standard output", error)
        }
    }

    /// True when the other side's system answers, and no program listens there.
    pub(crate) fn is_closed_port(&self) -> bool {
        self.error.chain().any(|cause| cause.is::<ClosedPort>())
    }

    /// True when the reader of our standard output closed it: that is not a failure.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.error.chain().any(|cause| cause.is::<OutputClosed>())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

/// No program listens where one was expected.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ClosedPort(String);

/// The reader of our standard output closed it.
#[derive(Debug)]
pub(crate) struct OutputClosed;

impl fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output is closed")
    }
}

impl std::error::Error for OutputClosed {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first column of the lines of `text` that begin with `margin` and a number.
    fn codes(text: &str, margin: &str) -> Vec<u8> {
        text.lines()
            .filter_map(|line| line.strip_prefix(margin)?.split_whitespace().next())
            .filter_map(|code| code.parse().ok())
            .collect()
    }

    #[test]
    fn help_and_documentation_list_every_code() {
        let all = [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::Network,
            Exit::Partial,
            Exit::Busy,
            Exit::Untrusted,
            Exit::Interrupted,
            Exit::Terminated,
        ];
        let all = all.map(|exit| exit as u8);
        assert_eq!(codes(EXIT_CODES, "  "), all);
        let page = include_str!("../../../docs/cli.md");
        let (_, list) = page.split_once("## Exit codes").unwrap();
        let (list, _) = list.split_once("\n## ").unwrap();
        assert_eq!(codes(list, "| "), all);
    }
}
