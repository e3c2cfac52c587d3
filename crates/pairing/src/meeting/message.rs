//! The messages of a meeting, and their bytes.

use super::outcome::{Intent, Refusal};
use crate::rotation::{MAX_ROTATIONS, Rotation};
use crate::ticket::TicketId;
use tack::secure::PublicKey;

/// Bytes of a message at most, without its length.
pub const MAX_MESSAGE: usize = 2048;

/// Version of the meeting.
pub(super) const VERSION: u16 = 1;

const MAGIC: &[u8; 8] = b"tackmeet";

/// A SPAKE2 message: a byte for its side and a point.
pub(super) const PAKE: usize = 33;

/// A message of a meeting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// The connecting side proves a ticket.
    Ticket {
        /// What it wants.
        intent: Intent,
        /// Which ticket.
        id: TicketId,
        /// That it has the ticket's secret.
        proof: [u8; 32],
        /// For its earlier keys.
        rotations: Vec<Rotation>,
    },
    /// The connecting side begins with a code.
    Code {
        /// What it wants.
        intent: Intent,
        /// The part of the code that is not secret.
        number: u16,
        /// Its SPAKE2 message.
        pake: [u8; PAKE],
    },
    /// The connecting side claims that its key is known.
    Known {
        /// What it wants.
        intent: Intent,
        /// For its earlier keys.
        rotations: Vec<Rotation>,
    },
    /// The connecting side knows the other by an earlier key and asks for what leads from it.
    Ask {
        /// That key.
        known: PublicKey,
    },
    /// The waiting side's SPAKE2 message.
    Pake {
        /// Its SPAKE2 message.
        pake: [u8; PAKE],
    },
    /// The connecting side had the right words.
    Confirm {
        /// Proof of the shared key.
        mac: [u8; 32],
    },
    /// The waiting side had the right words, too, and shows who it is.
    Confirmed {
        /// Proof of the shared key.
        mac: [u8; 32],
        /// Who it is.
        identity: IdentityProof,
    },
    /// The connecting side shows who it is, after a code.
    Identity(IdentityProof),
    /// The waiting side admits the peer: the protocol of the intent follows.
    Welcome {
        /// For its earlier keys.
        rotations: Vec<Rotation>,
    },
    /// The answer to [`Message::Ask`].
    Rotations {
        /// For its earlier keys.
        rotations: Vec<Rotation>,
    },
    /// The meeting ends here.
    Refused(Refusal),
}

/// A long-term key with its proof for this stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdentityProof {
    /// The long-term key.
    pub key: PublicKey,
    /// Signature over the stream's exporter and the role.
    pub signature: [u8; 64],
    /// Rotations from earlier keys.
    pub rotations: Vec<Rotation>,
}

/// A message that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// The message is truncated.
    #[error("the message ends early")]
    Short,
    /// Bytes follow the end of the message.
    #[error("bytes follow the end of the message")]
    Long,
    /// A kind or a number that does not exist.
    #[error("the message has an unknown {0}")]
    Unknown(&'static str),
    /// Another version of the meeting.
    #[error("the message has version {0}, expected {VERSION}")]
    Version(u16),
}

impl Message {
    fn kind(&self) -> u8 {
        match self {
            Self::Ticket { .. } => 0x01,
            Self::Code { .. } => 0x02,
            Self::Known { .. } => 0x03,
            Self::Ask { .. } => 0x04,
            Self::Confirm { .. } => 0x05,
            Self::Identity(_) => 0x06,
            Self::Pake { .. } => 0x81,
            Self::Confirmed { .. } => 0x82,
            Self::Welcome { .. } => 0x83,
            Self::Rotations { .. } => 0x84,
            Self::Refused(_) => 0xff,
        }
    }

    /// The encoded message, without its length.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind()];
        match self {
            Self::Ticket {
                intent,
                id,
                proof,
                rotations,
            } => {
                begin(&mut bytes, Some(*intent));
                bytes.extend_from_slice(&id.0);
                bytes.extend_from_slice(proof);
                put_rotations(&mut bytes, rotations);
            }
            Self::Code {
                intent,
                number,
                pake,
            } => {
                begin(&mut bytes, Some(*intent));
                bytes.extend_from_slice(&number.to_be_bytes());
                bytes.extend_from_slice(pake);
            }
            Self::Known { intent, rotations } => {
                begin(&mut bytes, Some(*intent));
                put_rotations(&mut bytes, rotations);
            }
            Self::Ask { known } => {
                begin(&mut bytes, None);
                bytes.extend_from_slice(known.as_bytes());
            }
            Self::Pake { pake } => bytes.extend_from_slice(pake),
            Self::Confirm { mac } => bytes.extend_from_slice(mac),
            Self::Confirmed { mac, identity } => {
                bytes.extend_from_slice(mac);
                put_identity(&mut bytes, identity);
            }
            Self::Identity(identity) => put_identity(&mut bytes, identity),
            Self::Welcome { rotations } | Self::Rotations { rotations } => {
                put_rotations(&mut bytes, rotations);
            }
            Self::Refused(refusal) => bytes.push(refusal.number()),
        }
        debug_assert!(bytes.len() <= MAX_MESSAGE);
        bytes
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// What [`Malformed`] lists.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Input(bytes);
        let kind = input.byte()?;
        let message = match kind {
            0x01 => {
                let intent = input.begin_with_intent()?;
                Self::Ticket {
                    intent,
                    id: TicketId(input.array()?),
                    proof: input.array()?,
                    rotations: input.rotations()?,
                }
            }
            0x02 => {
                let intent = input.begin_with_intent()?;
                Self::Code {
                    intent,
                    number: u16::from_be_bytes(input.array()?),
                    pake: input.array()?,
                }
            }
            0x03 => {
                let intent = input.begin_with_intent()?;
                Self::Known {
                    intent,
                    rotations: input.rotations()?,
                }
            }
            0x04 => {
                input.begin()?;
                Self::Ask {
                    known: input.key()?,
                }
            }
            0x05 => Self::Confirm {
                mac: input.array()?,
            },
            0x06 => Self::Identity(input.identity()?),
            0x81 => Self::Pake {
                pake: input.array()?,
            },
            0x82 => Self::Confirmed {
                mac: input.array()?,
                identity: input.identity()?,
            },
            0x83 => Self::Welcome {
                rotations: input.rotations()?,
            },
            0x84 => Self::Rotations {
                rotations: input.rotations()?,
            },
            0xff => Self::Refused(Refusal::from_number(input.byte()?)),
            _ => return Err(Malformed::Unknown("kind")),
        };
        if input.0.is_empty() {
            Ok(message)
        } else {
            Err(Malformed::Long)
        }
    }
}

/// The beginning of every first message, which later versions keep.
fn begin(bytes: &mut Vec<u8>, intent: Option<Intent>) {
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    if let Some(intent) = intent {
        bytes.push(match intent {
            Intent::Send => 1,
            Intent::Receive => 2,
            Intent::Measure => 3,
            Intent::Forward => 4,
        });
    }
}

fn put_rotations(bytes: &mut Vec<u8>, rotations: &[Rotation]) {
    // The newest are at the end.
    let rotations = &rotations[rotations.len().saturating_sub(MAX_ROTATIONS)..];
    bytes.push(rotations.len() as u8);
    for rotation in rotations {
        bytes.extend_from_slice(rotation.old.as_bytes());
        bytes.extend_from_slice(rotation.new.as_bytes());
        bytes.extend_from_slice(&rotation.signature);
    }
}

fn put_identity(bytes: &mut Vec<u8>, identity: &IdentityProof) {
    bytes.extend_from_slice(identity.key.as_bytes());
    bytes.extend_from_slice(&identity.signature);
    put_rotations(bytes, &identity.rotations);
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*array)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    fn key(&mut self) -> Result<PublicKey, Malformed> {
        self.array().map(PublicKey::from)
    }

    fn begin(&mut self) -> Result<(), Malformed> {
        if self.array()? != *MAGIC {
            return Err(Malformed::Unknown("protocol"));
        }
        match u16::from_be_bytes(self.array()?) {
            VERSION => Ok(()),
            other => Err(Malformed::Version(other)),
        }
    }

    fn begin_with_intent(&mut self) -> Result<Intent, Malformed> {
        self.begin()?;
        match self.byte()? {
            1 => Ok(Intent::Send),
            2 => Ok(Intent::Receive),
            3 => Ok(Intent::Measure),
            4 => Ok(Intent::Forward),
            _ => Err(Malformed::Unknown("intent")),
        }
    }

    fn rotations(&mut self) -> Result<Vec<Rotation>, Malformed> {
        let count = usize::from(self.byte()?);
        if count > MAX_ROTATIONS {
            return Err(Malformed::Unknown("number of rotations"));
        }
        (0..count)
            .map(|_| {
                Ok(Rotation {
                    old: self.key()?,
                    new: self.key()?,
                    signature: self.array()?,
                })
            })
            .collect()
    }

    fn identity(&mut self) -> Result<IdentityProof, Malformed> {
        Ok(IdentityProof {
            key: self.key()?,
            signature: self.array()?,
            rotations: self.rotations()?,
        })
    }
}
