//! The asking side: agrees on a test, runs it, reports.

use std::io;
use std::time::{Duration, Instant};

use tack::Stream;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::flow::{self, FlowResult, Job, Snapshot, cpu_time};
use super::protocol::{
    Coalescing, Direction, Limit, MAGIC, MAX_ANSWER, ServerMessage, TestRequest, Ticket,
    read_message, write_message,
};
use super::report::{
    Cpu, Interval, Intervals, Summary, TestJson, heads, interval_lines, summary_lines,
};
use crate::address::Address;
use crate::args::PerfArgs;
use crate::exit::{Exit, Failure};
use crate::net::{self, PERF_PORT, PERF_UDP_PORT};
use crate::printer::with_stdout;
use crate::signals::Signals;
use crate::transfer::printable;

/// How long the server may take beyond the test's length: buffers drain, losses are repaired.
const GRACE: Duration = Duration::from_secs(60);
/// How long connections may take to show their state.
const LOOK: Duration = Duration::from_millis(200);
/// How long connections may take to close at the program's end.
const WIND_UP: Duration = Duration::from_secs(2);

/// Runs one test.
pub(crate) async fn run(args: &PerfArgs, address: &Address) -> Result<Exit, Failure> {
    let request = request(args)?;
    let mut signals = Signals::new()?;
    let mut test = Test {
        args,
        request: &request,
        peer: address.to_string(),
        intervals: Vec::new(),
    };
    let outcome = tokio::select! {
        outcome = test.run(address) => outcome,
        exit = signals.next() => {
            test.finish(&Sides::default(), Some("cut off by a signal"))?;
            return Ok(exit);
        }
    };
    match outcome {
        Ok(sides) => test.finish(&sides, None).map(|()| Exit::Done),
        Err(failure) => {
            if !failure.is_broken_pipe() {
                test.finish(&Sides::default(), Some(&failure.to_string()))?;
            }
            Err(failure)
        }
    }
}

fn request(args: &PerfArgs) -> Result<TestRequest, Failure> {
    let direction = match (args.reverse, args.bidir) {
        (_, true) => Direction::Both,
        (true, false) => Direction::Down,
        (false, false) => Direction::Up,
    };
    let limit = match args.bytes {
        Some(bytes) => Limit::Bytes(bytes),
        None => Limit::Millis(u64::try_from(args.time.as_millis()).unwrap_or(u64::MAX)),
    };
    let request = TestRequest {
        direction,
        streams: args.parallel,
        limit,
        congestion: args.congestion.to_string(),
        ack: args.ack.to_string(),
        coalesce: args.coalesce,
        mss: args.mss,
        window: args.window,
    };
    // What the server would refuse is wrong usage here already.
    request.config().map_err(Failure::usage)?;
    Ok(request)
}

/// Both sides' results.
#[derive(Debug, Default)]
struct Sides {
    client: Vec<FlowResult>,
    server: Vec<FlowResult>,
    summary: Option<Summary>,
}

struct Test<'a> {
    args: &'a PerfArgs,
    request: &'a TestRequest,
    peer: String,
    intervals: Vec<Interval>,
}

impl Test<'_> {
    async fn run(&mut self, address: &Address) -> Result<Sides, Failure> {
        let args = self.args;
        let config = self.request.config().map_err(Failure::usage)?;
        let patience = args.connect_timeout;
        let mut control = net::connect(
            address,
            PERF_UDP_PORT,
            PERF_PORT,
            args.reach.reach(),
            &config,
            patience,
        )
        .await?;
        self.peer = control.peer_addr().to_string();
        let streams = within(patience, "begin", self.begin(&mut control, &config)).await?;
        if !args.json {
            let text = format!(
                "{} connection{} with {}, {}, congestion {}, acknowledgements {}{}\n{}",
                self.request.streams,
                if self.request.streams == 1 { "" } else { "s" },
                self.peer,
                match self.request.direction {
                    Direction::Up => "this side sends",
                    Direction::Down => "the server sends",
                    Direction::Both => "both sides send",
                },
                self.request.congestion,
                self.request.ack,
                match self.request.coalesce {
                    Coalescing::On => ", coalesced (--coalesce off lets the policy show)",
                    Coalescing::Off => "",
                },
                if args.interval.is_zero() {
                    String::new()
                } else {
                    heads()
                },
            );
            with_stdout(|out| out.write_all(text.as_bytes()))?;
        }

        let coalescing = self.request.coalesce.apply(&control.endpoint());
        let (began, cpu) = (Instant::now(), cpu_time());
        let client = self.run_flows(streams).await?;
        let elapsed = began.elapsed().as_secs_f64();
        drop(coalescing);
        let client_cpu = cpu_time().saturating_sub(cpu).as_secs_f64();
        let results = within(GRACE, "send its results", answer(&mut control)).await?;
        let ServerMessage::Results {
            flows: server,
            cpu_seconds,
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
        let _ = endpoint.shutdown(WIND_UP).await;
        let cpu = Cpu {
            client: client_cpu / elapsed,
            server: cpu_seconds / elapsed,
        };
        let summary = Some(Summary::new(self.request.direction, &client, &server, cpu));
        Ok(Sides {
            client,
            server,
            summary,
        })
    }

    /// Agrees on the test and opens its connections.
    async fn begin(
        &self,
        control: &mut Stream,
        config: &tack::Config,
    ) -> Result<Vec<Stream>, Failure> {
        let lost = |error: io::Error| Failure::failed("the server went away", error);
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
            _ => return Err(unexpected()),
        };
        let (endpoint, peer) = (control.endpoint(), control.peer_addr());
        let mut streams = Vec::new();
        for stream in 0..self.request.streams {
            let mut connection =
                endpoint
                    .connect_with(peer, port, config)
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
            ServerMessage::Started => Ok(streams),
            _ => Err(unexpected()),
        }
    }

    /// Runs all connections to their ends and reports intervals meanwhile.
    async fn run_flows(&mut self, streams: Vec<Stream>) -> Result<Vec<FlowResult>, Failure> {
        let count = streams.len();
        let (ticks, ticked) = watch::channel(0);
        let (snapshot_in, mut snapshots) = mpsc::channel(2 * count);
        let mut flows = JoinSet::new();
        for (stream, connection) in streams.into_iter().enumerate() {
            let job = Job {
                stream,
                send: self
                    .request
                    .direction
                    .client_sends()
                    .then_some(self.request.limit),
                receive: self.request.direction.server_sends(),
            };
            flows.spawn(flow::run(
                connection,
                job,
                ticked.clone(),
                snapshot_in.clone(),
            ));
        }
        let began = Instant::now();
        let every = if self.args.interval.is_zero() {
            Duration::from_secs(u32::MAX.into())
        } else {
            self.args.interval
        };
        let mut timer = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        let mut intervals = Intervals::new(self.request.direction, count);
        let mut results: Vec<FlowResult> = Vec::with_capacity(count);
        // Connections that ended since the last look: how they ended belongs to the interval in which they did.
        let mut ended_since = Vec::new();
        let limit = match self.request.limit {
            Limit::Millis(millis) => Duration::from_millis(millis) + GRACE,
            Limit::Bytes(_) => Duration::from_secs(u32::MAX.into()),
        };
        let mut limit = std::pin::pin!(tokio::time::sleep(limit));
        loop {
            tokio::select! {
                ended = flows.join_next() => match ended {
                    None => break,
                    Some(ended) => {
                        let ended = ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
                        let ended = ended.map_err(|error| Failure::failed("a data connection failed", error))?;
                        ended_since.push(ended.snapshot());
                        results.push(ended);
                    }
                },
                _ = timer.tick() => {
                    ended_since.extend(look(&ticks, &mut snapshots, flows.len()).await);
                    let looked = std::mem::take(&mut ended_since);
                    self.report(intervals.next(began.elapsed().as_secs_f64(), looked))?;
                }
                () = &mut limit => return Err(Failure::plain("the test did not end in time")),
            }
        }
        // The rest: an interval that is shorter than the others, or the last one, whose tick came too late.
        if !self.args.interval.is_zero() && !ended_since.is_empty() {
            self.report(intervals.next(began.elapsed().as_secs_f64(), ended_since))?;
        }
        results.sort_by_key(|result| result.stream);
        Ok(results)
    }

    fn report(&mut self, interval: Interval) -> Result<(), Failure> {
        if !self.args.json {
            with_stdout(|out| out.write_all(interval_lines(&interval).as_bytes()))?;
        }
        self.intervals.push(interval);
        Ok(())
    }

    fn finish(&self, sides: &Sides, error: Option<&str>) -> Result<(), Failure> {
        if self.args.json {
            let json = TestJson {
                event: "test",
                peer: self.peer.clone(),
                request: self.request,
                intervals: &self.intervals,
                summary: sides.summary.as_ref(),
                client: &sides.client,
                server: &sides.server,
                error,
            };
            return with_stdout(|out| {
                serde_json::to_writer(&mut *out, &json)?;
                writeln!(out)
            });
        }
        match &sides.summary {
            Some(summary) => with_stdout(|out| out.write_all(summary_lines(summary).as_bytes())),
            None => Ok(()),
        }
    }
}

/// The state of every connection that still runs.
async fn look(
    ticks: &watch::Sender<u64>,
    snapshots: &mut mpsc::Receiver<Snapshot>,
    running: usize,
) -> Vec<Snapshot> {
    // What came too late for the last look.
    while snapshots.try_recv().is_ok() {}
    ticks.send_modify(|tick| *tick += 1);
    let mut looked = Vec::with_capacity(running);
    // A connection that ends just now does not answer any more.
    let _ = tokio::time::timeout(LOOK, async {
        while looked.len() < running {
            match snapshots.recv().await {
                Some(snapshot) => looked.push(snapshot),
                None => break,
            }
        }
    })
    .await;
    looked
}

async fn answer(control: &mut Stream) -> Result<ServerMessage, Failure> {
    read_message(control, MAX_ANSWER)
        .await
        .map_err(|error| Failure::failed("the server gave no answer", error))
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
    Failure::plain("the server does not answer as `tack perf --server` would")
}
