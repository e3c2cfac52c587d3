//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::ArgPredicate;
use clap::{Args, Parser, Subcommand};
use tack::{AckKind, Algorithm, Config};

use crate::address::{Address, Reach};
use crate::exit::Failure;
use crate::links::LinkArgs;
use crate::perf::Coalescing;
use crate::transfer::inbound::MAX_TRANSFERS;

/// What scripts may rely on; also in docs/cli.md.
const EXIT_CODES: &str = "\
Exit codes:
  0    done; for a transfer: every file stored and confirmed with its BLAKE3 hash
  1    the transfer, test or run failed
  2    wrong usage: command line, address, a path named on it, scenario file
  3    network: cannot listen, no such host, nobody answers
  4    some files were stored and confirmed, others not (each is named)
  130  cut off by SIGINT
  143  cut off by SIGTERM

Standard output is data (with --json: one JSON object a line), standard error is talk.
A reader that closes standard output early is no error.";

/// Reliable transport that is fast over Wi-Fi: move files, measure a path, run simulations.
#[derive(Debug, Parser)]
#[command(name = "tack", version, after_long_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send files and folders to a `tack recv`
    #[command(after_long_help = EXIT_CODES)]
    Send(SendArgs),
    /// Receive files and folders from `tack send`
    #[command(after_long_help = EXIT_CODES)]
    Recv(RecvArgs),
    /// Measure a path: throughput, round-trip time, losses, acknowledgements
    #[command(after_long_help = EXIT_CODES)]
    Perf(PerfArgs),
    /// Run scenario files in the simulator
    #[command(after_long_help = EXIT_CODES)]
    Sim(SimArgs),
    /// See it: send a file over emulated Wi-Fi, with delayed ACKs and with TACK, and compare
    #[command(after_long_help = EXIT_CODES)]
    Demo(DemoArgs),
    /// Put an emulated Wi-Fi link between UDP programs, in real time
    #[command(after_long_help = EXIT_CODES)]
    Emulate(EmulateArgs),
    /// Reproduce the figures of the TACK paper
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Lab(LabCommand),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Which addresses may be used.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ReachArgs {
    /// Allow addresses beyond loopback. There is no encryption yet: anyone on the path can read and change the data
    #[arg(long)]
    insecure: bool,
}

impl ReachArgs {
    pub(crate) fn reach(self) -> Reach {
        if self.insecure {
            Reach::Anywhere
        } else {
            Reach::LoopbackOnly
        }
    }
}

/// Settings of connections.
#[derive(Clone, Debug, Args)]
pub(crate) struct TransportArgs {
    /// Congestion control of what this side sends: new_reno, cubic, bbr, vegas, compound; bbr:profile=realtime,probe_rtt=mild for media
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) congestion: Algorithm,
    /// Acknowledgement policy of what this side receives: tack (delayed:2 with peers that do not speak it), every,
    /// delayed:2, delayed:8,timer=40ms
    #[arg(long, value_name = "POLICY", default_value_t)]
    pub(crate) ack: AckKind,
}

impl TransportArgs {
    /// A connection's settings; the peer is given up when it acknowledges nothing for `silence`.
    pub(crate) fn config(&self, silence: Duration) -> Config {
        Config {
            congestion: self.congestion,
            ack: self.ack,
            user_timeout: Some(silence),
            ..Config::default()
        }
    }
}

#[derive(Debug, Args)]
#[command(override_usage = "tack send [OPTIONS] <PATH>... <ADDR>")]
pub(crate) struct SendArgs {
    /// Files and folders to send (- is standard input), and last the receiver: host, host:port or [v6]:port (port 7777
    /// unless given)
    // One list, because options may stand between any two of them.
    #[arg(required = true, value_name = "PATH", num_args = 1..)]
    targets: Vec<OsString>,
    /// Name of the one file or folder at the receiver; required for standard input
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<OsString>,
    /// Send what symbolic links point to (without it they are skipped, with a warning)
    #[arg(long)]
    pub(crate) follow: bool,
    /// Print a JSON summary with every file's hash to standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Give up when nobody answers for this long
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) connect_timeout: Duration,
    /// Give up when the receiver is silent for this long (at least 3s)
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = silence)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

impl SendArgs {
    /// What to send, and to whom.
    pub(crate) fn targets(&self) -> Result<(Vec<PathBuf>, Address), Failure> {
        let wrong = |why: &str| Failure::usage(format!("{why}: tack send PATH... ADDR"));
        let (address, paths) = self
            .targets
            .split_last()
            .ok_or_else(|| wrong("nothing is named"))?;
        let text = address
            .to_str()
            .ok_or_else(|| wrong("the last argument is no address"))?;
        if paths.is_empty() {
            return Err(wrong(
                "a path to send and then the receiver's address are needed",
            ));
        }
        let address = text.parse().map_err(|error| {
            wrong(&format!(
                "the last argument names the receiver, but {error}"
            ))
        })?;
        Ok((paths.iter().map(PathBuf::from).collect(), address))
    }
}

#[derive(Debug, Args)]
pub(crate) struct RecvArgs {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7777")]
    pub(crate) listen: Address,
    /// Where received files go; created where missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// End after one transfer, with its exit code
    #[arg(long)]
    pub(crate) once: bool,
    /// Replace files that exist, write into folders that exist, accept names that begin with a dot (refused otherwise)
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print JSON to standard output: the address listened on, then one object a transfer
    #[arg(long)]
    pub(crate) json: bool,
    /// Most transfers at a time; more senders are turned away
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_TRANSFERS)))]
    pub(crate) max_transfers: u16,
    /// Give up on a sender that is silent for this long (at least 3s)
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = silence)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PerfArgs {
    /// The server: host, host:port, [v6]:port (port 7778 unless given)
    #[arg(
        value_name = "ADDR",
        required_unless_present = "server",
        conflicts_with = "server"
    )]
    pub(crate) address: Option<Address>,
    /// Serve tests
    #[arg(long)]
    pub(crate) server: bool,
    /// Server: address to listen on; port 0 picks a free one
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:7778",
        requires = "server"
    )]
    pub(crate) listen: Address,
    /// Server: end after one test
    #[arg(long, requires = "server")]
    pub(crate) one_off: bool,
    /// Length of the test
    #[arg(long, short, value_name = "DURATION", default_value = "10s", value_parser = duration, conflicts_with = "server")]
    pub(crate) time: Duration,
    /// Send this much on each connection instead of for a time
    #[arg(long, short = 'n', value_name = "SIZE", value_parser = size, conflicts_with_all = ["time", "server"])]
    pub(crate) bytes: Option<u64>,
    /// The server sends, this side receives
    #[arg(long, short = 'R', conflicts_with_all = ["server", "bidir"])]
    pub(crate) reverse: bool,
    /// Both sides send
    #[arg(long, conflicts_with = "server")]
    pub(crate) bidir: bool,
    /// Connections at the same time
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=128), conflicts_with = "server")]
    pub(crate) parallel: u16,
    /// Time between reports; 0s reports only the end
    #[arg(long, short, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    pub(crate) interval: Duration,
    /// Print JSON instead of lines for people: one object with intervals and summary; a server one for each test
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
    /// Congestion control of both sides: new_reno, cubic, bbr, vegas, compound; bbr:profile=realtime,probe_rtt=mild for media
    #[arg(
        long,
        short = 'C',
        value_name = "NAME",
        default_value_t,
        conflicts_with = "server"
    )]
    pub(crate) congestion: Algorithm,
    /// Answer segments that arrive together with one acknowledgement, however few of them the policy would let it cover:
    /// fastest. Off when --ack is given, so that its policy shows
    // Stands before `ack`: clap fills in defaults in this order, and one that is filled in counts as present.
    #[arg(
        long,
        value_name = "WHETHER",
        default_value = "on",
        default_value_if("ack", ArgPredicate::IsPresent, "off"),
        conflicts_with = "server"
    )]
    pub(crate) coalesce: Coalescing,
    /// Acknowledgement policy of both sides: tack, every, delayed:2, delayed:8,timer=40ms
    #[arg(
        long,
        value_name = "POLICY",
        default_value_t,
        conflicts_with = "server"
    )]
    pub(crate) ack: AckKind,
    /// Largest segment payload, bytes
    #[arg(long, short = 'M', value_name = "BYTES", value_parser = clap::value_parser!(u16).range(64..=65000), conflicts_with = "server")]
    pub(crate) mss: Option<u16>,
    /// Cap of send and receive buffers, and so of the window
    #[arg(long, short, value_name = "SIZE", value_parser = size, conflicts_with = "server")]
    pub(crate) window: Option<u64>,
    /// Give up when nobody answers for this long
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration, conflicts_with = "server")]
    pub(crate) connect_timeout: Duration,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// Scenario files (TOML)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Change a key of every scenario: wired.rate=10Mbps, flow.0.ack=every
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Seeds to run instead of each scenario's own: 7, 1..10, 1,5,9..12
    #[arg(long, value_name = "SEEDS")]
    pub(crate) seeds: Option<String>,
    /// Runs at the same time; default one a processor
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Print one JSON object a run
    #[arg(long, group = "format")]
    pub(crate) json: bool,
    /// Print CSV, one line for each flow of each run
    #[arg(long, group = "format")]
    pub(crate) csv: bool,
    /// Write a Parquet file, one row for each flow of each run
    #[arg(long, value_name = "OUT", group = "format")]
    pub(crate) parquet: Option<PathBuf>,
    /// Write each flow's state over time as CSV; one run only
    #[arg(long, value_name = "OUT")]
    pub(crate) series: Option<PathBuf>,
    /// Time between the samples of --series
    #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = interval, requires = "series")]
    pub(crate) series_interval: Duration,
    /// Write what the connections did and why, one JSON object a line (qlog style); one run only
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
    /// Write all packets as a capture file (pcapng); one run only
    #[arg(long, value_name = "OUT")]
    pub(crate) pcap: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// File to send; unless given, this program itself, as often as fills --time
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) links: LinkArgs,
    /// Pairs of runs, each with the next seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) seeds: u16,
    /// About how long a transfer may take; a file that takes longer is cut
    #[arg(long, value_name = "DURATION", default_value = "8s", value_parser = interval)]
    pub(crate) time: Duration,
    /// Congestion control of the sender
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) congestion: Algorithm,
    /// Where the report goes, an HTML page; unless given, to a new file among the temporary ones
    #[arg(long, value_name = "OUT")]
    pub(crate) report: Option<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EmulateArgs {
    #[command(flatten)]
    pub(crate) links: LinkArgs,
    /// Where clients send to: they are the Wi-Fi stations. Port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: Address,
    /// Where their datagrams go: a host on the wire behind the access point
    #[arg(long, value_name = "ADDR")]
    pub(crate) to: Address,
    /// End after this long, instead of when stopped
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    pub(crate) duration: Option<Duration>,
    /// Stations; each client address is the next one, in turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) stations: Option<u16>,
    /// Most client addresses at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) max_flows: u16,
    /// Print JSON to standard output: the address listened on, then one object at the end
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Say which figures there are
    List,
    /// Measure figures; what was measured before with the same code is not measured again
    Run(LabRunArgs),
    /// Write one HTML page with every figure, from what was measured
    Report(LabReportArgs),
    /// Measure what is missing, and fail when a claim does not hold
    Check(LabRunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// Figures: 1, 5b, …; `tack lab list` names them
    #[arg(value_name = "FIGURE", required_unless_present = "all")]
    pub(crate) figures: Vec<String>,
    /// Every figure
    #[arg(long, conflicts_with = "figures")]
    pub(crate) all: bool,
    /// The cells that say most, with few seeds (the default): all figures within minutes
    #[arg(long, group = "extent")]
    pub(crate) quick: bool,
    /// Every cell, with seeds enough for narrow intervals: takes long, and goes on where it was cut off
    #[arg(long, group = "extent")]
    pub(crate) full: bool,
    /// Runs at the same time; default one a processor
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) store: LabStoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LabReportArgs {
    /// Where the page goes; unless given, report.html beside the results
    #[arg(long, value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: LabStoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LabStoreArgs {
    /// Seeds of each cell instead of the figure's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: Option<u64>,
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) results: PathBuf,
    /// Folder with recorded link traces, for figure 14: NAME.down with NAME.up (Mahimahi), NAME.pitree-trace (Zhuge)
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    // iperf3 users write bare seconds.
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(seconds.into()));
    }
    tack_base::units::parse_duration(text).map_err(|error| error.to_string())
}

fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("above zero".into()),
        interval => Ok(interval),
    }
}

/// Both sides say once a second that they are alive; less patience than three of those is a mistake.
fn silence(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        duration if duration >= Duration::from_secs(3) => Ok(duration),
        _ => Err("at least 3s, because an idle peer says once a second that it is alive".into()),
    }
}

fn size(text: &str) -> Result<u64, String> {
    match tack_base::units::parse_size(text) {
        Ok(0) => Err("at least one byte".into()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_may_be_bare_seconds() {
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(duration("fast").is_err());
        assert!(silence("1s").is_err());
    }

    #[test]
    fn the_last_argument_of_send_is_the_address() {
        let send = |arguments: &[&str]| {
            let cli = Cli::try_parse_from(["tack", "send"].iter().chain(arguments)).unwrap();
            let Command::Send(args) = cli.command else {
                panic!("not send")
            };
            args.targets()
        };
        for arguments in [
            &["a", "-", "localhost:5"][..],
            &["a", "-", "--json", "localhost:5"],
            &["--json", "a", "--follow", "-", "localhost:5"],
        ] {
            let (paths, address) = send(arguments).unwrap();
            assert_eq!(paths, [PathBuf::from("a"), PathBuf::from("-")]);
            assert_eq!(address.to_string(), "localhost:5");
        }
        assert!(send(&["a"]).is_err(), "one of the two is missing");
        assert!(
            send(&["a", "b/c"])
                .unwrap_err()
                .to_string()
                .contains("names the receiver")
        );
    }
}
