//! Watching a command run: metrics, traces, status and logs. Nothing of it is on the path of a
//! segment: counters are read once a second, and whenever somebody asks.

mod airtime;
mod args;
mod collector;
mod control;
mod http;
mod logs;
mod metrics;
mod qlog;
mod status;
mod tunnels;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tack::{Phase, Stats, Watching};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) use airtime::of_one_ack as airtime_of_one_ack;
pub(crate) use args::ObserveArgs;
pub(crate) use collector::register;
pub(crate) use logs::LogArgs;
pub(crate) use status::{StatusArgs, status};
pub(crate) use tunnels::tunnels;

use collector::{Collector, Connections, Key};
use control::ControlSocket;
use metrics::Metrics;
use qlog::QlogFolder;

use crate::address::{Family, Reach};
use crate::exit::Failure;
use crate::net::TransportFigures;

/// Between looks.
const LOOK: Duration = Duration::from_secs(1);
/// Between looks where traces are written: a connection keeps some thousand events.
const TRACE_LOOK: Duration = Duration::from_millis(10);
/// Connections that a status lists; the others are counted.
const MAX_LISTED: usize = 1000;

/// What more the program has to say of itself in its status.
type MoreStatus = Box<dyn Fn() -> Value + Send + Sync>;
static MORE_STATUS: OnceLock<MoreStatus> = OnceLock::new();

/// Adds the object that `more` makes to the status of this program, once.
pub(crate) fn extend_status(more: impl Fn() -> Value + Send + Sync + 'static) {
    let _ = MORE_STATUS.set(Box::new(more));
}

/// Who is watched, and how.
pub(crate) struct Watch<'a> {
    /// The command.
    pub(crate) program: &'static str,
    pub(crate) args: &'a ObserveArgs,
    /// The state folder, where the program has a control socket for `tack status`.
    pub(crate) control: Option<PathBuf>,
}

/// What is known of the connections.
struct Observatory {
    program: &'static str,
    since: SystemTime,
    began: Instant,
    collector: Collector,
    metrics: Metrics,
    qlog: Option<QlogFolder>,
    connections: Connections,
    /// The connections that exist, at the last look.
    living: BTreeMap<Key, Living>,
    /// All that have ended.
    ended: Stats,
    logs_connections: bool,
    looks: u64,
    /// When round-trip times were sampled last.
    sampled: Instant,
}

struct Living {
    view: tack::ConnectionView,
    since: Instant,
}

/// Runs `command`, watched as its options ask for it.
pub(crate) async fn watched<T>(
    watch: Watch<'_>,
    command: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let args = watch.args;
    let logs_connections = tracing::enabled!(target: "tack::connections", tracing::Level::DEBUG);
    let is_watched = args.metrics.is_some()
        || args.qlog.is_some()
        || watch.control.is_some()
        || logs_connections;
    if !is_watched {
        return command.await;
    }
    let qlog = args.qlog.as_deref();
    let qlog = qlog
        .map(|folder| QlogFolder::new(folder, watch.program))
        .transpose()?;
    collector::begin(match qlog {
        Some(_) => Watching::Segments,
        None => Watching::Counters,
    });
    let pause = if qlog.is_some() { TRACE_LOOK } else { LOOK };
    let observatory = Arc::new(Mutex::new(Observatory {
        program: watch.program,
        since: SystemTime::now(),
        began: Instant::now(),
        collector: Collector::default(),
        metrics: Metrics::new(watch.program),
        qlog,
        connections: Connections::default(),
        living: BTreeMap::new(),
        ended: Stats::default(),
        logs_connections,
        looks: 0,
        sampled: Instant::now(),
    }));
    let mut tasks = JoinSet::new();
    if args.metrics.is_some() {
        let listener = listen(args).await?;
        if let Ok(address) = listener.local_addr() {
            eprintln!("tack: metrics at http://{address}/metrics");
        }
        let asked = Arc::clone(&observatory);
        tasks.spawn(http::serve(listener, metrics::CONTENT_TYPE, move || {
            let mut observatory = lock(&asked);
            observatory.look();
            observatory.metrics.text()
        }));
    }
    if let Some(state) = &watch.control {
        let socket = ControlSocket::open(state)?;
        let asked = Arc::clone(&observatory);
        tasks.spawn(socket.serve(move || {
            let mut observatory = lock(&asked);
            observatory.look();
            observatory.status()
        }));
    }
    let looking = Arc::clone(&observatory);
    tasks.spawn(async move {
        let mut ticks = tokio::time::interval(pause);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut flushed = Instant::now();
        loop {
            ticks.tick().await;
            let mut observatory = lock(&looking);
            observatory.look();
            if flushed.elapsed() >= LOOK {
                flushed = Instant::now();
                observatory.flush();
            }
        }
    });
    let outcome = command.await;
    tasks.shutdown().await;
    // What happened since the last look.
    let mut observatory = lock(&observatory);
    observatory.look();
    observatory.flush();
    outcome
}

/// The socket for scrapers.
async fn listen(args: &ObserveArgs) -> Result<TcpListener, Failure> {
    let Some(address) = &args.metrics else {
        return Err(Failure::usage("no address for metrics"));
    };
    let port = address.port().ok_or_else(|| {
        Failure::usage(format!(
            "--metrics {address} needs a port, as {address}:9777"
        ))
    })?;
    let found = address.resolve(port, Reach::Anywhere, Family::Any).await?;
    let beyond = found
        .iter()
        .find(|at| !at.ip().to_canonical().is_loopback());
    if let Some(beyond) = beyond.filter(|_| !args.metrics_anywhere) {
        return Err(Failure::usage(format!(
            "--metrics {beyond} is beyond loopback: everybody who can reach it can read the metrics; --metrics-anywhere permits that"
        )));
    }
    TcpListener::bind(&found[..])
        .await
        .map_err(|error| Failure::network(format!("cannot serve metrics at {address}: {error}")))
}

fn lock(observatory: &Mutex<Observatory>) -> MutexGuard<'_, Observatory> {
    observatory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observatory {
    fn look(&mut self) {
        let Self {
            collector,
            metrics,
            qlog,
            living,
            ended,
            logs_connections,
            sampled,
            looks,
            ..
        } = self;
        let samples = sampled.elapsed() >= LOOK || *looks == 0;
        if samples {
            *sampled = Instant::now();
        }
        *looks += 1;
        let mut seen = BTreeSet::new();
        self.connections = collector.look(|update| {
            metrics.add(update, samples);
            if let Some(qlog) = qlog {
                qlog.add(update);
            }
            if *logs_connections && update.is_new {
                tracing::debug!(
                    target: "tack::connections",
                    peer = %update.view.peer,
                    local_port = update.view.local_port,
                    remote_port = update.view.remote_port,
                    "connection began"
                );
            }
            let since = living
                .get(&update.key)
                .map_or_else(Instant::now, |it| it.since);
            let mut view = update.view.clone();
            view.events = Vec::new();
            living.insert(update.key, Living { view, since });
            if !qlog::is_over(update.view) {
                seen.insert(update.key);
            }
        });
        metrics.count(self.connections);
        living.retain(|key, it| {
            let stays = seen.contains(key);
            if !stays {
                let stats = &it.view.stats;
                add(ended, stats);
                if *logs_connections {
                    tracing::debug!(
                        target: "tack::connections",
                        peer = %it.view.peer,
                        local_port = it.view.local_port,
                        remote_port = it.view.remote_port,
                        bytes_acknowledged = stats.bytes_acked,
                        bytes_read = stats.bytes_read,
                        acks_sent = stats.acks,
                        acks_received = stats.acks_received,
                        retransmitted_segments = stats.retransmitted_segments,
                        "connection ended"
                    );
                }
            }
            stays
        });
        if let Some(qlog) = qlog {
            qlog.close(|key| !seen.contains(key));
        }
    }

    fn flush(&mut self) {
        if let Some(qlog) = &mut self.qlog {
            qlog.flush();
            if let Some(complaint) = qlog.complaint() {
                eprintln!("tack: {complaint}");
            }
        }
    }

    /// As `tack status --json` prints it.
    fn status(&self) -> Value {
        let mut totals = self.ended.clone();
        for living in self.living.values() {
            add(&mut totals, &living.view.stats);
        }
        let listed = self.living.values().take(MAX_LISTED);
        let connections: Vec<Value> = listed.map(Living::describe).collect();
        let avoided = airtime::acks_avoided(totals.segments_received, totals.acks);
        let mut status = json!({
            "event": "status",
            "program": self.program,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "since": chrono::DateTime::<chrono::Utc>::from(self.since).to_rfc3339(),
            "uptime_seconds": self.began.elapsed().as_secs_f64(),
            "connections_opened": self.connections.opened,
            "connections_open": self.living.len(),
            "bytes_acknowledged": totals.bytes_acked,
            "bytes_read": totals.bytes_read,
            "acks_avoided": avoided,
            "ack_airtime_saved_seconds": airtime::of_one_ack().as_secs_f64() * avoided as f64,
            "transport": TransportFigures::from(&totals),
            "connections": connections,
        });
        if let Some(more) = MORE_STATUS.get() {
            status["serving"] = more();
        }
        status
    }
}

impl Living {
    fn describe(&self) -> Value {
        let view = &self.view;
        let mut object = json!({
            "peer": view.peer.to_string(),
            "local_port": view.local_port,
            "remote_port": view.remote_port,
            "state": match view.phase {
                Phase::Opening => "opening",
                Phase::Open => "open",
                _ => "closing",
            },
            "seconds": self.since.elapsed().as_secs_f64(),
            "bytes_acknowledged": view.stats.bytes_acked,
            "bytes_read": view.stats.bytes_read,
            "bytes_in_flight": view.stats.bytes_in_flight,
        });
        object["transport"] =
            serde_json::to_value(TransportFigures::from(&view.stats)).unwrap_or_default();
        object
    }
}

/// Adds the counters of `more`; estimates have no sum.
fn add(sum: &mut Stats, more: &Stats) {
    for counter in collector::COUNTERS {
        *counter(sum) += *counter(&mut more.clone());
    }
    sum.limited_by_cwnd += more.limited_by_cwnd;
    sum.limited_by_rwnd += more.limited_by_rwnd;
    sum.limited_by_pacing += more.limited_by_pacing;
    sum.limited_by_app += more.limited_by_app;
}
