//! The serving side: one task a test, none of which can harm another.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tack::{Config, Endpoint, Listener, Stream};
use tokio::io::AsyncReadExt;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use super::flow::{self, FlowResult, Job, cpu_time};
use super::protocol::{
    Limit, MAGIC, MAX_REQUEST, MAX_STREAMS, ServerMessage, TestRequest, Ticket, read_message,
    write_message,
};
use crate::args::PerfArgs;
use crate::exit::{Exit, Failure};
use crate::net::{self, PERF_PORT, PERF_UDP_PORT};
use crate::printer::with_stdout;
use crate::signals::Signals;

/// Tests at the same time.
const MAX_TESTS: usize = 8;
/// How long a client may take for each step before the test begins.
const STEP: Duration = Duration::from_secs(10);
/// How long the end of a test may take beyond its length: buffers drain, losses are repaired.
const GRACE: Duration = Duration::from_secs(60);
/// How long connections may take to close at the program's end.
const WIND_UP: Duration = Duration::from_secs(2);
/// TCP ports for data connections (the dynamic range of RFC 6335 §6).
const DATA_PORTS: std::ops::RangeInclusive<u16> = 49152..=65535;

/// Serves tests until a signal, or one with `--one-off`.
pub(crate) async fn run(args: &PerfArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let connections = MAX_TESTS * (usize::from(MAX_STREAMS) + 1) + 64;
    let endpoint = net::serve(&args.listen, PERF_UDP_PORT, args.reach.reach(), connections).await?;
    // Requests and results are small; nothing about them is measured.
    let config = Config {
        user_timeout: Some(Duration::from_secs(30)),
        ..Config::default()
    };
    let mut listener = endpoint
        .listen_with(PERF_PORT, &config, 64)
        .map_err(|error| Failure::network(format!("cannot listen: {error}")))?;
    let address = endpoint.local_addr();
    if args.json {
        with_stdout(|out| {
            writeln!(
                out,
                "{}",
                serde_json::json!({"event": "listening", "address": address.to_string()})
            )
        })?;
    } else {
        eprintln!("listening on {address}");
    }
    let json = args.json;
    let permits = Arc::new(Semaphore::new(MAX_TESTS));
    let mut tests = JoinSet::new();
    let exit = loop {
        tokio::select! {
            accepted = listener.accept() => {
                let control = accepted.map_err(|error| Failure::network(format!("cannot accept: {error}")))?;
                let (endpoint, permits) = (endpoint.clone(), Arc::clone(&permits));
                tests.spawn(async move {
                    let peer = control.peer_addr();
                    let mut request = None;
                    let result = serve(control, &endpoint, &permits, &mut request).await;
                    // On a thread of its own: whoever reads our output may be slow, and must not stop other tests.
                    tokio::task::spawn_blocking(move || tell(json, peer, request, result)).await
                });
            }
            Some(ended) = tests.join_next() => {
                let told = ended.flatten().unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
                if args.one_off || told.is_err() {
                    break told;
                }
            }
            signal = signals.next() => break Ok(if tests.is_empty() { Exit::Done } else { signal }),
        }
    };
    tests.shutdown().await;
    drop(listener);
    // The results must reach the client before this process and its socket are gone.
    let _ = endpoint.shutdown(WIND_UP).await;
    exit
}

/// A test, for whoever reads the server's output.
#[derive(Serialize)]
struct Served<'a> {
    event: &'static str,
    peer: String,
    ok: bool,
    error: Option<String>,
    /// What the client asked for, when it got so far.
    request: Option<&'a TestRequest>,
    bytes_sent: u64,
    bytes_received: u64,
    flows: &'a [FlowResult],
}

/// Says what came of a test.
fn tell(
    json: bool,
    peer: SocketAddr,
    request: Option<TestRequest>,
    result: io::Result<Vec<FlowResult>>,
) -> Result<Exit, Failure> {
    let flows = result.as_deref().unwrap_or_default();
    let sent: u64 = flows.iter().map(|flow| flow.sent).sum();
    let received: u64 = flows.iter().map(|flow| flow.received).sum();
    match &result {
        Ok(_) => eprintln!(
            "test with {peer}: {} connections, {sent} bytes sent, {received} received",
            flows.len()
        ),
        Err(error) => eprintln!("tack: test with {peer} failed: {error}"),
    }
    if json {
        let served = Served {
            event: "test",
            peer: peer.to_string(),
            ok: result.is_ok(),
            error: result.as_ref().err().map(ToString::to_string),
            request: request.as_ref(),
            bytes_sent: sent,
            bytes_received: received,
            flows,
        };
        with_stdout(|out| {
            serde_json::to_writer(&mut *out, &served)?;
            writeln!(out)
        })?;
    }
    Ok(if result.is_ok() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// One control connection from greeting to results.
async fn serve(
    mut control: Stream,
    endpoint: &Endpoint,
    permits: &Semaphore,
    asked: &mut Option<TestRequest>,
) -> io::Result<Vec<FlowResult>> {
    let request = step("its request", read_request(&mut control)).await?;
    let request = &*asked.insert(request);
    let (Ok(_permit), config) = (permits.try_acquire(), request.config()) else {
        return refuse(
            control,
            format!("{MAX_TESTS} tests are running; try again later"),
        )
        .await;
    };
    let config = match config {
        Ok(config) => config,
        Err(message) => return refuse(control, message).await,
    };
    let token = random();
    let mut data = open_data_port(endpoint, &config, request.streams)?;
    write_message(
        &mut control,
        &ServerMessage::Accepted {
            port: data.port(),
            token,
        },
    )
    .await?;
    let streams = step(
        "its data connections",
        accept_all(&mut data, token, request.streams),
    )
    .await?;
    write_message(&mut control, &ServerMessage::Started).await?;

    let cpu = cpu_time();
    let coalescing = request.coalesce.apply(endpoint);
    let running = run_flows(streams, request);
    // The client says nothing more: whatever comes from it now is its end.
    let mut nothing = [0; 1];
    let gone = async {
        match control.read(&mut nothing).await {
            Ok(_) => io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the client ended the test",
            ),
            Err(error) => error,
        }
    };
    let flows = tokio::select! {
        flows = running => flows?,
        error = gone => return Err(error),
    };
    drop(coalescing);
    let cpu_seconds = cpu_time().saturating_sub(cpu).as_secs_f64();
    let results = ServerMessage::Results {
        flows: flows.clone(),
        cpu_seconds,
    };
    write_message(&mut control, &results).await?;
    farewell(control).await;
    Ok(flows)
}

async fn step<T>(what: &str, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(STEP, work).await.unwrap_or_else(|_| {
        let message = format!("the client did not send {what} within {} s", STEP.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    })
}

async fn read_request(control: &mut Stream) -> io::Result<TestRequest> {
    let mut magic = [0; MAGIC.len()];
    control.read_exact(&mut magic).await?;
    if magic != MAGIC {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the peer does not speak this version of tack perf",
        ));
    }
    read_message(control, MAX_REQUEST).await
}

async fn refuse(mut control: Stream, message: String) -> io::Result<Vec<FlowResult>> {
    write_message(
        &mut control,
        &ServerMessage::Refused {
            message: message.clone(),
        },
    )
    .await?;
    farewell(control).await;
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("refused: {message}"),
    ))
}

/// Sees to it that the last message arrives.
async fn farewell(mut control: Stream) {
    let ending = async {
        tokio::io::AsyncWriteExt::shutdown(&mut control).await?;
        control.finished().await
    };
    // A client that is gone needs no results.
    let _ = tokio::time::timeout(WIND_UP, ending).await;
}

/// A free TCP port of the endpoint, with the settings of the test.
fn open_data_port(endpoint: &Endpoint, config: &Config, streams: u16) -> io::Result<Listener> {
    let ports = u64::from(DATA_PORTS.end() - DATA_PORTS.start());
    for _ in 0..64 {
        let port = DATA_PORTS.start() + (random() % ports) as u16;
        match endpoint.listen_with(port, config, streams.into()) {
            Ok(listener) => return Ok(listener),
            Err(tack::ListenError::InUse(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AddrInUse,
        "no data port is free",
    ))
}

/// Takes the client's data connections, in the order of their numbers; strangers are dropped.
async fn accept_all(data: &mut Listener, token: u64, streams: u16) -> io::Result<Vec<Stream>> {
    let mut arrived = BTreeMap::new();
    while arrived.len() < usize::from(streams) {
        let mut stream = data.accept().await.map_err(io::Error::from)?;
        match Ticket::read(&mut stream).await {
            Ok(ticket) if ticket.token == token && ticket.stream < streams => {
                arrived.insert(ticket.stream, stream);
            }
            Ok(_) | Err(_) => stream.reset(),
        }
    }
    Ok(arrived.into_values().collect())
}

async fn run_flows(streams: Vec<Stream>, request: &TestRequest) -> io::Result<Vec<FlowResult>> {
    // Nobody watches intervals on this side.
    let (_ticks, ticked) = watch::channel(0);
    let (snapshots, _) = mpsc::channel(1);
    let mut flows = JoinSet::new();
    for (stream, connection) in streams.into_iter().enumerate() {
        let job = Job {
            stream,
            send: request.direction.server_sends().then_some(request.limit),
            receive: request.direction.client_sends(),
        };
        flows.spawn(flow::run(
            connection,
            job,
            ticked.clone(),
            snapshots.clone(),
        ));
    }
    let all = async {
        let mut results = Vec::new();
        while let Some(ended) = flows.join_next().await {
            results.push(ended.map_err(io::Error::other)??);
        }
        results.sort_by_key(|result| result.stream);
        Ok(results)
    };
    match request.limit {
        Limit::Millis(millis) => tokio::time::timeout(Duration::from_millis(millis) + GRACE, all)
            .await
            .unwrap_or_else(|_| {
                Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the test did not end in time",
                ))
            }),
        // As long as it takes: a client that is gone ends it, too.
        Limit::Bytes(_) => all.await,
    }
}

/// Unpredictable, for tokens and ports.
fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}
