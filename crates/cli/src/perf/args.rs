//! The arguments of `tack perf`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::Args;
use clap::builder::ArgPredicate;
use tack::{AckKind, Algorithm};
use tack_base::Rate;

use super::request::{
    Carrier, Coalescing, DEFAULT_DATAGRAM, DEFAULT_MESSAGE, Direction, Exchange, Limit,
    MAX_STREAMS, MAX_TIME, ServerOutput, TestRequest,
};
use crate::address::{Address, Family};
use crate::carrier::CarrierArgs;
use crate::exit::Failure;
use crate::meeting::{MeetingArgs, Target};
use crate::net::{CLEAR_PERF_UDP_PORT, PERF_UDP_PORT};
use crate::observe::ObserveArgs;
use crate::values::{duration, interval, listen, rate, size};

/// Bytes of one write on a connection: what `--blockcount` counts unless `--length` says otherwise.
const BLOCK: u64 = 128 << 10;
/// Default rate of each stream of a UDP test, as in iperf3.
const UDP_RATE: Rate = Rate::from_bits_per_sec(1_000_000);

/// Whose JSON is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum JsonForm {
    /// One object of our own.
    Tack,
    /// What `iperf3 -J` prints, with our object in it.
    Iperf3,
}

/// Whose CSV is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum CsvForm {
    /// What `iperf -y C -e` prints (iperf 2).
    Iperf2,
}

/// What requests and responses run beside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum RrMode {
    /// Nothing: all connections exchange requests and responses.
    Alone,
    /// Bulk data on all connections but one more.
    Load,
}

/// What a test prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OutputForm {
    Text,
    Json,
    Iperf3,
    Iperf2,
}

#[derive(Debug, Args)]
pub(crate) struct PerfArgs {
    /// The server: its ticket or code, a known peer (laptop:), or an address: host, host:port or
    /// [v6]:port; the default port is 7778, with --insecure 7779
    #[arg(value_name = "PEER", conflicts_with_all = ["server", "client"])]
    peer: Option<String>,
    /// The server, in iperf3's form: -c PEER
    #[arg(long, short, value_name = "PEER", conflicts_with = "server")]
    client: Option<String>,
    /// Serve tests
    #[arg(long, short)]
    pub(crate) server: bool,
    /// Server: address to listen on, or a port of 127.0.0.1 [default: port 7778 of all addresses,
    /// with --insecure port 7779 of 127.0.0.1]; port 0 picks a free port. On loopback any local
    /// user may run tests. On other addresses a client must have the ticket or the code, or be a
    /// known peer
    #[arg(long, value_name = "ADDR", value_parser = listen, requires = "server")]
    listen: Option<Address>,
    /// UDP port of the server
    #[arg(long, short, value_name = "PORT")]
    port: Option<u16>,
    /// Local address to use
    #[arg(long, short = 'B', value_name = "HOST")]
    pub(crate) bind: Option<IpAddr>,
    /// IPv4 addresses only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// IPv6 addresses only
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Server: end after one test
    #[arg(long, short = '1', requires = "server")]
    pub(crate) one_off: bool,
    /// Server: maximum number of tests at a time; further clients are refused
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64), requires = "server")]
    pub(crate) max_clients: u16,
    /// Server: maximum length of a test
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = interval, requires = "server")]
    pub(crate) max_duration: Duration,
    /// Server: maximum number of bytes of a test, over all directions and connections
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "server")]
    pub(crate) max_bytes: Option<u64>,
    /// Length of the test
    #[arg(long, short, value_name = "DURATION", default_value = "10s", value_parser = duration, conflicts_with = "server")]
    time: Duration,
    /// Send this much on each connection instead of for a time: 10MiB; 10M means the same
    #[arg(long, short = 'n', value_name = "SIZE", value_parser = size, conflicts_with_all = ["time", "server"])]
    bytes: Option<u64>,
    /// Send this many blocks on each connection instead of for a time
    #[arg(long, short = 'k', value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["time", "bytes", "server"])]
    blockcount: Option<u64>,
    /// Bytes per block [default: 128KiB], with --udp per datagram [default: 1448]
    #[arg(long, short, value_name = "SIZE", value_parser = size, conflicts_with = "server")]
    length: Option<u64>,
    /// Leave the first part of the test (slow start) out of the results
    #[arg(long, short = 'O', value_name = "DURATION", default_value = "0s", value_parser = duration, conflicts_with = "server")]
    omit: Duration,
    /// Maximum rate of each connection: 10Mbps or 10M; 0 is no limit [default: no limit, with
    /// --udp 1Mbps]
    #[arg(long, short, value_name = "RATE", value_parser = rate, conflicts_with = "server")]
    bitrate: Option<Rate>,
    /// Send plain UDP datagrams instead: measures loss and jitter. Nothing encrypts them, so both
    /// sides need --insecure
    #[arg(long, short, conflicts_with_all = ["server", "congestion", "ack", "coalesce", "mss", "window"])]
    udp: bool,
    /// The server sends, this side receives
    #[arg(long, short = 'R', conflicts_with_all = ["server", "bidir"])]
    reverse: bool,
    /// Both sides send
    #[arg(long, conflicts_with = "server")]
    bidir: bool,
    /// Connections at the same time
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_STREAMS)), conflicts_with = "server")]
    parallel: u16,
    /// Time between reports; 0s reports only the end
    #[arg(long, short, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    pub(crate) interval: Duration,
    /// Print JSON instead of text: one object with intervals and summary, on a server one per test.
    /// With iperf3 a client prints iperf3's object, and the own one in it under `tack`
    #[arg(
        long,
        short = 'J',
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "tack"
    )]
    json: Option<JsonForm>,
    /// Print CSV as iperf2 does (-y C), a row for each interval and one for the whole
    #[arg(
        long,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "iperf2",
        conflicts_with_all = ["server", "json", "get_server_output"]
    )]
    csv: Option<CsvForm>,
    /// Exchange requests and responses of --length bytes (1), one after the other, and report how
    /// long each takes. With load, one connection does so beside the bulk data of the others
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "alone",
        conflicts_with_all = ["server", "udp"]
    )]
    rr: Option<RrMode>,
    /// Show the server's intervals too
    #[arg(long, conflicts_with = "server")]
    get_server_output: bool,
    /// Congestion control of both sides: new_reno, cubic, bbr, vegas, compound;
    /// bbr:profile=realtime,probe_rtt=mild for media; cubic:profile=linux by the rules of Linux, in
    /// whole segments
    #[arg(
        long,
        short = 'C',
        value_name = "NAME",
        default_value_t,
        conflicts_with = "server"
    )]
    congestion: Algorithm,
    /// Send one acknowledgement for all segments that one system call delivers, and ignore the ACK
    /// policy. This is the fastest. The default is off if --ack is given, so that the policy takes
    /// effect
    // Stands before `ack`: clap fills in defaults in this order, and one that is filled in counts
    // as present.
    #[arg(
        long,
        value_name = "WHETHER",
        default_value = "on",
        default_value_if("ack", ArgPredicate::IsPresent, "off"),
        conflicts_with = "server"
    )]
    coalesce: Coalescing,
    /// Acknowledgement policy of both sides: tack, every, delayed:2, delayed:8,timer=40ms
    #[arg(
        long,
        value_name = "POLICY",
        default_value_t,
        conflicts_with = "server"
    )]
    ack: AckKind,
    /// Largest segment payload, bytes
    #[arg(long, short = 'M', value_name = "BYTES", value_parser = clap::value_parser!(u16).range(64..=65000), conflicts_with = "server")]
    mss: Option<u16>,
    /// Maximum size of send and receive buffers, and so of the window
    #[arg(long, short, value_name = "SIZE", value_parser = size, conflicts_with = "server")]
    window: Option<u64>,
    /// Time to wait for an answer when connecting
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration, conflicts_with = "server")]
    pub(crate) connect_timeout: Duration,
    /// Do not encrypt, and let anybody test: anyone on the path can read and change the data. Both
    /// sides need it; the default ports differ from those of encrypted tests
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    pub(crate) carrier: CarrierArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    #[command(flatten)]
    pub(crate) meeting: MeetingArgs,
}

impl PerfArgs {
    /// The server to test with; `None` serves.
    pub(crate) fn target(&self) -> Result<Option<Target>, Failure> {
        if self.insecure {
            self.meeting.check_clear()?;
        }
        if self.server {
            return Ok(None);
        }
        let text = self.peer.as_deref().or(self.client.as_deref());
        let target = self.meeting.peer.target.target(text)?.ok_or_else(|| {
            Failure::usage(
                "no target; expected an address, a ticket, a code or a name (laptop:), or --server to serve tests",
            )
        })?;
        let named = format!("the server is given as {}", target.shown());
        self.meeting.waiting.check_unused(&[], &named)?;
        self.with_port(target).map(Some)
    }

    /// Where a server listens.
    pub(crate) fn listen_address(&self) -> Address {
        let listen = self.listen.clone().unwrap_or_else(|| {
            let port = self.udp_port();
            match (self.insecure, self.ipv4) {
                (true, _) => Address::local(port),
                (false, true) => Address::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))),
                (false, false) => Address::everywhere(port),
            }
        });
        let listen = match self.bind {
            Some(ip) => listen.on(ip),
            None => listen,
        };
        match self.port {
            Some(port) => listen.at(port),
            None => listen,
        }
    }

    /// The UDP port of servers, unless an address names another.
    pub(crate) fn udp_port(&self) -> u16 {
        if self.insecure {
            CLEAR_PERF_UDP_PORT
        } else {
            PERF_UDP_PORT
        }
    }

    fn with_port(&self, target: Target) -> Result<Target, Failure> {
        let Some(port) = self.port else {
            return Ok(target);
        };
        let at = |address: Address| match address.port() {
            Some(other) if other != port => Err(Failure::usage(format!(
                "{address} has port {other}, but --port is {port}"
            ))),
            _ => Ok(address.at(port)),
        };
        match target {
            Target::Address(address) => at(address).map(Target::Address),
            Target::Ticket(ticket, Some(address)) => Ok(Target::Ticket(ticket, Some(at(address)?))),
            Target::Code(code, Some(address)) => Ok(Target::Code(code, Some(at(address)?))),
            _ => Err(Failure::usage(
                "--port goes with an address; a ticket, a code and a name bring their own",
            )),
        }
    }

    /// Which addresses of a name are meant.
    pub(crate) fn family(&self) -> Family {
        match (self.ipv4, self.ipv6) {
            (true, _) => Family::V4,
            (false, true) => Family::V6,
            (false, false) => Family::Any,
        }
    }

    /// True for clear text.
    pub(crate) fn is_clear(&self) -> bool {
        self.insecure
    }

    /// What a client prints.
    pub(crate) fn form(&self) -> OutputForm {
        match (self.csv, self.json) {
            (Some(CsvForm::Iperf2), _) => OutputForm::Iperf2,
            (None, Some(JsonForm::Iperf3)) => OutputForm::Iperf3,
            (None, Some(JsonForm::Tack)) => OutputForm::Json,
            (None, None) => OutputForm::Text,
        }
    }

    /// Whether a server prints JSON.
    ///
    /// # Errors
    /// For iperf3's, which has no form for a server's tests.
    pub(crate) fn server_json(&self) -> Result<bool, Failure> {
        match self.json {
            Some(JsonForm::Iperf3) => Err(Failure::usage(
                "--json=iperf3 is for clients; a server prints one object for each test with --json",
            )),
            json => Ok(json.is_some()),
        }
    }

    /// The test that a client asks for.
    pub(crate) fn request(&self) -> Result<TestRequest, Failure> {
        if self.udp && !self.is_clear() {
            return Err(Failure::usage(
                "UDP tests (-u) are not encrypted, but this test is to be; `tack perf --help` says what -u needs",
            ));
        }
        if self.udp && self.carrier.is_tun() {
            return Err(Failure::usage(
                "UDP tests (-u) need --carrier udp: behind a TUN device there is TCP alone",
            ));
        }
        let direction = match (self.reverse, self.bidir) {
            (_, true) => Direction::Both,
            (true, false) => Direction::Down,
            (false, false) => Direction::Up,
        };
        let block = match (self.length, self.udp, self.rr) {
            // Of bulk data beside requests: they have a length of their own.
            (_, _, Some(RrMode::Load)) | (None, false, None) => BLOCK,
            (Some(length), _, _) => length,
            (None, true, _) => u64::from(DEFAULT_DATAGRAM),
            (None, false, Some(RrMode::Alone)) => u64::from(DEFAULT_MESSAGE),
        };
        let exchange = match self.rr {
            None => None,
            Some(mode) => Some(Exchange {
                bytes: u32::try_from(self.length.unwrap_or(DEFAULT_MESSAGE.into()))
                    .map_err(|_| Failure::usage("expected messages of at most 1 MiB (--length)"))?,
                beside_load: mode == RrMode::Load,
            }),
        };
        let limit = match (self.bytes, self.blockcount) {
            (Some(bytes), _) => Limit::Bytes(bytes),
            (None, Some(blocks)) => Limit::Bytes(blocks.saturating_mul(block)),
            (None, None) => Limit::Millis(millis(self.time)),
        };
        let carrier = if self.udp {
            let length = u16::try_from(block).map_err(|_| {
                Failure::usage("expected at most 65507 bytes of payload per datagram")
            })?;
            Carrier::Udp { length }
        } else {
            Carrier::Tcp
        };
        let bitrate = match self.bitrate {
            None if self.udp => Some(UDP_RATE),
            Some(rate) if rate.is_zero() => None,
            other => other,
        };
        let request = TestRequest {
            direction,
            carrier,
            streams: self.parallel,
            limit,
            omit_millis: millis(self.omit),
            bitrate: bitrate.map(Rate::bits_per_sec),
            exchange,
            server_output: match (self.get_server_output, self.form()) {
                (false, _) => ServerOutput::None,
                (true, OutputForm::Text | OutputForm::Iperf2) => ServerOutput::Text,
                (true, OutputForm::Json | OutputForm::Iperf3) => ServerOutput::Json,
            },
            interval_millis: millis(self.interval),
            congestion: self.congestion.to_string(),
            ack: self.ack.to_string(),
            coalesce: self.coalesce,
            mss: self.mss,
            window: self.window,
        };
        // What the server would refuse is wrong usage here already.
        request.config(MAX_TIME, None).map_err(Failure::usage)?;
        Ok(request)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        perf: PerfArgs,
    }

    fn parse(line: &str) -> PerfArgs {
        Program::try_parse_from(line.split(' ')).unwrap().perf
    }

    #[test]
    fn iperf3s_spellings_mean_what_they_mean_there() {
        let ours = parse(
            "perf 127.0.0.1:5201 --bytes 10MiB --parallel 4 --reverse --json --interval 2s --bitrate 20Mbps",
        );
        let theirs = parse("perf -c 127.0.0.1 -p 5201 -n 10M -P 4 -R -J -i 2 -b 20M");
        assert_eq!(ours.request().unwrap(), theirs.request().unwrap());
        assert_eq!(
            ours.target().unwrap().unwrap().shown(),
            theirs.target().unwrap().unwrap().shown()
        );
        let server = parse("perf -s -p 5201 -1 -B ::1");
        assert!(server.server && server.one_off);
        assert_eq!(server.listen_address().to_string(), "[::1]:5201");
    }

    #[test]
    fn blocks_datagrams_and_rates_become_a_request() {
        let blocks = parse("perf -c ::1 -k 10").request().unwrap();
        assert_eq!(blocks.limit, Limit::Bytes(10 * BLOCK));
        assert_eq!(blocks.bitrate, None);
        let udp = parse("perf -c ::1 -u -k 10 -O 1 --insecure")
            .request()
            .unwrap();
        assert_eq!(udp.limit, Limit::Bytes(14_480));
        assert_eq!((udp.bitrate, udp.omit_millis), (Some(1_000_000), 1000));
        assert_eq!(udp.carrier, Carrier::Udp { length: 1448 });
        let fast = parse("perf -c ::1 -u -b 0 -l 100 --insecure")
            .request()
            .unwrap();
        assert_eq!(fast.bitrate, None);
        assert!(
            parse("perf -c ::1 -u -l 10 --insecure").request().is_err(),
            "no room for the head"
        );
        let refused = parse("perf -c ::1 -u").request().unwrap_err().to_string();
        assert!(refused.contains("encrypt") && !refused.contains("--insecure"));
        assert!(parse("perf -c host:1 -p 2").target().is_err());
        for line in [
            "perf --server --insecure --keep",
            "perf -c host --insecure --remember laptop",
        ] {
            let refused = parse(line).target().unwrap_err().to_string();
            assert!(refused.contains("--insecure is clear text"), "{refused}");
        }
        let refused = parse("perf -c host --keep").target().unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("--keep is for a side that waits")
        );
    }
}
