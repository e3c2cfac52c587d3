//! What plots are drawn with: a few kinds of shapes, written as SVG here and as PDF in
//! [`crate::pdf`].

use std::fmt::Write as _;

use crate::svg::{LINE, escape, wrap};
use crate::{COLOURS, STYLE};

/// Size of all texts.
pub(crate) const FONT_SIZE: f64 = 13.0;

/// What something is drawn with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ink {
    /// Texts, marks, whiskers.
    Text,
    /// Axes and their texts.
    Soft,
    /// The grid.
    Rule,
    /// A series, by its colour.
    Series(usize),
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A point in the units of the canvas.
pub(crate) type Point = (f64, f64);

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Shape {
    /// Lines, none of which is closed.
    Lines {
        lines: Vec<Vec<Point>>,
        ink: Ink,
        width: f64,
        dash: &'static [f64],
    },
    /// A filled area within straight lines.
    Area { corners: Vec<Point>, ink: Ink },
    /// A filled rectangle with a tooltip.
    Bar {
        from: Point,
        size: Point,
        ink: Ink,
        title: String,
    },
    Circle {
        centre: Point,
        radius: f64,
        ink: Ink,
    },
    /// Runs of text on one line.
    Text {
        at: Point,
        anchor: Anchor,
        runs: Vec<(String, Ink)>,
    },
}

/// A sheet of a width and height, with what is drawn on it, the last on top.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Canvas {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) shapes: Vec<Shape>,
}

impl Canvas {
    pub(crate) fn new(width: f64) -> Self {
        Self {
            width,
            height: 0.0,
            shapes: Vec::new(),
        }
    }

    pub(crate) fn line(&mut self, points: impl Into<Vec<Point>>, ink: Ink, width: f64) {
        self.dashed(points, ink, width, &[]);
    }

    pub(crate) fn dashed(
        &mut self,
        points: impl Into<Vec<Point>>,
        ink: Ink,
        width: f64,
        dash: &'static [f64],
    ) {
        self.shapes.push(Shape::Lines {
            lines: vec![points.into()],
            ink,
            width,
            dash,
        });
    }

    pub(crate) fn text(&mut self, at: Point, anchor: Anchor, text: &str, ink: Ink) {
        self.runs(at, anchor, vec![(text.to_owned(), ink)]);
    }

    /// A text in the lines that it needs in so much width, the first at `at`; returns how many
    /// these are.
    pub(crate) fn paragraph(
        &mut self,
        at: Point,
        anchor: Anchor,
        text: &str,
        ink: Ink,
        width: f64,
    ) -> usize {
        let lines = wrap(text, width);
        for (number, line) in lines.iter().enumerate() {
            self.text((at.0, at.1 + LINE * number as f64), anchor, line, ink);
        }
        lines.len()
    }

    pub(crate) fn runs(&mut self, at: Point, anchor: Anchor, runs: Vec<(String, Ink)>) {
        self.shapes.push(Shape::Text { at, anchor, runs });
    }

    pub(crate) fn bar(&mut self, from: Point, size: Point, ink: Ink, title: String) {
        self.shapes.push(Shape::Bar {
            from,
            size,
            ink,
            title,
        });
    }

    /// The mark of a series: each has a shape of its own.
    pub(crate) fn marker(&mut self, series: usize, (x, y): Point) {
        let ink = Ink::Series(series);
        let corners = |corners: &[(f64, f64)]| Shape::Area {
            corners: corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect(),
            ink,
        };
        self.shapes.push(match series % COLOURS {
            0 => Shape::Circle {
                centre: (x, y),
                radius: 3.6,
                ink,
            },
            1 => corners(&[(-3.3, -3.3), (3.3, -3.3), (3.3, 3.3), (-3.3, 3.3)]),
            2 => corners(&[(0.0, -4.4), (4.4, 3.4), (-4.4, 3.4)]),
            3 => corners(&[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)]),
            4 => corners(&[(0.0, 4.4), (4.4, -3.4), (-4.4, -3.4)]),
            _ => corners(&[
                (-1.5, -4.5),
                (1.5, -4.5),
                (1.5, -1.5),
                (4.5, -1.5),
                (4.5, 1.5),
                (1.5, 1.5),
                (1.5, 4.5),
                (-1.5, 4.5),
                (-1.5, 1.5),
                (-4.5, 1.5),
                (-4.5, -1.5),
                (-1.5, -1.5),
            ]),
        });
    }

    /// The element; `inside` comes before the shapes.
    pub(crate) fn to_svg(&self, attributes: &str, inside: &str) -> String {
        let mut out = format!(
            "<svg {attributes} viewBox=\"0 0 {:.0} {:.0}\" xmlns=\"http://www.w3.org/2000/svg\">{inside}",
            self.width, self.height
        );
        for shape in &self.shapes {
            write_shape(&mut out, shape);
        }
        out.push_str("</svg>");
        out
    }
}

fn write_shape(out: &mut String, shape: &Shape) {
    let _ = match shape {
        Shape::Lines {
            lines,
            ink,
            width,
            dash,
        } => {
            let mut path = String::new();
            for line in lines {
                write_points(&mut path, line);
            }
            let dash: Vec<_> = dash.iter().map(f64::to_string).collect();
            let dash = match dash.is_empty() {
                true => String::new(),
                false => format!(" stroke-dasharray=\"{}\"", dash.join(" ")),
            };
            write!(
                out,
                "<path class=\"line {}\" stroke-width=\"{width}\"{dash} d=\"{path}\"/>",
                stroke_class(*ink)
            )
        }
        Shape::Area { corners, ink } => {
            let mut path = String::new();
            write_points(&mut path, corners);
            write!(out, "<path class=\"{}\" d=\"{path}Z\"/>", fill_class(*ink))
        }
        Shape::Bar {
            from: (x, y),
            size: (width, height),
            ink,
            title,
        } => write!(
            out,
            "<rect class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{}</title></rect>",
            fill_class(*ink),
            escape(title)
        ),
        Shape::Circle {
            centre: (x, y),
            radius,
            ink,
        } => write!(
            out,
            "<circle class=\"{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>",
            fill_class(*ink)
        ),
        Shape::Text {
            at: (x, y),
            anchor,
            runs,
        } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let body: String = runs
                .iter()
                .map(|(text, ink)| match ink {
                    Ink::Text => escape(text),
                    _ => format!("<tspan class=\"soft\">{}</tspan>", escape(text)),
                })
                .collect();
            write!(out, "<text{anchor} x=\"{x:.1}\" y=\"{y:.1}\">{body}</text>")
        }
    };
}

fn write_points(out: &mut String, points: &[Point]) {
    for (index, (x, y)) in points.iter().enumerate() {
        let verb = if index == 0 { 'M' } else { 'L' };
        let _ = write!(out, "{verb}{x:.1} {y:.1}");
    }
}

fn stroke_class(ink: Ink) -> String {
    match ink {
        Ink::Text => "ink".into(),
        Ink::Soft => "axis".into(),
        Ink::Rule => "grid".into(),
        Ink::Series(series) => format!("s{}", series % COLOURS),
    }
}

fn fill_class(ink: Ink) -> String {
    match ink {
        Ink::Series(series) => format!("f{}", series % COLOURS),
        _ => "f-ink".into(),
    }
}

/// Colours on white, as [`STYLE`] has them: texts, axes, the grid, the ground, and the series.
pub(crate) const LIGHT: [(&str, &str); 4 + COLOURS] = [
    ("--ink", "#1b1f24"),
    ("--soft", "#57606a"),
    ("--rule", "#d0d7de"),
    ("--paper", "#ffffff"),
    ("--c0", "#c2410c"),
    ("--c1", "#0369a1"),
    ("--c2", "#047857"),
    ("--c3", "#7c3aed"),
    ("--c4", "#a16207"),
    ("--c5", "#64748b"),
];

/// The style of a plot that stands alone: without variables, which few programs but browsers know.
pub(crate) fn style_alone() -> String {
    let start = STYLE.find("svg.plot text").unwrap_or_default();
    let mut style = STYLE[start..].to_owned();
    for (name, colour) in LIGHT {
        style = style.replace(&format!("var({name})"), colour);
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_alone_has_the_colours_of_the_page() {
        for (name, colour) in LIGHT {
            assert!(STYLE.contains(&format!("{name}:{colour}")), "{name}");
        }
        let style = style_alone();
        assert!(!style.contains("var("), "{style}");
        assert!(style.contains(".f1{fill:#0369a1}"), "{style}");
    }

    #[test]
    fn each_series_has_a_mark_of_its_own() {
        let marks: std::collections::BTreeSet<_> = (0..COLOURS)
            .map(|series| {
                let mut canvas = Canvas::new(10.0);
                canvas.marker(series, (5.0, 5.0));
                let svg = canvas.to_svg("", "");
                svg.replace(&format!("\"f{series}\""), "")
            })
            .collect();
        assert_eq!(marks.len(), COLOURS);
    }
}
