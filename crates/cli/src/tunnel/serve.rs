//! `tack serve`: the other end of tunnels. It says which peers may come, and where to.

mod accepted;
mod access;
mod service;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tack::secure::{Admission, SecureListenOptions};
use tack::{Config, ListenOptions};
use tack_pairing::meeting::{Intent, ProofMethod};

use super::dial::keep_alive;
use super::rules::TargetRule;
use super::{ALPN, SERVE_PORT, SERVE_UDP_PORT, TUNNEL_PORT};
use crate::address::{Address, Family};
use crate::exit::{Exit, Failure};
use crate::identity::OwnIdentity;
use crate::meeting::{PeerStream, WaitArgs, WaitingConfig, WaitingSide};
use crate::observe::{self, ObserveArgs};
use crate::peers::PeerName;
use crate::signals::Signals;
use crate::state::StateArgs;
use crate::transfer::TransportArgs;
use crate::values::{listen, silence};
use access::Access;
use service::Service;

/// Connections of ours that are not yet in a place: handshakes and requests.
const BEFORE_A_PLACE: usize = 1024;
/// How long connections may take to close at the program's end.
const WIND_UP: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on, or a port of 127.0.0.1; port 0 picks a free port [default: port 7777
    /// of all addresses]
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    listen: Option<Address>,
    /// Connect peers to this target: HOST:PORTS, where HOST is a name, an address, a network
    /// (10.0.0.0/8), *.DOMAIN or *, and PORTS a port, a range (8000-8099) or *. Names below a
    /// domain and * stand for public addresses alone: what is private has to be named
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
    /// Maximum number of carried connections
    #[arg(long, value_name = "N", default_value_t = 8192)]
    max_connections: u32,
    /// Maximum number of carried connections of a peer
    #[arg(long, value_name = "N", default_value_t = 4096)]
    max_per_peer: u32,
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

/// Serves tunnels until a signal.
pub(crate) async fn serve(args: ServeArgs) -> Result<Exit, Failure> {
    if args.targets.is_empty() && args.remote_listen.is_empty() {
        return Err(Failure::usage(
            "nothing to serve: expected --target or --remote-listen (for example --target nas:22)",
        ));
    }
    let invites = args.invite || args.waiting.wants_ticket();
    let mut signals = Signals::new()?;
    let state = args.state.open()?;
    let (own, _) = OwnIdentity::load_or_make(&state)?;
    let access = Arc::new(Access::new(state.clone(), args.allowed)?);
    let config = Config {
        keep_alive: Some(keep_alive(args.timeout)),
        ..args.transport.config(args.timeout)
    };
    let everywhere = Address::everywhere(SERVE_UDP_PORT);
    let closed = WaitArgs::without_code();
    let waiting_side = WaitingSide::open(
        state,
        own.clone(),
        WaitingConfig {
            intent: Intent::Forward,
            command: "tack connect",
            args: if invites { &args.waiting } else { &closed },
            remember: args.remember,
            listen: args.listen.as_ref().unwrap_or(&everywhere),
            family: Family::Any,
            udp_port: SERVE_UDP_PORT,
            tcp_port: SERVE_PORT,
            config: config.clone(),
            max_connections: args.max_connections as usize + BEFORE_A_PLACE,
            carrier: &args.transport.carrier,
        },
    )
    .await?;
    let admitting = Arc::clone(&access);
    let options = SecureListenOptions::new(ALPN, move |key, _| {
        if admitting.admits(key) {
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
    let service = Arc::new(Service::new(
        args.targets,
        args.remote_listen,
        args.max_connections,
        args.max_per_peer,
        Arc::clone(&access),
        args.verbose,
    ));
    let asked = Arc::clone(&service);
    observe::extend_status(move || asked.status());
    let exit = loop {
        let stream = tokio::select! {
            arrival = waiting_side.accept() => {
                let arrival = arrival?;
                if !matches!(arrival.met.how, ProofMethod::Known) {
                    access.let_in(arrival.met.peer);
                    // What let it in has served.
                    waiting_side.complete(&arrival.met)?;
                }
                arrival.link
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => PeerStream::by_tls(stream),
                Err(error) => return Err(Failure::failed("cannot accept", error)),
            },
            exit = signals.next() => break exit,
        };
        tokio::spawn(service::serve_one(Arc::clone(&service), stream));
    };
    // What is not through by then is reset.
    let _ = waiting_side.endpoint().shutdown(WIND_UP).await;
    Ok(exit)
}
