//! Where the connections of transfers come from, when this side waits.

use tack::{Endpoint, ListenOptions, Listener};
use tack_pairing::meeting::{Intent, Met};

use super::args::TransportArgs;
use crate::address::{Address, Family, Reach, ReachArgs};
use crate::exit::Failure;
use crate::identity::Own;
use crate::meeting::{Link, MeetingArgs, Reception, Waits};
use crate::net::{self, TRANSFER_PORT, TRANSFER_UDP_PORT};

/// A port that is listened on.
pub(crate) enum Entrance {
    /// For anybody, in clear text.
    Clear(Listener, Endpoint),
    /// For whoever is let in.
    Secure(Box<Reception>),
}

/// What a waiting side needs to know.
pub(crate) struct Listen<'a> {
    pub(crate) at: Option<&'a Address>,
    pub(crate) reach: ReachArgs,
    pub(crate) meeting: &'a MeetingArgs,
    pub(crate) transport: &'a TransportArgs,
    /// How long a silent peer is waited for.
    pub(crate) silence: std::time::Duration,
    pub(crate) intent: Intent,
    /// What a person types on the other side.
    pub(crate) command: &'static str,
    pub(crate) max_connections: usize,
    pub(crate) backlog: usize,
}

impl Entrance {
    /// Listens.
    pub(crate) async fn open(listen: Listen<'_>) -> Result<Self, Failure> {
        let config = listen.transport.config(listen.silence);
        if listen.reach.reach() == Reach::Anywhere {
            let local = Address::local(TRANSFER_UDP_PORT);
            let endpoint = net::serve(
                listen.at.unwrap_or(&local),
                TRANSFER_UDP_PORT,
                Reach::Anywhere,
                Family::Any,
                listen.max_connections,
                None,
            )
            .await?;
            let options = ListenOptions::new().config(config).backlog(listen.backlog);
            let listener = endpoint
                .listen_with(TRANSFER_PORT, options)
                .map_err(|error| Failure::network(format!("cannot listen: {error}")))?;
            return Ok(Self::Clear(listener, endpoint));
        }
        let state = listen.meeting.state.open()?;
        let (own, _) = Own::load_or_make(&state)?;
        let everywhere = Address::everywhere(TRANSFER_UDP_PORT);
        let waits = Waits {
            intent: listen.intent,
            command: listen.command,
            args: &listen.meeting.waiting,
            remember: listen.meeting.remember.clone(),
            listen: listen.at.unwrap_or(&everywhere),
            family: Family::Any,
            udp_port: TRANSFER_UDP_PORT,
            tcp_port: TRANSFER_PORT,
            config,
            max_connections: listen.max_connections,
        };
        let reception = Reception::open(state, own, waits).await?;
        Ok(Self::Secure(Box::new(reception)))
    }

    /// Shows how to be reached, where that takes a secret.
    pub(crate) fn invite(&self) -> Result<(), Failure> {
        match self {
            Self::Clear(..) => Ok(()),
            Self::Secure(reception) => reception.invite(),
        }
    }

    /// The next connection, and with whom. Cancel safe.
    pub(crate) async fn accept(&self) -> Result<(Link, Option<Box<Met>>), Failure> {
        match self {
            Self::Clear(listener, _) => {
                let accepted = listener.accept().await;
                let (stream, _) = accepted
                    .map_err(|error| Failure::network(format!("cannot accept: {error}")))?;
                Ok((Link::Clear(stream), None))
            }
            Self::Secure(reception) => {
                let arrival = reception.accept().await?;
                Ok((arrival.link, Some(arrival.met)))
            }
        }
    }

    /// The transfer is complete: its ticket or code serves no more.
    pub(crate) fn complete(&self, met: Option<&Met>) {
        if let (Self::Secure(reception), Some(met)) = (self, met)
            && let Err(failure) = reception.complete(met)
        {
            eprintln!("tack: {failure}");
        }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        match self {
            Self::Clear(_, endpoint) => endpoint.clone(),
            Self::Secure(reception) => reception.endpoint().clone(),
        }
    }

    /// Addresses that a peer can type.
    pub(crate) fn addresses(&self) -> Vec<String> {
        match self {
            Self::Clear(listener, _) => vec![listener.local_addr().to_string()],
            Self::Secure(reception) => reception
                .addresses()
                .iter()
                .map(ToString::to_string)
                .collect(),
        }
    }

    /// Nobody is waited for any more.
    pub(crate) fn withdraw(&self) {
        if let Self::Secure(reception) = self {
            reception.withdraw();
        }
    }
}
