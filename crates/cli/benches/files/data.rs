//! What is moved, and whether it arrived.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use walkdir::WalkDir;

/// Bytes of the large file.
const BIG: u64 = 1 << 30;
/// Bytes of each small file.
const SMALL: usize = 1024;

/// The sources, made once for a run.
pub(crate) struct Data {
    folder: PathBuf,
    divisor: u64,
}

impl Data {
    /// Makes everything below `work`, each amount divided by `divisor`.
    pub(crate) fn make(work: &Path, divisor: u64) -> Result<Self> {
        let folder = work.join("data");
        fs::create_dir(&folder)?;
        let data = Self { folder, divisor };
        let mut bytes = Bytes(1);
        fs::create_dir(data.big())?;
        let mut file = BufWriter::new(File::create(data.big().join("big.bin"))?);
        let mut block = vec![0; 1 << 20];
        for _ in 0..BIG / divisor / block.len() as u64 {
            bytes.fill(&mut block);
            file.write_all(&block)?;
        }
        file.flush()?;
        for (folder, count) in [
            (data.small(), data.count(10_000)),
            (data.many(), data.count(50_000)),
        ] {
            for index in 0..count {
                let folder = folder.join(format!("folder{:03}", index / 500));
                if index % 500 == 0 {
                    fs::create_dir_all(&folder)?;
                }
                let mut content = [0; SMALL];
                bytes.fill(&mut content);
                fs::write(folder.join(format!("file{index:05}")), content)?;
            }
        }
        copy_sources(&data.tree())?;
        Ok(data)
    }

    fn count(&self, whole: u64) -> u64 {
        whole / self.divisor
    }

    pub(crate) fn big(&self) -> PathBuf {
        self.folder.join("big")
    }

    pub(crate) fn big_name(&self) -> String {
        format!("1 file of {} MiB", (BIG / self.divisor) >> 20)
    }

    pub(crate) fn small(&self) -> PathBuf {
        self.folder.join("small")
    }

    pub(crate) fn small_name(&self) -> String {
        format!("{} files of 1 KiB", self.count(10_000))
    }

    fn many(&self) -> PathBuf {
        self.folder.join("many")
    }

    fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Each row of first copies: its name and the folder to copy.
    pub(crate) fn workloads(&self) -> Vec<(String, PathBuf)> {
        vec![
            (self.big_name(), self.big()),
            (self.small_name(), self.small()),
            (
                format!("{} files of 1 KiB", self.count(50_000)),
                self.many(),
            ),
            ("the sources of tack".to_owned(), self.tree()),
        ]
    }
}

/// Copies this project's sources, without what is built.
fn copy_sources(to: &Path) -> Result<()> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = WalkDir::new(&from)
        .into_iter()
        .filter_entry(|entry| entry.file_name() != "target" && entry.file_name() != ".git");
    for entry in entries {
        let entry = entry?;
        let place = to.join(entry.path().strip_prefix(&from)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(place)?;
        } else if entry.file_type().is_file() {
            fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}

/// Bytes that do not compress, the same in each run (xorshift).
struct Bytes(u64);

impl Bytes {
    fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            chunk.copy_from_slice(&self.0.to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Fails unless `copy` has the folder `source`, with the same files, sizes and contents.
pub(crate) fn compare(source: &Path, copy: &Path) -> Result<()> {
    let name = source.file_name().context("the source has no name")?;
    let (expected, got) = (contents(source)?, contents(&copy.join(name))?);
    for (path, hash) in &expected {
        let other = got
            .get(path)
            .with_context(|| format!("{path:?} did not arrive"))?;
        ensure!(other == hash, "{path:?} arrived with other contents");
    }
    ensure!(
        got.len() == expected.len(),
        "{} files arrived, expected {}",
        got.len(),
        expected.len()
    );
    Ok(())
}

/// The BLAKE3 hash of each file of a folder.
fn contents(folder: &Path) -> Result<BTreeMap<PathBuf, blake3::Hash>> {
    let mut files = BTreeMap::new();
    for entry in WalkDir::new(folder) {
        let entry = entry?;
        if entry.file_type().is_file() {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(File::open(entry.path())?)?;
            files.insert(
                entry.path().strip_prefix(folder)?.to_owned(),
                hasher.finalize(),
            );
        }
    }
    Ok(files)
}
