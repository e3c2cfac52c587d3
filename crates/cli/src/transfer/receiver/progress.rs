//! What a receiver shows of a transfer under way: a bar on a terminal, events in JSON.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde::Serialize;
use tokio::task::JoinHandle;

use super::naming::Naming;
use super::session::Session;
use crate::printer::with_stdout;
use crate::progress;
use crate::transfer::bars::{KNOWN, Recovery, UNKNOWN, stalled};
use crate::transfer::current_file::CurrentFile;
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

    /// Does what writes to the terminal, beside the bars.
    pub(super) fn beside_bars<T>(&self, work: impl FnOnce() -> T) -> T {
        self.naming.bars.suspend(work)
    }

    /// A display for a transfer that begins.
    pub(crate) fn begin(&self) -> TransferProgress {
        let bar = progress::bar(None, UNKNOWN);
        TransferProgress {
            json: self.json,
            bar: self.naming.bars.add(bar),
            has_total: false,
            telling: None,
            last: None,
            heard: Instant::now(),
            is_lost: false,
        }
    }
}

/// Shows one transfer until it is dropped, over however many connections it takes.
#[derive(Debug)]
pub(crate) struct TransferProgress {
    json: bool,
    bar: ProgressBar,
    has_total: bool,
    /// An event that is being written.
    telling: Option<JoinHandle<()>>,
    /// How far it was.
    last: Option<Position>,
    /// When the sender was last heard.
    heard: Instant,
    /// The connection is lost, and this side makes another one.
    is_lost: bool,
}

/// How far a transfer is.
#[derive(Clone, Debug)]
struct Position {
    peer: SocketAddr,
    bytes: u64,
    files: u64,
    all_files: Option<u64>,
    file: CurrentFile,
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
    reconnecting: bool,
}

/// Time between two updates.
pub(super) const EVERY: Duration = Duration::from_secs(1);

impl TransferProgress {
    /// There is a connection.
    pub(super) fn connected(&mut self) {
        self.heard = Instant::now();
        self.is_lost = false;
    }

    /// Updates the display of the transfer.
    pub(super) fn update(&mut self, session: &Session) {
        self.note(session);
        let now = Instant::now();
        self.heard = now.checked_sub(session.holder.silence()).unwrap_or(now);
        self.show();
    }

    /// Notes how far the transfer is, to be shown when its connection is lost.
    pub(super) fn note(&mut self, session: &Session) {
        let Some(hello) = session.hello() else {
            return;
        };
        let known = |number: u64| (number != u64::MAX).then_some(number);
        if let (false, Some(bytes)) = (self.has_total, known(hello.bytes)) {
            self.has_total = true;
            progress::set_template(&self.bar, KNOWN);
            self.bar.set_length(bytes);
        }
        self.last = Some(Position {
            peer: session.peer,
            bytes: session.passed(),
            files: session.report().there(),
            all_files: known(hello.files),
            file: session.current(),
        });
    }

    /// Shows that the connection is lost and is being made again.
    pub(super) async fn reconnecting(&mut self) -> Infallible {
        self.is_lost = true;
        let mut updates = tokio::time::interval(EVERY);
        loop {
            updates.tick().await;
            self.show();
        }
    }

    fn show(&mut self) {
        let Some(last) = &self.last else {
            return;
        };
        let silent = self.heard.elapsed();
        self.bar.set_position(last.bytes);
        let recovery = self.is_lost.then_some(Recovery::Reconnecting);
        let text = || last.file.text(last.files, last.all_files);
        self.bar
            .set_message(stalled(silent, recovery).unwrap_or_else(text));
        // Whoever does not read our output must not stop the transfer, and loses events.
        let is_free = self.telling.as_ref().is_none_or(JoinHandle::is_finished);
        if self.json && is_free {
            let event = Event {
                event: "progress",
                peer: last.peer.to_string(),
                bytes: last.bytes,
                files: last.files,
                all_files: last.all_files,
                file: last.file.path.to_string_lossy().into_owned(),
                file_bytes: last.file.bytes,
                file_size: last.file.size,
                silent_seconds: silent.as_secs_f64(),
                reconnecting: self.is_lost,
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
