//! Which peers may use a serving side.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tack::secure::PublicKey;
use tack_pairing::short;

use super::policy::Policy;
use crate::peers::{Book, PeerName};
use crate::state::StateDir;
use crate::tunnel::message::Refusal;

/// Judges keys: known peers that a policy allows, and who was invited.
#[derive(Debug)]
pub(super) struct Access {
    state: StateDir,
    invited: Mutex<Invited>,
    /// It was said that the known peers cannot be read, and they still cannot.
    has_complained: AtomicBool,
}

/// Keys that a ticket or a code let in, in this run.
#[derive(Debug, Default)]
struct Invited {
    nameless: HashSet<[u8; 32]>,
    /// Those that got a name. From then on the name lets them in, and whoever takes it away means
    /// to keep them out.
    named: HashSet<[u8; 32]>,
}

impl Access {
    pub(super) fn new(state: StateDir) -> Self {
        Self {
            state,
            invited: Mutex::default(),
            has_complained: AtomicBool::new(false),
        }
    }

    /// Lets this key in until the program ends, or until it has a name.
    pub(super) fn let_in(&self, key: PublicKey) {
        let known = self.name(&key).map(|name| name.is_some());
        let mut invited = self.invited();
        match known {
            Some(true) => _ = invited.named.insert(*key.as_bytes()),
            Some(false) if !invited.named.contains(key.as_bytes()) => {
                invited.nameless.insert(*key.as_bytes());
            }
            // It lost its name, or it is not known whether it has one.
            Some(false) | None => {}
        }
    }

    fn invited(&self) -> std::sync::MutexGuard<'_, Invited> {
        self.invited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who has this key, if it is served under `policy`.
    pub(super) fn guest(&self, key: PublicKey, policy: &Policy) -> Option<Guest> {
        self.judge(key, policy).ok()
    }

    /// As [`Self::guest`].
    ///
    /// # Errors
    /// Why it is not served: the rules, or that nobody can be judged at the moment.
    pub(super) fn judge(&self, key: PublicKey, policy: &Policy) -> Result<Guest, Refusal> {
        // Without the names nobody can be judged.
        let name = self.name(&key).ok_or(Refusal::Busy)?;
        let is_served = match &name {
            Some(name) => policy.allows(name),
            None => self.invited().nameless.contains(key.as_bytes()),
        };
        match is_served {
            true => Ok(Guest { key, name }),
            false => Err(Refusal::NotPermitted),
        }
    }

    /// The name of a peer, or a short form of its key.
    pub(super) fn shown(&self, key: &PublicKey) -> String {
        let (key, name) = (*key, self.name(key).flatten());
        Guest { key, name }.to_string()
    }

    /// The name of this key, if it has one; `None` where the names cannot be read.
    fn name(&self, key: &PublicKey) -> Option<Option<PeerName>> {
        // Read anew each time: `tack peers remove` holds from now on.
        let book = match Book::load(&self.state) {
            Ok(book) => {
                self.has_complained.store(false, Ordering::Relaxed);
                book
            }
            Err(failure) => {
                tracing::error!(%failure, "cannot read the known peers: all are refused");
                if !self.has_complained.swap(true, Ordering::Relaxed) {
                    eprintln!("tack: {failure}; until that works, nobody is let in");
                }
                return None;
            }
        };
        let mut invited = self.invited();
        for peer in book.peers() {
            if invited.nameless.remove(peer.key.as_bytes()) {
                invited.named.insert(*peer.key.as_bytes());
            }
        }
        Some(book.by_key(key).map(|peer| peer.name.clone()))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::peers::Peer;
    use crate::tunnel::serve::policy::PeerPolicy;

    #[test]
    fn an_invitation_ends_with_a_name_and_does_not_come_back_with_its_loss() {
        let scratch = tempfile::tempdir().unwrap();
        let state = StateDir::at(scratch.path());
        let access = Access::new(state.clone());
        let mut policy = Policy {
            allowed: Vec::new(),
            max_connections: 1,
            common: Arc::new(PeerPolicy {
                targets: Vec::new(),
                remote_listen: Vec::new(),
                max_connections: 1,
                rate: None,
                inbox: None,
                offer: Vec::new(),
            }),
            peers: Default::default(),
        };
        let key = PublicKey::from([1; 32]);
        let name: PeerName = "phone".parse().unwrap();
        assert!(access.guest(key, &policy).is_none());
        access.let_in(key);
        assert!(access.guest(key, &policy).unwrap().name.is_none());
        Book::change(&state, |book| {
            book.add(Peer {
                name: name.clone(),
                key,
                addresses: Vec::new(),
            })
        })
        .unwrap();
        // Any question shows that it has a name; its own is not needed.
        assert!(access.guest(PublicKey::from([2; 32]), &policy).is_none());
        policy.allowed = vec!["desk".parse().unwrap()];
        let refused = access.judge(key, &policy).unwrap_err();
        assert_eq!(refused, Refusal::NotPermitted, "not allowed");
        policy.allowed.push(name.clone());
        assert_eq!(
            access.guest(key, &policy).unwrap().name.as_ref(),
            Some(&name)
        );
        policy.allowed.clear();
        let book = state.read("peers.json").unwrap().unwrap();
        state.write("peers.json", b"{").unwrap();
        let refused = access.judge(key, &policy).unwrap_err();
        assert_eq!(refused, Refusal::Busy, "no names to be read");
        access.let_in(PublicKey::from([3; 32]));
        state.write("peers.json", &book).unwrap();
        assert!(access.guest(PublicKey::from([3; 32]), &policy).is_none());
        assert!(access.guest(key, &policy).is_some());
        Book::change(&state, |book| book.remove(&name)).unwrap();
        access.let_in(key);
        assert!(access.guest(key, &policy).is_none(), "its name was removed");
    }
}
