//! A data set in a folder: `plan=NAME-HASH/rows-HASH.parquet`.
//!
//! A file appears whole under a name that says its contents, and is never changed. So several
//! programs may write to one folder, a program that is killed leaves no half of a file under such a
//! name, and damage is seen.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::sweep::{DataFile, read_file};
use crate::table::Table;

/// A data set of plans.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

/// The file system refused.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}")]
pub struct FolderError {
    /// Which file or folder.
    pub path: PathBuf,
    /// What it said.
    pub error: io::Error,
}

/// What was read of a part.
#[derive(Debug, Default)]
pub struct Read {
    /// Each file: its name, its rows, and what it says of itself.
    pub files: Vec<(String, Table, Option<String>)>,
    /// Files that do not count: their name, and why.
    pub damaged: Vec<(String, String)>,
}

/// The end of names of files that are not whole yet.
const UNFINISHED: &str = ".unfinished";

fn of(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    |error| FolderError { path, error }
}

impl Folder {
    /// The data set in `root`, which is made by the first file.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The names of its parts, sorted.
    ///
    /// # Errors
    /// [`FolderError`] when the folder cannot be read; one that is not there has no parts.
    pub fn parts(&self) -> Result<Vec<String>, FolderError> {
        let mut parts: Vec<String> = names(&self.root)?
            .into_iter()
            .filter(|name| name.starts_with("plan=") && self.root.join(name).is_dir())
            .collect();
        parts.sort();
        Ok(parts)
    }

    /// Reads a part. Files that vanish meanwhile, as another program merges them, are not missed:
    /// what takes their place is read.
    ///
    /// # Errors
    /// [`FolderError`] when files cannot be read.
    pub fn read(&self, part: &str) -> Result<Read, FolderError> {
        let folder = self.root.join(part);
        let mut read = Read::default();
        let mut seen = std::collections::BTreeSet::new();
        loop {
            let mut is_complete = true;
            let mut all: Vec<_> = names(&folder)?
                .into_iter()
                .filter(|name| name.ends_with(".parquet"))
                .collect();
            all.sort();
            for name in all {
                if seen.contains(&name) {
                    continue;
                }
                let path = folder.join(&name);
                match fs::read(&path) {
                    Ok(content) => match read_file(&name, content) {
                        Ok((table, about)) => read.files.push((name.clone(), table, about)),
                        Err(damage) => read.damaged.push((name.clone(), damage.to_string())),
                    },
                    Err(error) if error.kind() == io::ErrorKind::NotFound => is_complete = false,
                    Err(error) => return Err(of(&path)(error)),
                }
                seen.insert(name);
            }
            if is_complete {
                return Ok(read);
            }
        }
    }

    /// Keeps a file. When this returns, it is on the disk, whole and under its name.
    ///
    /// # Errors
    /// [`FolderError`] when it cannot be written.
    pub fn put(&self, part: &str, file: &DataFile) -> Result<(), FolderError> {
        let folder = self.root.join(part);
        let path = folder.join(&file.name);
        if !folder.is_dir() {
            fs::create_dir_all(&folder).map_err(of(&folder))?;
            sync(&self.root)?;
        }
        let unfinished = folder.join(format!(".{}-{}{UNFINISHED}", file.name, std::process::id()));
        let mut out = File::create(&unfinished).map_err(of(&unfinished))?;
        out.write_all(&file.content).map_err(of(&unfinished))?;
        out.sync_all().map_err(of(&unfinished))?;
        drop(out);
        fs::rename(&unfinished, &path).map_err(of(&path))?;
        sync(&folder)
    }

    /// Sets damaged files aside, with `.damaged` behind their names: the runs in them may make
    /// files of the same names.
    ///
    /// # Errors
    /// [`FolderError`] when a file cannot be renamed.
    pub fn set_aside(&self, part: &str, damaged: &[String]) -> Result<(), FolderError> {
        let folder = self.root.join(part);
        for name in damaged {
            let path = folder.join(name);
            let aside = folder.join(format!("{name}.damaged"));
            unless_missing(fs::rename(&path, &aside), &path)?;
        }
        Ok(())
    }

    /// Keeps `merged`, and removes the files whose rows are in it.
    ///
    /// # Errors
    /// [`FolderError`] when a file cannot be written or removed.
    pub fn merge(
        &self,
        part: &str,
        merged: &DataFile,
        obsolete: &[String],
    ) -> Result<(), FolderError> {
        let folder = self.root.join(part);
        self.put(part, merged)?;
        for name in obsolete.iter().filter(|name| **name != merged.name) {
            let path = folder.join(name);
            unless_missing(fs::remove_file(&path), &path)?;
        }
        sync(&folder)
    }

    /// Removes what programs that were killed left of files that were not whole. No other program
    /// may be writing to the part.
    ///
    /// # Errors
    /// [`FolderError`] when a file cannot be removed.
    pub fn clean(&self, part: &str) -> Result<(), FolderError> {
        let folder = self.root.join(part);
        for name in names(&folder)? {
            let Some(rest) = name.strip_suffix(UNFINISHED) else {
                continue;
            };
            let writer = rest
                .rsplit('-')
                .next()
                .and_then(|id| id.parse::<u32>().ok());
            // Of another program that is alive, as far as can be seen.
            let is_alive = writer.is_some_and(|id| Path::new(&format!("/proc/{id}")).exists());
            if !is_alive {
                let path = folder.join(&name);
                fs::remove_file(&path).map_err(of(&path))?;
            }
        }
        Ok(())
    }
}

/// Another program may have been faster.
fn unless_missing(result: io::Result<()>, path: &Path) -> Result<(), FolderError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(of(path)(error)),
        _ => Ok(()),
    }
}

/// Names of what is in a folder; none when it is not there.
fn names(folder: &Path) -> Result<Vec<String>, FolderError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(of(folder)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(of(folder))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

/// Puts the names in a folder on the disk.
fn sync(folder: &Path) -> Result<(), FolderError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(of(folder))
}
