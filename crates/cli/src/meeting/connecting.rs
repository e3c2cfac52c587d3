//! The side that connects.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tack::Endpoint;
use tack::secure::{Identity, PublicKey, SecureStream};
use tack_pairing::meeting::{Authenticated, Connecting, Credential, Intent, ProofMethod, Refusal};
use tack_pairing::{Code, leads, short};
use tokio::io::AsyncWriteExt;

use super::dial::{Dial, DialError};
use super::exchange::{self, Answer, MeetingError};
use super::known::{Keep, update_known_peers};
use super::peer_stream::PeerStream;
use super::target::Target;
use super::{CODE_PORT, channel, used_codes};
use crate::address::{Address, Family, Reach};
use crate::discovery::{Finder, Mark};
use crate::exit::Failure;
use crate::identity::OwnIdentity;
use crate::peers::{Book, Peer, PeerName};
use crate::state::StateDir;
use crate::volume::Volume;

/// What is said of an address whose system answers that nobody listens.
const CLOSED: &str = "connection refused: no program listens on this port";
/// Pause between attempts while the other side does not listen yet.
const PAUSE: Duration = Duration::from_millis(500);

/// How long the local network is searched for a peer that was met before: one that waits answers at
/// once.
const SEARCH_AGAIN: Duration = Duration::from_secs(3);
/// How long the addresses that are known may take to answer before that search begins.
const HEAD_START: Duration = Duration::from_secs(1);

/// The target of a meeting, the own identity, and limits of time.
pub(crate) struct ConnectOptions<'a> {
    pub(crate) target: &'a Target,
    /// The peer that was met there before in this run, and its last address.
    pub(crate) met: Option<(PublicKey, SocketAddr)>,
    pub(crate) intent: Intent,
    pub(crate) own: &'a OwnIdentity,
    pub(crate) state: &'a StateDir,
    pub(crate) dial: Dial,
    /// The UDP port of addresses that name none.
    pub(crate) udp_port: u16,
    pub(crate) family: Family,
    /// Time limit of an attempt to connect.
    pub(crate) connect_timeout: Duration,
    /// How long to wait for a side that does not listen yet.
    pub(crate) wait: Duration,
    /// The name under which the peer is stored (`--remember`).
    pub(crate) remember: Option<&'a PeerName>,
    pub(crate) volume: Volume,
}

/// Why an attempt failed.
enum AttemptError {
    /// No answer yet: another attempt may succeed.
    Unreachable(String),
    /// As before, and the system there answers that no program listens.
    Closed(String),
    /// Somebody else answers at this address: another address may be right, another attempt is not.
    Wrong(String),
    /// Another attempt would fail in the same way.
    Final(Failure),
}

/// Connects to the target and authenticates both sides.
pub(crate) async fn reach(
    options: &ConnectOptions<'_>,
) -> Result<(PeerStream, Box<Authenticated>), Failure> {
    let began = Instant::now();
    let mut is_waiting = false;
    let builder = Endpoint::builder().identity(options.own.identity.clone());
    options.dial.carrier.open(builder)?;
    loop {
        let unreachable = match options.attempt().await {
            Ok((link, met)) => {
                let is_elsewhere = options
                    .met
                    .is_some_and(|(_, last)| last != link.peer_addr());
                if let Target::Code(code, _) = options.target
                    && (matches!(met.how, ProofMethod::Code) || is_elsewhere)
                {
                    used_codes::note(options.state, code, &met.peer, link.peer_addr())?;
                }
                // Behind a TUN device the port is that of TCP, and every service has its own.
                let address = match link.endpoint().device() {
                    Some(_) => Address::from(link.peer_addr().ip()),
                    None => Address::of(link.peer_addr(), options.udp_port),
                };
                // A known peer is found there the next time.
                let name = match options.target {
                    Target::Name(name) if is_elsewhere => Some(name),
                    _ => None,
                };
                let keep = Keep {
                    name: options.remember.or(name),
                    volume: options.volume,
                    was_reached: true,
                };
                update_known_peers(options.state, &met, keep, Some(address))?;
                return Ok((link, met));
            }
            Err(AttemptError::Final(failure)) => return Err(failure),
            Err(AttemptError::Wrong(words)) => return Err(Failure::network(words)),
            Err(AttemptError::Unreachable(words)) => Failure::network(words),
            Err(AttemptError::Closed(words)) => Failure::closed_port(words),
        };
        let left = options.wait.saturating_sub(began.elapsed());
        // The search of the local network has waited already.
        if left.is_zero() || matches!(options.target, Target::Code(_, None)) {
            return Err(unreachable);
        }
        if !is_waiting {
            is_waiting = true;
            options.say(&format!(
                "{unreachable}; waiting for it, {} s",
                left.as_secs()
            ));
        }
        tokio::time::sleep(PAUSE.min(left)).await;
    }
}

impl ConnectOptions<'_> {
    fn say(&self, words: &str) {
        if self.volume != Volume::Quiet {
            eprintln!("tack: {words}");
        }
    }

    async fn attempt(&self) -> Result<(PeerStream, Box<Authenticated>), AttemptError> {
        if let Some((key, last)) = self.met {
            return self.find_again(key, last).await;
        }
        // The same command again: what it began is gone on with. Where that is complete, or
        // somebody else shows the same code by now, the code decides.
        if let Target::Code(code, _) = self.target
            && let Some((key, last)) = used_codes::find(self.state, code)
            && let Ok(again) = self.find_again(key, last).await
        {
            return Ok(again);
        }
        match self.target {
            Target::Ticket(ticket, at) => {
                let addresses = match at {
                    Some(at) => self.resolve(at).await?,
                    None => ticket.addresses().to_vec(),
                };
                if addresses.is_empty() {
                    let words = "the ticket names no address; give the other side's address, too";
                    return Err(AttemptError::Final(Failure::usage(words)));
                }
                let credential = Credential::Ticket(ticket.clone());
                self.each_known(&addresses, ticket.issuer, &credential)
                    .await
            }
            Target::Code(code, Some(at)) => {
                let addresses = self.resolve(at).await?;
                self.with_code(code, &addresses).await
            }
            Target::Code(code, None) => self.search(code).await,
            Target::Name(name) => {
                let book = Book::load(self.state).map_err(AttemptError::Final)?;
                let peer = book.by_name(name);
                let peer = peer.map_err(|refused| AttemptError::Final(refused.failure()))?;
                if peer.addresses.is_empty() {
                    return Err(AttemptError::Final(Failure::usage(format!(
                        "no address is known for {name}; give its address as the target: its key is known, so nothing else is needed"
                    ))));
                }
                let mut addresses = Vec::new();
                for address in &peer.addresses {
                    // Another of them may be right.
                    addresses.extend(self.resolve(address).await.unwrap_or_default());
                }
                self.by_key(&addresses, Some((name.clone(), peer.key)))
                    .await
            }
            Target::Authenticated(key, address) => {
                let credential = Credential::Known(vec![*key]);
                self.each_known(&[*address], *key, &credential).await
            }
            Target::Address(address) => {
                let addresses = self.resolve(address).await?;
                self.by_key(&addresses, None).await
            }
        }
    }

    /// Meets the peer that was met before: where it was last, where the target leads now, or
    /// wherever on the local network it says that it is.
    async fn find_again(
        &self,
        key: PublicKey,
        last: SocketAddr,
    ) -> Result<(PeerStream, Box<Authenticated>), AttemptError> {
        let resolved = async |at: &Address| self.resolve(at).await.unwrap_or_default();
        let mut credential = Credential::Known(vec![key]);
        let mut named = None;
        let mut more = Vec::new();
        match self.target {
            Target::Ticket(ticket, at) => {
                credential = Credential::Ticket(ticket.clone());
                match at {
                    Some(at) => more.extend(resolved(at).await),
                    None => more.extend(ticket.addresses()),
                }
            }
            Target::Code(_, Some(at)) | Target::Address(at) => more.extend(resolved(at).await),
            Target::Name(name) => {
                // Read anew: its user may have given it another address.
                let book = Book::load(self.state).map_err(AttemptError::Final)?;
                let peer = book.by_name(name);
                let peer = peer.map_err(|refused| AttemptError::Final(refused.failure()))?;
                for address in &peer.addresses {
                    more.extend(resolved(address).await);
                }
                named = Some((name.clone(), peer.key));
            }
            Target::Code(_, None) | Target::Authenticated(..) => {}
        }
        let mut addresses = vec![last];
        for address in more {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        let direct = async {
            match named {
                Some(_) => self.by_key(&addresses, named).await,
                None => self.each_known(&addresses, key, &credential).await,
            }
        };
        let search = async {
            tokio::time::sleep(HEAD_START).await;
            // Whoever has our peer's key can announce addresses that do not answer.
            let search = self.search_again(key, &credential);
            let found = tokio::time::timeout(self.connect_timeout, search).await;
            found.ok().flatten()
        };
        let (mut direct, mut search) = (std::pin::pin!(direct), std::pin::pin!(search));
        let mut failed = None;
        // Nothing is announced on loopback, and behind a TUN device.
        let mut is_searched = last.ip().to_canonical().is_loopback() || self.dial.carrier.is_tun();
        loop {
            tokio::select! {
                reached = &mut direct, if failed.is_none() => match reached {
                    Ok(_) | Err(AttemptError::Final(_)) => return reached,
                    Err(error) => failed = Some(error),
                },
                found = &mut search, if !is_searched => match found {
                    Some(found) => return Ok(found),
                    None => is_searched = true,
                },
            }
            if is_searched && let Some(error) = failed {
                return Err(error);
            }
        }
    }

    /// Meets the owner of `key` at one of these addresses.
    async fn each_known(
        &self,
        addresses: &[SocketAddr],
        key: PublicKey,
        credential: &Credential,
    ) -> Result<(PeerStream, Box<Authenticated>), AttemptError> {
        self.each(addresses, async |address, share| {
            let stream = self.known(address, key, share).await?;
            self.meet(stream, credential).await
        })
        .await
    }

    /// Looks for the owner of `key` on the local network.
    async fn search_again(
        &self,
        key: PublicKey,
        credential: &Credential,
    ) -> Option<(PeerStream, Box<Authenticated>)> {
        let mut finder = Finder::new(Mark::Key(key), SEARCH_AGAIN).ok()?;
        while let Ok(addresses) = finder.next().await {
            if let Ok(found) = self.each_known(&addresses, key, credential).await {
                return Some(found);
            }
        }
        None
    }

    async fn resolve(&self, address: &Address) -> Result<Vec<SocketAddr>, AttemptError> {
        let resolved = address.resolve(self.udp_port, Reach::Anywhere, self.family);
        let mut addresses = resolved.await.map_err(AttemptError::Final)?;
        if let Some(from) = self.dial.from {
            addresses.retain(|address| address.is_ipv4() == from.is_ipv4());
        }
        if addresses.is_empty() {
            return Err(AttemptError::Final(Failure::usage(format!(
                "{address} has no address of the same family (IPv4 or IPv6) as the local address"
            ))));
        }
        Ok(addresses)
    }

    /// Tries one address after the other, with its share of the patience, until one is not
    /// unreachable.
    async fn each(
        &self,
        addresses: &[SocketAddr],
        attempt: impl AsyncFn(
            SocketAddr,
            Duration,
        ) -> Result<(PeerStream, Box<Authenticated>), AttemptError>,
    ) -> Result<(PeerStream, Box<Authenticated>), AttemptError> {
        let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let share = self.connect_timeout / count;
        let mut last = "the target has no address that can be reached from here".to_owned();
        let (mut wrong, mut closed) = (0, 0);
        for address in addresses {
            let words = match attempt(*address, share).await {
                Err(AttemptError::Unreachable(words)) => words,
                Err(AttemptError::Closed(words)) => {
                    closed += 1;
                    words
                }
                Err(AttemptError::Wrong(words)) => {
                    wrong += 1;
                    words
                }
                done => return done,
            };
            last = format!("cannot connect to {address}: {words}");
        }
        Err(match addresses.len() {
            0 => AttemptError::Unreachable(last),
            all if wrong == all => AttemptError::Wrong(last),
            all if closed == all => AttemptError::Closed(last),
            _ => AttemptError::Unreachable(last),
        })
    }

    /// Opens a stream with the long-term key to the owner of `key`.
    async fn known(
        &self,
        address: SocketAddr,
        key: PublicKey,
        share: Duration,
    ) -> Result<SecureStream, AttemptError> {
        let own = self.own.identity.clone();
        let dialed = self
            .dial
            .connect(address, self.dial.tcp_port, own, Some(key), share);
        dialed.await.map_err(|error| match error {
            DialError::Closed => AttemptError::Closed(CLOSED.into()),
            DialError::Other(words) => AttemptError::Unreachable(words),
            DialError::WrongService(words) => AttemptError::Wrong(words),
            DialError::WrongKey { presented } => AttemptError::Wrong(format!(
                "expected key {}, got {}: another installation uses this address now, or somebody on the path impersonates the peer",
                short(&key),
                short(&presented)
            )),
        })
    }

    async fn meet(
        &self,
        mut stream: SecureStream,
        credential: &Credential,
    ) -> Result<(PeerStream, Box<Authenticated>), AttemptError> {
        let lost = |error: MeetingError| match error {
            // The waiting side may judge only after its handshake is complete.
            MeetingError::Lost(_) | MeetingError::Silent => {
                AttemptError::Unreachable(error.to_string())
            }
            // Another attempt would permit another guess.
            MeetingError::Unproven(_) => AttemptError::Final(Failure::plain(error)),
            MeetingError::Failed(failed) if failed.refusal() == Refusal::Busy => {
                AttemptError::Final(Failure::busy(failed))
            }
            MeetingError::Failed(failed) => AttemptError::Final(Failure::plain(failed)),
        };
        let channel =
            channel(&stream).map_err(|error| AttemptError::Unreachable(error.to_string()))?;
        let own = self.own.identity.clone();
        let rotations = self.own.rotations.clone();
        let begun = Connecting::begin(channel, self.intent, credential, own, rotations)
            .map_err(|failed| AttemptError::Final(Failure::plain(failed)))?;
        match exchange::connect(&mut stream, begun).await.map_err(lost)? {
            Answer::Authenticated(met) => {
                Ok((PeerStream::Secure(Box::new(stream), met.peer.into()), met))
            }
            Answer::Rotations(_) => Err(AttemptError::Final(Failure::plain(
                "the other side sent an unexpected answer",
            ))),
        }
    }

    async fn with_code(
        &self,
        code: &Code,
        addresses: &[SocketAddr],
    ) -> Result<(PeerStream, Box<Authenticated>), AttemptError> {
        let credential = Credential::Code(code.clone());
        self.each(addresses, async |address, share| {
            // A key for this stream only: who answers is not known yet.
            let stream = self
                .dial_with_new_key(address, CODE_PORT, None, share)
                .await?;
            self.meet(stream, &credential).await
        })
        .await
    }

    /// Opens a stream with a key that was made for it alone.
    async fn dial_with_new_key(
        &self,
        address: SocketAddr,
        tcp_port: u16,
        expected: Option<PublicKey>,
        share: Duration,
    ) -> Result<SecureStream, AttemptError> {
        let ephemeral = Identity::generate()
            .map_err(|error| AttemptError::Final(Failure::failed("cannot make a key", error)))?;
        let dialed = self
            .dial
            .connect(address, tcp_port, ephemeral, expected, share);
        dialed.await.map_err(|error| match error {
            DialError::Closed => AttemptError::Closed(CLOSED.into()),
            DialError::Other(words) => AttemptError::Unreachable(words),
            DialError::WrongService(words) => AttemptError::Wrong(words),
            DialError::WrongKey { .. } => {
                AttemptError::Unreachable("its key changed between two connections".into())
            }
        })
    }

    /// Looks for the code on the local network; each instance is tried once.
    async fn search(&self, code: &Code) -> Result<(PeerStream, Box<Authenticated>), AttemptError> {
        let connect_timeout = if self.wait.is_zero() {
            self.connect_timeout
        } else {
            self.wait
        };
        let mut finder = Finder::new(Mark::Number(code.number()), connect_timeout).map_err(|error| {
            AttemptError::Unreachable(format!(
                "the local network cannot be searched: {error}; give the other side's address and --code"
            ))
        })?;
        self.say(&format!(
            "looking for code {}-… on this network",
            code.number()
        ));
        loop {
            let addresses = match finder.next().await {
                Ok(addresses) => addresses,
                Err(not_found) => return Err(AttemptError::Unreachable(not_found.to_string())),
            };
            match self.with_code(code, &addresses).await {
                // Another instance may have the code. One that got our proof of it is the last one.
                Err(
                    AttemptError::Unreachable(words)
                    | AttemptError::Closed(words)
                    | AttemptError::Wrong(words),
                ) => {
                    self.say(&format!("{words}; looking on"));
                }
                done => return done,
            }
        }
    }

    /// Meets a side that knows our key, and whose key we know.
    async fn by_key(
        &self,
        addresses: &[SocketAddr],
        named: Option<(PeerName, PublicKey)>,
    ) -> Result<(PeerStream, Box<Authenticated>), AttemptError> {
        self.each(addresses, async |address, share| {
            let known = match &named {
                Some((_, key)) => *key,
                None => self.known_at(address, share).await?,
            };
            let own = self.own.identity.clone();
            let dialed = self
                .dial
                .connect(address, self.dial.tcp_port, own, Some(known), share);
            let (stream, expected) = match dialed.await {
                Ok(stream) => (stream, known),
                Err(DialError::Closed) => return Err(AttemptError::Closed(CLOSED.into())),
                Err(DialError::Other(words)) => return Err(AttemptError::Unreachable(words)),
                Err(DialError::WrongService(words)) => return Err(AttemptError::Wrong(words)),
                Err(DialError::WrongKey { presented }) => {
                    self.successor(address, known, presented, named.as_ref(), share)
                        .await?;
                    (self.known(address, presented, share).await?, presented)
                }
            };
            self.meet(stream, &Credential::Known(vec![expected])).await
        })
        .await
    }

    /// The key that is presented at this address, if it is that of a known peer or follows from it.
    async fn known_at(
        &self,
        address: SocketAddr,
        share: Duration,
    ) -> Result<PublicKey, AttemptError> {
        // Shows no key of ours to somebody who may be a stranger.
        let mut stream = self
            .dial_with_new_key(address, self.dial.tcp_port, None, share)
            .await?;
        let key = stream.peer_key();
        // In order, so that the other side does not take it for somebody who was cut off.
        let _ = stream.shutdown().await;
        drop(stream);
        let book = Book::load(self.state).map_err(AttemptError::Final)?;
        if book.by_key(&key).is_some() {
            return Ok(key);
        }
        // Peers that were here may have another key now.
        let mut here = vec![
            Address::of(address, self.udp_port),
            Address::from(address.ip()).at(address.port()),
        ];
        if let Target::Address(typed) = self.target {
            here.push(typed.clone());
        }
        let is_here = |peer: &&Peer| peer.addresses.iter().any(|known| here.contains(known));
        let mut changed = None;
        for peer in book.peers().iter().filter(is_here) {
            let named = (peer.name.clone(), peer.key);
            let followed = self.successor(address, peer.key, key, Some(&named), share);
            match followed.await {
                Ok(()) => return Ok(key),
                Err(AttemptError::Final(words)) => changed = Some(words),
                Err(error) => return Err(error),
            }
        }
        Err(AttemptError::Final(changed.unwrap_or_else(|| {
            Failure::plain(format!(
                "the installation at {address} is not known here; its key is {key}, short form {}. Use the ticket or the code that it \
                 shows, or compare this with what `tack id` prints there and add it: tack peers add NAME: {key}",
                short(&key)
            ))
        })))
    }

    /// Has the other side prove that its old key signed the one that it shows now, and keeps the
    /// new one.
    async fn successor(
        &self,
        address: SocketAddr,
        known: PublicKey,
        presented: PublicKey,
        named: Option<&(PeerName, PublicKey)>,
        share: Duration,
    ) -> Result<(), AttemptError> {
        let mut stream = self
            .dial_with_new_key(address, self.dial.tcp_port, Some(presented), share)
            .await?;
        let channel =
            channel(&stream).map_err(|error| AttemptError::Unreachable(error.to_string()))?;
        let answer = exchange::connect(&mut stream, Connecting::ask(channel, known)).await;
        match answer {
            Ok(Answer::Rotations(rotations)) if leads(&known, &presented, &rotations) => {
                Book::change(self.state, |book| Ok(book.follow(&presented, &rotations)))
                    .map_err(AttemptError::Final)?;
                return Ok(());
            }
            Err(error) if error.refusal().is_none_or(|why| why == Refusal::Stopping) => {
                return Err(AttemptError::Unreachable(error.to_string()));
            }
            _ => {}
        }
        let name = named.map_or_else(|| address.to_string(), |(name, _)| name.to_string());
        Err(AttemptError::Final(Failure::plain(format!(
            "{name} has another key than the one that is known, {} instead of {}, and the old key did not sign the new one. Either it \
             was set up anew, or somebody on the path impersonates it: nothing was sent. Compare with what `tack id` prints there; if \
             that is {0}, `tack peers remove {name}` and add it again",
            short(&presented),
            short(&known)
        ))))
    }
}
