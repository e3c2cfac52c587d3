//! Results on disk: a journal with a line for each finished run, and tables of them for other
//! programs.

mod tables;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};

use crate::figure::{Depth, Figure};
use crate::measure::Values;
use crate::point::{CODE_VERSION, Point};
use crate::results::Results;

/// A line of the journal. Key and values are what is read back; the rest says what the key stands
/// for.
#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    code: String,
    scenario: String,
    set: Vec<String>,
    seed: u64,
    measure: String,
    values: BTreeMap<String, f64>,
}

/// A folder with results.
///
/// `points.jsonl` is the journal: it only grows, a line at a time, so that a run that was cut off
/// loses at most the points under way. `results.csv` and `results.parquet` are made from it.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    journal: File,
    results: Results,
    damaged: Vec<usize>,
}

/// Errors of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("{path}: {error}")]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// The Parquet file could not be made.
    #[error("{path}: {error}")]
    Parquet {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        error: ParquetError,
    },
}

const JOURNAL: &str = "points.jsonl";

impl Store {
    /// Opens the store in `folder`, which is made where missing, and reads what it has. A damaged
    /// line, as a crash leaves it, is ignored; [`Store::damaged`] lists it.
    ///
    /// # Errors
    /// [`StoreError::Io`] when files cannot be read or made.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(of(folder))?;
        let path = folder.join(JOURNAL);
        let mut results = Results::default();
        let mut damaged = Vec::new();
        let mut is_cut = false;
        match File::open(&path) {
            Ok(file) => {
                for (number, line) in BufReader::new(file).split(b'\n').enumerate() {
                    let line = line.map_err(of(&path))?;
                    match serde_json::from_slice::<Line>(&line) {
                        Ok(line) if line.code == CODE_VERSION => {
                            let values = line.values.into_iter().collect();
                            results.insert_by_key(line.key, values);
                        }
                        Ok(_) => {}
                        Err(_) if line.is_empty() => {}
                        Err(_) => damaged.push(number + 1),
                    }
                }
                is_cut = !ends_with_newline(&path)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(of(&path)(error)),
        }
        let mut journal = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(of(&path))?;
        if is_cut {
            journal.write_all(b"\n").map_err(of(&path))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            journal,
            results,
            damaged,
        })
    }

    /// The folder that the store is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.folder.join(JOURNAL)
    }

    /// Numbers, from 1, of the journal's lines that cannot be read: their runs count as not
    /// measured.
    pub fn damaged(&self) -> &[usize] {
        &self.damaged
    }

    /// All results of this version of the code.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Keeps a finished point.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it cannot be written.
    pub fn keep(&mut self, point: &Point, values: Values) -> Result<(), StoreError> {
        let line = Line {
            key: point.key(),
            code: CODE_VERSION.into(),
            scenario: point.scenario_name().into(),
            set: point.settings().to_vec(),
            seed: point.seed,
            measure: point.measure().name().into(),
            values: values
                .iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        };
        let path = self.folder.join(JOURNAL);
        let mut text = serde_json::to_string(&line)
            .map_err(io::Error::other)
            .map_err(of(&path))?;
        text.push('\n');
        // One write for the whole line: another process may append too.
        self.journal.write_all(text.as_bytes()).map_err(of(&path))?;
        self.results.insert(point, values);
        Ok(())
    }

    /// Writes `results.csv` and `results.parquet`: a row for each number of each finished run that
    /// `figures` want, each at its depth, in the order of their plans. A file is replaced when
    /// its successor is whole.
    ///
    /// # Errors
    /// [`StoreError`] when a file cannot be made.
    pub fn export<'a>(
        &self,
        figures: impl IntoIterator<Item = (&'a Figure, &'a Depth)>,
    ) -> Result<(), StoreError> {
        let rows = tables::rows(figures, &self.results);
        self.replace("results.csv", |file, path| {
            tables::write_csv(file, &rows).map_err(|error| of(path)(error.into()))
        })?;
        self.replace("results.parquet", |file, path| {
            tables::write_parquet(file, &rows).map_err(|error| StoreError::Parquet {
                path: path.to_owned(),
                error,
            })
        })
    }

    fn replace(
        &self,
        name: &str,
        write: impl FnOnce(File, &Path) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (path, unfinished) = (
            self.folder.join(name),
            self.folder.join(format!("{name}.unfinished")),
        );
        write(File::create(&unfinished).map_err(of(&unfinished))?, &path)?;
        fs::rename(&unfinished, &path).map_err(of(&path))
    }
}

fn of(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    |error| StoreError::Io { path, error }
}

fn ends_with_newline(path: &Path) -> Result<bool, StoreError> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path).map_err(of(path))?;
    if file.metadata().map_err(of(path))?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1)).map_err(of(path))?;
    file.read_exact(&mut last).map_err(of(path))?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests;
