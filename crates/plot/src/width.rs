//! The two widths of a plot.

use crate::svg::WIDTH;

/// How wide a plot is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// As wide as a page: 7 inches in print.
    Page,
    /// As wide as a column of two, or a phone: 3.5 inches in print.
    Column,
}

impl Width {
    /// In the units of plots.
    pub(crate) fn units(self) -> f64 {
        match self {
            Self::Page => 2.0 * WIDTH,
            Self::Column => WIDTH,
        }
    }

    /// The class of its elements in a page.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Column => "column",
        }
    }
}
