//! `tack connect`: one connection to a target behind a peer, on standard input and output.

use std::sync::Arc;

use clap::Args;

use super::dial::{StandardInput, TunnelArgs, TunnelPeer, ask};
use super::message::{Answer, Request};
use super::standard_streams::join_standard_streams;
use super::target::TunnelTarget;
use crate::exit::{Exit, Failure, OutputClosed};
use crate::signals::Signals;

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct ConnectArgs {
    /// The machine that runs `tack serve`: a known peer (laptop:), a ticket, a code or an address.
    /// Can be left out beside --ticket-file, --ticket-fd, --code and TACK_TICKET
    #[arg(value_name = "PEER")]
    peer: Option<String>,
    /// Where it connects to: HOST:PORT, as it sees them
    #[arg(value_name = "TARGET")]
    target: TunnelTarget,
    #[command(flatten)]
    tunnel: TunnelArgs,
}

/// Carries standard input and output until both streams have ended, or the connection has.
pub(crate) async fn connect(args: ConnectArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    tokio::select! {
        done = carry(args) => done,
        exit = signals.next() => Ok(exit),
    }
}

async fn carry(args: ConnectArgs) -> Result<Exit, Failure> {
    let peer = args.peer.as_deref();
    let target = args.tunnel.target(peer, StandardInput::Carried)?;
    let (_peer, stream) = TunnelPeer::meet(Arc::new(args.tunnel), target).await?;
    let request = Request::Connect(args.target.clone());
    let failed = |error: &dyn std::fmt::Display| {
        Failure::network(format!("cannot connect to {}: {error}", args.target))
    };
    let (stream, answer) = ask(stream, &request)
        .await
        .map_err(|error| failed(&error))?;
    let Answer::Open(_) = answer else {
        return Err(failed(&"unexpected answer from the other side"));
    };
    let joined = join_standard_streams(stream).await;
    joined.map_err(|error| match error.downcast::<OutputClosed>() {
        Ok(closed) => Failure::failed("standard output", closed),
        Err(error) => Failure::failed(
            format!("the connection to {} broke off", args.target),
            error,
        ),
    })?;
    Ok(Exit::Done)
}
