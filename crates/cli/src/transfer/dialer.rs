//! Where the connections of transfers come from, when this side begins: by meeting the target, or
//! by waiting for it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tack_pairing::PublicKey;
use tack_pairing::meeting::{Authenticated, Intent};

use super::args::TransportArgs;
use super::listener::TransferListener;
use crate::address::{Address, Family, Reach, ReachArgs};
use crate::exit::{Exit, Failure};
use crate::identity::OwnIdentity;
use crate::meeting::{self, ConnectOptions, MeetingArgs, PeerStream, Target};
use crate::net::{self, TRANSFER_PORT, TRANSFER_UDP_PORT};
use crate::state::StateDir;
use crate::volume::Volume;

/// Makes connections to one peer.
pub(crate) struct PeerDialer<'a> {
    way: ConnectMethod<'a>,
    /// The peer of the last connection, if it was authenticated.
    met: Mutex<Option<Box<Authenticated>>>,
}

enum ConnectMethod<'a> {
    Clear(Box<ClearParams>),
    Meet(Box<MeetingParams<'a>>),
    /// The other side connects.
    Wait(Box<WaitingPeers>),
}

/// How a connection in clear text is made.
struct ClearParams {
    address: Address,
    dial: net::Dial,
    config: tack::Config,
    /// How long the other side is waited for (`--wait`).
    wait: Duration,
    volume: Volume,
    /// A connection was made: after a loss there are pauses between attempts instead.
    was_reached: AtomicBool,
}

struct WaitingPeers {
    listener: TransferListener,
    /// Connections that came while another one was in use.
    arrived: Mutex<VecDeque<Arrival>>,
}

type Arrival = (PeerStream, Option<Box<Authenticated>>);

/// Connections of other peers that are kept for later; the oldest go.
const MAX_ARRIVED: usize = 16;

/// Pause between attempts while the other side does not listen yet.
const PAUSE: Duration = Duration::from_millis(500);

struct MeetingParams<'a> {
    target: Target,
    /// The key of the peer that was met, and its last address.
    met: Mutex<Option<(PublicKey, SocketAddr)>>,
    intent: Intent,
    own: OwnIdentity,
    state: StateDir,
    args: &'a MeetingArgs,
    volume: Volume,
    dial: meeting::Dial,
    connect_timeout: Duration,
}

/// Options of connections to a peer.
pub(crate) struct DialConfig<'a> {
    pub(crate) target: Target,
    pub(crate) reach: ReachArgs,
    pub(crate) meeting: &'a MeetingArgs,
    pub(crate) volume: Volume,
    pub(crate) transport: &'a TransportArgs,
    /// Longest silence of the peer before the connection is given up.
    pub(crate) silence: Duration,
    /// Time limit of an attempt to connect.
    pub(crate) connect_timeout: Duration,
    pub(crate) intent: Intent,
    /// The command that serves at the target, for messages.
    pub(crate) service: &'static str,
}

impl<'a> PeerDialer<'a> {
    /// A dialer that connects to the target.
    pub(crate) fn new(dialing: DialConfig<'a>) -> Result<Self, Failure> {
        let config = dialing.transport.transfer_config(dialing.silence);
        let way = if dialing.reach.reach() == Reach::Anywhere {
            let Target::Address(address) = dialing.target else {
                return Err(Failure::usage(
                    "clear text (--insecure) takes an address as the target: tickets, codes and names are for encrypted connections",
                ));
            };
            let dial = net::Dial {
                udp_port: TRANSFER_UDP_PORT,
                tcp_port: TRANSFER_PORT,
                service: dialing.service,
                reach: Reach::Anywhere,
                family: Family::Any,
                from: None,
                connect_timeout: dialing.connect_timeout,
                carrier: dialing.transport.carrier.clone(),
            };
            ConnectMethod::Clear(Box::new(ClearParams {
                address,
                dial,
                config,
                wait: dialing.meeting.peer.wait(false),
                volume: dialing.volume,
                was_reached: AtomicBool::new(false),
            }))
        } else {
            let state = dialing.meeting.peer.state.open()?;
            let (own, _) = OwnIdentity::load_or_make(&state)?;
            ConnectMethod::Meet(Box::new(MeetingParams {
                target: dialing.target,
                met: Mutex::default(),
                intent: dialing.intent,
                own,
                state,
                args: dialing.meeting,
                volume: dialing.volume,
                dial: meeting::Dial {
                    tcp_port: TRANSFER_PORT,
                    service: dialing.service,
                    from: None,
                    config,
                    carrier: dialing.transport.carrier.clone(),
                },
                connect_timeout: dialing.connect_timeout,
            }))
        };
        Ok(Self::by(way))
    }

    /// Waits for the other side at `listener`.
    pub(crate) fn waiting(listener: TransferListener) -> Self {
        Self::by(ConnectMethod::Wait(Box::new(WaitingPeers {
            listener,
            arrived: Mutex::default(),
        })))
    }

    fn by(way: ConnectMethod<'a>) -> Self {
        Self {
            way,
            met: Mutex::new(None),
        }
    }

    /// Makes or awaits the next connection.
    pub(crate) async fn dial(&self) -> Result<PeerStream, Failure> {
        let (link, met) = match &self.way {
            ConnectMethod::Clear(clear) => {
                let stream = clear.dial().await?;
                (PeerStream::Clear(stream), None)
            }
            ConnectMethod::Wait(waiting) => match waiting.next(self.peer()) {
                Some(arrival) => arrival,
                None => waiting.listener.accept().await?,
            },
            ConnectMethod::Meet(meet) => {
                let (link, met) = meet.dial().await?;
                (link, Some(met))
            }
        };
        *self.met() = met;
        Ok(link)
    }

    fn met(&self) -> MutexGuard<'_, Option<Box<Authenticated>>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of the last connection's peer.
    fn peer(&self) -> Option<PublicKey> {
        self.met().as_ref().map(|met| met.peer)
    }

    /// True when the other side is the one that connects.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.way, ConnectMethod::Wait(_))
    }

    /// Waits until the peer of the last connection has connected anew. Cancel safe.
    pub(crate) async fn replaced(&self) {
        let (ConnectMethod::Wait(waiting), Some(peer)) = (&self.way, self.peer()) else {
            return std::future::pending().await;
        };
        waiting.wait_for(peer).await;
    }

    /// Ends the validity of the ticket or code: the transfer is complete.
    pub(crate) fn complete(&self) {
        if let ConnectMethod::Wait(waiting) = &self.way {
            waiting.listener.complete(self.met().as_deref());
        }
    }
}

fn is_of((_, met): &Arrival, peer: PublicKey) -> bool {
    met.as_ref().is_some_and(|met| met.peer == peer)
}

impl WaitingPeers {
    fn arrived(&self) -> MutexGuard<'_, VecDeque<Arrival>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what arrives until one connection is of `peer`.
    async fn wait_for(&self, peer: PublicKey) {
        while let Ok(arrival) = self.listener.accept().await {
            let is_of_peer = is_of(&arrival, peer);
            let mut arrived = self.arrived();
            if arrived.len() >= MAX_ARRIVED {
                arrived.pop_front();
            }
            arrived.push_back(arrival);
            if is_of_peer {
                return;
            }
        }
        // The socket is closed, which the next connection's turn reports.
        std::future::pending().await
    }

    /// A connection that came: the latest of `peer`, which has left its older ones, or else the
    /// first.
    fn next(&self, peer: Option<PublicKey>) -> Option<Arrival> {
        let mut arrived = self.arrived();
        let latest = peer.and_then(|peer| {
            let at = arrived.iter().rposition(|arrival| is_of(arrival, peer))?;
            let latest = arrived.remove(at);
            arrived.retain(|arrival| !is_of(arrival, peer));
            latest
        });
        latest.or_else(|| arrived.pop_front())
    }
}

impl ClearParams {
    /// Connects, once the other side is there.
    async fn dial(&self) -> Result<tack::Stream, Failure> {
        let began = Instant::now();
        let mut is_waiting = false;
        loop {
            let failure = match net::connect(&self.address, &self.dial, &self.config).await {
                Ok(stream) => {
                    self.was_reached.store(true, Ordering::Relaxed);
                    return Ok(stream);
                }
                Err(failure) => failure,
            };
            let left = self.wait.saturating_sub(began.elapsed());
            let may_come = failure.exit == Exit::Network && !left.is_zero();
            if !may_come || self.was_reached.load(Ordering::Relaxed) {
                return Err(failure);
            }
            if !std::mem::replace(&mut is_waiting, true) && self.volume != Volume::Quiet {
                let seconds = left.as_secs();
                eprintln!("tack: {failure}; waiting for it, {seconds} s");
            }
            tokio::time::sleep(PAUSE.min(left)).await;
        }
    }
}

impl MeetingParams<'_> {
    fn met(&self) -> MutexGuard<'_, Option<(PublicKey, SocketAddr)>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn dial(&self) -> Result<(PeerStream, Box<Authenticated>), Failure> {
        let met = *self.met();
        let connect_options = ConnectOptions {
            target: &self.target,
            met,
            intent: self.intent,
            own: &self.own,
            state: &self.state,
            dial: self.dial.clone(),
            udp_port: TRANSFER_UDP_PORT,
            family: Family::Any,
            connect_timeout: self.connect_timeout,
            // Whoever has a name may be the first to start, too. After a loss there are pauses
            // between attempts instead.
            wait: match met {
                Some(_) => Duration::ZERO,
                None => self.args.peer.wait(matches!(
                    self.target,
                    Target::Code(_, None) | Target::Name(_)
                )),
            },
            remember: self.args.peer.remember.as_ref(),
            volume: self.volume,
        };
        let (link, met) = meeting::reach(&connect_options).await?;
        *self.met() = Some((met.peer, link.peer_addr()));
        Ok((link, met))
    }
}
