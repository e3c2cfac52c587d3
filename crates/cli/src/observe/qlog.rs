//! Traces of real connections: a file for each, as qlog.

mod sequence;

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tack::{ConnectionView, Phase};

use self::sequence::{Header, Sequence};
use super::collector::{Key, Update};
use crate::exit::Failure;

/// Files open at a time; further connections have none.
const MAX_FILES: usize = 256;
/// Files of a run; later connections have none.
const MAX_ALL: u64 = 100_000;

/// The files.
#[derive(Debug)]
pub(super) struct QlogFolder {
    folder: PathBuf,
    program: &'static str,
    open: BTreeMap<Key, Sequence<BufWriter<File>>>,
    made: u64,
    left_out: u64,
    failed: Option<io::Error>,
    /// Events of each connection that came too fast for us.
    forgotten: BTreeMap<Key, u64>,
    /// Of all, since the last complaint.
    missing: u64,
}

impl QlogFolder {
    /// Makes the folder if it is not there. Others may not read it then: traces tell what was sent
    /// when, and to whom.
    pub(super) fn new(folder: &Path, program: &'static str) -> Result<Self, Failure> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| {
                Failure::usage(format!(
                    "cannot make the folder {} for traces: {error}",
                    folder.display()
                ))
            })?;
        Ok(Self {
            folder: folder.to_owned(),
            program,
            open: BTreeMap::new(),
            made: 0,
            left_out: 0,
            failed: None,
            forgotten: BTreeMap::new(),
            missing: 0,
        })
    }

    /// Writes what is new of a connection.
    pub(super) fn add(&mut self, update: &Update<'_>) {
        if update.is_new {
            self.begin(update.key, update.view);
        }
        let Some(qlog) = self.open.get_mut(&update.key) else {
            return;
        };
        let forgotten = self.forgotten.entry(update.key).or_default();
        self.missing +=
            update.view.events_forgotten - (*forgotten).min(update.view.events_forgotten);
        *forgotten = update.view.events_forgotten;
        for event in &update.view.events {
            qlog.event(event.at, &event.what);
        }
    }

    fn begin(&mut self, key: Key, view: &ConnectionView) {
        if self.open.len() >= MAX_FILES || self.made >= MAX_ALL {
            self.left_out += 1;
            return;
        }
        let now = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now());
        let name = format!(
            "{}-{}-{}-{:05}.sqlog",
            now.format("%Y%m%dT%H%M%SZ"),
            self.program,
            std::process::id(),
            self.made,
        );
        let title = format!(
            "tack {}: {} with {}, TCP ports {} and {}",
            self.program,
            now.format("%Y-%m-%d %H:%M:%S UTC"),
            view.peer,
            view.local_port,
            view.remote_port,
        );
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.folder.join(name));
        let header = Header {
            title: &title,
            accepted: view.accepted,
        };
        match file.and_then(|file| Sequence::begin(BufWriter::new(file), &header)) {
            Ok(qlog) => {
                self.made += 1;
                self.open.insert(key, qlog);
            }
            Err(error) => self.fail(error),
        }
    }

    /// Connections that are over have their files closed.
    pub(super) fn close(&mut self, is_over: impl Fn(&Key) -> bool) {
        let over: Vec<Key> = self.open.keys().copied().filter(is_over).collect();
        for key in over {
            self.forgotten.remove(&key);
            if let Some(mut qlog) = self.open.remove(&key)
                && let Err(error) = qlog.flush()
            {
                self.fail(error);
            }
        }
    }

    /// What is written so far reaches the disk's cache, so that a program that is killed leaves
    /// whole lines.
    pub(super) fn flush(&mut self) {
        let results: Vec<_> = self.open.values_mut().map(Sequence::flush).collect();
        for error in results.into_iter().filter_map(Result::err) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.failed.get_or_insert(error);
    }

    /// What went wrong, in words.
    pub(super) fn complaint(&mut self) -> Option<String> {
        let folder = self.folder.display();
        if let Some(error) = self.failed.take() {
            return Some(format!("cannot write traces into {folder}: {error}"));
        }
        if self.missing > 0 {
            let missing = std::mem::take(&mut self.missing);
            return Some(format!(
                "{missing} events are missing in {folder}: they came faster than this program had the processor"
            ));
        }
        match std::mem::take(&mut self.left_out) {
            0 => None,
            left_out => Some(format!(
                "{left_out} connections have no trace in {folder}: at most {MAX_FILES} are written at a time, and {MAX_ALL} in a run"
            )),
        }
    }
}

/// Whether nothing more can come of a connection that looks like this.
pub(super) fn is_over(view: &ConnectionView) -> bool {
    view.phase == Phase::Departed
}
