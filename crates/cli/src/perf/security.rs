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
use tack_pairing::meeting::{How, Intent, Met};
use tokio::sync::mpsc;

use super::args::PerfArgs;
use crate::address::{Address, Reach};
use crate::exit::Failure;
use crate::identity::Own;
use crate::meeting::{self, Approach, Link, Reception, Target, Waits};
use crate::net::{
    self, CLEAR_PERF_PORT, Dial, Encryption, MET_PERF_PORT, PERF_PORT, PERF_UDP_PORT,
};

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
    pub(crate) fn of(link: &Link) -> Self {
        match link {
            Link::Clear(_) => Self::default(),
            Link::Secure(stream, _) => Self {
                encrypted: true,
                cipher: Some(stream.cipher()),
                key_exchange: Some(stream.key_exchange()),
            },
        }
    }
}

/// What the data connections of a test have to show.
#[derive(Clone, Debug)]
pub(crate) enum Bond {
    Clear,
    /// These keys: after a meeting the long-term ones, on one machine those of this run.
    Keys {
        own: Identity,
        peer: PublicKey,
    },
}

impl Bond {
    /// Another connection to the peer of `control`, at its TCP port `port`.
    pub(crate) async fn another(
        &self,
        control: &Link,
        port: u16,
        config: &Config,
    ) -> io::Result<Link> {
        let endpoint = control.endpoint();
        let connect = endpoint.connect(control.peer_addr()).port(port);
        let connect = connect.config(config.clone());
        match self {
            Self::Clear => Ok(Link::Clear(connect.await?)),
            Self::Keys { own, peer } => {
                let connect = connect.expecting(*peer, ALPN).identity(own.clone());
                Ok(Link::Secure(Box::new(connect.await?), *peer))
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
    pub(crate) async fn accept(&self) -> io::Result<Link> {
        Ok(match self {
            Self::Clear(listener) => Link::Clear(listener.accept().await?.0),
            Self::Keys(listener) => Link::by_tls(listener.accept().await?.0),
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
) -> Result<(Link, Bond), Failure> {
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
        patience: args.connect_timeout,
    };
    match server {
        Target::Address(address) if args.is_clear() => {
            let stream = net::connect(address, &dial, config).await?;
            Ok((Link::Clear(stream), Bond::Clear))
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
            Ok((Link::by_tls(stream), Bond::Keys { own, peer }))
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

async fn meet(args: &PerfArgs, server: &Target, config: &Config) -> Result<(Link, Bond), Failure> {
    let state = args.meeting.state.open()?;
    let (own, _) = Own::load_or_make(&state)?;
    let approach = Approach {
        target: server,
        intent: Intent::Measure,
        own: &own,
        state: &state,
        dial: meeting::Dial {
            tcp_port: MET_PERF_PORT,
            service: SERVICE,
            from: args.bind,
            config: config.clone(),
        },
        udp_port: PERF_UDP_PORT,
        family: args.family(),
        patience: args.connect_timeout,
        wait: args.meeting.wait(matches!(server, Target::Code(_, None))),
        remember: args.meeting.remember.as_ref(),
    };
    let (link, met) = meeting::reach(&approach).await?;
    let bond = Bond::Keys {
        own: own.identity.clone(),
        peer: met.peer,
    };
    Ok((link, bond))
}

/// A peer without a connection, and why it has none.
pub(crate) type Stranger = (SocketAddr, String);

/// Where control connections arrive.
pub(crate) enum Entrance {
    /// From anybody, in clear text.
    Clear(Listener),
    /// From this machine.
    Here(Box<Here>),
    /// From this machine, and from who is let in.
    Open(Box<Open>),
}

/// The ports for clients on this machine and for those that are let in.
pub(crate) struct Open {
    reception: Reception,
    own: Own,
    here: Here,
    /// Clients that an invitation has let in, the latest ones.
    guests: Mutex<VecDeque<PublicKey>>,
}

impl Open {
    /// True when an invitation was used up by this client: another one takes its place.
    fn is_new(&self, client: PublicKey) -> bool {
        if self.reception.serves_many() {
            return false;
        }
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        if guests.contains(&client) {
            return false;
        }
        guests.push_back(client);
        if guests.len() > MAX_GUESTS {
            guests.pop_front();
        }
        true
    }
}

/// A client that was let in.
pub(crate) struct Guest {
    pub(crate) link: Link,
    pub(crate) bond: Bond,
    /// How it proved itself, unless it is on this machine or in clear text.
    pub(crate) met: Option<Box<Met>>,
}

/// The port for clients on this machine.
pub(crate) struct Here {
    listener: SecureListener,
    own: Identity,
}

impl Here {
    fn listen(
        endpoint: &Endpoint,
        own: Identity,
        options: ListenOptions,
        strangers: mpsc::Sender<Stranger>,
    ) -> Result<Self, Failure> {
        let admit =
            |_: &PublicKey, peer: SocketAddr| admission(peer.ip().to_canonical().is_loopback());
        let options = SecureListenOptions::new(ALPN, admit)
            .identity(own.clone())
            .transport(options)
            .on_failure(move |peer, error| {
                // What does not fit is a flood, and one like the other.
                let _ = strangers.try_send((peer, error.to_string()));
            });
        let listener = endpoint
            .listen_secure(PERF_PORT, options)
            .map_err(|error| Failure::network(format!("cannot listen: {error}")))?;
        Ok(Self { listener, own })
    }

    async fn accept(&self) -> io::Result<Guest> {
        let (stream, _) = self.listener.accept().await?;
        Ok(Guest {
            bond: Bond::Keys {
                own: self.own.clone(),
                peer: stream.peer_key(),
            },
            link: Link::by_tls(stream),
            met: None,
        })
    }
}

/// How a server listens.
pub(crate) struct Opening<'a> {
    pub(crate) args: &'a PerfArgs,
    pub(crate) config: Config,
    pub(crate) backlog: usize,
    pub(crate) max_connections: usize,
    /// Hears of peers whose handshake failed, and why, while there is room.
    pub(crate) strangers: mpsc::Sender<Stranger>,
}

impl Entrance {
    /// Listens, and says on what.
    pub(crate) async fn open(opening: Opening<'_>) -> Result<(Self, Endpoint), Failure> {
        let Opening {
            args,
            config,
            backlog,
            max_connections,
            strangers,
        } = opening;
        let at = args.listen_address();
        let (udp_port, family) = (args.udp_port(), args.family());
        let transport = ListenOptions::new().config(config.clone()).backlog(backlog);
        let serve =
            |reach, identity| net::serve(&at, udp_port, reach, family, max_connections, identity);
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
            let here = Here::listen(&endpoint, run, transport, strangers)?;
            return Ok((Self::Here(Box::new(here)), endpoint));
        }
        let state = args.meeting.state.open()?;
        let (own, _) = Own::load_or_make(&state)?;
        let waits = Waits {
            intent: Intent::Measure,
            command: "tack perf",
            args: &args.meeting.waiting,
            remember: args.meeting.remember.clone(),
            listen: &at,
            family,
            udp_port,
            tcp_port: MET_PERF_PORT,
            config,
            max_connections,
        };
        let reception = Reception::open(state, own.clone(), waits).await?;
        let endpoint = reception.endpoint().clone();
        let here = Here::listen(&endpoint, run, transport, strangers)?;
        let open = Open {
            reception,
            own,
            here,
            guests: Mutex::default(),
        };
        Ok((Self::Open(Box::new(open)), endpoint))
    }

    /// Shows how to be reached, where that takes a secret.
    pub(crate) fn invite(&self) -> Result<(), Failure> {
        match self {
            Self::Clear(_) | Self::Here(_) => Ok(()),
            Self::Open(open) => open.reception.invite(),
        }
    }

    /// The next control connection. Cancel safe.
    pub(crate) async fn accept(&self) -> Result<Guest, Failure> {
        let cannot = |error: io::Error| Failure::network(format!("cannot accept: {error}"));
        match self {
            Self::Clear(listener) => {
                let (stream, _) = listener
                    .accept()
                    .await
                    .map_err(|error| cannot(error.into()))?;
                Ok(Guest {
                    link: Link::Clear(stream),
                    bond: Bond::Clear,
                    met: None,
                })
            }
            Self::Here(here) => here.accept().await.map_err(cannot),
            Self::Open(open) => {
                let Open {
                    reception,
                    own,
                    here,
                    ..
                } = &**open;
                let arrival = tokio::select! {
                    arrival = reception.accept() => arrival?,
                    accepted = here.accept() => return accepted.map_err(cannot),
                };
                // The ticket or the code has its owner now; others come with new ones.
                if arrival.met.how != How::Known && open.is_new(arrival.met.peer) {
                    reception.invite()?;
                }
                Ok(Guest {
                    link: arrival.link,
                    bond: Bond::Keys {
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
            Self::Here(here) => vec![here.listener.local_addr().to_string()],
            Self::Open(open) => {
                let addresses = open.reception.addresses().iter();
                addresses.map(ToString::to_string).collect()
            }
        }
    }

    /// The only test is complete: what let the client in serves no more.
    pub(crate) fn complete(&self, met: &Met) {
        if let Self::Open(open) = self
            && let Err(failure) = open.reception.complete(met)
        {
            eprintln!("tack: {failure}");
        }
    }

    pub(crate) fn is_clear(&self) -> bool {
        matches!(self, Self::Clear(_))
    }
}
