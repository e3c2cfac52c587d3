//! Tables in columns: the one writer of Parquet files.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArrayType, DataType, DoubleType, Int64Type};
pub use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

/// The type of a column's cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Signed, 64 bits.
    Integer,
    /// Double precision.
    Float,
}

/// Whether a column has a cell in each row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// Each row has a cell.
    Required,
    /// A row may have none, which is null.
    Optional,
}

/// A column of the schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What its cells are.
    pub kind: Kind,
    /// Whether it has one in each row.
    pub presence: Presence,
}

impl Column {
    /// A column with a cell in each row.
    pub const fn required(name: &'static str, kind: Kind) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind,
            presence: Presence::Required,
        }
    }

    /// A column in which cells may be missing.
    pub const fn optional(name: &'static str, kind: Kind) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind,
            presence: Presence::Optional,
        }
    }

    /// A column in which cells may be missing, with a name that is made while the program runs.
    pub const fn named(name: String, kind: Kind) -> Self {
        Self {
            name: Cow::Owned(name),
            kind,
            presence: Presence::Optional,
        }
    }
}

/// The cells of one column, a row each.
#[derive(Clone, PartialEq, Debug)]
pub enum Cells {
    /// Of a column of [`Kind::Text`].
    Text(Vec<Option<String>>),
    /// Of a column of [`Kind::Integer`].
    Integer(Vec<Option<i64>>),
    /// Of a column of [`Kind::Float`].
    Float(Vec<Option<f64>>),
}

impl Cells {
    /// Texts, one in each row.
    pub fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::Text(texts.into_iter().map(|text| Some(text.into())).collect())
    }

    /// Finite numbers; others are missing.
    pub fn finite(numbers: impl IntoIterator<Item = f64>) -> Self {
        let cell = |number: f64| Some(number).filter(|number| number.is_finite());
        Self::Float(numbers.into_iter().map(cell).collect())
    }
}

/// A Parquet file that is written in groups of rows, compressed by snappy.
pub struct ParquetFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
}

impl<W: Write + Send> ParquetFile<W> {
    /// A file with these columns; `name` is that of its schema.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn new(out: W, name: &str, columns: &[Column]) -> Result<Self, ParquetError> {
        Self::describing(out, name, columns, &[])
    }

    /// The same, with texts about the file under names, which readers show as its metadata.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn describing(
        out: W,
        name: &str,
        columns: &[Column],
        about: &[(&str, &str)],
    ) -> Result<Self, ParquetError> {
        let fields: Result<Vec<_>, _> = columns.iter().map(field).collect();
        let schema = Type::group_type_builder(name)
            .with_fields(fields?)
            .build()?;
        let about = about
            .iter()
            .map(|(name, text)| KeyValue::new((*name).to_owned(), (*text).to_owned()));
        let about = Some(about.collect::<Vec<_>>()).filter(|about| !about.is_empty());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            // Equal rows are equal bytes, whatever version of the library wrote them.
            .set_created_by("tack".into())
            .set_key_value_metadata(about)
            .build();
        Ok(Self {
            writer: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?,
            columns: columns.to_vec(),
        })
    }

    /// Adds a group of rows, by columns.
    ///
    /// # Errors
    /// When the file cannot be written, or when the cells do not fit the columns.
    pub fn write(&mut self, cells: impl IntoIterator<Item = Cells>) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (column, cells) in self.columns.iter().zip(cells) {
            let presence = column.presence;
            match cells {
                Cells::Text(cells) => {
                    let bytes = |text: String| text.into_bytes().into();
                    let cells = cells.into_iter().map(|cell| cell.map(bytes));
                    write_column::<ByteArrayType>(&mut group, presence, cells)?;
                }
                Cells::Integer(cells) => {
                    write_column::<Int64Type>(&mut group, presence, cells)?;
                }
                Cells::Float(cells) => {
                    write_column::<DoubleType>(&mut group, presence, cells)?;
                }
            }
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<(), ParquetError> {
        self.writer.close()?;
        Ok(())
    }
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let repetition = match column.presence {
        Presence::Required => Repetition::REQUIRED,
        Presence::Optional => Repetition::OPTIONAL,
    };
    let (kind, logical) = match column.kind {
        Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Integer => (PhysicalType::INT64, None),
        Kind::Float => (PhysicalType::DOUBLE, None),
    };
    Ok(Arc::new(
        Type::primitive_type_builder(&column.name, kind)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()?,
    ))
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    presence: Presence,
    cells: impl IntoIterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let cells: Vec<Option<T::T>> = cells.into_iter().collect();
    // A definition level is 1 for a cell that is there, 0 for null. Required columns have none.
    let levels: Option<Vec<i16>> = match presence {
        Presence::Required => None,
        Presence::Optional => Some(cells.iter().map(|cell| cell.is_some().into()).collect()),
    };
    let rows = cells.len();
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    if presence == Presence::Required && values.len() < rows {
        return Err(ParquetError::General(
            "a required column lacks a cell".into(),
        ));
    }
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("the schema has fewer columns than a row".into()))?;
    column
        .typed::<T>()
        .write_batch(&values, levels.as_deref(), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_cell_that_is_missing_is_an_error() {
        let columns = [Column::required("number", Kind::Integer)];
        let mut file = ParquetFile::new(Vec::new(), "test", &columns).unwrap();
        let error = file.write([Cells::Integer(vec![Some(1), None])]);
        assert!(error.unwrap_err().to_string().contains("lacks a cell"));
    }
}
