//! The kernel's TCP (CUBIC) by iperf3, between two network namespaces over a veth pair without
//! offloads: the same 1,500-byte packets that tack and quinn send.

use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::contest::{Contestant, Outcome};

pub(crate) struct Kernel;

/// Two namespaces joined by a veth pair; gone when this is.
struct Namespaces {
    names: [String; 2],
}

impl Namespaces {
    fn new() -> Result<Self, String> {
        let names = ["a", "b"].map(|side| format!("tack-bench-{}-{side}", std::process::id()));
        let this = Self { names };
        let [a, b] = &this.names;
        run("ip", &["netns", "add", a])?;
        run("ip", &["netns", "add", b])?;
        run(
            "ip",
            &[
                "-n", a, "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns",
                b,
            ],
        )?;
        for (name, address) in [(a, "192.0.2.1/24"), (b, "192.0.2.2/24")] {
            run("ip", &["-n", name, "addr", "add", address, "dev", "veth0"])?;
            run("ip", &["-n", name, "link", "set", "veth0", "up"])?;
            let offloads = ["tso", "off", "gso", "off", "gro", "off"];
            run(
                "ip",
                &[
                    &["netns", "exec", name, "ethtool", "-K", "veth0"],
                    &offloads[..],
                ]
                .concat(),
            )?;
        }
        Ok(this)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = run("ip", &["netns", "delete", name]);
        }
    }
}

/// The iperf3 server; ended with its namespace.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Contestant for Kernel {
    fn name(&self) -> &'static str {
        "kernel tcp"
    }

    fn prepare(&self) -> Result<(), String> {
        for (program, argument) in [
            ("ip", "-V"),
            ("ethtool", "--version"),
            ("iperf3", "--version"),
        ] {
            run(program, &[argument])?;
        }
        Namespaces::new().map(drop)
    }

    fn run(&self, time: Duration) -> Result<Outcome, String> {
        let namespaces = Namespaces::new()?;
        let [a, b] = &namespaces.names;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", b, "iperf3", "--server", "--one-off"]);
        let server = Server(
            command
                .stdout(Stdio::null())
                .spawn()
                .map_err(|error| error.to_string())?,
        );
        let seconds = time.as_secs().to_string();
        let client = [
            "iperf3",
            "--client",
            "192.0.2.2",
            "--congestion",
            "cubic",
            "--json",
            "--time",
            &seconds,
        ];
        let mut answer = Err("iperf3 was never started".to_owned());
        // The server needs a moment to listen; until then iperf3 reports an error, in JSON and with
        // success.
        for _ in 0..50 {
            answer = run("ip", &[&["netns", "exec", a], &client[..]].concat())
                .map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
            if answer
                .as_ref()
                .is_ok_and(|report| report.contains("\"sum_received\""))
            {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(server);
        let report = answer?;
        let (_, received) = report
            .split_once("\"sum_received\"")
            .ok_or("iperf3 reported no bytes received")?;
        Ok(Outcome {
            bytes: number(received, "\"bytes\":")? as u64,
            time: Duration::from_secs_f64(number(received, "\"seconds\":")?),
            cpu: None,
            memory: None,
        })
    }
}

/// The number after `key`.
fn number(text: &str, key: &str) -> Result<f64, String> {
    let (_, after) = text
        .split_once(key)
        .ok_or(format!("iperf3 reported no {key}"))?;
    let digits: String = after
        .trim_start()
        .chars()
        .take_while(|c| c.is_ascii_digit() || "+-.e".contains(*c))
        .collect();
    digits
        .parse()
        .map_err(|error| format!("iperf3's {key} {digits:?}: {error}"))
}

fn run(program: &str, arguments: &[&str]) -> Result<Output, String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    Err(format!(
        "{program} {}: {}",
        arguments.join(" "),
        said.trim().lines().next().unwrap_or("failed")
    ))
}
