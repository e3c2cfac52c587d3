//! One run that a figure wants: a scenario, what is set in it, a seed, and what is measured.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tack_sim::{Scenario, ScenarioError};

use crate::measure::Measure;
use crate::recorded::TraceFile;
use crate::scenarios::Source;

/// The version of the code that results depend on: a hash over the sources of the simulator, all
/// below it, and the measures.
pub const CODE_VERSION: &str = env!("TACK_LAB_CODE");

/// A configuration, of which each seed makes one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    source: &'static Source,
    set: Vec<String>,
    measure: Measure,
    /// What settings name besides the files of the scenario.
    brought: Vec<Arc<TraceFile>>,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The configuration.
    pub cell: Cell,
    /// The seed of its randomness.
    pub seed: u64,
}

impl Cell {
    /// The scenario as it is, with nothing measured but the simulator's own report.
    pub fn new(source: &'static Source) -> Self {
        Self {
            source,
            set: Vec::new(),
            measure: Measure::Report,
            brought: Vec::new(),
        }
    }

    /// With a key of the scenario set, as `tack sim --set KEY=VALUE` does.
    #[must_use]
    pub fn set(mut self, setting: impl Into<String>) -> Self {
        self.set.push(setting.into());
        self
    }

    /// With something more measured.
    #[must_use]
    pub fn measuring(mut self, measure: Measure) -> Self {
        self.measure = measure;
        self
    }

    /// With a file that a setting names, beside the scenario.
    #[must_use]
    pub(crate) fn bringing(mut self, file: &Arc<TraceFile>) -> Self {
        self.brought.push(Arc::clone(file));
        self
    }

    /// One run of it.
    pub fn at(&self, seed: u64) -> Point {
        Point {
            cell: self.clone(),
            seed,
        }
    }
}

impl Point {
    /// What identifies its result: configuration and code version.
    pub fn key(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(CODE_VERSION.as_bytes());
        part(self.cell.source.text.as_bytes());
        for (name, text) in self.cell.source.files {
            part(name.as_bytes());
            part(text.as_bytes());
        }
        part(&(self.cell.set.len() as u64).to_le_bytes());
        for setting in &self.cell.set {
            part(setting.as_bytes());
        }
        // Their names have hashes of their contents, and are in the settings; the settings alone
        // would do for honest files.
        for file in &self.cell.brought {
            part(&file.hash);
        }
        part(&self.seed.to_le_bytes());
        part(self.cell.measure.name().as_bytes());
        let mut key = hasher.finalize().to_hex().to_string();
        key.truncate(32);
        key
    }

    /// Name of its scenario file.
    pub fn scenario_name(&self) -> &'static str {
        self.cell.source.name
    }

    /// Its scenario file: name, and text.
    pub(crate) fn scenario_text(&self) -> (&'static str, &'static str) {
        (self.cell.source.name, self.cell.source.text)
    }

    /// Names and texts of the files beside the scenario that settings and scenario name.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let brought = self.cell.brought.iter();
        let brought = brought.map(|file| (file.name.as_str(), file.text.as_str()));
        self.cell.source.files.iter().copied().chain(brought)
    }

    /// Whether it uses files that the user brought.
    pub fn needs_recordings(&self) -> bool {
        !self.cell.brought.is_empty()
    }

    /// Writes the files it needs below `folder`, where [`Self::scenario`] looks for them.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn place(&self, folder: &Path) -> io::Result<()> {
        self.cell.source.place(folder, self.files())
    }

    /// What is set in it.
    pub fn settings(&self) -> &[String] {
        &self.cell.set
    }

    /// What is measured.
    pub fn measure(&self) -> Measure {
        self.cell.measure
    }

    /// The command that does this run alone.
    pub fn command(&self) -> String {
        let settings: String = self
            .cell
            .set
            .iter()
            .map(|setting| format!(" --set '{setting}'"))
            .collect();
        format!(
            "tack sim scenarios/{}{settings} --seeds {}",
            self.cell.source.name, self.seed
        )
    }

    /// Reads its scenario; `folder` is where [`Self::place`] put its files.
    ///
    /// # Errors
    /// [`ScenarioError`] when a setting does not fit: a mistake in a figure.
    pub fn scenario(&self, folder: &Path) -> Result<Scenario, ScenarioError> {
        let name = folder.join(self.cell.source.name);
        Scenario::from_toml(
            &name.to_string_lossy(),
            self.cell.source.text,
            &self.cell.set,
        )
    }
}
