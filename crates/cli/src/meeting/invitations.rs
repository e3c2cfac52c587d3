//! Tickets that were issued, and keys that may come back: on disk, so that both sides may be killed
//! and go on.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use tack_pairing::meeting::{Intent, ProofMethod, Refusal};
use tack_pairing::ticket::TicketId;
use tack_pairing::{PublicKey, Secret, Ticket};
use zeroize::{Zeroize, Zeroizing};

use crate::exit::Failure;
use crate::state::StateDir;

const FILE: &str = "invitations.json";
const VERSION: u32 = 2;
/// Tickets that are kept at most, and as many keys: the oldest go.
const MAX: usize = 64;
/// How long a key that proved a code may come back with its key alone.
const RETURN: Duration = Duration::from_secs(24 * 3600);

/// The invitations of this installation.
#[derive(Debug)]
pub(crate) struct Invitations {
    state: StateDir,
    /// What this program offers: an invitation to one thing is none to another.
    serves: Purpose,
    /// When tickets expire by the monotonic clock. The time on disk is for the next process.
    deadlines: BTreeMap<[u8; 8], Instant>,
}

/// What an invitation is for: the [`Intent`] of who connects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Purpose {
    Send,
    Receive,
    Measure,
    Forward,
}

impl From<Intent> for Purpose {
    fn from(intent: Intent) -> Self {
        match intent {
            Intent::Send => Self::Send,
            Intent::Receive => Self::Receive,
            Intent::Measure => Self::Measure,
            Intent::Forward => Self::Forward,
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    version: u32,
    tickets: Vec<StoredTicket>,
    returning: Vec<ReturningKey>,
}

#[derive(Serialize, Deserialize)]
struct StoredTicket {
    /// Base64.
    secret: String,
    serves: Purpose,
    /// Seconds since 1970; 0 is never.
    expires: u32,
    /// Any number of keys may use it.
    keep: bool,
    /// The first key that proved it.
    bound: Option<String>,
}

impl Drop for StoredTicket {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

/// A key that proved a code, and may come back to finish what it began.
#[derive(Serialize, Deserialize)]
struct ReturningKey {
    key: String,
    serves: Purpose,
    expires: u32,
}

/// How a ticket may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TicketUse {
    /// By the first key that proves it, until its transfer is complete.
    Once,
    /// By everybody who has it, until it expires.
    Many,
}

fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
    })
}

fn encoded(stored: &Stored) -> Result<Zeroizing<Vec<u8>>, Failure> {
    // Large enough that no copy of the secrets stays behind where it grew.
    let mut bytes = Zeroizing::new(Vec::with_capacity(1 << 16));
    serde_json::to_writer_pretty(&mut *bytes, stored)
        .map_err(|error| Failure::failed("cannot write the tickets", error))?;
    Ok(bytes)
}

/// Says here why a peer with a valid invitation is refused: the peer learns that it may try again.
fn unable(failure: &Failure) -> Refusal {
    tracing::error!(%failure, "cannot keep who was invited");
    eprintln!("tack: {failure}; until that works, invitations let nobody in");
    Refusal::Busy
}

impl StoredTicket {
    fn secret(&self) -> Option<Secret> {
        let bytes = Zeroizing::new(BASE64.decode(self.secret.as_bytes()).ok()?);
        Some(Secret::from_bytes(bytes.as_slice().try_into().ok()?))
    }

    fn has(&self, id: &TicketId) -> bool {
        self.secret()
            .is_some_and(|secret| TicketId::of(&secret) == *id)
    }
}

impl ReturningKey {
    fn is(&self, key: &str, serves: Purpose) -> bool {
        self.key == key && self.serves == serves
    }
}

impl Invitations {
    /// For a program that offers what `intent` wants.
    pub(crate) fn new(state: StateDir, intent: Intent) -> Self {
        Self {
            state,
            serves: intent.into(),
            deadlines: BTreeMap::new(),
        }
    }

    fn load(&self) -> Result<Stored, Failure> {
        let Some(bytes) = self.state.read(FILE)? else {
            return Ok(Stored::default());
        };
        match serde_json::from_slice::<Stored>(&bytes) {
            Ok(stored) if stored.version == VERSION => Ok(stored),
            _ => Err(Failure::plain(format!(
                "{} is damaged, or of a newer version of tack; without it no ticket is valid, so it may be removed",
                self.state.path().join(FILE).display()
            ))),
        }
    }

    /// Changes what is kept. What stays as it was takes no room on the disk.
    fn change<T>(&self, change: impl FnOnce(&mut Stored) -> T) -> Result<T, Failure> {
        let _lock = self.state.lock()?;
        let mut stored = self.load()?;
        let before = encoded(&stored)?;
        let done = change(&mut stored);
        let (now, deadlines) = (now(), &self.deadlines);
        stored.version = VERSION;
        stored.tickets.retain(|ticket| {
            let is_ours = ticket
                .secret()
                .is_some_and(|secret| deadlines.contains_key(&TicketId::of(&secret).0));
            is_ours || ticket.expires == 0 || ticket.expires > now
        });
        stored.returning.retain(|returning| returning.expires > now);
        let extra = stored.tickets.len().saturating_sub(MAX);
        stored.tickets.drain(..extra);
        let extra = stored.returning.len().saturating_sub(MAX);
        stored.returning.drain(..extra);
        let after = encoded(&stored)?;
        if after != before {
            self.state.write(FILE, &after)?;
        }
        Ok(done)
    }

    /// Issues a ticket that ends after `lifetime`; `None` is never.
    pub(crate) fn issue(
        &mut self,
        issuer: PublicKey,
        lifetime: Option<Duration>,
        usage: TicketUse,
        addresses: &[SocketAddr],
    ) -> Result<Ticket, Failure> {
        let secret = Secret::generate()
            .map_err(|error| Failure::failed("cannot make a ticket", anyhow::anyhow!("{error}")))?;
        let expires = lifetime.map_or(0, |lifetime| {
            let seconds = u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX);
            now().saturating_add(seconds).max(1)
        });
        let ticket = Ticket::new(issuer, secret, expires, addresses.iter().copied());
        if let Some(end) = lifetime.and_then(|lifetime| Instant::now().checked_add(lifetime)) {
            self.deadlines.insert(ticket.id().0, end);
        }
        let stored = StoredTicket {
            secret: BASE64.encode(ticket.secret.as_bytes()),
            serves: self.serves,
            expires,
            keep: usage == TicketUse::Many,
            bound: None,
        };
        self.change(|all| all.tickets.push(stored))?;
        Ok(ticket)
    }

    /// The secret of a ticket that has not expired.
    pub(crate) fn secret(&self, id: &TicketId) -> Result<Secret, Refusal> {
        // Any stranger can ask so far: nothing is said aloud.
        let stored = self.load().map_err(|failure| {
            tracing::error!(%failure, "cannot read the tickets");
            Refusal::Busy
        })?;
        let ticket = stored.tickets.iter().find(|ticket| ticket.has(id));
        let ticket = ticket.ok_or(Refusal::UnknownTicket)?;
        if ticket.serves != self.serves {
            return Err(Refusal::Intent);
        }
        let is_over = match self.deadlines.get(&id.0) {
            Some(end) => Instant::now() >= *end,
            None => ticket.expires != 0 && ticket.expires <= now(),
        };
        if is_over {
            return Err(Refusal::ExpiredTicket);
        }
        ticket.secret().ok_or(Refusal::UnknownTicket)
    }

    /// Binds a ticket to the first key that proves it.
    pub(crate) fn bind(&self, id: &TicketId, key: &PublicKey) -> Result<(), Refusal> {
        let text = key.to_string();
        let bound = self.change(|all| {
            let ticket = all.tickets.iter_mut().find(|ticket| ticket.has(id));
            let ticket = ticket.ok_or(Refusal::UnknownTicket)?;
            if ticket.keep || *ticket.bound.get_or_insert(text.clone()) == text {
                Ok(())
            } else {
                Err(Refusal::BoundTicket)
            }
        });
        // What cannot be stored would be forgotten when this process ends.
        bound.unwrap_or_else(|failure| Err(unable(&failure)))
    }

    /// Lets a key come back that proved a code.
    pub(crate) fn may_return(&self, key: &PublicKey) -> Result<(), Refusal> {
        let (key, expires) = (
            key.to_string(),
            now().saturating_add(RETURN.as_secs() as u32),
        );
        let serves = self.serves;
        self.change(|all| {
            all.returning.retain(|other| !other.is(&key, serves));
            all.returning.push(ReturningKey {
                key,
                serves,
                expires,
            });
        })
        .map_err(|failure| unable(&failure))
    }

    /// True when the key proved a code, and what it began is not complete.
    pub(crate) fn returns(&self, key: &PublicKey) -> bool {
        let (text, now) = (key.to_string(), now());
        self.load().is_ok_and(|all| {
            all.returning
                .iter()
                .any(|returning| returning.is(&text, self.serves) && returning.expires > now)
        })
    }

    /// Ends the validity of the invitation that `key` used.
    pub(crate) fn complete(&mut self, how: ProofMethod, key: &PublicKey) -> Result<(), Failure> {
        let (text, serves) = (key.to_string(), self.serves);
        self.change(|all| match how {
            ProofMethod::Ticket(id) => all.tickets.retain(|ticket| ticket.keep || !ticket.has(&id)),
            ProofMethod::Code | ProofMethod::Known => {
                all.returning.retain(|other| !other.is(&text, serves))
            }
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Option<Duration> = Some(Duration::from_secs(3600));

    fn key(of: u8) -> PublicKey {
        PublicKey::from([of; 32])
    }

    #[test]
    fn a_ticket_survives_the_process_and_stays_bound() {
        let scratch = tempfile::tempdir().unwrap();
        let state = StateDir::at(scratch.path());
        let mut first = Invitations::new(state.clone(), Intent::Send);
        let ticket = first.issue(key(1), HOUR, TicketUse::Once, &[]).unwrap();
        first.bind(&ticket.id(), &key(2)).unwrap();
        let mut second = Invitations::new(state.clone(), Intent::Send);
        assert_eq!(
            second.secret(&ticket.id()).unwrap().as_bytes(),
            ticket.secret.as_bytes()
        );
        assert_eq!(
            second.bind(&ticket.id(), &key(3)),
            Err(Refusal::BoundTicket)
        );
        assert_eq!(second.bind(&ticket.id(), &key(2)), Ok(()));
        second
            .complete(ProofMethod::Ticket(ticket.id()), &key(2))
            .unwrap();
        for invitations in [&first, &second] {
            assert_eq!(
                invitations.secret(&ticket.id()).unwrap_err(),
                Refusal::UnknownTicket
            );
        }
    }

    #[test]
    fn a_kept_ticket_serves_many_keys_until_it_expires() {
        let scratch = tempfile::tempdir().unwrap();
        let mut all = Invitations::new(StateDir::at(scratch.path()), Intent::Send);
        let ticket = all.issue(key(1), HOUR, TicketUse::Many, &[]).unwrap();
        for other in 2..5 {
            all.bind(&ticket.id(), &key(other)).unwrap();
            all.complete(ProofMethod::Ticket(ticket.id()), &key(other))
                .unwrap();
        }
        assert!(all.secret(&ticket.id()).is_ok());
        let over = all
            .issue(key(1), Some(Duration::ZERO), TicketUse::Once, &[])
            .unwrap();
        assert_eq!(all.secret(&over.id()).unwrap_err(), Refusal::ExpiredTicket);
        let never = all.issue(key(1), None, TicketUse::Once, &[]).unwrap();
        assert_eq!(never.expires, 0);
        assert!(all.secret(&never.id()).is_ok());
    }

    #[test]
    fn a_key_that_proved_a_code_may_come_back_until_it_is_done() {
        let scratch = tempfile::tempdir().unwrap();
        let state = StateDir::at(scratch.path());
        let mut all = Invitations::new(state.clone(), Intent::Send);
        assert!(!all.returns(&key(2)));
        all.may_return(&key(2)).unwrap();
        assert!(Invitations::new(state, Intent::Send).returns(&key(2)));
        assert!(!all.returns(&key(3)));
        all.complete(ProofMethod::Known, &key(2)).unwrap();
        assert!(!all.returns(&key(2)));
    }

    #[test]
    fn an_invitation_to_one_thing_is_none_to_another() {
        let scratch = tempfile::tempdir().unwrap();
        let state = StateDir::at(scratch.path());
        let mut tests = Invitations::new(state.clone(), Intent::Measure);
        let ticket = tests.issue(key(1), HOUR, TicketUse::Once, &[]).unwrap();
        tests.may_return(&key(2)).unwrap();
        for intent in [Intent::Send, Intent::Receive] {
            let files = Invitations::new(state.clone(), intent);
            assert_eq!(files.secret(&ticket.id()).unwrap_err(), Refusal::Intent);
            assert!(!files.returns(&key(2)));
        }
        assert!(tests.secret(&ticket.id()).is_ok() && tests.returns(&key(2)));
    }

    #[test]
    fn the_number_of_invitations_is_bounded() {
        let scratch = tempfile::tempdir().unwrap();
        let mut all = Invitations::new(StateDir::at(scratch.path()), Intent::Send);
        let first = all.issue(key(1), HOUR, TicketUse::Once, &[]).unwrap();
        for _ in 0..MAX {
            all.issue(key(1), HOUR, TicketUse::Once, &[]).unwrap();
        }
        assert_eq!(all.load().unwrap().tickets.len(), MAX);
        assert_eq!(all.secret(&first.id()).unwrap_err(), Refusal::UnknownTicket);
    }
}
