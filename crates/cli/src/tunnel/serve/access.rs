//! Which peers may use a serving side.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tack::secure::PublicKey;
use tack_pairing::short;

use crate::exit::Failure;
use crate::peers::{Book, PeerName};
use crate::state::StateDir;

/// Judges keys: known peers, or those of them that were named, and who was invited.
#[derive(Debug)]
pub(super) struct Access {
    state: StateDir,
    /// The known peers that are served; none of them named is all.
    allowed: Vec<PeerName>,
    /// Keys that a ticket or a code let in, in this run.
    invited: Mutex<HashSet<[u8; 32]>>,
}

impl Access {
    /// # Errors
    /// For a name that no peer has.
    pub(super) fn new(state: StateDir, allowed: Vec<PeerName>) -> Result<Self, Failure> {
        let book = Book::load(&state)?;
        for name in &allowed {
            book.by_name(name).map_err(|refused| refused.failure())?;
        }
        Ok(Self {
            state,
            allowed,
            invited: Mutex::default(),
        })
    }

    /// Lets this key in until the program ends.
    pub(super) fn let_in(&self, key: PublicKey) {
        self.invited().insert(*key.as_bytes());
    }

    fn invited(&self) -> std::sync::MutexGuard<'_, HashSet<[u8; 32]>> {
        self.invited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn admits(&self, key: &PublicKey) -> bool {
        if self.invited().contains(key.as_bytes()) {
            return true;
        }
        // Read anew each time: `tack peers remove` holds from now on.
        let Ok(book) = Book::load(&self.state) else {
            return false;
        };
        let known = book.by_key(key);
        known.is_some_and(|peer| self.allowed.is_empty() || self.allowed.contains(&peer.name))
    }

    /// The name of a peer, or a short form of its key.
    pub(super) fn name(&self, key: &PublicKey) -> String {
        let book = Book::load(&self.state).ok();
        let known = book.as_ref().and_then(|book| book.by_key(key));
        known.map_or_else(|| short(key), |peer| peer.name.to_string())
    }
}
