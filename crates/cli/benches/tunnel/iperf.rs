//! iperf3 on the same way as our own source and sink, to see that these cost what such programs
//! do.

use std::net::TcpListener;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process::Background;

/// Over the kernel's TCP without anything between, with writes of so many bytes: bit/s, and the
/// seconds of processor time for a GB at both ends. `None` where iperf3 is not installed.
pub(crate) fn run(seconds: u64, block: usize) -> Result<Option<(f64, f64)>> {
    if Command::new("iperf3").arg("--version").output().is_err() {
        return Ok(None);
    }
    // The system gives it to nobody else at once.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let port = port.to_string();
    let mut server = Command::new("iperf3");
    server.args(["--server", "--one-off", "--bind", "127.0.0.1"]);
    server.args(["--forceflush", "--port", &port]);
    let (_server, _) = Background::start_and_wait(&mut server, "Server listening")?;
    let mut client = Command::new("iperf3");
    client.args(["--client", "127.0.0.1", "--json", "--port", &port]);
    client.args(["--time", &seconds.to_string()]);
    client.args(["--length", &block.to_string()]);
    let output = client.output()?;
    ensure!(output.status.success(), "iperf3: {output:?}");
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let end = &result["end"];
    let number = |value: &Value| value.as_f64().context("no result of iperf3");
    let sum = &end["sum_received"];
    let bits_per_second = number(&sum["bits_per_second"])?;
    let share = &end["cpu_utilization_percent"];
    let percent = number(&share["host_total"])? + number(&share["remote_total"])?;
    let cost = percent / 100.0 / (bits_per_second / 8e9);
    Ok(Some((bits_per_second, cost)))
}
