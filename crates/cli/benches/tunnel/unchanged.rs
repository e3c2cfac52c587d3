//! Programs that know nothing of tunnels: the throughput of `tack exec` and of `tack gateway`
//! beside `tack perf` and beside the kernel's TCP without anything between.
//!
//! Three network namespaces are machines in a row: a client, a router, a server. On the router runs
//! what carries. It takes root, TUN, iproute2 and nftables.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::amount::Amount;
use crate::connections::swallow;
use crate::process::Background;
use crate::sides::{Side, Sides, processor_time, processor_time_of_children};
use crate::throughput::{Run, Runs, pushed};

const CLIENT: usize = 0;
const ROUTER: usize = 1;
const SERVER: usize = 2;
/// Where the server serves tunnels and tests.
const SERVING: &str = "10.5.2.2:7777";
const PERF: &str = "10.5.2.2:7778";
/// What only the server reaches without the router.
const FAR: &str = "10.9.9.9";
const SINK: &str = "10.9.9.9:9";
/// What a sink says once it listens.
const MARK: &str = "a sink listens";

/// Swallows what comes, until it is killed: what the process does that the benchmark starts on the
/// server.
pub(crate) fn sink(at: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(at)?;
    println!("{MARK}");
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || swallow(stream));
    }
    Ok(())
}

/// Sends to a sink as fast as it goes, and prints bit/s: what the process does that the benchmark
/// runs as a program that knows nothing of tunnels.
pub(crate) fn push(to: SocketAddr, seconds: u64) -> Result<()> {
    let run = pushed(to, seconds, None, &[])?;
    writeln!(std::io::stdout(), "{}", run.bits_per_second)?;
    Ok(())
}

/// The machines. They are gone when this is dropped.
struct Machines(Vec<String>);

impl Machines {
    fn new() -> Result<Self> {
        let name = |host| format!("tack-bench-{}-{host}", std::process::id());
        let machines = Self((0..3).map(name).collect());
        let [client, router, server] = [CLIENT, ROUTER, SERVER].map(|host| &machines.0[host]);
        for name in &machines.0 {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        for (near, far, link, network) in [
            (router, client, "veth0", "10.5.1"),
            (router, server, "veth1", "10.5.2"),
        ] {
            ip(&format!(
                "-n {near} link add {link} type veth peer name {link} netns {far}"
            ))?;
            for (name, host) in [(near, 1), (far, 2)] {
                ip(&format!(
                    "-n {name} addr add {network}.{host}/24 dev {link}"
                ))?;
                ip(&format!("-n {name} link set {link} up"))?;
            }
        }
        ip(&format!("-n {server} addr add {FAR}/32 dev lo"))?;
        ip(&format!("-n {server} route add 10.5.1.0/24 via 10.5.2.1"))?;
        ip(&format!("-n {router} route add {FAR} via 10.5.2.2"))?;
        ip(&format!("-n {client} route add default via 10.5.1.1"))?;
        let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        let mut shell = Command::new("sh");
        shell.args(["-c", forward]);
        output(&mut machines.on(ROUTER, &shell))?;
        Ok(machines)
    }

    /// A command on a machine.
    fn on(&self, host: usize, command: &Command) -> Command {
        let mut moved = Command::new("ip");
        moved.args(["netns", "exec", &self.0[host]]);
        moved.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => moved.env(name, value),
                None => moved.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            moved.current_dir(folder);
        }
        moved
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

fn ip(line: &str) -> Result<()> {
    let mut command = Command::new("ip");
    output(command.args(line.split(' '))).map(drop)
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {words}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The benchmark itself, as a program.
fn own(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments);
    Ok(command)
}

/// One run of `command`, which prints bit/s. What it and `others` took of the processors is its
/// cost.
fn measured(
    command: &mut Command,
    seconds: u64,
    others: &[&Background],
    read: impl Fn(&str) -> Option<f64>,
) -> Result<Run> {
    let spent = || -> Result<f64> {
        let mut sum = processor_time_of_children()?;
        for other in others {
            sum += processor_time(other.id())?;
        }
        Ok(sum)
    };
    let before = spent()?;
    let text = output(command)?;
    let spent = spent()? - before;
    let bits_per_second = read(&text).with_context(|| text.clone())?;
    Ok(Run {
        bits_per_second,
        costs: vec![spent / (bits_per_second * seconds as f64 / 8e9)],
    })
}

/// `tack exec` and `tack gateway`, each beside the kernel's TCP on the same way, and beside
/// `tack perf`, which is encrypted.
pub(crate) fn throughput(sides: &Sides, amount: Amount) -> Result<String> {
    let machines = Machines::new()?;
    let wait = |host: usize, command: &Command, mark: &str| {
        let started = Background::start_and_wait(&mut machines.on(host, command), mark);
        started.map(|(running, _)| running)
    };
    let target = format!("{FAR}:*");
    let serve = ["serve", "--listen", SERVING, "--target", &target];
    let serving = wait(
        SERVER,
        &sides.tack(Side::Server, &serve),
        "serving tunnels at ",
    )?;
    sides.introduce(SERVING)?;
    let perf = ["perf", "--server", "--listen", PERF, "--json"];
    let tests = wait(SERVER, &sides.tack(Side::Server, &perf), "\"listening\"")?;
    let sink = wait(SERVER, &own(&["--sink", SINK])?, MARK)?;
    let time = amount.seconds.to_string();
    let push = own(&["--push", SINK, "--seconds", &time])?;
    let number = |text: &str| text.trim().parse().ok();
    let goodput = |text: &str| {
        let last: Value = serde_json::from_str(text.lines().last()?).ok()?;
        last["summary"]["up"]["goodput_bps"].as_f64()
    };
    let mut runs: [Runs; 5] = Default::default();
    for _ in 0..amount.rounds {
        let mut run = |number: usize, run: Run| runs[number].0.push(run);
        let duration = format!("{time}s");
        let perf = ["perf", PERF, "--time", &duration, "--json"];
        let mut command = machines.on(ROUTER, &sides.tack(Side::Client, &perf));
        run(
            0,
            measured(&mut command, amount.seconds, &[&tests], goodput)?,
        );
        let mut exec = sides.tack(Side::Client, &["exec", "server:", "--"]);
        exec.arg(push.get_program()).args(push.get_args());
        let ends = [&serving, &sink];
        let mut command = machines.on(ROUTER, &exec);
        run(1, measured(&mut command, amount.seconds, &ends, number)?);
        let mut command = machines.on(ROUTER, &push);
        run(2, measured(&mut command, amount.seconds, &[&sink], number)?);
        let gateway = ["gateway", "server:", "--interface", "veth0", "--install"];
        let gateway = wait(ROUTER, &sides.tack(Side::Client, &gateway), " lead to ")?;
        let ends = [&serving, &sink, &gateway];
        let mut command = machines.on(CLIENT, &push);
        run(3, measured(&mut command, amount.seconds, &ends, number)?);
        gateway.interrupt()?;
        run(4, measured(&mut command, amount.seconds, &[&sink], number)?);
    }
    let [perf, exec, direct, gateway, forwarded] = runs;
    Ok(format!(
        "tack perf (encrypted) {:.2} Gbit/s, {:.2} s of processor time for a GB; tack exec {:.2} Gbit/s, ratio {:.2}, \
         {:.2} s; without it {:.2} Gbit/s, {:.2} s\n  tack gateway {:.2} Gbit/s, ratio to tack perf {:.2}, {:.2} s; \
         forwarded without it {:.2} Gbit/s, {:.2} s",
        perf.gigabits(),
        perf.cost(),
        exec.gigabits(),
        exec.ratio(&perf),
        exec.cost(),
        direct.gigabits(),
        direct.cost(),
        gateway.gigabits(),
        gateway.ratio(&perf),
        gateway.cost(),
        forwarded.gigabits(),
        forwarded.cost(),
    ))
}
