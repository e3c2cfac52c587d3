//! What tunnels cost, and what they gain over Wi-Fi, each beside what it is compared with in the
//! same run:
//!
//! ```text
//! cargo bench -p tack-cli --bench tunnel                         # everything: some ten minutes
//! cargo bench -p tack-cli --bench tunnel -- --quick              # shorter and fewer rounds
//! cargo bench -p tack-cli --bench tunnel -- --rows throughput    # by something in the names
//! ```
//!
//! All connections are on the loopback interface, but for those of `exec` and `gateway`, which run
//! between network namespaces: that takes root. The rows over Wi-Fi run through `tack emulate` in
//! real time, which takes an idle machine; a run that is not to be trusted is marked. They need
//! Debian's packages curl and rsync. Throughput is measured beside iperf3, too, where it is
//! installed. Figures are medians of the rounds.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark is where the clock is read"
)]

mod air;
mod amount;
mod connections;
mod iperf;
mod kernel;
mod link;
#[path = "../files/process.rs"]
#[allow(dead_code, reason = "the other benchmark uses the rest")]
mod process;
mod relay;
mod short;
mod sides;
mod throughput;
mod unchanged;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;

use amount::Amount;
use sides::Sides;

#[derive(Debug, Parser)]
struct Args {
    /// A fifth of each amount, and one round
    #[arg(long)]
    quick: bool,
    /// How often each thing is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these rows, separated by commas, by something in their names
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Measure this program [default: the one that was built for the benchmark]
    #[arg(long)]
    program: Option<PathBuf>,
    /// Be a plain relay to this address: the benchmark runs itself for that
    #[arg(long, hide = true)]
    relay: Option<SocketAddr>,
    /// Be a sink at this address: the benchmark runs itself for that
    #[arg(long, hide = true)]
    sink: Option<SocketAddr>,
    /// Send to a sink: the benchmark runs itself for that
    #[arg(long, hide = true, requires = "seconds")]
    push: Option<SocketAddr>,
    /// For so long
    #[arg(long, hide = true)]
    seconds: Option<u64>,
    /// Take uploads: the benchmark runs itself for that on another host
    #[arg(long, hide = true)]
    uploads: bool,
    /// What `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(to) = args.relay {
        return relay::run(to);
    }
    if let Some(at) = args.sink {
        return unchanged::sink(at);
    }
    if let (Some(to), Some(seconds)) = (args.push, args.seconds) {
        return unchanged::push(to, seconds);
    }
    if args.uploads {
        return kernel::run();
    }
    let amount = match args.quick {
        true => Amount {
            rounds: 1,
            seconds: 2,
            exchanges: 2_000,
            connections: 1_000,
            mebibytes: 16,
        },
        false => Amount {
            rounds: args.rounds.max(1),
            seconds: 5,
            exchanges: 10_000,
            connections: 5_000,
            mebibytes: 64,
        },
    };
    let program = args
        .program
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_tack")));
    // Many times what any program here takes.
    process::LONGEST.get_or_init(|| Duration::from_secs(90));
    sides::raise_file_limit()?;
    let sides = Sides::new(program)?;
    type Row = (&'static str, fn(&Sides, Amount) -> Result<String>);
    let rows: [Row; 7] = [
        ("throughput", throughput::throughput),
        ("exec and gateway", unchanged::throughput),
        ("latency", connections::latency),
        ("concurrent connections", connections::many),
        ("slow reader", connections::slow_reader),
        ("short connections", short::connections),
        ("802.11n at 40 ms", air::gains),
    ];
    let is_wanted =
        |name: &str| args.rows.is_empty() || args.rows.iter().any(|row| name.contains(&**row));
    let mut failed = 0;
    for (name, measure) in rows.into_iter().filter(|(name, _)| is_wanted(name)) {
        match measure(&sides, amount) {
            Ok(figures) => println!("{name}: {figures}"),
            Err(error) => {
                failed += 1;
                println!("{name}: failed: {error:#}");
            }
        }
    }
    anyhow::ensure!(failed == 0, "{failed} of the rows failed");
    Ok(())
}
