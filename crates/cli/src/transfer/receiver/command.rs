//! `tack recv`.

use std::sync::Arc;

use serde::Serialize;
use tack_pairing::meeting::{Authenticated, Intent};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::admission::Admission;
use super::committer::Committer;
use super::fetch::fetch;
use super::holder::Sessions;
use super::outcome::{ConnectionOutcome, Returns, WIND_UP, serve_one, tell, turn_away};
use super::progress::LiveProgress;
use super::queue::Queue;
use super::remembered::Transfers;
use super::serve::{GREETING, Service};
use super::store::Store;
use crate::exit::{Exit, Failure};
use crate::keyboard;
use crate::printer::with_stdout;
use crate::signals::Signals;
use crate::transfer::args::RecvArgs;
use crate::transfer::channel::Channel;
use crate::transfer::listener::{Listen, TransferListener};
use crate::transfer::protocol::Refusal;
use crate::transfer::report::Listing;
use crate::volume::Volume;

const BUSY: &str =
    "its limits of transfers (--max-transfers) and of waiting senders (--max-waiting) are reached";
const STOPPING: &str = "the receiver is shutting down";
/// Maximum number of connections beyond the permitted transfers that get a refusal.
const MAX_FAILED_HANDSHAKES: usize = 64;

#[derive(Serialize)]
struct Listening {
    event: &'static str,
    /// The first address that a peer can type.
    address: String,
    addresses: Vec<String>,
    dir: String,
}

/// Receives until a signal comes, or one transfer with `--once`.
pub(crate) async fn recv(args: RecvArgs) -> Result<Exit, Failure> {
    let store = store(&args)?;
    let target = args.target()?;
    if args.confirm && keyboard::has_ended() {
        return Err(Failure::usage(
            "--confirm asks on standard input, which is closed or has ended",
        ));
    }
    let service = Arc::new(Service {
        store,
        committer: Committer::new(),
        listing: if args.json {
            Listing::Files
        } else {
            Listing::CountsOnly
        },
        admission: Admission {
            max_bytes: args.max_bytes,
            delete: args.delete,
            ask: args.confirm,
            transfers: Transfers::default(),
        },
        sessions: Sessions::default(),
        live: LiveProgress::new(args.volume(), args.json),
        silence: match &target {
            Some(_) => args.fetching_silence(),
            None => args.timeout,
        },
        greeting: GREETING,
    });
    let mut signals = Signals::new()?;
    if let Some(target) = target {
        return fetch(&args, target, &service, &mut signals).await;
    }
    let (limit, waiting) = args.places();
    let listen = Listen {
        at: args.listen.as_ref(),
        reach: args.reach,
        meeting: &args.meeting,
        volume: args.volume(),
        transport: &args.transport,
        silence: args.timeout,
        intent: Intent::Send,
        command: "tack send PATH",
        max_connections: limit + waiting + MAX_FAILED_HANDSHAKES,
        // Others get an answer even when one peer has taken all places.
        max_of_peer: limit + waiting + MAX_FAILED_HANDSHAKES / 2,
        backlog: MAX_FAILED_HANDSHAKES,
    };
    let listener = Arc::new(TransferListener::open(listen).await?);
    announce(&args, listener.addresses())?;
    if listener.is_open_to_others() && args.volume() != Volume::Quiet {
        eprintln!("tack: clear text: everybody who reaches this port can send files here");
    }
    listener.invite()?;

    let queue = Queue::new(limit, waiting);
    let (stop, stopped) = watch::channel(false);
    let (close, closing) = watch::channel(false);
    let mut transfers = JoinSet::new();
    // With --once: when a sender that may return is no longer waited for.
    let mut leaving = None;
    let ended = loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, met) = accepted?;
                let place = queue.try_enter();
                let ticket = if place.is_none() { queue.line_up() } else { None };
                if place.is_none() && ticket.is_none() {
                    tokio::spawn(turn_away(stream.into_split(), Refusal::Busy, BUSY));
                    continue;
                }
                let (service, stopped) = (Arc::clone(&service), stopped.clone());
                let (json, volume) = (args.json, args.volume());
                let closing = closing.clone();
                let (listener, once) = (Arc::clone(&listener), args.is_once());
                transfers.spawn(async move {
                    let (reader, mut writer) = Channel::into_split(stream);
                    let place = match (place, ticket) {
                        (None, Some(ticket)) => ticket.wait(&mut writer, closing).await,
                        (place, _) => place,
                    };
                    let Some(place) = place else {
                        turn_away((reader, writer), Refusal::Stopping, STOPPING).await;
                        return Ok(Ok(ConnectionOutcome::Nothing));
                    };
                    let mut showing = service.live.begin();
                    let ended = serve_one(reader, writer, &service, stopped, &mut showing).await;
                    drop(showing);
                    if ended.served.is_complete() {
                        complete(&listener, met.as_deref(), once);
                    }
                    let is_dry_run = ended.served.is_dry_run();
                    // On a separate thread: a slow reader of our output must not stop other
                    // transfers. The place goes only then, so that summaries do not pile up.
                    let telling = move || tell(json, volume, ended, Returns::Sender);
                    let told = tokio::task::spawn_blocking(telling).await;
                    drop(place);
                    // With --once the transfer itself is still to come.
                    match told {
                        Ok(Ok(ConnectionOutcome::Ended(_))) if is_dry_run => {
                            Ok(Ok(ConnectionOutcome::Nothing))
                        }
                        told => told,
                    }
                });
            }
            Some(ended) = transfers.join_next() => {
                // A panic in a transfer is a bug; it must not pass for an orderly end.
                let told = ended.flatten().unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
                match told {
                    Ok(ConnectionOutcome::Ended(exit)) if args.is_once() => break Ok(exit),
                    Ok(ConnectionOutcome::MayReturn(time)) if args.is_once() => {
                        let until = tokio::time::Instant::now() + time.min(args.reconnect);
                        // A reset of an older connection takes nothing back.
                        leaving = leaving.max(Some(until));
                    }
                    Ok(_) => {}
                    // Further transfers could not be reported, so none begins. Those under way are
                    // not to blame: they end in their own time, each bounded by --timeout.
                    Err(failure) => {
                        let _ = close.send(true);
                        let finishing = async { while transfers.join_next().await.is_some() {} };
                        let turning_away = async {
                            while let Ok((stream, _)) = listener.accept().await {
                                tokio::spawn(turn_away(stream.into_split(), Refusal::Stopping, STOPPING));
                            }
                        };
                        tokio::select! {
                            () = finishing => break Err(failure),
                            () = async { turning_away.await; std::future::pending().await } => {}
                            signal = signals.next() => {
                                let _ = stop.send(true);
                                wind_up(&mut transfers, &mut signals).await;
                                break Ok(signal);
                            }
                        }
                    }
                }
            }
            () = async { tokio::time::sleep_until(leaving.expect("checked")).await }, if leaving.is_some() && transfers.is_empty() => {
                eprintln!("tack: the sender did not return");
                break Ok(Exit::Failed);
            }
            signal = signals.next() => {
                let _ = close.send(true);
                let _ = stop.send(true);
                let is_cut_off = wind_up(&mut transfers, &mut signals).await;
                // Nothing was cut off: being stopped is how a server ends.
                break Ok(if is_cut_off || leaving.is_some() { signal } else { Exit::Done });
            }
        }
    };
    let endpoint = listener.endpoint();
    listener.withdraw();
    drop(listener);
    let _ = close.send(true);
    // The confirmations must reach the sender before this process and its socket are gone.
    let _ = endpoint.shutdown(WIND_UP).await;
    ended
}

/// The directory that files go to, or standard output.
fn store(args: &RecvArgs) -> Result<Store, Failure> {
    if args.to_stdout() {
        return Store::standard_output()
            .map_err(|error| Failure::failed("cannot write to standard output", error));
    }
    Store::open(args.dir(), args.existing()).map_err(|error| {
        Failure::usage(format!(
            "{}: cannot store files in this directory: {error}",
            args.dir().display()
        ))
    })
}

/// How the task of a connection ends.
type Told = Result<Result<ConnectionOutcome, Failure>, JoinError>;

/// Waits for the transfers that were asked to stop: not for long, and not beyond a second signal.
/// True if one of them did not come to its end.
async fn wind_up(transfers: &mut JoinSet<Told>, signals: &mut Signals) -> bool {
    let mut is_cut_off = false;
    let ending = async {
        while let Some(ended) = transfers.join_next().await {
            is_cut_off |= !matches!(
                ended,
                Ok(Ok(Ok(ConnectionOutcome::Nothing
                    | ConnectionOutcome::Ended(Exit::Done | Exit::Partial))))
            );
        }
    };
    let is_ended = tokio::select! {
        () = ending => true,
        () = tokio::time::sleep(WIND_UP) => {
            eprintln!("tack: a transfer did not end in time");
            false
        }
        _ = signals.next() => false,
    };
    is_cut_off || !is_ended
}

/// Ends the validity of a ticket or code; the side goes on with new ones.
fn complete(listener: &TransferListener, met: Option<&Authenticated>, once: bool) {
    listener.complete(met);
    if !once {
        listener.replace(met);
    }
}

fn announce(args: &RecvArgs, addresses: Vec<String>) -> Result<(), Failure> {
    let dir = args.dir().display().to_string();
    let address = addresses.first().cloned().unwrap_or_default();
    if args.json {
        let listening = Listening {
            event: "listening",
            address,
            addresses,
            dir,
        };
        return with_stdout(|out| {
            serde_json::to_writer(&mut *out, &listening)?;
            writeln!(out)
        });
    }
    if args.volume() == Volume::Quiet {
        return Ok(());
    }
    let place = if args.to_stdout() {
        "to standard output".to_owned()
    } else {
        format!("into {dir}")
    };
    eprintln!("listening on {}, receiving {place}", addresses.join(", "));
    Ok(())
}
