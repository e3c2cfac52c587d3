//! The report of a plan's rows: a column over an axis, with intervals, as a plot and a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use askama::Template;
use tack_plot::{
    COLOURS, Group, Line, LineChart, PdfError, STYLE, Scale, Stroke, Svg, Value, ValueBars,
    Whisker, Width,
};
use tack_stats::Estimate;

use crate::parquet_file::{Column, Kind, ParquetError};
use crate::plan::{About, nearest};
use crate::table::{Cell, Table};
use crate::task::CODE_VERSION;

/// What the report shows; what is not chosen is chosen by the rows.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The column; that of the stopping rule, or the first derived one, by default.
    pub column: Option<String>,
    /// The axis that goes to the right, by its key; the one with most values by default.
    pub over: Option<String>,
    /// The axis with a line for each of its values.
    pub by: Option<String>,
}

/// A report, as files.
#[derive(Debug)]
pub struct Report {
    /// One page with everything in it.
    pub page: String,
    /// The plot.
    pub plot: Svg,
    /// The points of the plot.
    pub points: Table,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Nothing was measured.
    #[error("there are no rows")]
    Empty,
    /// A column or an axis that is not there, or that cannot be shown.
    #[error("{0}")]
    Choice(String),
    /// The plot as PDF.
    #[error("{0}")]
    Pdf(#[from] PdfError),
    /// The points as a file.
    #[error("{0}")]
    Parquet(#[from] ParquetError),
}

/// An axis as rows have it.
#[derive(Clone, Debug)]
struct Shown {
    key: String,
    /// The column of its numbers, or of its texts.
    column: usize,
    is_number: bool,
    /// How many values it has.
    values: usize,
}

/// Most lines of a plot: more cannot be told apart.
const MOST_LINES: usize = 12;

/// One point of the plot: its place, and the estimate of the column's mean.
struct Mean {
    line: String,
    text: String,
    x: f64,
    estimate: Estimate,
}

impl Report {
    /// Of the rows of a plan; `command` made the report, and `written` is the date it shows.
    ///
    /// # Errors
    /// [`ReportError`] when there is nothing to show, or a choice does not fit.
    pub fn new(
        table: &Table,
        about: &About,
        choice: &Choice,
        command: &str,
        written: &str,
    ) -> Result<Self, ReportError> {
        let (rows, code) = latest(table).ok_or(ReportError::Empty)?;
        let table = table.select(&rows);
        let column = find_column(&table, choice.column.as_ref().unwrap_or(&about.column))?;
        let axes: Vec<Shown> = about
            .axes
            .iter()
            .filter_map(|(key, column)| shown(&table, key, column))
            .collect();
        let over = choose(&axes, choice.over.as_deref(), "--over")?;
        let over = over.or_else(|| {
            axes.iter()
                .filter(|axis| axis.values > 1)
                .max_by_key(|axis| (axis.is_number, axis.values))
        });
        let by = choose(&axes, choice.by.as_deref(), "--by")?;
        let by = by.or_else(|| {
            axes.iter()
                .filter(|axis| over.is_none_or(|over| over.key != axis.key))
                .filter(|axis| (2..=MOST_LINES).contains(&axis.values))
                .min_by_key(|axis| (axis.is_number, axis.values))
        });
        if let Some(by) = by.filter(|by| by.values > MOST_LINES) {
            return Err(ReportError::Choice(format!(
                "{} has {} values; at most {MOST_LINES} lines can be told apart",
                by.key, by.values
            )));
        }
        let means = means(&table, column, over, by);
        let measured = &table.columns()[column];
        let (unit, y_label) = unit(
            &measured.name,
            means.iter().map(|mean| mean.estimate.mean.abs()),
        );
        let named = [over, by].map(|axis| axis.map(|axis| axis.key.as_str()));
        let others: Vec<&str> = axes
            .iter()
            .filter(|axis| axis.values > 1 && !named.contains(&Some(axis.key.as_str())))
            .map(|axis| axis.key.as_str())
            .collect();
        let title = match over {
            Some(over) => format!("{} over {}", measured.name, over.key),
            None => measured.name.to_string(),
        };
        let description = describe(&means, &y_label, unit, by.map(|by| by.key.as_str()));
        let plot = match over.filter(|over| over.is_number) {
            Some(over) => lines(
                &means,
                &title,
                &description,
                (unit, &y_label),
                &table.columns()[over.column].name,
            ),
            None => bars(&means, &title, &description, (unit, &y_label)),
        };
        let page = Page {
            style: STYLE,
            plan: &about.plan,
            title: &title,
            wide: plot.inline(Width::Page),
            narrow: plot.inline(Width::Column),
            caption: caption(&means, &others),
            head: [
                by.map_or("", |by| by.key.as_str()),
                over.map_or("", |over| over.key.as_str()),
                &measured.name,
            ],
            means: means
                .iter()
                .map(|mean| {
                    let Estimate {
                        mean: value,
                        half_width,
                        count,
                    } = mean.estimate;
                    let value = match count > 1 && half_width > 0.0 {
                        true => format!("{} ± {}", short(value), short(half_width)),
                        false => short(value),
                    };
                    [
                        mean.line.clone(),
                        mean.text.clone(),
                        value,
                        count.to_string(),
                    ]
                })
                .collect(),
            rows: table.len(),
            code: &code,
            is_old: code != CODE_VERSION,
            command,
            written,
        };
        let points = points(&means, &measured.name, over, by);
        Ok(Self {
            // Writing to a string fails only when a value's own Display does, and these are texts.
            page: page.render().unwrap_or_default(),
            plot,
            points,
        })
    }

    /// The points of the plot as CSV.
    pub fn csv(&self) -> Vec<u8> {
        let mut out = csv::Writer::from_writer(Vec::new());
        // Writing to memory does not fail, nor do records of equal length.
        let _ = out.write_record(
            self.points
                .columns()
                .iter()
                .map(|column| column.name.as_bytes()),
        );
        for row in 0..self.points.len() {
            let _ = out.write_record(self.points.row(row).map(|cell| match cell {
                Cell::Null => String::new(),
                Cell::Text(text) => text,
                Cell::Integer(number) => number.to_string(),
                Cell::Float(number) => number.to_string(),
            }));
        }
        out.into_inner().unwrap_or_default()
    }
}

/// The rows of this version of the code, or of the one that has most, and the version.
fn latest(table: &Table) -> Option<(Vec<usize>, String)> {
    let at = table.find("code")?;
    let mut by_code: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for row in 0..table.len() {
        if let Cell::Text(code) = table.cell(row, at) {
            by_code.entry(code).or_default().push(row);
        }
    }
    if let Some(rows) = by_code.remove(CODE_VERSION) {
        return Some((rows, CODE_VERSION.into()));
    }
    let (code, rows) = by_code.into_iter().max_by_key(|(_, rows)| rows.len())?;
    Some((rows, code))
}

fn find_column(table: &Table, name: &str) -> Result<usize, ReportError> {
    let numbers = || {
        let columns = table.columns().iter();
        columns.filter(|column| column.kind != Kind::Text)
    };
    match table.find(name) {
        Some(at) if table.columns()[at].kind != Kind::Text => Ok(at),
        Some(_) => Err(ReportError::Choice(format!(
            "the column {name:?} has texts, not numbers"
        ))),
        None => Err(ReportError::Choice(format!(
            "there is no column {name:?}{} (docs/sweep.md lists the columns)",
            nearest(name, numbers().map(|column| &*column.name))
        ))),
    }
}

fn choose<'a>(
    axes: &'a [Shown],
    key: Option<&str>,
    option: &str,
) -> Result<Option<&'a Shown>, ReportError> {
    let Some(key) = key else {
        return Ok(None);
    };
    match axes.iter().find(|axis| axis.key == key) {
        Some(axis) => Ok(Some(axis)),
        None => {
            let keys: Vec<_> = axes.iter().map(|axis| axis.key.as_str()).collect();
            Err(ReportError::Choice(format!(
                "{option}: {key:?} is not an axis of this plan; its axes are {}",
                keys.join(", ")
            )))
        }
    }
}

fn shown(table: &Table, key: &str, column: &str) -> Option<Shown> {
    let at = table.find(column)?;
    let values: BTreeSet<String> = (0..table.len())
        .map(|row| format!("{:?}", table.cell(row, at)))
        .collect();
    Some(Shown {
        key: key.into(),
        column: at,
        is_number: table.columns()[at].kind != Kind::Text,
        values: values.len(),
    })
}

/// The text of an axis in a row: as it was set.
fn text(table: &Table, row: usize, axis: &Shown) -> String {
    let at = table.find(&axis.key).unwrap_or(axis.column);
    match table.cell(row, at) {
        Cell::Text(text) => text,
        Cell::Integer(number) => number.to_string(),
        Cell::Float(number) => number.to_string(),
        Cell::Null => String::new(),
    }
}

/// Estimates in the order in which lines first appear, and then by what is on the right.
fn means(table: &Table, column: usize, over: Option<&Shown>, by: Option<&Shown>) -> Vec<Mean> {
    let mut lines: Vec<String> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut groups: BTreeMap<(usize, u64, usize), (f64, Vec<f64>)> = BTreeMap::new();
    let number = |known: &mut Vec<String>, text: String| {
        known
            .iter()
            .position(|one| *one == text)
            .unwrap_or_else(|| {
                known.push(text);
                known.len() - 1
            })
    };
    for row in 0..table.len() {
        let Some(value) = table.cell(row, column).number() else {
            continue;
        };
        let line = by.map_or_else(String::new, |axis| text(table, row, axis));
        let line = number(&mut lines, line);
        let shown = over.map_or_else(String::new, |axis| text(table, row, axis));
        let x = over
            .filter(|axis| axis.is_number)
            .and_then(|axis| table.cell(row, axis.column).number())
            .unwrap_or(0.0);
        let place = number(&mut texts, shown);
        // Bits of numbers that are not negative are in their order.
        let order = (x.to_bits())
            ^ if x.is_sign_negative() {
                u64::MAX
            } else {
                1 << 63
            };
        let group = groups
            .entry((line, order, place))
            .or_insert((x, Vec::new()));
        group.1.push(value);
    }
    groups
        .into_iter()
        .map(|((line, _, place), (x, values))| Mean {
            line: lines[line].clone(),
            text: texts[place].clone(),
            x,
            estimate: Estimate::of(&values),
        })
        .collect()
}

/// What to multiply numbers of a column with for people, and the label of that.
fn unit(column: &str, sizes: impl Iterator<Item = f64>) -> (f64, String) {
    let most = sizes.fold(0.0, f64::max);
    let ends = |end: &str| column.ends_with(end);
    if ends("_bps") {
        (1e-6, format!("{column}, in Mbit/s"))
    } else if ends("_us") {
        (1e-3, format!("{column}, in ms"))
    } else if ends("_s") && most < 10.0 {
        (1e3, format!("{column}, in ms"))
    } else if most > 0.0 && most < 0.05 {
        (1e3, format!("{column}, in thousandths"))
    } else {
        (1.0, column.into())
    }
}

/// A number in four digits.
fn short(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return if number == 0.0 { "0" } else { "–" }.into();
    }
    let digits = 3 - number.abs().log10().floor() as i32;
    match digits {
        ..=0 => tack_plot::format_number(number),
        1..=8 => format!("{number:.*}", digits as usize),
        _ => format!("{number:.3e}"),
    }
}

fn describe(means: &[Mean], label: &str, unit: f64, by: Option<&str>) -> String {
    let of = |mean: &Mean| mean.estimate.mean * unit;
    let least = means.iter().map(of).fold(f64::INFINITY, f64::min);
    let most = means.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
    let by = by.map_or_else(String::new, |by| {
        format!(", with a line for each value of {by}")
    });
    format!("{label}{by}: from {} to {}.", short(least), short(most))
}

fn caption(means: &[Mean], others: &[&str]) -> String {
    let counts = means.iter().map(|mean| mean.estimate.count);
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    let mut text = match (least, most) {
        (_, 0 | 1) => "Each point is one run.".to_owned(),
        (least, most) if least == most => format!(
            "Means of {most} runs each, with their 95 % confidence intervals (Student's t)."
        ),
        (least, most) => format!(
            "Means of {least} to {most} runs, with their 95 % confidence intervals (Student's t)."
        ),
    };
    if !others.is_empty() {
        let _ = write!(
            text,
            " {} vary as well: each mean is over all of their values.",
            others.join(" and ")
        );
    }
    text
}

fn line_names(means: &[Mean]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for mean in means {
        if !names.contains(&mean.line.as_str()) {
            names.push(&mean.line);
        }
    }
    names
}

fn lines(
    means: &[Mean],
    title: &str,
    description: &str,
    (y_unit, y_label): (f64, &str),
    x_column: &str,
) -> Svg {
    let xs = || means.iter().map(|mean| mean.x);
    let (x_unit, x_label) = unit(x_column, xs());
    let least = xs().fold(f64::INFINITY, f64::min);
    let most = xs().fold(0.0, f64::max);
    let x_scale = match least > 0.0 && most / least >= 20.0 {
        true => Scale::Log,
        false => Scale::Linear,
    };
    let names = line_names(means);
    // Draws of a sample are a cloud, not a line.
    let is_cloud =
        means.iter().all(|mean| mean.estimate.count == 1) && means.len() > 12 * names.len();
    let lines = names.iter().enumerate().map(|(number, name)| {
        let own = || means.iter().filter(|mean| mean.line == *name);
        Line {
            name: (*name).into(),
            points: own()
                .map(|mean| (mean.x * x_unit, mean.estimate.mean * y_unit))
                .collect(),
            whiskers: own()
                .filter(|mean| mean.estimate.half_width > 0.0)
                .map(|mean| Whisker {
                    x: mean.x * x_unit,
                    low: mean.estimate.low() * y_unit,
                    high: mean.estimate.high() * y_unit,
                })
                .collect(),
            colour: number % COLOURS,
            stroke: if is_cloud {
                Stroke::Dots
            } else {
                Stroke::Dotted
            },
        }
    });
    LineChart {
        id: "plot-sweep".into(),
        title: title.into(),
        description: description.into(),
        x_label,
        y_label: y_label.into(),
        x_scale,
        y_scale: Scale::Linear,
        lines: lines.collect(),
    }
    .to_svg()
}

fn bars(means: &[Mean], title: &str, description: &str, (y_unit, y_label): (f64, &str)) -> Svg {
    let names = line_names(means);
    let mut groups: Vec<Group> = Vec::new();
    for mean in means {
        let value = Value {
            series: names
                .iter()
                .position(|name| *name == mean.line)
                .unwrap_or(0),
            value: mean.estimate.mean * y_unit,
            uncertainty: mean.estimate.half_width * y_unit,
            reference: None,
        };
        match groups.iter_mut().find(|group| group.name == mean.text) {
            Some(group) => group.values.push(value),
            None => groups.push(Group {
                name: mean.text.clone(),
                values: vec![value],
            }),
        }
    }
    ValueBars {
        id: "plot-sweep".into(),
        title: title.into(),
        description: description.into(),
        label: y_label.into(),
        series: names
            .iter()
            .enumerate()
            .map(|(number, name)| ((*name).to_owned(), number % COLOURS))
            .collect(),
        legend: Vec::new(),
        is_positive: means.iter().all(|mean| mean.estimate.low() > 0.0),
        reference: String::new(),
        groups,
    }
    .to_svg()
}

/// The points of the plot, in the units of the data set.
fn points(means: &[Mean], column: &str, over: Option<&Shown>, by: Option<&Shown>) -> Table {
    let mut columns = Vec::new();
    for axis in [by, over].into_iter().flatten() {
        columns.push(Column::named(axis.key.clone(), Kind::Text));
    }
    let has_x = over.is_some_and(|over| over.is_number);
    if has_x {
        columns.push(Column::optional("x", Kind::Float));
    }
    columns.push(Column::named(format!("mean {column}"), Kind::Float));
    columns.push(Column::optional("half_width", Kind::Float));
    columns.push(Column::optional("runs", Kind::Integer));
    let mut table = Table::new(columns);
    for mean in means {
        let mut row = Vec::new();
        row.extend(by.map(|_| Cell::Text(mean.line.clone())));
        row.extend(over.map(|_| Cell::Text(mean.text.clone())));
        row.extend(has_x.then(|| Cell::finite(mean.x)));
        row.push(Cell::finite(mean.estimate.mean));
        // One run says nothing about the spread.
        row.push(match mean.estimate.count {
            0 | 1 => Cell::Null,
            _ => Cell::finite(mean.estimate.half_width),
        });
        row.push(Cell::Integer(mean.estimate.count as i64));
        table.push(row);
    }
    table
}

#[derive(Template)]
#[template(path = "sweep.html")]
struct Page<'a> {
    style: &'static str,
    plan: &'a str,
    title: &'a str,
    wide: String,
    narrow: String,
    caption: String,
    head: [&'a str; 3],
    means: Vec<[String; 4]>,
    rows: usize,
    code: &'a str,
    is_old: bool,
    command: &'a str,
    written: &'a str,
}
