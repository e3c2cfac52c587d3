//! The points of a plan: the scenario that they change, what they set, and their hashes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use tack_sim::scenario::{Files, Item, Origin, Reader, Value, parse_tree};
use tack_sim::{Scenario, ScenarioError};

use super::axis::Axis;
use super::sampling::Combination;
use crate::table::Cell;

/// A scenario of a plan.
#[derive(Clone, Debug)]
pub struct Point {
    /// What its axes set, as `--set` of the program takes it.
    pub settings: Vec<String>,
    /// Hash of the scenario.
    pub config: String,
    /// The cells of its axes.
    pub(crate) cells: Vec<Cell>,
    /// The scenario as one text, which needs nothing but the files of the plan.
    pub(crate) scenario: Arc<str>,
}

/// A setting, and where the plan has it.
pub(super) struct Setting {
    pub(super) text: String,
    pub(super) line: Option<usize>,
}

impl Setting {
    pub(super) fn key(&self) -> &str {
        self.text.split('=').next().unwrap_or("").trim()
    }
}

/// The scenario that all points change.
pub(super) struct Base<'a> {
    name: String,
    tree: Item,
    /// Folder of its files, before their names.
    folder: String,
    files: Files<'a>,
}

impl<'a> Base<'a> {
    pub(super) fn read(
        root: &mut Reader<'_>,
        plan: &str,
        files: Files<'a>,
    ) -> Result<Self, ScenarioError> {
        let Some(item) = root.item("scenario").cloned() else {
            return Err(root.fail(
                "scenario",
                "a plan needs a scenario: the name of a file beside it (scenario = \"wifi.toml\"), or a table [scenario]",
            ));
        };
        match &item.value {
            Value::Table(_) => Ok(Self {
                name: plan.into(),
                tree: item,
                folder: String::new(),
                files,
            }),
            Value::Text(file) => {
                let text = files(file).map_err(|message| root.fail("scenario", message))?;
                let name = Path::new(plan).with_file_name(file);
                let name = name.to_string_lossy().into_owned();
                let folder = file.rfind('/').map_or("", |end| &file[..=end]);
                Ok(Self {
                    tree: parse_tree(&name, &text, &[])?,
                    name,
                    folder: folder.into(),
                    files,
                })
            }
            other => Err(root.fail(
                "scenario",
                format!(
                    "{} is neither the name of a file nor a table",
                    other.describe()
                ),
            )),
        }
    }

    fn file(&self, name: &str) -> Result<String, String> {
        let path = match name.starts_with('/') {
            true => name.into(),
            false => format!("{}{name}", self.folder),
        };
        (self.files)(&path)
    }
}

/// What all points set: keys of the plan, its list, and then what the caller gives.
pub(super) fn read_settings(
    root: &mut Reader<'_>,
    overrides: &[String],
) -> Result<Vec<Setting>, ScenarioError> {
    let mut settings = Vec::new();
    for key in ["duration", "warmup"] {
        if let Some(duration) = root.text(key)? {
            settings.push(Setting {
                text: format!(
                    "{key}={}",
                    Value::Text(duration).setting().unwrap_or_default()
                ),
                line: line_of(root.item(key)),
            });
        }
    }
    let texts = root.texts("set")?;
    let lines: Vec<_> = match root.item("set").map(|item| &item.value) {
        Some(Value::Array(items)) => items.iter().map(|item| line_of(Some(item))).collect(),
        _ => Vec::new(),
    };
    settings.extend(
        texts
            .into_iter()
            .zip(lines)
            .map(|(text, line)| Setting { text, line }),
    );
    settings.extend(overrides.iter().map(|text| Setting {
        text: text.clone(),
        line: None,
    }));
    Ok(settings)
}

pub(super) fn line_of(item: Option<&Item>) -> Option<usize> {
    match item.map(|item| &item.origin) {
        Some(Origin::Line(line)) => Some(*line),
        _ => None,
    }
}

/// Points as they are made.
pub(super) struct Expansion<'a> {
    pub(super) name: &'a str,
    pub(super) base: &'a Base<'a>,
    pub(super) settings: &'a [Setting],
    pub(super) axes: &'a [Axis],
    /// By the name in the scenario: the name by its contents, and the contents.
    pub(super) files: RefCell<BTreeMap<String, (String, String)>>,
    pub(super) points: Vec<Point>,
    pub(super) seen: HashSet<String>,
    pub(super) equal: u64,
    pub(super) flows: usize,
    pub(super) wlan: bool,
}

impl Expansion<'_> {
    pub(super) fn add(&mut self, values: Combination) -> Result<(), ScenarioError> {
        let mut settings = Vec::new();
        let mut cells = Vec::new();
        for (axis, (value, its)) in self.axes.iter().zip(values) {
            settings.extend(axis.keys.iter().map(|key| Setting {
                text: format!("{key}={value}"),
                line: axis.line,
            }));
            cells.extend(its);
        }
        let (text, scenario) = self
            .resolve(&settings)
            .map_err(|error| self.place(error, &settings))?;
        self.flows = self.flows.max(scenario.flows.len());
        self.wlan |= scenario.wlan.is_some();
        let mut config = blake3::hash(text.as_bytes()).to_hex().to_string();
        config.truncate(32);
        if !self.seen.insert(config.clone()) {
            self.equal += 1;
            return Ok(());
        }
        self.points.push(Point {
            settings: settings.into_iter().map(|setting| setting.text).collect(),
            config,
            cells,
            scenario: text.into(),
        });
        Ok(())
    }

    /// The scenario of a point, as one text and read.
    fn resolve(&self, settings: &[Setting]) -> Result<(String, Scenario), ScenarioError> {
        let mut tree = self.base.tree.clone();
        for setting in self.settings.iter().chain(settings) {
            tree.set(&setting.text)?;
        }
        let asked = RefCell::new(BTreeSet::new());
        let files = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            if let Some((_, text)) = self.files.borrow().get(name) {
                return Ok(text.clone());
            }
            let text = self.base.file(name)?;
            let hash = blake3::hash(text.as_bytes()).to_hex();
            let file = (format!("{}.file", &hash[..32]), text.clone());
            self.files.borrow_mut().insert(name.to_owned(), file);
            Ok(text)
        };
        let scenario = Scenario::from_tree(&self.base.name, tree.clone(), &files)?;
        if let Value::Table(entries) = &mut tree.value {
            // Nothing that a row has depends on these.
            entries.remove("name");
            entries.remove("seed");
        }
        let asked = asked.into_inner();
        if !asked.is_empty() {
            self.rename(&mut tree, &asked);
        }
        let text = tree.to_toml().ok_or_else(|| ScenarioError {
            source: self.base.name.clone(),
            line: None,
            key: String::new(),
            message: "has a value that no key takes".into(),
        })?;
        Ok((text, scenario))
    }

    /// Gives files names by their contents, so that equal ones are the same configuration wherever
    /// they are.
    fn rename(&self, item: &mut Item, asked: &BTreeSet<String>) {
        match &mut item.value {
            Value::Table(entries) => {
                for (key, item) in entries {
                    let renamed = match &item.value {
                        Value::Text(name) if key == "file" && asked.contains(name) => {
                            let files = self.files.borrow();
                            files.get(name).map(|(renamed, _)| renamed.clone())
                        }
                        _ => None,
                    };
                    match renamed {
                        Some(renamed) => item.value = Value::Text(renamed),
                        None => self.rename(item, asked),
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.rename(item, asked);
                }
            }
            _ => {}
        }
    }

    /// An error in what the plan sets is one in the plan, and says at which point.
    fn place(&self, mut error: ScenarioError, settings: &[Setting]) -> ScenarioError {
        if error.source == "--set" {
            let below = |key: &str, above: &str| {
                key.strip_prefix(above)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let is_about = |setting: &&Setting| {
                below(&error.key, setting.key()) || below(setting.key(), &error.key)
            };
            let all = self.settings.iter().chain(settings);
            if let Some(line) = all.rev().find(is_about).and_then(|setting| setting.line) {
                error.source = self.name.into();
                error.line = Some(line);
            }
        }
        if !settings.is_empty() {
            let settings: Vec<_> = settings.iter().map(|setting| &*setting.text).collect();
            error.message = format!("{} (at the point {})", error.message, settings.join(" "));
        }
        error
    }
}
