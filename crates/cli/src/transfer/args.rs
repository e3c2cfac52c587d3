//! The arguments of `tack send` and `tack recv`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tack::{AckKind, Algorithm, Config};

use crate::address::{Address, ReachArgs};
use crate::exit::Failure;
use crate::values::{duration, listen, silence};

/// Most transfers at a time that the command line accepts.
pub(crate) const MAX_TRANSFERS: u16 = 1024;

/// Settings of connections.
#[derive(Clone, Debug, Args)]
pub(crate) struct TransportArgs {
    /// Congestion control of what the client sends: new_reno, cubic, bbr, vegas, compound; bbr:profile=realtime,probe_rtt=mild for media
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
    /// Files and folders to send (- is standard input), then the receiver: host, host:port or [v6]:port; the default port
    /// is 7777
    // One list, because options may stand between any two of them.
    #[arg(required = true, value_name = "PATH", num_args = 1..)]
    targets: Vec<OsString>,
    /// Name at the receiver, for one file or folder; required for standard input
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<OsString>,
    /// Send the targets of symbolic links [default: links are skipped and listed]
    #[arg(long, conflicts_with = "keep_links")]
    pub(crate) follow: bool,
    /// Send symbolic links as links; the receiver accepts those that point below its directory
    #[arg(long)]
    pub(crate) keep_links: bool,
    /// Print a JSON summary with every file's hash to standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Time to wait for an answer when connecting
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) connect_timeout: Duration,
    /// Retry for this time while the receiver is busy and its queue is full; 0s does not retry
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) retry: Duration,
    /// Give up if the receiver sends nothing for this time (at least 3s)
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = silence)]
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
            .ok_or_else(|| wrong("no path and no receiver given"))?;
        let text = address
            .to_str()
            .ok_or_else(|| wrong("the last argument is not a valid address"))?;
        if paths.is_empty() {
            return Err(wrong("expected a path and the receiver's address"));
        }
        let address = text.parse().map_err(|error| {
            wrong(&format!(
                "expected the receiver's address as the last argument: {error}"
            ))
        })?;
        Ok((paths.iter().map(PathBuf::from).collect(), address))
    }
}

#[derive(Debug, Args)]
pub(crate) struct RecvArgs {
    /// Address to listen on, or a port of 127.0.0.1; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7777", value_parser = listen)]
    pub(crate) listen: Address,
    /// Directory for received files; created if it does not exist
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// End after one transfer, with its exit code
    #[arg(long)]
    pub(crate) once: bool,
    /// Replace existing files, add to existing folders, and accept names that begin with a dot
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print JSON to standard output: the listening address, then one object per transfer
    #[arg(long)]
    pub(crate) json: bool,
    /// Maximum number of transfers at a time; further senders wait
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_TRANSFERS)))]
    pub(crate) max_transfers: u16,
    /// Maximum number of waiting senders; further senders are refused
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(0..=i64::from(MAX_TRANSFERS)))]
    pub(crate) max_waiting: u16,
    /// Give up on a sender that sends nothing for this time (at least 3s)
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = silence)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn the_last_argument_of_send_is_the_address() {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            send: SendArgs,
        }
        let send = |arguments: &[&str]| {
            let program = Program::try_parse_from(["send"].iter().chain(arguments)).unwrap();
            program.send.targets()
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
                .contains("expected the receiver's address")
        );
    }
}
