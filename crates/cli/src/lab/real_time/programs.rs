//! The programs of a run: both ends of a download, each on its host.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use tack_emulator::Host;
use tack_io::namespace::Namespace;
use tack_io::within;
use tack_lab::{Stack, Taking, Tuning};

use super::outcome::Outcome;
use super::plan::{Plan, Trouble, UNREACHED};
use super::seldom;

/// How long a run may take beyond its own time.
const PATIENCE: Duration = Duration::from_secs(15);

/// The most that buffers of TCP hold: several times what any of the paths does.
const BUFFER: &str = "67108864";

/// What a buffer of TCP begins with, unless its program reads seldom.
const FIRST_BUFFER: &str = "131072";

/// Time that a receiving program has to listen.
const LISTENING: Duration = Duration::from_millis(300);

/// Seconds between looks at the sender's window.
const INTERVAL: &str = "0.1";

/// A program under way; killed when dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

impl Program {
    /// What it has printed when it has ended.
    fn finish(mut self, limit: Duration) -> Result<String, Trouble> {
        let mut stdout = self.0.stdout.take();
        limited(limit, move || {
            let mut text = String::new();
            if let Some(stdout) = &mut stdout {
                let _cut = stdout.read_to_string(&mut text);
            }
            text
        })
    }

    /// What it prints from here on.
    fn lines(&mut self) -> Result<Lines, Trouble> {
        let output = self.0.stdout.take().ok_or_else(|| Trouble::no("output"))?;
        Ok(Lines(BufReader::new(output)))
    }
}

/// What a program prints, line by line.
struct Lines(BufReader<ChildStdout>);

impl Lines {
    /// The next line; an empty text at the end.
    fn next(self, limit: Duration) -> Result<(String, Self), Trouble> {
        let Self(mut output) = self;
        let (read, output) = limited(limit, move || {
            let mut line = String::new();
            (output.read_line(&mut line).map(|_| line), output)
        })?;
        match read {
            Ok(line) => Ok((line, Self(output))),
            Err(error) => Err(Trouble::Failed(error.to_string())),
        }
    }
}

/// Calls `read` on the output of a program, on a thread that ends with the program at the latest.
fn limited<T: Send + 'static>(
    limit: Duration,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Trouble> {
    let reading = std::thread::spawn(read);
    let step = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    while !reading.is_finished() {
        if waited > limit {
            return Err(Trouble::Failed(format!(
                "a program took more than {limit:?}"
            )));
        }
        std::thread::sleep(step);
        waited += step;
    }
    reading
        .join()
        .map_err(|_| Trouble::Failed("a reader ended by a panic".into()))
}

/// Both ends of a download.
pub(super) struct Pair<'a> {
    pub(super) server: &'a Host,
    pub(super) station: &'a Host,
}

impl Pair<'_> {
    /// Moves bytes from the server to the station. Leaves the thread in a host's namespace.
    pub(super) fn download(&self, plan: &Plan, program: &Path) -> Result<Outcome, Trouble> {
        let receiver = plan.stack.receiver();
        if plan.stack == Stack::KernelWithoutGso {
            enter(&self.server.namespace)?;
            send_singly()?;
        }
        for host in [self.server, self.station] {
            enter(&host.namespace)?;
            // Buffers that do not limit, as the others have.
            let first = match receiver {
                Some(receiver) if receiver.reads_seldom() => BUFFER,
                _ => FIRST_BUFFER,
            };
            set("tcp_rmem", &format!("4096 {first} {BUFFER}"))?;
            set("tcp_wmem", &format!("4096 {FIRST_BUFFER} {BUFFER}"))?;
            if receiver.is_some() && plan.congestion != "bbr" {
                // iperf3 sets its own after the handshake, and what begins with BBR stays paced.
                // NewReno is in each kernel, and is not.
                set("tcp_congestion_control", "reno")?;
            }
        }
        if receiver.is_some_and(|receiver| !receiver.has_offload()) {
            // Each segment out of order is acknowledged, as RFC 5681 §4.2 has it, and not up to 44
            // of them at once. The thread is at the station.
            set("tcp_comp_sack_nr", "0")?;
            // Only since Linux 6.7; kernels before it defer nothing.
            let _older = set("tcp_backlog_ack_defer", "0");
        }
        match plan.stack {
            Stack::Kernel(receiver) | Stack::KernelPaced(receiver) if receiver.reads_seldom() => {
                seldom::download(self.server, self.station, plan).map(Outcome::of)
            }
            Stack::Kernel(_) | Stack::KernelPaced(_) | Stack::KernelWithoutGso => {
                self.iperf3(plan, program)
            }
            Stack::Quinn(tuning) => self.quinn(plan, program, tuning),
            Stack::Tack(taking) => self.tack(plan, program, taking),
            Stack::TackWithoutGso => self.tack(plan, program, Taking::Batches),
        }
    }

    fn iperf3(&self, plan: &Plan, program: &Path) -> Result<Outcome, Trouble> {
        let mut receiver = Command::new(program);
        receiver.args(["-s", "-1"]);
        let _receiver = start(&self.station.namespace, &mut receiver)?;
        std::thread::sleep(LISTENING);
        let mut sender = Command::new(program);
        sender
            .args(["-J", "-i", INTERVAL, "-c"])
            .arg(self.station.ipv4.to_string())
            .args(["-C", &plan.congestion])
            .args(["-t", &plan.length.as_secs_f64().ceil().to_string()])
            .args(["-O", &plan.omit.as_secs_f64().ceil().to_string()]);
        if plan.stack.is_always_paced() {
            // A limit that is never reached turns the kernel's pacing on (SO_MAX_PACING_RATE).
            sender.args(["--fq-rate", &(8 * UNREACHED).to_string()]);
        }
        let sender = start(&self.server.namespace, &mut sender)?;
        Outcome::of_iperf3(&sender.finish(plan.omit + plan.length + PATIENCE)?)
    }

    fn tack(&self, plan: &Plan, program: &Path, taking: Taking) -> Result<Outcome, Trouble> {
        let coalesce = match taking {
            Taking::Singly => "off",
            Taking::Batches => "on",
        };
        let mut receiver = Command::new(program);
        receiver
            .args(["perf", "--server", "--one-off", "--insecure", "--json"])
            .arg("--listen")
            .arg(format!("{}:7779", self.station.ipv4));
        let receiver = start(&self.station.namespace, &mut receiver)?;
        std::thread::sleep(LISTENING);
        let mut sender = Command::new(program);
        sender
            .args(["perf", "--insecure", "--json=iperf3", "-i", INTERVAL, "-c"])
            .arg(format!("{}:7779", self.station.ipv4))
            .args(["-C", &plan.congestion])
            .args(["--ack", &plan.ack, "--coalesce", coalesce, "-w", "64M"])
            .args(["-t", &format!("{}ms", plan.length.as_millis())])
            .args(["-O", &format!("{}ms", plan.omit.as_millis())]);
        if plan.stack == Stack::TackWithoutGso {
            sender.arg("--no-gso");
        }
        let sender = start(&self.server.namespace, &mut sender)?;
        let outcome = Outcome::of_iperf3(&sender.finish(plan.omit + plan.length + PATIENCE)?)?;
        Ok(match taking {
            Taking::Singly => outcome,
            Taking::Batches => outcome.with_batches(&receiver.finish(PATIENCE)?),
        })
    }

    fn quinn(&self, plan: &Plan, program: &Path, tuning: Tuning) -> Result<Outcome, Trouble> {
        let windows = (tuning == Tuning::Defaults).then_some("defaults");
        let acks = match tuning {
            Tuning::Wide | Tuning::Defaults => None,
            Tuning::AckFrequency => Some("ack-frequency"),
            Tuning::RareAcks => Some("rare-acks"),
        };
        let omit = plan.omit.as_millis().to_string();
        let mut receiver = Command::new(program);
        receiver
            .arg("receiver")
            .arg(format!("{}:0", self.station.ipv4))
            .arg(&omit)
            .args(windows);
        let mut receiver = start(&self.station.namespace, &mut receiver)?;
        let (line, lines) = receiver.lines()?.next(PATIENCE)?;
        let mut sender = Command::new(program);
        sender
            .arg("sender")
            .arg((plan.omit + plan.length).as_millis().to_string())
            .args(line.split_whitespace())
            .arg(&plan.congestion)
            .args(acks)
            .args(windows)
            .arg(format!("omit={omit}"));
        let sender = start(&self.server.namespace, &mut sender)?;
        let sent = sender.finish(plan.omit + plan.length + PATIENCE)?;
        let (line, _) = lines.next(PATIENCE)?;
        Outcome::of_quinn(&sent, &line)
    }
}

/// Sets a variable of TCP in this thread's namespace.
fn set(name: &str, value: &str) -> Result<(), Trouble> {
    std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value)
        .map_err(|error| Trouble::Failed(format!("{name}: {error}")))
}

/// Takes generic segmentation offload from the devices in this thread's namespace: the kernel's TCP
/// hands them segments one by one.
fn send_singly() -> Result<(), Trouble> {
    let failed = |what: &dyn std::fmt::Display| Trouble::Failed(format!("ip link set: {what}"));
    let mut command = Command::new("ip");
    command.args(["link", "set", "dev", "eth0", "gso_max_segs", "1"]);
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(failed(&String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(Trouble::Skipped(format!("no ip (iproute2): {error}"))),
    }
}

fn enter(namespace: &Namespace) -> Result<(), Trouble> {
    namespace
        .enter()
        .map_err(|error| Trouble::Failed(format!("cannot enter a host: {error}")))
}

/// Starts a program on a host. It ends with this thread.
fn start(namespace: &Namespace, command: &mut Command) -> Result<Program, Trouble> {
    enter(namespace)?;
    within::die_with_parent(command);
    within::with_ordinary_priority(command);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map(Program)
        .map_err(|error| {
            let name = command.get_program().display();
            Trouble::Failed(format!("cannot run {name}: {error}"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped());
        Program(command.spawn().unwrap())
    }

    #[test]
    fn a_program_that_says_nothing_is_not_waited_for() {
        let mut program = shell("echo first; exec sleep 600");
        let (line, lines) = program.lines().unwrap().next(PATIENCE).unwrap();
        assert_eq!(line, "first\n");
        let Err(Trouble::Failed(why)) = lines.next(Duration::ZERO) else {
            panic!("expected an error, got a second line");
        };
        assert!(why.contains("took more than"), "{why}");
    }
}
