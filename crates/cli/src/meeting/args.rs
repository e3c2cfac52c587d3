//! What commands that meet a peer have in common on the command line.

use std::time::Duration;

use clap::Args;

use super::target::TargetArgs;
use super::waiting::WaitArgs;
use crate::peers::PeerName;
use crate::state::StateArgs;
use crate::values::duration;

/// How long a side that is not there yet is waited for, where either may be started first.
const SEARCH: Duration = Duration::from_secs(60);

/// How to reach a peer that waits.
#[derive(Debug, Args)]
pub(crate) struct PeerArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Save the peer under this name. Later, NAME: is enough to connect, without ticket and code
    /// (the other side has to keep this installation, too)
    #[arg(long, value_name = "NAME")]
    pub(crate) remember: Option<PeerName>,
    /// Wait this time for the other side if it is not there yet [default: 60s for a code on this
    /// network, and for files to or from a name; else 0s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// How to meet a peer, whichever side waits.
#[derive(Debug, Args)]
pub(crate) struct MeetingArgs {
    #[command(flatten)]
    pub(crate) peer: PeerArgs,
    #[command(flatten)]
    pub(crate) waiting: WaitArgs,
}

impl PeerArgs {
    /// How long to wait for the other side; `usual`: without being told to.
    pub(crate) fn wait(&self, usual: bool) -> Duration {
        self.wait
            .unwrap_or(if usual { SEARCH } else { Duration::ZERO })
    }
}
