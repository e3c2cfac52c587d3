//! `tack forward`: ports of this machine that lead to targets behind a peer, and ports of the peer
//! that lead to targets from here.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::io::AsyncRead;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::carrier::{Carrier, MAX_CONNECTIONS};
use super::dial::{RequestError, StandardInput, TunnelArgs, TunnelPeer, answer};
use super::message::{Answer, Refusal, Request};
use super::open_files::check_file_limit;
use super::pump::{self, join_early};
use super::target::TunnelTarget;
use crate::exit::{Exit, Failure};
use crate::meeting::PeerReader;
use crate::observe::{ObserveArgs, tunnels};
use crate::signals::Signals;

/// Pause before a listening request is repeated after the peer was lost; it doubles up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(crate) struct ForwardArgs {
    /// Listen on this port here, and connect to HOST:HOSTPORT from the peer, for each connection.
    /// BIND is the address to listen on [default: 127.0.0.1]; * is every address
    #[arg(short = 'L', long = "local", value_name = "[BIND:]PORT:HOST:HOSTPORT")]
    local: Vec<Forward>,
    /// Have the peer listen on this port, and connect to HOST:HOSTPORT from here, for each
    /// connection. The peer has to permit it (its --remote-listen)
    #[arg(short = 'R', long = "remote", value_name = "[BIND:]PORT:HOST:HOSTPORT")]
    remote: Vec<Forward>,
    /// The machine that runs `tack serve`: a known peer (laptop:), a ticket, a code or an address.
    /// Can be left out beside --ticket-file, --ticket-fd, --code and TACK_TICKET
    #[arg(value_name = "PEER")]
    peer: Option<String>,
    #[command(flatten)]
    tunnel: TunnelArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}

/// A port to listen on, and where its connections go.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Forward {
    listen: SocketAddr,
    target: TunnelTarget,
}

/// A text that is no forward.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is not valid: expected [BIND:]PORT:HOST:HOSTPORT (for example 8080:nas:80 or [::1]:8080:nas:80)"
)]
struct BadForward(String);

impl FromStr for Forward {
    type Err = BadForward;

    fn from_str(text: &str) -> Result<Self, BadForward> {
        let bad = || BadForward(text.to_owned());
        // The target is the last host with its port; a host in brackets may hold colons.
        let (rest, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let split = match rest.ends_with(']') {
            true => rest.rfind(":["),
            false => rest.rfind(':'),
        };
        let (listen, host) = rest.split_at(split.ok_or_else(bad)?);
        let target = format!("{}:{port}", &host[1..]);
        let target = target.parse().map_err(|_| bad())?;
        let (bind, port) = match listen.rsplit_once(':') {
            Some((bind, port)) => (bind, port),
            None => ("127.0.0.1", listen),
        };
        let inner = bind
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let address: IpAddr = match (bind, inner) {
            ("*", _) => Ipv4Addr::UNSPECIFIED.into(),
            ("localhost", _) => Ipv4Addr::LOCALHOST.into(),
            (_, Some(inner)) => inner.parse().map_err(|_| bad())?,
            (bind, None) => bind.parse::<Ipv4Addr>().map_err(|_| bad())?.into(),
        };
        let port = port.parse().map_err(|_| bad())?;
        Ok(Self {
            listen: SocketAddr::new(address, port),
            target,
        })
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.listen, self.target)
    }
}

/// Carries connections until a signal.
pub(crate) async fn forward(args: ForwardArgs) -> Result<Exit, Failure> {
    if args.local.is_empty() && args.remote.is_empty() {
        return Err(Failure::usage(
            "nothing to forward: expected -L or -R (for example -L 8080:nas:80)",
        ));
    }
    let mut signals = Signals::new()?;
    tokio::select! {
        done = run(args) => done,
        exit = signals.next() => Ok(exit),
    }
}

async fn run(args: ForwardArgs) -> Result<Exit, Failure> {
    check_file_limit(MAX_CONNECTIONS);
    // What cannot be listened on is noticed before anybody is asked.
    let mut listeners = Vec::new();
    for forward in args.local {
        let listener = TcpListener::bind(forward.listen).await.map_err(|error| {
            Failure::network(format!("cannot listen on {}: {error}", forward.listen))
        })?;
        listeners.push((listener, forward));
    }
    let peer = args.peer.as_deref();
    let target = args.tunnel.target(peer, StandardInput::Free)?;
    let (peer, stream) = TunnelPeer::meet(Arc::new(args.tunnel), target).await?;
    // The peer lets us in: that was the question.
    stream.reset();
    let shared = Arc::new(Carrier::new(peer));
    let mut tasks = JoinSet::new();
    for (listener, forward) in listeners {
        let address = listener.local_addr().unwrap_or(forward.listen);
        eprintln!(
            "tack: {address} leads to {} behind {}",
            forward.target,
            shared.peer.shown()
        );
        tasks.spawn(local(listener, forward.target, Arc::clone(&shared)));
    }
    for forward in args.remote {
        tasks.spawn(remote(forward, Arc::clone(&shared)));
    }
    match tasks.join_next().await {
        Some(Ok(Err(failure))) => Err(failure),
        Some(Err(error)) => Err(Failure::failed("a task failed", error)),
        Some(Ok(Ok(never))) => match never {},
        None => Ok(Exit::Done),
    }
}

/// What does not end.
enum Never {}

/// Accepts here, and connects from the peer.
async fn local(
    listener: TcpListener,
    target: TunnelTarget,
    shared: Arc<Carrier>,
) -> Result<Never, Failure> {
    let request = Arc::new(Request::Connect(target));
    loop {
        let place = Arc::clone(&shared.places).acquire_owned().await;
        let place = place.expect("never closed");
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // No more file descriptors, or the peer is gone already: the next one may do.
                shared.complain(&"cannot accept", &error);
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (shared, request) = (Arc::clone(&shared), Arc::clone(&request));
        tokio::spawn(async move {
            let _place = place;
            carry(stream, &request, &shared).await;
        });
    }
}

/// Carries `stream` over a connection for `request`.
async fn carry(stream: TcpStream, request: &Request, shared: &Carrier) {
    let _ = stream.set_nodelay(true);
    let begun = shared.peer.begin(request).await;
    let mut open = None;
    let joined = match begun {
        Ok(peer) => {
            let answered = async |reader: &mut PeerReader| {
                let answered = is_open(reader).await;
                open = answered.is_ok().then(|| tunnels().opened());
                answered
            };
            join_early(stream, peer, answered).await
        }
        Err(error) => {
            pump::reset(stream);
            Err(error)
        }
    };
    drop(open);
    // How a connection that was open ended both of its ends know.
    if let Err(error) = joined {
        let about = match request {
            Request::Connect(target) => target.to_string(),
            _ => "a connection from the peer".to_owned(),
        };
        shared.complain(&about, &error);
    }
}

/// Reads the answer to a request for a connection.
async fn is_open(reader: &mut PeerReader) -> Result<(), RequestError> {
    match answer(reader).await? {
        Answer::Open(_) => Ok(()),
        _ => Err(RequestError::Lost(
            "the other side sent an unexpected answer".into(),
        )),
    }
}

/// Has the peer listen, and connects from here; again after the peer was lost.
async fn remote(forward: Forward, shared: Arc<Carrier>) -> Result<Never, Failure> {
    let name = shared.peer.shown();
    let mut pause = FIRST_PAUSE;
    let mut was_open = false;
    loop {
        match shared.peer.request(&Request::Listen(forward.listen)).await {
            Ok((mut stream, Answer::Listening(address))) => {
                eprintln!(
                    "tack: {address} at {name} leads to {} from here",
                    forward.target
                );
                was_open = true;
                pause = FIRST_PAUSE;
                arrivals(&mut stream, &shared.places, |number, place| {
                    let (shared, target) = (Arc::clone(&shared), forward.target.clone());
                    tokio::spawn(async move {
                        let _place = place;
                        arrived(number, target, &shared).await;
                    });
                })
                .await;
                stream.reset();
                eprintln!("tack: {name} is lost; trying again");
            }
            Ok((stream, _)) => {
                stream.reset();
                return Err(Failure::plain("unexpected answer from the peer"));
            }
            // A port that is in use after a loss is our own, which the peer has not given up yet.
            Err(RequestError::Refused(refusal)) if !was_open => {
                let why = match refusal {
                    Refusal::NotPermitted => {
                        "the other side does not permit this address and port (its --remote-listen)"
                            .to_owned()
                    }
                    refusal => refusal.to_string(),
                };
                return Err(Failure::network(format!(
                    "{name} does not listen on {}: {why}",
                    forward.listen
                )));
            }
            Err(error) => shared.complain(&forward, &error),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Takes a place for each connection that arrives at the peer, which may name any number of them,
/// until the peer is lost.
async fn arrivals(
    stream: &mut (impl AsyncRead + Unpin),
    places: &Arc<Semaphore>,
    mut begin: impl FnMut(u64, OwnedSemaphorePermit),
) {
    while let Ok(Answer::Arrived(number, _)) = Answer::read(stream).await {
        let place = Arc::clone(places).acquire_owned().await;
        begin(number, place.expect("never closed"));
    }
}

/// Connects a connection that arrived at the peer to its target here.
async fn arrived(number: u64, target: TunnelTarget, shared: &Carrier) {
    let host = target.host.to_string();
    match TcpStream::connect((host.as_str(), target.port)).await {
        Ok(stream) => carry(stream, &Request::Accept(number), shared).await,
        Err(error) => {
            shared.complain(&target, &error);
            // Taken and reset: whoever connected there learns that nobody answers.
            if let Ok((peer, _)) = shared.peer.request(&Request::Accept(number)).await {
                peer.reset();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_more_connections_of_the_peer_are_begun_than_there_are_places() {
        let (mut near, mut far) = tokio::io::duplex(1024);
        let from = SocketAddr::from(([127, 0, 0, 1], 9));
        for number in 0..10 {
            Answer::Arrived(number, from).write(&mut far).await.unwrap();
        }
        drop(far);
        let places = Arc::new(Semaphore::new(3));
        let mut begun = Vec::new();
        {
            let taking = arrivals(&mut near, &places, |_, place| begun.push(place));
            let taking = std::pin::pin!(taking);
            assert!(futures_now(taking).await.is_none(), "it waits for a place");
        }
        assert_eq!(begun.len(), 3);
        begun.clear();
        let mut rest = 0;
        arrivals(&mut near, &places, |_, _place| rest += 1).await;
        assert_eq!(rest, 6, "one was read and had no place");
    }

    /// What a future has at once.
    async fn futures_now<T>(future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = tokio::task::yield_now() => None,
        }
    }

    #[test]
    fn forwards_are_as_ssh_has_them() {
        for (text, listen, target) in [
            ("8080:nas:80", "127.0.0.1:8080", "nas:80"),
            ("0:nas:80", "127.0.0.1:0", "nas:80"),
            ("*:8080:nas:80", "0.0.0.0:8080", "nas:80"),
            ("localhost:8080:nas:80", "127.0.0.1:8080", "nas:80"),
            ("10.0.0.1:8080:10.0.0.2:80", "10.0.0.1:8080", "10.0.0.2:80"),
            ("[::1]:8080:[fd00::1]:80", "[::1]:8080", "[fd00::1]:80"),
            ("8080:[fd00::1]:80", "127.0.0.1:8080", "[fd00::1]:80"),
        ] {
            let forward: Forward = text.parse().unwrap();
            assert_eq!(forward.listen, listen.parse().unwrap(), "{text}");
            assert_eq!(forward.target, target.parse().unwrap(), "{text}");
        }
        for wrong in [
            "",
            "8080",
            "8080:nas",
            "8080:nas:",
            ":nas:80",
            "a:b:8080:nas:80",
            "::1:8080:nas:80",
            "70000:nas:80",
        ] {
            assert!(wrong.parse::<Forward>().is_err(), "{wrong:?}");
        }
    }
}
