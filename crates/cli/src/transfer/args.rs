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
    /// Send what symbolic links point to (unless told what to do with them they are left out, and named)
    #[arg(long, conflicts_with = "keep_links")]
    pub(crate) follow: bool,
    /// Send symbolic links as links; the receiver takes those that stay within its directory
    #[arg(long)]
    pub(crate) keep_links: bool,
    /// Print a JSON summary with every file's hash to standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Give up when nobody answers for this long
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) connect_timeout: Duration,
    /// Keep trying for this long while the receiver is busy and lets no more senders wait; 0s gives up at once
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) retry: Duration,
    /// Give up when the receiver is silent for this long (at least 3s)
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
    /// Address to listen on, or a port of 127.0.0.1; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7777", value_parser = listen)]
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
    /// Most transfers at a time; more senders wait for their turn
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_TRANSFERS)))]
    pub(crate) max_transfers: u16,
    /// Most senders that wait for their turn; more are turned away
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(0..=i64::from(MAX_TRANSFERS)))]
    pub(crate) max_waiting: u16,
    /// Give up on a sender that is silent for this long (at least 3s)
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
                .contains("names the receiver")
        );
    }
}
