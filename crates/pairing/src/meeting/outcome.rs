//! What comes of a meeting.

use crate::rotation::Rotation;
use crate::ticket::TicketId;
use tack::secure::PublicKey;

/// What the connecting side wants to do after the meeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    /// Send files to the waiting side.
    Send,
    /// Receive files from it.
    Receive,
    /// Measure the path.
    Measure,
    /// Have connections carried to other hosts.
    Forward,
}

/// How the connecting side proved itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProofMethod {
    /// With a ticket.
    Ticket(TicketId),
    /// With a code.
    Code,
    /// The waiting side knew its key.
    Known,
}

/// The result of a meeting in which both sides proved themselves.
#[derive(Clone, Debug)]
pub struct Authenticated {
    /// The long-term key of the other side. With a code it is not the one of TLS.
    pub peer: PublicKey,
    /// What the other side shows for its earlier keys; not yet verified ([`crate::leads`]).
    pub rotations: Vec<Rotation>,
    /// How the connecting side proved itself.
    pub how: ProofMethod,
    /// What the connecting side wants.
    pub intent: Intent,
}

/// Why one side refuses the other. The peer gets the number; each side has its own words for it, so
/// that no peer can put words into our messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The versions of the meeting differ.
    Version,
    /// The message is malformed, or not due now.
    Protocol,
    /// Both sides want to send, or both to receive, or something else is offered here.
    Intent,
    /// The proof of the ticket, or the confirmation of the code, is wrong.
    WrongSecret,
    /// No such ticket was issued, or it was withdrawn.
    UnknownTicket,
    /// The ticket has expired.
    ExpiredTicket,
    /// The ticket belongs to another key, which used it first.
    BoundTicket,
    /// No program waits for this code.
    UnknownCode,
    /// Another peer tries the code now.
    CodeBusy,
    /// The code was tried with wrong words.
    CodeBurnt,
    /// The code was used.
    CodeUsed,
    /// The key is not known here.
    UnknownKey,
    /// The waiting side is shutting down.
    Stopping,
    /// The waiting side takes no further peers at the moment.
    Busy,
    /// A number that this version does not know.
    Other(u8),
}

/// Numbers on the wire.
const NUMBERS: [(u8, Refusal); 14] = [
    (1, Refusal::Version),
    (2, Refusal::Protocol),
    (3, Refusal::Intent),
    (4, Refusal::WrongSecret),
    (5, Refusal::UnknownTicket),
    (6, Refusal::ExpiredTicket),
    (7, Refusal::BoundTicket),
    (8, Refusal::UnknownCode),
    (9, Refusal::CodeBusy),
    (10, Refusal::CodeBurnt),
    (11, Refusal::CodeUsed),
    (12, Refusal::UnknownKey),
    (13, Refusal::Stopping),
    (14, Refusal::Busy),
];

impl Refusal {
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Other(number) => number,
            named => NUMBERS
                .iter()
                .find_map(|(number, refusal)| (*refusal == named).then_some(*number))
                .expect("every named refusal has a number"),
        }
    }

    pub(super) fn from_number(number: u8) -> Self {
        NUMBERS
            .iter()
            .find_map(|(known, refusal)| (*known == number).then_some(*refusal))
            .unwrap_or(Self::Other(number))
    }

    /// The message for the side that is refused.
    pub fn to_refused(self) -> String {
        let words = match self {
            Self::Version => "the other side speaks another version of tack; update the older one",
            Self::Protocol => "the other side did not understand this program",
            Self::Intent => "both sides want the same: one has to send and the other to receive",
            Self::WrongSecret => {
                "the other side did not accept the secret: it was mistyped, or somebody on the path tried to guess it. \
                 A code is spent now; ask for a new one"
            }
            Self::UnknownTicket => {
                "the other side does not know this ticket: it was used, or another program issued it; ask for a new one"
            }
            Self::ExpiredTicket => "the ticket has expired; ask for a new one",
            Self::BoundTicket => {
                "the ticket has been used by another installation already; if it was not one of yours, somebody else had \
                 the ticket. Ask for a new one"
            }
            Self::UnknownCode => "no code with this number is waited for there",
            Self::CodeBusy => "another peer is trying this code at the moment",
            Self::CodeBurnt => {
                "somebody tried this code with wrong words, and each code permits one attempt; ask for a new one, or for \
                 a ticket"
            }
            Self::CodeUsed => "this code has been used already; ask for a new one",
            Self::UnknownKey => {
                "the other side does not know this installation's key; it needs a ticket or a code from there, or \
                 `tack peers add` there with the key that `tack id` prints here"
            }
            Self::Stopping => "the other side is shutting down",
            Self::Busy => "the other side takes no further peers at the moment",
            Self::Other(number) => {
                return format!(
                    "the other side refused for a reason that this version does not know ({number})"
                );
            }
        };
        words.to_owned()
    }

    /// The message for the side that refuses.
    pub fn to_refusing(self) -> &'static str {
        match self {
            Self::Version => "it speaks another version of tack",
            Self::Protocol => "it broke the protocol of the meeting",
            Self::Intent => {
                "it wants the same as this side: one has to send and the other to receive"
            }
            Self::WrongSecret => {
                "it had a wrong secret: a typo, or somebody tried to guess it. A code is spent now"
            }
            Self::UnknownTicket => "it showed a ticket that is not known here",
            Self::ExpiredTicket => "its ticket has expired",
            Self::BoundTicket => "its ticket belongs to another installation, which used it first",
            Self::UnknownCode => "it asked for a code that is not waited for here",
            Self::CodeBusy => "it tried a code that another peer is trying",
            Self::CodeBurnt => "it tried a code that is spent",
            Self::CodeUsed => "it tried a code that was used",
            Self::UnknownKey => "its key is not known here",
            Self::Stopping => "this side is shutting down",
            Self::Busy => "too many peers are here already",
            Self::Other(_) => "it was refused",
        }
    }
}

/// A meeting that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failed {
    /// The other side refused us.
    Refused(Refusal),
    /// We refuse the other side; `tell` is the message that says so to it.
    Refusing {
        /// Why we refuse the other side.
        refusal: Refusal,
        /// The message to send before the stream is closed.
        tell: Vec<u8>,
    },
}

impl Failed {
    /// The reason of the refusal, by either side.
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Refused(refusal) | Self::Refusing { refusal, .. } => *refusal,
        }
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refusal) => f.write_str(&refusal.to_refused()),
            Self::Refusing { refusal, .. } => {
                write!(f, "the other side was refused: {}", refusal.to_refusing())
            }
        }
    }
}

impl std::error::Error for Failed {}

/// What to do after a message was handled.
#[derive(Clone, Debug)]
pub enum Step {
    /// Send this message and wait for the next one.
    Send(Vec<u8>),
    /// Send this, if there is something, and go on with the protocol that the intent names.
    Authenticated {
        /// The last message of the meeting, if it is ours.
        send: Option<Vec<u8>>,
        /// With whom.
        met: Box<Authenticated>,
    },
    /// Send this and close the stream: the other side only asked for rotations.
    Close(Vec<u8>),
    /// The other side answered with the rotations that were asked for.
    Rotations(Vec<Rotation>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_names_one_refusal() {
        for number in 0..=255 {
            assert_eq!(Refusal::from_number(number).number(), number);
        }
    }

    #[test]
    fn no_words_suggest_to_go_without_encryption() {
        for number in 0..=255 {
            let refusal = Refusal::from_number(number);
            for words in [refusal.to_refused().as_str(), refusal.to_refusing()] {
                assert!(!words.contains("insecure"), "{words}");
            }
        }
    }
}
