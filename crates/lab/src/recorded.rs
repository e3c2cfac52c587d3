//! Recorded link traces, which the user brings: their licences keep them out of this program.
//!
//! A folder is read for two kinds of recordings, which the names of files distinguish: `NAME.down`
//! with `NAME.up`, the two directions of a cellular link in Mahimahi's format, and
//! `NAME.pitree-trace`, the rate of a wireless link over time. Each becomes a path that figure 14
//! ranks transports on. Nothing about a file is trusted: sizes, rates and lengths are bounded, and
//! an error says which file, which line, and what would be right.

mod rates;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tack_base::Rate;
use tack_sim::link::{Trace, TraceError};

use rates::RateError;

/// The longest file that is read, bytes. Recordings of minutes have a megabyte.
const LARGEST_FILE: u64 = 16 << 20;
/// How many recordings a folder may have; each costs minutes in the full form.
const MOST_PATHS: usize = 16;
/// The longest recording, milliseconds: an hour.
const LONGEST_MS: u64 = 3_600_000;
/// Mean rates that figure 14 can use: with less nothing arrives, with more its runs take too long.
const RATES: [Rate; 2] = [
    Rate::from_bits_per_sec(100_000),
    Rate::from_bits_per_sec(1_000_000_000),
];

/// How recordings are called, for messages.
const NAMES: &str = "NAME.down with NAME.up (Mahimahi's format), or NAME.pitree-trace (lines of seconds and Mbit/s)";

/// The recordings of a folder, as paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    paths: Vec<RecordedPath>,
}

/// A path that a recording makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedPath {
    /// How the recording is called.
    pub(crate) name: String,
    /// What is set in a scenario.
    pub(crate) settings: Vec<String>,
    /// The files that the settings name.
    pub(crate) files: Vec<Arc<TraceFile>>,
    /// After how many milliseconds it begins again.
    pub(crate) period_ms: u64,
    /// Mean rate of the direction that data takes.
    pub(crate) mean: Rate,
}

/// A trace in the simulator's format, called by its content: one that differs has another name.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TraceFile {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) hash: [u8; 32],
}

impl fmt::Debug for TraceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Why a folder's recordings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// The file system refused.
    #[error("{path}: {error}")]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// No recording in the folder.
    #[error("{folder}: no recorded trace is there; expected files called {NAMES}")]
    Nothing {
        /// Which folder.
        folder: PathBuf,
    },
    /// More recordings than would ever be run.
    #[error(
        "{folder}: {count} recordings are too many, at most {MOST_PATHS} can be ranked on at once"
    )]
    Many {
        /// Which folder.
        folder: PathBuf,
        /// How many there are.
        count: usize,
    },
    /// A name that would need quoting somewhere.
    #[error("{path}: recordings need names of at most 64 letters, digits, and any of . _ -")]
    Name {
        /// Which file.
        path: PathBuf,
    },
    /// One direction of a cellular link alone.
    #[error(
        "{path}: {missing} is missing beside it: data takes one direction and acknowledgements the other"
    )]
    Alone {
        /// Which file is there.
        path: PathBuf,
        /// Which one is not.
        missing: String,
    },
    /// A file too long to be one.
    #[error("{path}: longer than {} MiB, which no recording of an hour has", LARGEST_FILE >> 20)]
    Large {
        /// Which file.
        path: PathBuf,
    },
    /// Not text.
    #[error("{path}: line {line} is not text; expected {NAMES}")]
    Text {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
    /// Not of Mahimahi's format.
    #[error("{path}: {error}")]
    Trace {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        error: TraceError,
    },
    /// Not a rate over time.
    #[error("{path}: {error}")]
    Rate {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        error: RateError,
    },
    /// A recording that is too long.
    #[error("{path}: it lasts {seconds} s, and an hour is the most")]
    Long {
        /// Which file.
        path: PathBuf,
        /// How long it is.
        seconds: u64,
    },
    /// A mean rate that no path of figure 14 has.
    #[error("{path}: its mean rate is {mean}; between {} and {} can be ranked on", RATES[0], RATES[1])]
    Mean {
        /// Which file.
        path: PathBuf,
        /// Its mean rate.
        mean: Rate,
    },
}

/// The format of a recording, by the end of its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Both directions of a cellular link.
    Cellular,
    /// The rate of a wireless link over time.
    Wireless,
}

const DOWN: &str = ".down";
const UP: &str = ".up";
const RATE_OVER_TIME: &str = ".pitree-trace";

impl Recorded {
    /// Reads the recordings in `folder`. Files that are called otherwise are none, and stay unread.
    ///
    /// # Errors
    /// [`RecordedError`] when there is none, or one is not what its name says.
    pub fn read(folder: &Path) -> Result<Self, RecordedError> {
        let names = recordings(folder)?;
        let paths = names
            .into_iter()
            .map(|(kind, name)| match kind {
                Kind::Cellular => cellular(folder, name),
                Kind::Wireless => wireless(folder, name),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { paths })
    }

    /// The paths, in the order of kinds and names.
    pub(crate) fn paths(&self) -> &[RecordedPath] {
        &self.paths
    }
}

/// The recordings of a folder.
fn recordings(folder: &Path) -> Result<BTreeSet<(Kind, String)>, RecordedError> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(io_error(folder))? {
        let path = entry.map_err(io_error(folder))?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let found = [
            (DOWN, Kind::Cellular),
            (UP, Kind::Cellular),
            (RATE_OVER_TIME, Kind::Wireless),
        ]
        .into_iter()
        .find_map(|(end, kind)| Some((kind, file.strip_suffix(end)?.to_owned())));
        let Some((kind, name)) = found else { continue };
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(RecordedError::Name { path });
        }
        names.insert((kind, name));
    }
    match names.len() {
        0 => Err(RecordedError::Nothing {
            folder: folder.into(),
        }),
        count if count > MOST_PATHS => Err(RecordedError::Many {
            folder: folder.into(),
            count,
        }),
        _ => Ok(names),
    }
}

/// A cellular link as ABC (NSDI 2020) emulates it: 50 ms each way, and 250 packets before the link.
fn cellular(folder: &Path, name: String) -> Result<RecordedPath, RecordedError> {
    let [down, up] = [DOWN, UP].map(|end| folder.join(format!("{name}{end}")));
    for (path, other) in [(&down, &up), (&up, &down)] {
        if !path.exists() {
            return Err(RecordedError::Alone {
                path: other.clone(),
                missing: path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
            });
        }
    }
    let (data, trace) = checked(&down, read(&down)?)?;
    let (acks, _) = checked(&up, read(&up)?)?;
    Ok(RecordedPath {
        settings: vec![
            format!("wired.trace.file={}", data.name),
            format!("wired.trace_reverse.file={}", acks.name),
            "wired.delay=50ms".into(),
            "wired.queue=250p".into(),
        ],
        files: vec![data.into(), acks.into()],
        period_ms: trace.period_ms(),
        mean: trace.average_rate(),
        name,
    })
}

/// A wireless link as Zhuge (SIGCOMM 2022) simulates it: 25 ms each way, 250 packets before the
/// link, and more than enough of a link for what comes back.
fn wireless(folder: &Path, name: String) -> Result<RecordedPath, RecordedError> {
    let path = folder.join(format!("{name}{RATE_OVER_TIME}"));
    let text = rates::opportunities(&read(&path)?).map_err(|error| RecordedError::Rate {
        path: path.clone(),
        error,
    })?;
    let (data, trace) = checked(&path, text)?;
    Ok(RecordedPath {
        settings: vec![
            format!("wired.trace.file={}", data.name),
            "wired.rate_reverse=1Gbps".into(),
            "wired.delay=25ms".into(),
            "wired.queue=250p".into(),
        ],
        files: vec![data.into()],
        period_ms: trace.period_ms(),
        mean: trace.average_rate(),
        name,
    })
}

/// A trace that the simulator reads, and that is worth a run.
fn checked(path: &Path, text: String) -> Result<(TraceFile, Trace), RecordedError> {
    let trace = Trace::parse(&text).map_err(|error| RecordedError::Trace {
        path: path.into(),
        error,
    })?;
    if trace.period_ms() > LONGEST_MS {
        return Err(RecordedError::Long {
            path: path.into(),
            seconds: trace.period_ms() / 1_000,
        });
    }
    let mean = trace.average_rate();
    if mean < RATES[0] || mean > RATES[1] {
        return Err(RecordedError::Mean {
            path: path.into(),
            mean,
        });
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let hash = blake3::hash(text.as_bytes());
    let name = format!("{name}-{}.trace", &hash.to_hex()[..16]);
    let hash = hash.into();
    Ok((TraceFile { name, text, hash }, trace))
}

/// The text of a file that is no longer than recordings are.
fn read(path: &Path) -> Result<String, RecordedError> {
    // Anything but a file, such as a pipe, could block its reader.
    let is_file = fs::metadata(path).map_err(io_error(path))?.is_file();
    if !is_file {
        return Err(io_error(path)(io::Error::other("is not a file")));
    }
    let file = File::open(path).map_err(io_error(path))?;
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(io_error(path))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(RecordedError::Large { path: path.into() });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        RecordedError::Text {
            path: path.into(),
            line: good.iter().filter(|byte| **byte == b'\n').count() + 1,
        }
    })
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> RecordedError {
    let path = path.to_owned();
    |error| RecordedError::Io { path, error }
}

#[cfg(test)]
mod tests;
