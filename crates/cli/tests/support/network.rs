//! Machines of a test: network namespaces with cables between them. They take root and iproute2.

use std::ffi::OsStr;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{Running, tack};

/// Network namespaces. When it is dropped, they are gone, and so are the programs in them.
pub(crate) struct Network {
    names: Vec<String>,
    cables: u32,
    /// Ends the watches of [`Network::end_after`] when it is dropped.
    watched: Vec<Sender<()>>,
}

/// A network, unless this process may have none: then it says why the test is skipped.
pub(crate) fn network(
    hosts: usize,
    build: impl FnOnce(&mut Network) -> Result<(), String>,
) -> Option<Network> {
    let made = Network::new(hosts).and_then(|mut network| {
        build(&mut network)?;
        Ok(network)
    });
    match made {
        Ok(network) => Some(network),
        Err(why) => {
            tack_skip::skipped(format_args!("no network namespaces: {why}"));
            None
        }
    }
}

/// Does something in a network namespace, where its sockets and threads are then.
#[allow(dead_code, reason = "not every test binary enters one")]
pub(crate) fn within<T: Send>(namespace: &std::path::Path, work: impl FnOnce() -> T + Send) -> T {
    let file = std::fs::File::open(namespace).unwrap();
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            let namespace: tack_io::namespace::Namespace = std::os::fd::OwnedFd::from(file).into();
            namespace.enter().unwrap();
            work()
        });
        let done = working.join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl Network {
    fn new(hosts: usize) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |host| format!("tack-{}-{number}-{host}", std::process::id());
        let network = Self {
            names: (0..hosts).map(name).collect(),
            cables: 0,
            watched: Vec::new(),
        };
        for name in &network.names {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok(network)
    }

    /// The namespace of a host, as a file.
    #[allow(dead_code, reason = "not every test binary enters one")]
    pub(crate) fn namespace(&self, host: usize) -> std::path::PathBuf {
        std::path::Path::new("/run/netns").join(&self.names[host])
    }

    /// A cable between two hosts, each with these addresses (with the length of the prefix).
    pub(crate) fn cable(
        &mut self,
        (a, a_addresses): (usize, &[&str]),
        (b, b_addresses): (usize, &[&str]),
    ) -> Result<(), String> {
        let link = format!("veth{}", self.cables);
        self.cables += 1;
        let peer = &self.names[b];
        self.host(
            a,
            &format!("link add {link} type veth peer name {link} netns {peer}"),
        )?;
        for (host, addresses) in [(a, a_addresses), (b, b_addresses)] {
            for address in addresses {
                // An address of IPv6 would have to wait until it is known to be the only one.
                let now = if address.contains(':') { " nodad" } else { "" };
                self.host(host, &format!("addr add {address} dev {link}{now}"))?;
            }
            self.host(host, &format!("link set {link} up"))?;
        }
        self.wait_until_up(a, &link)?;
        self.wait_until_up(b, &link)
    }

    /// The kernel says up to a second later that a link is up, and programs leave out the addresses
    /// of one that is not.
    fn wait_until_up(&self, host: usize, link: &str) -> Result<(), String> {
        let line = format!("-n {} link show dev {link}", self.names[host]);
        for _ in 0..1_000 {
            if ip(&line)?.contains(" state UP ") {
                return Ok(());
            }
            sleep(Duration::from_millis(10));
        }
        Err(format!("{link} is not up after 10 s"))
    }

    /// Runs `ip` on a host.
    pub(crate) fn host(&self, host: usize, line: &str) -> Result<(), String> {
        ip(&format!("-n {} {line}", self.names[host]))?;
        Ok(())
    }

    /// The file that names the namespace of a host.
    pub(crate) fn path(&self, host: usize) -> PathBuf {
        Path::new("/run/netns").join(&self.names[host])
    }

    /// Kills whatever runs on the hosts after this time, so that a test that hangs ends.
    pub(crate) fn end_after(&mut self, limit: Duration) {
        let (watched, watch) = channel();
        self.watched.push(watched);
        let names = self.names.clone();
        std::thread::spawn(move || {
            let mut wait = limit;
            while watch.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                eprintln!("the test took more than {limit:?}: its programs are killed");
                kill_all(&names);
                // What is started later has no more time.
                wait = Duration::from_millis(100);
            }
        });
    }

    /// Any program on a host.
    #[allow(dead_code, reason = "not every test binary has one to run")]
    pub(crate) fn command(&self, host: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.names[host], program])
            .stdin(Stdio::null());
        command
    }

    /// A program on a host, once it serves at this address and port.
    ///
    /// # Panics
    /// If it ends before it does, with what it said, or does not serve after 3,000 tries, which
    /// take a minute.
    pub(crate) fn serving(&self, host: usize, command: &mut Command, at: (&str, u16)) -> Running {
        let mut running = Running::start(command);
        within(&self.namespace(host), || {
            for _ in 0..3_000 {
                if TcpStream::connect(at).is_ok() {
                    return;
                }
                if running.child.try_wait().unwrap().is_some() {
                    panic!("{command:?} ended: {:?}", running.ended());
                }
                sleep(Duration::from_millis(20));
            }
            panic!("{command:?} does not serve at {at:?}");
        });
        running
    }

    /// `tack` on a host, for a person whose files are in `state`.
    pub(crate) fn tack(&self, host: usize) -> Command {
        self.program(host, tack().get_program())
    }

    /// A program on a host. It has mounts of its own.
    pub(crate) fn program(&self, host: usize, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.names[host]])
            .arg(program)
            .env_remove("TACK_TICKET")
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        kill_all(&self.names);
        for name in &self.names {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

/// Kills the processes in these namespaces.
fn kill_all(names: &[String]) {
    for name in names {
        let listed = ip(&format!("netns pids {name}")).unwrap_or_default();
        for pid in listed.lines().filter_map(|line| line.parse().ok()) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// What `ip` says.
fn ip(line: &str) -> Result<String, String> {
    let run = Command::new("ip").args(line.split(' ')).output();
    let output = run.map_err(|error| format!("no ip command: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {line}: {}", words.trim()))
}
