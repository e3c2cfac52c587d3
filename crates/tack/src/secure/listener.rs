//! Accepting encrypted connections.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use super::config::{Setup, protocol};
use super::error::SecureError;
use super::handshake::{self, Unfinished};
use super::handshake_slots::{HandshakeSlots, Network};
use super::identity::Identity;
use super::key::PublicKey;
use super::limits::HandshakeLimits;
use super::stream::SecureStream;
use super::verify::{RawKeys, Wanted};
use crate::endpoint::Endpoint;
use crate::error::{AcceptError, EndpointClosed, ListenError};
use crate::listen::ListenOptions;
use crate::listener::Listener;
use crate::stream::Stream;

/// The decision about a peer's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Admission {
    /// Admits the peer: `accept` returns the connection.
    Admit,
    /// Refuses the peer: it gets an alert, and the connection ends.
    Refuse,
}

type Authorise = dyn Fn(&PublicKey, SocketAddr) -> Admission + Send + Sync;
type Observe = dyn Fn(SocketAddr, &SecureError) + Send + Sync;

/// Options of a listener for encrypted connections; see [`Endpoint::listen_secure`].
pub struct SecureListenOptions {
    alpn: Vec<u8>,
    authorise: Box<Authorise>,
    observe: Option<Box<Observe>>,
    identity: Option<Identity>,
    limits: HandshakeLimits,
    transport: ListenOptions,
}

impl fmt::Debug for SecureListenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecureListenOptions")
            .field("limits", &self.limits)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

impl SecureListenOptions {
    /// For the one protocol `alpn` (RFC 7301), and peers that `authorise` admits by their key,
    /// which they have proven, and their address. It is asked at the end of the handshake, on the
    /// runtime: it must not block.
    ///
    /// # Panics
    /// If `alpn` has not 1 to 255 bytes.
    pub fn new(
        alpn: &[u8],
        authorise: impl Fn(&PublicKey, SocketAddr) -> Admission + Send + Sync + 'static,
    ) -> Self {
        Self {
            alpn: protocol(alpn),
            authorise: Box::new(authorise),
            observe: None,
            identity: None,
            limits: HandshakeLimits::default(),
            transport: ListenOptions::new(),
        }
    }

    /// The identity that this side proves. Default: that of the endpoint.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Bounds on handshakes. Default: [`HandshakeLimits::default`].
    #[must_use]
    pub fn limits(mut self, limits: HandshakeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Settings of the transport below. Default: [`ListenOptions::new`].
    #[must_use]
    pub fn transport(mut self, transport: ListenOptions) -> Self {
        self.transport = transport;
        self
    }

    /// Tells `observe` of each peer that did not come to be accepted, and why. It must not block.
    #[must_use]
    pub fn on_failure(
        mut self,
        observe: impl Fn(SocketAddr, &SecureError) + Send + Sync + 'static,
    ) -> Self {
        self.observe = Some(Box::new(observe));
        self
    }
}

/// Counters of the handshakes of a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HandshakeStats {
    /// Handshakes that completed with an admitted peer.
    pub completed: u64,
    /// Handshakes that failed, without those in `crowded_out`.
    pub failed: u64,
    /// Handshakes that ended in favour of newer ones, at the limits.
    pub crowded_out: u64,
    /// Handshakes in progress.
    pub under_way: usize,
}

/// Accepts the encrypted connections to one TCP port of an endpoint. Dropping it resets those not
/// yet accepted.
///
/// Handshakes run beside each other in the background, within [`HandshakeLimits`]: a slow or silent
/// peer delays no other.
#[derive(Debug)]
pub struct SecureListener {
    endpoint: Endpoint,
    port: u16,
    ready: AsyncMutex<mpsc::Receiver<(SecureStream, SocketAddr)>>,
    plan: Arc<Plan>,
    task: JoinHandle<()>,
}

impl Endpoint {
    /// Accepts encrypted connections to TCP port `port`.
    ///
    /// # Errors
    /// As [`Endpoint::listen`]; [`ListenError::NoIdentity`] when neither the endpoint nor `options`
    /// have one.
    pub fn listen_secure(
        &self,
        port: u16,
        options: SecureListenOptions,
    ) -> Result<SecureListener, ListenError> {
        let SecureListenOptions {
            alpn,
            authorise,
            observe,
            identity,
            limits,
            transport,
        } = options;
        let identity = identity
            .or_else(|| self.handle.identity.clone())
            .ok_or(ListenError::NoIdentity)?;
        let listener = self.listen_encrypted(port, transport)?;
        let plan = Arc::new(Plan {
            identity,
            alpn,
            authorise,
            observe,
            limits,
            slots: Mutex::new(HandshakeSlots::new(limits.total, limits.per_network)),
            completed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            crowded_out: AtomicU64::new(0),
        });
        let (done, ready) = mpsc::channel(limits.waiting.max(1));
        let task = tokio::spawn(serve(listener, Arc::clone(&plan), done));
        Ok(SecureListener {
            endpoint: self.clone(),
            port,
            ready: AsyncMutex::new(ready),
            plan,
            task,
        })
    }
}

impl SecureListener {
    /// Waits for the next connection whose handshake is complete and whose peer is admitted. Cancel
    /// safe.
    ///
    /// # Errors
    /// [`AcceptError::Endpoint`] once the endpoint shuts down.
    pub async fn accept(&self) -> Result<(SecureStream, SocketAddr), AcceptError> {
        let mut ready = self.ready.lock().await;
        ready.recv().await.ok_or(EndpointClosed.into())
    }

    /// The endpoint this listener belongs to.
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    /// The UDP address that peers connect to; behind a TUN device the address of the host, with the
    /// TCP port.
    pub fn local_addr(&self) -> SocketAddr {
        let local = &self.endpoint.handle.local;
        local.shown(local.address(), self.port)
    }

    /// The TCP port that peers connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The key that peers know this listener by.
    pub fn public_key(&self) -> PublicKey {
        self.plan.identity.public_key()
    }

    /// Counters of the handshakes so far.
    pub fn handshakes(&self) -> HandshakeStats {
        HandshakeStats {
            completed: self.plan.completed.load(Ordering::Relaxed),
            failed: self.plan.failed.load(Ordering::Relaxed),
            crowded_out: self.plan.crowded_out.load(Ordering::Relaxed),
            under_way: self.plan.with_slots(|slots| slots.len()),
        }
    }
}

impl Drop for SecureListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What ends a handshake, and whose it is.
type UnderWay = (AbortHandle, SocketAddr);

/// What the task and the handshakes of a listener share.
struct Plan {
    identity: Identity,
    alpn: Vec<u8>,
    authorise: Box<Authorise>,
    observe: Option<Box<Observe>>,
    limits: HandshakeLimits,
    slots: Mutex<HandshakeSlots<UnderWay>>,
    completed: AtomicU64,
    failed: AtomicU64,
    crowded_out: AtomicU64,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").finish_non_exhaustive()
    }
}

impl Plan {
    fn with_slots<R>(&self, work: impl FnOnce(&mut HandshakeSlots<UnderWay>) -> R) -> R {
        work(&mut self.slots.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(&self, peer: SocketAddr, error: &SecureError) {
        let counter = match error {
            SecureError::Crowded => &self.crowded_out,
            _ => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Some(observe) = &self.observe {
            observe(peer, error);
        }
    }

    /// The handshake with `peer`, and what the authoriser says to it.
    async fn admit(
        self: &Arc<Self>,
        stream: Stream,
        peer: SocketAddr,
    ) -> Result<SecureStream, SecureError> {
        let mut stream = Unfinished::new(stream);
        let plan = Arc::clone(self);
        let admitted = move |key: &PublicKey| (plan.authorise)(key, peer) == Admission::Admit;
        let keys = RawKeys::new(Wanted::Admitted(Box::new(admitted)));
        let setup = Setup::new(self.identity.clone(), self.alpn.clone(), keys);
        let deadline = self.limits.deadline;
        let negotiating = handshake::accept(stream.stream(), &setup);
        let agreed = tokio::time::timeout(deadline, negotiating)
            .await
            .map_err(|_| SecureError::TimedOut(deadline))??;
        Ok(SecureStream::new(stream, &setup, agreed))
    }
}

/// A slot in the table, given back when its handshake is over, however it ends.
struct HandshakeSlot<'a> {
    plan: &'a Plan,
    number: u64,
}

impl Drop for HandshakeSlot<'_> {
    fn drop(&mut self) {
        self.plan.with_slots(|slots| slots.leave(self.number));
    }
}

/// Accepts connections and has a task for the handshake of each.
async fn serve(
    listener: Listener,
    plan: Arc<Plan>,
    done: mpsc::Sender<(SecureStream, SocketAddr)>,
) {
    let mut tasks = JoinSet::new();
    // With too many that nobody accepts, newcomers wait in the backlog of the transport.
    while done.reserve().await.is_ok() {
        let Ok((stream, peer)) = listener.accept().await else {
            break;
        };
        while tasks.try_join_next().is_some() {}
        begin(&mut tasks, stream, peer, &plan, &done);
    }
    // What is under way may end well.
    drop(done);
    while tasks.join_next().await.is_some() {}
}

fn begin(
    tasks: &mut JoinSet<()>,
    stream: Stream,
    peer: SocketAddr,
    plan: &Arc<Plan>,
    done: &mpsc::Sender<(SecureStream, SocketAddr)>,
) {
    let (take_slot, slot) = tokio::sync::oneshot::channel();
    let task = {
        let (plan, done) = (Arc::clone(plan), done.clone());
        async move {
            let Ok(number) = slot.await else { return };
            let slot = HandshakeSlot {
                plan: &plan,
                number,
            };
            let admitted = plan.admit(stream, peer).await;
            drop(slot);
            match admitted {
                Ok(stream) => {
                    plan.completed.fetch_add(1, Ordering::Relaxed);
                    // A listener that is gone wants no connections.
                    let _ = done.send((stream, peer)).await;
                }
                Err(error) => plan.tell(peer, &error),
            }
        }
    };
    let handle = tasks.spawn(task);
    let under_way = (handle, peer);
    let (number, displaced) =
        plan.with_slots(|slots| slots.enter(Network::of(peer.ip()), under_way));
    if let Some((handle, displaced)) = displaced {
        handle.abort();
        plan.tell(displaced, &SecureError::Crowded);
    }
    // The task may have been aborted meanwhile.
    let _ = take_slot.send(number);
}
