//! The side that connects: one connection of ours for each that is carried.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use tack::secure::{PublicKey, SecureError};
use tack::{Config, Endpoint, KeepAlive};
use tack_pairing::meeting::Intent;
use tokio::io::AsyncRead;

use super::message::{Answer, Refusal, Request};
use super::{ALPN, SERVE_PORT, SERVE_UDP_PORT, SERVICE, TUNNEL_PORT};
use crate::address::Family;
use crate::exit::Failure;
use crate::identity::OwnIdentity;
use crate::meeting::{self, ConnectOptions, PeerArgs, PeerStream, Target};
use crate::observe::tunnels;
use crate::peers::Book;
use crate::state::StateDir;
use crate::transfer::TransportArgs;
use crate::values::{duration, silence};
use crate::volume::Volume;

/// How long the serving side may take to answer a request: it looks a name up and connects.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

/// Handshakes with the peer at a time. A serving side ends some when one network has more than 256
/// under way ([`tack::secure::HandshakeLimits`]).
const MAX_HANDSHAKES: usize = 64;

/// Options of every command that connects to a `tack serve`.
#[derive(Debug, Args)]
pub(crate) struct TunnelArgs {
    #[command(flatten)]
    pub(crate) peer: PeerArgs,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    /// Time limit of an attempt to connect to the peer
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) connect_timeout: Duration,
    /// Give a connection up when the peer is silent for this time
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = silence)]
    pub(crate) timeout: Duration,
}

/// What standard input is to a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StandardInput {
    /// Nothing: a ticket may come over it.
    Free,
    /// A connection's or another program's: a ticket before it would take a part of it.
    Carried,
}

impl TunnelArgs {
    /// Whom the command means: PEER, and what else was given.
    ///
    /// # Errors
    /// A usage error when that is nobody, or cannot be read.
    pub(super) fn target(
        &self,
        peer: Option<&str>,
        input: StandardInput,
    ) -> Result<Target, Failure> {
        let args = &self.peer.target;
        let reads_input =
            peer == Some("-") && !io::stdin().is_terminal() || args.ticket_descriptor() == Some(0);
        if input == StandardInput::Carried && reads_input {
            return Err(Failure::usage(
                "the ticket cannot come over standard input, which is carried: expected --ticket-file, --ticket-fd \
                 (not 0) or TACK_TICKET",
            ));
        }
        args.target(peer)?.ok_or_else(|| {
            Failure::usage(
                "no peer: expected PEER (for example laptop: or a ticket), --ticket-file, --ticket-fd, --code or \
                 TACK_TICKET",
            )
        })
    }

    pub(super) fn config(&self) -> Config {
        Config {
            keep_alive: Some(keep_alive(self.timeout)),
            ..self.transport.config(self.timeout)
        }
    }
}

/// Probes of a silent connection, such that a dead peer is noticed within `silence`: a forwarded
/// connection may be idle for hours.
pub(super) fn keep_alive(silence: Duration) -> KeepAlive {
    KeepAlive {
        idle: silence * 2 / 5,
        interval: silence / 5,
        probes: 3,
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The serving side refused it.
    #[error(transparent)]
    Refused(Refusal),
    /// The serving side cannot be reached, or broke off.
    #[error("{0}")]
    Lost(String),
}

impl RequestError {
    /// In a word, as the metrics have it.
    fn name(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.name(),
            Self::Lost(_) => "lost",
        }
    }
}

/// A serving side that was met, and a way to it.
pub(crate) struct TunnelPeer {
    finder: Arc<Finder>,
    shown: String,
    route: Mutex<Route>,
    /// Held while the peer is looked for: one search serves all who miss it.
    search: tokio::sync::Mutex<()>,
    /// Handshakes that may be under way.
    handshakes: tokio::sync::Semaphore,
}

/// What it takes to meet the peer.
struct Finder {
    args: Arc<TunnelArgs>,
    own: OwnIdentity,
    state: StateDir,
    target: Target,
}

/// Where the serving side was met last.
#[derive(Clone)]
struct Route {
    /// Tells it from earlier ones.
    met: Instant,
    endpoint: Endpoint,
    address: SocketAddr,
    key: PublicKey,
}

impl TunnelPeer {
    /// Meets `target`; what is returned beside the peer is the connection of the meeting, over
    /// which a first request may be made at once.
    pub(crate) async fn meet(
        args: Arc<TunnelArgs>,
        target: Target,
    ) -> Result<(Self, PeerStream), Failure> {
        let state = args.peer.state.open()?;
        let (own, _) = OwnIdentity::load_or_make(&state)?;
        let mut finder = Finder {
            args,
            own,
            state,
            target,
        };
        let (stream, route) = finder.meet().await?;
        let shown = finder.shown(&route.key);
        // A code serves once, and a ticket may. Whoever let us in lets our key come back.
        if matches!(finder.target, Target::Code(..) | Target::Ticket(..)) {
            finder.target = Target::Authenticated(route.key, route.address);
        }
        let peer = Self {
            finder: Arc::new(finder),
            shown,
            route: Mutex::new(route),
            search: tokio::sync::Mutex::default(),
            handshakes: tokio::sync::Semaphore::new(MAX_HANDSHAKES),
        };
        Ok((peer, stream))
    }

    /// The peer as messages show it: its name, its address or a short form of its key. What was
    /// typed may be a secret.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    fn route(&self) -> Route {
        self.route
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A new connection with `request`, and the answer. Where the peer is not where it was met, it
    /// is looked for again.
    ///
    /// # Errors
    /// [`RequestError`]; a refusal is one.
    pub(crate) async fn request(
        &self,
        request: &Request,
    ) -> Result<(PeerStream, Answer), RequestError> {
        ask(self.connection().await?, request).await
    }

    /// A new connection over which `request` is under way; [`answer`] reads the answer.
    ///
    /// # Errors
    /// [`RequestError::Lost`].
    pub(crate) async fn begin(&self, request: &Request) -> Result<PeerStream, RequestError> {
        let mut stream = self.connection().await?;
        let writing = request.write(&mut stream).await;
        writing.map_err(|error| RequestError::Lost(broken_off(&error)))?;
        Ok(stream)
    }

    async fn connection(&self) -> Result<PeerStream, RequestError> {
        let route = self.route();
        match self.open(&route).await {
            Ok(stream) => Ok(stream),
            Err(_) => {
                let found = self.search(&route).await;
                found.inspect_err(|error| tunnels().refused(error.name()))
            }
        }
    }

    /// Waits until the peer has everything that was sent to it, at most `limit`. Nothing can be
    /// requested afterwards.
    pub(crate) async fn delivered(&self, limit: Duration) {
        let _ = self.route().endpoint.shutdown(limit).await;
    }

    /// A connection to the peer after that by `missed` failed.
    async fn search(&self, missed: &Route) -> Result<PeerStream, RequestError> {
        let _search = self.search.lock().await;
        let lost = |words: String| RequestError::Lost(words);
        let current = self.route();
        if current.met != missed.met
            && let Ok(stream) = self.open(&current).await
        {
            return Ok(stream);
        }
        let finder = Arc::clone(&self.finder);
        // On a thread of its own: it reads files, too.
        let handle = tokio::runtime::Handle::current();
        let searching = tokio::task::spawn_blocking(move || handle.block_on(finder.meet()));
        let (stream, route) = searching
            .await
            .map_err(|error| lost(error.to_string()))?
            .map_err(|failure| lost(failure.to_string()))?;
        *self.route.lock().unwrap_or_else(PoisonError::into_inner) = route;
        Ok(stream)
    }

    async fn open(&self, route: &Route) -> Result<PeerStream, SecureError> {
        let _turn = self.handshakes.acquire().await;
        let connect = route
            .endpoint
            .connect(route.address)
            .port(TUNNEL_PORT)
            .config(self.finder.args.config())
            .expecting(route.key, ALPN)
            .identity(self.finder.own.identity.clone());
        let limit = self.finder.args.connect_timeout;
        let stream = tokio::time::timeout(limit, connect.into_future())
            .await
            .map_err(|_| SecureError::TimedOut(limit))??;
        Ok(PeerStream::Secure(Box::new(stream), route.key.into()))
    }
}

impl Finder {
    /// The target without secrets, once it was found to have this key.
    fn shown(&self, key: &PublicKey) -> String {
        match &self.target {
            Target::Ticket(..) | Target::Code(..) => {
                let book = Book::load(&self.state).ok();
                let name = book.and_then(|book| Some(book.by_key(key)?.name.to_string()));
                name.unwrap_or_else(|| tack_pairing::short(key))
            }
            target => target.shown(),
        }
    }

    async fn meet(&self) -> Result<(PeerStream, Route), Failure> {
        let args = &*self.args;
        let options = ConnectOptions {
            target: &self.target,
            met: None,
            intent: Intent::Forward,
            own: &self.own,
            state: &self.state,
            dial: meeting::Dial {
                tcp_port: SERVE_PORT,
                service: SERVICE,
                from: None,
                config: args.config(),
                carrier: args.transport.carrier.clone(),
            },
            udp_port: SERVE_UDP_PORT,
            family: Family::Any,
            connect_timeout: args.connect_timeout,
            wait: args.peer.wait(matches!(self.target, Target::Code(_, None))),
            remember: args.peer.remember.as_ref(),
            volume: Volume::Normal,
        };
        let (stream, met) = meeting::reach(&options).await?;
        let route = Route {
            met: Instant::now(),
            endpoint: stream.endpoint(),
            address: stream.peer_addr(),
            key: met.peer,
        };
        Ok((stream, route))
    }
}

/// Makes a request over `stream`, and reads the answer.
///
/// # Errors
/// [`RequestError`]; a refusal is one.
pub(crate) async fn ask(
    mut stream: PeerStream,
    request: &Request,
) -> Result<(PeerStream, Answer), RequestError> {
    let writing = request.write(&mut stream).await;
    writing.map_err(|error| RequestError::Lost(broken_off(&error)))?;
    let answer = answer(&mut stream).await?;
    Ok((stream, answer))
}

/// Reads the answer to a request.
///
/// # Errors
/// [`RequestError`]; a refusal is one.
pub(crate) async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> Result<Answer, RequestError> {
    let answer = match tokio::time::timeout(ANSWER_DEADLINE, Answer::read(stream)).await {
        Ok(Ok(Answer::Refused(refusal))) => Err(RequestError::Refused(refusal)),
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(RequestError::Lost(broken_off(&error))),
        Err(_) => Err(RequestError::Lost("the other side does not answer".into())),
    };
    answer.inspect_err(|error| tunnels().refused(error.name()))
}

fn broken_off(error: &io::Error) -> String {
    format!("the other side broke off: {error}")
}
