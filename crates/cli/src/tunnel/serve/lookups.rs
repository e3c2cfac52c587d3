//! Names that a serving side looks up for its peers. A lookup takes a thread until the system's
//! resolver has answered, however long that takes, so that each peer has few of them at a time.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tack::secure::PublicKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::tunnel::message::Refusal;

/// Lookups of a peer at a time; `tack exec` asks for as many.
const OF_PEER: usize = 16;
/// Lookups of all peers at a time.
pub(crate) const MAX_LOOKUPS: usize = 128;
/// How long a lookup may take, the wait for its turn included. Below the 10 s after which resolvers
/// give up a name server that is silent, and do not say that it was.
const DEADLINE: Duration = Duration::from_secs(9);

type Resolve = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// The lookups that are under way.
pub(super) struct Lookups {
    of_peers: Mutex<BTreeMap<[u8; 32], Weak<Semaphore>>>,
    total: Arc<Semaphore>,
    deadline: Duration,
    resolve: Arc<Resolve>,
}

impl fmt::Debug for Lookups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookups").finish_non_exhaustive()
    }
}

impl Default for Lookups {
    fn default() -> Self {
        Self::new(DEADLINE, |name| Ok((name, 0).to_socket_addrs()?.collect()))
    }
}

/// Turns of a lookup; they are taken until the resolver has answered, whoever waits for it.
type Turns = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Lookups {
    fn new(
        deadline: Duration,
        resolve: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            of_peers: Mutex::default(),
            total: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            deadline,
            resolve: Arc::new(resolve),
        }
    }

    /// The turns of a peer. They live as long as one of its lookups does: a peer that comes again
    /// has no more of them.
    fn of_peer(&self, key: &PublicKey) -> Arc<Semaphore> {
        let mut of_peers = self.of_peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = of_peers.get(key.as_bytes()).and_then(Weak::upgrade) {
            return turns;
        }
        of_peers.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(OF_PEER));
        of_peers.insert(*key.as_bytes(), Arc::downgrade(&turns));
        turns
    }

    /// The addresses of `name` with port 0, for the peer with this key.
    ///
    /// # Errors
    /// [`Refusal::NoSuchHost`], [`Refusal::LookupFailed`].
    pub(super) async fn addresses(
        &self,
        peer: &PublicKey,
        name: &str,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let looking = async {
            let closed = |_| Refusal::Failed;
            let own = self.of_peer(peer).acquire_owned().await.map_err(closed)?;
            let total = Arc::clone(&self.total).acquire_owned();
            let turns = (own, total.await.map_err(closed)?);
            self.look_up(turns, name).await
        };
        timeout(self.deadline, looking)
            .await
            .unwrap_or(Err(Refusal::LookupFailed))
    }

    /// As [`Lookups::addresses`], if it is the peer's turn now: what waits for the addresses is a
    /// datagram, which may be lost.
    ///
    /// # Errors
    /// Those of `addresses`, and [`Refusal::Busy`].
    pub(super) async fn addresses_now(
        &self,
        peer: &PublicKey,
        name: &str,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let busy = |_| Refusal::Busy;
        let own = self.of_peer(peer).try_acquire_owned().map_err(busy)?;
        let total = Arc::clone(&self.total).try_acquire_owned();
        let turns = (own, total.map_err(busy)?);
        timeout(self.deadline, self.look_up(turns, name))
            .await
            .unwrap_or(Err(Refusal::LookupFailed))
    }

    async fn look_up(&self, turns: Turns, name: &str) -> Result<Vec<SocketAddr>, Refusal> {
        let (resolve, name) = (Arc::clone(&self.resolve), name.to_owned());
        let looking = tokio::task::spawn_blocking(move || {
            let found = resolve(&name);
            drop(turns);
            found
        });
        match looking.await {
            Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
            Ok(Err(error)) if is_temporary(&error) => Err(Refusal::LookupFailed),
            Ok(_) => Err(Refusal::NoSuchHost),
            Err(_) => Err(Refusal::Failed),
        }
    }
}

/// True for the error EAI_AGAIN of getaddrinfo(3): a name server did not answer, or failed. The
/// standard library keeps only its words, those of glibc and of musl.
fn is_temporary(error: &io::Error) -> bool {
    let words = error.to_string();
    words.contains("Temporary failure") || words.contains("Try again")
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    use super::*;

    const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8)), 0);

    fn key() -> PublicKey {
        tack::secure::Identity::generate().unwrap().public_key()
    }

    /// With a resolver that answers some names, and the others only when the test ends. In virtual
    /// time, which stands while a thread looks a name up.
    #[tokio::test(start_paused = true)]
    async fn slow_names_of_a_peer_do_not_hold_up_those_of_another() {
        let (end, ended) = channel::<()>();
        let ended = Mutex::new(ended);
        let asked = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&asked);
        let lookups = Arc::new(Lookups::new(DEADLINE, move |name| {
            if name == "slow" {
                counting.fetch_add(1, Ordering::Relaxed);
                let _ = ended.lock().unwrap().recv();
            }
            match name {
                "nowhere" => Err(io::Error::other("no address")),
                _ => Ok(vec![ADDRESS]),
            }
        }));
        let (hostile, other) = (key(), key());
        let begin = |name| {
            let lookups = Arc::clone(&lookups);
            tokio::spawn(async move { lookups.addresses(&hostile, name).await })
        };
        let mut slow: Vec<_> = (0..10 * OF_PEER).map(|_| begin("slow")).collect();
        while asked.load(Ordering::Relaxed) < OF_PEER {
            tokio::task::yield_now().await;
        }
        let found = lookups.addresses(&other, "fast").await.unwrap();
        assert_eq!(found, [ADDRESS]);
        assert_eq!(lookups.addresses_now(&other, "fast").await.unwrap(), found);
        let nowhere = lookups.addresses(&other, "nowhere").await;
        assert_eq!(nowhere, Err(Refusal::NoSuchHost));
        slow.push(begin("fast"));
        tokio::task::yield_now().await;
        tokio::time::advance(DEADLINE).await;
        for lookup in slow {
            let refused = lookup.await.unwrap();
            assert_eq!(refused, Err(Refusal::LookupFailed), "with its own reason");
        }
        // All have given up waiting, but the resolver is still busy with these.
        let now = lookups.addresses_now(&hostile, "fast").await;
        assert_eq!(now, Err(Refusal::Busy));
        assert_eq!(asked.load(Ordering::Relaxed), OF_PEER);
        drop(end);
        // The turns come back.
        while lookups.addresses_now(&hostile, "fast").await.is_err() {
            tokio::task::yield_now().await;
        }
        assert!(lookups.of_peers.lock().unwrap().len() <= 2);
    }
}
