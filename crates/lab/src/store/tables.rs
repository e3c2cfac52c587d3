//! Results as tables: one row for each number.

use std::fs::File;

use parquet::errors::ParquetError;

use crate::figure::{Depth, Figure};
use crate::point::CODE_VERSION;
use crate::results::Results;
use tack_sweep::parquet_file::{Cells, Column, Kind, ParquetFile};

/// One number.
pub(super) struct Row {
    figure: &'static str,
    key: String,
    scenario: &'static str,
    settings: String,
    seed: u64,
    measure: &'static str,
    name: String,
    value: f64,
}

/// The results of `figures`, each at its depth, in the order of their plans.
pub(super) fn rows<'a>(
    figures: impl IntoIterator<Item = (&'a Figure, &'a Depth)>,
    results: &Results,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for (figure, depth) in figures {
        for point in figure.plan(depth) {
            let Some(values) = results.get(&point) else {
                continue;
            };
            let (key, settings) = (point.key(), point.settings().join(" "));
            rows.extend(values.iter().map(|(name, value)| Row {
                figure: figure.id,
                key: key.clone(),
                scenario: point.scenario_name(),
                settings: settings.clone(),
                seed: point.seed,
                measure: point.measure().name(),
                name: name.to_owned(),
                value,
            }));
        }
    }
    rows
}

pub(super) fn write_csv(file: File, rows: &[Row]) -> csv::Result<()> {
    let mut out = csv::Writer::from_writer(file);
    out.write_record(COLUMNS.iter().map(|column| column.name.as_bytes()))?;
    for row in rows {
        out.write_record([
            row.figure,
            CODE_VERSION,
            &row.key,
            row.scenario,
            &row.settings,
            &row.seed.to_string(),
            row.measure,
            &row.name,
            &row.value.to_string(),
        ])?;
    }
    Ok(out.flush()?)
}

const COLUMNS: [Column; 9] = [
    Column::required("figure", Kind::Text),
    Column::required("code", Kind::Text),
    Column::required("key", Kind::Text),
    Column::required("scenario", Kind::Text),
    Column::required("settings", Kind::Text),
    Column::required("seed", Kind::Integer),
    Column::required("measure", Kind::Text),
    Column::required("name", Kind::Text),
    Column::required("value", Kind::Float),
];

pub(super) fn write_parquet(file: File, rows: &[Row]) -> Result<(), ParquetError> {
    let texts = |read: fn(&Row) -> &str| Cells::texts(rows.iter().map(read));
    let seeds = rows.iter().map(|row| Some(row.seed.cast_signed()));
    let values = rows.iter().map(|row| Some(row.value));
    let mut file = ParquetFile::new(file, "tack_lab", &COLUMNS)?;
    file.write([
        texts(|row| row.figure),
        texts(|_| CODE_VERSION),
        texts(|row| &row.key),
        texts(|row| row.scenario),
        texts(|row| &row.settings),
        Cells::Integer(seeds.collect()),
        texts(|row| row.measure),
        texts(|row| &row.name),
        Cells::Float(values.collect()),
    ])?;
    file.finish()
}
