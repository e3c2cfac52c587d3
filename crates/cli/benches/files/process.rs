//! Other programs: run to their end, or in the background until dropped.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How long a program of [`run`] may take; unset: as long as it likes.
pub(crate) static LONGEST: OnceLock<Duration> = OnceLock::new();

/// A program took longer than [`LONGEST`], and was killed.
#[derive(Debug)]
pub(crate) struct TooLong(pub(crate) Duration);

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it took longer than {} s", self.0.as_secs_f64())
    }
}

impl std::error::Error for TooLong {}

/// Runs `command` to its end; what it says is in the error if it fails.
///
/// # Errors
/// [`TooLong`], among others.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // With all that it starts.
        .process_group(0)
        .spawn()
        .with_context(|| format!("{command:?}"))?;
    let mut stderr = child.stderr.take().context("standard error")?;
    let said = std::thread::spawn(move || {
        let mut said = Vec::new();
        // What could be read is worth more than why the rest could not.
        let _ = stderr.read_to_end(&mut said);
        said
    });
    let status = end(&mut child, began)?;
    let said = said.join().unwrap_or_default();
    if !status.success() {
        let said = String::from_utf8_lossy(&said);
        bail!("{command:?} ended with {status}: {said}");
    }
    Ok(())
}

/// Waits for the end of a program that began then.
fn end(child: &mut Child, began: Instant) -> Result<ExitStatus> {
    let Some(longest) = LONGEST.get() else {
        return Ok(child.wait()?);
    };
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if began.elapsed() > *longest {
            let group = Pid::from_child(child);
            kill_process_group(group, Signal::KILL)?;
            child.wait()?;
            return Err(TooLong(*longest).into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A program in the background; killed when dropped.
pub(crate) struct Background {
    child: Child,
    /// Reads what it says to the end, and gives the last line.
    listening: Option<JoinHandle<String>>,
}

impl Background {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{command:?}"))?;
        Ok(Self {
            child,
            listening: None,
        })
    }

    /// Starts it and waits for a line of standard output or error that has `mark` in it; gives that
    /// line.
    pub(crate) fn start_and_wait(command: &mut Command, mark: &str) -> Result<(Self, String)> {
        let (reader, writer) = std::io::pipe()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .spawn()
            .with_context(|| format!("{command:?}"))?;
        let mut this = Self {
            child,
            listening: None,
        };
        // The command keeps its ends of the pipe, which would never end.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut lines = BufReader::new(reader).lines();
        let mut all = String::new();
        for line in lines.by_ref() {
            let line = line?;
            if line.contains(mark) {
                // Nobody must be stopped by a full pipe.
                let listening = move || lines.map_while(Result::ok).last().unwrap_or_default();
                this.listening = Some(std::thread::spawn(listening));
                return Ok((this, line));
            }
            all.push_str(&line);
            all.push('\n');
        }
        bail!("expected a line with {mark:?} from the program, got {all:?}")
    }

    /// The number of the process.
    #[allow(dead_code, reason = "one of the benchmarks asks")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, which has to be a good one.
    pub(crate) fn wait(mut self) -> Result<()> {
        let status = self.child.wait()?;
        if !status.success() {
            bail!("a program in the background ended with {status}");
        }
        Ok(())
    }

    /// Interrupts a program that was started by [`Background::start_and_wait`], as Ctrl-C does, and
    /// gives the last line of what it said.
    #[allow(dead_code, reason = "one of the benchmarks does")]
    pub(crate) fn interrupt(mut self) -> Result<String> {
        kill_process(Pid::from_child(&self.child), Signal::INT)?;
        self.child.wait()?;
        let listening = self.listening.take().context("nobody listens to it")?;
        let last = listening.join();
        last.map_err(|_| anyhow::anyhow!("the listener panicked"))
    }

    /// As kill -9 does.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A TCP port of 127.0.0.1 that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port())
}

/// Waits until something listens on a TCP port of 127.0.0.1.
pub(crate) fn wait_for_port(port: u16) -> Result<()> {
    until("a server to listen", || {
        Ok(TcpStream::connect(("127.0.0.1", port)).is_ok())
    })
}

/// Waits until `condition` holds, for a minute at most.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !condition()? {
        if start.elapsed() > Duration::from_secs(60) {
            bail!("waited a minute for {what}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Where a program is found, in the PATH or in the folders where servers are.
pub(crate) fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// All bytes of the files below a folder.
pub(crate) fn bytes_below(folder: &Path) -> u64 {
    walkdir::WalkDir::new(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|metadata| metadata.len())
        .sum()
}
