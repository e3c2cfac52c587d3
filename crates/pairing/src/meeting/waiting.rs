//! The side that waits.

use super::Channel;
use super::connecting::{pake_array, refuse};
use super::message::{IdentityProof, Malformed, Message};
use super::outcome::{Authenticated, Failed, Intent, ProofMethod, Refusal, Step};
use super::proof::{self, Exchange, Role, SharedKey};
use crate::code::{Attempt, Unavailable};
use crate::rotation::{Rotation, leads};
use crate::secret::Secret;
use crate::ticket::TicketId;
use tack::secure::{Identity, PublicKey};

/// The decisions and the memory of the waiting program.
pub trait Host {
    /// Whether it serves this.
    ///
    /// # Errors
    ///
    /// Why not.
    fn serves(&mut self, intent: Intent) -> Result<(), Refusal>;

    /// The secret of a ticket that it issued and that has not expired.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn ticket(&mut self, id: &TicketId) -> Result<Secret, Refusal>;

    /// `key` has proven the ticket: binds it to the first such key.
    ///
    /// # Errors
    ///
    /// It is bound to another key, or the binding cannot be stored.
    fn bind(&mut self, id: &TicketId, key: &PublicKey) -> Result<(), Refusal>;

    /// Takes the code with this number for one attempt.
    ///
    /// # Errors
    ///
    /// Why not.
    fn code(&mut self, number: u16) -> Result<Attempt, Unavailable>;

    /// `key` proved a code, and may come back with its key alone to finish what it begins now.
    ///
    /// # Errors
    ///
    /// That cannot be stored.
    fn meet(&mut self, key: &PublicKey) -> Result<(), Refusal>;

    /// Whether `key` is known, or follows from a known one by `rotations`, which are not verified
    /// yet.
    ///
    /// # Errors
    ///
    /// It is not.
    fn admit(&mut self, key: &PublicKey, rotations: &[Rotation]) -> Result<(), Refusal>;
}

/// The waiting side's state machine.
pub struct Waiting {
    channel: Channel,
    own: Identity,
    rotations: Vec<Rotation>,
    state: State,
}

enum State {
    First,
    Confirm {
        key: SharedKey,
        attempt: Attempt,
        intent: Intent,
    },
    Identity {
        intent: Intent,
    },
    Over,
}

impl Waiting {
    /// Waits for the first message. `own` is the long-term identity; TLS has shown it, except where
    /// it waits for a code.
    pub fn new(channel: Channel, own: Identity, rotations: Vec<Rotation>) -> Self {
        Self {
            channel,
            own,
            rotations,
            state: State::First,
        }
    }

    /// Handles a message of the connecting side.
    ///
    /// # Errors
    ///
    /// One side refuses the other; the meeting is over.
    pub fn handle(&mut self, bytes: &[u8], host: &mut dyn Host) -> Result<Step, Failed> {
        let state = std::mem::replace(&mut self.state, State::Over);
        let message = Message::decode(bytes).map_err(|malformed| {
            refuse(match malformed {
                Malformed::Version(_) => Refusal::Version,
                _ => Refusal::Protocol,
            })
        })?;
        match (state, message) {
            (State::Over, _) => Err(refuse(Refusal::Protocol)),
            (_, Message::Refused(refusal)) => Err(Failed::Refused(refusal)),
            (State::First, first) => self.first(first, host),
            (
                State::Confirm {
                    key,
                    attempt,
                    intent,
                },
                Message::Confirm { mac },
            ) => {
                if !key.is_confirmed(&self.channel, &mac) {
                    // Dropping the attempt burns the code.
                    return Err(refuse(Refusal::WrongSecret));
                }
                attempt.confirmed();
                let identity = IdentityProof {
                    key: self.own.public_key(),
                    signature: proof::sign(&self.own, &self.channel, Role::Waiting),
                    rotations: self.rotations.clone(),
                };
                let mac = key.confirmation(&self.channel);
                self.state = State::Identity { intent };
                Ok(Step::Send(Message::Confirmed { mac, identity }.encode()))
            }
            (State::Identity { intent }, Message::Identity(identity)) => {
                let key = identity.key;
                let (channel, role) = (&self.channel, Role::Waiting);
                if !proof::identity_is_right(&key, &identity.signature, channel, role) {
                    return Err(refuse(Refusal::Protocol));
                }
                host.meet(&key).map_err(refuse)?;
                Ok(self.welcome(key, identity.rotations, ProofMethod::Code, intent))
            }
            _ => Err(refuse(Refusal::Protocol)),
        }
    }

    fn first(&mut self, message: Message, host: &mut dyn Host) -> Result<Step, Failed> {
        let peer = self.channel.peer_key;
        // Where TLS showed a key that is made for codes, nothing else is answered: it would say
        // whose it is.
        let is_for_codes = self.channel.own_key != self.own.public_key();
        if is_for_codes != matches!(message, Message::Code { .. }) {
            return Err(refuse(Refusal::Protocol));
        }
        match message {
            Message::Ticket {
                intent,
                id,
                proof,
                rotations,
            } => {
                let secret = host.ticket(&id).map_err(refuse)?;
                if !proof::ticket_is_right(&secret, &self.channel, &proof) {
                    return Err(refuse(Refusal::WrongSecret));
                }
                // Only now: a stranger must not use the ticket up, nor one who wants something
                // else.
                host.serves(intent).map_err(refuse)?;
                host.bind(&id, &peer).map_err(refuse)?;
                Ok(self.welcome(peer, rotations, ProofMethod::Ticket(id), intent))
            }
            Message::Known { intent, rotations } => {
                host.admit(&peer, &rotations).map_err(refuse)?;
                host.serves(intent).map_err(refuse)?;
                Ok(self.welcome(peer, rotations, ProofMethod::Known, intent))
            }
            Message::Code {
                intent,
                number,
                pake,
            } => {
                host.serves(intent).map_err(refuse)?;
                let attempt = host.code(number).map_err(|why| {
                    refuse(match why {
                        Unavailable::Number => Refusal::UnknownCode,
                        Unavailable::Busy => Refusal::CodeBusy,
                        Unavailable::Burnt => Refusal::CodeBurnt,
                        Unavailable::Used => Refusal::CodeUsed,
                    })
                })?;
                let (exchange, own) = Exchange::begin(attempt.code(), &self.channel, Role::Waiting);
                let key = exchange
                    .finish(&pake)
                    .ok_or_else(|| refuse(Refusal::Protocol))?;
                self.state = State::Confirm {
                    key,
                    attempt,
                    intent,
                };
                let pake = pake_array(own);
                Ok(Step::Send(Message::Pake { pake }.encode()))
            }
            Message::Ask { known } => {
                // Told only to who names an earlier key: to others the old and the new one stay
                // two.
                let own = self.own.public_key();
                if !leads(&known, &own, &self.rotations) {
                    return Err(refuse(Refusal::UnknownKey));
                }
                let rotations = self.rotations.clone();
                Ok(Step::Close(Message::Rotations { rotations }.encode()))
            }
            _ => Err(refuse(Refusal::Protocol)),
        }
    }

    fn welcome(
        &self,
        peer: PublicKey,
        rotations: Vec<Rotation>,
        how: ProofMethod,
        intent: Intent,
    ) -> Step {
        let message = Message::Welcome {
            rotations: self.rotations.clone(),
        };
        Step::Authenticated {
            send: Some(message.encode()),
            met: Box::new(Authenticated {
                peer,
                rotations,
                how,
                intent,
            }),
        }
    }
}
