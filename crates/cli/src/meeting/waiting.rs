//! The side that waits: listens, shows how to reach it, and hands over who was let in.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tack::secure::{
    Admission, HandshakeLimits, Identity, SecureListenOptions, SecureListener, SecureStream,
};
use tack::{Builder, Config, Endpoint, ListenOptions};
use tack_pairing::code::CurrentCode;
use tack_pairing::meeting::{Authenticated, Intent, ProofMethod, Waiting};
use tack_pairing::ticket::TicketId;
use tack_pairing::{Code, Ticket, code, short};
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use super::args::WaitArgs;
use super::exchange::{self, MeetingError};
use super::host::{AlsoServes, WaitingHost};
use super::invitations::{Invitations, TicketUse};
use super::known::{Keep, update_known_peers};
use super::peer_stream::{PeerStream, Proven};
use super::places::Places;
use super::show;
use super::stranger::Stranger;
use super::whereabouts::Whereabouts;
use super::{ALPN, CODE_PORT, channel};
use crate::address::{Address, Family, Reach};
use crate::carrier::CarrierArgs;
use crate::exit::Failure;
use crate::identity::OwnIdentity;
use crate::keyboard;
use crate::peers::PeerName;
use crate::state::StateDir;
use crate::volume::Volume;

/// Meetings under way at a time. For a further one the oldest is given up: an honest one takes a
/// few round trips, so peers that say nothing keep nobody out.
const MAX_MEETINGS: usize = 64;
/// TLS handshakes under way at a time at one of the two ports, and those of one network. At these
/// limits a further one takes the place of the oldest: a flood displaces itself.
const MAX_HANDSHAKES: usize = 512;
const MAX_HANDSHAKES_OF_A_NETWORK: usize = 128;
/// Connections at one port that no handshake has begun with.
const BACKLOG: usize = 64;
/// Lines about peers that were not let in; what follows is not told, lest a stranger fill a disk.
const MAX_COMPLAINTS: u32 = 50;

/// How long a ticket is valid, if nothing else is said.
const TICKET_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Options of a waiting side.
#[derive(Debug)]
pub(crate) struct WaitingConfig<'a> {
    /// The intent that the connecting side must have.
    pub(crate) intent: Intent,
    /// What known peers may have besides.
    pub(crate) also: AlsoServes,
    /// The command to type on the other side, up to its peer.
    pub(crate) command: &'static str,
    /// What has to be typed after the peer; empty for nothing.
    pub(crate) after: &'static str,
    pub(crate) args: &'a WaitArgs,
    /// The name under which a peer is stored (`--remember`).
    pub(crate) remember: Option<PeerName>,
    pub(crate) volume: Volume,
    pub(crate) listen: &'a Address,
    /// A socket that is bound already, in place of `listen`.
    pub(crate) socket: Option<UdpSocket>,
    pub(crate) family: Family,
    pub(crate) udp_port: u16,
    /// The TCP port of the service, within the UDP port.
    pub(crate) tcp_port: u16,
    pub(crate) config: Config,
    /// Room for connections besides those of strangers.
    pub(crate) max_connections: usize,
    /// Most of them that one peer may have.
    pub(crate) max_of_peer: usize,
    pub(crate) carrier: &'a CarrierArgs,
}

/// A peer that was admitted.
#[derive(Debug)]
pub(crate) struct AdmittedPeer {
    pub(crate) link: PeerStream,
    pub(crate) met: Box<Authenticated>,
}

/// A side that waits for peers and authenticates them.
pub(crate) struct WaitingSide {
    endpoint: Endpoint,
    arrivals: AsyncMutex<mpsc::Receiver<AdmittedPeer>>,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

/// What the tasks of a waiting side share.
struct Shared {
    own: OwnIdentity,
    state: StateDir,
    host: Mutex<WaitingHost>,
    current_code: Arc<CurrentCode>,
    command: &'static str,
    after: &'static str,
    lifetime: Option<Duration>,
    usage: TicketUse,
    write_ticket: Option<PathBuf>,
    /// The ticket that was shown last.
    shown_ticket: Mutex<Option<TicketId>>,
    has_code: bool,
    remember: Option<PeerName>,
    volume: Volume,
    whereabouts: Whereabouts,
    places: Arc<Places>,
    /// A code may have been burnt.
    look: Notify,
    complaints: AtomicU32,
}

impl WaitingSide {
    /// Listens, and prints how to reach this side.
    pub(crate) async fn open(
        state: StateDir,
        own: OwnIdentity,
        config: WaitingConfig<'_>,
    ) -> Result<Self, Failure> {
        let limits =
            HandshakeLimits::default().at_most(MAX_HANDSHAKES, MAX_HANDSHAKES_OF_A_NETWORK);
        // Strangers never take the room of those who are admitted: each limit is reached before the
        // endpoint has no more connections.
        let ports = if config.args.no_code { 1 } else { 2 };
        let strangers = BACKLOG + limits.total + limits.waiting + MAX_MEETINGS;
        let builder = Endpoint::builder()
            .identity(own.identity.clone())
            .max_connections(config.max_connections + ports * strangers);
        let bind = |address: SocketAddr| config.carrier.build(builder.clone().bind(address));
        if config.socket.is_some() && config.carrier.is_tun() {
            return Err(Failure::usage(
                "--carrier tun has no UDP port, but the service manager has passed one on",
            ));
        }
        let address = match &config.socket {
            Some(socket) => socket.local_addr().map_err(|error| {
                Failure::failed("the socket that was passed on cannot be used", error)
            })?,
            None => {
                let resolved =
                    config
                        .listen
                        .resolve(config.udp_port, Reach::Anywhere, config.family);
                resolved.await?[0]
            }
        };
        let bound = match config.socket {
            Some(socket) => builder.clone().socket(socket).and_then(Builder::build),
            None => bind(address),
        };
        let endpoint = match bound {
            // A system without IPv6.
            Err(_) if !config.carrier.is_tun() && address.ip() == Ipv6Addr::UNSPECIFIED => {
                bind((Ipv4Addr::UNSPECIFIED, address.port()).into())
            }
            bound => bound,
        };
        let endpoint = endpoint.map_err(|error| config.carrier.cannot_listen(address, &error))?;
        let whereabouts = Whereabouts::new(
            own.identity.public_key(),
            endpoint.local_addr(),
            config.carrier.addresses(config.udp_port),
        );
        let args = config.args;
        let current_code = CurrentCode::new(None);
        let shared = Arc::new(Shared {
            own: own.clone(),
            host: Mutex::new(WaitingHost {
                state: state.clone(),
                invitations: Invitations::new(state.clone(), config.intent),
                current_code: Arc::clone(&current_code),
                intent: config.intent,
                also: config.also,
                tickets_shown: 0,
            }),
            state,
            current_code,
            command: config.command,
            after: config.after,
            lifetime: Some(args.ticket_lifetime.unwrap_or(TICKET_LIFETIME))
                .filter(|lifetime| !lifetime.is_zero()),
            usage: if args.keep {
                TicketUse::Many
            } else {
                TicketUse::Once
            },
            write_ticket: args.write_ticket.clone(),
            shown_ticket: Mutex::default(),
            has_code: !args.no_code,
            remember: config.remember,
            volume: config.volume,
            whereabouts,
            places: Places::new(config.max_of_peer),
            look: Notify::new(),
            complaints: AtomicU32::new(0),
        });
        let listen = |port: u16, identity: Identity| {
            let shared = Arc::clone(&shared);
            let transport = ListenOptions::new().config(config.config.clone());
            let transport = transport.backlog(BACKLOG);
            // Whom to let in is decided in the meeting, which has words.
            let options = SecureListenOptions::new(ALPN, |_, _| Admission::Admit)
                .identity(identity)
                .limits(limits)
                .transport(transport)
                .on_failure(move |peer, error| shared.complain(peer, &error.to_string()));
            endpoint
                .listen_secure(port, options)
                .map_err(|error| Failure::network(format!("cannot listen: {error}")))
        };
        let mut listeners = vec![listen(config.tcp_port, own.identity.clone())?];
        if shared.has_code {
            let ephemeral = Identity::generate()
                .map_err(|error| Failure::failed("cannot make a key", error))?;
            listeners.push(listen(CODE_PORT, ephemeral)?);
        }
        let (done, arrivals) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        for listener in listeners {
            tasks.spawn(accept(listener, Arc::clone(&shared), done.clone()));
        }
        // When a person can ask for it.
        let has_keyboard = io::IsTerminal::is_terminal(&io::stdin());
        tasks.spawn(renew(Arc::clone(&shared), has_keyboard));
        if shared.has_code {
            let shared = Arc::clone(&shared);
            tasks.spawn(async move { shared.whereabouts.follow().await });
        }
        Ok(Self {
            endpoint,
            arrivals: AsyncMutex::new(arrivals),
            shared,
            _tasks: tasks,
        })
    }

    /// Makes a ticket and a code, and shows them.
    pub(crate) fn invite(&self) -> Result<(), Failure> {
        self.shared.invite()
    }

    /// Makes and shows anew what a complete transfer has used up.
    pub(crate) fn replace(&self, used: ProofMethod) -> Result<(), Failure> {
        self.shared.replace(used)
    }

    /// True when the ticket lets everybody in who has it.
    pub(crate) fn serves_many(&self) -> bool {
        self.shared.usage == TicketUse::Many
    }

    /// The next peer that was let in. Cancel safe.
    pub(crate) async fn accept(&self) -> Result<AdmittedPeer, Failure> {
        let mut arrivals = self.arrivals.lock().await;
        let arrival = arrivals.recv().await;
        arrival.ok_or_else(|| Failure::network("the socket is closed"))
    }

    /// What the peer came for is complete: what let it in serves no more.
    pub(crate) fn complete(&self, met: &Authenticated) -> Result<(), Failure> {
        self.shared.host().invitations.complete(met.how, &met.peer)
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What a peer can type.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.shared.whereabouts.addresses()
    }

    /// Withdraws the announcement of the code.
    pub(crate) fn withdraw(&self) {
        self.shared.whereabouts.withdraw_code();
    }
}

impl Shared {
    fn host(&self) -> MutexGuard<'_, WaitingHost> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn invite(&self) -> Result<(), Failure> {
        let issuer = self.own.identity.public_key();
        let ticket = self.host().invitations.issue(
            issuer,
            self.lifetime,
            self.usage,
            &self.whereabouts.addresses(),
        )?;
        *self
            .shown_ticket
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(ticket.id());
        if let Some(path) = &self.write_ticket {
            write_ticket(path, &ticket.text()).map_err(|error| {
                Failure::failed(
                    format!("cannot write the ticket to {}", path.display()),
                    error,
                )
            })?;
        }
        let (code, is_announced) = self.new_code()?;
        if show::is_journal() {
            eprintln!(
                "the ticket and the code are not written to the journal: --write-ticket FILE keeps the ticket where its owner alone reads it"
            );
            return Ok(());
        }
        let ways = self.ways(Some(&ticket), code.as_ref(), is_announced);
        if self.whereabouts.is_alone() {
            eprintln!("this machine has no address on a network: no other one can reach it");
        }
        eprintln!("on the other side,{} one of:\n{ways}", self.carrier());
        if let Some(drawn) = show::qr_code(&ticket) {
            eprintln!("{drawn}");
        }
        Ok(())
    }

    /// A new ticket where the one that was shown lets nobody in any more, and a new code where one
    /// was used. Tickets are kept up to a number: one more for each transfer would drop those that
    /// were handed out.
    fn replace(&self, used: ProofMethod) -> Result<(), Failure> {
        let shown = self.shown_ticket();
        let is_valid = shown.is_some_and(|id| self.host().invitations.secret(&id).is_ok());
        if !is_valid {
            return self.invite();
        }
        if used == ProofMethod::Code
            && let (Some(code), is_announced) = self.new_code()?
            && !show::is_journal()
        {
            let ways = self.ways(None, Some(&code), is_announced);
            let carrier = self.carrier();
            eprintln!(
                "the ticket stays valid; on the other side,{carrier} with a new code:\n{ways}"
            );
        }
        Ok(())
    }

    fn shown_ticket(&self) -> Option<TicketId> {
        *self
            .shown_ticket
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What a person types on the other side.
    fn ways(&self, ticket: Option<&Ticket>, code: Option<&Code>, is_announced: bool) -> String {
        let command = (self.command, self.after);
        show::invitation(
            command,
            ticket,
            code,
            &self.whereabouts.addresses(),
            is_announced,
        )
    }

    /// What the command needs besides.
    fn carrier(&self) -> &'static str {
        match self.whereabouts.is_on_network() {
            true => "",
            // Over UDP nobody reaches a host behind a TUN device.
            false => " with --carrier tun --tun-address ADDRESS/LENGTH (a network of its own),",
        }
    }

    /// Puts a new code in place; true when it is announced.
    fn new_code(&self) -> Result<(Option<Code>, bool), Failure> {
        if !self.has_code {
            return Ok((None, false));
        }
        let random = |error| Failure::failed("cannot make a code", anyhow::anyhow!("{error}"));
        let number = Code::random_number().map_err(random)?;
        let code = Code::generate(number).map_err(random)?;
        self.current_code.renew(code.clone());
        // Who waits for a code that is not burnt goes on: it may be burnt next.
        self.look.notify_one();
        let is_announced = self.whereabouts.announce_code(number);
        Ok((Some(code), is_announced))
    }

    fn complain(&self, peer: SocketAddr, why: &str) {
        tracing::info!(%peer, why, "refused a peer");
        match self.complaints.fetch_add(1, Ordering::Relaxed) {
            count if count < MAX_COMPLAINTS => eprintln!("tack: refused {peer}: {why}"),
            MAX_COMPLAINTS => eprintln!("tack: further refused peers are not reported"),
            _ => {}
        }
    }
}

fn write_ticket(path: &PathBuf, text: &str) -> io::Result<()> {
    // A file that is there keeps its mode otherwise.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{text}")
}

/// Meets everybody who comes, [`MAX_MEETINGS`] at a time.
async fn accept(listener: SecureListener, shared: Arc<Shared>, done: mpsc::Sender<AdmittedPeer>) {
    let mut meetings = JoinSet::new();
    // Oldest first, with what takes them out of the way.
    let mut under_way: VecDeque<AbortHandle> = VecDeque::new();
    while let Ok((stream, peer)) = listener.accept().await {
        while meetings.try_join_next().is_some() {}
        under_way.retain(|meeting| !meeting.is_finished());
        if under_way.len() >= MAX_MEETINGS
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.abort();
        }
        let (shared, done) = (Arc::clone(&shared), done.clone());
        under_way.push_back(meetings.spawn(async move {
            if let Some(arrival) = meet(stream, peer, &shared).await {
                // Not to be given up any more. Whoever waited may have gone; so goes the peer.
                tokio::spawn(async move { done.send(arrival).await });
            }
        }));
    }
}

/// Has the code looked at when a meeting is over, also when it is given up: it may be burnt.
struct LookAtCode<'a>(&'a Shared);

impl Drop for LookAtCode<'_> {
    fn drop(&mut self) {
        self.0.look.notify_one();
    }
}

/// The peer, if it is let in.
async fn meet(stream: SecureStream, peer: SocketAddr, shared: &Shared) -> Option<AdmittedPeer> {
    // The first here, so that it is dropped after the attempt.
    let _look = LookAtCode(shared);
    let mut stranger = Stranger::new(stream);
    let channel = match channel(stranger.stream()) {
        Ok(channel) => channel,
        Err(error) => {
            shared.complain(peer, &error.to_string());
            return None;
        }
    };
    let own = shared.own.identity.clone();
    let machine = Waiting::new(channel, own, shared.own.rotations.clone());
    let met = match exchange::wait(stranger.stream(), machine, &shared.host).await {
        Ok(Some(met)) => met,
        Ok(None) => return None,
        Err(error) => {
            match error {
                MeetingError::Failed(failed) => {
                    shared.complain(peer, failed.refusal().to_refusing());
                }
                error => shared.complain(peer, &error.to_string()),
            }
            return None;
        }
    };
    let Some(place) = shared.places.take(&met.peer) else {
        shared.complain(peer, "it has too many connections already");
        return None;
    };
    shared.whereabouts.met();
    if matches!(met.how, ProofMethod::Code) {
        shared.whereabouts.withdraw_code();
    }
    // Where it may listen, when it does.
    let address = Address::of(peer, peer.port());
    // A peer is let in even if its name cannot be kept.
    let keep = Keep {
        name: shared.remember.as_ref(),
        volume: shared.volume,
        was_reached: false,
    };
    if let Err(failure) = update_known_peers(&shared.state, &met, keep, Some(address)) {
        eprintln!("tack: {failure}");
    }
    tracing::info!(
        %peer,
        key = short(&met.peer),
        by = match met.how {
            ProofMethod::Ticket(_) => "ticket",
            ProofMethod::Code => "code",
            ProofMethod::Known => "key",
        },
        "let a peer in"
    );
    let proven = Proven::in_place(met.peer, place);
    let link = PeerStream::Secure(Box::new(stranger.let_in()), proven);
    Some(AdmittedPeer { link, met })
}

async fn sleep_or_for_ever(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

/// Waits until there is a code that is not burnt.
async fn until_renewed(shared: &Shared) {
    while shared.current_code.is_burnt() {
        shared.look.notified().await;
    }
}

/// Puts a new code in place of a burnt one, after a pause or when a person asks.
async fn renew(shared: Arc<Shared>, has_keyboard: bool) {
    let mut burnt = 0;
    loop {
        shared.look.notified().await;
        if !shared.current_code.is_burnt() {
            continue;
        }
        shared.whereabouts.withdraw_code();
        burnt += 1;
        let pause = code::pause(burnt);
        let new = show::when_a_code_follows(pause, has_keyboard);
        eprintln!(
            "tack: the code is used up: each code permits one attempt. {new}; the ticket stays valid"
        );
        tokio::select! {
            () = sleep_or_for_ever(pause) => {}
            () = keyboard::enter(), if has_keyboard => {}
            () = until_renewed(&shared), if pause.is_none() => {}
        }
        // A transfer by ticket that was complete meanwhile has put a new one in place already.
        if !shared.current_code.is_burnt() {
            continue;
        }
        match shared.new_code() {
            Ok((Some(_), _)) if show::is_journal() => eprintln!("tack: there is a new code"),
            Ok((Some(code), _)) => eprintln!("tack: the new code is {}", &*code.text()),
            Ok((None, _)) => return,
            Err(failure) => eprintln!("tack: {failure}"),
        }
    }
}

#[cfg(test)]
mod tests;
