//! Strict reading of one table: typed values, and nothing may be left over.

use std::collections::BTreeMap;
use std::time::Duration;

use tack_base::Rate;

use super::error::ScenarioError;
use super::tree::{Item, Origin, Value};
use super::units::{self, QueueText};

/// Reads the keys of one table; [`Reader::finish`] refuses what was not asked for.
pub struct Reader<'a> {
    source: &'a str,
    path: String,
    origin: Origin,
    entries: BTreeMap<String, Item>,
    asked: Vec<String>,
}

impl<'a> Reader<'a> {
    /// A reader of `item`, which must be a table; `path` is its dotted key, empty for the file.
    pub fn new(source: &'a str, path: String, item: Item) -> Result<Self, ScenarioError> {
        let origin = item.origin;
        match item.value {
            Value::Table(entries) => Ok(Self {
                source,
                path,
                origin,
                entries,
                asked: Vec::new(),
            }),
            other => {
                let message = format!(
                    "{} is not a table; write [{path}] and keys below it",
                    other.describe()
                );
                Err(error(source, &origin, path, message))
            }
        }
    }

    /// The reader of an empty table.
    pub fn empty(source: &'a str, path: String) -> Self {
        Self {
            source,
            path,
            origin: Origin::Line(1),
            entries: BTreeMap::new(),
            asked: Vec::new(),
        }
    }

    /// True when the key is written.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// An error about `key`.
    pub fn fail(&self, key: &str, message: impl Into<String>) -> ScenarioError {
        let origin = self
            .entries
            .get(key)
            .map_or(&self.origin, |item| &item.origin);
        error(self.source, origin, self.join(key), message.into())
    }

    /// An error about the table as a whole.
    pub fn fail_table(&self, message: impl Into<String>) -> ScenarioError {
        error(self.source, &self.origin, self.path.clone(), message.into())
    }

    /// Refuses `key`, when it is written, because of another choice.
    pub fn refuse(&self, key: &str, why: &str) -> Result<(), ScenarioError> {
        if self.has(key) {
            Err(self.fail(key, why))
        } else {
            Ok(())
        }
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.into()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// The value of a key that may have several forms, and where it is.
    pub fn item(&mut self, key: &str) -> Option<&Item> {
        self.asked.push(key.into());
        self.entries.get(key)
    }

    /// The keys that are written.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    fn value(&mut self, key: &str) -> Option<&Value> {
        self.asked.push(key.into());
        self.entries.get(key).map(|item| &item.value)
    }

    fn wrong(&self, key: &str, wanted: &str) -> ScenarioError {
        let found = self
            .entries
            .get(key)
            .map_or_else(String::new, |item| item.value.describe());
        self.fail(key, format!("{found} is not a {wanted}"))
    }

    fn read<T>(
        &mut self,
        key: &str,
        wanted: &str,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ScenarioError> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => match convert(value) {
                Some(converted) => Ok(Some(converted)),
                None => Err(self.wrong(key, wanted)),
            },
        }
    }

    /// Text.
    pub fn text(&mut self, key: &str) -> Result<Option<String>, ScenarioError> {
        self.read(key, "string; write it in quotes", |value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        })
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &str) -> Result<Option<bool>, ScenarioError> {
        self.read(key, "choice; write true or false", |value| match value {
            Value::Boolean(value) => Some(*value),
            _ => None,
        })
    }

    /// A whole number in `min..=max`.
    pub fn integer(&mut self, key: &str, min: u64, max: u64) -> Result<Option<u64>, ScenarioError> {
        self.read(
            key,
            &format!("whole number from {min} to {max}"),
            |value| match value {
                Value::Integer(number) => u64::try_from(*number)
                    .ok()
                    .filter(|number| (min..=max).contains(number)),
                _ => None,
            },
        )
    }

    /// A number in `min..=max`.
    pub fn number(&mut self, key: &str, min: f64, max: f64) -> Result<Option<f64>, ScenarioError> {
        self.read(key, &format!("number from {min} to {max}"), |value| {
            let number = match value {
                Value::Integer(number) => *number as f64,
                Value::Float(number) => *number,
                _ => return None,
            };
            (min..=max).contains(&number).then_some(number)
        })
    }

    /// A probability; zero when it is not written.
    pub fn probability(&mut self, key: &str) -> Result<f64, ScenarioError> {
        let convert = |value: &Value| match value {
            Value::Integer(number @ 0..=1) => Some(*number as f64),
            Value::Float(number) if (0.0..=1.0).contains(number) => Some(*number),
            _ => None,
        };
        Ok(self
            .read(key, "probability; write a number from 0 to 1", convert)?
            .unwrap_or(0.0))
    }

    /// A duration with its unit.
    pub fn duration(&mut self, key: &str) -> Result<Option<Duration>, ScenarioError> {
        self.read(
            key,
            "duration; write it like \"200ms\" (ns, us, ms, s, min, h)",
            |value| match value {
                Value::Text(text) => units::duration(text),
                _ => None,
            },
        )
    }

    /// A rate with its unit.
    pub fn rate(&mut self, key: &str) -> Result<Option<Rate>, ScenarioError> {
        self.read(
            key,
            "rate above zero; write it like \"54Mbps\" (bps, kbps, Mbps, Gbps)",
            |value| match value {
                Value::Text(text) => units::rate(text).filter(|rate| !rate.is_zero()),
                _ => None,
            },
        )
    }

    /// A number of bytes with its unit.
    pub fn size(&mut self, key: &str) -> Result<Option<u64>, ScenarioError> {
        self.read(
            key,
            "size; write it like \"64KiB\" (B, kB, KiB, MB, MiB, GB, GiB)",
            |value| match value {
                Value::Text(text) => units::size(text),
                _ => None,
            },
        )
    }

    /// A bound of a queue.
    pub(super) fn queue(&mut self, key: &str) -> Result<Option<QueueText>, ScenarioError> {
        self.read(
            key,
            "queue bound; write packets (\"1000p\"), bytes (\"64KiB\") or \"1.0bdp\"",
            |value| match value {
                Value::Text(text) => units::queue(text),
                _ => None,
            },
        )
    }

    /// One of `choices`.
    pub fn choice<T: Copy>(
        &mut self,
        key: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, ScenarioError> {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        self.read(
            key,
            &format!("choice here; one of: {}", names.join(", ")),
            |value| match value {
                Value::Text(text) => choices
                    .iter()
                    .find(|(name, _)| name == text)
                    .map(|(_, choice)| *choice),
                _ => None,
            },
        )
    }

    /// A list of texts; empty when it is not written.
    pub fn texts(&mut self, key: &str) -> Result<Vec<String>, ScenarioError> {
        let convert = |value: &Value| match value {
            Value::Array(items) => items
                .iter()
                .map(|item| match &item.value {
                    Value::Text(text) => Some(text.clone()),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        Ok(self
            .read(key, "list of texts, such as [\"a\", \"b\"]", convert)?
            .unwrap_or_default())
    }

    /// A list of numbers in `min..=max`; empty when it is not written.
    pub fn numbers(&mut self, key: &str, min: f64, max: f64) -> Result<Vec<f64>, ScenarioError> {
        let convert = |value: &Value| match value {
            Value::Array(items) => items
                .iter()
                .map(|item| match item.value {
                    Value::Integer(number) => Some(number as f64),
                    Value::Float(number) => Some(number),
                    _ => None,
                })
                .map(|number| number.filter(|number| (min..=max).contains(number)))
                .collect(),
            _ => None,
        };
        Ok(self
            .read(
                key,
                &format!("list of numbers from {min} to {max}"),
                convert,
            )?
            .unwrap_or_default())
    }

    /// A list of whole numbers in `0..=255`.
    pub fn bytes_list(&mut self, key: &str) -> Result<Vec<u8>, ScenarioError> {
        let convert = |value: &Value| match value {
            Value::Array(items) => items
                .iter()
                .map(|item| match item.value {
                    Value::Integer(number) => u8::try_from(number).ok(),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        Ok(self
            .read(
                key,
                "list of numbers from 0 to 255, such as [5, 8]",
                convert,
            )?
            .unwrap_or_default())
    }

    /// A table below this one.
    pub fn table(&mut self, key: &str) -> Result<Option<Reader<'a>>, ScenarioError> {
        self.asked.push(key.into());
        match self.entries.get(key) {
            None => Ok(None),
            Some(item) => Reader::new(self.source, self.join(key), item.clone()).map(Some),
        }
    }

    /// An array of tables, or one table where one is enough.
    pub fn tables(&mut self, key: &str) -> Result<Vec<Reader<'a>>, ScenarioError> {
        self.asked.push(key.into());
        let Some(item) = self.entries.get(key) else {
            return Ok(Vec::new());
        };
        match &item.value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| {
                    Reader::new(
                        self.source,
                        format!("{}.{index}", self.join(key)),
                        item.clone(),
                    )
                })
                .collect(),
            _ => Ok(vec![Reader::new(
                self.source,
                self.join(key),
                item.clone(),
            )?]),
        }
    }

    /// Refuses every key that nobody asked for.
    pub fn finish(self) -> Result<(), ScenarioError> {
        let Some(unknown) = self.entries.keys().find(|key| !self.asked.contains(key)) else {
            return Ok(());
        };
        let nearest = self
            .asked
            .iter()
            .map(|key| (strsim::damerau_levenshtein(key, unknown), key))
            .min()
            .filter(|(distance, key)| *distance <= 2.max(key.len() / 4))
            .map_or_else(|| ".".into(), |(_, key)| format!("; did you mean {key:?}?"));
        let mut known = self.asked.clone();
        known.sort_unstable();
        known.dedup();
        Err(self.fail(
            unknown,
            format!("unknown key{nearest} Keys here: {}", known.join(", ")),
        ))
    }
}

fn error(source: &str, origin: &Origin, key: String, message: String) -> ScenarioError {
    match origin {
        Origin::Line(line) => ScenarioError {
            source: source.into(),
            line: Some(*line),
            key,
            message,
        },
        Origin::Set => ScenarioError {
            source: "--set".into(),
            line: None,
            key,
            message,
        },
    }
}
