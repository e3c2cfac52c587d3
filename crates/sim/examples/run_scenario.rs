//! Runs a scenario file and says how fast that went: `run_scenario FILE [KEY=VALUE]…`.
//!
//! The program `tack sim` does more; this needs nothing but the simulator, which profilers like.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use tack_sim::{Observers, Scenario, run, table};

#[expect(
    clippy::disallowed_methods,
    reason = "measures itself, from outside the simulator"
)]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments
        .next()
        .ok_or("usage: run_scenario FILE [KEY=VALUE]…")?;
    let overrides: Vec<_> = arguments.collect();
    let scenario = Scenario::from_file(Path::new(&file), &overrides)?;
    let begin = Instant::now();
    let mut report = run(&scenario, scenario.seed, &mut Observers::default())?;
    report.wall_seconds = begin.elapsed().as_secs_f64();
    println!("{}", report.to_json());
    print!("{}", table(std::slice::from_ref(&report)));
    let packets = report.wired.forward.packets + report.wired.reverse.packets;
    let segments: u64 = report.flows.iter().map(|flow| flow.data_segments).sum();
    println!(
        "{:.1} x real time, {:.2} M events/s, {:.2} M packets/s, {:.3} us a data segment",
        report.virtual_seconds / report.wall_seconds,
        report.events as f64 / report.wall_seconds / 1e6,
        packets as f64 / report.wall_seconds / 1e6,
        report.wall_seconds * 1e6 / segments as f64,
    );
    if let (Some(busy), Some(memory)) = (processor_seconds(), peak_memory()) {
        println!(
            "{busy:.2} s of processor time, {:.4} a simulated second; {memory} of memory at most",
            busy / report.virtual_seconds
        );
    }
    Ok(())
}

/// Time that this thread has run, where Linux tells.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanos: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanos / 1e9)
}

/// The most memory that was ever resident, where Linux tells.
fn peak_memory() -> Option<String> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().into())
}
