//! Horizontal bars for values with their uncertainty, beside what they are compared with.

use std::fmt::Write as _;

use crate::COLOURS;
use crate::svg::{
    LINE, Swatch, WIDTH, escape, format_interval, format_number, frame, legend, width_of,
};

/// One value.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Value {
    /// Which of [`ValueBars::series`] it belongs to.
    pub series: usize,
    /// Its size; a value that is no number is written as a dash.
    pub value: f64,
    /// Half the width of its confidence interval; zero for none.
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

/// Horizontal bars from zero, in groups.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ValueBars {
    /// Unique in the page.
    pub id: String,
    /// What the plot shows: its accessible name.
    pub title: String,
    /// What there is to see, for those who cannot.
    pub description: String,
    /// Quantity and unit.
    pub label: String,
    /// Names of the series and their colours, 0 to [`COLOURS`] − 1.
    pub series: Vec<(String, usize)>,
    /// What the marks are; not drawn when there is none.
    pub reference: String,
    /// From the top.
    pub groups: Vec<Group>,
}

/// Height of a bar, and the distance of two.
const BAR: f64 = 14.0;
const STEP: f64 = 18.0;

impl ValueBars {
    /// The plot as an SVG element.
    pub fn to_svg(&self) -> String {
        let mut out = String::new();
        let entries = self
            .series
            .iter()
            .map(|(name, colour)| (name.as_str(), *colour, Swatch::Area));
        let values = || self.groups.iter().flat_map(|group| &group.values);
        let marked = values().any(|value| value.reference.is_some());
        let reference = format!("({})", self.reference);
        let mark =
            (marked && !self.reference.is_empty()).then_some((reference.as_str(), 0, Swatch::Mark));
        let mut y = legend(&mut out, entries.chain(mark)) + 6.0;
        let ends = || {
            values()
                .flat_map(|value| [value.value, value.reference.unwrap_or(0.0)])
                .filter(|end| end.is_finite())
        };
        let whiskers = |sign: f64| {
            values()
                .map(move |value| value.value + sign * value.uncertainty)
                .filter(|end| end.is_finite())
        };
        let (most, least) = (ends().fold(0.0, f64::max), ends().fold(0.0, f64::min));
        // An interval that is much wider than the values are large is cut off, or they would not be seen.
        let reach = 0.25 * (most - least);
        let most = most.max(whiskers(1.0).fold(0.0, f64::max).min(most + reach));
        let least = if least < 0.0 {
            least.min(whiskers(-1.0).fold(0.0, f64::min).max(least - reach))
        } else {
            0.0
        };
        let span = if most > least { most - least } else { 1.0 };
        // Numbers stand behind the bars.
        let room = values()
            .map(|value| width_of(&text_of(value)))
            .fold(0.0, f64::max)
            + 8.0;
        let x_at = |value: f64| (WIDTH - room) * (value.clamp(least, least + span) - least) / span;
        let zero = x_at(0.0);
        let _ = write!(
            out,
            "<text class=\"soft\" x=\"0\" y=\"{:.1}\">{}</text>",
            y + 8.0,
            escape(&self.label)
        );
        y += LINE;
        for group in &self.groups {
            if !group.name.is_empty() {
                let _ = write!(
                    out,
                    "<text x=\"0\" y=\"{:.1}\">{}</text>",
                    y + 9.0,
                    escape(&group.name)
                );
                y += LINE;
            }
            for value in &group.values {
                self.bar(&mut out, value, y, zero, &x_at);
                y += STEP;
            }
            y += 6.0;
        }
        frame(&self.id, &self.title, &self.description, y, &out)
    }

    fn bar(&self, out: &mut String, value: &Value, y: f64, zero: f64, x_at: &dyn Fn(f64) -> f64) {
        let (name, colour) = self
            .series
            .get(value.series)
            .map_or(("", 0), |(name, colour)| (name.as_str(), *colour));
        let mut end = zero;
        if value.value.is_finite() {
            let x = x_at(value.value);
            let (from, to) = (zero.min(x), zero.max(x));
            let _ = write!(
                out,
                "<rect class=\"f{}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\"><title>{}: {}</title></rect>",
                colour % COLOURS,
                to - from,
                escape(name),
                escape(&format_interval(value.value, value.uncertainty))
            );
            end = to;
            if value.uncertainty.is_finite() && value.uncertainty > 0.0 {
                let (low, high) = (
                    x_at(value.value - value.uncertainty),
                    x_at(value.value + value.uncertainty),
                );
                let middle = y + BAR / 2.0;
                let _ = write!(
                    out,
                    "<path class=\"whisker\" d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {:.1}v6M{high:.1} {:.1}v6\"/>",
                    middle - 3.0,
                    middle - 3.0
                );
                end = end.max(high);
            }
        }
        if let Some(reference) = value.reference.filter(|reference| reference.is_finite()) {
            let x = x_at(reference);
            let _ = write!(
                out,
                "<path class=\"mark\" d=\"M{x:.1} {:.1}v{:.1}\"><title>{}: {}</title></path>",
                y - 1.5,
                BAR + 3.0,
                escape(&self.reference),
                format_number(reference)
            );
            end = end.max(x);
        }
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}{}</text>",
            end + 5.0,
            y + 11.5,
            escape(&format_interval(value.value, value.uncertainty)),
            compared(value).map_or_else(String::new, |reference| format!(
                " <tspan class=\"soft\">{reference}</tspan>"
            ))
        );
    }
}

/// The value, and what it is compared with in brackets.
fn text_of(value: &Value) -> String {
    let own = format_interval(value.value, value.uncertainty);
    match compared(value) {
        Some(reference) => format!("{own} {reference}"),
        None => own,
    }
}

fn compared(value: &Value) -> Option<String> {
    let reference = value.reference.filter(|reference| reference.is_finite())?;
    Some(format!("({})", format_number(reference)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_marks_and_whiskers_share_a_scale() {
        let svg = ValueBars {
            id: "v".into(),
            title: "Gain".into(),
            description: "of two".into(),
            label: "%".into(),
            series: vec![("<ours>".into(), 1)],
            reference: "paper".into(),
            groups: vec![Group {
                name: "802.11n".into(),
                values: vec![
                    Value {
                        value: 50.0,
                        uncertainty: 5.0,
                        reference: Some(100.0),
                        ..Value::default()
                    },
                    Value {
                        value: f64::NAN,
                        ..Value::default()
                    },
                    Value {
                        value: -10.0,
                        ..Value::default()
                    },
                ],
            }],
        }
        .to_svg();
        assert!(svg.contains(">50 ± 5 <tspan class=\"soft\">(100)</tspan></text>"));
        assert!(svg.contains(">(paper)</text>") && svg.contains(">−10</text>"));
        assert_eq!(svg.matches("<rect").count(), 3, "legend and two bars");
        assert_eq!(svg.matches("class=\"mark\"").count(), 2, "legend and bar");
        assert!(svg.contains("&lt;ours&gt;") && !svg.contains("NaN"));
    }

    #[test]
    fn nothing_to_draw_is_drawn() {
        assert!(ValueBars::default().to_svg().ends_with("</svg>"));
    }
}
