//! What a waiting program decides: which tickets, codes and keys it lets in, and for what.

use std::fmt;
use std::sync::Arc;

use tack_pairing::code::{Attempt, CurrentCode, Unavailable};
use tack_pairing::meeting::{Host, Intent, Refusal};
use tack_pairing::ticket::TicketId;
use tack_pairing::{PublicKey, Rotation, Secret};

use super::invitations::Invitations;
use crate::peers::Book;
use crate::state::StateDir;

/// Decides for a waiting program which peers it admits.
#[derive(Debug)]
pub(crate) struct WaitingHost {
    pub(super) state: StateDir,
    pub(super) invitations: Invitations,
    pub(super) current_code: Arc<CurrentCode>,
    /// The intent that the connecting side must have.
    pub(super) intent: Intent,
    /// What it serves besides.
    pub(super) also: AlsoServes,
    /// Tickets that peers showed, right or wrong. Without a bound a ticket could be guessed at for
    /// ever; with a small one, strangers could deny tickets.
    pub(super) tickets_shown: u32,
}

/// Decides which intents a waiting program serves beside that of its invitations; these are for
/// known peers.
#[derive(Clone)]
pub(crate) struct AlsoServes(Arc<dyn Fn(Intent) -> bool + Send + Sync>);

impl AlsoServes {
    pub(crate) fn by(serves: impl Fn(Intent) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(serves))
    }

    /// Serves nothing else.
    pub(crate) fn nothing() -> Self {
        Self::by(|_| false)
    }
}

impl fmt::Debug for AlsoServes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AlsoServes")
    }
}

impl Host for WaitingHost {
    fn serves(&mut self, intent: Intent) -> Result<(), Refusal> {
        if intent == self.intent || (self.also.0)(intent) {
            Ok(())
        } else {
            Err(Refusal::Intent)
        }
    }

    fn ticket(&mut self, id: &TicketId) -> Result<Secret, Refusal> {
        let shown = self.tickets_shown.checked_add(1);
        self.tickets_shown = shown.ok_or(Refusal::UnknownTicket)?;
        self.invitations.secret(id)
    }

    fn bind(&mut self, id: &TicketId, key: &PublicKey) -> Result<(), Refusal> {
        self.invitations.bind(id, key)
    }

    fn code(&mut self, number: u16) -> Result<Attempt, Unavailable> {
        self.current_code.take(number)
    }

    fn meet(&mut self, key: &PublicKey) -> Result<(), Refusal> {
        self.invitations.may_return(key)
    }

    fn admit(&mut self, key: &PublicKey, rotations: &[Rotation]) -> Result<(), Refusal> {
        // Read anew each time: `tack peers remove` holds from now on.
        let book = Book::load(&self.state).map_err(|failure| {
            tracing::error!(%failure, "cannot read the known peers");
            Refusal::Busy
        })?;
        if book.follows(key, rotations).is_some() || self.invitations.returns(key) {
            Ok(())
        } else {
            Err(Refusal::UnknownKey)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::invitations::TicketUse;
    use super::*;

    #[test]
    fn so_many_tickets_are_looked_at_and_no_more() {
        let scratch = tempfile::tempdir().unwrap();
        let state = StateDir::at(scratch.path());
        let mut invitations = Invitations::new(state.clone(), Intent::Send);
        let issuer = PublicKey::from([1; 32]);
        let ticket = invitations.issue(issuer, None, TicketUse::Many, &[]);
        let right = ticket.unwrap().id();
        let wrong = TicketId::of(&Secret::from_bytes([2; 16]));
        let mut host = WaitingHost {
            state,
            invitations,
            current_code: CurrentCode::new(None),
            intent: Intent::Send,
            also: AlsoServes::nothing(),
            tickets_shown: u32::MAX - 2,
        };
        assert_eq!(host.ticket(&wrong).unwrap_err(), Refusal::UnknownTicket);
        assert!(host.ticket(&right).is_ok());
        assert_eq!(host.ticket(&right).unwrap_err(), Refusal::UnknownTicket);
    }
}
