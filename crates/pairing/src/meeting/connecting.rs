//! The side that connects.

use super::Channel;
use super::message::{IdentityProof, Message, PAKE};
use super::outcome::{Authenticated, Failed, Intent, ProofMethod, Refusal, Step};
use super::proof::{self, Exchange, Role, SharedKey};
use crate::code::Code;
use crate::rotation::{Rotation, leads};
use crate::ticket::Ticket;
use tack::secure::{Identity, PublicKey};

/// What the connecting side proves itself with.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A ticket, which names the key of the waiting side.
    Ticket(Ticket),
    /// A code. The keys of TLS are made for this stream only.
    Code(Code),
    /// Its key, for a waiting side with one of these keys.
    Known(Vec<PublicKey>),
}

/// The connecting side's state machine.
pub struct Connecting {
    channel: Channel,
    intent: Intent,
    state: State,
}

enum State {
    /// A ticket or a key was shown.
    Welcome {
        how: ProofMethod,
        /// Keys of which one has to lead to the peer's.
        expected: Vec<PublicKey>,
    },
    Pake {
        exchange: Exchange,
        own: Identity,
        rotations: Vec<Rotation>,
    },
    Confirmed {
        key: SharedKey,
        own: Identity,
        rotations: Vec<Rotation>,
    },
    /// The identity was shown after a code.
    Admitted {
        peer: PublicKey,
        rotations: Vec<Rotation>,
    },
    /// Only the other side's rotations were asked for.
    Rotations,
    Over,
}

impl Connecting {
    /// Begins, and returns the first message. `own` is the long-term identity. With a ticket or a
    /// known key it has to be the one that TLS showed; with a code TLS must not have shown it.
    ///
    /// # Errors
    ///
    /// The stream leads to another key than the ticket names.
    pub fn begin(
        channel: Channel,
        intent: Intent,
        credential: &Credential,
        own: Identity,
        rotations: Vec<Rotation>,
    ) -> Result<(Self, Vec<u8>), Failed> {
        let (state, message) = match credential {
            Credential::Ticket(ticket) => {
                if channel.peer_key != ticket.issuer {
                    return Err(refuse(Refusal::UnknownKey));
                }
                let id = ticket.id();
                let message = Message::Ticket {
                    intent,
                    id,
                    proof: proof::ticket(&ticket.secret, &channel),
                    rotations,
                };
                let how = ProofMethod::Ticket(id);
                let expected = vec![ticket.issuer];
                (State::Welcome { how, expected }, message)
            }
            Credential::Known(expected) => {
                let state = State::Welcome {
                    how: ProofMethod::Known,
                    expected: expected.clone(),
                };
                (state, Message::Known { intent, rotations })
            }
            Credential::Code(code) => {
                let (exchange, pake) = Exchange::begin(code, &channel, Role::Connecting);
                let message = Message::Code {
                    intent,
                    number: code.number(),
                    pake: pake_array(pake),
                };
                let state = State::Pake {
                    exchange,
                    own,
                    rotations,
                };
                (state, message)
            }
        };
        let machine = Self {
            channel,
            intent,
            state,
        };
        Ok((machine, message.encode()))
    }

    /// Asks only how the other side's key follows from `known`. The key that TLS showed should not
    /// be the long-term one: who answers is not known yet.
    pub fn ask(channel: Channel, known: PublicKey) -> (Self, Vec<u8>) {
        let machine = Self {
            channel,
            intent: Intent::Send,
            state: State::Rotations,
        };
        (machine, Message::Ask { known }.encode())
    }

    /// True while the other side has our proof of a code, and has not shown its own: it may have
    /// guessed, and now knows whether it guessed right. No further proof of the same code may
    /// follow.
    pub fn awaits_proof_of_code(&self) -> bool {
        matches!(self.state, State::Confirmed { .. })
    }

    /// Handles a message of the waiting side.
    ///
    /// # Errors
    ///
    /// One side refuses the other; the meeting is over.
    pub fn handle(&mut self, bytes: &[u8]) -> Result<Step, Failed> {
        let state = std::mem::replace(&mut self.state, State::Over);
        let message = Message::decode(bytes).map_err(|_| refuse(Refusal::Protocol))?;
        match (state, message) {
            (State::Over, _) => Err(refuse(Refusal::Protocol)),
            (_, Message::Refused(refusal)) => Err(Failed::Refused(refusal)),
            (State::Welcome { how, expected }, Message::Welcome { rotations }) => {
                let peer = self.channel.peer_key;
                if !expected.iter().any(|key| leads(key, &peer, &rotations)) {
                    return Err(refuse(Refusal::UnknownKey));
                }
                Ok(self.met(None, peer, rotations, how))
            }
            (
                State::Pake {
                    exchange,
                    own,
                    rotations,
                },
                Message::Pake { pake },
            ) => {
                let key = exchange
                    .finish(&pake)
                    .ok_or_else(|| refuse(Refusal::Protocol))?;
                let mac = key.confirmation(&self.channel);
                self.state = State::Confirmed {
                    key,
                    own,
                    rotations,
                };
                Ok(Step::Send(Message::Confirm { mac }.encode()))
            }
            (
                State::Confirmed {
                    key,
                    own,
                    rotations,
                },
                Message::Confirmed { mac, identity },
            ) => {
                if !key.is_confirmed(&self.channel, &mac) {
                    return Err(refuse(Refusal::WrongSecret));
                }
                let role = Role::Connecting;
                let (channel, peer) = (&self.channel, identity.key);
                if !proof::identity_is_right(&peer, &identity.signature, channel, role) {
                    return Err(refuse(Refusal::Protocol));
                }
                let shown = IdentityProof {
                    key: own.public_key(),
                    signature: proof::sign(&own, channel, role),
                    rotations,
                };
                self.state = State::Admitted {
                    peer,
                    rotations: identity.rotations,
                };
                Ok(Step::Send(Message::Identity(shown).encode()))
            }
            (State::Admitted { peer, rotations }, Message::Welcome { .. }) => {
                Ok(self.met(None, peer, rotations, ProofMethod::Code))
            }
            (State::Rotations, Message::Rotations { rotations }) => Ok(Step::Rotations(rotations)),
            _ => Err(refuse(Refusal::Protocol)),
        }
    }

    fn met(
        &self,
        send: Option<Vec<u8>>,
        peer: PublicKey,
        rotations: Vec<Rotation>,
        how: ProofMethod,
    ) -> Step {
        Step::Authenticated {
            send,
            met: Box::new(Authenticated {
                peer,
                rotations,
                how,
                intent: self.intent,
            }),
        }
    }
}

pub(super) fn refuse(refusal: Refusal) -> Failed {
    Failed::Refusing {
        refusal,
        tell: Message::Refused(refusal).encode(),
    }
}

pub(super) fn pake_array(message: Vec<u8>) -> [u8; PAKE] {
    message
        .try_into()
        .expect("a side and a point of the curve, 33 bytes")
}
