//! What measurements say about a statement: whether it holds, and whether that is decided.

use std::ops::RangeInclusive;

use crate::estimate::Estimate;

/// Whether a statement holds by the mean, and whether the mean's whole interval says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the mean says that the statement holds.
    pub holds: bool,
    /// Whether the whole interval says the same as the mean.
    pub is_decided: bool,
}

/// A statement without chance in it: of a closed form, or of a count that allows no exception. Use
/// comparisons that are false for NaN: a measurement that is missing then refutes its statement.
impl From<bool> for Finding {
    fn from(holds: bool) -> Self {
        Self {
            holds,
            is_decided: true,
        }
    }
}

impl Finding {
    /// Whether all of them hold. One that is refuted decides; else each of them must be decided.
    pub fn all(findings: impl IntoIterator<Item = Self>) -> Self {
        findings
            .into_iter()
            .fold(Self::from(true), |all, next| all.and(next))
    }

    /// Whether both hold.
    #[must_use]
    pub fn and(self, other: impl Into<Self>) -> Self {
        let other = other.into();
        let is_refuted = |one: Self| one.is_decided && !one.holds;
        Self {
            holds: self.holds && other.holds,
            is_decided: is_refuted(self)
                || is_refuted(other)
                || (self.is_decided && other.is_decided),
        }
    }

    /// Whether it is decided that the statement holds.
    pub fn is_sure(self) -> bool {
        self.is_decided && self.holds
    }
}

/// Comparisons with a bound. They are decided when the whole interval lies on one side of it; an
/// estimate that is not a number is refuted.
impl Estimate {
    /// Above `bound`.
    pub fn is_above(&self, bound: f64) -> Finding {
        self.compared(self.mean > bound, self.low() > bound, self.high() <= bound)
    }

    /// Not below `bound`.
    pub fn is_at_least(&self, bound: f64) -> Finding {
        self.compared(self.mean >= bound, self.low() >= bound, self.high() < bound)
    }

    /// Below `bound`.
    pub fn is_below(&self, bound: f64) -> Finding {
        self.times(-1.0).is_above(-bound)
    }

    /// Not above `bound`.
    pub fn is_at_most(&self, bound: f64) -> Finding {
        self.times(-1.0).is_at_least(-bound)
    }

    /// Within `range`, its ends included.
    pub fn is_within(&self, range: RangeInclusive<f64>) -> Finding {
        let (least, most) = (*range.start(), *range.end());
        self.is_at_least(least).and(self.is_at_most(most))
    }

    /// No further from `target` than `share` of it.
    pub fn is_near(&self, target: f64, share: f64) -> Finding {
        self.is_within(target * (1.0 - share)..=target * (1.0 + share))
    }

    fn compared(&self, holds: bool, surely: bool, surely_not: bool) -> Finding {
        Finding {
            holds,
            is_decided: surely || surely_not || self.mean.is_nan() || self.half_width.is_nan(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YES: Finding = finding(true, true);
    const NO: Finding = finding(false, true);
    const RATHER: Finding = finding(true, false);
    const RATHER_NOT: Finding = finding(false, false);

    const fn finding(holds: bool, is_decided: bool) -> Finding {
        Finding { holds, is_decided }
    }

    fn estimate(mean: f64, half_width: f64) -> Estimate {
        Estimate {
            mean,
            half_width,
            count: 3,
        }
    }

    #[test]
    fn an_interval_decides_that_lies_on_one_side_of_the_bound() {
        for (mean, half_width, above, below) in [
            (3.0, 0.5, YES, NO),
            (1.0, 0.5, NO, YES),
            (2.2, 0.5, RATHER, RATHER_NOT),
            (1.8, 0.5, RATHER_NOT, RATHER),
        ] {
            let one = estimate(mean, half_width);
            assert_eq!((one.is_above(2.0), one.is_below(2.0)), (above, below));
            assert_eq!((one.is_at_least(2.0), one.is_at_most(2.0)), (above, below));
        }
        // Equal runs: the bound itself.
        let same = Estimate::of(&[2.0, 2.0]);
        assert_eq!((same.is_above(2.0), same.is_below(2.0)), (NO, NO));
        assert_eq!((same.is_at_least(2.0), same.is_at_most(2.0)), (YES, YES));
    }

    #[test]
    fn a_range_is_decided_from_within_and_from_without() {
        for (mean, half_width, finding) in [
            (2.0, 0.5, YES),
            (2.8, 0.5, RATHER),
            (3.2, 0.5, RATHER_NOT),
            (4.0, 0.5, NO),
            (2.0, 5.0, RATHER),
        ] {
            assert_eq!(estimate(mean, half_width).is_within(1.0..=3.0), finding);
        }
        assert_eq!(estimate(103.0, 1.0).is_near(100.0, 0.05), YES);
        assert_eq!(estimate(103.0, 3.0).is_near(100.0, 0.05), RATHER);
    }

    #[test]
    fn one_run_decides_only_what_has_no_chance_in_it() {
        let one = Estimate::of(&[5.0]);
        assert_eq!(one.is_above(0.0), RATHER);
        assert_eq!(one.is_below(0.0), RATHER_NOT);
        assert_eq!(Estimate::exact(5.0).is_above(0.0), YES);
        assert_eq!(Estimate::exact(5.0).is_below(0.0), NO);
    }

    #[test]
    fn what_is_missing_is_refuted() {
        for missing in [
            Estimate::of(&[]),
            Estimate::of(&[f64::NAN]),
            Estimate::of(&[1.0, f64::NAN]),
        ] {
            for finding in [
                missing.is_above(0.0),
                missing.is_below(0.0),
                missing.is_at_least(0.0),
                missing.is_at_most(0.0),
                missing.is_within(-1.0..=1.0),
                missing.less(Estimate::exact(1.0)).is_above(0.0),
            ] {
                assert_eq!(finding, NO);
            }
        }
    }

    #[test]
    fn all_are_decided_by_each_or_by_one_that_is_refuted() {
        for (findings, all) in [
            (vec![], YES),
            (vec![YES, YES], YES),
            (vec![YES, RATHER], RATHER),
            (vec![YES, RATHER_NOT], RATHER_NOT),
            (vec![RATHER, RATHER_NOT, NO], NO),
        ] {
            assert_eq!(Finding::all(findings), all);
        }
    }
}
