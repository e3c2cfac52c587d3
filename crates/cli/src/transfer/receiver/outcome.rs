//! How one connection of a receiver ends, and what is said about that.

use std::sync::Arc;
use std::time::Duration;

use indicatif::HumanBytes;
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::sync::watch;

use super::progress::TransferProgress;
use super::receive_error::ReceiveError;
use super::serve::{Served, Service, serve};
use crate::exit::{Exit, Failure};
use crate::net::TransportFigures;
use crate::printer::{files, transferred, with_stdout};
use crate::transfer::bars::Recovery;
use crate::transfer::channel::Writer;
use crate::transfer::names::printable;
use crate::transfer::protocol::{Refusal, Reply};
use crate::transfer::summary;
use crate::volume::Volume;

/// Time limit for transfers to end after a signal, and for last answers.
pub(super) const WIND_UP: Duration = Duration::from_secs(5);

/// A finished connection, with what the summary needs of its stream.
pub(super) struct Ended {
    pub(super) served: Served,
    peer: String,
    figures: Option<TransportFigures>,
}

/// Serves one connection, up to its end.
pub(super) async fn serve_one<R, W>(
    reader: R,
    mut writer: W,
    service: &Arc<Service>,
    stopped: watch::Receiver<bool>,
    showing: &mut TransferProgress,
) -> Ended
where
    R: AsyncRead + Unpin,
    W: Writer,
{
    let served = serve(reader, &mut writer, service, stopped, showing).await;
    let (peer, figures) = (writer.peer_addr().to_string(), writer.figures());
    if served.result.is_ok() {
        // The answers are acknowledged, or the sender is gone; both end this.
        let _ = tokio::time::timeout(WIND_UP, writer.finished()).await;
    }
    tokio::spawn(part(writer));
    Ended {
        served,
        peer,
        figures,
    }
}

/// Which side makes a new connection when one is lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum Returns {
    /// The sender, if it said so.
    Sender,
    /// This side, as long as this.
    Us(Duration),
}

impl Returns {
    /// How long it is tried to make another connection in place of this one; `None` if not at all.
    fn patience(self, served: &Served) -> Option<Duration> {
        match self {
            Self::Sender => served.returns(),
            Self::Us(left) if served.is_lost() && !left.is_zero() => {
                let theirs = served.hello.as_ref().map(|hello| hello.returns.into());
                Some(theirs.map_or(left, |seconds| left.min(Duration::from_secs(seconds))))
            }
            Self::Us(_) => None,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Sender => "the sender may return and go on",
            Self::Us(_) => Recovery::Reconnecting.words(),
        }
    }
}

/// The outcome of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConnectionOutcome {
    /// Not a transfer, or another connection resumes it.
    Nothing,
    /// The connection was lost, and for this time one of the sides tries to make another one.
    MayReturn(Duration),
    /// A transfer that has ended.
    Ended(Exit),
}

/// Prints the outcome of a connection.
pub(super) fn tell(
    json: bool,
    volume: Volume,
    ended: Ended,
    by: Returns,
) -> Result<ConnectionOutcome, Failure> {
    let Ended {
        mut served,
        peer,
        figures,
    } = ended;
    let error = served.result.as_ref().err().map(ToString::to_string);
    if matches!(served.result, Err(ReceiveError::Superseded)) {
        return Ok(ConnectionOutcome::Nothing);
    }
    let returns = by.patience(&served);
    if served.hello.is_none() {
        let more = returns.map_or(String::new(), |_| format!("; {}", by.words()));
        eprintln!(
            "tack: {peer} did not begin a transfer: {}{more}",
            printable(error.as_deref().unwrap_or("no data received"))
        );
        return Ok(returns.map_or(ConnectionOutcome::Nothing, ConnectionOutcome::MayReturn));
    }
    let report = &mut served.report;
    match &error {
        None => tracing::info!(
            %peer,
            files = report.files,
            bytes = report.bytes,
            failed = report.failed,
            seconds = served.seconds,
            "received a transfer"
        ),
        Some(error) => tracing::warn!(
            %peer,
            files = report.files,
            error,
            may_return = returns.is_some(),
            "a transfer broke off"
        ),
    }
    let exit = match (&error, report.failed, report.there()) {
        (None, 0, _) => Exit::Done,
        (None, _, there) if there > 0 => Exit::Partial,
        _ => Exit::Failed,
    };
    let named = report.named_failures();
    for line in named {
        eprintln!("tack: not stored: {line}");
    }
    let others = report.failed - report.within_refused - named.len() as u64;
    if others > 0 {
        eprintln!("tack: not stored: {others} more (--json lists them)");
    }
    match &error {
        Some(error) if returns.is_some() => eprintln!(
            "tack: transfer from {peer} interrupted after {}: {error}; {}",
            files(report.files),
            by.words()
        ),
        Some(error) => eprintln!(
            "tack: transfer from {peer} failed after {}: {error}",
            files(report.files)
        ),
        None if report.failed > 0 => {
            eprintln!(
                "tack: transfer from {peer}: {} not stored, {} stored",
                report.failed_text(),
                files(report.files)
            );
        }
        None if volume == Volume::Quiet => {}
        None if report.dry_run => {
            let (count, bytes) = report.would;
            eprintln!(
                "dry run from {peer}: would store {}, {}{}",
                files(count),
                HumanBytes(bytes),
                report.spared_text()
            );
        }
        None => eprintln!(
            "{}{} from {peer}",
            transferred(report.files, report.bytes, served.seconds),
            report.spared_text()
        ),
    }
    if error.is_none() && volume != Volume::Quiet {
        for (count, why) in &report.left_out {
            eprintln!("tack: the sender left out {count}: {why}");
        }
    }
    if json {
        with_stdout(|out| {
            let event = match returns {
                Some(_) => "interrupted",
                None => "transfer",
            };
            summary::write(
                (event, "recv"),
                Some(peer),
                error.as_deref(),
                served.seconds,
                figures,
                report,
                out,
            )
        })?;
    }
    Ok(match returns {
        Some(time) => ConnectionOutcome::MayReturn(time),
        None => ConnectionOutcome::Ended(exit),
    })
}

/// Tells a sender why it is not served.
pub(super) async fn turn_away<R, W: Writer>(
    (_reader, mut writer): (R, W),
    reason: Refusal,
    message: &str,
) {
    let mut answer = Vec::new();
    Reply::Fatal {
        reason,
        message: message.to_owned(),
    }
    .encode(&mut answer);
    let telling = async {
        writer.write_all(&answer).await?;
        writer.shutdown().await?;
        writer.finished().await
    };
    let _ = tokio::time::timeout(WIND_UP, telling).await;
    part(writer).await;
}

/// Lets the peer close the connection, and ends it if it does not: the place of a connection that
/// is left to itself would be free before the connection is gone.
async fn part(writer: impl Writer) {
    if tokio::time::timeout(WIND_UP, writer.closed())
        .await
        .is_err()
    {
        writer.abort();
    }
}
