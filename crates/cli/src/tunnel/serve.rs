//! `tack serve`: the other end of tunnels. It says which peers may come, and where to.

mod accepted;
mod access;
mod config;
mod folders;
mod listening;
mod lookups;
mod neighbours;
mod policy;
mod relay;
mod service;
mod slots;

use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use tack::secure::{Admission, SecureListenOptions};
use tack::{Config, ListenOptions};
use tack_base::Rate;
use tack_pairing::meeting::{Intent, ProofMethod};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::dial::keep_alive;
use super::open_files::check_file_limit;
use super::rules::TargetRule;
use super::{ALPN, SERVE_PORT, SERVE_UDP_PORT, TUNNEL_PORT};
use crate::address::{Address, Family};
use crate::exit::{Exit, Failure};
use crate::identity::OwnIdentity;
use crate::meeting::{AlsoServes, PeerStream, WaitArgs, WaitingConfig, WaitingSide};
use crate::observe::{self, ObserveArgs};
use crate::peers::{Book, PeerName};
use crate::signals::Signals;
use crate::state::{StateArgs, StateDir};
use crate::transfer::TransportArgs;
use crate::values::{listen, rate_above_zero, silence};
use crate::volume::Volume;
use access::Access;
use config::{FlagPolicy, ServeFile};
use folders::Folders;
pub(crate) use lookups::MAX_LOOKUPS;
use policy::{CurrentPolicy, InboxPolicy, Policy};
use service::Service;

/// Connections of ours that are not yet in a place: handshakes and requests.
const BEFORE_A_PLACE: usize = 1024;
/// How long connections may take to close at the program's end.
const WIND_UP: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Read rules and folders from this file. SIGHUP reads it again; connections stay
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on, or a port of 127.0.0.1; port 0 picks a free port [default: port 7777
    /// of all addresses]
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    listen: Option<Address>,
    /// Connect peers to this target: HOST:PORTS, where HOST is a name, an address, a network
    /// (10.0.0.0/8), *.DOMAIN or *, and PORTS a port, a range (8000-8099) or *. Names below a
    /// domain and * stand for public addresses behind a router alone: what is private or a
    /// neighbour has to be named. An address permits no names but those without a dot
    #[arg(long = "target", value_name = "RULE")]
    targets: Vec<TargetRule>,
    /// Let peers listen here (tack forward -R) on these addresses and ports, as --target writes
    /// them (127.0.0.1:8000-8099)
    #[arg(long, value_name = "RULE")]
    remote_listen: Vec<TargetRule>,
    /// Serve this known peer, and not the others [default: all known peers]
    #[arg(long = "allow", value_name = "NAME")]
    allowed: Vec<PeerName>,
    /// Show a ticket and a code with which a peer that is not known may come; --keep and
    /// --write-ticket do so, too
    #[arg(long)]
    invite: bool,
    #[command(flatten)]
    waiting: WaitArgs,
    /// Save the peer that comes with the ticket or the code under this name
    #[arg(long, value_name = "NAME")]
    remember: Option<PeerName>,
    /// Maximum number of carried connections [default: 8192]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    max_connections: Option<u32>,
    /// Maximum number of carried connections of a peer [default: 4096]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    max_per_peer: Option<u32>,
    /// Limit what the connections of a peer carry together, in each direction (10M is 10 Mbit/s)
    #[arg(long, value_name = "RATE", value_parser = rate_above_zero)]
    rate: Option<Rate>,
    /// Let known peers send files into this folder (tack send FILE NAME:)
    #[arg(long, value_name = "DIR")]
    receive: Option<PathBuf>,
    /// Offer this file or folder to known peers (tack recv NAME:)
    #[arg(long, value_name = "PATH")]
    offer: Vec<PathBuf>,
    #[command(flatten)]
    transport: TransportArgs,
    /// Give a connection up when the peer is silent for this time
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = silence)]
    timeout: Duration,
    /// Say of each connection where it went and what it carried
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// Socket of a service manager (`LISTEN_FDS`), as systemd passes it on. To be called while the
/// program has one thread: it changes the environment.
///
/// # Errors
/// When something else than one UDP socket was passed on.
pub(crate) fn inherited_socket() -> Result<Option<UdpSocket>, Failure> {
    let mut passed = listenfd::ListenFd::from_env();
    if passed.len() > 1 {
        return Err(Failure::usage(format!(
            "expected one UDP socket from the service manager, got {} sockets",
            passed.len()
        )));
    }
    let socket = passed.take_udp_socket(0);
    socket.map_err(|error| {
        Failure::usage(format!(
            "expected a UDP socket from the service manager (ListenDatagram=): {error}"
        ))
    })
}

/// Where rules come from: the command line and a file.
struct Rules {
    flags: FlagPolicy,
    file: Option<PathBuf>,
    state: StateDir,
    /// The name of who comes with the ticket or the code. Rules may be about it beforehand.
    remember: Option<PeerName>,
}

impl Rules {
    /// The policy as of now, and where the file wants to listen.
    ///
    /// # Errors
    /// A usage error that names what is wrong and where.
    fn read(&self) -> Result<(Policy, Option<Address>), Failure> {
        let file = match &self.file {
            Some(path) => ServeFile::read(path)?,
            None => ServeFile::default(),
        };
        let policy = file.policy(&self.flags)?;
        if !policy.is_useful() {
            return Err(Failure::usage(
                "nothing to serve: expected --target, --remote-listen, --receive, --offer or --config \
                 with one of these (for example --target nas:22)",
            ));
        }
        let book = Book::load(&self.state)?;
        let named = policy.allowed.iter().chain(policy.peers.keys());
        for name in named.filter(|name| Some(*name) != self.remember.as_ref()) {
            book.by_name(name).map_err(|refused| refused.failure())?;
        }
        Ok((policy, file.listen.map(|text| text.0)))
    }

    /// Puts the file's rules in the place of those in force. A file that is wrong changes nothing.
    /// `listen` is what the file said first.
    fn reload(&self, current: &CurrentPolicy, folders: &Folders, listen: Option<&Address>) {
        let Some(path) = &self.file else {
            return;
        };
        let loaded = self.read().and_then(|(policy, listen)| {
            folders.prepare(&policy)?;
            current.replace(policy);
            Ok(listen)
        });
        match loaded {
            Ok(now) if now.as_ref() != listen => eprintln!(
                "tack: {} was read again, `listen` needs a restart",
                path.display()
            ),
            Ok(_) => eprintln!("tack: {} was read again", path.display()),
            Err(failure) => eprintln!(
                "tack: {} was not read again, the rules stay as they are: {failure}",
                path.display()
            ),
        }
    }
}

/// Serves until a signal, on `socket` if there is one.
pub(crate) async fn serve(args: ServeArgs, socket: Option<UdpSocket>) -> Result<Exit, Failure> {
    let invites = args.invite || args.waiting.wants_ticket();
    let mut signals = Signals::new()?;
    let state = args.state.open()?;
    let (own, _) = OwnIdentity::load_or_make(&state)?;
    let rules = Rules {
        flags: FlagPolicy {
            allowed: args.allowed,
            max_connections: args.max_connections,
            max_per_peer: args.max_per_peer,
            targets: args.targets,
            remote_listen: args.remote_listen,
            rate: args.rate,
            inbox: args.receive.map(InboxPolicy::cautious),
            offer: args.offer,
        },
        file: args.config,
        state: state.clone(),
        remember: args.remember.clone().filter(|_| invites),
    };
    // Without a file a terminal that goes ends the program, as it does others.
    let mut hangup = match &rules.file {
        Some(_) => Some(
            signal(SignalKind::hangup())
                .map_err(|error| Failure::failed("cannot handle signals", error))?,
        ),
        None => None,
    };
    let (policy, listen) = rules.read()?;
    if let Some(name) = rules.remember.as_ref().filter(|name| !policy.allows(name)) {
        return Err(Failure::usage(format!(
            "--remember {name} would store a peer that is not served: expected --allow {name} beside the others, or no \
             --allow at all"
        )));
    }
    let (stop, stopped) = watch::channel(false);
    let folders = Arc::new(Folders::new(args.timeout, stopped));
    folders.prepare(&policy)?;
    check_file_limit(policy.max_connections as usize);
    let max_connections = policy.max_connections as usize + BEFORE_A_PLACE;
    let policy = Arc::new(CurrentPolicy::new(policy));
    let access = Access::new(state.clone());
    let service = Arc::new(Service::new(Arc::clone(&policy), access, args.verbose));
    let config = Config {
        keep_alive: Some(keep_alive(args.timeout)),
        ..args.transport.config(args.timeout)
    };
    let everywhere = Address::everywhere(SERVE_UDP_PORT);
    let closed = WaitArgs::without_code();
    let serving = Arc::clone(&policy);
    let waiting_side = WaitingSide::open(
        state,
        own.clone(),
        WaitingConfig {
            intent: Intent::Forward,
            also: AlsoServes::by(move |intent| serving.now().serves(intent)),
            command: "tack connect",
            after: "HOST:PORT",
            args: if invites { &args.waiting } else { &closed },
            remember: args.remember,
            volume: Volume::Normal,
            listen: args
                .listen
                .as_ref()
                .or(listen.as_ref())
                .unwrap_or(&everywhere),
            socket,
            family: Family::Any,
            udp_port: SERVE_UDP_PORT,
            tcp_port: SERVE_PORT,
            config: config.clone(),
            max_connections,
            max_of_peer: max_connections - BEFORE_A_PLACE / 2,
            carrier: &args.transport.carrier,
        },
    )
    .await?;
    let admitting = Arc::clone(&service);
    let options = SecureListenOptions::new(ALPN, move |key, _| {
        if admitting.guest(*key).is_some() {
            Admission::Admit
        } else {
            Admission::Refuse
        }
    })
    .identity(own.identity)
    .transport(ListenOptions::new().config(config));
    let listener = waiting_side
        .endpoint()
        .listen_secure(TUNNEL_PORT, options)
        .map_err(|error| Failure::network(format!("cannot listen: {error}")))?;
    let shown: Vec<_> = waiting_side
        .addresses()
        .iter()
        .map(ToString::to_string)
        .collect();
    eprintln!("tack: serving tunnels at {}", shown.join(", "));
    if invites {
        waiting_side.invite()?;
    }
    let asked = Arc::clone(&service);
    observe::extend_status(move || asked.status());
    let exit = loop {
        let stream = tokio::select! {
            arrival = waiting_side.accept() => {
                let arrival = arrival?;
                let intent = arrival.met.intent;
                let is_known = matches!(arrival.met.how, ProofMethod::Known);
                if intent != Intent::Forward {
                    let (folders, service) = (Arc::clone(&folders), Arc::clone(&service));
                    tokio::spawn(async move {
                        folders.serve(&service, arrival.link, intent).await;
                    });
                    continue;
                }
                if !is_known {
                    service.access().let_in(arrival.met.peer);
                    // What let it in has served. A full disk is no reason to end what others have.
                    if let Err(failure) = waiting_side.complete(&arrival.met) {
                        eprintln!(
                            "tack: the invitation may serve the same peer again: {failure}"
                        );
                    }
                }
                arrival.link
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => PeerStream::by_tls(stream),
                Err(error) => return Err(Failure::failed("cannot accept", error)),
            },
            () = next_hangup(&mut hangup) => {
                rules.reload(&policy, &folders, listen.as_ref());
                service.apply_rates();
                continue;
            }
            exit = signals.next() => break exit,
        };
        tokio::spawn(service::serve_one(Arc::clone(&service), stream));
    };
    let _ = stop.send(true);
    // What is not through by then is reset.
    let _ = waiting_side.endpoint().shutdown(WIND_UP).await;
    Ok(exit)
}

async fn next_hangup(hangup: &mut Option<Signal>) {
    match hangup {
        Some(hangup) => _ = hangup.recv().await,
        None => std::future::pending().await,
    }
}
