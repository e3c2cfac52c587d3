//! Lines over a common axis that both begin at zero.

use std::fmt::Write as _;

use crate::COLOURS;
use crate::svg::{LINE, Swatch, WIDTH, escape, format_number, frame, legend, ticks, width_of};

/// How a line is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stroke {
    /// Continuous.
    #[default]
    Solid,
    /// Dashed, for what is compared with.
    Dashed,
}

/// One line.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points by growing x, none negative. Points that are no numbers are left out.
    pub points: Vec<(f64, f64)>,
    /// Its colour, 0 to [`COLOURS`] − 1.
    pub colour: usize,
    /// How it is drawn.
    pub stroke: Stroke,
}

/// Lines over a common axis. Both axes begin at zero.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LineChart {
    /// Unique in the page.
    pub id: String,
    /// What the plot shows: its accessible name.
    pub title: String,
    /// What there is to see, for those who cannot.
    pub description: String,
    /// Quantity and unit of the horizontal axis.
    pub x_label: String,
    /// Quantity and unit of the vertical axis.
    pub y_label: String,
    /// The lines, the last one on top.
    pub lines: Vec<Line>,
}

/// Height of the area in which lines are.
const AREA: f64 = 190.0;

impl LineChart {
    /// The plot as an SVG element.
    pub fn to_svg(&self) -> String {
        let mut out = String::new();
        let entries = self.lines.iter().map(|line| {
            let dashed = line.stroke == Stroke::Dashed;
            (line.name.as_str(), line.colour, Swatch::Line { dashed })
        });
        let top = legend(&mut out, entries) + LINE + 6.0;
        let _ = write!(
            out,
            "<text class=\"soft\" x=\"0\" y=\"{:.1}\">{}</text>",
            top - 11.0,
            escape(&self.y_label)
        );
        let points = || {
            let all = self.lines.iter().flat_map(|line| &line.points);
            all.filter(|(x, y)| x.is_finite() && y.is_finite())
        };
        let x_most = points().map(|(x, _)| *x).fold(0.0, f64::max);
        let y_ticks = ticks(points().map(|(_, y)| *y).fold(0.0, f64::max), 5);
        let x_ticks = ticks(x_most, 6);
        let y_end = y_ticks.last().copied().unwrap_or(1.0);
        let x_end = if x_most > 0.0 { x_most } else { 1.0 };
        let left = y_ticks
            .iter()
            .map(|tick| width_of(&format_number(*tick)))
            .fold(0.0, f64::max)
            + 8.0;
        let (right, bottom) = (WIDTH - 10.0, top + AREA);
        let x_at = |x: f64| left + (right - left) * x / x_end;
        let y_at = |y: f64| bottom - AREA * y / y_end;
        for tick in &y_ticks {
            let y = y_at(*tick);
            let class = if *tick == 0.0 { "axis" } else { "grid" };
            let _ = write!(
                out,
                "<path class=\"{class}\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>\
                 <text class=\"soft\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left - 6.0,
                y + 4.5,
                format_number(*tick)
            );
        }
        for tick in x_ticks.iter().filter(|tick| **tick <= x_end * 1.000_1) {
            let _ = write!(
                out,
                "<text class=\"soft\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x_at(*tick),
                bottom + 16.0,
                format_number(*tick)
            );
        }
        let _ = write!(
            out,
            "<text class=\"soft\" text-anchor=\"end\" x=\"{right:.1}\" y=\"{:.1}\">{}</text>",
            bottom + 16.0 + LINE,
            escape(&self.x_label)
        );
        for line in &self.lines {
            let mut path = String::new();
            for (x, y) in &line.points {
                if x.is_finite() && y.is_finite() {
                    let verb = if path.is_empty() { 'M' } else { 'L' };
                    let _ = write!(path, "{verb}{:.1} {:.1}", x_at(*x), y_at(*y));
                }
            }
            let dashed = match line.stroke {
                Stroke::Solid => "",
                Stroke::Dashed => " dashed",
            };
            let _ = write!(
                out,
                "<path class=\"line s{}{dashed}\" d=\"{path}\"/>",
                line.colour % COLOURS
            );
        }
        let height = bottom + 16.0 + LINE + 6.0;
        frame(&self.id, &self.title, &self.description, height, &out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(lines: Vec<Line>) -> LineChart {
        LineChart {
            id: "a".into(),
            title: "Rate & <time>".into(),
            description: "up".into(),
            x_label: "s".into(),
            y_label: "Mbit/s".into(),
            lines,
        }
    }

    #[test]
    fn a_chart_names_itself_and_draws_within_its_area() {
        let lines = vec![
            Line {
                name: "first".into(),
                points: vec![(0.0, 0.0), (1.0, 50.0), (f64::NAN, 3.0), (2.0, 100.0)],
                ..Line::default()
            },
            Line {
                name: "second".into(),
                points: vec![(0.0, 100.0), (2.0, 0.0)],
                colour: 7,
                stroke: Stroke::Dashed,
            },
        ];
        let svg = chart(lines).to_svg();
        assert!(svg.contains("aria-labelledby=\"a-t a-d\""));
        assert!(svg.contains("<title id=\"a-t\">Rate &amp; &lt;time&gt;</title>"));
        assert!(svg.contains("line s1 dashed"), "colours begin again");
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(svg.contains("430.0"), "the last point is at the right edge");
    }

    #[test]
    fn nothing_to_draw_is_drawn() {
        for lines in [vec![], vec![Line::default()]] {
            let svg = chart(lines).to_svg();
            assert!(svg.ends_with("</svg>") && !svg.contains("NaN"));
        }
    }
}
