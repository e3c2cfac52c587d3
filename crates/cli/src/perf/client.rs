//! The asking side: agrees on a test, runs it, reports.

use std::io;
use std::time::{Duration, Instant};

use tack_base::Rate;
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::sync::{oneshot, watch as channel};

use super::args::{OutputForm, PerfArgs};
use super::exchange;
use super::flow::{self, Budget, Job, Sending};
use super::iperf2;
use super::iperf3::{self, Setting};
use super::lines::{heads, interval_lines, summary_lines};
use super::omitted::agreements;
use super::processor::CpuTime;
use super::protocol::{
    ClientMessage, MAGIC, MAX_ANSWER, ServerMessage, TICKET, Ticket, read_message, write_message,
};
use super::report::{Cpu, Interval, Intervals, Output, Summary, TestJson};
use super::request::{Carrier, Coalescing, Direction, MAX_TIME, TestRequest};
use super::results::FlowResult;
use super::security::{self, DataSecurity, Protection};
use super::udp::{self, Traffic};
use super::watch::{Flows, GRACE, Timing, watch};
use crate::exit::{Exit, Failure};
use crate::meeting::{PeerStream, Target};
use crate::printer::with_stdout;
use crate::signals::Signals;
use crate::transfer::printable;

/// Time to wait for the server's error message after the test broke.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Time limit for connections to close at the program's end.
const WIND_UP: Duration = Duration::from_secs(2);

/// Runs one test.
pub(crate) async fn run(args: &PerfArgs, server: &Target) -> Result<Exit, Failure> {
    let request = args.request()?;
    let mut signals = Signals::new()?;
    let mut test = Test {
        args,
        request: &request,
        form: Some(args.form()),
        peer: server.shown(),
        protection: Protection::default(),
        setting: Setting::now(),
        intervals: Vec::new(),
    };
    let outcome = tokio::select! {
        outcome = test.run(server) => outcome,
        exit = signals.next() => {
            test.finish(&Results::default(), Some("interrupted by a signal"))?;
            return Ok(exit);
        }
    };
    match outcome {
        Ok(sides) => test.finish(&sides, None).map(|()| Exit::Done),
        Err(failure) => {
            if !failure.is_broken_pipe() {
                test.finish(&Results::default(), Some(&failure.to_string()))?;
            }
            Err(failure)
        }
    }
}

/// Runs one test that prints nothing.
pub(crate) async fn measure(
    args: &PerfArgs,
    server: &Target,
    request: &TestRequest,
) -> Result<Summary, Failure> {
    let mut test = Test {
        args,
        request,
        form: None,
        peer: server.shown(),
        protection: Protection::default(),
        setting: Setting::now(),
        intervals: Vec::new(),
    };
    let results = test.run(server).await?;
    results.summary.ok_or_else(unexpected)
}

/// Both sides' results.
#[derive(Debug, Default)]
struct Results {
    client: Vec<FlowResult>,
    server: Vec<FlowResult>,
    output: Option<Output>,
    summary: Option<Summary>,
}

struct Test<'a> {
    args: &'a PerfArgs,
    request: &'a TestRequest,
    /// What it prints, if it does.
    form: Option<OutputForm>,
    peer: String,
    protection: Protection,
    /// Where and when it runs.
    setting: Setting,
    intervals: Vec<Interval>,
}

/// The connections or the socket of the data.
enum DataChannels {
    Connections(Vec<PeerStream>),
    Datagrams(UdpSocket, u64),
}

/// A failure of the flows, of whatever printed their intervals, or of the server.
struct TestError(Failure);

impl From<io::Error> for TestError {
    fn from(error: io::Error) -> Self {
        Self(Failure::failed("a data connection failed", error))
    }
}

impl Test<'_> {
    async fn run(&mut self, server: &Target) -> Result<Results, Failure> {
        let args = self.args;
        let config = self
            .request
            .config(MAX_TIME, None)
            .map_err(Failure::usage)?;
        let connect_timeout = args.connect_timeout;
        let (mut control, security) = security::dial(args, server, &config).await?;
        self.protection = Protection::of(&control);
        self.peer = control.peer_addr().to_string();
        self.setting
            .connected(control.local_addr(), control.peer_addr());
        let paths = within(
            connect_timeout,
            "begin",
            self.begin(&mut control, &security, &config),
        )
        .await?;
        self.setting.began();
        if self.form == Some(OutputForm::Text) {
            let text = self.describe();
            with_stdout(|out| out.write_all(text.as_bytes()))?;
        }
        let coalescing = self.request.coalesce.apply(&control.endpoint());
        let (began, cpu) = (Instant::now(), CpuTime::now());
        let (client, results) = self.run_flows(paths, &mut control).await?;
        let elapsed = began.elapsed().as_secs_f64();
        drop(coalescing);
        let client_cpu = CpuTime::now().since(cpu);
        let ServerMessage::Results {
            flows: server,
            cpu_seconds,
            cpu_user_seconds,
            output,
        } = results
        else {
            return Err(unexpected());
        };
        if server.len() != client.len() {
            return Err(unexpected());
        }
        let endpoint = control.endpoint();
        drop(control);
        // Everything is known; this only spares the server a wait for our end of the connection.
        // The tests of `tack doctor`, which print nothing, have one device: its endpoint stays.
        if self.form.is_some() || endpoint.device().is_none() {
            let _ = endpoint.shutdown(WIND_UP).await;
        }
        let cpu = Cpu {
            client: client_cpu.total / elapsed,
            server: cpu_seconds / elapsed,
            client_user: client_cpu.user / elapsed,
            server_user: cpu_user_seconds.map(|seconds| seconds / elapsed),
        };
        let summary = Some(Summary::new(self.request, &client, &server, cpu));
        Ok(Results {
            client,
            server,
            output,
            summary,
        })
    }

    /// The test in words, and the heads of the columns.
    fn describe(&self) -> String {
        let request = self.request;
        let what = match request.carrier {
            Carrier::Tcp => format!(
                "{}congestion {}, acknowledgements {}{}",
                match request.exchange {
                    None => String::new(),
                    Some(exchange) => format!(
                        "requests and responses of {} bytes{}, ",
                        exchange.bytes,
                        match exchange.beside_load {
                            true => " on one more",
                            false => "",
                        }
                    ),
                },
                request.congestion,
                request.ack,
                match request.coalesce {
                    Coalescing::On => ", coalesced (--coalesce off: as the policy says)",
                    Coalescing::Off => "",
                }
            ),
            Carrier::Udp { length } => format!(
                "UDP datagrams of {length} bytes, {}",
                match request.bitrate {
                    Some(rate) => format!("{} each", Rate::from_bits_per_sec(rate)),
                    None => "at full speed".into(),
                }
            ),
        };
        let noun = match request.carrier {
            Carrier::Tcp => "connection",
            Carrier::Udp { .. } => "stream",
        };
        format!(
            "{} {noun}{} with {}, {}, {what}, {}\n{}",
            request.streams,
            if request.streams == 1 { "" } else { "s" },
            self.peer,
            match request.direction {
                _ if request.bulk_streams() == 0 => "the client asks",
                Direction::Up => "the client sends",
                Direction::Down => "the server sends",
                Direction::Both => "both sides send",
            },
            match &self.protection.cipher {
                Some(cipher) => format!("encrypted ({cipher})"),
                None => "in clear text".into(),
            },
            if self.args.interval.is_zero() {
                String::new()
            } else {
                heads(request.carrier != Carrier::Tcp)
            },
        )
    }

    /// Agrees on the test and opens its paths.
    async fn begin(
        &self,
        control: &mut PeerStream,
        security: &DataSecurity,
        config: &tack::Config,
    ) -> Result<DataChannels, Failure> {
        let lost =
            |error: io::Error| Failure::failed("the connection to the server was lost", error);
        control.write_all(&MAGIC).await.map_err(lost)?;
        write_message(control, self.request).await.map_err(lost)?;
        let (port, token) = match answer(control).await? {
            ServerMessage::Accepted { port, token } => (port, token),
            ServerMessage::Refused { message } => {
                return Err(Failure::plain(format!(
                    "the server refuses the test: {}",
                    printable(&message)
                )));
            }
            ServerMessage::Busy { message } => {
                return Err(Failure::busy(format!(
                    "the server is busy: {}",
                    printable(&message)
                )));
            }
            _ => return Err(unexpected()),
        };
        if let Carrier::Udp { .. } = self.request.carrier {
            let socket = self.datagram_socket(control, port).await?;
            let started = tokio::select! {
                answer = answer(control) => answer?,
                never = udp::greet(&socket, token) => match never {},
            };
            return match started {
                ServerMessage::Started => Ok(DataChannels::Datagrams(socket, token)),
                _ => Err(unexpected()),
            };
        }
        let mut streams = Vec::new();
        for stream in 0..self.request.connections() {
            let mut connection =
                security
                    .another(control, port, config)
                    .await
                    .map_err(|error| {
                        Failure::network(format!("cannot open data connection {stream}: {error}"))
                    })?;
            Ticket { token, stream }
                .write(&mut connection)
                .await
                .map_err(lost)?;
            streams.push(connection);
        }
        match answer(control).await? {
            ServerMessage::Started => Ok(DataChannels::Connections(streams)),
            _ => Err(unexpected()),
        }
    }

    /// A socket towards the server's port for datagrams.
    async fn datagram_socket(&self, control: &PeerStream, port: u16) -> Result<UdpSocket, Failure> {
        let mut local = control.local_addr();
        local.set_port(0);
        let mut peer = control.peer_addr();
        peer.set_port(port);
        let open = async {
            let socket = UdpSocket::bind(local).await?;
            socket.connect(peer).await?;
            io::Result::Ok(socket)
        };
        open.await
            .map_err(|error| Failure::network(format!("cannot send datagrams to {peer}: {error}")))
    }

    /// Runs all flows to their ends and reports intervals meanwhile; the server's results come
    /// last.
    async fn run_flows(
        &mut self,
        paths: DataChannels,
        control: &mut PeerStream,
    ) -> Result<(Vec<FlowResult>, ServerMessage), Failure> {
        let request = self.request;
        let count = usize::from(request.connections());
        let timing = Timing::of(request, self.args.interval, None);
        let sending = Sending {
            limit: request.limit,
            omit: timing.omit,
            bitrate: request.bitrate.map(Rate::from_bits_per_sec),
        };
        let send = request.direction.client_sends().then_some(sending);
        let mut flows = Flows::new(count, timing.omit, Budget::new(None));
        let (told, sent) = oneshot::channel();
        let (heard, peer_sent) = channel::channel(!request.direction.server_sends());
        let is_udp = matches!(paths, DataChannels::Datagrams(..));
        let agrees = !timing.omit.is_zero() && !is_udp;
        let (agreements, mut to_peer, mut from_peer) = agreements(
            count,
            agrees && send.is_some(),
            agrees && request.direction.server_sends(),
        );
        match paths {
            DataChannels::Connections(streams) => {
                let connections = streams.into_iter().zip(agreements).enumerate();
                for (stream, (connection, agreement)) in connections {
                    let job = Job {
                        stream,
                        send,
                        receive: request.direction.server_sends(),
                        preface: TICKET,
                    };
                    let shared = flows.shared();
                    let exchange = request.exchange_of(stream);
                    flows.spawn(async move {
                        let ended = match exchange {
                            Some(exchange) => {
                                let send = Some(sending);
                                let job = Job { send, ..job };
                                exchange::run(connection, job, exchange, agreement, shared).await?
                            }
                            None => flow::run(connection, job, agreement, shared).await?,
                        };
                        Ok(vec![ended])
                    });
                }
            }
            DataChannels::Datagrams(socket, token) => {
                let traffic = Traffic {
                    socket,
                    token,
                    streams: count,
                    length: request.datagram(),
                    send,
                    sent: told,
                    peer_sent,
                };
                let shared = flows.shared();
                flows.spawn(udp::run(traffic, shared));
            }
        }
        let intervals = Intervals::of_client(request);
        let (mut listening, mut speaking) = tokio::io::split(control);
        let telling = async {
            while let Some(omitted) = to_peer.next().await {
                write_message(&mut speaking, &ClientMessage::Omitted(omitted)).await?;
            }
            // Only datagrams need this message; a connection has an end.
            if is_udp && send.is_some() && sent.await.is_ok() {
                write_message(&mut speaking, &ClientMessage::Sent).await?;
            }
            std::future::pending::<io::Result<()>>().await
        };
        let hearing = async {
            loop {
                match answer(&mut listening).await? {
                    ServerMessage::Sent => _ = heard.send(true),
                    ServerMessage::Omitted(omitted) => {
                        from_peer.hear(omitted).map_err(|error| {
                            Failure::failed("the server's message makes no sense", error)
                        })?;
                    }
                    ServerMessage::Stopped { message } => {
                        return Err(Failure::plain(format!(
                            "the server ended the test: {}",
                            printable(&message)
                        )));
                    }
                    last => {
                        // A server that sends its results sends nothing else.
                        let _ = heard.send(true);
                        return Ok(last);
                    }
                }
            }
        };
        let running = watch(flows, intervals, timing, |interval| {
            self.report(interval).map_err(TestError)
        });
        let mut running = std::pin::pin!(running);
        let mut hearing = std::pin::pin!(hearing);
        let mut telling = std::pin::pin!(telling);
        let mut results = None;
        let client = loop {
            tokio::select! {
                biased;
                last = &mut hearing, if results.is_none() => results = Some(last?),
                Err(error) = &mut telling => return Err(Failure::failed("the connection to the server was lost", error)),
                client = &mut running => match client {
                    Ok(client) => break client,
                    Err(TestError(failure)) => {
                        // The server may have said why.
                        let words = tokio::time::timeout(LAST_WORDS, &mut hearing);
                        return match results.is_none().then_some(words) {
                            Some(words) => match words.await {
                                Ok(Err(said)) if !failure.is_broken_pipe() => Err(said),
                                _ => Err(failure),
                            },
                            None => Err(failure),
                        };
                    }
                }
            }
        };
        let results = match results {
            Some(results) => results,
            None => {
                let last = async {
                    tokio::select! {
                        last = &mut hearing => last,
                        Err(error) = &mut telling => Err(Failure::failed("the connection to the server was lost", error)),
                    }
                };
                within(GRACE, "send its results", last).await?
            }
        };
        Ok((client, results))
    }

    fn report(&mut self, interval: Interval) -> Result<(), Failure> {
        match self.form {
            Some(OutputForm::Text) => {
                with_stdout(|out| out.write_all(interval_lines(&interval).as_bytes()))?;
            }
            Some(OutputForm::Iperf2) => {
                let rows = iperf2::interval_rows(&self.setting, self.request, &interval);
                with_stdout(|out| out.write_all(rows.as_bytes()))?;
            }
            Some(OutputForm::Json | OutputForm::Iperf3) | None => {}
        }
        self.intervals.push(interval);
        Ok(())
    }

    fn finish(&self, sides: &Results, error: Option<&str>) -> Result<(), Failure> {
        let Some(form) = self.form else {
            return Ok(());
        };
        if let OutputForm::Json | OutputForm::Iperf3 = form {
            let json = TestJson {
                event: "test",
                peer: self.peer.clone(),
                protection: &self.protection,
                request: self.request,
                intervals: &self.intervals,
                summary: sides.summary.as_ref(),
                client: &sides.client,
                server: &sides.server,
                server_output: sides.output.as_ref(),
                error,
            };
            return with_stdout(|out| {
                match form {
                    OutputForm::Iperf3 => {
                        let theirs = iperf3::document(&self.setting, &json)?;
                        serde_json::to_writer_pretty(&mut *out, &theirs)?;
                    }
                    _ => serde_json::to_writer(&mut *out, &json)?,
                }
                writeln!(out)
            });
        }
        let Some(summary) = &sides.summary else {
            return Ok(());
        };
        if form == OutputForm::Iperf2 {
            let rows =
                iperf2::summary_rows(&self.setting, self.request, &sides.client, &sides.server);
            return with_stdout(|out| out.write_all(rows.as_bytes()));
        }
        let mut text = summary_lines(summary);
        if let Some(Output::Text(output)) = &sides.output {
            text.push_str("server:\n");
            for line in output.lines() {
                text.push_str(&printable(line));
                text.push('\n');
            }
        }
        with_stdout(|out| out.write_all(text.as_bytes()))
    }
}

async fn answer<R: AsyncRead + Unpin>(control: &mut R) -> Result<ServerMessage, Failure> {
    read_message(control, MAX_ANSWER)
        .await
        .map_err(|error| Failure::failed("the server did not answer", error))
}

async fn within<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        Err(Failure::network(format!(
            "the server did not {what} within {} s",
            limit.as_secs_f64()
        )))
    })
}

fn unexpected() -> Failure {
    Failure::plain("malformed answer: expected one of `tack perf --server`")
}
