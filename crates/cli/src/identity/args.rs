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
        /// Do not sign it with the old key, because others may have that: peers have to pair
        /// again, and `tack peers remove` there shuts the old key out
        #[arg(long)]
        forget: bool,
    },
}
