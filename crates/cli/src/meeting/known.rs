//! What follows from a meeting for the peers that are known.

use tack_pairing::meeting::{Authenticated, ProofMethod};
use tack_pairing::short;

use crate::address::Address;
use crate::exit::Failure;
use crate::peers::{Book, Peer, PeerName, Refused};
use crate::state::StateDir;
use crate::volume::Volume;

/// What is kept of a peer, and what is said about that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keep<'a> {
    /// The name under which the peer is stored (`--remember`).
    pub(super) name: Option<&'a PeerName>,
    pub(super) volume: Volume,
    /// This side connected to it: it can be reached there.
    pub(super) was_reached: bool,
}

/// Keeps the new key of a known peer, and the peer under the name of `keep`. `address` is where it
/// can be reached again.
///
/// A peer that has a name keeps it: what its user wants of it does not depend on that.
///
/// # Errors
/// The name belongs to another key, or nothing can be stored.
pub(super) fn update_known_peers(
    state: &StateDir,
    met: &Authenticated,
    keep: Keep<'_>,
    address: Option<Address>,
) -> Result<(), Failure> {
    let say = |words: String| {
        if keep.volume != Volume::Quiet {
            eprintln!("tack: {words}");
        }
    };
    let book = Book::load(state)?;
    let known = book.follows(&met.peer, &met.rotations);
    let renewed = known.filter(|peer| peer.key != met.peer);
    if let Some(peer) = renewed {
        say(format!(
            "{} has a new key, {}, which its old one signed",
            peer.name,
            short(&met.peer)
        ));
        Book::change(state, |book| Ok(book.follow(&met.peer, &met.rotations)))?;
    }
    // The first address of a peer that was added by its key.
    if let (Some(peer), Some(address)) = (known, &address)
        && keep.was_reached
        && peer.addresses.is_empty()
    {
        Book::change(state, |book| {
            book.locate(&peer.name, address);
            Ok(())
        })?;
    }
    match (keep.name, known) {
        (Some(name), known) => {
            let peer = Peer {
                name: name.clone(),
                key: met.peer,
                addresses: address.into_iter().collect(),
            };
            let elsewhere = Book::change(state, |book| match book.add(peer) {
                Err(Refused::KnownKey(other)) => Ok(Some(other)),
                added => added.map(|()| None),
            })?;
            match (elsewhere, known) {
                (Some(other), _) => say(format!(
                    "this peer is known already, as {other}, and stays so; to change its name: tack peers rename {other} {name}"
                )),
                (None, None) => say(format!("kept as {name}")),
                // It had this name.
                (None, Some(_)) => {}
            }
        }
        (None, None) if met.how != ProofMethod::Known => say(format!(
            "met {}; --remember NAME keeps it, so that next time no ticket and no code is needed (the other side has to keep this installation, too)",
            short(&met.peer)
        )),
        _ => {}
    }
    Ok(())
}
