//! `tack recv PEER`: fetches what a side offers that waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tack_pairing::meeting::Intent;
use tokio::sync::watch;

use super::outcome::{ConnectionOutcome, Returns, serve_one, tell};
use super::progress::TransferProgress;
use super::serve::Service;
use crate::exit::{Exit, Failure};
use crate::meeting::{PeerStream, Target};
use crate::signals::Signals;
use crate::transfer::args::RecvArgs;
use crate::transfer::bars::SAME_AGAIN;
use crate::transfer::dialer::{DialConfig, PeerDialer};
use crate::transfer::pause::Pause;

/// Time limit of a connection to a waiting side.
const CONNECT: Duration = Duration::from_secs(10);
/// Where no program listens any more after the sender closed or reset a connection, or after a
/// connection on which no transfer began, the sender has ended. This is time for one that is being
/// started again.
const STARTS_AGAIN: Duration = Duration::from_secs(5);

/// A connection that was lost.
struct Lost {
    /// How long it is tried to make another one, counted from the last progress.
    patience: Duration,
    /// When, if the sender may have ended.
    ended: Option<Instant>,
}

impl Lost {
    /// True when no further attempt is made, the last one of which ended with `failure`.
    fn is_final(&self, failure: &Failure, since: Instant) -> bool {
        let is_gone = |ended: Instant| failure.is_closed_port() && ended.elapsed() >= STARTS_AGAIN;
        failure.exit != Exit::Network
            || since.elapsed() >= self.patience
            || self.ended.is_some_and(is_gone)
    }
}

/// Connects to a side that waits, and receives what it sends. A connection that is lost is made
/// again, as a sender makes it that connects (`attempts.rs` of the sender).
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
    let reconnect = args.fetches_again();
    let (stop, stopped) = watch::channel(false);
    let mut showing = service.live.begin();
    let mut pause = Pause::FIRST;
    // Since when nothing came over any connection.
    let mut since = Instant::now();
    let mut lost = None::<Lost>;
    loop {
        let dialed = tokio::select! {
            dialed = while_shown(&mut showing, lost.is_some(), dialer.dial()) => dialed,
            exit = signals.next() => return Ok(exit),
        };
        match (dialed, &lost) {
            (Ok(link), _) => {
                let (reader, writer) = PeerStream::into_split(link);
                let receiving = serve_one(reader, writer, service, stopped.clone(), &mut showing);
                let mut receiving = std::pin::pin!(receiving);
                let (ended, signal) = tokio::select! {
                    ended = &mut receiving => (ended, None),
                    exit = signals.next() => {
                        let _ = stop.send(true);
                        (receiving.await, Some(exit))
                    }
                };
                if ended.served.report.carried > 0 {
                    (since, pause) = (Instant::now(), Pause::FIRST);
                }
                let may_have_ended = ended.served.may_have_ended() || ended.served.hello.is_none();
                // A side that never began a transfer has none for us.
                let is_transfer = ended.served.hello.is_some() || lost.is_some();
                let left = match is_transfer {
                    true => reconnect.saturating_sub(since.elapsed()),
                    false => Duration::ZERO,
                };
                let by = Returns::Us(left);
                let telling = || tell(args.json, args.volume(), ended, by);
                match (service.live.beside_bars(telling)?, signal) {
                    (_, Some(signal)) => return Ok(signal),
                    (ConnectionOutcome::Ended(exit), None) => return Ok(exit),
                    (ConnectionOutcome::Nothing, None) => return Ok(Exit::Failed),
                    (ConnectionOutcome::MayReturn(left), None) => {
                        let patience = since.elapsed() + left;
                        lost = Some(Lost {
                            patience,
                            ended: may_have_ended.then(Instant::now),
                        });
                    }
                }
            }
            (Err(failure), Some(lost)) if lost.is_final(&failure, since) => {
                drop(showing);
                return Err(Failure::plain(format!(
                    "the connection to the sender was lost, and none could be made again: {failure}; {SAME_AGAIN}"
                )));
            }
            (Err(_), Some(_)) => {}
            (Err(failure), None) => return Err(failure),
        }
        let left = reconnect.saturating_sub(since.elapsed());
        let pausing = tokio::time::sleep(pause.next(left));
        tokio::select! {
            () = while_shown(&mut showing, true, pausing) => {}
            exit = signals.next() => return Ok(exit),
        }
    }
}

/// Does `work` while it is shown that the connection is being made again, if it is lost.
async fn while_shown<T>(
    showing: &mut TransferProgress,
    is_lost: bool,
    work: impl Future<Output = T>,
) -> T {
    tokio::select! {
        done = work => done,
        never = showing.reconnecting(), if is_lost => match never {},
    }
}
