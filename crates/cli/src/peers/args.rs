//! The arguments of `tack peers`.

use clap::{Args, Subcommand};
use tack_pairing::PublicKey;

use super::name::PeerName;
use crate::address::Address;
use crate::state::StateArgs;

#[derive(Debug, Args)]
pub(crate) struct PeersArgs {
    #[command(subcommand)]
    pub(crate) action: Option<PeersAction>,
    /// Print JSON: one object per peer
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PeersAction {
    /// List the known peers
    List,
    /// Add a peer by the public key that `tack id` prints there
    Add {
        /// A name; as a target it ends in a colon: laptop:
        name: PeerName,
        /// The public key
        key: PublicKey,
        /// Where it may be reached: host, host:port or [v6]:port
        #[arg(long, value_name = "ADDR")]
        address: Vec<Address>,
    },
    /// Rename a peer
    Rename {
        /// The present name
        old: PeerName,
        /// The new name
        new: PeerName,
    },
    /// Remove a peer: its key is no longer accepted
    Remove {
        /// Its name
        name: PeerName,
    },
}
