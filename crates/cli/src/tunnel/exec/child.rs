//! The command while it runs: its end, and the signals that are for it.

use std::io;
use std::process::{ExitCode, ExitStatus};

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::task::JoinHandle;

use super::inside::Inside;
use super::rights;
use crate::exit::{self, Failure};

/// A signal, and whether a terminal sends it to all of its foreground.
const FORWARDED: [(Signal, bool); 6] = [
    (Signal::TERM, false),
    (Signal::HUP, false),
    (Signal::USR1, false),
    (Signal::USR2, false),
    (Signal::INT, true),
    (Signal::QUIT, true),
];

/// The command.
pub(super) struct Child {
    pid: Pid,
    socket: std::os::unix::net::UnixStream,
    ended: JoinHandle<io::Result<ExitStatus>>,
    signals: Vec<(Signal, bool, Signals)>,
}

impl Child {
    /// Watches the inner process, and takes signals for it from now on.
    pub(super) fn new(inside: Inside) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::failed("cannot handle signals", error);
        let Inside {
            mut process,
            socket,
            ..
        } = inside;
        let mut signals = Vec::new();
        for (number, of_terminal) in FORWARDED {
            let kind = SignalKind::from_raw(number.as_raw());
            signals.push((number, of_terminal, signal(kind).map_err(failed)?));
        }
        Ok(Self {
            pid: Pid::from_child(&process),
            socket,
            ended: tokio::task::spawn_blocking(move || process.wait()),
            signals,
        })
    }

    /// Has the inner process become the command.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        rights::send(&self.socket, b"go", None)
            .map_err(|error| Failure::failed("the inner process is gone", error))
    }

    /// Forwards signals until the command has ended; what the shell is to see.
    pub(super) async fn ended(&mut self) -> Result<ExitCode, Failure> {
        let status = loop {
            let mut arrived = None;
            let next = std::future::poll_fn(|cx| {
                for (number, of_terminal, signals) in &mut self.signals {
                    if signals.poll_recv(cx).is_ready() {
                        arrived = Some((*number, *of_terminal));
                        return std::task::Poll::Ready(());
                    }
                }
                std::task::Poll::Pending
            });
            tokio::select! {
                ended = &mut self.ended => break ended,
                () = next => {}
            }
            // One that the terminal has sent, the command has already.
            if let Some((number, of_terminal)) = arrived
                && !(of_terminal && is_foreground())
            {
                let _ = kill_process(self.pid, number);
            }
        };
        let status = status
            .map_err(io::Error::from)
            .and_then(|status| status)
            .map_err(|error| Failure::failed("cannot wait for the command", error))?;
        // Why it could not become the command, if so.
        if let Ok((message, _)) = rights::receive(&self.socket)
            && let Some((_, words)) = message.split_first()
        {
            eprintln!("tack: {}", String::from_utf8_lossy(words));
        }
        Ok(exit::code_of(status).into())
    }
}

/// True when this program is in the foreground of a terminal, which then sends its signals to the
/// command, too.
fn is_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp()))
}
