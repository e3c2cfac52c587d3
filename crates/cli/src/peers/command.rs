//! `tack peers`.

use serde::Serialize;

use super::args::{PeersAction, PeersArgs};
use super::book::{Book, Peer};
use crate::exit::{Exit, Failure};
use crate::printer::with_stdout;

#[derive(Serialize)]
struct Listed {
    event: &'static str,
    name: String,
    key: String,
    short: String,
    addresses: Vec<String>,
}

impl From<&Peer> for Listed {
    fn from(peer: &Peer) -> Self {
        Self {
            event: "peer",
            name: peer.name.to_string(),
            key: peer.key.to_string(),
            short: tack_pairing::short(&peer.key),
            addresses: peer.addresses.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Lists or changes the known peers.
pub(crate) fn peers(args: PeersArgs) -> Result<Exit, Failure> {
    let state = args.state.open()?;
    match args.action.unwrap_or(PeersAction::List) {
        PeersAction::List => list(Book::load(&state)?.peers(), args.json)?,
        PeersAction::Add { name, key, address } => {
            let peer = Peer {
                name,
                key,
                addresses: address,
            };
            Book::change(&state, |book| book.add(peer))?;
        }
        PeersAction::Rename { old, new } => {
            Book::change(&state, |book| book.rename(&old, new))?;
        }
        PeersAction::Remove { name } => {
            Book::change(&state, |book| book.remove(&name))?;
        }
    }
    Ok(Exit::Done)
}

fn list(peers: &[Peer], json: bool) -> Result<(), Failure> {
    with_stdout(|out| {
        for listed in peers.iter().map(Listed::from) {
            if json {
                serde_json::to_writer(&mut *out, &listed)?;
                writeln!(out)?;
            } else {
                let addresses = listed.addresses.join(" ");
                let line = format!("{:24} {}  {addresses}", listed.name, listed.short);
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        Ok(())
    })?;
    if peers.is_empty() && !json {
        eprintln!(
            "no peers yet; `tack peers add NAME: KEY` adds one by what `tack id` prints there"
        );
    }
    Ok(())
}
