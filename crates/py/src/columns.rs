//! Columns that other libraries take without a copy, by the Arrow PyCapsule interface.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use serde_json::{Map, Value};
use tack_sim::Sample;
use tack_sweep::Table;
use tack_sweep::parquet_file::Cells;

/// A table. polars, pyarrow and DuckDB take it as it is; ``to_dict`` and ``[name]`` give lists.
///
/// It has the Arrow PyCapsule interface (``__arrow_c_stream__``): what takes it shares its memory.
#[pyclass(frozen, module = "tack._core")]
#[derive(Debug)]
pub(crate) struct Columns {
    batch: RecordBatch,
}

fn failed(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

impl Columns {
    fn new(columns: Vec<(String, ArrayRef)>) -> PyResult<Self> {
        let fields: Vec<_> = columns
            .iter()
            .map(|(name, column)| Field::new(name, column.data_type().clone(), true))
            .collect();
        let arrays = columns.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        Ok(Self {
            batch: batch.map_err(|error| failed(&error))?,
        })
    }

    /// A column for each key of any row, nested ones with dots; in the order in which keys first
    /// come.
    pub(crate) fn of_rows(rows: &[Map<String, Value>]) -> PyResult<Self> {
        let mut names: Vec<String> = Vec::new();
        let mut numbers = std::collections::HashMap::new();
        let mut columns: Vec<Vec<Value>> = Vec::new();
        for (row, values) in rows.iter().enumerate() {
            for (key, value) in values {
                flatten(key, value, &mut |name, value| {
                    let number = *numbers.entry(name.to_owned()).or_insert_with(|| {
                        names.push(name.to_owned());
                        columns.push(Vec::new());
                        names.len() - 1
                    });
                    let column = &mut columns[number];
                    column.resize(row, Value::Null);
                    column.push(value.clone());
                });
            }
        }
        for column in &mut columns {
            column.resize(rows.len(), Value::Null);
        }
        // A table that sometimes is null (the wireless part of a wired run) has columns of its own
        // elsewhere.
        let all: Vec<_> = names
            .iter()
            .zip(columns)
            .filter(|(name, _)| {
                let prefix = format!("{name}.");
                !names.iter().any(|other| other.starts_with(&prefix))
            })
            .map(|(name, values)| (name.clone(), array(&values)))
            .collect();
        Self::new(all)
    }

    /// Rows of a sweep.
    pub(crate) fn of_table(table: &Table) -> PyResult<Self> {
        let columns = table.columns().iter().zip(table.cells());
        let columns = columns.map(|(column, cells)| {
            let array: ArrayRef = match cells {
                Cells::Text(cells) => Arc::new(cells.iter().collect::<StringArray>()),
                Cells::Integer(cells) => Arc::new(cells.iter().collect::<Int64Array>()),
                Cells::Float(cells) => Arc::new(cells.iter().collect::<Float64Array>()),
            };
            (column.name.to_string(), array)
        });
        Self::new(columns.collect())
    }

    /// The state of flows over time.
    pub(crate) fn of_samples(samples: &[Sample]) -> PyResult<Self> {
        fn whole(values: impl Iterator<Item = u64>) -> ArrayRef {
            Arc::new(values.map(u64::cast_signed).collect::<Int64Array>())
        }
        fn optional(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
            Arc::new(
                values
                    .map(|value| value.map(u64::cast_signed))
                    .collect::<Int64Array>(),
            )
        }
        fn real(values: impl Iterator<Item = f64>) -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(values))
        }
        let micros = |sample: &Sample| {
            sample
                .srtt
                .and_then(|srtt| u64::try_from(srtt.as_micros()).ok())
        };
        Self::new(vec![
            (
                "time_s".into(),
                real(samples.iter().map(|sample| sample.at.as_secs_f64())),
            ),
            (
                "flow".into(),
                whole(samples.iter().map(|sample| sample.flow as u64)),
            ),
            (
                "goodput_bps".into(),
                real(samples.iter().map(|sample| sample.goodput_bps)),
            ),
            (
                "cwnd".into(),
                whole(samples.iter().map(|sample| sample.cwnd)),
            ),
            (
                "bytes_in_flight".into(),
                whole(samples.iter().map(|sample| sample.bytes_in_flight)),
            ),
            ("srtt_us".into(), optional(samples.iter().map(micros))),
            (
                "pacing_bps".into(),
                optional(samples.iter().map(|sample| sample.pacing_bps)),
            ),
            (
                "queue_packets".into(),
                whole(samples.iter().map(|sample| sample.queue_packets as u64)),
            ),
        ])
    }

    /// Traces of connections: lines of JSON, the first of which names the format.
    pub(crate) fn of_events(lines: &[u8]) -> PyResult<Self> {
        let mut rows = Vec::new();
        for line in lines
            .split(|byte| *byte == b'\n')
            .skip(1)
            .filter(|line| !line.is_empty())
        {
            match serde_json::from_slice(line) {
                Ok(Value::Object(row)) => rows.push(row),
                _ => return Err(PyRuntimeError::new_err("an event is not a JSON object")),
            }
        }
        Self::of_rows(&rows)
    }
}

/// Gives the leaves of `value` with their dotted names; elements of arrays are numbered from 0.
fn flatten(name: &str, value: &Value, leaf: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                flatten(&format!("{name}.{key}"), value, leaf);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                flatten(&format!("{name}.{index}"), value, leaf);
            }
        }
        _ => leaf(name, value),
    }
}

/// An array of the narrowest type that holds all values: of whole numbers, real ones, truth values
/// or texts.
fn array(values: &[Value]) -> ArrayRef {
    let all = |fits: fn(&Value) -> bool| values.iter().all(|value| value.is_null() || fits(value));
    if values.iter().all(Value::is_null) {
        Arc::new(Float64Array::new_null(values.len()))
    } else if all(Value::is_i64) {
        Arc::new(values.iter().map(Value::as_i64).collect::<Int64Array>())
    } else if all(Value::is_number) {
        Arc::new(values.iter().map(Value::as_f64).collect::<Float64Array>())
    } else if all(Value::is_boolean) {
        Arc::new(values.iter().map(Value::as_bool).collect::<BooleanArray>())
    } else {
        Arc::new(values.iter().map(text).collect::<StringArray>())
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[pymethods]
impl Columns {
    /// The table as an Arrow C stream. A schema that is asked for is not looked at: nothing is
    /// cast.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch
            .schema_ref()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.batch.column_by_name(name).ok_or_else(|| {
            PyValueError::new_err(format!("no column {name:?}; column_names lists them"))
        })?;
        values(py, column.as_ref())
    }

    /// Each column as a list of Python's own values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (field, column) in self
            .batch
            .schema_ref()
            .fields()
            .iter()
            .zip(self.batch.columns())
        {
            columns.set_item(field.name(), values(py, column.as_ref())?)?;
        }
        Ok(columns)
    }

    fn __repr__(&self) -> String {
        format!(
            "<tack.Columns: {} rows, {} columns>",
            self.batch.num_rows(),
            self.batch.num_columns()
        )
    }
}

/// A column as a list of Python's own values.
fn values<'py>(py: Python<'py>, column: &dyn Array) -> PyResult<Bound<'py, PyList>> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    match column.data_type() {
        DataType::Int64 => PyList::new(
            py,
            column
                .as_primitive::<Int64Type>()
                .iter()
                .collect::<Vec<_>>(),
        ),
        DataType::Float64 => PyList::new(
            py,
            column
                .as_primitive::<Float64Type>()
                .iter()
                .collect::<Vec<_>>(),
        ),
        DataType::Boolean => PyList::new(py, column.as_boolean().iter().collect::<Vec<_>>()),
        _ => PyList::new(py, column.as_string::<i32>().iter().collect::<Vec<_>>()),
    }
}
