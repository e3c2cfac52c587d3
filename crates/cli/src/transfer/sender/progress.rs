//! What a sender shows while it works: a bar on a terminal, messages, lists, and events in JSON.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar};
use serde::Serialize;

use crate::printer::with_stdout;
use crate::progress;
use crate::transfer::bars::{KNOWN, Recovery, UNKNOWN, stalled};
use crate::transfer::current_file::CurrentFile;
use crate::transfer::names::printable;
use crate::volume::Volume;

/// The progress display and the messages of a sender.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    volume: Volume,
    json: bool,
    shown: Arc<Counters>,
}

#[derive(Debug)]
struct Counters {
    /// Bytes sent, or found to be at the receiver.
    bytes: AtomicU64,
    files: AtomicU64,
    /// Files of the transfer; 0 where that is not known.
    all_files: AtomicU64,
    now: Mutex<Current>,
    /// Since there was a connection for the first time.
    began: OnceLock<Instant>,
    /// Nothing more is told: the summary is the last line.
    ended: AtomicBool,
}

#[derive(Debug)]
struct Current {
    file: CurrentFile,
    heard: Instant,
    /// What is done about a connection that was lost.
    recovery: Option<Recovery>,
}

#[derive(Serialize)]
struct Event<'a> {
    event: &'static str,
    bytes: u64,
    files: u64,
    all_files: Option<u64>,
    file: &'a str,
    file_bytes: u64,
    file_size: Option<u64>,
    silent_seconds: f64,
    reconnecting: bool,
}

impl Progress {
    pub(crate) fn new(volume: Volume, json: bool) -> Self {
        let bar = match volume {
            Volume::Quiet => ProgressBar::hidden(),
            Volume::Normal | Volume::Verbose => progress::bar(None, UNKNOWN),
        };
        Self::with(bar, volume, json)
    }

    /// A display that shows only messages.
    #[cfg(test)]
    pub(crate) fn hidden() -> Self {
        Self::with(ProgressBar::hidden(), Volume::Quiet, false)
    }

    fn with(bar: ProgressBar, volume: Volume, json: bool) -> Self {
        let shown = Counters {
            bytes: AtomicU64::new(0),
            files: AtomicU64::new(0),
            all_files: AtomicU64::new(0),
            now: Mutex::new(Current {
                file: CurrentFile::default(),
                heard: Instant::now(),
                recovery: None,
            }),
            began: OnceLock::new(),
            ended: AtomicBool::new(false),
        };
        Self {
            bar,
            volume,
            json,
            shown: Arc::new(shown),
        }
    }

    fn now(&self) -> MutexGuard<'_, Current> {
        self.shown
            .now
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that there is a connection: the transfer has begun, if it had not before.
    pub(crate) fn connected(&self) {
        self.shown.began.get_or_init(|| {
            let now = Instant::now();
            self.now().heard = now;
            now
        });
    }

    /// How long the transfer has taken, without the wait for its first connection, seconds.
    pub(crate) fn seconds(&self) -> f64 {
        let began = self.shown.began.get();
        began.map_or(0.0, |began| began.elapsed().as_secs_f64())
    }

    /// Sets the size of the whole transfer.
    pub(crate) fn set_total(&self, files: u64, bytes: Option<u64>) {
        self.shown.all_files.store(files, Ordering::Relaxed);
        if let Some(bytes) = bytes {
            progress::set_template(&self.bar, KNOWN);
            self.bar.set_length(bytes);
        }
    }

    /// Counts bytes of the current file that were sent, or that need not be sent.
    pub(crate) fn add(&self, bytes: u64) {
        self.now().file.bytes += bytes;
        self.add_whole(bytes);
    }

    /// Counts the bytes of a file that need not be sent.
    pub(crate) fn add_whole(&self, bytes: u64) {
        self.shown.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of the transfer so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.shown.bytes.load(Ordering::Relaxed)
    }

    /// Notes the file that is being sent, and its size in bytes where that is known.
    pub(crate) fn begin(&self, path: &Path, size: Option<u64>) {
        self.now().file = CurrentFile::new(path, size);
    }

    /// Notes that a file has its answer.
    pub(crate) fn done(&self, path: &Path) {
        self.shown.files.fetch_add(1, Ordering::Relaxed);
        if self.volume == Volume::Verbose {
            self.say(&printable(&path.to_string_lossy()));
        }
    }

    /// Notes that an entry was removed at the receiver.
    pub(crate) fn removed(&self, path: &Path) {
        if self.volume == Volume::Verbose {
            self.say(&format!("removed {}", printable(&path.to_string_lossy())));
        }
    }

    /// Notes that the receiver sent something.
    pub(crate) fn heard(&self) {
        let mut now = self.now();
        now.heard = Instant::now();
        now.recovery = None;
    }

    /// A new connection is being made, and everything is counted again.
    pub(crate) fn reconnecting(&self, recovery: Recovery) {
        self.now().recovery = Some(recovery);
        self.shown.bytes.store(0, Ordering::Relaxed);
        self.shown.files.store(0, Ordering::Relaxed);
    }

    /// Prints a message on standard error.
    pub(crate) fn say(&self, what: &str) {
        self.bar.suspend(|| eprintln!("tack: {what}"));
    }

    /// Prints a line on standard output, unless it carries JSON.
    pub(crate) fn list(&self, what: &str) {
        if !self.json {
            // A reader that went away misses nothing it wants.
            self.bar.suspend(|| {
                let _ = with_stdout(|out| writeln!(out, "{what}"));
            });
        }
    }

    /// Shows the state until it is dropped.
    pub(crate) async fn tick(self) {
        let mut told = Instant::now();
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let text = self.text();
            self.bar.set_message(text);
            let most = self.bar.length().unwrap_or(u64::MAX);
            self.bar.set_position(self.bytes().min(most));
            if self.json && told.elapsed() >= Duration::from_secs(1) {
                told = Instant::now();
                let progress = self.clone();
                // Whoever does not read our output must not stop the transfer.
                let _ = tokio::task::spawn_blocking(move || progress.tell()).await;
            }
        }
    }

    fn text(&self) -> String {
        let now = self.now();
        // Who waits for the first connection is not stalled.
        let has_begun = self.shown.began.get().is_some();
        if let (true, Some(words)) = (has_begun, stalled(now.heard.elapsed(), now.recovery)) {
            return words;
        }
        let files = self.shown.files.load(Ordering::Relaxed);
        let all = self.shown.all_files.load(Ordering::Relaxed);
        now.file.text(files, Some(all))
    }

    /// Prints a progress event as JSON. A closed output is noticed at the end.
    fn tell(&self) {
        let _ = with_stdout(|out| self.tell_to(out));
    }

    fn tell_to(&self, out: &mut dyn Write) -> io::Result<()> {
        // Asked while the output is locked: either this line is out, or the summary is the last.
        if self.shown.ended.load(Ordering::Acquire) {
            return Ok(());
        }
        let all = self.shown.all_files.load(Ordering::Relaxed);
        let now = self.now();
        let event = Event {
            event: "progress",
            bytes: self.bytes(),
            files: self.shown.files.load(Ordering::Relaxed),
            all_files: (all > 0).then_some(all),
            file: &now.file.path.to_string_lossy(),
            file_bytes: now.file.bytes,
            file_size: now.file.size,
            silent_seconds: now.heard.elapsed().as_secs_f64(),
            reconnecting: now.recovery.is_some(),
        };
        serde_json::to_writer(&mut *out, &event)?;
        writeln!(out)
    }

    /// Clears the progress bar; no event follows.
    pub(crate) fn finish(&self) {
        self.shown.ended.store(true, Ordering::Release);
        self.bar.finish_and_clear();
    }

    /// Whether `--quiet` suppresses the line about success.
    pub(crate) fn is_quiet(&self) -> bool {
        self.volume == Volume::Quiet
    }

    /// `5 files, 1.00 MiB`, of what a dry run found.
    pub(crate) fn would(&self, files: u64, bytes: u64) -> String {
        format!("{}, {}", crate::printer::files(files), HumanBytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_event_follows_the_end() {
        let progress = Progress::hidden();
        let mut out = Vec::new();
        progress.tell_to(&mut out).unwrap();
        let event: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(event["event"], "progress");
        out.clear();
        // An event may be on its way to another thread then.
        progress.finish();
        progress.tell_to(&mut out).unwrap();
        assert!(out.is_empty());
    }

    #[test]
    fn silence_and_reconnection_are_told() {
        let progress = Progress::hidden();
        progress.set_total(10, Some(100));
        progress.begin(Path::new("a/b"), Some(40));
        progress.add(30);
        progress.done(Path::new("a/a"));
        assert_eq!(progress.text(), "1/10 b 75 %");
        let Some(before) = Instant::now().checked_sub(Duration::from_millis(7_100)) else {
            return;
        };
        progress.now().heard = before;
        assert_eq!(progress.text(), "1/10 b 75 %", "nobody has come yet");
        progress.connected();
        progress.now().heard = before;
        assert_eq!(progress.text(), "stalled for 7 s");
        progress.reconnecting(Recovery::Reconnecting);
        assert_eq!(progress.text(), "stalled for 7 s, reconnecting");
        progress.reconnecting(Recovery::WaitingForReceiver);
        assert_eq!(
            progress.text(),
            "stalled for 7 s, waiting for the receiver to come back"
        );
        progress.heard();
        assert_eq!(progress.text(), "0/10 b 75 %");
    }
}
