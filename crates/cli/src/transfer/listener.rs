//! Where the connections of transfers come from, when this side waits.

use tack::{Endpoint, ListenOptions, Listener};
use tack_pairing::meeting::{Authenticated, Intent, ProofMethod};

use super::args::TransportArgs;
use crate::address::{Address, Family, Reach, ReachArgs};
use crate::exit::Failure;
use crate::identity::OwnIdentity;
use crate::meeting::{AlsoServes, MeetingArgs, PeerStream, WaitingConfig, WaitingSide};
use crate::net::{self, TRANSFER_PORT, TRANSFER_UDP_PORT};
use crate::volume::Volume;

/// The port on which a waiting side accepts transfers.
pub(crate) enum TransferListener {
    /// A port in clear text, for anybody.
    Clear(Listener, Endpoint),
    /// An encrypted port, for authenticated peers.
    Secure(Box<WaitingSide>),
}

/// Options of a waiting side.
pub(crate) struct Listen<'a> {
    pub(crate) at: Option<&'a Address>,
    pub(crate) reach: ReachArgs,
    pub(crate) meeting: &'a MeetingArgs,
    pub(crate) volume: Volume,
    pub(crate) transport: &'a TransportArgs,
    /// Longest silence of a peer before its connection is given up.
    pub(crate) silence: std::time::Duration,
    pub(crate) intent: Intent,
    /// What a person types on the other side.
    pub(crate) command: &'static str,
    pub(crate) max_connections: usize,
    /// Most of them that one peer may have.
    pub(crate) max_of_peer: usize,
    pub(crate) backlog: usize,
}

impl TransferListener {
    /// Opens the socket and listens.
    pub(crate) async fn open(listen: Listen<'_>) -> Result<Self, Failure> {
        let config = listen.transport.transfer_config(listen.silence);
        if listen.reach.reach() == Reach::Anywhere {
            let local = Address::local(TRANSFER_UDP_PORT);
            let endpoint = net::serve(
                &listen.transport.carrier,
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
        let state = listen.meeting.peer.state.open()?;
        let (own, _) = OwnIdentity::load_or_make(&state)?;
        let everywhere = Address::everywhere(TRANSFER_UDP_PORT);
        let waiting_config = WaitingConfig {
            intent: listen.intent,
            also: AlsoServes::nothing(),
            command: listen.command,
            after: "",
            args: &listen.meeting.waiting,
            remember: listen.meeting.peer.remember.clone(),
            volume: listen.volume,
            listen: listen.at.unwrap_or(&everywhere),
            socket: None,
            family: Family::Any,
            udp_port: TRANSFER_UDP_PORT,
            tcp_port: TRANSFER_PORT,
            config,
            max_connections: listen.max_connections,
            max_of_peer: listen.max_of_peer,
            carrier: &listen.transport.carrier,
        };
        let waiting_side = WaitingSide::open(state, own, waiting_config).await?;
        Ok(Self::Secure(Box::new(waiting_side)))
    }

    /// Prints the ticket and the code, if the port is encrypted.
    pub(crate) fn invite(&self) -> Result<(), Failure> {
        match self {
            Self::Clear(..) => Ok(()),
            Self::Secure(waiting_side) => waiting_side.invite(),
        }
    }

    /// The next connection and its authenticated peer. Cancel safe.
    pub(crate) async fn accept(&self) -> Result<(PeerStream, Option<Box<Authenticated>>), Failure> {
        match self {
            Self::Clear(listener, _) => {
                let accepted = listener.accept().await;
                let (stream, _) = accepted
                    .map_err(|error| Failure::network(format!("cannot accept: {error}")))?;
                Ok((PeerStream::Clear(stream), None))
            }
            Self::Secure(waiting_side) => {
                let arrival = waiting_side.accept().await?;
                Ok((arrival.link, Some(arrival.met)))
            }
        }
    }

    /// Ends the validity of the ticket or code: the transfer is complete.
    pub(crate) fn complete(&self, met: Option<&Authenticated>) {
        if let (Self::Secure(waiting_side), Some(met)) = (self, met)
            && let Err(failure) = waiting_side.complete(met)
        {
            eprintln!("tack: {failure}");
        }
    }

    /// Shows anew what that has used up, for further transfers.
    pub(crate) fn replace(&self, met: Option<&Authenticated>) {
        if let (Self::Secure(waiting_side), Some(met)) = (self, met)
            && met.how != ProofMethod::Known
            && let Err(failure) = waiting_side.replace(met.how)
        {
            eprintln!("tack: {failure}");
        }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        match self {
            Self::Clear(_, endpoint) => endpoint.clone(),
            Self::Secure(waiting_side) => waiting_side.endpoint().clone(),
        }
    }

    /// Addresses that a peer can type.
    pub(crate) fn addresses(&self) -> Vec<String> {
        match self {
            Self::Clear(listener, _) => vec![listener.local_addr().to_string()],
            Self::Secure(waiting_side) => waiting_side
                .addresses()
                .iter()
                .map(ToString::to_string)
                .collect(),
        }
    }

    /// True in clear text on an address that is not of this machine alone.
    pub(crate) fn is_open_to_others(&self) -> bool {
        match self {
            Self::Clear(listener, _) => !listener.local_addr().ip().is_loopback(),
            Self::Secure(_) => false,
        }
    }

    /// Withdraws the announcement of the code.
    pub(crate) fn withdraw(&self) {
        if let Self::Secure(waiting_side) = self {
            waiting_side.withdraw();
        }
    }
}
