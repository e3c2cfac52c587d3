//! Plots for reports: SVG to stand inline in an HTML page, readable on a phone, in the page's light
//! or dark colours.
//!
//! Every plot has a title and a description that screen readers announce, and every text is
//! escaped. Colours are CSS variables, which [`STYLE`] defines for both schemes; a page that
//! includes it needs no script. (The plotting libraries there are fix colours when they draw, and
//! give neither names nor descriptions.) A plot is drawn in two [`Width`]s, and also makes a file
//! of its own, as SVG or PDF, and a list of the numbers in it.
//!
//! ```
//! use tack_plot::{Line, LineChart, Stroke, Width};
//!
//! let chart = LineChart {
//!     id: "rate".into(),
//!     title: "Goodput over time".into(),
//!     description: "One transfer, which settles at 9 Mbit/s after a second.".into(),
//!     x_label: "seconds".into(),
//!     y_label: "Mbit/s".into(),
//!     lines: vec![Line {
//!         name: "transfer".into(),
//!         points: vec![(0.0, 2.0), (1.0, 9.0), (2.0, 9.1)],
//!         colour: 0,
//!         stroke: Stroke::Solid,
//!         ..Line::default()
//!     }],
//!     ..LineChart::default()
//! };
//! let plot = chart.to_svg();
//! assert!(plot.inline(Width::Page).starts_with("<svg"));
//! assert_eq!(plot.data().len(), 3);
//! ```
#![forbid(unsafe_code)]

mod axis;
mod bars;
mod canvas;
mod drawing;
mod lines;
mod pdf;
mod svg;
mod values;
mod width;

pub use axis::Scale;
pub use bars::{Bar, StackedBars};
pub use drawing::{Datum, Svg};
pub use lines::{Line, LineChart, Stroke, Whisker};
pub use pdf::PdfError;
pub use svg::{escape, format_interval, format_number};
pub use values::{Group, Value, ValueBars};
pub use width::Width;

/// How many colours there are; a larger number begins again.
pub const COLOURS: usize = 6;

/// The CSS that plots need: colours for both schemes, and the look of texts, axes and lines.
///
/// People with the common colour deficiencies can distinguish the colours (Okabe and Ito), which
/// have enough contrast against either background.
pub const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--rule:#d0d7de;--paper:#ffffff;--panel:#f6f8fa;\
--c0:#c2410c;--c1:#0369a1;--c2:#047857;--c3:#7c3aed;--c4:#a16207;--c5:#64748b}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9da7b3;--rule:#3d444d;--paper:#0d1117;--panel:#161b22;\
--c0:#fb923c;--c1:#38bdf8;--c2:#34d399;--c3:#c4b5fd;--c4:#fbbf24;--c5:#94a3b8}}\
svg.plot{width:100%;height:auto;display:block;max-width:33rem;margin:0 auto}svg.page{max-width:none}\
svg.plot text{font:13px system-ui,sans-serif;fill:var(--ink)}svg.plot .soft{fill:var(--soft)}\
.line{fill:none;stroke-linejoin:round}.ink{stroke:var(--ink)}.grid{stroke:var(--rule)}.axis{stroke:var(--soft)}\
.s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}.s5{stroke:var(--c5)}\
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}.f5{fill:var(--c5)}";
