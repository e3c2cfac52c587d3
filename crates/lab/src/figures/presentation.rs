//! How figures show values: in plots and in words.

use crate::figure::Plot;
use tack_stats::Estimate;

pub(in crate::figures) fn plot(svg: tack_plot::Svg, caption: impl Into<String>) -> Plot {
    Plot {
        svg,
        caption: caption.into(),
    }
}

/// A value that is there in one run or several, as a bar.
pub(in crate::figures) fn bar(
    series: usize,
    estimate: Estimate,
    reference: Option<f64>,
) -> tack_plot::Value {
    tack_plot::Value {
        series,
        value: estimate.mean,
        uncertainty: estimate.half_width,
        reference,
    }
}

/// A value with one decimal; a dash when it is not a number.
pub(in crate::figures) fn tenths(value: f64) -> String {
    if value.is_nan() {
        return "–".into();
    }
    format!("{value:.1}")
}

/// `13.5 %` with its interval.
pub(in crate::figures) fn percent(estimate: Estimate) -> String {
    format!("{estimate} %")
}
