//! What follows from a meeting for the peers that are known.

use tack_pairing::meeting::{Authenticated, ProofMethod};
use tack_pairing::short;

use crate::address::Address;
use crate::exit::Failure;
use crate::peers::{Book, Peer, PeerName};
use crate::state::StateDir;

/// Keeps the new key of a known peer, and the peer under `remember`. `address` is where it can be
/// reached again.
pub(crate) fn update_known_peers(
    state: &StateDir,
    met: &Authenticated,
    remember: Option<&PeerName>,
    address: Option<Address>,
) -> Result<(), Failure> {
    let book = Book::load(state)?;
    let known = book.follows(&met.peer, &met.rotations);
    let renewed = known.filter(|peer| peer.key != met.peer);
    if let Some(peer) = renewed {
        eprintln!(
            "tack: {} has a new key, {}, which its old one signed",
            peer.name,
            short(&met.peer)
        );
        Book::change(state, |book| Ok(book.follow(&met.peer, &met.rotations)))?;
    }
    match (remember, known) {
        (Some(name), _) => {
            let peer = Peer {
                name: name.clone(),
                key: met.peer,
                addresses: address.into_iter().collect(),
            };
            Book::change(state, |book| book.add(peer))?;
            eprintln!("tack: kept as {name}");
        }
        (None, None) if met.how != ProofMethod::Known => eprintln!(
            "tack: met {}; --remember NAME keeps it, so that next time no ticket and no code is needed",
            short(&met.peer)
        ),
        _ => {}
    }
    Ok(())
}
