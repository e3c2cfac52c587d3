//! Two installations that know each other, and what they run.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::process::Background;

/// The installation that serves, and the one that connects.
pub(crate) struct Sides {
    program: PathBuf,
    pub(crate) folder: tempfile::TempDir,
}

/// Whose installation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Server,
    Client,
}

impl Sides {
    pub(crate) fn new(program: PathBuf) -> Result<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let sides = Self { program, folder };
        let key = sides.output(Side::Client, &["id"])?;
        sides.output(Side::Server, &["peers", "add", "client", &key])?;
        Ok(sides)
    }

    pub(crate) fn tack(&self, side: Side, arguments: &[&str]) -> Command {
        let state = match side {
            Side::Server => "server",
            Side::Client => "client",
        };
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("TACK_STATE_DIR", self.folder.path().join(state))
            .env_remove("TACK_TICKET")
            .current_dir(self.folder.path());
        command
    }

    fn output(&self, side: Side, arguments: &[&str]) -> Result<String> {
        let output = self.tack(side, arguments).output()?;
        let words = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "{arguments:?}: {words}");
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// A `tack serve` for any loopback target, and its process number; the client finds it at
    /// `behind`, if that is given, in place of its own address.
    pub(crate) fn serve(
        &self,
        options: &[&str],
        behind: Option<&str>,
    ) -> Result<(Background, String)> {
        let mut arguments = vec![
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--target",
            "127.0.0.1:*",
        ];
        arguments.extend(options);
        let mut command = self.tack(Side::Server, &arguments);
        let (serving, line) = Background::start_and_wait(&mut command, "serving tunnels at ")?;
        let address = line.split_whitespace().last().context("an address")?;
        self.introduce(behind.unwrap_or(address))?;
        Ok((serving, address.to_owned()))
    }

    /// Has the client know the server at this address.
    pub(crate) fn introduce(&self, address: &str) -> Result<()> {
        let key = self.output(Side::Server, &["id"])?;
        let _ = self.output(Side::Client, &["peers", "remove", "server"]);
        let add = ["peers", "add", "server", &key, "--address", address];
        self.output(Side::Client, &add)?;
        Ok(())
    }

    /// A `tack proxy`, and its address.
    pub(crate) fn proxy(&self) -> Result<(Background, SocketAddr)> {
        let arguments = ["proxy", "server:", "--listen", "127.0.0.1:0"];
        let mut command = self.tack(Side::Client, &arguments);
        let (proxy, line) = Background::start_and_wait(&mut command, " lead to ")?;
        let address = line.split_whitespace().find_map(|word| word.parse().ok());
        Ok((proxy, address.with_context(|| line.clone())?))
    }

    /// A `tack forward` of a local port to `target`, and the port's address.
    pub(crate) fn forward(
        &self,
        target: SocketAddr,
        options: &[&str],
    ) -> Result<(Background, SocketAddr)> {
        let spec = format!("0:{target}");
        let mut arguments = vec!["forward", "-L", &spec, "server:"];
        arguments.extend(options);
        let mut command = self.tack(Side::Client, &arguments);
        let (forwarding, line) = Background::start_and_wait(&mut command, " leads to ")?;
        let address = line.split_whitespace().find_map(|word| word.parse().ok());
        Ok((forwarding, address.with_context(|| line.clone())?))
    }
}

/// Permits as many open files as the system does, for this process and those that it starts.
pub(crate) fn raise_file_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).context("cannot open many files")
}

/// Highest resident memory of a process so far, MiB.
pub(crate) fn peak_memory(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: f64 = kib.context("no VmHWM")?.parse()?;
    Ok(kib / 1024.0)
}

/// Seconds of processor time that a process has taken.
pub(crate) fn processor_time(pid: u32) -> Result<f64> {
    // utime and stime (proc(5)).
    ticks(&pid.to_string(), [11, 12])
}

/// Seconds of processor time of the processes that this one has started and that have ended.
pub(crate) fn processor_time_of_children() -> Result<f64> {
    // cutime and cstime (proc(5)).
    ticks("self", [13, 14])
}

/// The sum of two fields of a process, counted from its state, in seconds.
fn ticks(process: &str, fields: [usize; 2]) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, values) = stat.rsplit_once(") ").context("no fields")?;
    let mut sum = 0.0;
    for field in fields {
        let value = values.split_whitespace().nth(field);
        sum += value.context("too few fields")?.parse::<f64>()?;
    }
    // A tick is 10 ms.
    Ok(sum / 100.0)
}
