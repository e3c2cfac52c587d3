//! Runs of `tack lab` in real time: one download at a time between two hosts of the emulator, by
//! the kernel's TCP (iperf3), by QUIC (quinn, from `bench/quinn`) or by this program.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tack_emulator::{Host, HostSettings, Hosts, Sample, Summary};
use tack_io::namespace::Namespace;
use tack_io::within;
use tack_lab::{Measure, Point, Stack, Store, Values};
use tack_sim::Scenario;
use tack_sim::scenario::Transport;

use crate::exit::Failure;

/// How often a run that the machine spoilt is made, at most.
const ATTEMPTS: u32 = 3;

/// How long a run may take beyond its own time.
const PATIENCE: Duration = Duration::from_secs(15);

/// The most that buffers of TCP hold: several times what any of the paths does.
const BUFFER: &str = "67108864";

/// Least share of the processors' time that is idle during a run which can be trusted: where there
/// is none, the programs wait for a processor, and the run says more of that than of the path.
const IDLE: f64 = 0.05;

/// Time that a receiving program has to listen.
const LISTENING: Duration = Duration::from_millis(300);

/// A run that cannot be made, and a run that failed.
enum Trouble {
    Skipped(String),
    Failed(String),
}

/// Makes the runs that `store` lacks of `wanted`, one after the other, and those that were not
/// trusted. Returns how many failed.
///
/// # Errors
/// When results cannot be kept.
pub(super) fn run(
    store: &mut Store,
    wanted: &[&Point],
    mut progress: impl FnMut(usize, usize),
) -> Result<usize, Failure> {
    let is_done = |point: &Point| {
        let values = store.results().get(point);
        values.is_some_and(|values| values.get("trusted") >= 1.0)
    };
    let missing: Vec<Point> = wanted
        .iter()
        .filter(|point| !is_done(point))
        .map(|point| Point::clone(point))
        .collect();
    let folder = store.folder().join("scenarios");
    let mut failures = 0;
    for (done, point) in missing.iter().enumerate() {
        progress(done, missing.len());
        let name = format!(
            "{}, {}, seed {}",
            point.measure().name(),
            point.settings().join(" "),
            point.seed
        );
        match trusted(point, &folder) {
            Ok(values) => {
                if values.get("trusted") < 1.0 {
                    eprintln!("tack: NOT TRUSTED after {ATTEMPTS} runs: {name}");
                }
                store
                    .keep(point, values)
                    .map_err(|error| Failure::failed("cannot store the results", error))?;
            }
            Err(Trouble::Skipped(why)) => {
                eprintln!("tack: SKIPPED: {name}: {why}");
                let mut values = Values::default();
                values.insert("skipped", 1.0);
                store
                    .keep(point, values)
                    .map_err(|error| Failure::failed("cannot store the results", error))?;
            }
            Err(Trouble::Failed(why)) => {
                eprintln!("tack: {name}: {why}");
                failures += 1;
            }
        }
    }
    progress(missing.len(), missing.len());
    Ok(failures)
}

/// The values of the first run that can be trusted, or of the last one.
fn trusted(point: &Point, folder: &Path) -> Result<Values, Trouble> {
    let mut attempt = 1;
    loop {
        // A thread of its own: it moves between network namespaces, and ends where it ends.
        let result = std::thread::scope(|scope| scope.spawn(|| once(point, folder)).join());
        let mut values =
            result.map_err(|_| Trouble::Failed("the run ended by a panic".into()))??;
        if values.get("trusted") >= 1.0 || attempt == ATTEMPTS {
            values.insert("attempts", f64::from(attempt));
            return Ok(values);
        }
        attempt += 1;
    }
}

/// What the run of a point is.
struct Plan {
    stack: Stack,
    congestion: String,
    ack: String,
    omit: Duration,
    length: Duration,
}

impl Plan {
    fn of(point: &Point, scenario: &Scenario) -> Result<Self, Trouble> {
        let wrong = |what: &str| Trouble::Failed(format!("not a run in real time: {what}"));
        let Measure::RealTime(stack) = point.measure() else {
            return Err(wrong("its measure"));
        };
        let flow = scenario.flows.first().ok_or_else(|| wrong("no flow"))?;
        let Transport::Tcp(_) = &flow.transport else {
            return Err(wrong("its transport"));
        };
        let setting = |key: &str| {
            let found = point.settings().iter().rev();
            let mut values = found.filter_map(|setting| setting.strip_prefix(key));
            values.next().map(str::to_owned)
        };
        Ok(Self {
            stack,
            congestion: setting("flow.0.congestion=").ok_or_else(|| wrong("congestion"))?,
            ack: setting("flow.0.ack=").ok_or_else(|| wrong("ack"))?,
            omit: scenario.warmup,
            length: scenario.duration.saturating_sub(scenario.warmup),
        })
    }
}

/// One run. Leaves the thread in another network namespace.
fn once(point: &Point, folder: &Path) -> Result<Values, Trouble> {
    let failed = |error: &dyn std::fmt::Display| Trouble::Failed(error.to_string());
    point.place(folder).map_err(|error| failed(&error))?;
    let scenario = point.scenario(folder).map_err(|error| failed(&error))?;
    let plan = Plan::of(point, &scenario)?;
    let program = available(&plan)?;
    let mut settings = HostSettings::new(scenario);
    settings.seed = point.seed;
    if let Stack::Kernel { receive_offload } = plan.stack {
        settings.receive_offload = receive_offload;
    }
    let mut hosts = Hosts::start(settings).map_err(|error| match error {
        tack_emulator::StartError::Namespaces(_) | tack_emulator::StartError::Device { .. } => {
            Trouble::Skipped(error.to_string())
        }
        _ => failed(&error),
    })?;
    let samples = hosts.take_samples();
    let [server, station, ..] = hosts.hosts() else {
        return Err(Trouble::Failed("the emulation has no station".into()));
    };
    let before = Processors::now();
    let goodput = Pair { server, station }.download(&plan, &program)?;
    let idle = Processors::now().idle_since(before);
    let summary = hosts.stop().map_err(|error| failed(&error))?;
    let samples = samples.into_iter().flat_map(|mut samples| {
        std::iter::from_fn(move || samples.try_recv().ok()).collect::<VecDeque<_>>()
    });
    let mut values = values(&plan, goodput, &samples.collect::<Vec<_>>(), &summary)?;
    let is_trusted = summary.trust.ok && idle >= IDLE;
    values.insert("processors_idle", idle);
    values.insert("trusted", f64::from(u8::from(is_trusted)));
    Ok(values)
}

/// Times of all processors together, in ticks (proc_stat(5)).
#[derive(Clone, Copy, Default)]
struct Processors {
    idle: f64,
    all: f64,
}

impl Processors {
    fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::of(stat.lines().next().unwrap_or_default())
    }

    /// From `cpu user nice system idle iowait irq softirq steal …`.
    fn of(line: &str) -> Self {
        let ticks = line.split_whitespace().skip(1).take(8);
        let ticks: Vec<f64> = ticks.filter_map(|ticks| ticks.parse().ok()).collect();
        Self {
            idle: ticks.iter().skip(3).take(2).sum(),
            all: ticks.iter().sum(),
        }
    }

    /// The share that was idle, 0 to 1.
    fn idle_since(self, before: Self) -> f64 {
        (self.idle - before.idle) / (self.all - before.all).max(1.0)
    }
}

/// The program that moves the bytes.
fn available(plan: &Plan) -> Result<PathBuf, Trouble> {
    match plan.stack {
        Stack::Kernel { .. } => {
            let known =
                std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
                    .unwrap_or_default();
            if !known.split_whitespace().any(|name| name == plan.congestion) {
                return Err(Trouble::Skipped(format!(
                    "this kernel has no {} (modprobe tcp_{}); it has {}",
                    plan.congestion,
                    plan.congestion,
                    known.trim()
                )));
            }
            let found = Command::new("iperf3").arg("-v").output();
            found.map_err(|error| Trouble::Skipped(format!("no iperf3: {error}")))?;
            Ok("iperf3".into())
        }
        Stack::Quinn { .. } => {
            let named = std::env::var_os("TACK_BENCH_QUINN").map(PathBuf::from);
            let program =
                named.unwrap_or_else(|| PathBuf::from("bench/quinn/target/release/bench-quinn"));
            let program = program.canonicalize().map_err(|error| {
                Trouble::Skipped(format!(
                    "no {}: {error}; `cargo build --release --manifest-path bench/quinn/Cargo.toml` makes it, and \
                     TACK_BENCH_QUINN names it from elsewhere",
                    program.display()
                ))
            })?;
            Ok(program)
        }
        Stack::Tack => std::env::current_exe()
            .map_err(|error| Trouble::Failed(format!("cannot find this program: {error}"))),
    }
}

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
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(stdout) = &mut stdout {
                let _cut = stdout.read_to_string(&mut text);
            }
            text
        });
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
}

/// Both ends of a download.
struct Pair<'a> {
    server: &'a Host,
    station: &'a Host,
}

impl Pair<'_> {
    /// Moves bytes from the server to the station. Returns the goodput, bits a second.
    fn download(&self, plan: &Plan, program: &Path) -> Result<f64, Trouble> {
        for host in [self.server, self.station] {
            enter(&host.namespace)?;
            // Buffers that do not limit, as the others have.
            for (name, values) in [
                ("tcp_rmem", format!("4096 131072 {BUFFER}")),
                ("tcp_wmem", format!("4096 131072 {BUFFER}")),
            ] {
                std::fs::write(format!("/proc/sys/net/ipv4/{name}"), values)
                    .map_err(|error| Trouble::Failed(format!("{name}: {error}")))?;
            }
        }
        if let Stack::Kernel {
            receive_offload: false,
        } = plan.stack
        {
            // Each segment out of order is acknowledged, as RFC 5681 §4.2 has it, and not up to 44
            // of them at once. The thread is at the station.
            std::fs::write("/proc/sys/net/ipv4/tcp_comp_sack_nr", "0")
                .map_err(|error| Trouble::Failed(format!("tcp_comp_sack_nr: {error}")))?;
        }
        match plan.stack {
            Stack::Kernel { .. } => self.iperf3(plan, program),
            Stack::Quinn { ack_frequency } => self.quinn(plan, program, ack_frequency),
            Stack::Tack => self.tack(plan, program),
        }
    }

    fn iperf3(&self, plan: &Plan, program: &Path) -> Result<f64, Trouble> {
        let mut receiver = Command::new(program);
        receiver.args(["-s", "-1"]);
        let _receiver = start(&self.station.namespace, &mut receiver)?;
        std::thread::sleep(LISTENING);
        let mut sender = Command::new(program);
        sender
            .args(["-J", "-c"])
            .arg(self.station.ipv4.to_string())
            .args(["-C", &plan.congestion])
            .args(["-t", &plan.length.as_secs_f64().ceil().to_string()])
            .args(["-O", &plan.omit.as_secs_f64().ceil().to_string()]);
        let sender = start(&self.server.namespace, &mut sender)?;
        received(&sender.finish(plan.omit + plan.length + PATIENCE)?)
    }

    fn tack(&self, plan: &Plan, program: &Path) -> Result<f64, Trouble> {
        let mut receiver = Command::new(program);
        receiver
            .args(["perf", "--server", "--one-off", "--insecure", "--listen"])
            .arg(format!("{}:7779", self.station.ipv4));
        let _receiver = start(&self.station.namespace, &mut receiver)?;
        std::thread::sleep(LISTENING);
        let mut sender = Command::new(program);
        sender
            .args(["perf", "--insecure", "--json=iperf3", "-c"])
            .arg(format!("{}:7779", self.station.ipv4))
            .args(["-C", &plan.congestion])
            .args(["--ack", &plan.ack, "--coalesce", "off", "-w", "64M"])
            .args(["-t", &format!("{}ms", plan.length.as_millis())])
            .args(["-O", &format!("{}ms", plan.omit.as_millis())]);
        let sender = start(&self.server.namespace, &mut sender)?;
        received(&sender.finish(plan.omit + plan.length + PATIENCE)?)
    }

    fn quinn(&self, plan: &Plan, program: &Path, ack_frequency: bool) -> Result<f64, Trouble> {
        let mut receiver = Command::new(program);
        receiver
            .arg("receiver")
            .arg(format!("{}:0", self.station.ipv4))
            .arg(plan.omit.as_millis().to_string());
        let mut receiver = start(&self.station.namespace, &mut receiver)?;
        let output = receiver.0.stdout.take();
        let mut lines = BufReader::new(output.ok_or_else(|| no("output"))?);
        let mut line = String::new();
        lines
            .read_line(&mut line)
            .map_err(|error| Trouble::Failed(error.to_string()))?;
        let mut sender = Command::new(program);
        sender
            .arg("sender")
            .arg((plan.omit + plan.length).as_millis().to_string())
            .args(line.split_whitespace())
            .arg(&plan.congestion)
            .args(ack_frequency.then_some("ack-frequency"));
        let sender = start(&self.server.namespace, &mut sender)?;
        sender.finish(plan.omit + plan.length + PATIENCE)?;
        let mut line = String::new();
        lines
            .read_line(&mut line)
            .map_err(|error| Trouble::Failed(error.to_string()))?;
        let mut numbers = line
            .strip_prefix("RESULT ")
            .into_iter()
            .flat_map(|numbers| numbers.split_whitespace())
            .filter_map(|number| number.parse::<f64>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(bytes), Some(nanos)) if nanos > 0.0 => Ok(bytes * 8.0 / nanos * 1e9),
            _ => Err(no("result of quinn")),
        }
    }
}

fn no(what: &str) -> Trouble {
    Trouble::Failed(format!("there is no {what}"))
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

/// What iperf3's object says was received, bits a second.
fn received(text: &str) -> Result<f64, Trouble> {
    let object: Value = serde_json::from_str(text)
        .map_err(|error| Trouble::Failed(format!("{error}: {text:.200}")))?;
    let rate = object.pointer("/end/sum_received/bits_per_second");
    rate.and_then(Value::as_f64)
        .filter(|rate| *rate > 0.0)
        .ok_or_else(|| {
            let error = object["error"].as_str().unwrap_or("nothing was received");
            Trouble::Failed(error.to_owned())
        })
}

/// The numbers of a run: goodput, and what the emulator saw from the end of the warm-up to the end.
fn values(
    plan: &Plan,
    goodput: f64,
    samples: &[Sample],
    summary: &Summary,
) -> Result<Values, Trouble> {
    let first = samples.iter().find(|sample| sample.down.data > 10);
    let begin = first.map_or(0.0, |sample| sample.seconds) + plan.omit.as_secs_f64();
    let end = begin + plan.length.as_secs_f64();
    let within = |sample: &&Sample| sample.seconds >= begin && sample.seconds <= end;
    let (Some(earlier), Some(later)) = (
        samples.iter().find(within),
        samples.iter().rev().find(within),
    ) else {
        return Err(no("sample of the run"));
    };
    let data = (later.down.data - earlier.down.data) as f64;
    let acks = (later.up.acks - earlier.up.acks) as f64;
    let air = later.air.since(&earlier.air).shares();
    let mut values = Values::default();
    for (name, value) in [
        ("goodput_bps", goodput),
        ("acks_per_data", acks / data),
        ("data", data),
        ("acks", acks),
        ("seconds", later.seconds - earlier.seconds),
        ("air.data", air.data),
        ("air.ack", air.ack),
        ("air.control", air.control),
        ("air.collision", air.collision),
        ("air.access", air.access),
        ("air.idle", air.idle),
        ("late_share", summary.lateness.late_share),
        ("late_p99_us", summary.lateness.p99_us as f64),
        ("entry_late_share", summary.entry_lateness.late_share),
        ("skipped", 0.0),
    ] {
        values.insert(name, value);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use tack_lab::{Depth, REAL_TIME};

    use super::*;

    /// The shortest form of a run: the kernel's CUBIC over 802.11g.
    #[test]
    fn the_kernels_tcp_is_measured_over_the_emulated_air() {
        let plan = REAL_TIME[0].plan(&Depth::quick());
        let mut point = plan[0].clone();
        point.cell = point.cell.set("warmup=0s").set("duration=1s");
        let folder = tempfile::tempdir().unwrap();
        let values = match trusted(&point, folder.path()) {
            Ok(values) => values,
            Err(Trouble::Skipped(why)) => {
                tack_skip::skipped(why);
                return;
            }
            Err(Trouble::Failed(why)) => panic!("{why}"),
        };
        assert!(values.get("goodput_bps") > 1e5, "{values:?}");
        assert!(values.get("acks_per_data") > 0.0, "{values:?}");
        assert!(
            values.get("air.data") > 0.0 && values.get("air.ack") > 0.0,
            "{values:?}"
        );
        assert!(values.get("attempts") >= 1.0);
    }

    #[test]
    fn idle_time_is_a_share_of_all() {
        let before = Processors::of("cpu  100 0 50 800 50 0 0 0 0 0");
        let after = Processors::of("cpu  150 0 100 890 60 0 0 0 0 0");
        assert!((after.idle_since(before) - 0.5).abs() < 1e-9);
        assert!((0.0..=1.0).contains(&Processors::now().idle_since(Processors::default())));
    }

    #[test]
    fn what_iperf3_says_is_read() {
        let text = r#"{"end":{"sum_received":{"bits_per_second":1.5e6}}}"#;
        assert!(matches!(received(text), Ok(1.5e6)));
        let refused = r#"{"error":"unable to connect"}"#;
        let Err(Trouble::Failed(why)) = received(refused) else {
            panic!("an error is no result");
        };
        assert_eq!(why, "unable to connect");
        assert!(received("no JSON").is_err());
    }
}
