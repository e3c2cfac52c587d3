//! Horizontal bars, each a whole in parts.

use std::fmt::Write as _;

use crate::COLOURS;
use crate::svg::{LINE, WIDTH, escape, format_number, frame, legend, width_of};

/// One bar.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// The size of each part, none negative, in the order of [`StackedBars::parts`].
    pub values: Vec<f64>,
}

/// Bars of equal length, whose parts are shares of the whole.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StackedBars {
    /// Unique in the page.
    pub id: String,
    /// What the plot shows: its accessible name.
    pub title: String,
    /// Text alternative, for readers who cannot see the plot.
    pub description: String,
    /// Names of the parts and their colours, 0 to [`COLOURS`] − 1.
    pub parts: Vec<(String, usize)>,
    /// The bars, from the top.
    pub bars: Vec<Bar>,
}

/// Height of a bar.
const BAR: f64 = 22.0;

impl StackedBars {
    /// The plot as an SVG element.
    pub fn to_svg(&self) -> String {
        let mut out = String::new();
        let entries = self
            .parts
            .iter()
            .map(|(name, colour)| (name.as_str(), *colour));
        let mut y = legend(&mut out, entries) + 6.0;
        for bar in &self.bars {
            let _ = write!(
                out,
                "<text x=\"0\" y=\"{:.1}\">{}</text>",
                y + 13.0,
                escape(&bar.name)
            );
            y += LINE;
            let sizes: Vec<f64> = bar
                .values
                .iter()
                .map(|value| {
                    if value.is_finite() {
                        value.max(0.0)
                    } else {
                        0.0
                    }
                })
                .collect();
            let whole: f64 = sizes.iter().sum();
            let mut x = 0.0;
            for ((name, colour), size) in self.parts.iter().zip(&sizes) {
                if whole <= 0.0 {
                    break;
                }
                let wide = WIDTH * size / whole;
                let share = format!("{} %", format_number(100.0 * size / whole));
                let _ = write!(
                    out,
                    "<rect class=\"f{}\" x=\"{x:.2}\" y=\"{y:.1}\" width=\"{wide:.2}\" height=\"{BAR}\">\
                     <title>{}: {share}</title></rect>",
                    colour % COLOURS,
                    escape(name)
                );
                // What does not fit is in the tooltip, and in the page's table.
                if width_of(&share) + 6.0 < wide {
                    let _ = write!(
                        out,
                        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" style=\"fill:var(--paper)\">{share}</text>",
                        x + wide / 2.0,
                        y + 15.5
                    );
                }
                x += wide;
            }
            y += BAR + 8.0;
        }
        frame(&self.id, &self.title, &self.description, y, &out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_shares_of_the_whole() {
        let bars = StackedBars {
            id: "air".into(),
            title: "Air".into(),
            description: "half and half".into(),
            parts: vec![("data".into(), 0), ("<acks>".into(), 1)],
            bars: vec![
                Bar {
                    name: "one".into(),
                    values: vec![3.0, 1.0],
                },
                Bar {
                    name: "nothing".into(),
                    values: vec![0.0, f64::NAN],
                },
            ],
        };
        let svg = bars.to_svg();
        assert!(svg.contains("width=\"300.00\"") && svg.contains("width=\"100.00\""));
        assert!(svg.contains("<title>data: 75 %</title>"));
        assert!(svg.contains("&lt;acks&gt;") && !svg.contains("<acks>"));
        assert!(!svg.contains("NaN"));
    }
}
