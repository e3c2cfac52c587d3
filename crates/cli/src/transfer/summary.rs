//! The JSON summary of one transfer.

use std::io::{self, Write};

use serde::Serialize;

use super::report::Report;
use crate::net::TransportFigures;
use crate::printer::bits_per_second;

/// The summary of a transfer, without the lists of files.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'a> {
    pub(crate) event: &'static str,
    /// `send` or `recv`.
    pub(crate) role: &'static str,
    pub(crate) peer: Option<String>,
    /// True when everything was transferred and confirmed.
    pub(crate) ok: bool,
    /// Why the transfer as a whole failed.
    pub(crate) error: Option<&'a str>,
    pub(crate) files: u64,
    pub(crate) directories: u64,
    pub(crate) links: u64,
    pub(crate) hard_links: u64,
    pub(crate) bytes: u64,
    pub(crate) unchanged: u64,
    pub(crate) left_alone: u64,
    pub(crate) removed: u64,
    /// What a dry run would do.
    pub(crate) would: Option<DryRunSummary>,
    pub(crate) carried_bytes: u64,
    pub(crate) reconnects: u64,
    pub(crate) failed: u64,
    pub(crate) within_refused: u64,
    pub(crate) skipped: u64,
    pub(crate) excluded: u64,
    pub(crate) seconds: f64,
    pub(crate) goodput_bps: f64,
    pub(crate) transport: Option<TransportFigures>,
}

/// What a dry run found.
#[derive(Debug, Serialize)]
pub(crate) struct DryRunSummary {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) removed: u64,
}

/// Writes the summary with the report's lists as one line of JSON.
pub(crate) fn write(
    (event, role): (&'static str, &'static str),
    peer: Option<String>,
    error: Option<&str>,
    seconds: f64,
    transport: Option<TransportFigures>,
    report: &mut Report,
    out: &mut dyn Write,
) -> io::Result<()> {
    let summary = Summary {
        event,
        role,
        peer,
        ok: error.is_none() && report.failed == 0,
        error,
        files: report.files,
        directories: report.directories,
        links: report.links,
        hard_links: report.hard_links,
        bytes: report.bytes,
        unchanged: report.unchanged,
        left_alone: report.left_alone,
        removed: report.removed,
        would: report.dry_run.then_some(DryRunSummary {
            files: report.would.0,
            bytes: report.would.1,
            removed: report.would_remove,
        }),
        carried_bytes: report.carried,
        reconnects: report.reconnects,
        failed: report.failed,
        within_refused: report.within_refused,
        skipped: report.skipped,
        excluded: report.excluded,
        seconds,
        goodput_bps: bits_per_second(report.bytes, seconds),
        transport,
    };
    report.write_json(&summary, out)
}
