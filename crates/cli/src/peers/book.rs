//! The peers on disk.

use serde::{Deserialize, Serialize};
use tack_pairing::{PublicKey, Rotation, leads};

use super::name::PeerName;
use crate::address::Address;
use crate::exit::Failure;
use crate::state::StateDir;

const FILE: &str = "peers.json";
const VERSION: u32 = 1;
/// Peers that are kept at most.
const MAX_PEERS: usize = 1000;
/// Addresses that are kept of a peer, the latest first.
const MAX_ADDRESSES: usize = 3;

/// A peer with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) name: PeerName,
    pub(crate) key: PublicKey,
    /// Where it may be reached, the likeliest first.
    pub(crate) addresses: Vec<Address>,
}

/// All of them, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Book {
    peers: Vec<Peer>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    peers: Vec<StoredPeer>,
}

#[derive(Serialize, Deserialize)]
struct StoredPeer {
    name: PeerName,
    key: String,
    #[serde(default)]
    addresses: Vec<String>,
}

/// Why a peer is not added or changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error(
        "{name} is known by another key: {known} instead of {shown}. Either it was set up anew, or somebody impersonates it. Compare \
         with what `tack id` prints there; if that is {shown}, `tack peers remove {name}` and add it again"
    )]
    ChangedKey {
        name: PeerName,
        known: String,
        shown: String,
    },
    #[error("this key is known already, as {0}; `tack peers rename` changes the name")]
    KnownKey(PeerName),
    #[error("a peer named {0} already exists")]
    NameTaken(PeerName),
    #[error("no peer is called {name}{}", suggestion.as_ref().map_or_else(|| "; `tack peers` lists them".to_owned(), |name| format!("; did you mean {name}?")))]
    Unknown {
        name: PeerName,
        suggestion: Option<PeerName>,
    },
    #[error("{MAX_PEERS} peers are known already, which is the limit")]
    Full,
}

impl Refused {
    /// As an error of the program.
    pub(crate) fn failure(self) -> Failure {
        match self {
            Self::ChangedKey { .. } | Self::Full => Failure::plain(self),
            Self::KnownKey(_) | Self::NameTaken(_) | Self::Unknown { .. } => Failure::usage(self),
        }
    }
}

impl Book {
    pub(crate) fn load(state: &StateDir) -> Result<Self, Failure> {
        let Some(bytes) = state.read(FILE)? else {
            return Ok(Self::default());
        };
        parse(&bytes).ok_or_else(|| {
            Failure::plain(format!(
                "{} is damaged, or of a newer version of tack; move it away to begin with no peers",
                state.path().join(FILE).display()
            ))
        })
    }

    /// Changes the peers on disk; nothing is written when `change` refuses.
    pub(crate) fn change<T>(
        state: &StateDir,
        change: impl FnOnce(&mut Self) -> Result<T, Refused>,
    ) -> Result<T, Failure> {
        let _lock = state.lock()?;
        let mut book = Self::load(state)?;
        let before = book.clone();
        let done = change(&mut book).map_err(Refused::failure)?;
        if book != before {
            let peers = book.peers.iter().map(|peer| StoredPeer {
                name: peer.name.clone(),
                key: peer.key.to_string(),
                addresses: peer.addresses.iter().map(Address::to_string).collect(),
            });
            let stored = Stored {
                version: VERSION,
                peers: peers.collect(),
            };
            let bytes = serde_json::to_vec_pretty(&stored)
                .map_err(|error| Failure::failed("cannot write the peers", error))?;
            state.write(FILE, &bytes)?;
        }
        Ok(done)
    }

    pub(crate) fn peers(&self) -> &[Peer] {
        &self.peers
    }

    pub(crate) fn by_name(&self, name: &PeerName) -> Result<&Peer, Refused> {
        let found = self.peers.iter().find(|peer| peer.name == *name);
        found.ok_or_else(|| self.unknown(name))
    }

    pub(crate) fn by_key(&self, key: &PublicKey) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.key == *key)
    }

    /// The peer with this key, or with one that leads to it.
    pub(crate) fn follows(&self, key: &PublicKey, rotations: &[Rotation]) -> Option<&Peer> {
        self.by_key(key).or_else(|| {
            let mut peers = self.peers.iter();
            peers.find(|peer| leads(&peer.key, key, rotations))
        })
    }

    /// Takes `key` for the peer whose key leads to it, and says which that is.
    pub(crate) fn follow(&mut self, key: &PublicKey, rotations: &[Rotation]) -> Option<PeerName> {
        let name = self.follows(key, rotations)?.name.clone();
        let peer = self.peers.iter_mut().find(|peer| peer.name == name)?;
        peer.key = *key;
        Some(name)
    }

    /// Adds a peer, or addresses to one that is there with the same name and key.
    pub(crate) fn add(&mut self, added: Peer) -> Result<(), Refused> {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.name == added.name) {
            if peer.key != added.key {
                return Err(Refused::ChangedKey {
                    name: added.name,
                    known: tack_pairing::short(&peer.key),
                    shown: tack_pairing::short(&added.key),
                });
            }
            for address in added.addresses.into_iter().rev() {
                peer.addresses.retain(|known| *known != address);
                peer.addresses.insert(0, address);
            }
            peer.addresses.truncate(MAX_ADDRESSES);
            return Ok(());
        }
        if let Some(peer) = self.by_key(&added.key) {
            return Err(Refused::KnownKey(peer.name.clone()));
        }
        if self.peers.len() >= MAX_PEERS {
            return Err(Refused::Full);
        }
        self.peers.push(added);
        self.peers.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    /// Gives a peer of which no address is known its first one.
    pub(crate) fn locate(&mut self, name: &PeerName, address: &Address) {
        let found = self.peers.iter_mut().find(|peer| peer.name == *name);
        if let Some(peer) = found.filter(|peer| peer.addresses.is_empty()) {
            peer.addresses.push(address.clone());
        }
    }

    pub(crate) fn rename(&mut self, old: &PeerName, new: PeerName) -> Result<(), Refused> {
        if self.by_name(old)?.name != new && self.by_name(&new).is_ok() {
            return Err(Refused::NameTaken(new));
        }
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.name == *old) {
            peer.name = new;
        }
        self.peers.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    pub(crate) fn remove(&mut self, name: &PeerName) -> Result<Peer, Refused> {
        let at = self.peers.iter().position(|peer| peer.name == *name);
        match at {
            Some(at) => Ok(self.peers.remove(at)),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &PeerName) -> Refused {
        let typed = name.to_string();
        let nearest = self
            .peers
            .iter()
            .map(|peer| {
                (
                    strsim::damerau_levenshtein(&typed, &peer.name.to_string()),
                    peer,
                )
            })
            .min_by_key(|(distance, _)| *distance);
        Refused::Unknown {
            name: name.clone(),
            suggestion: nearest
                .filter(|(distance, _)| *distance <= 2)
                .map(|(_, peer)| peer.name.clone()),
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Book> {
    let stored: Stored = serde_json::from_slice(bytes).ok()?;
    if stored.version != VERSION || stored.peers.len() > MAX_PEERS {
        return None;
    }
    let peer = |stored: StoredPeer| {
        Some(Peer {
            name: stored.name,
            key: stored.key.parse().ok()?,
            addresses: stored
                .addresses
                .iter()
                .filter_map(|address| address.parse().ok())
                .take(MAX_ADDRESSES)
                .collect(),
        })
    };
    let peers = stored
        .peers
        .into_iter()
        .map(peer)
        .collect::<Option<Vec<_>>>()?;
    Some(Book { peers })
}

#[cfg(test)]
mod tests {
    use tack_pairing::Identity;

    use super::*;

    fn name(text: &str) -> PeerName {
        text.parse().unwrap()
    }

    fn peer(text: &str, key: u8) -> Peer {
        Peer {
            name: name(text),
            key: PublicKey::from([key; 32]),
            addresses: vec![format!("192.0.2.{key}").parse().unwrap()],
        }
    }

    fn state() -> (tempfile::TempDir, StateDir) {
        let scratch = tempfile::tempdir().unwrap();
        let state = StateDir::at(scratch.path());
        (scratch, state)
    }

    #[test]
    fn peers_survive_in_the_order_of_their_names() {
        let (_scratch, state) = state();
        assert_eq!(Book::load(&state).unwrap(), Book::default());
        for (text, key) in [("zoo", 1), ("attic", 2)] {
            Book::change(&state, |book| book.add(peer(text, key))).unwrap();
        }
        let book = Book::load(&state).unwrap();
        assert_eq!(book.peers(), [peer("attic", 2), peer("zoo", 1)]);
        assert_eq!(book.by_name(&name("zoo:")).unwrap(), &peer("zoo", 1));
        assert_eq!(book.by_key(&PublicKey::from([3; 32])), None);
        Book::change(&state, |book| book.rename(&name("attic"), name("zz"))).unwrap();
        Book::change(&state, |book| book.remove(&name("zoo"))).unwrap();
        assert_eq!(Book::load(&state).unwrap().peers(), [peer("zz", 2)]);
    }

    #[test]
    fn a_changed_key_is_refused_with_what_it_may_mean() {
        let (_scratch, state) = state();
        Book::change(&state, |book| book.add(peer("laptop", 1))).unwrap();
        let refused = Book::change(&state, |book| book.add(peer("laptop", 2))).unwrap_err();
        let words = refused.to_string();
        for expected in [
            "laptop: is known by another key",
            "set up anew",
            "impersonates it",
            "tack peers remove laptop:",
        ] {
            assert!(words.contains(expected), "{words}");
        }
        assert_eq!(Book::load(&state).unwrap().peers(), [peer("laptop", 1)]);
        let twice = Book::change(&state, |book| book.add(peer("other", 1))).unwrap_err();
        assert!(
            twice.to_string().contains("known already, as laptop:"),
            "{twice}"
        );
    }

    #[test]
    fn a_peer_is_followed_to_the_key_that_its_own_signed() {
        let make = || Identity::generate().unwrap();
        let (old, new, mallory) = (make(), make(), make());
        let mut known = peer("laptop", 1);
        known.key = old.public_key();
        let mut book = Book::default();
        book.add(known).unwrap();
        let forged = [Rotation::sign(&mallory, &mallory.public_key())];
        assert_eq!(book.follow(&mallory.public_key(), &forged), None);
        let signed = [Rotation::sign(&old, &new.public_key())];
        assert_eq!(
            book.follow(&new.public_key(), &signed),
            Some(name("laptop"))
        );
        assert_eq!(book.peers[0].key, new.public_key());
        assert!(book.by_key(&old.public_key()).is_none());
    }

    #[test]
    fn addresses_are_added_in_front_and_bounded() {
        let mut book = Book::default();
        for octet in [1, 2, 3, 2, 4] {
            let mut again = peer("laptop", 1);
            again.addresses = vec![format!("192.0.2.{octet}").parse().unwrap()];
            book.add(again).unwrap();
        }
        let addresses: Vec<String> = book.peers[0]
            .addresses
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(addresses, ["192.0.2.4", "192.0.2.2", "192.0.2.3"]);
    }

    #[test]
    fn an_unknown_name_is_told_with_the_nearest() {
        let mut book = Book::default();
        book.add(peer("laptop", 1)).unwrap();
        let words = |text: &str| book.by_name(&name(text)).unwrap_err().to_string();
        assert_eq!(
            words("labtop"),
            "no peer is called labtop:; did you mean laptop:?"
        );
        assert_eq!(
            words("office"),
            "no peer is called office:; `tack peers` lists them"
        );
        assert_eq!(book.clone().rename(&name("laptop"), name("laptop")), Ok(()));
        book.add(peer("office", 2)).unwrap();
        assert_eq!(
            book.rename(&name("laptop"), name("office")),
            Err(Refused::NameTaken(name("office")))
        );
    }

    #[test]
    fn a_damaged_book_is_told_and_left_alone() {
        let (_scratch, state) = state();
        state.write(FILE, b"{\"version\":9,\"peers\":[]}").unwrap();
        assert!(Book::change(&state, |book| book.add(peer("laptop", 1))).is_err());
        assert!(
            state
                .read(FILE)
                .unwrap()
                .unwrap()
                .starts_with(b"{\"version\":9")
        );
    }
}
