//! Plans: one file says which scenarios a sweep runs, and with which seeds (see `docs/sweep.md`).
//!
//! Reading is as strict as that of scenarios, and its errors have the same form. A [`Plan`] that
//! was read has every point checked.

mod axis;
mod expansion;
mod sampling;
mod seeds;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tack_sim::ScenarioError;
use tack_sim::scenario::{Files, Reader, Value, parse_tree};

use crate::expression::Expression;
use crate::parquet_file::{Column, Kind};
use crate::run_columns::{Extent, MOST_FLOWS};
use axis::Axis;
pub use expansion::Point;
use expansion::{Base, Expansion, Setting, line_of, read_settings};
use sampling::{MOST_POINTS, Sampling};
pub(crate) use seeds::Seeds;

/// A plan, with its points.
#[derive(Clone, Debug)]
pub struct Plan {
    name: String,
    hash: String,
    points: Vec<Point>,
    /// Combinations that were equal to others.
    equal: u64,
    pub(crate) seeds: Seeds,
    schema: Schema,
    about: About,
    files: BTreeMap<String, String>,
}

/// What a row consists of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Schema {
    /// Columns of the axes.
    axes: Vec<(String, String)>,
    pub(crate) extent: Extent,
    /// Name and expression.
    derived: Vec<(String, String)>,
}

/// What a file says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct About {
    /// The name of the plan.
    pub plan: String,
    /// Each axis: its key, and the column of its numbers, which is the key where there are none.
    pub axes: Vec<(String, String)>,
    /// Names of the derived columns.
    pub derived: Vec<String>,
    /// The column that is looked at first.
    pub column: String,
}

/// Most runs of a plan.
const MOST_RUNS: u64 = 1_000_000;

/// The columns before those of the axes.
const IDENTITY: [Column; 4] = [
    Column::required("code", Kind::Text),
    Column::required("config", Kind::Text),
    Column::required("point", Kind::Integer),
    Column::required("seed", Kind::Integer),
];

impl Schema {
    /// All columns, in order.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let mut columns = IDENTITY.to_vec();
        columns.extend(self.axes.iter().map(|(name, kind)| {
            let kind = match kind.as_str() {
                "integer" => Kind::Integer,
                "float" => Kind::Float,
                _ => Kind::Text,
            };
            Column::named(name.clone(), kind)
        }));
        columns.extend(self.extent.columns());
        columns.extend(
            self.derived
                .iter()
                .map(|(name, _)| Column::named(name.clone(), Kind::Float)),
        );
        columns
    }

    /// Columns of the axes.
    pub(crate) fn axes(&self) -> usize {
        self.axes.len()
    }

    /// Where the columns of the axes begin.
    pub(crate) const AXES: usize = 4;

    /// The expressions of the derived columns.
    pub(crate) fn expressions(&self) -> Vec<Option<Expression>> {
        self.derived
            .iter()
            .map(|(_, text)| Expression::parse(text).ok())
            .collect()
    }
}

impl Plan {
    /// Reads a plan file. `overrides` change keys of all its scenarios, as `tack sim --set` does.
    ///
    /// # Errors
    /// [`ScenarioError`] when it is not exactly a plan, or when one of its points is not exactly a
    /// scenario.
    pub fn from_file(path: &Path, overrides: &[String]) -> Result<Self, ScenarioError> {
        let name = path.to_string_lossy();
        let text = std::fs::read_to_string(path).map_err(|error| ScenarioError {
            source: name.to_string(),
            line: None,
            key: String::new(),
            message: format!("cannot be read: {error}"),
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let files = |file: &str| {
            let path = directory.join(file);
            std::fs::read_to_string(&path)
                .map_err(|error| format!("{} cannot be read: {error}", path.display()))
        };
        Self::from_toml(&name, &text, overrides, &files)
    }

    /// Reads the plan `text` that came from the file `name`; `files` has the texts of the files
    /// that it names, beside it.
    ///
    /// # Errors
    /// As [`Self::from_file`].
    pub fn from_toml(
        name: &str,
        text: &str,
        overrides: &[String],
        files: Files<'_>,
    ) -> Result<Self, ScenarioError> {
        let mut root = Reader::new(name, String::new(), parse_tree(name, text, &[])?)?;
        let stem = Path::new(name)
            .file_stem()
            .map_or_else(|| name.into(), |stem| stem.to_string_lossy().into_owned());
        let title = root.text("name")?.unwrap_or(stem);
        let base = Base::read(&mut root, name, files)?;
        let settings = read_settings(&mut root, overrides)?;
        let sampling = Sampling::read(root.table("sampling")?)?;
        let is_grid = sampling == Sampling::Grid;
        let axes: Result<Vec<_>, _> = root
            .tables("axis")?
            .into_iter()
            .map(|table| Axis::read(table, is_grid))
            .collect();
        let axes = axes?;
        check_keys(&root, &axes, &settings)?;
        let seeds = Seeds::read(&mut root)?;
        let derived = read_derived(&mut root)?;
        let Some(count) = sampling.count(&axes) else {
            return Err(root.fail(
                "axis",
                format!("a plan has at most {MOST_POINTS} points; this one has more"),
            ));
        };
        let runs = count.saturating_mul(seeds.bounds().1 as u64);
        if runs > MOST_RUNS {
            return Err(root.fail(
                "seeds",
                format!("a plan has at most {MOST_RUNS} runs; this one may have {runs}"),
            ));
        }

        let mut expansion = Expansion {
            name,
            base: &base,
            settings: &settings,
            axes: &axes,
            files: RefCell::default(),
            points: Vec::new(),
            seen: HashSet::new(),
            equal: 0,
            flows: 0,
            wlan: false,
        };
        sampling.combinations(&axes, |values| expansion.add(values))?;
        let schema = Schema {
            axes: axes
                .iter()
                .flat_map(Axis::columns)
                .map(named_kind)
                .collect(),
            extent: Extent {
                flows: expansion.flows.min(MOST_FLOWS),
                wlan: expansion.wlan,
            },
            derived: derived
                .iter()
                .map(|(name, expression)| (name.clone(), expression.text().to_owned()))
                .collect(),
        };
        check_columns(&mut root, &schema, &derived, &seeds)?;
        root.finish()?;
        let column = match &seeds {
            Seeds::Until(rule) => rule.column.clone(),
            Seeds::Fixed(_) => match derived.first() {
                Some((name, _)) => name.clone(),
                None => "goodput_bps".into(),
            },
        };
        let about = About {
            plan: title.clone(),
            axes: axes
                .iter()
                .map(|axis| (axis.keys[0].clone(), axis.plotted()))
                .collect(),
            derived: derived.into_iter().map(|(name, _)| name).collect(),
            column,
        };
        let Expansion {
            points,
            equal,
            files,
            ..
        } = expansion;
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{schema:?}").as_bytes());
        for point in &points {
            hasher.update(point.config.as_bytes());
        }
        let mut hash = hasher.finalize().to_hex().to_string();
        hash.truncate(12);
        let files = files.into_inner();
        Ok(Self {
            name: title,
            hash,
            points,
            equal,
            seeds,
            schema,
            about,
            files: files.into_values().collect(),
        })
    }

    /// The name, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of its part of a data set: equal plans have equal names. Seeds do not change it.
    pub fn partition(&self) -> String {
        let name = self.name.chars().map(|c| {
            let is_plain = c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            if is_plain { c } else { '-' }
        });
        let name: String = name.take(60).collect();
        format!("plan={name}-{}", self.hash)
    }

    /// Its points, in order.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// How many combinations were left out because another one is the same scenario.
    pub const fn equal_points(&self) -> u64 {
        self.equal
    }

    /// How many runs it takes at least, and at most.
    pub fn runs(&self) -> (usize, usize) {
        let (least, most) = self.seeds.bounds();
        (least * self.points.len(), most * self.points.len())
    }

    /// All columns of a row, in order.
    pub fn columns(&self) -> Vec<Column> {
        self.schema.columns()
    }

    /// What its files say of themselves.
    pub const fn about(&self) -> &About {
        &self.about
    }

    pub(crate) const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The files that its scenarios name, by the names in them.
    pub(crate) const fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }
}

fn named_kind(column: Column) -> (String, String) {
    let kind = match column.kind {
        Kind::Text => "text",
        Kind::Integer => "integer",
        Kind::Float => "float",
    };
    (column.name.into_owned(), kind.into())
}

fn check_keys(root: &Reader<'_>, axes: &[Axis], settings: &[Setting]) -> Result<(), ScenarioError> {
    let mut keys = BTreeSet::new();
    for key in axes.iter().flat_map(|axis| &axis.keys) {
        if !keys.insert(key.as_str()) {
            return Err(root.fail("axis", format!("{key} is in two axes")));
        }
    }
    match settings.iter().find(|setting| keys.contains(setting.key())) {
        Some(setting) => Err(ScenarioError {
            key: setting.key().into(),
            line: setting.line,
            ..root.fail("axis", "is an axis: it cannot be set to one value as well")
        }),
        None => Ok(()),
    }
}

fn read_derived(root: &mut Reader<'_>) -> Result<Vec<(String, Expression)>, ScenarioError> {
    let Some(mut table) = root.table("columns")? else {
        return Ok(Vec::new());
    };
    let names: Vec<String> = table.keys().map(str::to_owned).collect();
    let mut derived = Vec::new();
    for name in names {
        let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        if !is_name {
            return Err(table.fail(
                &name,
                "the name of a column has letters, digits and _, and begins with no digit",
            ));
        }
        let text = table.text(&name)?.unwrap_or_default();
        let expression =
            Expression::parse(&text).map_err(|error| table.fail(&name, error.to_string()))?;
        derived.push((name, expression));
    }
    table.finish()?;
    Ok(derived)
}

fn check_columns(
    root: &mut Reader<'_>,
    schema: &Schema,
    derived: &[(String, Expression)],
    seeds: &Seeds,
) -> Result<(), ScenarioError> {
    let columns = schema.columns();
    let mut names = BTreeSet::new();
    if let Some(twice) = columns.iter().find(|column| !names.insert(&*column.name)) {
        return Err(root.fail(
            "columns",
            format!(
                "there is a column {:?} already; choose another name",
                twice.name
            ),
        ));
    }
    let is_number = |column: &&Column| column.kind != Kind::Text;
    let known = |columns: &[Column], name: &str, key: &str| {
        let numbers = || columns.iter().filter(is_number);
        if numbers().any(|column| column.name == name) {
            return Ok(());
        }
        let nearest = nearest(name, numbers().map(|column| &*column.name));
        let message = match columns.iter().any(|column| column.name == name) {
            true => format!("the column {name:?} has texts, not numbers"),
            false => format!("there is no column {name:?}{nearest}"),
        };
        Err((
            format!("{message} (docs/sweep.md lists the columns)"),
            key.to_owned(),
        ))
    };
    let mut place = |(message, key): (String, String)| {
        let (table, name) = key.split_once('.').unwrap_or((&key, ""));
        let line = match root.item(table).map(|item| &item.value) {
            Some(Value::Table(entries)) => line_of(entries.get(name)),
            _ => None,
        };
        ScenarioError {
            key: key.clone(),
            line,
            ..root.fail(table, message)
        }
    };
    let own = columns.len() - derived.len();
    for (name, expression) in derived {
        for column in expression.columns() {
            known(&columns[..own], column, &format!("columns.{name}")).map_err(&mut place)?;
        }
    }
    match seeds {
        Seeds::Until(rule) => known(&columns, &rule.column, "seeds.column").map_err(place),
        Seeds::Fixed(_) => Ok(()),
    }
}

/// `; did you mean …?`, or nothing.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    // The beginning of a name is as near as the name with a letter changed.
    known
        .map(|known| match known.starts_with(name) {
            true => (2, known),
            false => (strsim::damerau_levenshtein(known, name), known),
        })
        .min()
        .filter(|(distance, known)| *distance <= 2.max(known.len() / 4))
        .map_or_else(String::new, |(_, known)| {
            format!("; did you mean {known:?}?")
        })
}

#[cfg(test)]
mod tests;
