//! Results in the form that was asked for.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tack_sim::Report;

use super::columns::{COLUMNS, Value};
use crate::exit::Failure;
use crate::printer::with_stdout;

/// Forms of results.
#[derive(Debug)]
pub(crate) enum Format {
    Table,
    Json,
    Csv,
    Parquet(File),
}

/// Takes reports one by one.
pub(crate) enum Output {
    /// Widths depend on all rows, so they wait for the end.
    Table(Vec<Report>),
    Json,
    Csv(Vec<Report>),
    Parquet(ParquetOutput),
}

/// Runs that go into one row group.
const GROUP: usize = 4096;

impl Output {
    pub(crate) fn new(format: Format) -> Result<Self, Failure> {
        Ok(match format {
            Format::Table => Self::Table(Vec::new()),
            Format::Json => Self::Json,
            Format::Csv => Self::Csv(Vec::new()),
            Format::Parquet(file) => {
                Self::Parquet(ParquetOutput::new(file).map_err(parquet_failure)?)
            }
        })
    }

    pub(crate) fn report(&mut self, report: Report) -> Result<(), Failure> {
        match self {
            Self::Table(reports) | Self::Csv(reports) => {
                reports.push(report);
                Ok(())
            }
            Self::Json => with_stdout(|out| writeln!(out, "{}", report.to_json())),
            Self::Parquet(output) => output.report(report).map_err(parquet_failure),
        }
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Table(reports) => {
                with_stdout(|out| out.write_all(tack_sim::table(&reports).as_bytes()))
            }
            Self::Json => Ok(()),
            Self::Csv(reports) => with_stdout(|out| tack_sim::write_csv(&reports, out)),
            Self::Parquet(output) => output.finish().map_err(parquet_failure),
        }
    }
}

fn parquet_failure(error: ParquetError) -> Failure {
    Failure::failed("cannot write the Parquet file", error)
}

/// A Parquet file: a row for each flow of each run, every column optional.
pub(crate) struct ParquetOutput {
    writer: SerializedFileWriter<File>,
    waiting: Vec<Report>,
}

impl ParquetOutput {
    fn new(file: File) -> Result<Self, ParquetError> {
        let mut schema = String::from("message tack_sim {\n");
        for (name, column) in COLUMNS {
            let kind = match column {
                Value::Text(_) => "binary",
                Value::Integer(_) => "int64",
                Value::Float(_) => "double",
            };
            let annotation = if matches!(column, Value::Text(_)) {
                " (STRING)"
            } else {
                ""
            };
            schema.push_str(&format!("  optional {kind} {name}{annotation};\n"));
        }
        schema.push('}');
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let schema = Arc::new(parse_message_type(&schema)?);
        Ok(Self {
            writer: SerializedFileWriter::new(file, schema, Arc::new(properties))?,
            waiting: Vec::new(),
        })
    }

    fn report(&mut self, report: Report) -> Result<(), ParquetError> {
        self.waiting.push(report);
        if self.waiting.len() < GROUP {
            Ok(())
        } else {
            self.flush()
        }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let rows: Vec<_> = self
            .waiting
            .iter()
            .flat_map(|report| report.flows.iter().map(move |flow| (report, flow)))
            .collect();
        let mut group = self.writer.next_row_group()?;
        for (_, value) in COLUMNS {
            let mut column = group.next_column()?.ok_or_else(|| {
                ParquetError::General("the schema has fewer columns than the table".into())
            })?;
            // A definition level is 1 for a value that is there, 0 for null.
            match value {
                Value::Text(read) => {
                    let cells: Vec<Option<String>> = rows
                        .iter()
                        .map(|(report, flow)| read(report, flow))
                        .collect();
                    let levels: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
                    let values: Vec<ByteArray> = cells
                        .into_iter()
                        .flatten()
                        .map(|text| text.into_bytes().into())
                        .collect();
                    column
                        .typed::<ByteArrayType>()
                        .write_batch(&values, Some(&levels), None)?;
                }
                Value::Integer(read) => {
                    let cells: Vec<Option<u64>> = rows
                        .iter()
                        .map(|(report, flow)| read(report, flow))
                        .collect();
                    let levels: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
                    let values: Vec<i64> = cells
                        .into_iter()
                        .flatten()
                        .map(|value| i64::try_from(value).unwrap_or(i64::MAX))
                        .collect();
                    column
                        .typed::<Int64Type>()
                        .write_batch(&values, Some(&levels), None)?;
                }
                Value::Float(read) => {
                    let cells: Vec<Option<f64>> = rows
                        .iter()
                        .map(|(report, flow)| read(report, flow))
                        .collect();
                    let levels: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
                    let values: Vec<f64> = cells.into_iter().flatten().collect();
                    column
                        .typed::<DoubleType>()
                        .write_batch(&values, Some(&levels), None)?;
                }
            }
            column.close()?;
        }
        group.close()?;
        self.waiting.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), ParquetError> {
        if !self.waiting.is_empty() {
            self.flush()?;
        }
        self.writer.close()?;
        Ok(())
    }
}
