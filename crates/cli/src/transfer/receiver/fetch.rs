//! `tack recv PEER`: fetches what a side offers that waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tack_pairing::meeting::Intent;
use tokio::sync::watch;

use super::command::{ConnectionOutcome, one, tell};
use super::serve::Service;
use crate::exit::{Exit, Failure};
use crate::meeting::{PeerStream, Target};
use crate::signals::Signals;
use crate::transfer::args::RecvArgs;
use crate::transfer::dialer::{DialConfig, PeerDialer};

/// Time limit of a connection to a waiting side.
const CONNECT: Duration = Duration::from_secs(10);
/// Pause between attempts to reach a sender again.
const RETURN: Duration = Duration::from_secs(1);

/// Connects to a side that waits, and receives what it sends.
pub(super) async fn fetch(
    args: &RecvArgs,
    target: Target,
    service: &Arc<Service>,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let dialer = PeerDialer::new(DialConfig {
        target,
        reach: args.reach,
        meeting: &args.meeting,
        volume: args.volume(),
        transport: &args.transport,
        silence: args.timeout,
        connect_timeout: CONNECT,
        intent: Intent::Receive,
        service: "tack send",
    })?;
    let (stop, stopped) = watch::channel(false);
    // Since when nothing came over any connection.
    let mut since = Instant::now();
    let mut lost = false;
    loop {
        let dialed = tokio::select! {
            dialed = dialer.dial() => dialed,
            exit = signals.next() => return Ok(exit),
        };
        let link = match dialed {
            Ok(link) => link,
            Err(failure) if lost && since.elapsed() < args.reconnect => {
                drop(failure);
                tokio::select! {
                    () = tokio::time::sleep(RETURN) => continue,
                    exit = signals.next() => return Ok(exit),
                }
            }
            Err(failure) => return Err(failure),
        };
        let (reader, writer) = PeerStream::into_split(link);
        let mut receiving = std::pin::pin!(one(reader, writer, service, stopped.clone()));
        let (ended, signal) = tokio::select! {
            ended = &mut receiving => (ended, None),
            exit = signals.next() => {
                let _ = stop.send(true);
                (receiving.await, Some(exit))
            }
        };
        if ended.served.report.carried > 0 {
            since = Instant::now();
        }
        match (tell(args.json, args.volume(), ended)?, signal) {
            (_, Some(signal)) => return Ok(signal),
            (ConnectionOutcome::Ended(exit), None) => return Ok(exit),
            (ConnectionOutcome::MayReturn(time), None)
                if since.elapsed() < time.min(args.reconnect) =>
            {
                lost = true;
            }
            (ConnectionOutcome::MayReturn(_) | ConnectionOutcome::Nothing, None) => {
                return Ok(Exit::Failed);
            }
        }
    }
}
