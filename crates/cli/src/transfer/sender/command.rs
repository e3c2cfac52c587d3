//! `tack send`.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use tack_pairing::meeting::Intent;

use super::confirmations::Confirmations;
use super::send::{Outbound, send as transfer};
use super::source::{Links, Source, total_size};
use crate::exit::{Exit, Failure};
use crate::meeting::Target;
use crate::printer::{files, transferred, with_stdout};
use crate::progress;
use crate::signals::Signals;
use crate::transfer::args::SendArgs;
use crate::transfer::channel::{Channel, Writer};
use crate::transfer::dialer::{Dialing, PeerDialer};
use crate::transfer::entrance::{Entrance, Listen};
use crate::transfer::names;
use crate::transfer::report::{Listing, Report};
use crate::transfer::summary;

/// How long the last acknowledgements may take after everything was confirmed.
const FAREWELL: Duration = Duration::from_secs(2);

/// Connections at a time while this side waits for one.
const STRANGERS: usize = 64;

/// Between attempts while the receiver is busy: the first pause, and the longest that it doubles to.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_LAST: Duration = Duration::from_secs(2);

/// Sends what the arguments name.
pub(crate) async fn send(args: SendArgs) -> Result<Exit, Failure> {
    let (paths, target) = args.targets()?;
    let sources = sources(&args, &paths)?;
    let links = match (args.keep_links, args.follow) {
        (true, _) => Links::Keep,
        (false, true) => Links::Follow,
        (false, false) => Links::Skip,
    };
    let listing = if args.json {
        Listing::Files
    } else {
        Listing::CountsOnly
    };
    let mut signals = Signals::new()?;
    let began = Instant::now();

    let mut pause = RETRY_FIRST;
    let to = target
        .as_ref()
        .map_or_else(|| "whoever connects".to_owned(), Target::shown);
    let dialer = dialer(&args, target).await?;
    let (writer, bar, ticking, confirmations, outcome) = loop {
        let connected = tokio::select! {
            connected = dialer.dial() => connected,
            exit = signals.next() => return Ok(exit),
        };
        let (reader, mut writer) = match connected {
            Ok(stream) => stream.into_split(),
            Err(failure) => {
                if args.json {
                    let mut report = Report::new(listing);
                    let (peer, error) = (Some(to), failure.to_string());
                    with_stdout(|out| {
                        summary::write("send", peer, Some(&error), 0.0, None, &mut report, out)
                    })?;
                }
                return Err(failure);
            }
        };
        let written = Arc::new(AtomicU64::new(0));
        let bar = progress::bar(None, UNKNOWN);
        let ticking = tokio::spawn(tick(
            bar.clone(),
            sources.clone(),
            links,
            Arc::clone(&written),
        ));
        let confirmations = Arc::new(Confirmations::new(Report::new(listing), bar.clone()));
        let outbound = Outbound {
            sources: sources.clone(),
            links,
            silence: args.timeout,
            written,
        };
        let outcome = tokio::select! {
            outcome = transfer(reader, &mut writer, outbound, &confirmations) => Ok(outcome),
            exit = signals.next() => Err(exit),
        };
        // Nothing was read yet, so that nothing is lost by beginning again.
        let is_busy = matches!(&outcome, Ok(Err(error)) if error.is_busy());
        if !is_busy || began.elapsed() >= args.retry {
            break (writer, bar, ticking, confirmations, outcome);
        }
        ticking.abort();
        bar.finish_and_clear();
        drop(writer);
        if pause == RETRY_FIRST {
            eprintln!(
                "tack: the receiver is busy; retrying for {} s",
                args.retry.as_secs()
            );
        }
        let left = args.retry.saturating_sub(began.elapsed());
        tokio::select! {
            () = tokio::time::sleep(pause.min(left)) => {}
            exit = signals.next() => return Ok(exit),
        }
        pause = (pause * 2).min(RETRY_LAST);
    };
    confirmations.hang();
    ticking.abort();
    bar.finish_and_clear();

    let seconds = began.elapsed().as_secs_f64();
    let mut report = confirmations.take_report();
    let figures = writer.figures();
    let peer = Writer::peer_addr(&writer);
    let error = match &outcome {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("interrupted by a signal".to_owned()),
    };
    if error.is_none() {
        dialer.complete();
        // Everything is confirmed; this only spares the receiver a wait for our end of the connection.
        let _ = tokio::time::timeout(FAREWELL, Writer::closed(&writer)).await;
    } else {
        writer.abort();
        // Lets the reset leave.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    if args.json {
        with_stdout(|out| {
            summary::write(
                "send",
                Some(peer.to_string()),
                error.as_deref(),
                seconds,
                figures,
                &mut report,
                out,
            )
        })?;
    } else if error.is_none() && io::IsTerminal::is_terminal(&io::stderr()) {
        eprintln!(
            "{} to {peer}",
            transferred(report.files, report.bytes, seconds)
        );
    }
    if report.skipped_links > 0 && !args.json {
        eprintln!(
            "tack: {} left out (--keep-links sends them as links, --follow sends what they point to)",
            match report.skipped_links {
                1 => "1 symbolic link was".into(),
                count => format!("{count} symbolic links were"),
            }
        );
    }
    match outcome {
        Err(exit) => {
            eprintln!(
                "tack: interrupted by a signal; {} stored and confirmed",
                files(report.files)
            );
            Ok(exit)
        }
        Ok(Err(error)) if error.is_busy() => Err(Failure::busy(format!("{peer}: {error}"))),
        Ok(Err(error)) => Err(Failure::failed(format!("transfer to {peer}"), error)),
        Ok(Ok(())) if report.failed == 0 => Ok(Exit::Done),
        Ok(Ok(())) => {
            eprintln!(
                "tack: {} could not be transferred, {} {}",
                report.failed_text(),
                files(report.files),
                if report.files == 1 { "was" } else { "were" }
            );
            Ok(if report.files + report.links > 0 {
                Exit::Partial
            } else {
                Exit::Failed
            })
        }
    }
}

/// Connections to the target, or from whoever is let in.
async fn dialer<'a>(args: &'a SendArgs, target: Option<Target>) -> Result<PeerDialer<'a>, Failure> {
    let Some(target) = target else {
        let entrance = Entrance::open(Listen {
            at: args.listen.as_ref(),
            reach: args.reach,
            meeting: &args.meeting,
            transport: &args.transport,
            silence: args.timeout,
            intent: Intent::Receive,
            command: "tack recv",
            max_connections: STRANGERS,
            backlog: STRANGERS,
        })
        .await?;
        eprintln!("listening on {}", entrance.addresses().join(", "));
        entrance.invite()?;
        return Ok(PeerDialer::waiting(entrance));
    };
    PeerDialer::new(Dialing {
        target,
        reach: args.reach,
        meeting: &args.meeting,
        transport: &args.transport,
        silence: args.timeout,
        patience: args.connect_timeout,
        intent: Intent::Send,
        service: "tack recv",
    })
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

fn path_source(path: &Path, name: Option<OsString>) -> Result<Source, Failure> {
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

/// The progress of a transfer whose size is known.
const KNOWN: &str = "{bar:32} {bytes}/{total_bytes} {bytes_per_sec} ETA {eta}";
/// The progress of a transfer whose size is not known.
const UNKNOWN: &str = "{spinner} {bytes} {bytes_per_sec} {elapsed}";

/// Keeps the bar up to date; finds out the total first, for the time to go.
async fn tick(bar: ProgressBar, sources: Vec<Source>, links: Links, written: Arc<AtomicU64>) {
    if bar.is_hidden() {
        return;
    }
    let total = tokio::task::spawn_blocking(move || total_size(&sources, links))
        .await
        .ok()
        .flatten();
    if let Some(total) = total {
        progress::set_template(&bar, KNOWN);
        bar.set_length(total);
    }
    loop {
        // Frame heads are counted, too; they must not carry the bar beyond its end.
        bar.set_position(
            written
                .load(Ordering::Relaxed)
                .min(total.unwrap_or(u64::MAX)),
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
