//! `tack emulate exec` and `tack emulate shell`: a program on a host of a running emulation.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tack_io::within;

use super::args::{ExecArgs, ShellArgs};
use super::control::{self, Entrance};
use crate::exit::{self, Exit, Failure};
use crate::signals::Signals;

/// What a program that is asked to end has time for.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs a program, and ends this process with its exit code.
pub(super) async fn exec(args: ExecArgs) -> Result<Exit, Failure> {
    run(&args.name, &args.host, &args.program).await
}

/// Runs a shell.
pub(super) async fn shell(args: ShellArgs) -> Result<Exit, Failure> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| "/bin/sh".into());
    if io::stderr().is_terminal() {
        eprintln!("on {}; `exit` leaves it", args.host);
    }
    run(&args.name, &args.host, &[shell]).await
}

/// Must run on the program's main thread: the kernel ends the program with the thread that has
/// started it.
async fn run(name: &str, host: &str, program: &[OsString]) -> Result<Exit, Failure> {
    let Entrance {
        namespace,
        hosts_file,
        stream,
    } = control::enter(name, host)?;
    let cannot = |what: &'static str| {
        move |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => Failure::plain(format!(
                "cannot {what}: {error}; this needs root (CAP_SYS_ADMIN)"
            )),
            _ => Failure::failed(format!("cannot {what}"), error),
        }
    };
    let mut signals = Signals::new()?;
    let [first, rest @ ..] = program else {
        return Err(Failure::usage("expected a program to run"));
    };
    // No other task runs on this thread before the program has started.
    namespace.enter().map_err(cannot("enter the host"))?;
    within::private_mounts().map_err(cannot("have mounts apart"))?;
    let covered = within::cover_file(Path::new("/etc/hosts"), &hosts_file);
    if let Err(error) = covered.and_then(|()| within::mount_sys()) {
        eprintln!("tack: names of hosts or /sys may be those of this machine: {error}");
    }
    let mut command = Command::new(first);
    command
        .args(rest)
        .env("TACK_EMULATE_NAME", name)
        .env("TACK_EMULATE_HOST", host);
    within::die_with_parent(&mut command);
    let mut child = match tokio::process::Command::from(command).spawn() {
        Ok(child) => child,
        Err(error) => {
            let (code, words) = exit::not_run(first, &error);
            eprintln!("tack: {words}");
            std::process::exit(code.into());
        }
    };
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(Pid::from_raw);
    let pass_on = |signal| {
        if let Some(pid) = pid {
            // It may have ended.
            let _gone = kill_process(pid, signal);
        }
    };
    stream
        .set_read_timeout(None)
        .and_then(|()| stream.set_nonblocking(true))
        .map_err(cannot("watch the emulation"))?;
    let stream = tokio::net::UnixStream::from_std(stream).map_err(cannot("watch the emulation"))?;
    // Ctrl-C at a terminal reaches the program by itself.
    let is_terminal = io::stdin().is_terminal();
    loop {
        tokio::select! {
            status = child.wait() => {
                let status = status.map_err(cannot("wait for the program"))?;
                std::process::exit(exit::code_of(status).into());
            }
            signal = signals.next() => match signal {
                Exit::Interrupted if is_terminal => {}
                Exit::Interrupted => pass_on(Signal::INT),
                _ => pass_on(Signal::TERM),
            },
            () = ended(&stream) => break,
        }
    }
    pass_on(Signal::TERM);
    if tokio::time::timeout(FAREWELL, child.wait()).await.is_err() {
        pass_on(Signal::KILL);
        let _status = child.wait().await;
    }
    Err(Failure::plain(
        "the emulation has ended, and the program with it",
    ))
}

/// Returns when the emulation has ended.
async fn ended(stream: &tokio::net::UnixStream) {
    let mut bytes = [0; 16];
    loop {
        if stream.readable().await.is_err() {
            return;
        }
        match stream.try_read(&mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
