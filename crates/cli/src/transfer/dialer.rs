//! Where the connections of transfers come from, when this side begins: by meeting the target, or
//! by waiting for it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tack_pairing::meeting::{Authenticated, Intent};

use super::args::TransportArgs;
use super::listener::TransferListener;
use crate::address::{Address, Family, Reach, ReachArgs};
use crate::exit::Failure;
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
    Clear(Box<(Address, net::Dial, tack::Config)>),
    Meet(Box<MeetingParams<'a>>),
    /// The other side connects.
    Wait(TransferListener),
}

struct MeetingParams<'a> {
    /// The target; after the first meeting the key and the address that were met.
    target: Mutex<Target>,
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
            ConnectMethod::Clear(Box::new((address, dial, config)))
        } else {
            let state = dialing.meeting.peer.state.open()?;
            let (own, _) = OwnIdentity::load_or_make(&state)?;
            ConnectMethod::Meet(Box::new(MeetingParams {
                target: Mutex::new(dialing.target),
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

    /// Waits for the other side at `entrance`.
    pub(crate) fn waiting(listener: TransferListener) -> Self {
        Self::by(ConnectMethod::Wait(listener))
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
                let (address, dial, config) = &**clear;
                let stream = net::connect(address, dial, config).await?;
                (PeerStream::Clear(stream), None)
            }
            ConnectMethod::Wait(listener) => listener.accept().await?,
            ConnectMethod::Meet(meet) => {
                let (link, met) = meet.dial().await?;
                (link, Some(met))
            }
        };
        *self.met.lock().unwrap_or_else(PoisonError::into_inner) = met;
        Ok(link)
    }

    /// Ends the validity of the ticket or code: the transfer is complete.
    pub(crate) fn complete(&self) {
        if let ConnectMethod::Wait(listener) = &self.way {
            let met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
            listener.complete(met.as_deref());
        }
    }
}

impl MeetingParams<'_> {
    async fn dial(&self) -> Result<(PeerStream, Box<Authenticated>), Failure> {
        let target = self
            .target
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let connect_options = ConnectOptions {
            target: &target,
            intent: self.intent,
            own: &self.own,
            state: &self.state,
            dial: self.dial.clone(),
            udp_port: TRANSFER_UDP_PORT,
            family: Family::Any,
            connect_timeout: self.connect_timeout,
            // Whoever has a name may be the first to start, too.
            wait: self
                .args
                .peer
                .wait(matches!(target, Target::Code(_, None) | Target::Name(_))),
            remember: self.args.peer.remember.as_ref(),
            volume: self.volume,
        };
        let (link, met) = meeting::reach(&connect_options).await?;
        // A code serves once; whoever has met us lets our key come back.
        if matches!(target, Target::Code(..)) {
            let again = Target::Authenticated(met.peer, link.peer_addr());
            *self.target.lock().unwrap_or_else(PoisonError::into_inner) = again;
        }
        Ok((link, met))
    }
}
