//! Which peers may use a serving side.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tack::secure::PublicKey;
use tack_pairing::short;

use super::policy::Policy;
use crate::peers::{Book, PeerName};
use crate::state::StateDir;

/// Judges keys: known peers that a policy allows, and who was invited.
#[derive(Debug)]
pub(super) struct Access {
    state: StateDir,
    /// Keys that a ticket or a code let in, in this run.
    invited: Mutex<HashSet<[u8; 32]>>,
}

impl Access {
    pub(super) fn new(state: StateDir) -> Self {
        Self {
            state,
            invited: Mutex::default(),
        }
    }

    /// Lets this key in until the program ends.
    pub(super) fn let_in(&self, key: PublicKey) {
        self.invited().insert(*key.as_bytes());
    }

    fn invited(&self) -> std::sync::MutexGuard<'_, HashSet<[u8; 32]>> {
        self.invited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who has this key, if it is served under `policy`.
    pub(super) fn guest(&self, key: PublicKey, policy: &Policy) -> Option<Guest> {
        let name = self.name(&key);
        let is_allowed = name.as_ref().is_some_and(|name| policy.allows(name));
        let is_served = is_allowed || self.invited().contains(key.as_bytes());
        is_served.then_some(Guest { key, name })
    }

    /// The name of a peer, or a short form of its key.
    pub(super) fn shown(&self, key: &PublicKey) -> String {
        let (key, name) = (*key, self.name(key));
        Guest { key, name }.to_string()
    }

    fn name(&self, key: &PublicKey) -> Option<PeerName> {
        // Read anew each time: `tack peers remove` holds from now on.
        let book = Book::load(&self.state).ok()?;
        book.by_key(key).map(|peer| peer.name.clone())
    }
}

/// A peer that is served.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    pub(super) key: PublicKey,
    /// Its name here; one without was invited.
    pub(super) name: Option<PeerName>,
}

impl fmt::Display for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name.to_string().trim_end_matches(':')),
            None => f.write_str(&short(&self.key)),
        }
    }
}
