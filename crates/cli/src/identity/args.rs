//! The arguments of `tack id`.

use clap::{Args, Subcommand};

use crate::state::StateArgs;

#[derive(Debug, Args)]
pub(crate) struct IdArgs {
    #[command(subcommand)]
    pub(crate) action: Option<IdAction>,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum IdAction {
    /// Print the public key; make the identity if there is none
    Show,
    /// Make a new key that the old one signs: peers that know the old one accept it
    Rotate {
        /// Do not sign the new key with the old one; use this if the old key may be stolen. Peers
        /// must then pair again, and remove the old key with `tack peers remove`
        #[arg(long)]
        forget: bool,
    },
}
