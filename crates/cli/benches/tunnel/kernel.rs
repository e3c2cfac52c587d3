//! The same programs over the kernel's TCP, without a tunnel, on the same air: the link joins two
//! network namespaces (`tack emulate --tun`). It takes Linux and root.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::link::{ATTEMPTS, LINK, Run, doubts, rsync_config, serve_uploads};
use crate::process::{self, Background};
use crate::sides::{Side, Sides};

/// Address of the host `server`.
const SERVER: &str = "10.0.0.1";
const HTTP_PORT: u16 = 8000;
const RSYNC_PORT: u16 = 8873;
/// What a server says once it listens.
const MARK: &str = "uploads are taken";

/// Takes uploads until it is killed: what the process does that the benchmark starts on the host of
/// the server.
pub(crate) fn run() -> Result<()> {
    let address = SocketAddr::from(([0, 0, 0, 0], HTTP_PORT));
    let listener = std::net::TcpListener::bind(address)?;
    println!("{MARK}");
    serve_uploads(&listener);
    Ok(())
}

/// A link between two hosts.
struct Hosts<'a> {
    sides: &'a Sides,
    name: String,
}

impl Hosts<'_> {
    /// A program on a host.
    fn command(&self, host: &str, program: &str) -> Command {
        let arguments = ["emulate", "exec", "--name", &self.name, host, "--", program];
        self.sides.tack(Side::Client, &arguments)
    }

    fn shell(&self, host: &str, line: &str) -> Result<()> {
        let mut command = self.command(host, "sh");
        process::run(command.args(["-c", line]))
    }
}

/// Which of the two.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    Curl,
    Rsync,
}

/// Has a program upload `path`, of so many bytes, until the run is to be trusted; and says which
/// congestion control it had.
///
/// # Errors
/// The link cannot be made: the program is too old, or the system does not permit it.
pub(crate) fn upload(
    sides: &Sides,
    program: Program,
    path: &Path,
    bytes: usize,
) -> Result<(Run, &'static str)> {
    let bits = bytes as f64 * 8.0 / 1e6;
    let mut attempt = 1;
    loop {
        let name = format!("bench{}", std::process::id());
        let mut arguments = vec!["emulate", "--tun", "--name", &name];
        arguments.extend(LINK);
        let mut command = sides.tack(Side::Client, &arguments);
        let (link, _) = Background::start_and_wait(&mut command, "\"ready\"")?;
        let hosts = Hosts { sides, name };
        // The congestion control of the tunnels, where the kernel has it.
        let bbr = "echo bbr >/proc/sys/net/ipv4/tcp_congestion_control";
        let congestion = match hosts.shell("sta0", bbr) {
            Ok(()) => "bbr",
            Err(_) => "the kernel's usual congestion control",
        };
        let (_server, mut command) = match program {
            Program::Curl => curl(&hosts, path)?,
            Program::Rsync => rsync(&hosts, path)?,
        };
        let began = Instant::now();
        process::run(&mut command)?;
        let rate = bits / began.elapsed().as_secs_f64();
        let doubts = doubts(link)?;
        if doubts.is_none() || attempt == ATTEMPTS {
            return Ok((Run { rate, doubts }, congestion));
        }
        attempt += 1;
    }
}

fn curl(hosts: &Hosts<'_>, path: &Path) -> Result<(Background, Command)> {
    let own = std::env::current_exe()?;
    let mut server = hosts.command("server", own.to_str().context("a path")?);
    let (server, _) = Background::start_and_wait(server.arg("--uploads"), MARK)?;
    let mut command = hosts.command("sta0", "curl");
    command.args(["-sS", "--fail", "--noproxy", "*", "-H", "Expect:", "-T"]);
    command
        .arg(path)
        .arg(format!("http://{SERVER}:{HTTP_PORT}/file"));
    Ok((server, command))
}

fn rsync(hosts: &Hosts<'_>, path: &Path) -> Result<(Background, Command)> {
    let folder = hosts.sides.folder.path();
    let config = folder.join("rsyncd-of-kernel.conf");
    let inbox = folder.join("by-kernel");
    fs::create_dir_all(&inbox)?;
    fs::write(&config, rsync_config(&inbox))?;
    let mut server = hosts.command("server", "rsync");
    server
        .args(["--daemon", "--no-detach"])
        .arg(format!("--address={SERVER}"))
        .arg(format!("--port={RSYNC_PORT}"))
        .arg(format!("--config={}", config.display()));
    let server = Background::start(&mut server)?;
    let listens =
        format!("until rsync rsync://{SERVER}:{RSYNC_PORT}/ >/dev/null; do sleep 0.1; done");
    hosts.shell("server", &listens)?;
    let mut command = hosts.command("sta0", "rsync");
    command.args(["--whole-file", "--ignore-times"]).arg(path);
    command.arg(format!("rsync://{SERVER}:{RSYNC_PORT}/inbox/"));
    Ok((server, command))
}
