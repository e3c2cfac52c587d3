//! `--dask`: the Python package hands runs to the workers of a scheduler. This program looks
//! whether it can, starts it, and passes signals on.

use std::ffi::OsString;
use std::process::Stdio;

use tokio::process::Command;

use crate::exit::{Exit, Failure};
use crate::signals::Signals;

/// Names the interpreter that has the package.
const PYTHON: &str = "TACK_PYTHON";

/// A module of the Python package that does the work.
pub(crate) struct Runner {
    /// Its name in the package.
    pub(crate) module: &'static str,
    /// The function of the package's native part that has the version of the code.
    pub(crate) version: &'static str,
    /// The version that it must have.
    pub(crate) code: &'static str,
}

/// Has `runner` work with these arguments, and the scheduler at `address`.
pub(crate) async fn run(
    runner: &Runner,
    address: &str,
    arguments: Vec<OsString>,
) -> Result<Exit, Failure> {
    let python = std::env::var(PYTHON).unwrap_or_else(|_| "python3".into());
    check(&python, runner).await?;
    let mut signals = Signals::new()?;
    let mut command = Command::new(&python);
    command
        .args(["-m", &format!("tack.{}", runner.module), "--dask", address])
        .args(arguments)
        .stdin(Stdio::null())
        // A Ctrl-C of the terminal reaches it once, by us.
        .process_group(0);
    let mut child = command
        .spawn()
        .map_err(|error| cannot_start(&python, &error))?;
    loop {
        tokio::select! {
            ended = child.wait() => {
                let ended = ended.map_err(|error| Failure::failed("cannot wait for Python", error))?;
                return Ok(exit(ended.code()));
            }
            signal = signals.next() => {
                let Some(id) = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) else {
                    continue;
                };
                let signal = match signal {
                    Exit::Interrupted => rustix::process::Signal::INT,
                    _ => rustix::process::Signal::TERM,
                };
                // It may have ended just now.
                let _ = rustix::process::kill_process(id, signal);
            }
        }
    }
}

/// The package must be there, with Dask, and of the version of this program.
async fn check(python: &str, runner: &Runner) -> Result<(), Failure> {
    let script = format!(
        "import tack._core, distributed; print(tack._core.{}())",
        runner.version
    );
    let output = Command::new(python)
        .args(["-c", &script])
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| cannot_start(python, &error))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let reason = text.lines().last().unwrap_or("it gave no reason");
        return Err(Failure::usage(format!(
            "--dask needs the Python package tack with Dask, but {python} says {reason:?}; \
             install it by `pip install ./crates/py[dask]`, or name another Python by {PYTHON}"
        )));
    }
    let code = String::from_utf8_lossy(&output.stdout);
    match code.trim() == runner.code {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "the Python package tack of {python} is of another version (code {}) than this program (code {}); \
             install it again by `pip install ./crates/py[dask]`",
            code.trim(),
            runner.code
        ))),
    }
}

fn cannot_start(python: &str, error: &std::io::Error) -> Failure {
    Failure::usage(format!(
        "--dask needs Python, but {python} cannot be started: {error}; {PYTHON} names another"
    ))
}

/// The runner has the exit codes of this program.
fn exit(code: Option<i32>) -> Exit {
    match code {
        Some(0) => Exit::Done,
        Some(2) => Exit::Usage,
        Some(3) => Exit::Network,
        Some(130) => Exit::Interrupted,
        Some(143) => Exit::Terminated,
        _ => Exit::Failed,
    }
}
