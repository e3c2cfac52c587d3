//! Results as tables: one row for each number.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::figure::{Depth, Figure};
use crate::point::CODE_VERSION;
use crate::results::Results;

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

/// What `figures` have, each at its depth, in the order of their plans.
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
    out.write_record([
        "figure", "code", "key", "scenario", "settings", "seed", "measure", "name", "value",
    ])?;
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

const SCHEMA: &str = "message tack_lab {
    required binary figure (STRING);
    required binary code (STRING);
    required binary key (STRING);
    required binary scenario (STRING);
    required binary settings (STRING);
    required int64 seed;
    required binary measure (STRING);
    required binary name (STRING);
    required double value;
}";

pub(super) fn write_parquet(file: File, rows: &[Row]) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let texts = |read: fn(&Row) -> &str| -> Vec<ByteArray> {
        rows.iter()
            .map(|row| read(row).as_bytes().to_vec().into())
            .collect()
    };
    column::<ByteArrayType>(&mut group, &texts(|row| row.figure))?;
    column::<ByteArrayType>(&mut group, &texts(|_| CODE_VERSION))?;
    column::<ByteArrayType>(&mut group, &texts(|row| &row.key))?;
    column::<ByteArrayType>(&mut group, &texts(|row| row.scenario))?;
    column::<ByteArrayType>(&mut group, &texts(|row| &row.settings))?;
    let seeds: Vec<i64> = rows.iter().map(|row| row.seed.cast_signed()).collect();
    column::<Int64Type>(&mut group, &seeds)?;
    column::<ByteArrayType>(&mut group, &texts(|row| row.measure))?;
    column::<ByteArrayType>(&mut group, &texts(|row| &row.name))?;
    let values: Vec<f64> = rows.iter().map(|row| row.value).collect();
    column::<DoubleType>(&mut group, &values)?;
    group.close()?;
    writer.close()?;
    Ok(())
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("the schema has fewer columns than a row".into()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}
