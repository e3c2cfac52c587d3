//! What all plots share: the frame with its names, the legend, ticks, numbers, escaping.

use std::fmt::Write as _;

use crate::COLOURS;

/// Width of a column in the units of plots. On a phone about as many pixels, so texts stay as large
/// as those around.
pub(crate) const WIDTH: f64 = 400.0;
/// Distance of two lines of text.
pub(crate) const LINE: f64 = 18.0;
/// Width of a character at the size of [`crate::STYLE`], on average, in the widest of the fonts
/// that systems come with.
const CHARACTER: f64 = 8.0;

/// Text as HTML and SVG may contain it, in elements and in attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML knows no other control characters (XML 1.0 §2.2).
            control if control.is_control() && !matches!(control, '\t' | '\n' | '\r') => {
                escaped.push('\u{fffd}');
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// A number as short as its size lets it be: `0.25`, `3.1`, `180`, `12,500`.
pub fn format_number(number: f64) -> String {
    if !number.is_finite() {
        return "–".into();
    }
    let decimals = match number.abs() {
        size if size == 0.0 || size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{number:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = whole.trim_start_matches('-');
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    // What rounds to zero has no sign.
    let is_negative = whole.starts_with('-') && (grouped != "0" || !fraction.is_empty());
    let sign = if is_negative { "−" } else { "" };
    if fraction.is_empty() {
        format!("{sign}{grouped}")
    } else {
        format!("{sign}{grouped}.{fraction}")
    }
}

/// A value and half the width of its interval, which is left out when it is zero or no number:
/// `21.3 ± 0.1`. An interval that is there is never written as none.
pub fn format_interval(value: f64, half_width: f64) -> String {
    let value = format_number(value);
    if !(half_width.is_finite() && half_width > 0.0) {
        return value;
    }
    match format_number(half_width).as_str() {
        "0" => format!("{value} ± <0.01"),
        half_width => format!("{value} ± {half_width}"),
    }
}

/// How wide a text is, about. Capitals are wider than the rest.
pub(crate) fn width_of(text: &str) -> f64 {
    let width = |letter: char| if letter.is_uppercase() { 1.3 } else { 1.0 };
    text.chars().map(width).sum::<f64>() * CHARACTER
}

/// A text in lines of at most so many units, broken between words.
pub(crate) fn wrap(text: &str, width: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one from the beginning");
        if line.is_empty() {
            line.push_str(word);
        } else if width_of(line) + width_of(word) + width_of(" ") <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// An element with its names; `body` draws into it.
pub(crate) fn frame(id: &str, title: &str, description: &str, height: f64, body: &str) -> String {
    let id = escape(id);
    format!(
        "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 {WIDTH} {height:.0}\" aria-labelledby=\"{id}-t\" aria-describedby=\"{id}-d\" \
         xmlns=\"http://www.w3.org/2000/svg\"><title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{body}</svg>",
        escape(title),
        escape(description)
    )
}

/// Draws the legend of areas from the top; returns the height it takes.
pub(crate) fn legend<'a>(out: &mut String, entries: impl Iterator<Item = (&'a str, usize)>) -> f64 {
    let (mut x, mut y) = (0.0, 13.0);
    for (name, colour) in entries.filter(|(name, _)| !name.is_empty()) {
        let wide = 19.0 + width_of(name) + 12.0;
        if x > 0.0 && x + wide - 12.0 > WIDTH {
            x = 0.0;
            y += LINE;
        }
        let _ = write!(
            out,
            "<rect class=\"f{}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"10\"/><text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            colour % COLOURS,
            y - 9.0,
            x + 19.0,
            escape(name)
        );
        x += wide;
    }
    y + 9.0
}

/// Round numbers that cover `least` to `most` with zero among them, about `wanted` of them.
pub(crate) fn ticks(least: f64, most: f64, wanted: usize) -> Vec<f64> {
    let (least, most) = (least.min(0.0), most.max(0.0));
    let span = most - least;
    if !(span.is_finite() && span > 0.0) {
        return vec![0.0, 1.0];
    }
    let rough = span / wanted.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let steps = |distance: f64| (distance / step * 0.999_999).ceil() as i64;
    (-steps(-least)..=steps(most))
        .map(|index| index as f64 * step)
        .collect()
}

/// Ticks of a logarithmic axis that covers `low` to `high`, both above zero: powers of ten, and 2
/// and 5 times them when there are few.
pub(crate) fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    if !(low > 0.0 && high >= low && high.is_finite()) {
        return vec![1.0, 10.0];
    }
    let steps: &[f64] = if high / low < 200.0 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all: Vec<f64> = powers
        .flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)))
        .collect();
    // From the last at or below `low` to the first at or above `high`.
    let first = all.iter().rposition(|tick| *tick <= low * 1.000_001);
    let last = all.iter().position(|tick| *tick >= high * 0.999_999);
    let (first, last) = (first.unwrap_or(0), last.unwrap_or(all.len() - 1));
    all[first..=last.max(first + 1).min(all.len() - 1)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_may_be() {
        let cases = [
            (0.0, "0"),
            (0.254, "0.25"),
            (3.10, "3.1"),
            (31.26, "31.3"),
            (180.4, "180"),
            (12_500.0, "12,500"),
            (1_234_567.0, "1,234,567"),
            (-4.5, "−4.5"),
            (-0.001, "0"),
            (-0.04, "−0.04"),
            (f64::NAN, "–"),
        ];
        for (number, text) in cases {
            assert_eq!(format_number(number), text);
        }
    }

    #[test]
    fn intervals_are_never_rounded_away() {
        assert_eq!(format_interval(21.3, 0.1), "21.3 ± 0.1");
        assert_eq!(format_interval(99.4, 0.001), "99.4 ± <0.01");
        assert_eq!(format_interval(5.0, 0.0), "5");
        assert_eq!(format_interval(f64::NAN, f64::NAN), "–");
    }

    #[test]
    fn ticks_are_round_and_cover_the_whole() {
        assert_eq!(ticks(0.0, 9.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(
            ticks(0.0, 210.0, 5),
            [0.0, 50.0, 100.0, 150.0, 200.0, 250.0]
        );
        assert_eq!(ticks(0.0, 1.0, 5).len(), 6);
        assert_eq!(ticks(0.0, 0.0, 5), [0.0, 1.0]);
        assert_eq!(ticks(0.0, f64::INFINITY, 5), [0.0, 1.0]);
        assert_eq!(ticks(-12.0, 3.0, 4), [-15.0, -10.0, -5.0, 0.0, 5.0]);
        for most in [0.003, 0.7, 1.0, 19.9, 1e9] {
            let ticks = ticks(0.0, most, 5);
            assert!(*ticks.last().unwrap() >= most * 0.999_99);
            assert!(ticks.len() <= 8, "{ticks:?}");
        }
    }

    #[test]
    fn logarithmic_ticks_surround_the_values() {
        assert_eq!(log_ticks(3.0, 40_000.0), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]);
        assert_eq!(log_ticks(3.0, 30.0), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(log_ticks(10.0, 10.0), [10.0, 20.0]);
        assert_eq!(log_ticks(f64::INFINITY, 0.0), [1.0, 10.0]);
    }

    #[test]
    fn texts_break_between_words() {
        assert_eq!(wrap("one two three", 8.0 * 8.0), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 8.0), ["unbreakable"]);
        assert_eq!(wrap("", 8.0), [""]);
    }

    #[test]
    fn nothing_breaks_out_of_a_text() {
        assert_eq!(
            escape("<script>\"a\" & 'b'\u{0}"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\u{fffd}"
        );
    }
}
