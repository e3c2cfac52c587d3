//! Lines over common axes, linear from zero or logarithmic.

use std::fmt::Write as _;

use crate::COLOURS;
use crate::svg::{
    LINE, Swatch, WIDTH, escape, format_number, frame, legend, log_ticks, ticks, width_of,
};

/// How a line is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stroke {
    /// Continuous.
    #[default]
    Solid,
    /// Dashed, for what is compared with.
    Dashed,
    /// Continuous, with a dot at each point.
    Dotted,
    /// Dots alone.
    Dots,
}

/// How an axis is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scale {
    /// Evenly, from zero.
    #[default]
    Linear,
    /// By powers of ten. Points that are not above zero are left out.
    Log,
}

/// One line.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Line {
    /// Its name in the legend, which leaves out what has none.
    pub name: String,
    /// Its points by growing x, none negative. Points that are no numbers are left out.
    pub points: Vec<(f64, f64)>,
    /// Intervals to draw as whiskers: x, the lower and the upper end.
    pub whiskers: Vec<(f64, f64, f64)>,
    /// Its colour, 0 to [`COLOURS`] − 1.
    pub colour: usize,
    /// How it is drawn.
    pub stroke: Stroke,
}

/// Lines over common axes. Linear axes begin at zero.
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
    /// How the horizontal axis is divided.
    pub x_scale: Scale,
    /// How the vertical axis is divided.
    pub y_scale: Scale,
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
        let shown = |point: &(f64, f64)| self.x_scale.has(point.0) && self.y_scale.has(point.1);
        let points = || {
            let all = self.lines.iter().flat_map(|line| &line.points);
            all.copied().filter(shown)
        };
        let tips = self
            .lines
            .iter()
            .flat_map(|line| line.whiskers.iter().map(|whisker| whisker.2))
            .filter(|tip| self.y_scale.has(*tip));
        let x_axis = Axis::new(self.x_scale, points().map(|(x, _)| x), 6);
        let y_axis = Axis::new(self.y_scale, points().map(|(_, y)| y).chain(tips), 5);
        let left = y_axis
            .ticks
            .iter()
            .map(|tick| width_of(&format_number(*tick)))
            .fold(0.0, f64::max)
            + 8.0;
        let (right, bottom) = (WIDTH - 10.0, top + AREA);
        // The outermost tick of a linear x axis may lie beyond the points, which end at the right edge.
        let x_end = match self.x_scale {
            Scale::Linear => points().map(|(x, _)| x).fold(0.0, f64::max),
            Scale::Log => x_axis.end(),
        };
        let x_at = |x: f64| left + (right - left) * x_axis.share(x, x_end);
        let y_at = |y: f64| bottom - AREA * y_axis.share(y, y_axis.end()).clamp(0.0, 1.0);
        for tick in &y_axis.ticks {
            let y = y_at(*tick);
            let class = if y >= bottom - 0.01 { "axis" } else { "grid" };
            let _ = write!(
                out,
                "<path class=\"{class}\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>\
                 <text class=\"soft\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left - 6.0,
                y + 4.5,
                format_number(*tick)
            );
        }
        for tick in x_axis.ticks.iter().filter(|tick| **tick <= x_end * 1.000_1) {
            let text = format_number(*tick);
            // Under its tick, but not beyond the edge.
            let half = width_of(&text) / 2.0;
            let _ = write!(
                out,
                "<text class=\"soft\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
                x_at(*tick).min(WIDTH - half),
                bottom + 16.0,
            );
        }
        let _ = write!(
            out,
            "<text class=\"soft\" text-anchor=\"end\" x=\"{right:.1}\" y=\"{:.1}\">{}</text>",
            bottom + 16.0 + LINE,
            escape(&self.x_label)
        );
        for line in &self.lines {
            let colour = line.colour % COLOURS;
            let drawn: Vec<_> = line.points.iter().copied().filter(shown).collect();
            if line.stroke != Stroke::Dots {
                let mut path = String::new();
                for (x, y) in &drawn {
                    let verb = if path.is_empty() { 'M' } else { 'L' };
                    let _ = write!(path, "{verb}{:.1} {:.1}", x_at(*x), y_at(*y));
                }
                let dashed = if line.stroke == Stroke::Dashed {
                    " dashed"
                } else {
                    ""
                };
                let _ = write!(out, "<path class=\"line s{colour}{dashed}\" d=\"{path}\"/>");
            }
            if matches!(line.stroke, Stroke::Dots | Stroke::Dotted) {
                for (x, y) in &drawn {
                    let _ = write!(
                        out,
                        "<circle class=\"f{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.2\"/>",
                        x_at(*x),
                        y_at(*y)
                    );
                }
            }
            for (x, low, high) in &line.whiskers {
                if shown(&(*x, *high)) && low.is_finite() {
                    let _ = write!(
                        out,
                        "<path class=\"line s{colour}\" d=\"M{:.1} {:.1}V{:.1}\"/>",
                        x_at(*x),
                        y_at(*low),
                        y_at(*high)
                    );
                }
            }
        }
        let height = bottom + 16.0 + LINE + 6.0;
        frame(&self.id, &self.title, &self.description, height, &out)
    }
}

impl Scale {
    fn has(self, value: f64) -> bool {
        value.is_finite() && (self == Self::Linear || value > 0.0)
    }
}

/// The ticks of an axis, and where values lie between its ends.
struct Axis {
    scale: Scale,
    ticks: Vec<f64>,
}

impl Axis {
    fn new(scale: Scale, values: impl Iterator<Item = f64>, wanted: usize) -> Self {
        let (low, high) = values.fold((f64::INFINITY, 0.0), |(low, high), value| {
            (value.min(low), value.max(high))
        });
        let ticks = match scale {
            Scale::Linear => ticks(high, wanted),
            Scale::Log => log_ticks(low, high),
        };
        Self { scale, ticks }
    }

    fn end(&self) -> f64 {
        self.ticks.last().copied().unwrap_or(1.0)
    }

    /// Where `value` lies between the beginning, 0, and `end`, 1.
    fn share(&self, value: f64, end: f64) -> f64 {
        match self.scale {
            Scale::Linear if end > 0.0 => value / end,
            Scale::Linear => value,
            Scale::Log => {
                let begin = self.ticks.first().copied().unwrap_or(1.0);
                // Axes whose ends are one have everything at the beginning.
                if value > 0.0 && end > begin {
                    (value / begin).log10() / (end / begin).log10()
                } else {
                    0.0
                }
            }
        }
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
            ..LineChart::default()
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
                ..Line::default()
            },
        ];
        let svg = chart(lines).to_svg();
        assert!(svg.contains("aria-labelledby=\"a-t\" aria-describedby=\"a-d\""));
        assert!(svg.contains("<title id=\"a-t\">Rate &amp; &lt;time&gt;</title>"));
        assert!(svg.contains("line s1 dashed"), "colours begin again");
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(svg.contains("390.0"), "the last point is at the right edge");
    }

    #[test]
    fn logarithmic_axes_span_the_points() {
        let svg = LineChart {
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            ..chart(vec![Line {
                name: "f".into(),
                points: vec![(0.0, 5.0), (10.0, 1.0), (100.0, -3.0), (1_000.0, 100.0)],
                whiskers: vec![(10.0, 0.5, 2.0), (1_000.0, 90.0, 110.0)],
                stroke: Stroke::Dotted,
                ..Line::default()
            }])
        }
        .to_svg();
        assert_eq!(svg.matches("<circle").count(), 2, "zero has no logarithm");
        assert!(
            svg.contains("cx=\"390.0\""),
            "the last point at the right edge"
        );
        assert!(svg.contains(">1,000</text>") && svg.contains(">100</text>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn nothing_to_draw_is_drawn() {
        for lines in [vec![], vec![Line::default()]] {
            for scale in [Scale::Linear, Scale::Log] {
                let mut chart = chart(lines.clone());
                (chart.x_scale, chart.y_scale) = (scale, scale);
                let svg = chart.to_svg();
                assert!(svg.ends_with("</svg>") && !svg.contains("NaN"));
            }
        }
    }
}
