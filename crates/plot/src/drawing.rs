//! A plot that was drawn: for a page, as a file, and as numbers.

use crate::canvas::{Canvas, style_alone};
use crate::pdf::{PdfError, write_pdf};
use crate::svg::escape;
use crate::width::Width;

/// One number of a plot. Fields that do not apply are NaN.
#[derive(Clone, PartialEq, Debug)]
pub struct Datum {
    /// What it stands with.
    pub group: String,
    /// Its line or kind of bar.
    pub series: String,
    /// Where it stands on the horizontal axis of a line.
    pub x: f64,
    /// Its size.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
    /// What it is compared with.
    pub reference: f64,
}

/// A plot that was drawn in both widths.
#[derive(Clone, PartialEq, Debug)]
pub struct Svg {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) page: Canvas,
    pub(crate) column: Canvas,
    pub(crate) data: Vec<Datum>,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
}

impl Svg {
    /// What the plot shows.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its name in a page, and good as the name of a file.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn canvas(&self, width: Width) -> &Canvas {
        match width {
            Width::Page => &self.page,
            Width::Column => &self.column,
        }
    }

    /// An element to stand in an HTML page that has [`crate::STYLE`].
    pub fn inline(&self, width: Width) -> String {
        let id = match width {
            Width::Page => escape(&self.id),
            Width::Column => format!("{}-column", escape(&self.id)),
        };
        let attributes = format!(
            "class=\"plot {}\" role=\"img\" aria-labelledby=\"{id}-t\" aria-describedby=\"{id}-d\"",
            width.class()
        );
        let names = format!(
            "<title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
            escape(&self.title),
            escape(&self.description)
        );
        self.canvas(width).to_svg(&attributes, &names)
    }

    /// A file that stands alone, dark on white.
    pub fn file(&self, width: Width) -> String {
        let canvas = self.canvas(width);
        let attributes = format!(
            "class=\"plot\" width=\"{:.0}\" height=\"{:.0}\"",
            canvas.width, canvas.height
        );
        let inside = format!(
            "<title>{}</title><desc>{}</desc><style>{}</style><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>",
            escape(&self.title),
            escape(&self.description),
            style_alone()
        );
        canvas.to_svg(&attributes, &inside)
    }

    /// The same as a PDF of one page, with its font in it. The same plot gives the same bytes.
    ///
    /// # Errors
    /// [`PdfError`] when the file cannot be made.
    pub fn pdf(&self, width: Width) -> Result<Vec<u8>, PdfError> {
        write_pdf(&self.title, self.canvas(width), width)
    }

    /// The numbers that are drawn.
    pub fn data(&self) -> &[Datum] {
        &self.data
    }

    /// Quantity and unit of [`Datum::x`]; empty where there is none.
    pub fn x_label(&self) -> &str {
        &self.x_label
    }

    /// Quantity and unit of [`Datum::value`].
    pub fn y_label(&self) -> &str {
        &self.y_label
    }
}
