//! `tack exec`: runs a command in a network of its own, whose only way out is our own TCP behind a
//! TUN device: what the command connects to is reached from a peer.

mod child;
mod codes;
mod device;
mod files;
mod inside;
mod outside;
mod rights;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use self::child::Child;
use self::inside::Inside;
use self::outside::Outside;
use super::carrier::Carrier;
use super::dial::{StandardInput, TunnelArgs, TunnelPeer};
use super::pump;
use crate::exit::Failure;
use crate::observe::ObserveArgs;

pub(crate) use self::codes::{EXEC_EXIT_CODES, EXEC_FAILED};
pub(crate) use self::inside::within;

/// How long connections that the command left behind may carry nothing before they are given up.
const LEFT_BEHIND: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The machine that runs `tack serve`: a known peer (laptop:), a ticket, a code or an address.
    /// Can be left out beside --ticket-file, --ticket-fd, --code and TACK_TICKET
    #[arg(value_name = "PEER")]
    peer: Option<String>,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<OsString>,
    /// Do not say why connections are refused or lost
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    tunnel: TunnelArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}

/// Starts this program again inside of new namespaces, where it makes a device and then waits to
/// become the command. To be called before this process has threads.
pub(crate) fn enter(args: &ExecArgs) -> Result<Inside, Failure> {
    // The ticket is read later, and is not for the command. Its own streams are.
    if let Some(descriptor) = args.tunnel.peer.target.ticket_descriptor()
        && descriptor > 2
    {
        // Beside a known peer nobody reads it.
        tack_io::private::close_on_exec(descriptor).map_err(|error| {
            Failure::usage(format!(
                "cannot read the ticket from /dev/fd/{descriptor}: {error}"
            ))
        })?;
    }
    Inside::start(&args.command)
}

/// Runs the command, and says what `tack` exits with.
pub(crate) async fn exec(args: ExecArgs, mut inside: Inside) -> Result<ExitCode, Failure> {
    let timeout = args.tunnel.timeout;
    let peer = args.peer.as_deref();
    let target = args.tunnel.target(peer, StandardInput::Carried)?;
    let (peer, stream) = TunnelPeer::meet(Arc::new(args.tunnel), target).await?;
    // The peer lets us in: that was the question.
    stream.reset();
    let carrier = Arc::new(Carrier::new(peer).quiet(args.quiet));
    let mut outside = Outside::start(inside.take_device(), Arc::clone(&carrier))?;
    let mut child = Child::new(inside)?;
    child.begin()?;
    let code = tokio::select! {
        code = child.ended() => code?,
        failure = outside.failed() => return Err(failure),
    };
    // What the command wrote last may still be on its way.
    let mut moved = pump::moved();
    while !outside.is_idle() {
        let _ = tokio::time::timeout(LEFT_BEHIND, outside.idle()).await;
        let now = pump::moved();
        if now == moved {
            break;
        }
        moved = now;
    }
    outside.close();
    let limit = match outside.is_idle() {
        true => timeout,
        // What is left behind does not end by itself.
        false => LEFT_BEHIND,
    };
    carrier.peer.delivered(limit).await;
    Ok(code)
}
