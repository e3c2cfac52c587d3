//! The tools, each behind the same few verbs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{Background, bytes_below, free_port, run, until, wait_for_port, which};

/// The name to which others are compared.
pub(crate) const TACK: &str = "tack";

/// What a copy finds at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    Nothing,
    /// The same files, complete.
    Existing,
    /// What a transfer that was killed left.
    Partial,
}

/// Something that copies folders from one process to another.
pub(crate) trait Tool {
    fn name(&self) -> &str;

    /// Copies the folder `source` into the folder `to`, and returns when it is there.
    fn copy(&self, source: &Path, to: &Path, update: Update) -> Result<()>;

    /// Whether it takes part where the destination is empty.
    fn copies(&self) -> bool {
        true
    }

    /// Whether it takes part where the destination has the same files.
    fn updates(&self) -> bool {
        false
    }

    /// Whether it takes part where a transfer goes on that was killed.
    fn resumes(&self) -> bool {
        false
    }

    /// Begins a copy and kills it once half of the bytes are on the disk.
    fn cut_at_half(&self, _source: &Path, _to: &Path) -> Result<()> {
        bail!("{} does not resume", self.name())
    }
}

/// A name, and why it takes no part.
pub(crate) type Missing = (String, String);

/// Those that take part, in the order of the table.
pub(crate) type Tools = Vec<Box<dyn Tool>>;

/// All tools whose names begin with one of `wanted` (all if it is empty), and those that this
/// machine lacks.
pub(crate) fn all(work: &Path, wanted: &[String]) -> Result<(Tools, Vec<Missing>)> {
    let is_wanted =
        |name: &str| wanted.is_empty() || wanted.iter().any(|want| name.starts_with(want.as_str()));
    let mut tools = Tools::new();
    let mut missing = Vec::new();
    let mut lacks = |name: &str, program: &str| {
        let lacks = which(program).is_none();
        if lacks && is_wanted(name) {
            missing.push((name.to_owned(), format!("{program} is not installed")));
        }
        lacks || !is_wanted(name)
    };
    for (name, is_clear) in [(TACK, false), ("tack --insecure", true)] {
        if is_wanted(name) {
            let work = work.to_owned();
            tools.push(Box::new(Tack {
                name,
                is_clear,
                work,
            }));
        }
    }
    if !lacks("rsync daemon", "rsync") {
        let daemon = RsyncDaemon::start(work)?;
        tools.push(Box::new(Rsync {
            name: "rsync daemon",
            daemon: daemon.clone(),
            options: &[],
        }));
        tools.push(Box::new(Rsync {
            name: "rsync daemon --fsync",
            daemon: daemon.clone(),
            options: &["--fsync"],
        }));
        tools.push(Box::new(Rsync {
            name: "rsync daemon --append-verify",
            daemon: daemon.clone(),
            options: &["--append-verify"],
        }));
        tools.push(Box::new(Rsync {
            name: "rsync daemon --append-verify --fsync",
            daemon,
            options: &["--append-verify", "--fsync"],
        }));
    }
    if !lacks("ssh", "sshd") && !lacks("ssh", "ssh") {
        let server = std::rc::Rc::new(SshServer::start(work)?);
        for (name, how) in [
            ("ssh: rsync", Over::Rsync),
            ("ssh: rsync --append-verify", Over::RsyncAppending),
            ("ssh: scp", Over::Scp),
            ("ssh: tar", Over::Tar),
        ] {
            if how.is_rsync() && lacks(name, "rsync") {
                continue;
            }
            tools.push(Box::new(Ssh {
                name,
                how,
                server: server.clone(),
            }));
        }
    }
    if !lacks("wormhole", "wormhole") && !lacks("wormhole", "twist") {
        tools.push(Box::new(Wormhole::start(work)?));
    }
    if !lacks("sendme", "sendme") {
        tools.push(Box::new(Sendme));
    }
    Ok((tools, missing))
}

struct Tack {
    name: &'static str,
    /// In clear text.
    is_clear: bool,
    /// Where the two sides keep who they are.
    work: PathBuf,
}

impl Tack {
    fn command(&self, what: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tack"));
        command
            .env("TACK_STATE_DIR", self.work.join(format!("state of {what}")))
            .env_remove("TACK_TICKET")
            .arg(what);
        if self.is_clear {
            command.arg("--insecure");
        }
        command
    }

    /// A receiver, and what the sender has to be given: a ticket, or in clear text the address.
    fn receive(&self, to: &Path, update: Update) -> Result<(Background, String)> {
        let mut command = self.command("recv");
        command
            .args(["--once", "--listen", "127.0.0.1:0", "--dir"])
            .arg(to);
        if update == Update::Existing {
            command.arg("--overwrite");
        }
        let mark = if self.is_clear {
            "listening on "
        } else {
            "tack1"
        };
        let (receiver, line) = Background::start_and_wait(&mut command, mark)?;
        let mut words = line.split([' ', ',']).filter(|word| !word.is_empty());
        let target = if self.is_clear {
            words.nth(2)
        } else {
            words.find(|word| word.starts_with(mark))
        };
        let target = target.with_context(|| format!("nothing to send to in {line:?}"))?;
        Ok((receiver, target.to_owned()))
    }

    fn send(&self, source: &Path, target: &str) -> Command {
        let mut command = self.command("send");
        command.arg(source).arg(target);
        command
    }
}

impl Tool for Tack {
    fn name(&self) -> &str {
        self.name
    }

    fn copy(&self, source: &Path, to: &Path, update: Update) -> Result<()> {
        let (receiver, target) = self.receive(to, update)?;
        run(&mut self.send(source, &target))?;
        receiver.wait()
    }

    fn updates(&self) -> bool {
        true
    }

    fn resumes(&self) -> bool {
        true
    }

    fn cut_at_half(&self, source: &Path, to: &Path) -> Result<()> {
        let (receiver, target) = self.receive(to, Update::Nothing)?;
        let mut sender = Background::start(&mut self.send(source, &target))?;
        until_half(source, to, &mut sender)?;
        receiver.kill()?;
        sender.kill()
    }
}

/// A daemon of rsync that may write below the folder of the run.
struct RsyncDaemon {
    port: u16,
    work: PathBuf,
    _daemon: Background,
}

impl RsyncDaemon {
    fn start(work: &Path) -> Result<std::rc::Rc<Self>> {
        let port = free_port()?;
        let config = work.join("rsyncd.conf");
        fs::write(
            &config,
            format!(
                "use chroot = no\nlock file = {0}/rsyncd.lock\n[all]\npath = {0}\nread only = no\n{1}",
                work.display(),
                if is_root() { "uid = 0\ngid = 0\n" } else { "" }
            ),
        )?;
        let daemon = Background::start(
            Command::new("rsync")
                .args(["--daemon", "--no-detach", "--address=127.0.0.1"])
                .arg(format!("--port={port}"))
                .arg(format!("--config={}", config.display())),
        )?;
        wait_for_port(port)?;
        Ok(std::rc::Rc::new(Self {
            port,
            work: work.to_owned(),
            _daemon: daemon,
        }))
    }
}

struct Rsync {
    name: &'static str,
    daemon: std::rc::Rc<RsyncDaemon>,
    options: &'static [&'static str],
}

impl Rsync {
    fn command(&self, source: &Path, to: &Path) -> Result<Command> {
        let below = to.strip_prefix(&self.daemon.work)?;
        let mut command = Command::new("rsync");
        command.arg("-a").arg(source).arg(format!(
            "rsync://127.0.0.1:{}/all/{}/",
            self.daemon.port,
            below.display()
        ));
        Ok(command)
    }

    fn only_appends(&self) -> bool {
        self.options.contains(&"--append-verify")
    }
}

impl Tool for Rsync {
    fn name(&self) -> &str {
        self.name
    }

    fn copy(&self, source: &Path, to: &Path, update: Update) -> Result<()> {
        let mut command = self.command(source, to)?;
        if update == Update::Partial {
            command.arg("--inplace");
        }
        if update == Update::Partial || !self.only_appends() {
            command.args(self.options);
        }
        run(&mut command)
    }

    /// A tool that appends needs something to append to.
    fn copies(&self) -> bool {
        !self.only_appends()
    }

    fn updates(&self) -> bool {
        self.options.is_empty()
    }

    fn resumes(&self) -> bool {
        self.options.is_empty() || self.only_appends()
    }

    /// In place, or a receiver that is killed leaves a file that the next run does not look at.
    fn cut_at_half(&self, source: &Path, to: &Path) -> Result<()> {
        let mut sender = Background::start(self.command(source, to)?.arg("--inplace"))?;
        until_half(source, to, &mut sender)?;
        sender.kill()?;
        until_quiet(to)
    }
}

/// A server of ssh for this run alone: its keys, its port, its configuration.
struct SshServer {
    config: PathBuf,
    _server: Background,
}

impl SshServer {
    fn start(work: &Path) -> Result<Self> {
        let folder = work.join("ssh");
        fs::create_dir(&folder)?;
        for key in ["host", "user"] {
            run(Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(folder.join(key)))?;
        }
        fs::copy(folder.join("user.pub"), folder.join("authorized_keys"))?;
        let port = free_port()?;
        let at = folder.display();
        let server_config = folder.join("sshd_config");
        fs::write(
            &server_config,
            format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized_keys\n\
                 StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nPermitRootLogin yes\n\
                 Subsystem sftp internal-sftp\n"
            ),
        )?;
        let config = folder.join("ssh_config");
        fs::write(
            &config,
            format!(
                "Host bench\nHostName 127.0.0.1\nPort {port}\nIdentityFile {at}/user\nIdentitiesOnly yes\n\
                 StrictHostKeyChecking no\nUserKnownHostsFile {at}/known_hosts\nLogLevel ERROR\n"
            ),
        )?;
        if is_root() {
            // Where sshd wants to be before anybody has logged in.
            fs::create_dir_all("/run/sshd")?;
        }
        let program = which("sshd").context("sshd is not installed")?;
        let server =
            Background::start(Command::new(program).arg("-D").arg("-f").arg(server_config))?;
        wait_for_port(port)?;
        Ok(Self {
            config,
            _server: server,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Rsync,
    /// With `--append-verify`, which needs something to append to.
    RsyncAppending,
    Scp,
    Tar,
}

impl Over {
    fn is_rsync(self) -> bool {
        matches!(self, Self::Rsync | Self::RsyncAppending)
    }
}

struct Ssh {
    name: &'static str,
    how: Over,
    server: std::rc::Rc<SshServer>,
}

impl Ssh {
    fn rsync(&self, source: &Path, to: &Path) -> Command {
        let mut command = Command::new("rsync");
        command
            .args(["-a", "-e"])
            .arg(format!("ssh -F {}", self.server.config.display()))
            .arg(source)
            .arg(format!("bench:{}/", to.display()));
        command
    }
}

impl Tool for Ssh {
    fn name(&self) -> &str {
        self.name
    }

    fn copy(&self, source: &Path, to: &Path, update: Update) -> Result<()> {
        let config = &self.server.config;
        match self.how {
            Over::Rsync | Over::RsyncAppending => {
                let mut command = self.rsync(source, to);
                if update == Update::Partial {
                    command.arg("--inplace");
                    if self.how == Over::RsyncAppending {
                        command.arg("--append-verify");
                    }
                }
                run(&mut command)
            }
            Over::Scp => run(Command::new("scp")
                .args(["-q", "-r", "-F"])
                .arg(config)
                .arg(source)
                .arg(format!("bench:{}/", to.display()))),
            Over::Tar => {
                let parent = source.parent().context("a folder above the source")?;
                let name = source.file_name().context("a name of the source")?;
                let script =
                    r#"set -o pipefail; tar -C "$1" -c "$2" | ssh -F "$3" bench tar -C "$4" -x"#;
                run(Command::new("bash")
                    .args(["-c", script, "tar"])
                    .arg(parent)
                    .arg(name)
                    .arg(config)
                    .arg(to))
            }
        }
    }

    fn copies(&self) -> bool {
        self.how != Over::RsyncAppending
    }

    fn updates(&self) -> bool {
        self.how == Over::Rsync
    }

    fn resumes(&self) -> bool {
        self.how.is_rsync()
    }

    fn cut_at_half(&self, source: &Path, to: &Path) -> Result<()> {
        let mut sender = Background::start(self.rsync(source, to).arg("--inplace"))?;
        until_half(source, to, &mut sender)?;
        sender.kill()?;
        until_quiet(to)
    }
}

/// magic-wormhole, with a mailbox server for this run.
struct Wormhole {
    relay: String,
    _mailbox: Background,
}

impl Wormhole {
    fn start(work: &Path) -> Result<Self> {
        let port = free_port()?;
        let mailbox = Background::start(
            Command::new("twist")
                // It keeps a database where it is.
                .current_dir(work)
                .arg("wormhole-mailbox")
                .arg(format!("--port=tcp:{port}:interface=127.0.0.1")),
        )?;
        wait_for_port(port)?;
        Ok(Self {
            relay: format!("ws://127.0.0.1:{port}/v1"),
            _mailbox: mailbox,
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new("wormhole");
        // Both are on one machine: nothing has to be relayed.
        command
            .arg("--relay-url")
            .arg(&self.relay)
            .args(["--transit-helper", "tcp:127.0.0.1:1"]);
        command
    }
}

impl Tool for Wormhole {
    fn name(&self) -> &str {
        "wormhole"
    }

    fn copy(&self, source: &Path, to: &Path, _update: Update) -> Result<()> {
        const CODE: &str = "7-bench-files";
        let sender = Background::start(
            self.command()
                .args(["send", "--hide-progress", "--code", CODE])
                .arg(source),
        )?;
        let name = source.file_name().context("a name of the source")?;
        run(self
            .command()
            .args([
                "receive",
                "--hide-progress",
                "--accept-file",
                "--output-file",
            ])
            .arg(to.join(name))
            .arg(CODE))?;
        sender.wait()
    }
}

struct Sendme;

impl Tool for Sendme {
    fn name(&self) -> &str {
        "sendme"
    }

    fn copy(&self, source: &Path, to: &Path, _update: Update) -> Result<()> {
        let parent = source.parent().context("a folder above the source")?;
        let (_sender, line) = Background::start_and_wait(
            Command::new("sendme")
                .args(["send", "--relay", "disabled"])
                .arg(source)
                .current_dir(parent),
            "sendme receive ",
        )?;
        let ticket = line.rsplit(' ').next().context("a ticket")?;
        run(Command::new("sendme")
            .args(["receive", "--relay", "disabled", ticket])
            .current_dir(to))
    }
}

/// Waits until half of the bytes of `source` are below `to`; fails if `sender` ended before.
fn until_half(source: &Path, to: &Path, sender: &mut Background) -> Result<()> {
    let half = bytes_below(source) / 2;
    until("half of the bytes", || {
        if sender.has_ended() {
            bail!("the transfer ended before it could be killed at half");
        }
        Ok(bytes_below(to) >= half)
    })
}

/// Waits until nobody writes below `folder` any more.
pub(crate) fn until_quiet(folder: &Path) -> Result<()> {
    let mut before = u64::MAX;
    until("the receiver to end", || {
        let now = bytes_below(folder);
        let quiet = now == before;
        before = now;
        std::thread::sleep(Duration::from_millis(300));
        Ok(quiet)
    })
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
