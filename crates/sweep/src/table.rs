//! Rows in memory, by columns, and the reading of Parquet files into them.

use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::{Deserialize, Serialize};

use crate::parquet_file::{Cells, Column, Kind, ParquetFile, Presence};

/// One cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Cell {
    /// Nothing.
    Null,
    /// UTF-8.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number; not a number is [`Cell::Null`] in a table. It travels as its bits: decimals do not
    /// keep all of them.
    #[serde(with = "bits")]
    Float(f64),
}

mod bits {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(number: &f64, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(number.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
        u64::deserialize(input).map(f64::from_bits)
    }
}

impl Cell {
    /// A finite number; another one is null.
    pub fn finite(number: f64) -> Self {
        match number.is_finite() {
            true => Self::Float(number),
            false => Self::Null,
        }
    }

    /// The number in it.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Null | Self::Text(_) => None,
        }
    }

    /// The text in it.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Rows of equal columns.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    columns: Vec<Column>,
    cells: Vec<Cells>,
    rows: usize,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no Parquet file, or a damaged one.
    #[error("{0}")]
    Parquet(#[from] ParquetError),
    /// A column has a type that no file of a sweep has.
    #[error("column {0:?} has a type that no file of a sweep has")]
    Type(String),
}

impl Table {
    /// Without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        let cells = columns.iter().map(|column| match column.kind {
            Kind::Text => Cells::Text(Vec::new()),
            Kind::Integer => Cells::Integer(Vec::new()),
            Kind::Float => Cells::Float(Vec::new()),
        });
        Self {
            cells: cells.collect(),
            columns,
            rows: 0,
        }
    }

    /// What its columns are.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The cells of each column.
    pub fn cells(&self) -> &[Cells] {
        &self.cells
    }

    /// How many rows it has.
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Whether it has no row.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Where the column `name` is.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Adds a row. A cell of another type than its column becomes null.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        let mut row = row.into_iter();
        for cells in &mut self.cells {
            let cell = row.next().unwrap_or(Cell::Null);
            match (cells, cell) {
                (Cells::Text(cells), Cell::Text(text)) => cells.push(Some(text)),
                (Cells::Integer(cells), Cell::Integer(number)) => cells.push(Some(number)),
                (Cells::Float(cells), Cell::Float(number)) => cells.push(Some(number)),
                (Cells::Float(cells), Cell::Integer(number)) => cells.push(Some(number as f64)),
                (Cells::Text(cells), _) => cells.push(None),
                (Cells::Integer(cells), _) => cells.push(None),
                (Cells::Float(cells), _) => cells.push(None),
            }
        }
        self.rows += 1;
    }

    /// A cell; null beyond the table.
    pub fn cell(&self, row: usize, column: usize) -> Cell {
        match self.cells.get(column) {
            Some(Cells::Text(cells)) => match cells.get(row) {
                Some(Some(text)) => Cell::Text(text.clone()),
                _ => Cell::Null,
            },
            Some(Cells::Integer(cells)) => match cells.get(row) {
                Some(Some(number)) => Cell::Integer(*number),
                _ => Cell::Null,
            },
            Some(Cells::Float(cells)) => match cells.get(row) {
                Some(Some(number)) => Cell::Float(*number),
                _ => Cell::Null,
            },
            None => Cell::Null,
        }
    }

    /// A row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Cell> {
        (0..self.columns.len()).map(move |column| self.cell(row, column))
    }

    /// The table of these rows, in this order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        fn pick<T: Clone>(cells: &[Option<T>], rows: &[usize]) -> Vec<Option<T>> {
            rows.iter().map(|row| cells[*row].clone()).collect()
        }
        let cells = self.cells.iter().map(|cells| match cells {
            Cells::Text(cells) => Cells::Text(pick(cells, rows)),
            Cells::Integer(cells) => Cells::Integer(pick(cells, rows)),
            Cells::Float(cells) => Cells::Float(pick(cells, rows)),
        });
        Self {
            columns: self.columns.clone(),
            cells: cells.collect(),
            rows: rows.len(),
        }
    }

    /// The rows of several tables of equal columns, each code, configuration and seed once; `None`
    /// without a table. Tables with other columns than the first are left out.
    pub fn distinct(tables: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut all: Option<Self> = None;
        let mut seen = std::collections::HashSet::new();
        for table in tables {
            let all = all.get_or_insert_with(|| Self::new(table.columns.clone()));
            if all.columns != table.columns {
                continue;
            }
            let keys = ["code", "config", "seed"].map(|name| table.find(name));
            for row in 0..table.len() {
                let key = keys.map(|at| format!("{:?}", at.map(|at| table.cell(row, at))));
                if seen.insert(key) {
                    all.push(table.row(row));
                }
            }
        }
        all
    }

    /// The table as a Parquet file that says `about` of itself. Equal tables are equal bytes.
    ///
    /// # Errors
    /// When the columns cannot be written: two of the same name.
    pub fn to_parquet(&self, about: &str) -> Result<Vec<u8>, ParquetError> {
        let mut content = Vec::new();
        let mut file =
            ParquetFile::describing(&mut content, "tack_sweep", &self.columns, &[(ABOUT, about)])?;
        for begin in (0..self.rows).step_by(GROUP) {
            let rows: Vec<usize> = (begin..self.rows.min(begin + GROUP)).collect();
            file.write(self.select(&rows).cells)?;
        }
        file.finish()?;
        Ok(content)
    }

    /// Reads a Parquet file: its rows, and what it says of itself.
    ///
    /// # Errors
    /// [`ReadError`] when it is no file of a sweep.
    pub fn from_parquet(content: Vec<u8>) -> Result<(Self, Option<String>), ReadError> {
        let reader = SerializedFileReader::new(Bytes::from(content))?;
        let about = reader.metadata().file_metadata();
        let texts = about.key_value_metadata().map_or(&[][..], Vec::as_slice);
        let about_text = texts.iter().find(|text| text.key == ABOUT);
        let about_text = about_text.and_then(|text| text.value.clone());
        let mut columns = Vec::new();
        for column in about.schema_descr().columns() {
            use parquet::basic::Type;
            let kind = match column.physical_type() {
                Type::BYTE_ARRAY => Kind::Text,
                Type::INT64 => Kind::Integer,
                Type::DOUBLE => Kind::Float,
                _ => return Err(ReadError::Type(column.name().into())),
            };
            let presence = match (column.max_def_level(), column.max_rep_level()) {
                (0, 0) => Presence::Required,
                (1, 0) => Presence::Optional,
                _ => return Err(ReadError::Type(column.name().into())),
            };
            columns.push(Column {
                name: column.name().to_owned().into(),
                kind,
                presence,
            });
        }
        let mut table = Self::new(columns);
        for number in 0..reader.num_row_groups() {
            let group = reader.get_row_group(number)?;
            let rows = usize::try_from(group.metadata().num_rows())
                .map_err(|_| ParquetError::General("a negative number of rows".into()))?;
            for (index, cells) in table.cells.iter_mut().enumerate() {
                let presence = table.columns[index].presence;
                match (group.get_column_reader(index)?, cells) {
                    (ColumnReader::ByteArrayColumnReader(reader), Cells::Text(cells)) => {
                        for bytes in column(reader, presence, rows)? {
                            let text = bytes
                                .map(|bytes| String::from_utf8(bytes.data().to_vec()))
                                .transpose();
                            cells.push(text.map_err(|_| {
                                ParquetError::General("a text that is not UTF-8".into())
                            })?);
                        }
                    }
                    (ColumnReader::Int64ColumnReader(reader), Cells::Integer(cells)) => {
                        cells.extend(column(reader, presence, rows)?);
                    }
                    (ColumnReader::DoubleColumnReader(reader), Cells::Float(cells)) => {
                        cells.extend(column(reader, presence, rows)?);
                    }
                    _ => return Err(ReadError::Type(table.columns[index].name.to_string())),
                }
            }
            table.rows += rows;
        }
        Ok((table, about_text))
    }
}

/// Name of what a file says of itself.
const ABOUT: &str = "tack.sweep";

/// Rows in a row group.
const GROUP: usize = 8_192;

/// All cells of a column of one row group.
fn column<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    presence: Presence,
    rows: usize,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let wanted = (presence == Presence::Optional).then_some(&mut levels);
        let (records, ..) = reader.read_records(rows - read, wanted, None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::General("a column ends early".into()));
        }
        read += records;
    }
    let mut values = values.into_iter();
    let cells: Vec<_> = match presence {
        Presence::Required => values.by_ref().map(Some).collect(),
        Presence::Optional => levels
            .iter()
            .map(|level| if *level == 1 { values.next() } else { None })
            .collect(),
    };
    match cells.len() == rows {
        true => Ok(cells),
        false => Err(ParquetError::General(
            "a column has another number of rows".into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(vec![
            Column::required("id", Kind::Text),
            Column::named("wired.delay_s".into(), Kind::Float),
            Column::optional("count", Kind::Integer),
        ]);
        for number in 0..20_000 {
            table.push([
                Cell::Text(format!("run {number}")),
                Cell::finite(if number % 3 == 0 { f64::NAN } else { 0.1 }),
                if number % 2 == 0 {
                    Cell::Integer(number)
                } else {
                    Cell::Null
                },
            ]);
        }
        table
    }

    #[test]
    fn a_table_reads_back() {
        let table = table();
        let content = table.to_parquet("what it is").unwrap();
        assert_eq!(table.to_parquet("what it is").unwrap(), content);
        let (read, about) = Table::from_parquet(content).unwrap();
        assert_eq!(read, table);
        assert_eq!(about.as_deref(), Some("what it is"));
        assert_eq!(read.cell(2, 2), Cell::Integer(2));
        assert_eq!(read.cell(3, 1), Cell::Null);
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let content = table().to_parquet("").unwrap();
        for length in [0, 3, 100, content.len() / 2, content.len() - 1] {
            assert!(Table::from_parquet(content[..length].to_vec()).is_err());
        }
    }

    #[test]
    fn numbers_keep_every_bit_on_their_way() {
        for number in [0.1 + 0.2, f64::MIN_POSITIVE, -0.0, 1e300] {
            let text = serde_json::to_string(&Cell::Float(number)).unwrap();
            let Cell::Float(read) = serde_json::from_str(&text).unwrap() else {
                panic!("not a number: {text}");
            };
            assert_eq!(read.to_bits(), number.to_bits());
        }
    }
}
