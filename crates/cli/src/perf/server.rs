//! The serving side: one task a test, none of which can harm another.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tack::{CarrierStats, Config, Endpoint};
use tack_base::Rate;
use tokio::io::AsyncReadExt;
use tokio::sync::{Semaphore, mpsc, oneshot, watch as channel};
use tokio::task::JoinSet;

use super::args::PerfArgs;
use super::data_channels::{DataChannels, open_paths, step};
use super::exchange;
use super::flow::{self, Budget, Job, Sending};
use super::omitted::agreements;
use super::processor::CpuTime;
use super::protocol::{
    ClientMessage, MAGIC, MAX_REQUEST, ServerMessage, read_message, write_message,
};
use super::recorded_output::RecordedOutput;
use super::report::Intervals;
use super::request::{MAX_STREAMS, PATIENCE, ServerOutput, TestRequest};
use super::results::FlowResult;
use super::security::{AdmittedClient, ControlListener, DataSecurity, ListenConfig, Protection};
use super::udp::{self, Traffic};
use super::watch::{Flows, GRACE, Timing, watch};
use crate::exit::{Exit, Failure};
use crate::meeting::PeerStream;
use crate::printer::{counted, with_stdout};
use crate::signals::Signals;

/// How long connections may take to close at the program's end.
const WIND_UP: Duration = Duration::from_secs(2);
/// Peers without a handshake that wait to be told of.
const MAX_FAILED_HANDSHAKES: usize = 64;

/// Serves tests until a signal, or one with `--one-off`.
pub(crate) async fn run(args: &PerfArgs) -> Result<Exit, Failure> {
    let json = args.server_json()?;
    let mut signals = Signals::new()?;
    let limits = Arc::new(Limits {
        clients: usize::from(args.max_clients),
        permits: Semaphore::new(args.max_clients.into()),
        duration: args.max_duration,
        bytes: args.max_bytes,
    });
    let connections = limits.clients * (usize::from(MAX_STREAMS) + 2) + 64;
    // Requests and results are small; nothing about them is measured.
    let config = Config {
        user_timeout: Some(PATIENCE),
        hard_errors: true,
        ..Config::default()
    };
    let (noticed, mut failed_handshakes) = mpsc::channel(MAX_FAILED_HANDSHAKES);
    let opening = ListenConfig {
        args,
        config,
        backlog: 64,
        max_connections: connections,
        failed_handshakes: noticed,
    };
    let (listener, endpoint) = ControlListener::open(opening).await?;
    let listener = Arc::new(listener);
    let address = endpoint.local_addr();
    if json {
        let addresses = listener.addresses();
        // Behind a TUN device the endpoint has no port: the listeners have.
        let address = match (endpoint.device(), addresses.first()) {
            (Some(_), Some(first)) => first.clone(),
            _ => address.to_string(),
        };
        with_stdout(|out| {
            writeln!(
                out,
                "{}",
                serde_json::json!({
                    "event": "listening",
                    "address": address,
                    "addresses": addresses,
                    "encrypted": !listener.is_clear(),
                })
            )
        })?;
    } else {
        let how = if listener.is_clear() {
            "in clear text"
        } else {
            "encrypted"
        };
        // Behind a TUN device there is no UDP port.
        match endpoint.device() {
            Some(_) => eprintln!("listening on {}, {how}", address.ip()),
            None => eprintln!("listening on {address}, {how}"),
        }
    }
    listener.invite()?;
    let mut tests = JoinSet::new();
    let exit = loop {
        tokio::select! {
            accepted = listener.accept() => {
                let AdmittedClient { link: control, security, met } = accepted?;
                let (endpoint, limits) = (endpoint.clone(), Arc::clone(&limits));
                let (listener, one_off) = (Arc::clone(&listener), args.one_off);
                tests.spawn(async move {
                    let mut request = None;
                    let (peer, protection) = (control.peer_addr(), Protection::of(&control));
                    let context = ServeContext { endpoint, security, limits };
                    let result = serve(control, &context, &mut request).await;
                    let carrier = context.endpoint.carrier_stats();
                    if let (true, true, Some(met)) = (one_off, result.is_ok(), &met) {
                        listener.complete(met);
                    }
                    // On a separate thread: a slow reader of our output must not stop other tests.
                    tokio::task::spawn_blocking(move || tell(json, peer, protection, request, (result, carrier))).await
                });
            }
            Some((peer, error)) = failed_handshakes.recv() => {
                let error = io::Error::other(error);
                let telling = move || tell(json, peer, Protection::default(), None, (Err(error), CarrierStats::default()));
                let told = tokio::task::spawn_blocking(telling).await;
                if let Err(failure) = told.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())) {
                    break Err(failure);
                }
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

/// The endpoint, the security and the limits of a test.
struct ServeContext {
    endpoint: Endpoint,
    security: DataSecurity,
    limits: Arc<Limits>,
}

/// Limits of the server.
#[derive(Debug)]
struct Limits {
    clients: usize,
    permits: Semaphore,
    /// Of a test.
    duration: Duration,
    /// Of a test, all directions and connections together.
    bytes: Option<u64>,
}

/// A test, as the server prints it.
#[derive(Serialize)]
struct Served<'a> {
    event: &'static str,
    peer: String,
    #[serde(flatten)]
    protection: Protection,
    ok: bool,
    error: Option<String>,
    /// What the client asked for, when it got so far.
    request: Option<&'a TestRequest>,
    bytes_sent: u64,
    bytes_received: u64,
    /// Of the endpoint since it was opened: datagrams, and the system calls that delivered them.
    datagrams_received: u64,
    receives: u64,
    flows: &'a [FlowResult],
}

/// Says what came of a test.
fn tell(
    json: bool,
    peer: SocketAddr,
    protection: Protection,
    request: Option<TestRequest>,
    (result, carrier): (io::Result<Vec<FlowResult>>, CarrierStats),
) -> Result<Exit, Failure> {
    let flows = result.as_deref().unwrap_or_default();
    let sent: u64 = flows.iter().map(|flow| flow.sent).sum();
    let received: u64 = flows.iter().map(|flow| flow.received).sum();
    match &result {
        Ok(_) => tracing::info!(%peer, sent, received, connections = flows.len(), "test ended"),
        Err(error) => tracing::warn!(%peer, %error, "test failed"),
    }
    match &result {
        Ok(_) => eprintln!(
            "test with {peer}: {}, {} sent, {received} received",
            counted(flows.len() as u64, "connection"),
            counted(sent, "byte")
        ),
        Err(error) => eprintln!("tack: test with {peer} failed: {error}"),
    }
    if json {
        let served = Served {
            event: "test",
            peer: peer.to_string(),
            protection,
            ok: result.is_ok(),
            error: result.as_ref().err().map(ToString::to_string),
            request: request.as_ref(),
            bytes_sent: sent,
            bytes_received: received,
            datagrams_received: carrier.datagrams_received,
            receives: carrier.receives,
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
    mut control: PeerStream,
    context: &ServeContext,
    asked: &mut Option<TestRequest>,
) -> io::Result<Vec<FlowResult>> {
    let limits = &*context.limits;
    let request = step("its request", read_request(&mut control)).await?;
    let request = &*asked.insert(request);
    let Ok(permit) = limits.permits.try_acquire() else {
        let message = format!(
            "it serves {}, its limit (--max-clients); try again later",
            counted(limits.clients as u64, "test")
        );
        return refuse(control, ServerMessage::Busy { message }).await;
    };
    let config = match request.config(limits.duration, limits.bytes) {
        Ok(config) => config,
        Err(message) => {
            // A client that was told its test is over may begin the next one at once.
            drop(permit);
            return refuse(control, ServerMessage::Refused { message }).await;
        }
    };
    tracing::info!(
        peer = %control.peer_addr(),
        connections = request.connections(),
        congestion = request.congestion,
        ack = request.ack,
        "test begins"
    );
    let paths = open_paths(
        &mut control,
        (&context.endpoint, &context.security),
        request,
        &config,
    )
    .await?;
    write_message(&mut control, &ServerMessage::Started).await?;

    let cpu = CpuTime::now();
    let coalescing = request.coalesce.apply(&context.endpoint);
    let mut said = RecordedOutput::new(request);
    let outcome = run_flows(paths, &mut control, request, limits, &mut said).await;
    drop((coalescing, permit));
    let flows = match outcome {
        Ok(flows) => flows,
        Err(error) => {
            // A client that asked for too much gets the reason; one that is gone does not.
            let message = error.to_string();
            let last = async {
                write_message(&mut control, &ServerMessage::Stopped { message }).await?;
                farewell(control).await;
                io::Result::Ok(())
            };
            let _ = tokio::time::timeout(WIND_UP, last).await;
            return Err(error);
        }
    };
    let used = CpuTime::now().since(cpu);
    let results = ServerMessage::Results {
        flows: flows.clone(),
        cpu_seconds: used.total,
        cpu_user_seconds: Some(used.user),
        output: said.output(),
    };
    write_message(&mut control, &results).await?;
    farewell(control).await;
    Ok(flows)
}

async fn read_request(control: &mut PeerStream) -> io::Result<TestRequest> {
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

async fn refuse(mut control: PeerStream, answer: ServerMessage) -> io::Result<Vec<FlowResult>> {
    write_message(&mut control, &answer).await?;
    farewell(control).await;
    let message = match answer {
        ServerMessage::Refused { message } | ServerMessage::Busy { message } => message,
        _ => String::new(),
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("refused: {message}"),
    ))
}

/// Sees to it that the last message arrives.
async fn farewell(mut control: PeerStream) {
    let ending = async {
        tokio::io::AsyncWriteExt::shutdown(&mut control).await?;
        control.finished().await
    };
    // A client that is gone needs no results.
    let _ = tokio::time::timeout(WIND_UP, ending).await;
}

/// Runs the server's side of all flows to their ends.
async fn run_flows(
    paths: DataChannels,
    control: &mut PeerStream,
    request: &TestRequest,
    limits: &Limits,
    said: &mut RecordedOutput,
) -> io::Result<Vec<FlowResult>> {
    let count = usize::from(request.connections());
    let interval = match request.server_output {
        ServerOutput::None => Duration::ZERO,
        // A client must not keep this side busy with looking.
        ServerOutput::Text | ServerOutput::Json => match request.interval_millis {
            0 => Duration::ZERO,
            millis => Duration::from_millis(millis.max(100)),
        },
    };
    let timing = Timing::of(request, interval, Some(limits.duration));
    let sending = Sending {
        limit: request.limit,
        omit: timing.omit,
        bitrate: request.bitrate.map(Rate::from_bits_per_sec),
    };
    let send = request.direction.server_sends().then_some(sending);
    let receive = request.direction.client_sends();
    let mut flows = Flows::new(count, timing.omit, Budget::new(limits.bytes));
    let (told, sent) = oneshot::channel();
    let (heard, peer_sent) = channel::channel(!receive);
    let is_udp = matches!(paths, DataChannels::Datagrams(..));
    let agrees = !timing.omit.is_zero() && !is_udp;
    let (agreements, mut to_peer, mut from_peer) =
        agreements(count, agrees && send.is_some(), agrees && receive);
    match paths {
        DataChannels::Connections(streams) => {
            let connections = streams.into_iter().zip(agreements).enumerate();
            for (stream, (connection, agreement)) in connections {
                let job = Job {
                    stream,
                    send,
                    receive,
                    preface: 0,
                };
                let shared = flows.shared();
                let exchange = request.exchange_of(stream);
                flows.spawn(async move {
                    let ended = match exchange {
                        Some(exchange) => {
                            let job = Job { send: None, ..job };
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
    let (mut listening, mut speaking) = tokio::io::split(control);
    let telling = async {
        while let Some(omitted) = to_peer.next().await {
            write_message(&mut speaking, &ServerMessage::Omitted(omitted)).await?;
        }
        // Only datagrams need this message; a connection has an end.
        if is_udp && send.is_some() && sent.await.is_ok() {
            write_message(&mut speaking, &ServerMessage::Sent).await?;
        }
        io::Result::Ok(())
    };
    let gone = async {
        // A message for each connection, or one when all datagrams are sent.
        let messages = match (is_udp, agrees) {
            (true, _) => 1,
            (false, true) => count,
            (false, false) => 0,
        };
        for _ in 0..if receive { messages } else { 0 } {
            match read_message(&mut listening, MAX_REQUEST).await {
                Ok(ClientMessage::Sent) => _ = heard.send(true),
                Ok(ClientMessage::Omitted(omitted)) => match from_peer.hear(omitted) {
                    Ok(()) => {}
                    Err(error) => return error,
                },
                Err(error) => return error,
            }
        }
        // The client says nothing more: whatever comes from it now is its end.
        match listening.read(&mut [0; 1]).await {
            Ok(_) => io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the client ended the test",
            ),
            Err(error) => error,
        }
    };
    let intervals = Intervals::of_server(request);
    let running = watch(flows, intervals, timing, |interval| said.add(interval));
    let (mut running, mut telling) = (std::pin::pin!(running), std::pin::pin!(telling));
    let mut gone = std::pin::pin!(gone);
    let mut has_told = false;
    let flows = loop {
        tokio::select! {
            flows = &mut running => break flows?,
            error = &mut gone => return Err(error),
            told = &mut telling, if !has_told => {
                told?;
                has_told = true;
            }
        }
    };
    // The client waits for this message, and the results come after it.
    if !has_told {
        tokio::time::timeout(GRACE, telling).await??;
    }
    Ok(flows)
}
