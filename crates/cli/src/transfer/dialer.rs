//! Where the connections of transfers come from, when this side begins: by meeting the target, or
//! by waiting for it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tack_pairing::meeting::{Intent, Met};

use super::args::TransportArgs;
use super::entrance::Entrance;
use crate::address::{Address, Family, Reach, ReachArgs};
use crate::exit::Failure;
use crate::identity::Own;
use crate::meeting::{self, Approach, Link, MeetingArgs, Target};
use crate::net::{self, TRANSFER_PORT, TRANSFER_UDP_PORT};
use crate::state::StateDir;

/// Makes connections to one peer.
pub(crate) struct PeerDialer<'a> {
    way: Way<'a>,
    /// With whom the last connection was made.
    met: Mutex<Option<Box<Met>>>,
}

enum Way<'a> {
    Clear(Box<(Address, net::Dial, tack::Config)>),
    Meet(Box<Meet<'a>>),
    /// The other side connects.
    Wait(Entrance),
}

struct Meet<'a> {
    /// The target; after the first meeting the key and the address that were met.
    target: Mutex<Target>,
    intent: Intent,
    own: Own,
    state: StateDir,
    args: &'a MeetingArgs,
    dial: meeting::Dial,
    patience: Duration,
}

/// What connections to a peer are made from.
pub(crate) struct Dialing<'a> {
    pub(crate) target: Target,
    pub(crate) reach: ReachArgs,
    pub(crate) meeting: &'a MeetingArgs,
    pub(crate) transport: &'a TransportArgs,
    /// How long a silent peer is waited for.
    pub(crate) silence: Duration,
    /// How long a connection may take.
    pub(crate) patience: Duration,
    pub(crate) intent: Intent,
    /// What serves there, for messages.
    pub(crate) service: &'static str,
}

impl<'a> PeerDialer<'a> {
    /// Connects to the target.
    pub(crate) fn new(dialing: Dialing<'a>) -> Result<Self, Failure> {
        let config = dialing.transport.config(dialing.silence);
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
                patience: dialing.patience,
            };
            Way::Clear(Box::new((address, dial, config)))
        } else {
            let state = dialing.meeting.state.open()?;
            let (own, _) = Own::load_or_make(&state)?;
            Way::Meet(Box::new(Meet {
                target: Mutex::new(dialing.target),
                intent: dialing.intent,
                own,
                state,
                args: dialing.meeting,
                dial: meeting::Dial {
                    tcp_port: TRANSFER_PORT,
                    service: dialing.service,
                    from: None,
                    config,
                },
                patience: dialing.patience,
            }))
        };
        Ok(Self::by(way))
    }

    /// Waits for the other side at `entrance`.
    pub(crate) fn waiting(entrance: Entrance) -> Self {
        Self::by(Way::Wait(entrance))
    }

    fn by(way: Way<'a>) -> Self {
        Self {
            way,
            met: Mutex::new(None),
        }
    }

    /// The next connection.
    pub(crate) async fn dial(&self) -> Result<Link, Failure> {
        let (link, met) = match &self.way {
            Way::Clear(clear) => {
                let (address, dial, config) = &**clear;
                let stream = net::connect(address, dial, config).await?;
                (Link::Clear(stream), None)
            }
            Way::Wait(entrance) => entrance.accept().await?,
            Way::Meet(meet) => {
                let (link, met) = meet.dial().await?;
                (link, Some(met))
            }
        };
        *self.met.lock().unwrap_or_else(PoisonError::into_inner) = met;
        Ok(link)
    }

    /// The transfer is complete.
    pub(crate) fn complete(&self) {
        if let Way::Wait(entrance) = &self.way {
            let met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
            entrance.complete(met.as_deref());
        }
    }
}

impl Meet<'_> {
    async fn dial(&self) -> Result<(Link, Box<Met>), Failure> {
        let target = self
            .target
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let approach = Approach {
            target: &target,
            intent: self.intent,
            own: &self.own,
            state: &self.state,
            dial: self.dial.clone(),
            udp_port: TRANSFER_UDP_PORT,
            family: Family::Any,
            patience: self.patience,
            wait: self.args.wait(matches!(target, Target::Code(_, None))),
            remember: self.args.remember.as_ref(),
        };
        let (link, met) = meeting::reach(&approach).await?;
        // A code serves once; whoever has met us lets our key come back.
        if matches!(target, Target::Code(..)) {
            let again = Target::Met(met.peer, link.peer_addr());
            *self.target.lock().unwrap_or_else(PoisonError::into_inner) = again;
        }
        Ok((link, met))
    }
}
