//! What a serving side does for one connection of a peer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tack::secure::PublicKey;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::accepted::AcceptedConnections;
use super::access::{Access, Guest};
use super::listening::{self, announce};
use super::lookups::Lookups;
use super::neighbours::Neighbours;
use super::policy::{CurrentPolicy, PeerPolicy};
use super::relay;
use super::slots::{Slot, Slots};
use crate::meeting::PeerStream;
use crate::observe::tunnels;
use crate::tunnel::message::{Answer, MAX_ADDRESSES, Refusal, Request};
use crate::tunnel::pump::join_limited;
use crate::tunnel::rules;
use crate::tunnel::target::{Host, TunnelTarget};

/// How long a peer may take to say what it wants.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);
/// How long all addresses of a target together may take to answer.
const TARGET_DEADLINE: Duration = Duration::from_secs(10);
/// How long a refused peer may take to take the refusal.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long a peer may take for its next question about a name.
const NEXT_QUESTION: Duration = Duration::from_secs(60);

/// Associations of datagrams of a peer at most: each has two ports.
const MAX_ASSOCIATIONS: u32 = 256;

/// What all connections share.
#[derive(Debug)]
pub(super) struct Service {
    policy: Arc<CurrentPolicy>,
    access: Access,
    connections: Arc<Slots>,
    associations: Arc<Slots>,
    accepted: AcceptedConnections,
    lookups: Arc<Lookups>,
    neighbours: Arc<Neighbours>,
    verbose: bool,
}

impl Service {
    pub(super) fn new(policy: Arc<CurrentPolicy>, access: Access, verbose: bool) -> Self {
        Self {
            policy,
            access,
            connections: Arc::default(),
            associations: Arc::default(),
            accepted: AcceptedConnections::default(),
            lookups: Arc::default(),
            neighbours: Arc::default(),
            verbose,
        }
    }

    /// Carried connections of each peer, for `tack status`.
    pub(super) fn status(&self) -> serde_json::Value {
        let of_peer = self.connections.of_peers().into_iter().map(|(key, count)| {
            let name = self.access.shown(&PublicKey::from(key));
            (name, count.into())
        });
        let peers: serde_json::Map<String, serde_json::Value> = of_peer.collect();
        serde_json::json!({ "peers": peers })
    }

    pub(super) fn access(&self) -> &Access {
        &self.access
    }

    /// Who has this key, if it is served.
    pub(super) fn guest(&self, key: PublicKey) -> Option<Guest> {
        self.access.guest(key, &self.policy.now())
    }

    /// As [`Self::guest`], with the reason where there is none.
    fn judge(&self, key: PublicKey) -> Result<Guest, Refusal> {
        self.access.judge(key, &self.policy.now())
    }

    /// What a peer may do, as of now.
    pub(super) fn policy_of(&self, guest: &Guest) -> Arc<PeerPolicy> {
        self.policy.now().of(guest.name.as_ref())
    }

    /// A slot for a connection of `guest`, whose rate is set.
    pub(super) fn enter(&self, guest: &Guest) -> Option<Slot> {
        let policy = self.policy.now();
        let own = policy.of(guest.name.as_ref());
        let slot =
            self.connections
                .enter(&guest.key, policy.max_connections, own.max_connections)?;
        slot.limits.set(own.rate);
        Some(slot)
    }

    /// The rules have changed: what is open is carried at the rates of the new ones.
    pub(super) fn apply_rates(&self) {
        let policy = self.policy.now();
        for (key, limits) in self.connections.limits() {
            // Who is not served any more keeps what is open, as it was.
            if let Some(guest) = self.access.guest(key, &policy) {
                limits.set(policy.of(guest.name.as_ref()).rate);
            }
        }
    }

    pub(super) fn say(&self, guest: &Guest, words: &dyn std::fmt::Display) {
        tracing::info!(peer = %guest, "{words}");
        if self.verbose {
            eprintln!("tack: {guest}: {words}");
        }
    }

    /// A connection to `target`, as far as the rules permit it.
    async fn reach(&self, target: &TunnelTarget, guest: &Guest) -> Result<TcpStream, Refusal> {
        let policy = self.policy_of(guest);
        let rules = &policy.targets;
        let addresses = match &target.host {
            Host::Address(address) => vec![SocketAddr::new(*address, 0)],
            Host::Name(name) => {
                // A name that no rule is about is not asked for: questions tell, too.
                if !rules::any_concerns(rules, &target.host, target.port) {
                    return Err(Refusal::NotPermitted);
                }
                self.lookups.addresses(&guest.key, name).await?
            }
        };
        let is_near = |address| self.neighbours.include(address);
        let permitted = |address: &SocketAddr| {
            let (host, port) = (&target.host, target.port);
            rules::permit(rules, host, port, address.ip(), &is_near)
        };
        // The addresses that were judged are those that are connected to: the name is not looked
        // up a second time.
        let addresses: Vec<_> = addresses.into_iter().filter(permitted).collect();
        let share = TARGET_DEADLINE / (addresses.len().max(1) as u32);
        let mut refusal = Refusal::NotPermitted;
        for mut address in addresses {
            address.set_port(target.port);
            let connecting = TcpStream::connect(address);
            refusal = match tokio::time::timeout(share, connecting).await {
                Ok(Ok(stream)) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => refusal_of(&error),
                Err(_) => Refusal::TimedOut,
            };
        }
        Err(refusal)
    }

    async fn open(&self, target: &TunnelTarget, peer: PeerStream, guest: &Guest, slot: &Slot) {
        match self.reach(target, guest).await {
            Ok(stream) => {
                self.say(guest, &format_args!("connected to {target}"));
                let what = target.to_string();
                self.carry(stream, peer, guest, &what, slot).await;
            }
            Err(refusal) => {
                self.say(guest, &format_args!("{target}: {}", refusal.to_refusing()));
                refuse(peer, refusal).await;
            }
        }
    }

    /// The addresses of `name`, as far as the rules permit to connect to them.
    async fn addresses(&self, name: &str, guest: &Guest) -> Result<Vec<IpAddr>, Refusal> {
        let policy = self.policy_of(guest);
        let host = Host::Name(name.to_owned());
        if !rules::any_concerns_name(&policy.targets, &host) {
            return Err(Refusal::NotPermitted);
        }
        let found = self.lookups.addresses(&guest.key, name).await?;
        let is_near = |address| self.neighbours.include(address);
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in found.iter().map(|address| address.ip().to_canonical()) {
            if rules::permit_name(&policy.targets, &host, address, &is_near)
                && !addresses.contains(&address)
                && addresses.len() < MAX_ADDRESSES
            {
                addresses.push(address);
            }
        }
        match addresses.is_empty() {
            true => Err(Refusal::NotPermitted),
            false => Ok(addresses),
        }
    }

    /// Answers questions about names until the peer has no more.
    async fn resolve(&self, mut name: String, mut peer: PeerStream, guest: &Guest) {
        loop {
            let answer = match self.addresses(&name, guest).await {
                Ok(addresses) => Answer::Addresses(addresses),
                Err(refusal) => {
                    tunnels().refused(refusal.name());
                    Answer::Refused(refusal)
                }
            };
            let next = async {
                answer.write(&mut peer).await?;
                Request::read(&mut peer).await
            };
            name = match tokio::time::timeout(NEXT_QUESTION, next).await {
                Ok(Ok(Request::Resolve(name))) => name,
                _ => return,
            };
        }
    }

    async fn carry(
        &self,
        stream: TcpStream,
        mut peer: PeerStream,
        guest: &Guest,
        what: &str,
        slot: &Slot,
    ) {
        let Ok(address) = stream.local_addr() else {
            return refuse(peer, Refusal::Gone).await;
        };
        if Answer::Open(address).write(&mut peer).await.is_err() {
            return;
        }
        let _open = tunnels().opened();
        let (carried, outcome) = join_limited(stream, peer, &slot.limits).await;
        let end = match outcome {
            Ok(()) => String::new(),
            Err(error) => format!(", broke off: {error}"),
        };
        self.say(
            guest,
            &format_args!(
                "{what}: {} bytes to the peer, {} from it{end}",
                carried.sent, carried.received
            ),
        );
    }

    /// Listens for `peer`, and tells it of each connection until it goes.
    async fn listen(&self, at: SocketAddr, mut peer: PeerStream, guest: &Guest) {
        // From before the judgement on, so that no change is missed.
        let changes = self.policy.changes();
        let may = || {
            let guest = self.guest(guest.key);
            guest.is_some_and(|guest| listening::is_permitted(&self.policy_of(&guest), at))
        };
        if !may() {
            self.say(guest, &format_args!("may not listen on {at}"));
            return refuse(peer, Refusal::NotPermitted).await;
        }
        let bound = TcpListener::bind(at).await;
        let (address, listener) =
            match bound.and_then(|listener| Ok((listener.local_addr()?, listener))) {
                Ok((address, listener)) => {
                    if Answer::Listening(address).write(&mut peer).await.is_err() {
                        return;
                    }
                    self.say(guest, &format_args!("listening on {address} for it"));
                    (address, listener)
                }
                Err(error) => return refuse(peer, refusal_of(&error)).await,
            };
        let (reader, writer) = peer.into_split();
        let arrivals = self.accepted.arrivals(*guest.key.as_bytes(), at);
        if announce(listener, reader, writer, arrivals, changes, may).await {
            let words = format_args!("may not listen on {address} any more: it is closed");
            self.say(guest, &words);
        }
    }
}

/// Relays datagrams of `peer`.
async fn associate(service: Arc<Service>, mut peer: PeerStream, guest: Guest, slot: &Slot) {
    let association = service
        .associations
        .enter(&guest.key, u32::MAX, MAX_ASSOCIATIONS);
    let Some(_association) = association else {
        return refuse(peer, Refusal::Busy).await;
    };
    if service.policy_of(&guest).targets.is_empty() {
        return refuse(peer, Refusal::NotPermitted).await;
    }
    let origin = relay::Origin {
        policy: Arc::clone(&service.policy),
        peer: guest.clone(),
        limits: Arc::clone(&slot.limits),
        lookups: Arc::clone(&service.lookups),
        neighbours: Arc::clone(&service.neighbours),
    };
    match relay::open(origin).await {
        Ok(relay) => {
            if Answer::Associated.write(&mut peer).await.is_err() {
                return;
            }
            let (sent, received) = relay.run(peer).await;
            service.say(
                &guest,
                &format_args!("UDP: {received} datagrams to the peer, {sent} from it"),
            );
        }
        Err(error) => refuse(peer, refusal_of(&error)).await,
    }
}

/// The refusal that a failure here means.
fn refusal_of(error: &std::io::Error) -> Refusal {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => Refusal::Busy,
        _ => Refusal::of(error),
    }
}

async fn refuse(mut peer: PeerStream, refusal: Refusal) {
    tunnels().refused(refusal.name());
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
    let PeerStream::Secure(_, proven) = &peer else {
        return;
    };
    // Met, but perhaps not among those that are allowed.
    let guest = match service.judge(proven.key) {
        Ok(guest) => guest,
        Err(refusal) => return refuse(peer, refusal).await,
    };
    let Some(slot) = service.enter(&guest) else {
        return refuse(peer, Refusal::Busy).await;
    };
    let request = tokio::time::timeout(REQUEST_DEADLINE, Request::read(&mut peer)).await;
    match request {
        Ok(Ok(Request::Connect(target))) => service.open(&target, peer, &guest, &slot).await,
        Ok(Ok(Request::Listen(address))) => service.listen(address, peer, &guest).await,
        Ok(Ok(Request::Accept(number))) => {
            let rules = service.policy_of(&guest);
            let may = |at| listening::is_permitted(&rules, at);
            match service.accepted.take(*guest.key.as_bytes(), number, may) {
                Some(stream) => {
                    let what = "a connection";
                    service.carry(stream, peer, &guest, what, &slot).await;
                }
                None => refuse(peer, Refusal::Gone).await,
            }
        }
        Ok(Ok(Request::Resolve(name))) => service.resolve(name, peer, &guest).await,
        Ok(Ok(Request::Associate)) => associate(service, peer, guest, &slot).await,
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
            refuse(peer, Refusal::Malformed).await;
        }
        // It went, or has nothing to say.
        Ok(Err(_)) | Err(_) => peer.reset(),
    }
}
