//! Plots as files: SVG, PDF, and the numbers in them as CSV and Parquet.

use parquet::errors::ParquetError;
use tack_plot::{Datum, PdfError, Svg, Width};

use crate::entry::Entry;
use crate::figure::Table;
use tack_sweep::parquet_file::{Cells, Column, Kind, ParquetFile};

/// Formats of plots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A vector graphic, for pages and drawing programs.
    Svg,
    /// A vector graphic with its font, for papers.
    Pdf,
    /// The numbers, as text.
    Csv,
    /// The numbers, in columns.
    Parquet,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Svg, Self::Pdf, Self::Csv, Self::Parquet];

    /// What names of files end with.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Pdf => "pdf",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// Why a file could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The PDF.
    #[error("{0}")]
    Pdf(#[from] PdfError),
    /// The Parquet file.
    #[error("the Parquet file cannot be made: {0}")]
    Parquet(#[from] ParquetError),
}

/// Each plot of `entry` in `format`, and in CSV also its tables: names of files, and what is in
/// them.
///
/// # Errors
/// [`ExportError`] when a file cannot be made.
pub fn export(
    entry: &Entry,
    format: Format,
    width: Width,
) -> Result<Vec<(String, Vec<u8>)>, ExportError> {
    let mut files = Vec::new();
    let outcome = entry.outcome.iter();
    for plot in outcome.clone().flat_map(|outcome| &outcome.plots) {
        let content = match format {
            Format::Svg => plot.svg.file(width).into_bytes(),
            Format::Pdf => plot.svg.pdf(width)?,
            Format::Csv => plot_csv(&plot.svg),
            Format::Parquet => plot_parquet(&plot.svg)?,
        };
        files.push((
            format!("{}.{}", name(&plot.svg), format.extension()),
            content,
        ));
    }
    if format == Format::Csv {
        let tables = outcome.flat_map(|outcome| outcome.tables());
        for (number, table) in tables.enumerate() {
            let part = match number {
                0 => String::new(),
                _ => format!("-{}", number + 1),
            };
            files.push((
                format!("figure-{}-table{part}.csv", entry.figure.id),
                table_csv(table),
            ));
        }
    }
    Ok(files)
}

/// Name of a plot's files, without their end.
pub(crate) fn name(plot: &Svg) -> String {
    match plot.id().strip_prefix("plot-") {
        Some(rest) => format!("figure-{rest}"),
        None => plot.id().to_owned(),
    }
}

const COLUMNS: [&str; 9] = [
    "group",
    "series",
    "x_label",
    "x",
    "label",
    "value",
    "low",
    "high",
    "reference",
];

/// A row for each number of a plot. `low` and `high` are the ends of its interval; what does not
/// apply is empty.
pub(crate) fn plot_csv(plot: &Svg) -> Vec<u8> {
    let mut out = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail, nor do records of equal length.
    let _ = out.write_record(COLUMNS);
    for datum in plot.data() {
        let number = |value: f64| match value.is_finite() {
            true => value.to_string(),
            false => String::new(),
        };
        let _ = out.write_record([
            &datum.group,
            &datum.series,
            plot.x_label(),
            &number(datum.x),
            plot.y_label(),
            &number(datum.value),
            &number(datum.low),
            &number(datum.high),
            &number(datum.reference),
        ]);
    }
    out.into_inner().unwrap_or_default()
}

fn table_csv(table: &Table) -> Vec<u8> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let _ = out.write_record(&table.head);
    for row in &table.rows {
        let _ = out.write_record(row);
    }
    out.into_inner().unwrap_or_default()
}

/// The columns of the Parquet file; `x` and the numbers may be missing.
const KINDS: [Column; 9] = [
    Column::required(COLUMNS[0], Kind::Text),
    Column::required(COLUMNS[1], Kind::Text),
    Column::required(COLUMNS[2], Kind::Text),
    Column::optional(COLUMNS[3], Kind::Float),
    Column::required(COLUMNS[4], Kind::Text),
    Column::optional(COLUMNS[5], Kind::Float),
    Column::optional(COLUMNS[6], Kind::Float),
    Column::optional(COLUMNS[7], Kind::Float),
    Column::optional(COLUMNS[8], Kind::Float),
];

/// The same in columns; what does not apply is null.
fn plot_parquet(plot: &Svg) -> Result<Vec<u8>, ParquetError> {
    let texts = |read: fn(&Datum) -> &str| Cells::texts(plot.data().iter().map(read));
    let same = |text: &str| Cells::texts(plot.data().iter().map(|_| text));
    let numbers = |read: fn(&Datum) -> f64| Cells::finite(plot.data().iter().map(read));
    let mut content = Vec::new();
    let mut file = ParquetFile::new(&mut content, "tack_plot", &KINDS)?;
    file.write([
        texts(|datum| &datum.group),
        texts(|datum| &datum.series),
        same(plot.x_label()),
        numbers(|datum| datum.x),
        same(plot.y_label()),
        numbers(|datum| datum.value),
        numbers(|datum| datum.low),
        numbers(|datum| datum.high),
        numbers(|datum| datum.reference),
    ])?;
    file.finish()?;
    Ok(content)
}

/// A file within a page: a link to it saves it.
pub(crate) fn data_url(kind: &str, content: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut url = format!("data:{kind};charset=utf-8,");
    for byte in content {
        match byte {
            // RFC 3986 §2.3, and what it lets stand in a path.
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b'/'
            | b':'
            | b'='
            | b';'
            | b','
            | b'('
            | b')' => url.push(char::from(*byte)),
            _ => {
                let _ = write!(url, "%{byte:02X}");
            }
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;
    use crate::{Depth, FIGURES, Results};

    fn entry(id: &str) -> Entry {
        let figure = *FIGURES.iter().find(|figure| figure.id == id).unwrap();
        let depth = Depth::quick();
        Entry {
            figure,
            outcome: Some(figure.reduce(&depth, &Results::default())),
            depth,
        }
    }

    #[test]
    fn each_plot_is_a_file_in_each_format() {
        for figure in FIGURES {
            let entry = entry(figure.id);
            let plots = entry.outcome.as_ref().unwrap().plots.len();
            for format in Format::ALL {
                let files = export(&entry, format, Width::Column).unwrap();
                let names: std::collections::BTreeSet<_> =
                    files.iter().map(|(name, _)| name.clone()).collect();
                assert_eq!(names.len(), files.len(), "{names:?}");
                assert!(names.iter().all(|name| name.starts_with("figure-")));
                assert!(files.len() >= plots, "{}: {names:?}", figure.id);
            }
        }
    }

    #[test]
    fn a_file_has_what_it_needs() {
        let plots = export(&entry("7"), Format::Svg, Width::Page).unwrap();
        let svg = String::from_utf8(plots[0].1.clone()).unwrap();
        assert_eq!(plots[0].0, "figure-7.svg");
        assert!(svg.contains("<style>") && !svg.contains("var("), "{svg}");

        let pdf = |width| {
            export(&entry("7"), Format::Pdf, width).unwrap()[0]
                .1
                .clone()
        };
        assert!(pdf(Width::Page).starts_with(b"%PDF-"));
        assert_eq!(pdf(Width::Page), pdf(Width::Page), "the same bytes");
        assert_ne!(pdf(Width::Page), pdf(Width::Column));
    }

    #[test]
    fn numbers_read_back() {
        let entry = entry("7");
        let files = |format| export(&entry, format, Width::Page).unwrap();
        let csv = files(Format::Csv);
        assert_eq!(csv[1].0, "figure-7-table.csv");
        let rows: Vec<_> = csv::Reader::from_reader(&csv[0].1[..])
            .into_records()
            .map(Result::unwrap)
            .collect();
        assert_eq!(rows.len(), 4);
        assert_eq!(
            (&rows[2][0], &rows[2][8], &rows[2][5]),
            ("802.11n", "210", "")
        );

        let parquet = files(Format::Parquet).remove(0).1;
        let reader = SerializedFileReader::new(bytes(parquet)).unwrap();
        let rows: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[2].get_string(0).unwrap(), "802.11n");
        assert_eq!(rows[2].get_double(8).unwrap(), 210.0);
        assert!(
            rows[2].get_double(5).is_err(),
            "what was not measured is null"
        );
    }

    /// Parquet is read from a file.
    fn bytes(content: Vec<u8>) -> std::fs::File {
        use std::io::Write as _;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        file
    }

    #[test]
    fn a_url_has_no_character_that_ends_it() {
        assert_eq!(
            data_url("text/csv", "a\"b,<ü>#\n".as_bytes()),
            "data:text/csv;charset=utf-8,a%22b,%3C%C3%BC%3E%23%0A"
        );
    }
}
