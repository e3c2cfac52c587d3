//! Horizontal bars for values with their uncertainty, beside what they are compared with.

use crate::axis::{Axis, Scale};
use crate::canvas::{Anchor, Canvas, Ink};
use crate::drawing::{Datum, Svg};
use crate::svg::{LINE, format_interval, format_number, width_of, wrap};
use crate::width::Width;

/// One value.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Value {
    /// Which of [`ValueBars::series`] it belongs to.
    pub series: usize,
    /// Its size; NaN is written as a dash.
    pub value: f64,
    /// Half the width of its confidence interval, which is drawn whole; zero for none.
    pub uncertainty: f64,
    /// What it is compared with, drawn as a mark and written in brackets.
    pub reference: Option<f64>,
}

/// Values that stand together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Group {
    /// What they have in common.
    pub name: String,
    /// From the top.
    pub values: Vec<Value>,
}

/// Horizontal bars from zero, in groups; or marks on a logarithmic axis, where a bar would have no
/// beginning ([`ValueBars::is_positive`]).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ValueBars {
    /// Unique in the page.
    pub id: String,
    /// What the plot shows: its accessible name.
    pub title: String,
    /// Text alternative, for readers who cannot see the plot.
    pub description: String,
    /// Quantity and unit.
    pub label: String,
    /// Names of the series and their colours, 0 to [`crate::COLOURS`] − 1.
    pub series: Vec<(String, usize)>,
    /// What colours mean besides, with their colours: for series that share one.
    pub legend: Vec<(String, usize)>,
    /// Whether the quantity is never zero or below. Then the axis is logarithmic if values span two
    /// powers of ten or more, and no interval reaches zero.
    pub is_positive: bool,
    /// What the marks are; not drawn when there is none.
    pub reference: String,
    /// From the top.
    pub groups: Vec<Group>,
}

/// Height of a bar.
const BAR: f64 = 13.0;
/// From a bar to the next, and the height of the line above a bar in a column.
const STEP: f64 = 20.0;
/// Most over least from which on an axis is logarithmic.
const WIDE_RANGE: f64 = 100.0;

/// What stands on a line.
enum Row<'a> {
    /// The name of a group.
    Heading(&'a str),
    /// A value and what it is called.
    Value(&'a str, &'a Value),
    /// Room after a group.
    Gap,
}

/// Positions of the names and bars of a chart.
struct Layout {
    /// Names left of the bars; else above them.
    beside: bool,
    left: f64,
    right: f64,
    axis: Axis,
    is_log: bool,
}

impl Layout {
    fn x_at(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.axis.share(value)
    }
}

impl ValueBars {
    /// The plot, drawn.
    pub fn to_svg(&self) -> Svg {
        Svg {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            page: self.draw(Width::Page),
            column: self.draw(Width::Column),
            data: self.data(),
            x_label: String::new(),
            y_label: self.label.clone(),
        }
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.groups.iter().flat_map(|group| &group.values)
    }

    /// A group of one value needs no heading: the value has its name.
    fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for group in &self.groups {
            let alone = group.values.len() == 1 && self.series.len() <= 1;
            if !alone && !group.name.is_empty() {
                rows.push(Row::Heading(&group.name));
            }
            rows.extend(group.values.iter().map(|value| {
                let series = self.series.get(value.series);
                match alone && !group.name.is_empty() {
                    true => Row::Value(group.name.as_str(), value),
                    false => Row::Value(series.map_or("", |(name, _)| name.as_str()), value),
                }
            }));
            if !alone {
                rows.push(Row::Gap);
            }
        }
        rows
    }

    fn axis(&self, wanted: usize) -> (Axis, bool) {
        let sizes = || {
            self.values()
                .flat_map(|value| [value.value, value.reference.unwrap_or(f64::NAN)])
                .filter(|size| size.is_finite())
        };
        let (least, most) = sizes().fold((f64::INFINITY, 0.0), |(least, most), size| {
            (size.min(least), size.max(most))
        });
        let ends = || {
            let values = self.values().filter(|value| value.uncertainty.is_finite());
            values.flat_map(|value| [-1.0, 1.0].map(|side| value.value + side * value.uncertainty))
        };
        // A lower end near zero would stretch a logarithmic axis by powers of ten.
        let is_log = self.is_positive
            && most / least >= WIDE_RANGE
            && sizes().chain(ends()).all(|size| size >= least / WIDE_RANGE)
            && least > 0.0;
        let scale = if is_log { Scale::Log } else { Scale::Linear };
        (Axis::new(scale, sizes().chain(ends()), wanted), is_log)
    }

    fn draw(&self, width: Width) -> Canvas {
        let mut canvas = Canvas::new(width.units());
        let rows = self.rows();
        let mut widest = [0.0, 0.0];
        for row in &rows {
            if let Row::Value(name, value) = row {
                for (widest, text) in widest.iter_mut().zip([*name, &text_of(value)]) {
                    *widest = width_of(text).max(*widest);
                }
            }
        }
        let [names, numbers] = widest;
        let beside = width == Width::Page && names + numbers + 24.0 <= 0.68 * canvas.width;
        let (axis, is_log) = self.axis(if beside { 8 } else { 4 });
        // Half a number beyond either end of the axis.
        let half =
            |tick: Option<&f64>| tick.map_or(0.0, |tick| width_of(&format_number(*tick)) / 2.0);
        let (first, last) = (half(axis.ticks.first()), half(axis.ticks.last()));
        let layout = Layout {
            beside,
            left: if beside { names + 12.0 } else { first.max(2.0) },
            right: match beside {
                true => canvas.width - (numbers + 12.0).max(last),
                false => canvas.width - last.max(2.0),
            },
            axis,
            is_log,
        };
        let top = self.head(&mut canvas);
        let height = |row: &Row<'_>| match row {
            Row::Heading(_) => LINE,
            Row::Value(..) if beside => STEP,
            Row::Value(..) => self.above(row, canvas.width) + STEP,
            Row::Gap => 6.0,
        };
        let heights: Vec<f64> = rows.iter().map(height).collect();
        let bottom = top + heights.iter().sum::<f64>() + 2.0;
        // Texts above bars stand free of the grid.
        let strips = strips(&rows, &heights, top, beside);
        let lines = self.grid(&mut canvas, &layout, &strips, bottom);
        let mut y = top;
        for (row, height) in rows.iter().zip(heights) {
            match row {
                Row::Heading(name) => canvas.text((0.0, y + 12.0), Anchor::Start, name, Ink::Text),
                Row::Value(name, value) => {
                    self.row(&mut canvas, &layout, (name, value), (y, y + height));
                }
                Row::Gap => {}
            }
            y += height;
        }
        canvas.height = bottom + 20.0 + LINE * lines as f64 + 4.0;
        canvas
    }

    /// How much room a value's name and numbers take above its bar: they share a line where they
    /// can.
    fn above(&self, row: &Row<'_>, width: f64) -> f64 {
        match row {
            Row::Value(name, value) if fits(name, value, width) => LINE - 2.0,
            Row::Value(name, _) => LINE * (wrap(name, width).len() + 1) as f64 - 4.0,
            _ => 0.0,
        }
    }

    /// Draws what marks and colours are; returns where rows begin.
    fn head(&self, canvas: &mut Canvas) -> f64 {
        let mut top = 4.0;
        let marked = self.values().any(|value| value.reference.is_some());
        if marked && !self.reference.is_empty() {
            canvas.line([(7.0, 2.0), (7.0, 16.0)], Ink::Text, 3.0);
            let text = format!("({})", self.reference);
            canvas.text((16.0, 13.0), Anchor::Start, &text, Ink::Text);
            top = LINE + 8.0;
        }
        let (mut x, mut y) = (0.0, top);
        for (name, colour) in &self.legend {
            let wide = 20.0 + width_of(name);
            if x > 0.0 && x + wide > canvas.width {
                (x, y) = (0.0, y + LINE);
            }
            canvas.bar((x, y), (14.0, 10.0), Ink::Series(*colour), name.clone());
            canvas.text((x + 20.0, y + 9.0), Anchor::Start, name, Ink::Text);
            x += wide + 14.0;
        }
        match self.legend.is_empty() {
            true => top,
            false => y + LINE + 4.0,
        }
    }

    /// Draws the axis and what is on it; returns how many lines its label takes.
    fn grid(
        &self,
        canvas: &mut Canvas,
        layout: &Layout,
        strips: &[(f64, f64)],
        bottom: f64,
    ) -> usize {
        for tick in &layout.axis.ticks {
            let x = layout.x_at(*tick);
            for (top, bottom) in strips {
                canvas.line([(x, *top), (x, *bottom)], Ink::Rule, 1.0);
            }
            canvas.line([(x, bottom), (x, bottom + 5.0)], Ink::Soft, 1.0);
        }
        let length = layout.right - layout.left;
        for (tick, text) in layout.axis.labelled(&layout.axis.ticks, length) {
            // The first of a column stands at its edge, and a number below zero is wider than the
            // tick's room.
            let x = layout.x_at(tick).max(width_of(&text) / 2.0 + 2.0);
            canvas.text((x, bottom + 19.0), Anchor::Middle, &text, Ink::Soft);
        }
        let ends = [(layout.left, bottom), (layout.right, bottom)];
        canvas.line(ends, Ink::Soft, 1.0);
        if !layout.is_log {
            let zero = layout.x_at(0.0);
            for (top, bottom) in strips {
                canvas.line([(zero, *top), (zero, *bottom)], Ink::Soft, 1.0);
            }
        }
        // At the end of its axis, unless it needs more.
        let end = match width_of(&self.label) <= layout.right {
            true => layout.right,
            false => canvas.width,
        };
        let at = (end, bottom + 19.0 + LINE);
        canvas.paragraph(at, Anchor::End, &self.label, Ink::Soft, canvas.width)
    }

    /// Draws a value between two heights, its bar at the lower end.
    fn row(
        &self,
        canvas: &mut Canvas,
        layout: &Layout,
        (name, value): (&str, &Value),
        (top, bottom): (f64, f64),
    ) {
        let y = bottom - STEP + 2.0;
        let runs = runs_of(value);
        if layout.beside {
            let at = (layout.left - 12.0, y + 11.0);
            canvas.text(at, Anchor::End, name, Ink::Text);
            canvas.runs((canvas.width, y + 11.0), Anchor::End, runs);
        } else {
            let (at, width) = ((0.0, top + 13.0), canvas.width);
            canvas.paragraph(at, Anchor::Start, name, Ink::Text, width);
            canvas.runs((canvas.width, y - 5.0), Anchor::End, runs);
        }
        let middle = y + BAR / 2.0;
        let colour = self
            .series
            .get(value.series)
            .map_or(0, |(_, colour)| *colour);
        if value.value.is_finite() {
            let x = layout.x_at(value.value);
            if layout.is_log {
                canvas.dashed(
                    [(layout.left, middle), (x, middle)],
                    Ink::Rule,
                    1.0,
                    &[2.0, 3.0],
                );
                canvas.marker(colour, (x, middle));
            } else {
                let zero = layout.x_at(0.0);
                let title = format_interval(value.value, value.uncertainty);
                canvas.bar(
                    (zero.min(x), y),
                    ((x - zero).abs(), BAR),
                    Ink::Series(colour),
                    format!("{name}: {title}"),
                );
            }
            if value.uncertainty.is_finite() && value.uncertainty > 0.0 {
                whisker(canvas, layout, value, middle);
            }
        }
        if let Some(reference) = value.reference.filter(|reference| reference.is_finite()) {
            let x = layout.x_at(reference);
            canvas.line([(x, y - 1.5), (x, y + BAR + 1.5)], Ink::Text, 3.0);
        }
    }

    fn data(&self) -> Vec<Datum> {
        let mut data = Vec::new();
        for group in &self.groups {
            data.extend(group.values.iter().map(|value| {
                let interval = match value.uncertainty > 0.0 {
                    true => value.uncertainty,
                    false => f64::NAN,
                };
                let series = self.series.get(value.series);
                Datum {
                    group: group.name.clone(),
                    series: series.map_or_else(String::new, |(name, _)| name.clone()),
                    x: f64::NAN,
                    value: value.value,
                    low: value.value - interval,
                    high: value.value + interval,
                    reference: value.reference.unwrap_or(f64::NAN),
                }
            }));
        }
        data
    }
}

/// Top and bottom of each bar with a little around it, the first row at `top`: texts of their own
/// lines stand free of the grid. Names `beside` bars let it pass from one to the next.
fn strips(rows: &[Row<'_>], heights: &[f64], top: f64, beside: bool) -> Vec<(f64, f64)> {
    let mut y = top;
    let mut strips: Vec<(f64, f64)> = Vec::new();
    let mut goes_on = false;
    for (row, height) in rows.iter().zip(heights) {
        y += height;
        let is_value = matches!(row, Row::Value(..));
        let bottom = y - STEP + BAR + 4.0;
        match strips.last_mut() {
            Some(last) if is_value && goes_on => last.1 = bottom,
            _ if is_value => strips.push((y - STEP, bottom)),
            _ => {}
        }
        goes_on = is_value && beside;
    }
    strips
}

/// An interval with a bar at either end.
fn whisker(canvas: &mut Canvas, layout: &Layout, value: &Value, y: f64) {
    let [low, high] = [-1.0, 1.0].map(|side: f64| value.value + side * value.uncertainty);
    let (from, to) = (layout.x_at(low), layout.x_at(high));
    canvas.line([(from, y), (to, y)], Ink::Text, 1.5);
    for end in [to, from] {
        canvas.line([(end, y - 3.5), (end, y + 3.5)], Ink::Text, 1.5);
    }
}

/// Whether name and numbers stand on one line.
fn fits(name: &str, value: &Value, width: f64) -> bool {
    width_of(name) + width_of(&text_of(value)) + 10.0 <= width
}

/// The value, and what it is compared with in brackets.
fn runs_of(value: &Value) -> Vec<(String, Ink)> {
    let own = format_interval(value.value, value.uncertainty);
    let reference = value.reference.filter(|reference| reference.is_finite());
    let mut runs = vec![(own, Ink::Text)];
    if let Some(reference) = reference {
        runs.push((format!(" ({})", format_number(reference)), Ink::Soft));
    }
    runs
}

fn text_of(value: &Value) -> String {
    runs_of(value).into_iter().map(|(text, _)| text).collect()
}

#[cfg(test)]
mod tests;
