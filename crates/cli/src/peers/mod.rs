//! Whom this installation knows: `tack peers`.

mod args;
mod book;
mod command;
mod name;

pub(crate) use args::PeersArgs;
pub(crate) use book::{Book, Peer, Refused};
pub(crate) use command::peers;
pub(crate) use name::PeerName;
