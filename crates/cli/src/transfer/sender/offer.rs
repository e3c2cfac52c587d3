//! Files that a program with other duties offers to peers that fetch them, as `tack send` without a
//! receiver does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::command::{path_source, random};
use super::confirmations::Confirmations;
use super::exclude::Exclude;
use super::options::{Links, Options, Source, total};
use super::progress::Progress;
use super::send::{Outbound, send};
use crate::meeting::PeerStream;
use crate::transfer::channel::{Channel, Writer};
use crate::transfer::names;
use crate::transfer::protocol::{Hello, Taken};
use crate::transfer::report::{Listing, Report};
use crate::volume::Volume;

/// How long a receiver that lost its connection comes back.
const RETURN: Duration = Duration::from_secs(600);
/// How long the last acknowledgements may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// Sends `paths` over `stream`, whose bytes are written through `writing`. Files stored and their
/// bytes.
///
/// # Errors
/// Why the transfer failed, in words.
pub(crate) async fn offer<W: Writer>(
    paths: &[PathBuf],
    stream: PeerStream,
    silence: Duration,
    writing: impl FnOnce(<PeerStream as Channel>::Writer) -> W,
) -> Result<(u64, u64), String> {
    let sources: Result<Vec<Source>, _> =
        paths.iter().map(|path| path_source(path, None)).collect();
    let sources = sources.map_err(|failure| failure.to_string())?;
    let options = Options {
        links: Links::Keep,
        checksum: false,
        dry_run: false,
        delete: false,
        exclude: Exclude::default(),
    };
    let counted = {
        let (sources, options) = (sources.clone(), options.clone());
        tokio::task::spawn_blocking(move || total(&sources, &options)).await
    };
    let (files, bytes) = counted.ok().flatten().unwrap_or((u64::MAX, u64::MAX));
    let outbound = Outbound {
        sources,
        options,
        hello: Hello {
            names: names::RULES,
            session: random().map_err(|failure| failure.to_string())?,
            returns: RETURN.as_secs() as u32,
            taken: Taken::AsReceiver,
            dry_run: false,
            delete: false,
            files,
            bytes,
        },
        silence,
        limit: None,
    };
    let progress = Progress::new(Volume::Quiet, false);
    let report = Report::new(Listing::CountsOnly);
    let confirmations = Arc::new(Confirmations::new(report, progress.clone()));
    let (reader, writer) = Channel::into_split(stream);
    let mut writer = writing(writer);
    let sent = send(reader, &mut writer, outbound, &confirmations, &progress).await;
    match &sent {
        Ok(()) => _ = tokio::time::timeout(FAREWELL, writer.closed()).await,
        Err(_) => writer.abort(),
    }
    let report = confirmations.take_report();
    sent.map_err(|error| error.to_string())?;
    match report.failed {
        0 => Ok((report.files, report.bytes)),
        failed => Err(format!("{failed} of the files were not stored")),
    }
}
