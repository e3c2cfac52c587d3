//! What commands that meet a peer have in common on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::target::TargetArgs;
use crate::exit::Failure;
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

/// How a waiting side lets peers in.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// How long the ticket is valid; 0s is forever [default: 24h]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) ticket_lifetime: Option<Duration>,
    /// Let in everybody who has the ticket, until it expires [default: the first installation that
    /// uses it, for one transfer]
    #[arg(long)]
    pub(super) keep: bool,
    /// Write the ticket to this file, with mode 0600, for scripts
    #[arg(long, value_name = "FILE")]
    pub(super) write_ticket: Option<PathBuf>,
    /// Show no code, and do not announce this program on the local network
    #[arg(long)]
    pub(super) no_code: bool,
}

impl WaitArgs {
    /// For a side that shows neither a ticket nor a code.
    pub(crate) fn without_code() -> Self {
        Self {
            ticket_lifetime: Some(Duration::ZERO),
            keep: false,
            write_ticket: None,
            no_code: true,
        }
    }

    /// Refuses options of a side that waits, these and `others`, each with whether it was given,
    /// since the other side is `named`.
    ///
    /// # Errors
    /// The first one that was given.
    pub(crate) fn check_unused(
        &self,
        others: &[(&'static str, bool)],
        named: &str,
    ) -> Result<(), Failure> {
        match self.given(others) {
            Some(option) => Err(Failure::usage(format!(
                "{option} is for a side that waits for the other one, but {named}; leave out one of them"
            ))),
            None => Ok(()),
        }
    }

    /// The first option that was given, of these and `others`.
    fn given(&self, others: &[(&'static str, bool)]) -> Option<&'static str> {
        let own = [
            ("--ticket-lifetime", self.ticket_lifetime.is_some()),
            ("--keep", self.keep),
            ("--write-ticket", self.write_ticket.is_some()),
            ("--no-code", self.no_code),
        ];
        let mut all = own.iter().chain(others);
        all.find(|(_, is_given)| *is_given)
            .map(|(option, _)| *option)
    }

    /// True when an option makes sense for an invitation alone.
    pub(crate) fn wants_ticket(&self) -> bool {
        self.keep || self.write_ticket.is_some()
    }
}

impl MeetingArgs {
    /// Refuses options about tickets, codes and keys for clear text (`--insecure`).
    ///
    /// # Errors
    /// The first one that was given.
    pub(crate) fn check_clear(&self) -> Result<(), Failure> {
        let remember = ("--remember", self.peer.remember.is_some());
        match self.waiting.given(&[remember]) {
            Some(option) => Err(Failure::usage(format!(
                "{option} is for encrypted connections, but --insecure is clear text, which has no tickets and no keys; leave out one of them"
            ))),
            None => Ok(()),
        }
    }
}

impl PeerArgs {
    /// How long to wait for the other side; `usual`: without being told to.
    pub(crate) fn wait(&self, usual: bool) -> Duration {
        self.wait
            .unwrap_or(if usual { SEARCH } else { Duration::ZERO })
    }
}
