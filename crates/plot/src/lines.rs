//! Lines over common axes, linear or logarithmic.

use crate::COLOURS;
use crate::axis::{Axis, Scale, tick_text};
use crate::canvas::{Anchor, Canvas, Ink, Point};
use crate::drawing::{Datum, Svg};
use crate::svg::{LINE, width_of};
use crate::width::Width;

/// How a line is drawn. Besides its colour each has dashes and marks of its own, so that lines
/// differ in print too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stroke {
    /// With a mark now and then.
    #[default]
    Solid,
    /// Thin dots, for what is compared with.
    Dashed,
    /// With a mark at each point.
    Dotted,
    /// Marks alone.
    Dots,
}

/// An interval of y at one x.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Whisker {
    /// Where it is.
    pub x: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// One line.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Line {
    /// Its name in the legend, which leaves out what has none.
    pub name: String,
    /// Its points by growing x, which is not negative. NaN points are left out.
    pub points: Vec<(f64, f64)>,
    /// Intervals to draw as whiskers.
    pub whiskers: Vec<Whisker>,
    /// Its colour, 0 to [`COLOURS`] − 1.
    pub colour: usize,
    /// How it is drawn.
    pub stroke: Stroke,
}

/// Lines over common axes. Linear axes begin at zero, or at the least value below it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LineChart {
    /// Unique in the page.
    pub id: String,
    /// What the plot shows: its accessible name.
    pub title: String,
    /// Text alternative, for readers who cannot see the plot.
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

/// Dashes of the colours.
const DASHES: [&[f64]; COLOURS] = [
    &[],
    &[9.0, 3.0],
    &[2.0, 3.0],
    &[9.0, 3.0, 2.0, 3.0],
    &[14.0, 5.0],
    &[5.0, 2.0, 2.0, 2.0, 2.0, 2.0],
];
/// Those of [`Stroke::Dashed`].
const COMPARED: &[f64] = &[1.5, 4.0];

/// Most points of a line for the axis to have its ticks there, and marks on a line that has more.
const FEW: usize = 12;
const MARKS: usize = 8;

/// How far below its least point intervals may stretch a logarithmic axis.
const STRETCH: f64 = 3.0;

/// Width of a sample in the legend.
const SAMPLE: f64 = 34.0;

impl LineChart {
    /// The plot, drawn.
    pub fn to_svg(&self) -> Svg {
        Svg {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            page: self.draw(Width::Page),
            column: self.draw(Width::Column),
            data: self.data(),
            x_label: self.x_label.clone(),
            y_label: self.y_label.clone(),
        }
    }

    fn draw(&self, width: Width) -> Canvas {
        let mut canvas = Canvas::new(width.units());
        let (area_height, wanted) = match width {
            Width::Page => (300.0, [10, 6]),
            Width::Column => (190.0, [6, 5]),
        };
        let legend = self.legend(&mut canvas);
        let (at, whole) = ((0.0, legend + LINE - 5.0), canvas.width);
        let lines = canvas.paragraph(at, Anchor::Start, &self.y_label, Ink::Soft, whole);
        let top = legend + LINE * lines as f64 + 6.0;
        let points = || self.lines.iter().flat_map(|line| line.points.iter());
        let above_zero = points().map(|(_, y)| *y).filter(|y| *y > 0.0);
        // A logarithmic axis is not stretched further by lower ends: an arrow stands for these.
        let lowest = match self.y_scale {
            Scale::Linear => f64::NEG_INFINITY,
            Scale::Log => above_zero.fold(f64::INFINITY, f64::min) / STRETCH,
        };
        let tips = self
            .lines
            .iter()
            .flat_map(|line| &line.whiskers)
            .flat_map(|whisker| [whisker.low, whisker.high])
            .filter(|tip| *tip >= lowest);
        let x_axis = Axis::to_the_last(self.x_scale, points().map(|(x, _)| *x), wanted[0]);
        let y_axis = Axis::new(
            self.y_scale,
            points().map(|(_, y)| *y).chain(tips),
            wanted[1],
        );
        let widest = y_axis.ticks.iter().map(|tick| width_of(&tick_text(*tick)));
        let left = widest.fold(0.0, f64::max) + 10.0;
        let area = Area {
            left,
            right: canvas.width - 10.0,
            top,
            bottom: top + area_height,
            x_axis,
            y_axis,
        };
        let lines = self.axes(&mut canvas, &area);
        for line in &self.lines {
            self.line(&mut canvas, &area, line);
        }
        canvas.height = area.bottom + 20.0 + LINE * lines as f64 + 6.0;
        canvas
    }

    /// Draws the legend from the top; returns the height it takes.
    fn legend(&self, canvas: &mut Canvas) -> f64 {
        let (mut x, mut y) = (0.0, 13.0);
        for line in self.lines.iter().filter(|line| !line.name.is_empty()) {
            let wide = SAMPLE + 6.0 + width_of(&line.name) + 14.0;
            if x > 0.0 && x + wide - 14.0 > canvas.width {
                x = 0.0;
                y += LINE;
            }
            let middle = y - 4.5;
            if line.stroke != Stroke::Dots {
                let ends = [(x, middle), (x + SAMPLE, middle)];
                canvas.dashed(ends, Ink::Series(line.colour), line.width(), line.dash());
            }
            if line.stroke != Stroke::Dashed {
                canvas.marker(line.colour, (x + SAMPLE / 2.0, middle));
            }
            canvas.text((x + SAMPLE + 6.0, y), Anchor::Start, &line.name, Ink::Text);
            x += wide;
        }
        y + 9.0
    }

    /// Draws the axes; returns how many lines the horizontal one's label takes.
    fn axes(&self, canvas: &mut Canvas, area: &Area) -> usize {
        let Area {
            left,
            right,
            bottom,
            ..
        } = *area;
        for tick in &area.y_axis.ticks {
            let y = area.y_at(*tick);
            canvas.line([(left, y), (right, y)], Ink::Rule, 1.0);
            canvas.line([(left - 5.0, y), (left, y)], Ink::Soft, 1.0);
            let text = tick_text(*tick);
            canvas.text((left - 8.0, y + 4.5), Anchor::End, &text, Ink::Soft);
        }
        let zero = area.y_at(0.0);
        canvas.line([(left, area.top), (left, bottom)], Ink::Soft, 1.0);
        canvas.line([(left, bottom), (right, bottom)], Ink::Soft, 1.0);
        if zero < bottom {
            canvas.line([(left, zero), (right, zero)], Ink::Soft, 1.0);
        }
        if let Some(gap) = area.x_axis.gap() {
            // Two strokes: left of them there is no scale.
            let x = left + (right - left) * gap;
            for x in [x - 2.0, x + 2.0] {
                canvas.line(
                    [(x - 2.0, bottom + 4.0), (x + 2.0, bottom - 4.0)],
                    Ink::Soft,
                    1.0,
                );
            }
        }
        let ticks = self.few_points().unwrap_or(area.x_axis.ticks.clone());
        for tick in &ticks {
            let x = area.x_at(*tick);
            canvas.line([(x, bottom), (x, bottom + 5.0)], Ink::Soft, 1.0);
        }
        for (tick, text) in area.x_axis.labelled(&ticks, right - left) {
            // Under its tick, but not beyond the edge.
            let half = width_of(&text) / 2.0;
            let x = area.x_at(tick).min(canvas.width - half);
            canvas.text((x, bottom + 19.0), Anchor::Middle, &text, Ink::Soft);
        }
        let at = (right, bottom + 19.0 + LINE);
        canvas.paragraph(at, Anchor::End, &self.x_label, Ink::Soft, right)
    }

    /// Where all points are, when that is in few places: the ticks of the horizontal axis.
    fn few_points(&self) -> Option<Vec<f64>> {
        let lines = self.lines.iter();
        let short = lines.filter(|line| line.points.len() <= FEW);
        let mut places: Vec<f64> = short
            .flat_map(|line| line.points.iter().map(|(x, _)| *x))
            .filter(|x| x.is_finite())
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        (2..=FEW).contains(&places.len()).then_some(places)
    }

    fn line(&self, canvas: &mut Canvas, area: &Area, line: &Line) {
        let drawn: Vec<Point> = line
            .points
            .iter()
            .filter(|(x, y)| area.x_axis.has(*x) && area.y_axis.has(*y))
            .map(|(x, y)| (area.x_at(*x), area.y_at(*y)))
            .collect();
        let ink = Ink::Series(line.colour);
        if line.stroke != Stroke::Dots && drawn.len() > 1 {
            canvas.dashed(drawn.clone(), ink, line.width(), line.dash());
        }
        for &Whisker { x, low, high } in &line.whiskers {
            if area.x_axis.has(x) && area.y_axis.has(high) && low.is_finite() {
                area.whisker(canvas, ink, x, low, high);
            }
        }
        // Marks of a line whose points have marks of their own would only hide those.
        let has_dots = |other: &Line| other.stroke == Stroke::Dots && other.colour == line.colour;
        let every = match line.stroke {
            Stroke::Dots | Stroke::Dotted => 1,
            Stroke::Solid if !self.lines.iter().any(has_dots) => drawn.len().div_ceil(MARKS).max(1),
            Stroke::Solid | Stroke::Dashed => return,
        };
        for point in drawn.into_iter().skip(every / 2).step_by(every) {
            canvas.marker(line.colour, point);
        }
    }

    fn data(&self) -> Vec<Datum> {
        let mut data = Vec::new();
        for line in &self.lines {
            data.extend(line.points.iter().map(|(x, y)| {
                let whisker = line.whiskers.iter().find(|whisker| whisker.x == *x);
                Datum {
                    group: String::new(),
                    series: self.name_of(line),
                    x: *x,
                    value: *y,
                    low: whisker.map_or(f64::NAN, |whisker| whisker.low),
                    high: whisker.map_or(f64::NAN, |whisker| whisker.high),
                    reference: f64::NAN,
                }
            }));
        }
        data
    }

    /// A line without a name shares that of the line of its colour.
    fn name_of(&self, line: &Line) -> String {
        if !line.name.is_empty() {
            return line.name.clone();
        }
        let named = |other: &&Line| other.colour == line.colour && !other.name.is_empty();
        let name = self.lines.iter().find(named);
        name.map_or_else(String::new, |other| match line.stroke {
            Stroke::Dots => format!("{}, points", other.name),
            _ => other.name.clone(),
        })
    }
}

impl Line {
    fn dash(&self) -> &'static [f64] {
        match self.stroke {
            Stroke::Dashed => COMPARED,
            _ => DASHES[self.colour % COLOURS],
        }
    }

    fn width(&self) -> f64 {
        match self.stroke {
            Stroke::Dashed => 1.5,
            _ => 2.0,
        }
    }
}

/// The part of a drawing that the lines are in.
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x_axis: Axis,
    y_axis: Axis,
}

impl Area {
    fn x_at(&self, x: f64) -> f64 {
        self.left + (self.right - self.left) * self.x_axis.share(x)
    }

    fn y_at(&self, y: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.y_axis.share(y)
    }

    /// An interval with a bar at either end; an arrow where it goes on below the axis.
    fn whisker(&self, canvas: &mut Canvas, ink: Ink, x: f64, low: f64, high: f64) {
        let (x, top, bottom) = (self.x_at(x), self.y_at(high), self.y_at(low));
        canvas.line([(x, bottom), (x, top)], ink, 1.5);
        canvas.line([(x - 3.5, top), (x + 3.5, top)], ink, 1.5);
        let lower = match self.y_axis.is_below(low) {
            false => vec![(x - 3.5, bottom), (x + 3.5, bottom)],
            true => vec![
                (x - 3.5, bottom - 5.0),
                (x, bottom),
                (x + 3.5, bottom - 5.0),
            ],
        };
        canvas.line(lower, ink, 1.5);
    }
}

#[cfg(test)]
mod tests;
