//! What a receiver shows of a transfer under way: a bar on a terminal, events in JSON.

use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;
use tokio::task::JoinHandle;

use super::naming::Naming;
use super::session::Session;
use crate::printer::with_stdout;
use crate::progress;
use crate::transfer::bars::{KNOWN, QUIET, UNKNOWN};
use crate::volume::Volume;

/// The progress display of all transfers of a receiver.
#[derive(Debug)]
pub(crate) struct LiveProgress {
    json: bool,
    pub(super) naming: Naming,
}

impl LiveProgress {
    pub(crate) fn new(volume: Volume, json: bool) -> Self {
        let naming = Naming::new(volume);
        Self { json, naming }
    }

    /// A display for a transfer that begins.
    pub(super) fn begin(&self) -> TransferProgress {
        let bar = progress::bar(None, UNKNOWN);
        TransferProgress {
            json: self.json,
            bar: self.naming.bars.add(bar),
            has_total: false,
            telling: None,
        }
    }
}

/// Shows one transfer until it is dropped.
#[derive(Debug)]
pub(super) struct TransferProgress {
    json: bool,
    bar: ProgressBar,
    has_total: bool,
    /// An event that is being written.
    telling: Option<JoinHandle<()>>,
}

#[derive(Serialize)]
struct Event {
    event: &'static str,
    peer: String,
    bytes: u64,
    files: u64,
    all_files: Option<u64>,
    file: String,
    file_bytes: u64,
    file_size: Option<u64>,
    silent_seconds: f64,
}

/// Time between two updates.
pub(super) const EVERY: Duration = Duration::from_secs(1);

impl TransferProgress {
    /// Updates the display of the transfer.
    pub(super) fn update(&mut self, session: &Session) {
        let Some(hello) = session.hello() else {
            return;
        };
        let known = |number: u64| (number != u64::MAX).then_some(number);
        if let (false, Some(bytes)) = (self.has_total, known(hello.bytes)) {
            self.has_total = true;
            progress::set_template(&self.bar, KNOWN);
            self.bar.set_length(bytes);
        }
        let bytes = session.passed();
        let file = session.current();
        let files = session.report().there();
        let silent = session.holder.silence();
        self.bar.set_position(bytes);
        self.bar.set_message(if silent >= QUIET {
            format!("nothing heard for {} s", silent.as_secs())
        } else {
            file.text(files, known(hello.files))
        });
        // Whoever does not read our output must not stop the transfer, and loses events.
        let is_free = self.telling.as_ref().is_none_or(JoinHandle::is_finished);
        if self.json && is_free {
            let event = Event {
                event: "progress",
                peer: session.peer.to_string(),
                bytes,
                files,
                all_files: known(hello.files),
                file: file.path.to_string_lossy().into_owned(),
                file_bytes: file.bytes,
                file_size: file.size,
                silent_seconds: silent.as_secs_f64(),
            };
            self.telling = Some(tokio::task::spawn_blocking(move || {
                // That nobody reads is noticed at the end.
                let _ = with_stdout(|out| {
                    serde_json::to_writer(&mut *out, &event)?;
                    writeln!(out)
                });
            }));
        }
    }
}

impl Drop for TransferProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
