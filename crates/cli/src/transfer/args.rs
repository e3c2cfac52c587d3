//! The arguments of `tack send` and `tack recv`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tack::{AckKind, Algorithm, Config};
use tack_base::Rate;

use super::buffers::{BUFFER, INCOMING};
use super::protocol::Taken;
use super::receiver::existing::Existing;
use crate::address::{Address, Reach, ReachArgs};
use crate::carrier::CarrierArgs;
use crate::exit::Failure;
use crate::meeting::{MeetingArgs, Target, is_explicit};
use crate::observe::ObserveArgs;
use crate::values::{duration, listen, rate_above_zero, silence, size};
use crate::volume::Volume;

/// Most transfers at a time that the command line accepts.
pub(crate) const MAX_TRANSFERS: u16 = 1024;

/// Settings of connections.
#[derive(Clone, Debug, Args)]
pub(crate) struct TransportArgs {
    /// Congestion control of what the client sends: new_reno, cubic, bbr, vegas, compound;
    /// bbr:profile=realtime,probe_rtt=mild for media; cubic:profile=linux by the rules of Linux, in
    /// whole segments
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) congestion: Algorithm,
    /// Acknowledgement policy of what this side receives: tack (delayed:2 with peers that do not
    /// speak it), every, delayed:2, delayed:8,timer=40ms
    #[arg(long, value_name = "POLICY", default_value_t)]
    pub(crate) ack: AckKind,
    #[command(flatten)]
    pub(crate) carrier: CarrierArgs,
}

impl TransportArgs {
    /// A connection's settings; the peer is given up when it acknowledges nothing for `silence`.
    pub(crate) fn config(&self, silence: Duration) -> Config {
        Config {
            congestion: self.congestion,
            ack: self.ack,
            user_timeout: Some(silence),
            mss: JUMBO_MSS,
            base_mss: Some(Config::default().mss),
            ..Config::default()
        }
    }

    /// The settings of a transfer's connection.
    pub(crate) fn transfer_config(&self, silence: Duration) -> Config {
        Config {
            least_receive_buffer: Some(LEAST_RECEIVE_BUFFER),
            // Whoever forges one makes the side that connects do so again.
            hard_errors: true,
            ..self.config(silence)
        }
    }
}

/// Least receive buffer of a transfer, bytes. A receiver that dies loses what the window allows to
/// be in flight or unread, besides two buffers of 256 KiB. Measured over loopback at 6 Gbit/s: the
/// sender repeats 0.5 MB after a kill, and 4.6 MB with a buffer that only grows and four buffers. A
/// transfer takes a sixth longer (docs/validation/transfer.md).
const LEAST_RECEIVE_BUFFER: usize = 384 << 10;
const _: () = assert!(
    LEAST_RECEIVE_BUFFER + INCOMING * BUFFER < 1 << 20,
    "a kill costs less than a MiB"
);

/// Payload of a segment in an Ethernet jumbo frame of 9,000 bytes, over UDP and IPv4. Paths that
/// carry it (loopback, some wired networks) cost a quarter less processor time than with 1,500
/// bytes. Longer packets, which loopback would take, cost more again.
const JUMBO_MSS: u16 = 9_000 - 20 - 8 - 20;

#[derive(Debug, Args)]
#[command(override_usage = "tack send [OPTIONS] <PATH>... [PEER]")]
pub(crate) struct SendArgs {
    /// Files and folders to send (- is standard input), then the receiver: a ticket (- reads it
    /// from standard input), a code, a known peer (laptop:), or an address (host, host:port,
    /// [v6]:port; the default port is 7777). Without a receiver the program waits, and prints the
    /// command for the other machine
    // One list, because options may stand between any two of them.
    #[arg(required = true, value_name = "PATH", num_args = 1..)]
    targets: Vec<OsString>,
    /// Without a receiver: address to listen on, or a port of 127.0.0.1; port 0 picks a free port
    /// [default: port 7777 of all addresses, IPv6 and IPv4]
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    pub(crate) listen: Option<Address>,
    /// Name at the receiver, for one file or folder; required for standard input
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<OsString>,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    /// Send what symbolic links point to [default: they are sent as links, and the receiver accepts
    /// those that point below its directory]
    #[arg(long, conflicts_with = "skip_links")]
    pub(crate) follow: bool,
    /// Leave symbolic links out, and list them
    #[arg(long)]
    pub(crate) skip_links: bool,
    /// Print a JSON summary with every file's hash to standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Replace files that differ at the receiver, if it permits that (its --overwrite)
    #[arg(long, group = "taken")]
    overwrite: bool,
    /// Replace files that are older at the receiver, if it permits that (its --overwrite or
    /// --update)
    #[arg(long, group = "taken")]
    update: bool,
    /// Leave files that exist at the receiver as they are, without an error
    #[arg(long, group = "taken")]
    skip: bool,
    /// If a name exists at the receiver, store the file under another name (a.1.txt)
    #[arg(long, group = "taken")]
    rename: bool,
    /// Delete files at the receiver that are missing from the folders sent. The receiver must allow
    /// it (its --delete). Nothing is deleted after an error. Files that --exclude names stay
    #[arg(long, conflicts_with_all = ["skip", "rename"])]
    pub(crate) delete: bool,
    /// Compare files by content (BLAKE3), not by size and modification time
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Leave out what matches a pattern, as in .gitignore; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Leave out what matches the patterns in a file, as in .gitignore; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) exclude_from: Vec<PathBuf>,
    /// Leave out what the files .gitignore and .ignore in the folders sent say
    #[arg(long)]
    pub(crate) ignore_files: bool,
    /// Send at most at this rate (10M is 10 Mbit/s)
    #[arg(long, value_name = "RATE", value_parser = rate_above_zero)]
    pub(crate) bwlimit: Option<Rate>,
    /// Print only errors
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Name each file that is stored
    #[arg(short, long)]
    verbose: bool,
    /// List what would be sent, and with --delete what would be deleted; change nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// If the connection is lost, try to reconnect for this time and resume; 0s disables this
    #[arg(long, value_name = "DURATION", default_value = "600s", value_parser = duration)]
    pub(crate) reconnect: Duration,
    /// Time to wait for an answer when connecting
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) connect_timeout: Duration,
    /// Retry for this time while the receiver cannot be reached, or is busy and its queue is full;
    /// 0s does not retry
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) retry: Duration,
    /// Give up if the receiver sends nothing for this time (at least 3s)
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = silence)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    #[command(flatten)]
    pub(crate) meeting: MeetingArgs,
}

impl SendArgs {
    /// How much is said.
    pub(crate) fn volume(&self) -> Volume {
        Volume::from_flags(self.quiet, self.verbose)
    }

    /// What to do about names that are taken at the receiver.
    pub(crate) fn taken(&self) -> Taken {
        match (self.overwrite, self.update, self.skip, self.rename) {
            (true, ..) => Taken::Overwrite,
            (_, true, ..) => Taken::Update,
            (_, _, true, _) => Taken::Skip,
            (.., true) => Taken::Rename,
            _ => Taken::AsReceiver,
        }
    }

    /// What to send, and to whom; without a target this side waits.
    pub(crate) fn targets(&self) -> Result<(Vec<PathBuf>, Option<Target>), Failure> {
        let (text, paths) = match self.targets.split_last() {
            Some((last, paths)) if names_a_target(last, paths) => (last.to_str(), paths),
            _ => (None, &self.targets[..]),
        };
        let target = self.meeting.peer.target.target(text)?;
        if self.reach.reach() == Reach::Anywhere {
            self.meeting.check_clear()?;
        }
        if let Some(target) = &target {
            let listens = ("--listen", self.listen.is_some());
            let named = format!("the receiver is given as {}", target.shown());
            self.meeting.waiting.check_unused(&[listens], &named)?;
        }
        let wrong = |why: &str| Failure::usage(format!("{why}: tack send PATH... [PEER]"));
        if paths.is_empty() {
            return Err(wrong(&match &target {
                Some(target) => format!("expected a path before {}", target.shown()),
                None => "expected a path".to_owned(),
            }));
        }
        if self.reach.reach() == Reach::Anywhere && target.is_none() {
            return Err(wrong(
                "clear text takes the receiver's address as the last argument",
            ));
        }
        Ok((paths.iter().map(PathBuf::from).collect(), target))
    }
}

/// True when the last argument is meant as the receiver and not as one more path.
fn names_a_target(last: &OsString, before: &[OsString]) -> bool {
    let Some(text) = last.to_str() else {
        return false;
    };
    match text {
        // Standard input is either contents or a ticket.
        "-" => !before.is_empty() && !before.iter().any(|path| path == "-"),
        text if is_explicit(text) => true,
        text => !Path::new(text).exists() && !before.is_empty(),
    }
}

#[derive(Debug, Args)]
#[command(override_usage = "tack recv [OPTIONS] [-] [PEER]")]
pub(crate) struct RecvArgs {
    /// Whom to fetch files from: a ticket, a code, a known peer (laptop:), or an address. Without
    /// it the program waits, and prints the command for the other machine. If the first argument is
    /// -, one file is received and written to standard output; a second - reads a ticket from
    /// standard input
    #[arg(value_name = "PEER", num_args = 0..=2)]
    targets: Vec<String>,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    /// Address to listen on, or a port of 127.0.0.1; port 0 picks a free port [default: port 7777
    /// of all addresses, IPv6 and IPv4, and with --insecure of 127.0.0.1]
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    pub(crate) listen: Option<Address>,
    /// Directory for received files; created if it does not exist [default: .]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// End after one transfer, with its exit code
    #[arg(long)]
    once: bool,
    /// Replace existing files that differ, add to existing folders, and accept names that begin
    /// with a dot
    #[arg(long, group = "existing")]
    overwrite: bool,
    /// As --overwrite, but replace only files that are older than the sender's
    #[arg(long, group = "existing")]
    update: bool,
    /// Leave existing files as they are, without an error; add to existing folders
    #[arg(long, group = "existing")]
    skip: bool,
    /// Store files whose names exist under other names (a.1.txt); add to existing folders
    #[arg(long, group = "existing")]
    rename: bool,
    /// Allow senders to delete files here that are missing from their folders (their --delete)
    #[arg(long, requires = "existing", conflicts_with_all = ["skip", "rename"])]
    pub(crate) delete: bool,
    /// Ask on the terminal before accepting a transfer
    #[arg(long)]
    pub(crate) confirm: bool,
    /// Refuse transfers larger than this size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_bytes: Option<u64>,
    /// If the connection is lost, try to reconnect to PEER for this time and resume; without a
    /// PEER, and with --once, wait this time for the sender to reconnect; 0s disables this
    #[arg(long, value_name = "DURATION", default_value = "600s", value_parser = duration)]
    pub(crate) reconnect: Duration,
    /// Print JSON to standard output: the listening address, then one object per transfer
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only errors, and what to type on the other side
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Name each file that is stored, unchanged or removed
    #[arg(short, long)]
    verbose: bool,
    /// Maximum number of transfers at a time; further senders wait [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_TRANSFERS)))]
    max_transfers: Option<u16>,
    /// Maximum number of waiting senders; further senders are refused [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=i64::from(MAX_TRANSFERS)))]
    max_waiting: Option<u16>,
    /// Give up on a sender that sends nothing for this time (at least 3s)
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = silence)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    #[command(flatten)]
    pub(crate) meeting: MeetingArgs,
}

impl RecvArgs {
    /// How much is said.
    pub(crate) fn volume(&self) -> Volume {
        Volume::from_flags(self.quiet, self.verbose)
    }

    /// Where files are stored.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.as_deref().unwrap_or(Path::new("."))
    }

    /// Most transfers at a time, and most senders that wait.
    pub(crate) fn places(&self) -> (usize, usize) {
        let transfers = self.max_transfers.unwrap_or(16);
        (transfers.into(), self.max_waiting.unwrap_or(64).into())
    }

    /// One file goes to standard output.
    pub(crate) fn to_stdout(&self) -> bool {
        self.targets.first().is_some_and(|first| first == "-")
    }

    /// This side ends after one transfer.
    pub(crate) fn is_once(&self) -> bool {
        self.once || self.to_stdout()
    }

    /// How long this side tries to reconnect where it is the one that connects.
    pub(crate) fn fetches_again(&self) -> Duration {
        if self.to_stdout() {
            // What standard output has taken cannot be taken back.
            Duration::ZERO
        } else {
            self.reconnect
        }
    }

    /// Longest silence of a sender to which this side connects.
    pub(crate) fn fetching_silence(&self) -> Duration {
        // A connection that can be made again is not waited for as long.
        match self.fetches_again() {
            Duration::ZERO => self.timeout,
            _ => self.timeout / 2,
        }
    }

    /// Whom to fetch from; `None` waits.
    pub(crate) fn target(&self) -> Result<Option<Target>, Failure> {
        let wrong = |why: &str| Err(Failure::usage(format!("{why}: tack recv [-] [PEER]")));
        let peer = match (&self.targets[..], self.to_stdout()) {
            (_, true) if self.json => {
                return wrong("--json and the file both want standard output");
            }
            ([], _) | ([_], true) => None,
            ([peer], false) | ([_, peer], true) => Some(peer.as_str()),
            _ => return wrong("expected one peer"),
        };
        self.check_stored()?;
        let target = self.meeting.peer.target.target(peer)?;
        if self.reach.reach() == Reach::Anywhere {
            self.meeting.check_clear()?;
        }
        if let Some(target) = &target {
            let own = [
                ("--listen", self.listen.is_some()),
                ("--max-transfers", self.max_transfers.is_some()),
                ("--max-waiting", self.max_waiting.is_some()),
            ];
            let named = format!("the sender is given as {}", target.shown());
            self.meeting.waiting.check_unused(&own, &named)?;
        }
        Ok(target)
    }
}

impl RecvArgs {
    /// Refuses options about files that are stored where standard output takes the only one.
    fn check_stored(&self) -> Result<(), Failure> {
        let stored = [
            ("--dir", self.dir.is_some()),
            ("--overwrite", self.overwrite),
            ("--update", self.update),
            ("--skip", self.skip),
            ("--rename", self.rename),
        ];
        match stored.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) if self.to_stdout() => Err(Failure::usage(format!(
                "{option} is for files that are stored, but - writes the file to standard output; leave out one of them"
            ))),
            _ => Ok(()),
        }
    }

    /// What to do about names that are taken.
    pub(crate) fn existing(&self) -> Existing {
        match (self.overwrite, self.update, self.skip, self.rename) {
            (true, ..) => Existing::Overwrite,
            (_, true, ..) => Existing::Update,
            (_, _, true, _) => Existing::Skip,
            (.., true) => Existing::Rename,
            _ => Existing::Refuse,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn a_dead_peer_is_noticed_after_15_s_by_default() {
        #[derive(clap::Parser)]
        struct Sender {
            #[command(flatten)]
            send: SendArgs,
        }
        #[derive(clap::Parser)]
        struct Receiver {
            #[command(flatten)]
            recv: RecvArgs,
        }
        let send = Sender::try_parse_from(["send", "a", "host"]).unwrap().send;
        let recv = Receiver::try_parse_from(["recv"]).unwrap().recv;
        for (timeout, transport) in [
            (send.timeout, send.transport),
            (recv.timeout, recv.transport),
        ] {
            assert_eq!(timeout, Duration::from_secs(15));
            let config = transport.transfer_config(timeout);
            assert_eq!(config.user_timeout, Some(timeout));
        }
    }

    #[test]
    fn options_that_would_have_no_effect_are_refused() {
        #[derive(clap::Parser)]
        enum Program {
            Send(SendArgs),
            Recv(RecvArgs),
        }
        let words = |line: &str| {
            let arguments = ["tack"].into_iter().chain(line.split(' '));
            let result = match Program::try_parse_from(arguments).unwrap() {
                Program::Send(args) => args.targets().map(drop),
                Program::Recv(args) => args.target().map(drop),
            };
            result.err().map(|failure| failure.to_string())
        };
        let clear = "--insecure is clear text";
        let stored = "- writes the file to standard output";
        for (line, option, why) in [
            ("recv --insecure --write-ticket f", "--write-ticket", clear),
            (
                "recv --insecure --ticket-lifetime 1h",
                "--ticket-lifetime",
                clear,
            ),
            ("recv --insecure --remember laptop", "--remember", clear),
            ("recv --insecure --keep", "--keep", clear),
            ("recv --insecure --no-code", "--no-code", clear),
            (
                "recv --insecure --remember laptop host",
                "--remember",
                clear,
            ),
            (
                "send --insecure --remember laptop a host",
                "--remember",
                clear,
            ),
            ("recv - --dir inbox", "--dir", stored),
            ("recv - --overwrite", "--overwrite", stored),
            ("recv - --update --delete", "--update", stored),
            ("recv - --skip", "--skip", stored),
            ("recv - --rename laptop:", "--rename", stored),
        ] {
            let said = words(line).unwrap_or_default();
            assert!(
                said.contains(option) && said.contains(why),
                "{line}: {said}"
            );
        }
        for line in [
            "recv --keep --no-code --remember laptop",
            "recv --insecure --dir inbox --overwrite",
            "recv - --insecure",
            "send --insecure --wait 6s a host",
        ] {
            assert_eq!(words(line), None, "{line}");
        }
    }

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
            let (paths, target) = send(arguments).unwrap();
            assert_eq!(paths, [PathBuf::from("a"), PathBuf::from("-")]);
            assert_eq!(target.unwrap().shown(), "localhost:5");
        }
        for waiting in [&["a"][..], &["-"], &["a", env!("CARGO_MANIFEST_DIR")]] {
            let (paths, target) = send(waiting).unwrap();
            assert_eq!(paths.len(), waiting.len());
            assert!(target.is_none(), "this side waits");
        }
        for (last, shown) in [
            ("laptop:", "laptop:"),
            ("7-guitarist-orca", "the program that shows code 7-…"),
        ] {
            assert_eq!(send(&["a", last]).unwrap().1.unwrap().shown(), shown);
            assert!(send(&[last]).is_err(), "no path");
        }
        assert!(send(&["--insecure", "a"]).is_err(), "no receiver");
        let words = send(&["a", "b/c"]).unwrap_err().to_string();
        assert!(
            words.contains("not a valid address") && words.contains("ticket"),
            "{words}"
        );
    }
}
