//! Means and how sure they are.

use std::fmt;

use tack_plot::format_interval;

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean; not a number when nothing was measured.
    pub mean: f64,
    /// Half the width of the interval (Student's t); zero for a single value, which says nothing
    /// about its spread.
    pub half_width: f64,
    /// Values behind it.
    pub count: usize,
}

/// 97.5 % quantiles of Student's t distribution for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The 97.5 % quantile of Student's t distribution with so many degrees of freedom, at least 1:
/// beyond the table by the expansion around the normal one (Abramowitz and Stegun 26.7.5), which is
/// right to four digits there.
fn student(freedom: usize) -> f64 {
    const NORMAL: f64 = 1.959_964;
    let n = freedom as f64;
    STUDENT.get(freedom - 1).copied().unwrap_or_else(|| {
        let first = (NORMAL.powi(3) + NORMAL) / 4.0;
        let second = (5.0 * NORMAL.powi(5) + 16.0 * NORMAL.powi(3) + 3.0 * NORMAL) / 96.0;
        NORMAL + first / n + second / (n * n)
    })
}

impl Estimate {
    /// Of `values`; NaN if one of them is.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let half_width = if count < 2 {
            0.0
        } else {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let freedom = count - 1;
            student(freedom) * (squares / freedom as f64 / count as f64).sqrt()
        };
        Self {
            mean,
            half_width,
            count,
        }
    }

    /// Of a quantity without chance in it, as of a closed form: its interval is a point.
    pub fn exact(value: f64) -> Self {
        Self {
            mean: value,
            half_width: 0.0,
            count: usize::MAX,
        }
    }

    /// The lower end of the interval; without end for a single value.
    pub fn low(&self) -> f64 {
        self.mean - self.reach()
    }

    /// The upper end of the interval; without end for a single value.
    pub fn high(&self) -> f64 {
        self.mean + self.reach()
    }

    fn reach(&self) -> f64 {
        if self.count == 1 {
            f64::INFINITY
        } else {
            self.half_width
        }
    }

    /// The estimate of the difference to an independent quantity.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self {
            mean: self.mean - other.mean,
            half_width: self.half_width.hypot(other.half_width),
            count: self.count.min(other.count),
        }
    }

    /// The estimate of `factor` times the quantity.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            mean: self.mean * factor,
            half_width: self.half_width * factor.abs(),
            ..self
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_interval(self.mean, self.half_width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_student() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]);
        assert_eq!(estimate.mean, 2.0);
        // s = 1, and 4.303 / √3.
        assert!((estimate.half_width - 2.484).abs() < 1e-3);
        assert_eq!(estimate.to_string(), "2 ± 2.48");
        assert_eq!(Estimate::of(&[5.0]).to_string(), "5");
        assert_eq!(Estimate::of(&[1.0, 2.0]).times(10.0).mean, 15.0);
    }

    #[test]
    fn quantiles_go_on_beyond_the_table() {
        for (freedom, quantile) in [(31, 2.0395), (59, 2.0010), (100, 1.9840), (1_000, 1.9623)] {
            assert!((student(freedom) - quantile).abs() < 1e-4, "{freedom}");
        }
        assert!(student(30) > student(31));
    }

    #[test]
    fn a_single_value_bounds_nothing() {
        let estimate = Estimate::of(&[5.0]).times(2.0);
        assert_eq!(
            (estimate.low(), estimate.high()),
            (f64::NEG_INFINITY, f64::INFINITY)
        );
    }

    #[test]
    fn a_difference_is_as_unsure_as_both() {
        let of = |mean, half_width, count| Estimate {
            mean,
            half_width,
            count,
        };
        assert_eq!(of(9.0, 3.0, 5).less(of(2.0, 4.0, 3)), of(7.0, 5.0, 3));
        assert_eq!(of(9.0, 3.0, 5).less(Estimate::exact(2.0)).low(), 4.0);
        let single = of(9.0, 3.0, 5).less(Estimate::of(&[2.0]));
        assert_eq!(single.low(), f64::NEG_INFINITY);
    }

    #[test]
    fn nothing_and_nonsense_are_no_numbers() {
        assert!(Estimate::of(&[]).mean.is_nan());
        assert!(Estimate::of(&[1.0, f64::NAN]).mean.is_nan());
        assert_eq!(Estimate::of(&[]).to_string(), "–");
    }
}
