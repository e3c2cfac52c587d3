//! `tack send`.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tack_pairing::meeting::Intent;
use tokio::io::AsyncWriteExt;

use super::attempts::{Dialer, Outcome, RetryLimits, send_patiently};
use super::confirmations::Confirmations;
use super::exclude::Exclude;
use super::options::{Links, Options, Source, total};
use super::progress::Progress;
use super::send::Outbound;
use crate::exit::{Exit, Failure};
use crate::meeting::{PeerStream, Target};
use crate::net::TransportFigures;
use crate::printer::{files, transferred, with_stdout};
use crate::signals::Signals;
use crate::transfer::args::SendArgs;
use crate::transfer::bars::{Recovery, SAME_AGAIN};
use crate::transfer::channel::Writer;
use crate::transfer::dialer::{DialConfig, PeerDialer};
use crate::transfer::listener::{Listen, TransferListener};
use crate::transfer::names;
use crate::transfer::protocol::Hello;
use crate::transfer::report::{Listing, Report};
use crate::transfer::summary;
use crate::volume::Volume;

/// How long the last acknowledgements may take after everything was confirmed.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long the end of our stream may take to reach the receiver of a transfer that ends early,
/// behind what is under way.
const PARTING: Duration = Duration::from_secs(1);

/// Connections at a time while this side waits for one.
const MAX_FAILED_HANDSHAKES: usize = 64;

impl Dialer for PeerDialer<'_> {
    type Channel = PeerStream;

    async fn dial(&self) -> Result<PeerStream, Failure> {
        PeerDialer::dial(self).await
    }

    fn recovery(&self) -> Recovery {
        if self.is_waiting() {
            Recovery::WaitingForReceiver
        } else {
            Recovery::Reconnecting
        }
    }

    async fn replaced(&self) {
        PeerDialer::replaced(self).await;
    }
}

/// Sends what the arguments name.
pub(crate) async fn send(args: SendArgs) -> Result<Exit, Failure> {
    let (paths, target) = args.targets()?;
    let sources = sources(&args, &paths)?;
    let to = target
        .as_ref()
        .map_or_else(|| "whoever connects".to_owned(), Target::shown);
    let dialer = dialer(&args, target).await?;
    let exit = send_by(&args, sources, &to, &dialer).await?;
    // After anything else the same command may be given again.
    if exit == Exit::Done && !args.dry_run {
        dialer.complete();
    }
    Ok(exit)
}

/// Connections to the target, or from whoever is let in.
async fn dialer<'a>(args: &'a SendArgs, target: Option<Target>) -> Result<PeerDialer<'a>, Failure> {
    let Some(target) = target else {
        let listener = TransferListener::open(Listen {
            at: args.listen.as_ref(),
            reach: args.reach,
            meeting: &args.meeting,
            volume: args.volume(),
            transport: &args.transport,
            silence: args.timeout,
            intent: Intent::Receive,
            command: "tack recv",
            max_connections: MAX_FAILED_HANDSHAKES,
            max_of_peer: MAX_FAILED_HANDSHAKES / 2,
            backlog: MAX_FAILED_HANDSHAKES,
        })
        .await?;
        if args.volume() != Volume::Quiet {
            eprintln!("listening on {}", listener.addresses().join(", "));
        }
        listener.invite()?;
        return Ok(PeerDialer::waiting(listener));
    };
    PeerDialer::new(DialConfig {
        target,
        reach: args.reach,
        meeting: &args.meeting,
        volume: args.volume(),
        transport: &args.transport,
        silence: args.timeout,
        connect_timeout: args.connect_timeout,
        intent: Intent::Send,
        service: "tack recv",
    })
}

/// Sends what the arguments name over connections of `dialer` to the receiver that is called `to`.
pub(crate) async fn send_by<D: Dialer>(
    args: &SendArgs,
    sources: Vec<Source>,
    to: &str,
    dialer: &D,
) -> Result<Exit, Failure> {
    let options = options(args)?;
    let listing = if args.json {
        Listing::Files
    } else {
        Listing::CountsOnly
    };
    let mut signals = Signals::new()?;
    let progress = Progress::new(args.volume(), args.json);
    let mut report = Report::new(listing);
    report.dry_run = args.dry_run;
    let confirmations = Arc::new(Confirmations::new(report, progress.clone()));
    let total = {
        let (sources, options) = (sources.clone(), options.clone());
        tokio::task::spawn_blocking(move || total(&sources, &options))
            .await
            .unwrap_or(None)
    };
    if let Some((files, bytes)) = total {
        progress.set_total(files, Some(bytes));
    }
    // What standard input said is gone once it was sent.
    let is_lasting = sources
        .iter()
        .all(|source| matches!(source, Source::Path { .. }));
    let reconnect = if is_lasting {
        args.reconnect
    } else {
        Duration::ZERO
    };
    let (files, bytes) = total.unwrap_or((u64::MAX, u64::MAX));
    let outbound = Outbound {
        sources,
        hello: Hello {
            names: names::RULES,
            session: random()?,
            returns: u32::try_from(reconnect.as_secs()).unwrap_or(u32::MAX),
            taken: args.taken(),
            dry_run: args.dry_run,
            delete: args.delete,
            files,
            bytes,
        },
        options,
        // A connection that can be made again is not waited for as long.
        silence: if reconnect > Duration::ZERO {
            args.timeout / 2
        } else {
            args.timeout
        },
        limit: args.bwlimit.map(|rate| (rate.bits_per_sec() / 8).max(1)),
    };
    let limits = RetryLimits {
        retry: args.retry,
        reconnect,
    };
    let ticking = tokio::spawn(progress.clone().tick());
    let outcome = send_patiently(
        dialer,
        &outbound,
        limits,
        &mut signals,
        &confirmations,
        &progress,
    )
    .await;
    confirmations.disconnect();
    ticking.abort();
    progress.finish();

    let ended = Ended {
        to,
        json: args.json,
        dry_run: args.dry_run,
        can_go_on: is_lasting,
        seconds: progress.seconds(),
        report: confirmations.take_report(),
        progress: &progress,
    };
    ended.tell(outcome).await
}

/// What a transfer came to.
struct Ended<'a> {
    to: &'a str,
    json: bool,
    dry_run: bool,
    /// Nothing of the source is gone.
    can_go_on: bool,
    seconds: f64,
    report: Report,
    progress: &'a Progress,
}

impl Ended<'_> {
    /// Says it, and ends the connection.
    async fn tell<W: Writer>(mut self, outcome: Outcome<W>) -> Result<Exit, Failure> {
        let (result, writer) = match outcome {
            Outcome::Unreached(failure) => {
                self.summary(self.to.to_owned(), Some(&failure.to_string()), None)?;
                return Err(failure);
            }
            Outcome::Ended(writer, result) => (Ok(result), Some(writer)),
            Outcome::Interrupted(writer, exit) => (Err(exit), writer),
        };
        let peer = match &writer {
            Some(writer) => writer.peer_addr().to_string(),
            None => self.to.to_owned(),
        };
        let figures = writer.as_ref().and_then(Writer::figures);
        let error = match &result {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("interrupted by a signal".to_owned()),
        };
        match writer {
            // Everything is confirmed; this only spares the receiver a wait for our end of the
            // connection.
            Some(writer) if error.is_none() => {
                let _ = tokio::time::timeout(FAREWELL, writer.closed()).await;
            }
            Some(writer) => part(writer).await,
            None => {}
        }
        self.summary(peer.clone(), error.as_deref(), figures)?;
        let report = &self.report;
        match &error {
            None => tracing::info!(
                peer,
                files = report.files,
                bytes = report.bytes,
                failed = report.failed,
                seconds = self.seconds,
                "sent a transfer"
            ),
            Some(error) => tracing::error!(peer, error, "the transfer failed"),
        }
        // That nothing was sent is no success to tell of.
        let went_well = error.is_none() && (report.failed == 0 || report.there() > 0);
        if !self.json && went_well && !self.progress.is_quiet() {
            if self.dry_run {
                let (files, bytes) = report.would;
                let would = self.progress.would(files, bytes);
                eprintln!("would send {would} to {peer}{}", report.spared_text());
            } else {
                let stored = transferred(report.files, report.bytes, self.seconds);
                eprintln!("{stored} to {peer}{}", report.spared_text());
            }
        }
        if !self.json && !self.progress.is_quiet() {
            for (count, why) in report.left_out_here() {
                eprintln!("tack: {count} left out: {why}");
            }
        }
        match result {
            Err(exit) => {
                eprintln!(
                    "tack: interrupted by a signal; {} stored and confirmed",
                    files(report.files)
                );
                Ok(exit)
            }
            Ok(Err(error)) if error.is_busy() => Err(Failure::busy(format!("{peer}: {error}"))),
            Ok(Err(error)) if error.is_lost() && self.can_go_on => Err(Failure::plain(format!(
                "transfer to {peer}: {error}; {SAME_AGAIN}"
            ))),
            Ok(Err(error)) => Err(Failure::failed(format!("transfer to {peer}"), error)),
            Ok(Ok(())) if report.failed == 0 => Ok(Exit::Done),
            Ok(Ok(())) => {
                eprintln!(
                    "tack: {} could not be transferred, {} {}{}",
                    report.failed_text(),
                    files(report.files),
                    if report.files == 1 { "was" } else { "were" },
                    report.spared_text()
                );
                Ok(if report.there() > 0 {
                    Exit::Partial
                } else {
                    Exit::Failed
                })
            }
        }
    }

    fn summary(
        &mut self,
        peer: String,
        error: Option<&str>,
        figures: Option<TransportFigures>,
    ) -> Result<(), Failure> {
        if !self.json {
            return Ok(());
        }
        let (seconds, report) = (self.seconds, &mut self.report);
        with_stdout(|out| {
            let kind = ("transfer", "send");
            summary::write(kind, Some(peer), error, seconds, figures, report, out)
        })
    }
}

/// Ends a transfer early. The receiver waits for the sender after a reset, which may come from
/// anything on the path; a closed stream says that this side does not return.
async fn part(mut writer: impl Writer) {
    let parting = async {
        writer.shutdown().await?;
        writer.closed().await;
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(PARTING, parting).await;
    writer.abort();
    // Lets the reset leave.
    tokio::time::sleep(Duration::from_millis(20)).await;
}

fn options(args: &SendArgs) -> Result<Options, Failure> {
    let mut patterns = Vec::new();
    for file in &args.exclude_from {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::usage(format!("{}: cannot be read: {error}", file.display()))
        })?;
        patterns.extend(text.lines().map(str::to_owned));
    }
    patterns.extend(args.exclude.iter().cloned());
    let exclude = Exclude::new(patterns)
        .map_err(|error| Failure::usage(format!("malformed pattern of --exclude: {error}")))?;
    Ok(Options {
        links: match (args.skip_links, args.follow) {
            (true, _) => Links::Skip,
            (false, true) => Links::Follow,
            (false, false) => Links::Keep,
        },
        checksum: args.checksum,
        dry_run: args.dry_run,
        delete: args.delete,
        exclude: exclude.with_ignore_files(args.ignore_files),
    })
}

/// A name for this transfer that nobody else has.
pub(super) fn random() -> Result<[u8; 16], Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::failed("the system has no random numbers", error))?;
    Ok(bytes)
}

/// Checks everything named before anybody is bothered.
fn sources(args: &SendArgs, paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    if args.name.is_some() && paths.len() != 1 {
        return Err(Failure::usage(
            "--name renames one file or folder; give one PATH with it",
        ));
    }
    let mut sources: Vec<Source> = Vec::with_capacity(paths.len());
    for path in paths {
        let source = if path == Path::new("-") {
            let name = args.name.clone();
            Source::StandardInput {
                name: name
                    .ok_or_else(|| Failure::usage("standard input needs a name: --name NAME"))?,
            }
        } else {
            path_source(path, args.name.clone())?
        };
        let name = source.name();
        if let Err(why) = names::check(name.as_encoded_bytes(), names::RULES) {
            return Err(Failure::usage(format!(
                "{} cannot be the name of a file at the receiver: {why}",
                name.display()
            )));
        }
        if sources.iter().any(|other| other.name() == name) {
            return Err(Failure::usage(format!(
                "two paths have the same name at the receiver: {}",
                name.display()
            )));
        }
        sources.push(source);
    }
    Ok(sources)
}

pub(super) fn path_source(path: &Path, name: Option<OsString>) -> Result<Source, Failure> {
    let unreadable =
        |error: io::Error| Failure::usage(format!("{}: cannot be read: {error}", path.display()));
    // A link named on the command line is meant: what it points to is sent, under the link's name.
    let target = path.canonicalize().map_err(unreadable)?;
    let file_type = target.metadata().map_err(unreadable)?.file_type();
    if !file_type.is_file() && !file_type.is_dir() {
        return Err(Failure::usage(format!(
            "{} is neither file nor directory; to send the output of a pipe, use - with --name",
            path.display()
        )));
    }
    let name = name.or_else(|| path.file_name().or(target.file_name()).map(Into::into));
    match name {
        Some(name) => {
            let is_link = path
                .symlink_metadata()
                .is_ok_and(|metadata| metadata.is_symlink());
            Ok(Source::Path {
                path: if is_link { target } else { path.to_owned() },
                name,
            })
        }
        None => Err(Failure::usage(format!(
            "{} has no file name; choose one with --name",
            path.display()
        ))),
    }
}
