//! The side that connects.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tack::secure::{Identity, PublicKey, SecureStream};
use tack_pairing::meeting::{Connecting, Credential, How, Intent, Met, Refusal};
use tack_pairing::{Code, leads, short};

use super::acquaintance::acquaintance;
use super::carry::{self, Answer, MeetingError};
use super::dial::{Dial, DialError};
use super::link::Link;
use super::target::Target;
use super::{CODE_PORT, channel, used_codes};
use crate::address::{Address, Family, Reach};
use crate::discovery::Finder;
use crate::exit::Failure;
use crate::identity::Own;
use crate::peers::{Book, PeerName};
use crate::state::StateDir;

/// Between attempts while the other side is not there yet.
const PAUSE: Duration = Duration::from_millis(500);

/// Whom to meet, as whom, and how patiently.
pub(crate) struct Approach<'a> {
    pub(crate) target: &'a Target,
    pub(crate) intent: Intent,
    pub(crate) own: &'a Own,
    pub(crate) state: &'a StateDir,
    pub(crate) dial: Dial,
    /// The UDP port of addresses that name none.
    pub(crate) udp_port: u16,
    pub(crate) family: Family,
    /// How long a connection may take.
    pub(crate) patience: Duration,
    /// How long to wait for a side that does not listen yet.
    pub(crate) wait: Duration,
    /// The name to keep the peer under.
    pub(crate) remember: Option<&'a PeerName>,
}

/// Why an attempt failed.
enum Attempt {
    /// Nobody is there yet: another attempt may go well.
    Unreachable(String),
    /// Another attempt would end alike.
    Final(Failure),
}

/// Meets the target.
pub(crate) async fn reach(approach: &Approach<'_>) -> Result<(Link, Box<Met>), Failure> {
    let began = Instant::now();
    let mut is_waiting = false;
    loop {
        let unreachable = match approach.attempt().await {
            Ok((link, met)) => {
                if let (Target::Code(code, _), How::Code) = (approach.target, met.how) {
                    used_codes::note(approach.state, code, &met.peer, link.peer_addr())?;
                }
                let address = Address::of(link.peer_addr(), approach.udp_port);
                acquaintance(approach.state, &met, approach.remember, Some(address))?;
                return Ok((link, met));
            }
            Err(Attempt::Final(failure)) => return Err(failure),
            Err(Attempt::Unreachable(words)) => words,
        };
        let left = approach.wait.saturating_sub(began.elapsed());
        // The search of the local network has waited already.
        if left.is_zero() || matches!(approach.target, Target::Code(_, None)) {
            return Err(Failure::network(unreachable));
        }
        if !is_waiting {
            is_waiting = true;
            eprintln!("tack: {unreachable}; waiting for it, {} s", left.as_secs());
        }
        tokio::time::sleep(PAUSE.min(left)).await;
    }
}

impl Approach<'_> {
    async fn attempt(&self) -> Result<(Link, Box<Met>), Attempt> {
        // The same command again: what it began is gone on with. Where that is complete, or
        // somebody else shows the same code by now, the code decides.
        if let Target::Code(code, _) = self.target
            && let Some((key, address)) = used_codes::find(self.state, code)
            && let Ok(again) = self.again(key, address).await
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
                    return Err(Attempt::Final(Failure::usage(words)));
                }
                let credential = Credential::Ticket(ticket.clone());
                self.each(&addresses, async |address, share| {
                    let stream = self.known(address, ticket.issuer, share).await?;
                    self.meet(stream, &credential).await
                })
                .await
            }
            Target::Code(code, Some(at)) => {
                let addresses = self.resolve(at).await?;
                self.with_code(code, &addresses).await
            }
            Target::Code(code, None) => self.search(code).await,
            Target::Name(name) => {
                let book = Book::load(self.state).map_err(Attempt::Final)?;
                let peer = book.by_name(name);
                let peer = peer.map_err(|refused| Attempt::Final(refused.failure()))?;
                if peer.addresses.is_empty() {
                    return Err(Attempt::Final(Failure::usage(format!(
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
            Target::Met(key, address) => self.again(*key, *address).await,
            Target::Address(address) => {
                let addresses = self.resolve(address).await?;
                self.by_key(&addresses, None).await
            }
        }
    }

    /// Meets a side that was met before, with our key alone.
    async fn again(
        &self,
        key: PublicKey,
        address: SocketAddr,
    ) -> Result<(Link, Box<Met>), Attempt> {
        self.each(&[address], async |address, share| {
            let stream = self.known(address, key, share).await?;
            self.meet(stream, &Credential::Known(vec![key])).await
        })
        .await
    }

    async fn resolve(&self, address: &Address) -> Result<Vec<SocketAddr>, Attempt> {
        let resolved = address.resolve(self.udp_port, Reach::Anywhere, self.family);
        let mut addresses = resolved.await.map_err(Attempt::Final)?;
        if let Some(from) = self.dial.from {
            addresses.retain(|address| address.is_ipv4() == from.is_ipv4());
        }
        if addresses.is_empty() {
            return Err(Attempt::Final(Failure::usage(format!(
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
        attempt: impl AsyncFn(SocketAddr, Duration) -> Result<(Link, Box<Met>), Attempt>,
    ) -> Result<(Link, Box<Met>), Attempt> {
        let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let share = self.patience / count;
        let mut last = "the target has no address that can be reached from here".to_owned();
        for address in addresses {
            match attempt(*address, share).await {
                Err(Attempt::Unreachable(words)) => {
                    last = format!("cannot connect to {address}: {words}");
                }
                done => return done,
            }
        }
        Err(Attempt::Unreachable(last))
    }

    /// A stream to whoever has this key, as ourselves.
    async fn known(
        &self,
        address: SocketAddr,
        key: PublicKey,
        share: Duration,
    ) -> Result<SecureStream, Attempt> {
        let own = self.own.identity.clone();
        let dialed = self
            .dial
            .connect(address, self.dial.tcp_port, own, Some(key), share);
        dialed.await.map_err(|error| match error {
            DialError::Other(words) => Attempt::Unreachable(words),
            DialError::WrongKey { presented } => Attempt::Unreachable(format!(
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
    ) -> Result<(Link, Box<Met>), Attempt> {
        let lost = |error: MeetingError| match error {
            // The waiting side may judge only after its handshake is complete.
            MeetingError::Lost(_) | MeetingError::Silent => Attempt::Unreachable(error.to_string()),
            MeetingError::Failed(failed) => Attempt::Final(Failure::plain(failed)),
        };
        let channel = channel(&stream).map_err(|error| Attempt::Unreachable(error.to_string()))?;
        let own = self.own.identity.clone();
        let rotations = self.own.rotations.clone();
        let begun = Connecting::begin(channel, self.intent, credential, own, rotations)
            .map_err(|failed| Attempt::Final(Failure::plain(failed)))?;
        match carry::connect(&mut stream, begun).await.map_err(lost)? {
            Answer::Met(met) => Ok((Link::Secure(Box::new(stream), met.peer), met)),
            Answer::Rotations(_) => Err(Attempt::Final(Failure::plain(
                "the other side sent an unexpected answer",
            ))),
        }
    }

    async fn with_code(
        &self,
        code: &Code,
        addresses: &[SocketAddr],
    ) -> Result<(Link, Box<Met>), Attempt> {
        let credential = Credential::Code(code.clone());
        self.each(addresses, async |address, share| {
            // A key for this stream only: who answers is not known yet.
            let stream = self.stranger(address, CODE_PORT, None, share).await?;
            self.meet(stream, &credential).await
        })
        .await
    }

    /// A stream as nobody in particular.
    async fn stranger(
        &self,
        address: SocketAddr,
        tcp_port: u16,
        expected: Option<PublicKey>,
        share: Duration,
    ) -> Result<SecureStream, Attempt> {
        let ephemeral = Identity::generate()
            .map_err(|error| Attempt::Final(Failure::failed("cannot make a key", error)))?;
        let dialed = self
            .dial
            .connect(address, tcp_port, ephemeral, expected, share);
        dialed.await.map_err(|error| match error {
            DialError::Other(words) => Attempt::Unreachable(words),
            DialError::WrongKey { .. } => {
                Attempt::Unreachable("its key changed between two connections".into())
            }
        })
    }

    /// Looks for the code on the local network; each instance is tried once.
    async fn search(&self, code: &Code) -> Result<(Link, Box<Met>), Attempt> {
        let patience = if self.wait.is_zero() {
            self.patience
        } else {
            self.wait
        };
        let mut finder = Finder::new(code.number(), patience).map_err(|error| {
            Attempt::Unreachable(format!(
                "the local network cannot be searched: {error}; give the other side's address and --code"
            ))
        })?;
        eprintln!("tack: looking for code {}-… on this network", code.number());
        loop {
            let addresses = match finder.next().await {
                Ok(addresses) => addresses,
                Err(not_found) => return Err(Attempt::Unreachable(not_found.to_string())),
            };
            match self.with_code(code, &addresses).await {
                // Another instance may have the code, as long as ours was not shown to a wrong one.
                Err(Attempt::Unreachable(words)) => eprintln!("tack: {words}; looking on"),
                done => return done,
            }
        }
    }

    /// Meets a side that knows our key, and whose key we know.
    async fn by_key(
        &self,
        addresses: &[SocketAddr],
        named: Option<(PeerName, PublicKey)>,
    ) -> Result<(Link, Box<Met>), Attempt> {
        self.each(addresses, async |address, share| {
            let known = match &named {
                Some((_, key)) => *key,
                None => self.acquainted(address, share).await?,
            };
            let own = self.own.identity.clone();
            let dialed = self
                .dial
                .connect(address, self.dial.tcp_port, own, Some(known), share);
            let (stream, expected) = match dialed.await {
                Ok(stream) => (stream, known),
                Err(DialError::Other(words)) => return Err(Attempt::Unreachable(words)),
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

    /// The key at this address, if it is one of a peer.
    async fn acquainted(&self, address: SocketAddr, share: Duration) -> Result<PublicKey, Attempt> {
        // Shows no key of ours to somebody who may be a stranger.
        let stream = self
            .stranger(address, self.dial.tcp_port, None, share)
            .await?;
        let key = stream.peer_key();
        drop(stream);
        let book = Book::load(self.state).map_err(Attempt::Final)?;
        if book.by_key(&key).is_some() {
            return Ok(key);
        }
        Err(Attempt::Final(Failure::plain(format!(
            "the installation at {address} is not known here; its key is {key}, short form {}. Use the ticket or the code that it \
             shows, or compare this with what `tack id` prints there and add it: tack peers add NAME: {key}",
            short(&key)
        ))))
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
    ) -> Result<(), Attempt> {
        let mut stream = self
            .stranger(address, self.dial.tcp_port, Some(presented), share)
            .await?;
        let channel = channel(&stream).map_err(|error| Attempt::Unreachable(error.to_string()))?;
        let answer = carry::connect(&mut stream, Connecting::ask(channel, known)).await;
        match answer {
            Ok(Answer::Rotations(rotations)) if leads(&known, &presented, &rotations) => {
                Book::change(self.state, |book| Ok(book.follow(&presented, &rotations)))
                    .map_err(Attempt::Final)?;
                return Ok(());
            }
            Err(error) if error.refusal().is_none_or(|why| why == Refusal::Stopping) => {
                return Err(Attempt::Unreachable(error.to_string()));
            }
            _ => {}
        }
        let name = named.map_or_else(|| address.to_string(), |(name, _)| name.to_string());
        Err(Attempt::Final(Failure::plain(format!(
            "{name} has another key than the one that is known, {} instead of {}, and the old key did not sign the new one. Either it \
             was set up anew, or somebody on the path impersonates it: nothing was sent. Compare with what `tack id` prints there; if \
             that is {0}, `tack peers remove {name}` and add it again",
            short(&presented),
            short(&known)
        ))))
    }
}
