//! Claims of figures, in words and checked.

/// A statement of the paper, with its number and ours, and whether it holds here.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The statement.
    pub words: String,
    /// The paper's number.
    pub paper: String,
    /// Ours, with its confidence interval where it has one.
    pub ours: String,
    holds: bool,
    undecided: bool,
    calibrated: bool,
    deviation: Option<Deviation>,
}

/// A known difference from the paper.
#[derive(Clone, Debug, PartialEq)]
struct Deviation {
    reason: String,
    as_known: bool,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// It holds.
    Pass,
    /// It holds because parameters were chosen so that it does: it confirms nothing.
    Calibrated,
    /// It does not hold, for a known reason, and the numbers are where that reason puts them.
    Deviation(&'a str),
    /// The interval has the claim's bound within it: more seeds have to decide.
    Inconclusive,
    /// It does not hold.
    Fail,
}

impl Claim {
    /// A claim that is true when `holds`. Compute that with comparisons that are false for NaN: a
    /// measurement that is missing then fails its claim.
    pub fn new(
        words: impl Into<String>,
        paper: impl Into<String>,
        ours: impl Into<String>,
        holds: bool,
    ) -> Self {
        Self {
            words: words.into(),
            paper: paper.into(),
            ours: ours.into(),
            holds,
            undecided: false,
            calibrated: false,
            deviation: None,
        }
    }

    /// Excuses a claim that does not hold for `reason`, as long as the numbers are `as_known`.
    #[must_use]
    pub fn or(mut self, reason: impl Into<String>, as_known: bool) -> Self {
        self.deviation = Some(Deviation {
            reason: reason.into(),
            as_known,
        });
        self
    }

    /// States whether the claim's bound is `within` the interval: then a claim that does not hold
    /// is undecided, not refuted. Compute that with comparisons that are false for NaN.
    #[must_use]
    pub fn undecided(mut self, within: bool) -> Self {
        self.undecided = within;
        self
    }

    /// Says that parameters were chosen so that the claim holds.
    #[must_use]
    pub fn calibrated(mut self) -> Self {
        self.calibrated = true;
        self
    }

    /// What became of it.
    pub fn verdict(&self) -> Verdict<'_> {
        match &self.deviation {
            _ if self.holds && self.calibrated => Verdict::Calibrated,
            _ if self.holds => Verdict::Pass,
            Some(deviation) if deviation.as_known => Verdict::Deviation(&deviation.reason),
            _ if self.undecided => Verdict::Inconclusive,
            _ => Verdict::Fail,
        }
    }
}

impl<'a> Verdict<'a> {
    /// Every verdict, without its reason, from the best.
    pub const ALL: [Verdict<'static>; 5] = [
        Verdict::Pass,
        Verdict::Calibrated,
        Verdict::Deviation(""),
        Verdict::Inconclusive,
        Verdict::Fail,
    ];

    /// Its name, in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Calibrated => "calibrated",
            Self::Deviation(_) => "deviation",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        }
    }

    /// Why the claim does not hold, where that is known; else empty.
    pub fn reason(self) -> &'a str {
        match self {
            Self::Deviation(reason) => reason,
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excuse_counts_only_within_its_bounds() {
        let claim = |holds| Claim::new("faster", "2", "1", holds);
        assert_eq!(claim(true).verdict(), Verdict::Pass);
        assert_eq!(claim(false).verdict(), Verdict::Fail);
        assert_eq!(claim(true).or("ideal air", false).verdict(), Verdict::Pass);
        assert_eq!(
            claim(false).or("ideal air", true).verdict(),
            Verdict::Deviation("ideal air")
        );
        assert_eq!(claim(false).or("ideal air", false).verdict(), Verdict::Fail);
    }

    #[test]
    fn an_interval_that_does_not_decide_neither_passes_nor_fails() {
        let claim = |holds, within| Claim::new("faster", "2", "1", holds).undecided(within);
        assert_eq!(claim(true, true).verdict(), Verdict::Pass);
        assert_eq!(claim(false, true).verdict(), Verdict::Inconclusive);
        assert_eq!(claim(false, false).verdict(), Verdict::Fail);
    }

    #[test]
    fn what_was_calibrated_passes_nothing_and_may_fail() {
        let claim = |holds| Claim::new("baseline", "7", "6.9", holds).calibrated();
        assert_eq!(claim(true).verdict(), Verdict::Calibrated);
        assert_eq!(claim(false).verdict(), Verdict::Fail);
    }
}
