//! UDP datagrams of a peer: sent from here to the targets that its rules permit, and what these
//! answer.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::access::Guest;
use super::lookups::Lookups;
use super::neighbours::Neighbours;
use super::policy::{CurrentPolicy, PeerPolicy};
use crate::meeting::PeerStream;
use crate::observe::tunnels;
use crate::transfer::channel::Writer;
use crate::tunnel::datagram;
use crate::tunnel::limit::Limit;
use crate::tunnel::message::Refusal;
use crate::tunnel::pump::{Limits, keep_buffer, take_buffer};
use crate::tunnel::rules;
use crate::tunnel::target::{Host, TunnelTarget};

/// Addresses that a peer has sent to and may hear from; of more the oldest is forgotten.
const MAX_REMEMBERED: usize = 1024;
/// Names whose addresses are kept, and for how long.
const MAX_NAMES: usize = 64;
const NAME_LIFETIME: Duration = Duration::from_secs(30);
/// Capacity of a buffer that is kept between datagrams, bytes.
const KEPT: usize = 2048;

/// Whose datagrams they are, and what judges them.
pub(super) struct Origin {
    pub(super) policy: Arc<CurrentPolicy>,
    pub(super) peer: Guest,
    pub(super) limits: Arc<Limits>,
    pub(super) lookups: Arc<Lookups>,
    pub(super) neighbours: Arc<Neighbours>,
}

/// The sockets of one association, and what is known of its datagrams.
struct Relay {
    origin: Origin,
    v4: UdpSocket,
    /// Where the machine has IPv6.
    v6: Option<UdpSocket>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// When a datagram was last sent to each address.
    targets: BTreeMap<SocketAddr, Instant>,
    names: BTreeMap<String, (Vec<IpAddr>, Instant)>,
}

impl Known {
    fn sent_to(&mut self, target: SocketAddr, now: Instant) {
        if self.targets.len() >= MAX_REMEMBERED && !self.targets.contains_key(&target) {
            let oldest = self.targets.iter().min_by_key(|(_, at)| **at);
            let oldest = oldest.map(|(target, _)| *target);
            oldest.map(|target| self.targets.remove(&target));
        }
        self.targets.insert(target, now);
    }

    fn addresses(&self, name: &str, now: Instant) -> Option<Vec<IpAddr>> {
        let (addresses, since) = self.names.get(name)?;
        (now.duration_since(*since) < NAME_LIFETIME).then(|| addresses.clone())
    }

    fn learn(&mut self, name: String, addresses: Vec<IpAddr>, now: Instant) {
        if self.names.len() >= MAX_NAMES && !self.names.contains_key(&name) {
            let oldest = self.names.iter().min_by_key(|(_, (_, at))| *at);
            let oldest = oldest.map(|(name, _)| name.clone());
            oldest.map(|name| self.names.remove(&name));
        }
        self.names.insert(name, (addresses, now));
    }
}

/// Ports for the datagrams of a peer.
///
/// # Errors
/// When the system has none.
pub(super) async fn open(origin: Origin) -> io::Result<OpenRelay> {
    let v4 = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    let v6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await.ok();
    Ok(OpenRelay(Arc::new(Relay {
        origin,
        v4,
        v6,
        known: Mutex::default(),
    })))
}

/// A relay whose peer has not been told yet.
pub(super) struct OpenRelay(Arc<Relay>);

impl OpenRelay {
    /// Carries datagrams until the peer ends its stream. How many left, and how many came back.
    pub(super) async fn run(self, peer: PeerStream) -> (u64, u64) {
        let relay = self.0;
        let (mut reader, mut writer) = peer.into_split();
        let (mut sent, mut received) = (0, 0);
        let outgoing = async {
            let mut lookups = JoinSet::new();
            let mut bytes = Vec::new();
            while datagram::read(&mut reader, &mut bytes).await? {
                while lookups.try_join_next().is_some() {}
                let (target, payload) = datagram::decode(&bytes)?;
                sent += 1;
                tunnels().datagrams.from_peer.inc();
                relay.forward(target, payload, &mut lookups).await;
                pause(&relay.origin.limits.from_peer, bytes.len()).await;
                // Few datagrams are long; a peer that sends none holds no memory.
                bytes.clear();
                bytes.shrink_to(KEPT);
            }
            io::Result::Ok(())
        };
        let incoming = async {
            let mut out = Vec::new();
            loop {
                relay.readable().await?;
                let mut bytes = take_buffer();
                let mut written = Ok(());
                while let Some((len, from)) = relay.received(&mut bytes) {
                    let from = TunnelTarget {
                        host: Host::Address(from.ip().to_canonical()),
                        port: from.port(),
                    };
                    out.clear();
                    if datagram::encode(&from, &bytes[..len], &mut out).is_err() {
                        continue;
                    }
                    received += 1;
                    tunnels().datagrams.to_peer.inc();
                    written = writer.write_all(&out).await;
                    if written.is_err() {
                        break;
                    }
                    pause(&relay.origin.limits.to_peer, len).await;
                }
                keep_buffer(bytes);
                out.shrink_to(KEPT);
                written?;
                writer.flush().await?;
            }
            #[expect(unreachable_code, reason = "the type of what never ends well")]
            io::Result::Ok(())
        };
        tokio::select! {
            _ = outgoing => {}
            _ = incoming => {}
        }
        writer.abort();
        (sent, received)
    }
}

/// Waits as long as `bytes` take at the limit. What arrives meanwhile is kept by the system, as far
/// as it has room.
async fn pause(limit: &Limit, bytes: usize) {
    if let Some(at) = limit.spend(bytes) {
        tokio::time::sleep_until(at).await;
    }
}

impl Relay {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a datagram on, or drops it: there is no answer to a datagram that is not permitted.
    async fn forward(
        self: &Arc<Self>,
        target: TunnelTarget,
        payload: &[u8],
        lookups: &mut JoinSet<()>,
    ) {
        let name = match &target.host {
            Host::Address(address) => return self.send(&target, &[*address], payload).await,
            Host::Name(name) => name.clone(),
        };
        // A name that no rule is about is not asked for: questions tell, too.
        if !rules::any_concerns(&self.policy().targets, &target.host, target.port) {
            return tunnels().dropped(Refusal::NotPermitted.name());
        }
        let known = self.known().addresses(&name, Instant::now());
        if let Some(addresses) = known {
            return self.send(&target, &addresses, payload).await;
        }
        let (relay, payload) = (Arc::clone(self), payload.to_vec());
        lookups.spawn(async move {
            let origin = &relay.origin;
            let found = origin.lookups.addresses_now(&origin.peer.key, &name).await;
            let addresses: Vec<IpAddr> = match found {
                Ok(found) => found.iter().map(SocketAddr::ip).collect(),
                Err(refusal) => {
                    tunnels().dropped(refusal.name());
                    // With anything else the next one may fare better.
                    if refusal == Refusal::NoSuchHost {
                        relay.known().learn(name, Vec::new(), Instant::now());
                    }
                    return;
                }
            };
            relay
                .known()
                .learn(name.clone(), addresses.clone(), Instant::now());
            relay.send(&target, &addresses, &payload).await;
        });
    }

    /// What the peer may do, as of now.
    fn policy(&self) -> Arc<PeerPolicy> {
        self.origin.policy.now().of(self.origin.peer.name.as_ref())
    }

    /// Sends to the first of `addresses` that the rules permit and that there is a socket for.
    async fn send(&self, target: &TunnelTarget, addresses: &[IpAddr], payload: &[u8]) {
        let policy = self.policy();
        let is_near = |address| self.origin.neighbours.include(address);
        for address in addresses {
            let socket = match (address, &self.v6) {
                (IpAddr::V4(_), _) => &self.v4,
                (IpAddr::V6(_), Some(socket)) => socket,
                (IpAddr::V6(_), None) => continue,
            };
            let (host, port) = (&target.host, target.port);
            if rules::permit(&policy.targets, host, port, *address, &is_near) {
                let to = SocketAddr::new(*address, target.port);
                self.known().sent_to(to, Instant::now());
                // A datagram may be lost.
                let _ = socket.send_to(payload, to).await;
                return;
            }
        }
        let refusal = match addresses.is_empty() {
            true => Refusal::NoSuchHost,
            false => Refusal::NotPermitted,
        };
        tunnels().dropped(refusal.name());
    }

    async fn readable(&self) -> io::Result<()> {
        match &self.v6 {
            Some(v6) => tokio::select! {
                ready = self.v4.readable() => ready,
                ready = v6.readable() => ready,
            },
            None => self.v4.readable().await,
        }
    }

    /// The next datagram of a host that was sent to.
    fn received(&self, bytes: &mut [u8]) -> Option<(usize, SocketAddr)> {
        loop {
            let next = |socket: &UdpSocket, bytes: &mut [u8]| loop {
                match socket.try_recv_from(bytes) {
                    Ok(received) => return Some(received),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                    // What ICMP said of an earlier datagram.
                    Err(_) => {}
                }
            };
            let received = next(&self.v4, bytes);
            let (len, from) =
                received.or_else(|| self.v6.as_ref().and_then(|socket| next(socket, bytes)))?;
            let from = SocketAddr::new(from.ip(), from.port());
            if self.known().targets.contains_key(&from) {
                return Some((len, from));
            }
            tunnels().dropped("unasked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_and_the_oldest_goes() {
        let mut known = Known::default();
        let began = Instant::now();
        let at = |n: usize| began + Duration::from_millis(n as u64);
        let target = |n: usize| SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 53));
        for n in 0..MAX_REMEMBERED + 10 {
            known.sent_to(target(n), at(n));
            known.sent_to(target(0), at(n));
            known.learn(n.to_string(), vec![target(n).ip()], at(n));
        }
        assert_eq!(known.targets.len(), MAX_REMEMBERED);
        assert_eq!(known.names.len(), MAX_NAMES);
        assert!(known.targets.contains_key(&target(0)), "it was used again");
        assert!(!known.targets.contains_key(&target(1)));
        let last = (MAX_REMEMBERED + 9).to_string();
        assert!(known.addresses(&last, at(2000)).is_some());
        assert!(known.addresses(&last, at(2000) + NAME_LIFETIME).is_none());
    }
}
