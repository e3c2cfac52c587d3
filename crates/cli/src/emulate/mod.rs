//! `tack emulate`: Wi-Fi between any UDP programs, or between hosts for any programs.

mod args;
#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod exec;
mod failure;
#[cfg(target_os = "linux")]
mod hosts;
mod live;

use std::io;

use tack_emulator::{Emulator, Sample, Settings, Summary, Totals};
use tack_sim::Scenario;
use tack_sim::report::WlanReport;
use tokio::sync::mpsc;

use crate::address::Family;
use crate::exit::{Exit, Failure};
use crate::printer::with_stdout;
use crate::signals::Signals;
pub(crate) use args::EmulateArgs;
use args::EmulateCommand;
use live::Display;

pub(crate) use failure::cannot_start;
pub(crate) use live::{air_line, rate};

/// Links between sockets or between hosts.
enum Running {
    Relay(Emulator),
    #[cfg(target_os = "linux")]
    Hosts(hosts::Running),
}

impl Running {
    async fn start(args: &EmulateArgs, scenario: Scenario) -> Result<Self, Failure> {
        if !args.tun {
            return relay(args, scenario).await.map(Self::Relay);
        }
        #[cfg(target_os = "linux")]
        return hosts::Running::start(args, scenario).map(Self::Hosts);
        #[cfg(not(target_os = "linux"))]
        return Err(only_linux());
    }

    fn take_samples(&mut self) -> Option<mpsc::Receiver<Sample>> {
        match self {
            Self::Relay(emulator) => emulator.take_samples(),
            #[cfg(target_os = "linux")]
            Self::Hosts(hosts) => hosts.take_samples(),
        }
    }

    fn stop(self) -> io::Result<Summary> {
        match self {
            Self::Relay(emulator) => emulator.stop(),
            #[cfg(target_os = "linux")]
            Self::Hosts(hosts) => hosts.stop(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn only_linux() -> Failure {
    Failure::usage("network namespaces exist on Linux only; without --tun, `tack emulate` works")
}

/// Relays until a signal comes or `--duration` is over, or runs a program on a host.
pub(crate) async fn run(mut args: EmulateArgs) -> Result<Exit, Failure> {
    match args.command.take() {
        #[cfg(target_os = "linux")]
        Some(EmulateCommand::Exec(args)) => return exec::exec(args).await,
        #[cfg(target_os = "linux")]
        Some(EmulateCommand::Shell(args)) => return exec::shell(args).await,
        #[cfg(not(target_os = "linux"))]
        Some(_) => return Err(only_linux()),
        None => {}
    }
    if args.links.wifi.is_none() && args.links.scenario.is_none() {
        return Err(Failure::usage(
            "no Wi-Fi link given; use --wifi 802.11n (or another kind) or --scenario FILE",
        ));
    }
    let mut scenario = args.links.scenario()?;
    args.trust.prepare();
    if let (Some(stations), Some(wlan)) = (args.stations, &mut scenario.wlan) {
        wlan.world.stations = stations;
    }
    let mut signals = Signals::new()?;
    let mut running = Running::start(&args, scenario).await?;
    let mut samples = running.take_samples();
    let mut display = Display::new();
    let over = async {
        match args.duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(over);
    let exit = loop {
        let next = async {
            match &mut samples {
                Some(samples) => samples.recv().await,
                None => None,
            }
        };
        tokio::select! {
            signal = signals.next() => break match args.duration {
                // Being stopped is how a relay ends.
                None => Exit::Done,
                Some(_) => signal,
            },
            () = &mut over => break Exit::Done,
            sample = next => match sample {
                Some(sample) => display.show(&sample),
                // It ended by itself, which only failure can make it do.
                None => break Exit::Failed,
            },
        }
    };
    display.clear();
    let summary = running
        .stop()
        .map_err(|error| Failure::failed("the emulator failed", error))?;
    with_stdout(|out| {
        if args.json {
            writeln!(out, "{}", summary.to_json())
        } else {
            write!(out, "{}", describe(&summary, args.trust.advice()))
        }
    })?;
    Ok(match exit {
        Exit::Done => args.trust.exit(summary.trust.ok),
        exit => exit,
    })
}

/// Starts a relay between sockets.
async fn relay(args: &EmulateArgs, scenario: Scenario) -> Result<Emulator, Failure> {
    let reach = args.reach.reach();
    let listen = args.listen.resolve(0, reach, Family::Any).await?[0];
    let no_port = || Failure::usage("--to has no port; expected host:port");
    let to = args.to.as_ref().ok_or_else(no_port)?;
    let to = to.resolve(0, reach, Family::Any).await?;
    let to = to
        .iter()
        .find(|to| to.is_ipv4() == listen.is_ipv4())
        .or(to.first())
        .copied()
        .filter(|to| to.port() != 0)
        .ok_or_else(no_port)?;
    let mut settings = Settings::new(scenario, listen, to);
    settings.max_flows = usize::from(args.max_flows);
    let emulator = Emulator::start(settings).map_err(cannot_start)?;
    announce(args, &emulator, to)?;
    Ok(emulator)
}

fn announce(
    args: &EmulateArgs,
    emulator: &Emulator,
    to: std::net::SocketAddr,
) -> Result<(), Failure> {
    let address = emulator.local_addr();
    if args.json {
        return with_stdout(|out| {
            let event = serde_json::json!({
                "event": "listening",
                "address": address.to_string(),
                "to": to.to_string(),
            });
            writeln!(out, "{event}")
        });
    }
    eprintln!("listening on {address}, over Wi-Fi to {to}");
    Ok(())
}

/// The summary for people.
fn describe(summary: &Summary, advice: Option<&str>) -> String {
    let mut text = format!(
        "{}, {:.1} s, {} flow{}{}\n  {}\n",
        summary.name,
        summary.seconds,
        summary.flows_seen,
        if summary.flows_seen == 1 { "" } else { "s" },
        if summary.trust.ok {
            ""
        } else {
            ": NOT TO BE TRUSTED, see below"
        },
        air_line(&summary.air_shares),
    );
    for (name, totals) in [("up", &summary.up), ("down", &summary.down)] {
        text.push_str(&format!(
            "  {name:<5} {}, {} packets delivered of {}, {} counted as acknowledgements\n",
            rate(totals.delivered_bytes, summary.seconds),
            totals.delivered,
            totals.datagrams,
            totals.acks,
        ));
    }
    let counted = summary
        .flows
        .iter()
        .any(|flow| flow.counted == tack_emulator::Counting::Size && flow.up != Totals::default());
    if counted {
        text.push_str(
            "        (flows that are not TCP in UDP: datagrams of at most 100 bytes count as acknowledgements)\n",
        );
    }
    if let Some(wlan) = &summary.wlan {
        text.push_str(&format!(
            "  {} collisions, {} packets dropped by full queues, {} after too many attempts\n",
            wlan.collisions, wlan.queue_drops, wlan.retry_drops
        ));
        text.push_str(&at_the_radios(wlan));
    }
    let dropped = &summary.dropped;
    for (count, why) in [
        (
            dropped.unfit,
            "datagrams dropped: empty, or longer than 1472 bytes (the link carries packets of 1500)",
        ),
        (
            dropped.no_host,
            "packets dropped: to or from an address that no host has",
        ),
        (
            dropped.table_full,
            "datagrams of new clients dropped: the limit --max-flows is reached",
        ),
        (
            dropped.no_socket,
            "datagrams of new clients dropped: no socket available (raise the limit of open files: ulimit -n)",
        ),
        (
            dropped.unknown_sources,
            "datagrams dropped: not sent by --to",
        ),
        (
            dropped.damaged,
            "datagrams dropped: corrupted on the path, as configured in the scenario",
        ),
    ] {
        if count > 0 {
            text.push_str(&format!("  {count} {why}\n"));
        }
    }
    text.push_str(&verdict(summary, advice));
    text
}

/// What filters and TCP/HACK did.
fn at_the_radios(wlan: &WlanReport) -> String {
    let mut text = match wlan.acks_filtered {
        0 => String::new(),
        count => format!(
            "  {count} TCP ACKs dropped in queues by the filter, superseded by newer ones\n"
        ),
    };
    if let Some(hack) = &wlan.hack {
        text.push_str(&format!(
            "  TCP/HACK: {} ACKs delivered in ACKs of the link, {} sent uncompressed; {} compressed from {} to {} bytes ({:.1} each)\n",
            hack.rebuilt,
            hack.native_acks,
            hack.compressed_acks,
            hack.original_bytes,
            hack.compressed_bytes,
            hack.mean_compressed,
        ));
        let failed = hack.crc_failures + hack.decode_failures + hack.differing;
        if failed > 0 {
            text.push_str(&format!(
                "  {failed} compressed ACKs were not rebuilt, or differ from the original\n"
            ));
        }
    }
    text
}

/// How late deliveries were, and whether the run may be believed.
fn verdict(summary: &Summary, advice: Option<&str>) -> String {
    let lateness = &summary.lateness;
    let ms = |us: u64| us as f64 / 1e3;
    let mut text = match lateness.deliveries {
        0 => "  nothing was delivered\n".into(),
        _ => format!(
            "  lateness of deliveries: median {:.2} ms, 99th percentile {:.2} ms, maximum {:.1} ms\n",
            ms(lateness.p50_us),
            ms(lateness.p99_us),
            ms(lateness.max_us)
        ),
    };
    for reason in &summary.trust.reasons {
        text.push_str(&format!("  NOT TO BE TRUSTED: {reason}\n"));
    }
    if let Some(advice) = advice.filter(|_| !summary.trust.ok) {
        text.push_str(&format!("  ({advice})\n"));
    }
    text
}
