//! Results in the form that was asked for.

use std::fs::File;

use tack_sim::Report;
use tack_sweep::parquet_file::{Cells, Column, Kind, ParquetError, ParquetFile};

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
    Parquet(Box<ParquetOutput>),
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
                let output = ParquetOutput::new(file).map_err(parquet_failure)?;
                Self::Parquet(Box::new(output))
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
    file: ParquetFile<File>,
    waiting: Vec<Report>,
}

impl ParquetOutput {
    fn new(file: File) -> Result<Self, ParquetError> {
        let columns = COLUMNS.iter().map(|(name, column)| {
            let kind = match column {
                Value::Text(_) => Kind::Text,
                Value::Integer(_) => Kind::Integer,
                Value::Float(_) => Kind::Float,
            };
            Column::optional(name, kind)
        });
        let columns: Vec<_> = columns.collect();
        Ok(Self {
            file: ParquetFile::new(file, "tack_sim", &columns)?,
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
        let rows = || rows.iter().map(|(report, flow)| (*report, *flow));
        let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.file
            .write(COLUMNS.iter().map(|(_, value)| match value {
                Value::Text(read) => {
                    Cells::Text(rows().map(|(run, flow)| read(run, flow)).collect())
                }
                Value::Integer(read) => {
                    let cells = rows().map(|(run, flow)| read(run, flow).map(integer));
                    Cells::Integer(cells.collect())
                }
                Value::Float(read) => {
                    Cells::Float(rows().map(|(run, flow)| read(run, flow)).collect())
                }
            }))?;
        self.waiting.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), ParquetError> {
        if !self.waiting.is_empty() {
            self.flush()?;
        }
        self.file.finish()
    }
}
