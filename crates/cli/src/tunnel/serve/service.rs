//! What a serving side does for one connection of a peer.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tack::secure::PublicKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, lookup_host};

use super::accepted::AcceptedConnections;
use super::access::Access;
use crate::meeting::PeerStream;
use crate::tunnel::message::{Answer, Refusal, Request};
use crate::tunnel::pump::join;
use crate::tunnel::rules::{self, TargetRule};
use crate::tunnel::target::{Host, TunnelTarget};

/// How long a peer may take to say what it wants.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);
/// How long a name may take to resolve, and all its addresses together to answer.
const TARGET_DEADLINE: Duration = Duration::from_secs(10);
/// How long a refused peer may take to take the refusal.
const FAREWELL: Duration = Duration::from_secs(5);

/// What all connections share.
#[derive(Debug)]
pub(super) struct Service {
    targets: Vec<TargetRule>,
    remote_listen: Vec<TargetRule>,
    access: Arc<Access>,
    max_connections: u32,
    max_per_peer: u32,
    places: Mutex<Places>,
    accepted: AcceptedConnections,
    verbose: bool,
}

#[derive(Debug, Default)]
struct Places {
    total: u32,
    of_peer: HashMap<[u8; 32], u32>,
}

/// A place among the connections, for as long as it is held.
struct Place {
    service: Arc<Service>,
    peer: [u8; 32],
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.service.places();
        places.total -= 1;
        if let Some(count) = places.of_peer.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                places.of_peer.remove(&self.peer);
            }
        }
    }
}

impl Service {
    pub(super) fn new(
        targets: Vec<TargetRule>,
        remote_listen: Vec<TargetRule>,
        max_connections: u32,
        max_per_peer: u32,
        access: Arc<Access>,
        verbose: bool,
    ) -> Self {
        Self {
            targets,
            remote_listen,
            access,
            max_connections,
            max_per_peer,
            places: Mutex::default(),
            accepted: AcceptedConnections::default(),
            verbose,
        }
    }

    /// Carried connections of each peer, for `tack status`.
    pub(super) fn status(&self) -> serde_json::Value {
        let of_peer = self.places().of_peer.clone();
        let of_peer = of_peer.into_iter().map(|(key, count)| {
            let name = self.access.name(&PublicKey::from(key));
            (name.trim_end_matches(':').to_owned(), count.into())
        });
        let peers: serde_json::Map<String, serde_json::Value> = of_peer.collect();
        serde_json::json!({ "peers": peers })
    }

    fn places(&self) -> std::sync::MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, key: &PublicKey) -> Option<Place> {
        let peer = *key.as_bytes();
        let mut places = self.places();
        let of_peer = places.of_peer.get(&peer).copied().unwrap_or(0);
        if places.total >= self.max_connections || of_peer >= self.max_per_peer {
            return None;
        }
        places.total += 1;
        places.of_peer.insert(peer, of_peer + 1);
        Some(Place {
            service: Arc::clone(self),
            peer,
        })
    }

    fn say(&self, key: &PublicKey, words: &dyn std::fmt::Display) {
        if tracing::enabled!(tracing::Level::INFO) {
            let name = self.access.name(key);
            tracing::info!(peer = name.trim_end_matches(':'), "{words}");
        }
        if self.verbose {
            let name = self.access.name(key);
            eprintln!("tack: {}: {words}", name.trim_end_matches(':'));
        }
    }

    /// A connection to `target`, as far as the rules permit it.
    async fn reach(&self, target: &TunnelTarget) -> Result<TcpStream, Refusal> {
        let addresses = match &target.host {
            Host::Address(address) => vec![SocketAddr::new(*address, target.port)],
            Host::Name(name) => {
                // A name that no rule is about is not asked for: questions tell, too.
                if !rules::any_concerns(&self.targets, &target.host, target.port) {
                    return Err(Refusal::NotPermitted);
                }
                let lookup = lookup_host((name.as_str(), target.port));
                match tokio::time::timeout(TARGET_DEADLINE, lookup).await {
                    Ok(Ok(found)) => found.collect(),
                    Ok(Err(_)) | Err(_) => return Err(Refusal::NoSuchHost),
                }
            }
        };
        let permitted = |address: &SocketAddr| {
            rules::permit(&self.targets, &target.host, target.port, address.ip())
        };
        // The addresses that were judged are those that are connected to: the name is not looked
        // up a second time.
        let addresses: Vec<_> = addresses.into_iter().filter(permitted).collect();
        let share = TARGET_DEADLINE / (addresses.len().max(1) as u32);
        let mut refusal = Refusal::NotPermitted;
        for address in addresses {
            refusal = match tokio::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => Refusal::of(&error),
                Err(_) => Refusal::TimedOut,
            };
        }
        Err(refusal)
    }

    async fn open(&self, target: &TunnelTarget, peer: PeerStream, key: &PublicKey) {
        match self.reach(target).await {
            Ok(stream) => {
                self.say(key, &format_args!("connected to {target}"));
                self.carry(stream, peer, key, &target.to_string()).await;
            }
            Err(refusal) => {
                self.say(key, &format_args!("{target}: {refusal}"));
                refuse(peer, refusal).await;
            }
        }
    }

    async fn carry(&self, stream: TcpStream, mut peer: PeerStream, key: &PublicKey, what: &str) {
        let Ok(address) = stream.local_addr() else {
            return refuse(peer, Refusal::Gone).await;
        };
        if Answer::Open(address).write(&mut peer).await.is_err() {
            return;
        }
        let (carried, outcome) = join(stream, peer).await;
        let end = match outcome {
            Ok(()) => String::new(),
            Err(error) => format!(", broke off: {error}"),
        };
        self.say(
            key,
            &format_args!(
                "{what}: {} bytes to the peer, {} from it{end}",
                carried.sent, carried.received
            ),
        );
    }

    /// Listens for `peer`, and tells it of each connection until it goes.
    async fn listen(&self, at: SocketAddr, mut peer: PeerStream, key: &PublicKey) {
        let host = Host::Address(at.ip().to_canonical());
        // Any free port is one of all ports.
        let permitted = match at.port() {
            0 => [1, u16::MAX]
                .iter()
                .all(|port| rules::permit(&self.remote_listen, &host, *port, at.ip())),
            port => rules::permit(&self.remote_listen, &host, port, at.ip()),
        };
        if !permitted {
            self.say(key, &format_args!("may not listen on {at}"));
            return refuse(peer, Refusal::NotPermitted).await;
        }
        let bound = TcpListener::bind(at).await;
        let listener = match bound.and_then(|listener| Ok((listener.local_addr()?, listener))) {
            Ok((address, listener)) => {
                if Answer::Listening(address).write(&mut peer).await.is_err() {
                    return;
                }
                self.say(key, &format_args!("listening on {address} for it"));
                listener
            }
            Err(error) => return refuse(peer, Refusal::of(&error)).await,
        };
        let (mut reader, mut writer) = peer.into_split();
        let mut byte = [0];
        loop {
            let (stream, from) = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
                // The peer says nothing more; its end ends the listening.
                _ = reader.read(&mut byte) => return,
            };
            let _ = stream.set_nodelay(true);
            let number = self.accepted.add(*key.as_bytes(), stream, Instant::now());
            if let Some(number) = number
                && Answer::Arrived(number, from)
                    .write(&mut writer)
                    .await
                    .is_err()
            {
                return;
            }
        }
    }
}

async fn refuse(mut peer: PeerStream, refusal: Refusal) {
    let telling = async {
        Answer::Refused(refusal).write(&mut peer).await?;
        peer.shutdown().await?;
        peer.finished().await
    };
    // Whoever does not listen has heard enough.
    let _ = tokio::time::timeout(FAREWELL, telling).await;
}

/// Serves one connection of a peer that was let in.
pub(super) async fn serve_one(service: Arc<Service>, mut peer: PeerStream) {
    let PeerStream::Secure(_, key) = &peer else {
        return;
    };
    let key = *key;
    // Met, but perhaps not among those that are allowed.
    if !service.access.admits(&key) {
        return refuse(peer, Refusal::NotPermitted).await;
    }
    let Some(_place) = service.enter(&key) else {
        return refuse(peer, Refusal::Busy).await;
    };
    let request = tokio::time::timeout(REQUEST_DEADLINE, Request::read(&mut peer)).await;
    match request {
        Ok(Ok(Request::Connect(target))) => service.open(&target, peer, &key).await,
        Ok(Ok(Request::Listen(address))) => service.listen(address, peer, &key).await,
        Ok(Ok(Request::Accept(number))) => match service.accepted.take(*key.as_bytes(), number) {
            Some(stream) => service.carry(stream, peer, &key, "a connection").await,
            None => refuse(peer, Refusal::Gone).await,
        },
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
            refuse(peer, Refusal::Malformed).await;
        }
        // It went, or has nothing to say.
        Ok(Err(_)) | Err(_) => peer.reset(),
    }
}
