//! Scenario files: one declarative TOML file describes one experiment (see `docs/scenario.md`).
//!
//! Reading is strict. An unknown key, a wrong unit or an impossible combination is a
//! [`ScenarioError`] that names file, line, key and what would be right. A [`Scenario`] that was
//! read needs no further checks.

mod error;
mod files;
mod flow;
mod flow_table;
mod hack;
mod preset;
mod reader;
mod seeds;
mod tree;
mod units;
mod video;
mod wired;
mod wlan;

use std::path::Path as FilePath;
use std::time::Duration;

pub use error::ScenarioError;
pub use files::Files;
pub use flow::{App, Flow, Party, TcpFlow, Transport, UdpFlow, UdpRate};
pub use hack::{HACK_VARIANTS, HackCodec};
pub use preset::Preset;
pub use reader::Reader;
pub use seeds::{SeedsError, parse_seeds};
pub use tree::{Item, Origin, Value, parse as parse_tree};
pub use video::Video;
pub use wired::{HostConfig, Wired};
pub use wlan::{ACK_FILTERS, Wlan};

/// One experiment.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name for reports; the file's name without extension unless given.
    pub name: String,
    /// Seed unless the caller chooses others.
    pub seed: u64,
    /// Virtual time after which the run ends; earlier when every flow is complete.
    pub duration: Duration,
    /// Virtual time at the beginning that figures leave out.
    pub warmup: Duration,
    /// The wired path: between server and client, or between server and access point.
    pub wired: Wired,
    /// The wireless network behind the wired path, if there is one.
    pub wlan: Option<Wlan>,
    /// The flows, at least one.
    pub flows: Vec<Flow>,
}

impl Scenario {
    /// Reads the scenario `text` that came from the file `name` (trace files are looked for beside
    /// it), and applies `overrides` of the form `KEY=VALUE` with dotted keys and numbers for
    /// array elements: `wired.rate=10Mbps`, `flow.0.ack=every`.
    ///
    /// # Errors
    /// [`ScenarioError`] for anything that is not exactly a scenario.
    pub fn from_toml(name: &str, text: &str, overrides: &[String]) -> Result<Self, ScenarioError> {
        let directory = FilePath::new(name).parent().unwrap_or(FilePath::new(""));
        let files = |file: &str| {
            let path = directory.join(file);
            std::fs::read_to_string(&path)
                .map_err(|error| format!("{} cannot be read: {error}", path.display()))
        };
        Self::from_tree(name, parse_tree(name, text, overrides)?, &files)
    }

    /// Reads the scenario `root` that came from the file `name`; `files` has the texts of the files
    /// that it names.
    ///
    /// # Errors
    /// [`ScenarioError`] for anything that is not exactly a scenario.
    pub fn from_tree(name: &str, root: Item, files: Files<'_>) -> Result<Self, ScenarioError> {
        let mut root = Reader::new(name, String::new(), root)?;
        let stem = FilePath::new(name)
            .file_stem()
            .map_or_else(|| name.into(), |stem| stem.to_string_lossy().into_owned());
        let wlan = root.table("wlan")?.map(wlan::read).transpose()?;
        let stations = wlan.as_ref().map(|wlan| wlan.world.stations);
        let scenario = Self {
            wlan,
            name: root.text("name")?.unwrap_or(stem),
            seed: root.integer("seed", 0, i64::MAX as u64)?.unwrap_or(1),
            duration: root
                .duration("duration")?
                .unwrap_or(Duration::from_secs(10)),
            warmup: root.duration("warmup")?.unwrap_or_default(),
            wired: {
                let table = root.table("wired")?;
                wired::read(
                    table.unwrap_or_else(|| Reader::empty(name, "wired".into())),
                    files,
                )?
            },
            flows: root
                .tables("flow")?
                .into_iter()
                .enumerate()
                .map(|(id, table)| flow_table::read(table, id, stations))
                .collect::<Result<Vec<_>, _>>()?
                .concat(),
        };
        scenario.check(&root)?;
        root.finish()?;
        Ok(scenario)
    }

    /// Reads a scenario file.
    ///
    /// # Errors
    /// [`ScenarioError`] when the file cannot be read or is not exactly a scenario.
    pub fn from_file(path: &FilePath, overrides: &[String]) -> Result<Self, ScenarioError> {
        let name = path.to_string_lossy();
        let text = std::fs::read_to_string(path).map_err(|error| ScenarioError {
            source: name.to_string(),
            line: None,
            key: String::new(),
            message: format!("cannot be read: {error}"),
        })?;
        Self::from_toml(&name, &text, overrides)
    }

    /// Checks that need the whole scenario.
    fn check(&self, root: &Reader<'_>) -> Result<(), ScenarioError> {
        // Nanoseconds of a run stay far from the end of 64 bits, and a run from the end of
        // patience.
        const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);
        if self.duration.is_zero() || self.duration > LONGEST {
            return Err(root.fail("duration", "must be above zero and at most a year"));
        }
        if self.warmup >= self.duration {
            return Err(root.fail(
                "warmup",
                "must be shorter than the duration: nothing would be measured",
            ));
        }
        if self.flows.is_empty() {
            return Err(root.fail("flow", "a scenario needs at least one [[flow]]"));
        }
        if self.flows.len() > usize::from(Flow::MOST) {
            return Err(root.fail("flow", format!("at most {} flows are possible", Flow::MOST)));
        }
        for (id, flow) in self.flows.iter().enumerate() {
            if flow.start >= self.duration {
                return Err(root.fail(
                    "flow",
                    format!(
                        "flow {id} starts at {:?}, not before the end of the run at {:?}",
                        flow.start, self.duration
                    ),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
