//! The scenario as a tree of values that remember where they were written.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::error::ScenarioError;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// In the file, at this line (from 1).
    Line(usize),
    /// In an override.
    Set,
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Item {
    /// The value.
    pub value: Value,
    /// Where it was written.
    pub origin: Origin,
}

/// A TOML value, without dates.
#[derive(Clone, Debug)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A truth value.
    Boolean(bool),
    /// A list.
    Array(Vec<Item>),
    /// A table, sorted by its keys.
    Table(BTreeMap<String, Item>),
    /// Something no key takes (a date).
    Other(&'static str),
}

impl Value {
    /// How to name the value in an error.
    pub fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Boolean(value) => value.to_string(),
            Self::Array(_) => "an array".into(),
            Self::Table(_) => "a table".into(),
            Self::Other(kind) => (*kind).into(),
        }
    }
}

impl Value {
    /// The value as an override `KEY=VALUE` has it behind the sign; `None` when no override can
    /// have it (a date).
    pub fn setting(&self) -> Option<String> {
        let plain = plain(self)?;
        Some(match &plain {
            // Text needs quotes only where it would be read as something else.
            toml::Value::String(text)
                if text.trim() == text && !text.is_empty() && DeValue::parse(text).is_err() =>
            {
                text.clone()
            }
            _ => plain.to_string(),
        })
    }
}

impl Item {
    /// An empty table.
    pub fn table() -> Self {
        Self {
            value: Value::Table(BTreeMap::new()),
            origin: Origin::Line(1),
        }
    }

    /// Applies an override `KEY=VALUE` with a dotted key, as `tack sim --set` does.
    ///
    /// # Errors
    /// [`ScenarioError`] when it is not an override, or when its key leads into a value.
    pub fn set(&mut self, setting: &str) -> Result<(), ScenarioError> {
        apply(self, setting)
    }

    /// The table as TOML, with sorted keys: equal tables are equal texts. `None` when a value is
    /// none that a key takes (a date).
    pub fn to_toml(&self) -> Option<String> {
        toml::to_string(&plain(&self.value)?).ok()
    }
}

fn plain(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Text(text) => text.clone().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(value) => (*value).into(),
        Value::Array(items) => {
            let items: Option<Vec<_>> = items.iter().map(|item| plain(&item.value)).collect();
            items?.into()
        }
        Value::Table(entries) => {
            let entries = entries.iter();
            let entries: Option<toml::Table> = entries
                .map(|(key, item)| Some((key.clone(), plain(&item.value)?)))
                .collect();
            entries?.into()
        }
        Value::Other(_) => return None,
    })
}

/// Reads `text` and applies the overrides in order.
///
/// # Errors
/// [`ScenarioError`] when the text is not TOML, or when an override cannot be applied.
pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Item, ScenarioError> {
    let lines = Lines::of(text);
    let document = DeTable::parse(text).map_err(|error| ScenarioError {
        source: name.into(),
        line: error.span().map(|span| lines.at(span.start)),
        key: String::new(),
        message: error.message().replace('\n', ", "),
    })?;
    let mut root = Item {
        value: Value::Table(table(&lines, document.get_ref())),
        origin: Origin::Line(1),
    };
    for setting in overrides {
        apply(&mut root, setting)?;
    }
    Ok(root)
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(ends.map(|(end, _)| end + 1).collect())
    }

    /// The number of the line that byte `offset` is in, from 1.
    fn at(&self, offset: usize) -> usize {
        1 + self.0.partition_point(|begins| *begins <= offset)
    }
}

fn table(lines: &Lines, table: &DeTable<'_>) -> BTreeMap<String, Item> {
    let entry = |(key, value): (
        &toml::Spanned<toml::de::DeString<'_>>,
        &toml::Spanned<DeValue<'_>>,
    )| {
        // The line of the key: a value that is a table may span many.
        let origin = Origin::Line(lines.at(key.span().start));
        (
            key.get_ref().to_string(),
            Item {
                value: convert(lines, value.get_ref()),
                origin,
            },
        )
    };
    table.iter().map(entry).collect()
}

fn convert(lines: &Lines, value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(string) => Value::Text(string.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Other("a number beyond 64 bits"), Value::Integer),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or(Value::Other("no number"), Value::Float),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| Item {
                    value: convert(lines, item.get_ref()),
                    origin: Origin::Line(lines.at(item.span().start)),
                })
                .collect(),
        ),
        DeValue::Table(inner) => Value::Table(table(lines, inner)),
    }
}

/// `flow.0.ack=every`: the path names tables by key and array elements by number (one past the end
/// adds a table).
fn apply(root: &mut Item, setting: &str) -> Result<(), ScenarioError> {
    let fail = |key: &str, message: String| ScenarioError {
        source: "--set".into(),
        line: None,
        key: key.into(),
        message,
    };
    let Some((path, text)) = setting.split_once('=') else {
        return Err(fail(
            "",
            format!("{setting:?} is not an override; write KEY=VALUE, such as flow.0.ack=every"),
        ));
    };
    let path = path.trim();
    // A value that is not TOML by itself is text: `10Mbps` needs no quotes.
    let text = text.trim();
    let value = match DeValue::parse(text) {
        Ok(value) => convert(&Lines::of(text), value.get_ref()),
        Err(_) => Value::Text(text.into()),
    };
    let mut at = root;
    for part in path.split('.') {
        if part.is_empty() {
            return Err(fail(path, "the key has an empty part".into()));
        }
        at = match &mut at.value {
            Value::Table(entries) => entries.entry(part.into()).or_insert_with(|| {
                // `flow` is the one array of tables: a first flow may be made by an override alone.
                let value = if part == "flow" {
                    Value::Array(Vec::new())
                } else {
                    Value::Table(BTreeMap::new())
                };
                Item {
                    value,
                    origin: Origin::Set,
                }
            }),
            Value::Array(items) => {
                let len = items.len();
                let Ok(index) = part.parse::<usize>() else {
                    return Err(fail(
                        path,
                        format!(
                            "{part:?} is not an index; here an element's number from 0 is needed"
                        ),
                    ));
                };
                if index > len {
                    return Err(fail(
                        path,
                        format!(
                            "there is no element {index}; the highest is {}",
                            len as i64 - 1
                        ),
                    ));
                }
                if index == len {
                    items.push(Item {
                        value: Value::Table(BTreeMap::new()),
                        origin: Origin::Set,
                    });
                }
                &mut items[index]
            }
            other => {
                let message = format!("{part:?} cannot be set inside {}", other.describe());
                return Err(fail(path, message));
            }
        };
    }
    *at = Item {
        value,
        origin: Origin::Set,
    };
    Ok(())
}
