//! How the connections of a test are protected, and who is let in: the two sides meet as for a
//! transfer, or are on one machine, or say that clear text is meant. Each of the three has TCP
//! ports of its own.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tack::secure::{Admission, Identity, PublicKey, SecureListenOptions, SecureListener};
use tack::{Config, Endpoint, ListenError, ListenOptions, Listener};
use tack_pairing::meeting::{Authenticated, Intent, ProofMethod};
use tokio::sync::mpsc;

use super::args::PerfArgs;
use crate::address::{Address, Reach};
use crate::exit::Failure;
use crate::identity::OwnIdentity;
use crate::meeting::{
    self, AlsoServes, ConnectOptions, PeerStream, Target, WaitingConfig, WaitingSide,
};
use crate::net::{
    self, CLEAR_PERF_PORT, Dial, Encryption, MET_PERF_PORT, PERF_PORT, PERF_UDP_PORT,
};
use crate::volume::Volume;

/// The protocol inside TLS, where nobody meets: on one machine, and for data.
const ALPN: &[u8] = b"tack-perf/2";
/// What serves tests, for messages.
const SERVICE: &str = "tack perf --server";
/// The same in clear text.
const CLEAR_SERVICE: &str = "tack perf --server --insecure";
/// Clients that are remembered so as not to be taken for new ones.
const MAX_GUESTS: usize = 64;

/// How the data of a test is protected, as results say it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub(crate) struct Protection {
    pub(crate) encrypted: bool,
    /// As `TLS13_AES_128_GCM_SHA256`.
    pub(crate) cipher: Option<String>,
    /// As `X25519MLKEM768`.
    pub(crate) key_exchange: Option<String>,
}

impl Protection {
    pub(crate) fn of(link: &PeerStream) -> Self {
        match link {
            PeerStream::Clear(_) => Self::default(),
            PeerStream::Secure(stream, _) => Self {
                encrypted: true,
                cipher: Some(stream.cipher()),
                key_exchange: Some(stream.key_exchange()),
            },
        }
    }
}

/// The keys that the data connections of a test have to prove.
#[derive(Clone, Debug)]
pub(crate) enum DataSecurity {
    Clear,
    /// These keys: after a meeting the long-term ones, on one machine those of this run.
    Keys {
        own: Identity,
        peer: PublicKey,
    },
}

impl DataSecurity {
    /// Another connection to the peer of `control`, at its TCP port `port`.
    pub(crate) async fn another(
        &self,
        control: &PeerStream,
        port: u16,
        config: &Config,
    ) -> io::Result<PeerStream> {
        let endpoint = control.endpoint();
        let connect = endpoint.connect(control.peer_addr()).port(port);
        let connect = connect.config(config.clone());
        match self {
            Self::Clear => Ok(PeerStream::Clear(connect.await?)),
            Self::Keys { own, peer } => {
                let connect = connect.expecting(*peer, ALPN).identity(own.clone());
                Ok(PeerStream::Secure(Box::new(connect.await?), (*peer).into()))
            }
        }
    }

    /// Listens on TCP port `port` for the data connections of this client.
    pub(crate) fn listen(
        &self,
        endpoint: &Endpoint,
        port: u16,
        options: ListenOptions,
    ) -> Result<DataPort, ListenError> {
        match self {
            Self::Clear => endpoint.listen_with(port, options).map(DataPort::Clear),
            Self::Keys { own, peer } => {
                let peer = *peer;
                let admit = move |key: &PublicKey, _: SocketAddr| admission(*key == peer);
                let options = SecureListenOptions::new(ALPN, admit)
                    .identity(own.clone())
                    .transport(options);
                let listener = endpoint.listen_secure(port, options)?;
                Ok(DataPort::Keys(Box::new(listener)))
            }
        }
    }
}

fn admission(is_admitted: bool) -> Admission {
    if is_admitted {
        Admission::Admit
    } else {
        Admission::Refuse
    }
}

/// Where the data connections of one client arrive.
#[derive(Debug)]
pub(crate) enum DataPort {
    Clear(Listener),
    Keys(Box<SecureListener>),
}

impl DataPort {
    pub(crate) async fn accept(&self) -> io::Result<PeerStream> {
        Ok(match self {
            Self::Clear(listener) => PeerStream::Clear(listener.accept().await?.0),
            Self::Keys(listener) => PeerStream::by_tls(listener.accept().await?.0),
        })
    }

    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Clear(listener) => listener.port(),
            Self::Keys(listener) => listener.port(),
        }
    }
}

/// Opens the control connection to the server.
pub(crate) async fn dial(
    args: &PerfArgs,
    server: &Target,
    config: &Config,
) -> Result<(PeerStream, DataSecurity), Failure> {
    let dial = Dial {
        udp_port: args.udp_port(),
        tcp_port: if args.is_clear() {
            CLEAR_PERF_PORT
        } else {
            PERF_PORT
        },
        service: if args.is_clear() {
            CLEAR_SERVICE
        } else {
            SERVICE
        },
        reach: if args.is_clear() {
            Reach::Anywhere
        } else {
            Reach::LoopbackOnly
        },
        family: args.family(),
        from: args.bind,
        connect_timeout: args.connect_timeout,
        carrier: args.carrier.clone(),
    };
    match server {
        Target::Address(address) if args.is_clear() => {
            let stream = net::connect(address, &dial, config).await?;
            Ok((PeerStream::Clear(stream), DataSecurity::Clear))
        }
        _ if args.is_clear() => Err(Failure::usage(
            "clear text (--insecure) takes an address: tickets, codes and names are for encrypted tests",
        )),
        Target::Address(address) if is_here(args, address).await? => {
            let own = run_key()?;
            let encryption = Encryption {
                identity: own.clone(),
                // On loopback whoever answers is this machine.
                expected: None,
                alpn: ALPN,
            };
            let stream = net::connect_encrypted(address, &dial, config, &encryption).await?;
            let peer = stream.peer_key();
            Ok((PeerStream::by_tls(stream), DataSecurity::Keys { own, peer }))
        }
        _ => meet(args, server, config).await,
    }
}

/// An identity for this run alone: nothing about a test on one machine is to be remembered.
fn run_key() -> Result<Identity, Failure> {
    Identity::generate().map_err(|error| Failure::failed("cannot make a key", error))
}

/// True when the server is on this machine.
async fn is_here(args: &PerfArgs, address: &Address) -> Result<bool, Failure> {
    let resolved = address.resolve(args.udp_port(), Reach::Anywhere, args.family());
    Ok(resolved
        .await?
        .iter()
        .all(|address| address.ip().to_canonical().is_loopback()))
}

async fn meet(
    args: &PerfArgs,
    server: &Target,
    config: &Config,
) -> Result<(PeerStream, DataSecurity), Failure> {
    let state = args.meeting.peer.state.open()?;
    let (own, _) = OwnIdentity::load_or_make(&state)?;
    let connect_options = ConnectOptions {
        target: server,
        met: None,
        intent: Intent::Measure,
        own: &own,
        state: &state,
        dial: meeting::Dial {
            tcp_port: MET_PERF_PORT,
            service: SERVICE,
            from: args.bind,
            config: config.clone(),
            carrier: args.carrier.clone(),
        },
        udp_port: PERF_UDP_PORT,
        family: args.family(),
        connect_timeout: args.connect_timeout,
        wait: args
            .meeting
            .peer
            .wait(matches!(server, Target::Code(_, None))),
        remember: args.meeting.peer.remember.as_ref(),
        volume: Volume::Normal,
    };
    let (link, met) = meeting::reach(&connect_options).await?;
    let security = DataSecurity::Keys {
        own: own.identity.clone(),
        peer: met.peer,
    };
    Ok((link, security))
}

/// A peer without a connection, and why it has none.
pub(crate) type FailedHandshake = (SocketAddr, String);

/// The ports for control connections.
pub(crate) enum ControlListener {
    /// A port for anybody, in clear text.
    Clear(Listener),
    /// A port for clients on this machine.
    Local(Box<LocalListener>),
    /// Ports for clients on this machine and for admitted clients.
    Public(Box<PublicListener>),
}

/// The ports for clients on this machine and for those that are let in.
pub(crate) struct PublicListener {
    waiting_side: WaitingSide,
    own: OwnIdentity,
    here: LocalListener,
    /// Clients that an invitation has let in, the latest ones.
    admitted: Mutex<VecDeque<PublicKey>>,
}

impl PublicListener {
    /// Replaces what let this client in, if that serves nobody else now.
    fn replace(&self, client: &Authenticated) -> Result<(), Failure> {
        match client.how {
            ProofMethod::Known => Ok(()),
            // The ticket that was shown beside it stays valid.
            ProofMethod::Code => self.waiting_side.replace(client.how),
            ProofMethod::Ticket(_) if self.waiting_side.serves_many() => Ok(()),
            ProofMethod::Ticket(_) if self.is_new(client.peer) => self.waiting_side.invite(),
            ProofMethod::Ticket(_) => Ok(()),
        }
    }

    /// True when this client comes with a ticket for the first time: nobody else may use that now.
    fn is_new(&self, client: PublicKey) -> bool {
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        if admitted.contains(&client) {
            return false;
        }
        admitted.push_back(client);
        if admitted.len() > MAX_GUESTS {
            admitted.pop_front();
        }
        true
    }
}

/// A client that was admitted.
pub(crate) struct AdmittedClient {
    pub(crate) link: PeerStream,
    pub(crate) security: DataSecurity,
    /// How it proved itself, unless it is on this machine or in clear text.
    pub(crate) met: Option<Box<Authenticated>>,
}

/// The port for clients on this machine.
pub(crate) struct LocalListener {
    listener: SecureListener,
    own: Identity,
}

impl LocalListener {
    fn listen(
        endpoint: &Endpoint,
        own: Identity,
        options: ListenOptions,
        failed_handshakes: mpsc::Sender<FailedHandshake>,
    ) -> Result<Self, Failure> {
        let admit =
            |_: &PublicKey, peer: SocketAddr| admission(peer.ip().to_canonical().is_loopback());
        let options = SecureListenOptions::new(ALPN, admit)
            .identity(own.clone())
            .transport(options)
            .on_failure(move |peer, error| {
                // What does not fit is a flood, and one like the other.
                let _ = failed_handshakes.try_send((peer, error.to_string()));
            });
        let listener = endpoint
            .listen_secure(PERF_PORT, options)
            .map_err(|error| Failure::network(format!("cannot listen: {error}")))?;
        Ok(Self { listener, own })
    }

    async fn accept(&self) -> io::Result<AdmittedClient> {
        let (stream, _) = self.listener.accept().await?;
        Ok(AdmittedClient {
            security: DataSecurity::Keys {
                own: self.own.clone(),
                peer: stream.peer_key(),
            },
            link: PeerStream::by_tls(stream),
            met: None,
        })
    }
}

/// How a server listens.
pub(crate) struct ListenConfig<'a> {
    pub(crate) args: &'a PerfArgs,
    pub(crate) config: Config,
    pub(crate) backlog: usize,
    pub(crate) max_connections: usize,
    /// Hears of peers whose handshake failed, and why, while there is room.
    pub(crate) failed_handshakes: mpsc::Sender<FailedHandshake>,
}

impl ControlListener {
    /// Listens, and says on what.
    pub(crate) async fn open(opening: ListenConfig<'_>) -> Result<(Self, Endpoint), Failure> {
        let ListenConfig {
            args,
            config,
            backlog,
            max_connections,
            failed_handshakes,
        } = opening;
        let at = args.listen_address();
        let (udp_port, family) = (args.udp_port(), args.family());
        let transport = ListenOptions::new().config(config.clone()).backlog(backlog);
        let serve = |reach, identity| {
            let carrier = &args.carrier;
            net::serve(
                carrier,
                &at,
                udp_port,
                reach,
                family,
                max_connections,
                identity,
            )
        };
        if args.is_clear() {
            let endpoint = serve(Reach::Anywhere, None).await?;
            let listener = endpoint
                .listen_with(CLEAR_PERF_PORT, transport)
                .map_err(|error| Failure::network(format!("cannot listen: {error}")))?;
            return Ok((Self::Clear(listener), endpoint));
        }
        let run = run_key()?;
        if is_here(args, &at).await? {
            let endpoint = serve(Reach::LoopbackOnly, Some(run.clone())).await?;
            let here = LocalListener::listen(&endpoint, run, transport, failed_handshakes)?;
            return Ok((Self::Local(Box::new(here)), endpoint));
        }
        let state = args.meeting.peer.state.open()?;
        let (own, _) = OwnIdentity::load_or_make(&state)?;
        let waiting_config = WaitingConfig {
            intent: Intent::Measure,
            also: AlsoServes::nothing(),
            command: "tack perf",
            after: "",
            args: &args.meeting.waiting,
            remember: args.meeting.peer.remember.clone(),
            volume: Volume::Normal,
            listen: &at,
            socket: None,
            family,
            udp_port,
            tcp_port: MET_PERF_PORT,
            config,
            max_connections,
            // Clients beside it get an answer.
            max_of_peer: max_connections - backlog / 2,
            carrier: &args.carrier,
        };
        let waiting_side = WaitingSide::open(state, own.clone(), waiting_config).await?;
        let endpoint = waiting_side.endpoint().clone();
        let here = LocalListener::listen(&endpoint, run, transport, failed_handshakes)?;
        let open = PublicListener {
            waiting_side,
            own,
            here,
            admitted: Mutex::default(),
        };
        Ok((Self::Public(Box::new(open)), endpoint))
    }

    /// Shows how to be reached, where that takes a secret.
    pub(crate) fn invite(&self) -> Result<(), Failure> {
        match self {
            Self::Clear(_) | Self::Local(_) => Ok(()),
            Self::Public(open) => open.waiting_side.invite(),
        }
    }

    /// The next control connection. Cancel safe.
    pub(crate) async fn accept(&self) -> Result<AdmittedClient, Failure> {
        let cannot = |error: io::Error| Failure::network(format!("cannot accept: {error}"));
        match self {
            Self::Clear(listener) => {
                let (stream, _) = listener
                    .accept()
                    .await
                    .map_err(|error| cannot(error.into()))?;
                Ok(AdmittedClient {
                    link: PeerStream::Clear(stream),
                    security: DataSecurity::Clear,
                    met: None,
                })
            }
            Self::Local(here) => here.accept().await.map_err(cannot),
            Self::Public(open) => {
                let PublicListener {
                    waiting_side,
                    own,
                    here,
                    ..
                } = &**open;
                let arrival = tokio::select! {
                    arrival = waiting_side.accept() => arrival?,
                    accepted = here.accept() => return accepted.map_err(cannot),
                };
                // The ticket or the code has its owner now; others come with new ones.
                open.replace(&arrival.met)?;
                Ok(AdmittedClient {
                    link: arrival.link,
                    security: DataSecurity::Keys {
                        own: own.identity.clone(),
                        peer: arrival.met.peer,
                    },
                    met: Some(arrival.met),
                })
            }
        }
    }

    /// Addresses that a client can type.
    pub(crate) fn addresses(&self) -> Vec<String> {
        match self {
            Self::Clear(listener) => vec![listener.local_addr().to_string()],
            Self::Local(here) => vec![here.listener.local_addr().to_string()],
            Self::Public(open) => {
                let addresses = open.waiting_side.addresses().into_iter();
                addresses.map(|address| address.to_string()).collect()
            }
        }
    }

    /// The only test is complete: what let the client in serves no more.
    pub(crate) fn complete(&self, met: &Authenticated) {
        if let Self::Public(open) = self
            && let Err(failure) = open.waiting_side.complete(met)
        {
            eprintln!("tack: {failure}");
        }
    }

    pub(crate) fn is_clear(&self) -> bool {
        matches!(self, Self::Clear(_))
    }
}
